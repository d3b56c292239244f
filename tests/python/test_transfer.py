"""Tensors move to the device with their values, whoever writes to the source afterwards."""

from __future__ import annotations

import pytest
import torch

from torch_xla import _XLAC

N = 96  # squared, more than what is always copied

# Whether the transfer makes a tensor of its own on the way, whose memory the device may keep.
SOURCES = {
    "plain": (lambda x: x, None, False),
    "channels_last": (lambda x: x.view(1, 4, N, N // 4).to(memory_format=torch.channels_last), None, True),
    "transposed": (lambda x: x.t(), None, True),
    "stepped": (lambda x: x.repeat(2, 1)[::2], None, True),
    "double": (lambda x: x, torch.float64, True),
    "integers": (lambda x: x, torch.int32, True),
    "conjugated": (lambda x: torch.complex(x, x).conj(), None, False),  # PyTorch hands us the resolved one
    "small": (lambda x: x[:4].t(), None, False),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_transfer_keeps_what_it_read(name: str) -> None:
    make, dtype, is_owned = SOURCES[name]
    source = make(torch.randn(N, N))
    expected = source.to(dtype or source.dtype).clone()
    before = _XLAC.counters().get("ZeroCopyUpload", 0)
    moved = source.to("xla", dtype=dtype)
    source.zero_()
    assert torch.equal(moved.cpu(), expected)
    moved.add_(1)  # a program that may donate it
    assert torch.equal(moved.cpu(), expected + 1)
    assert _XLAC.counters().get("ZeroCopyUpload", 0) - before == is_owned
