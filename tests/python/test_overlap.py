"""Writes in place to elements that share memory: refused in eager PyTorch's words, or what eager leaves there."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils import _pytree as pytree

from torch_xla.debug import metrics

IN_PLACE = [op for op in op_db if op.get_inplace() is not None]
MAX_SAMPLES = 4
# Accepted on expanded tensors, and drawn from different generators.
RANDOM = ("nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d")


def samples_to_expand(op: Any) -> Iterator[SampleInput]:
    dtype = next(d for d in (torch.float32, torch.int64, torch.bool, *op.dtypes) if d in op.dtypes)
    for sample in op.sample_inputs("cpu", dtype):
        if isinstance(sample.input, torch.Tensor) and sample.input.dim() > 0 and max(sample.input.shape) > 1:
            yield sample


def expand_largest(x: torch.Tensor) -> tuple[torch.Tensor, torch.Size]:
    """Memory for one of the largest dimension, and the sizes that it expands to."""
    dim = max(range(x.dim()), key=lambda i: x.shape[i])
    return x.detach().narrow(dim, 0, 1).clone(memory_format=torch.contiguous_format), x.shape


def outcome(write: Callable[[torch.Tensor], Any], view: Callable[[torch.Tensor], torch.Tensor], memory: torch.Tensor):
    """What the memory holds after a write to a view of it, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(view(memory))
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return memory.cpu()


def assert_same_outcome(actual: Any, expected: Any) -> None:
    assert isinstance(actual, torch.Tensor) == isinstance(expected, torch.Tensor), (actual, expected)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
    else:
        assert actual == expected


@pytest.mark.parametrize("op", IN_PLACE, ids=[op.formatted_name for op in IN_PLACE])
def test_expanded(op):
    for sample in itertools.islice(samples_to_expand(op), MAX_SAMPLES):
        memory, sizes = expand_largest(sample.input)

        def run(device: str, memory=memory, sizes=sizes, sample=sample) -> Any:
            args, kwargs = pytree.tree_map_only(
                torch.Tensor, lambda x: x.detach().to(device), (sample.args, sample.kwargs)
            )
            torch.manual_seed(0)
            return outcome(
                lambda x: op.get_inplace()(x, *args, **kwargs), lambda x: x.expand(sizes), memory.clone().to(device)
            )

        expected, actual = run("cpu"), run("xla")
        if op.name in RANDOM and isinstance(expected, torch.Tensor):
            assert isinstance(actual, torch.Tensor)
        else:
            assert_same_outcome(actual, expected)


WINDOWS = {
    "add_": lambda x: x.add_(1),
    "copy_": lambda x: x.copy_(torch.arange(float(x.numel()), device=x.device).view_as(x)),
    "fill_": lambda x: x.fill_(3),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([1], device=x.device), 9),
    "masked_fill_": lambda x: x.masked_fill_(x == 2, 9),
    "mul_": lambda x: x.mul_(torch.arange(1.0, x.numel() + 1, device=x.device).view_as(x)),
    "setitem": lambda x: x.__setitem__((1, 1), 9),
    "zero_": lambda x: x.zero_(),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    expected = outcome(WINDOWS[name], lambda x: x.unfold(0, 3, 1), torch.arange(6.0))
    actual = outcome(WINDOWS[name], lambda x: x.unfold(0, 3, 1), torch.arange(6.0, device="xla"))
    assert_same_outcome(actual, expected)


def test_other_tensors_of_the_memory_see_the_write():
    memory = torch.arange(4.0, device="xla")
    row = memory[1:2].expand(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = row.index_fill_(0, torch.tensor([2], device="xla"), 9)
    assert result is row
    assert memory.tolist() == [0, 9, 2, 3]
    assert row.tolist() == [9, 9, 9]


def test_the_warning_is_eagers():
    with pytest.warns(UserWarning, match="index_fill_ on expanded tensors is deprecated"):
        torch.zeros(1).expand(3).index_fill_(0, torch.tensor([0]), 1)
    with pytest.warns(UserWarning, match="index_fill_ on expanded tensors is deprecated"):
        torch.zeros(1, device="xla").expand(3).index_fill_(0, torch.tensor([0], device="xla"), 1)


def test_a_slice_shares_nothing_and_is_recorded():
    before = metrics.counter_value("aten::add") or 0
    for view in (lambda x: x[::2, 1:], lambda x: x.t()[1:], lambda x: x.view(2, 2, 4)[:, 1], lambda x: x[:, :1]):
        expected, actual = torch.arange(16.0).view(4, 4), torch.arange(16.0).view(4, 4).to("xla")
        view(expected).add_(1)
        view(actual).add_(1)
        assert torch.equal(actual.cpu(), expected)
    assert (metrics.counter_value("aten::add") or 0) == before
