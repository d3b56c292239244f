"""torch.nn.attention.flex_attention on `xla`, against attention written out on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from torch_xla.debug import metrics as met

LENGTH, WIDTH = 16, 4
Modification = Callable[..., torch.Tensor]


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def distance(score: torch.Tensor, batch: torch.Tensor, head: torch.Tensor, i: torch.Tensor, j: torch.Tensor):
    return score + 0.1 * (i - j) * (head + 1)


def written_out(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, modify: Modification | None, mask: torch.Tensor | None
) -> torch.Tensor:
    scores = query @ key.transpose(-1, -2) / WIDTH**0.5
    if modify is not None:
        head = torch.arange(query.shape[1])[:, None, None]
        scores = modify(scores, None, head, torch.arange(LENGTH)[:, None], torch.arange(LENGTH))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ value


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("form", ["score_mod", "block_mask", "compiled"])
def test_equals_attention_written_out(form: str) -> None:
    torch.manual_seed(0)
    cpu = [torch.randn(2, 3, LENGTH, WIDTH, requires_grad=True) for _ in range(3)]
    xla = [x.detach().to("xla").requires_grad_() for x in cpu]
    met.clear_all()
    if form == "block_mask":
        causal = create_block_mask(lambda b, h, i, j: i >= j, 2, 3, LENGTH, LENGTH, device="xla", BLOCK_SIZE=8)
        result = flex_attention(*xla, block_mask=causal)
        expected = written_out(*cpu, None, torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril())
    else:
        attention = torch.compile(flex_attention, backend="aot_eager") if form == "compiled" else flex_attention
        result = attention(*xla, score_mod=distance)
        expected = written_out(*cpu, distance, None)
    assert result.device.type == "xla"
    torch.testing.assert_close(result.cpu(), expected)
    result.sin().sum().backward()
    expected.sin().sum().backward()
    for x, y in zip(xla, cpu, strict=True):
        torch.testing.assert_close(x.grad.cpu(), y.grad)
    assert met.executed_fallback_ops() == []


def test_other_devices_are_checked_as_before() -> None:
    x = torch.randn(1, 1, LENGTH, WIDTH, device="meta")
    with pytest.raises(ValueError, match="FlexAttention is only supported on"):
        flex_attention(x, x, x)
