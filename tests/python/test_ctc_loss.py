"""nn.functional.ctc_loss: values and gradients as on the CPU, and one program for batches of all lengths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from parity import assert_equal, assert_same

import torch_xla
from torch_xla.debug import metrics

STEPS, BATCH, CLASSES, LABELS = 12, 4, 5, 5
INPUT_LENGTHS, TARGET_LENGTHS = [12, 7, 10, 9], [5, 3, 0, 4]


def log_probs(dtype: torch.dtype = torch.float64) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(STEPS, BATCH, CLASSES, dtype=dtype).log_softmax(-1).requires_grad_()


def padded_targets(blank: int = 0) -> torch.Tensor:
    torch.manual_seed(1)
    labels = torch.randint(0, CLASSES - 1, (BATCH, LABELS))
    labels = labels + (labels >= blank)
    labels[0, 2] = labels[0, 1]  # a label twice in a row needs a blank between
    return labels


def concatenated(targets: torch.Tensor) -> torch.Tensor:
    return torch.cat([row[:length] for row, length in zip(targets, TARGET_LENGTHS, strict=True)])


@pytest.mark.parametrize("form", ["lists", "cpu_tensors", "xla_tensors"])
@pytest.mark.parametrize("is_padded", [True, False])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_reductions(form: str, is_padded: bool, reduction: str):
    targets = padded_targets() if is_padded else concatenated(padded_targets())

    def loss(x: torch.Tensor) -> torch.Tensor:
        inputs: Any = INPUT_LENGTHS
        lengths: Any = TARGET_LENGTHS
        if form != "lists":
            device = x.device if form == "xla_tensors" else "cpu"
            inputs, lengths = torch.tensor(inputs, device=device), torch.tensor(lengths, device=device)
        return F.ctc_loss(x, targets.to(x.device), inputs, lengths, reduction=reduction)

    assert_same(loss, log_probs())


def test_other_blank_and_float32():
    for blank in (2, CLASSES - 1):
        targets = padded_targets(blank)
        assert_same(
            lambda x, blank=blank, targets=targets: F.ctc_loss(
                x, targets.to(x.device), INPUT_LENGTHS, TARGET_LENGTHS, blank=blank
            ),
            log_probs(torch.float32),
        )


@pytest.mark.parametrize("zero_infinity", [True, False])
def test_impossible_alignments(zero_infinity: bool):
    targets = padded_targets()
    assert_same(
        lambda x: F.ctc_loss(
            x, targets.to(x.device), [3, 12, 12, 12], [5, 3, 2, 4], reduction="none", zero_infinity=zero_infinity
        ),
        log_probs(),
    )


def test_one_sequence_without_a_batch():
    targets = padded_targets()[0]
    assert_same(
        lambda x: F.ctc_loss(x[:, 0], targets.to(x.device), torch.tensor(STEPS), torch.tensor(LABELS)), log_probs()
    )


def test_empty_targets():
    assert_same(
        lambda x: F.ctc_loss(x, torch.zeros(BATCH, 0, dtype=torch.long, device=x.device), [12] * 4, [0] * 4),
        log_probs(),
    )


def test_direct_calls_of_the_operator():
    targets = padded_targets()

    def call(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._ctc_loss(x, targets.to(x.device), INPUT_LENGTHS, TARGET_LENGTHS)[0]

    assert_same(call, log_probs())
    assert_equal(
        torch.ops.aten._ctc_loss(
            log_probs().detach().to("xla"), concatenated(targets).to("xla"), INPUT_LENGTHS, TARGET_LENGTHS
        )[0],
        torch.ops.aten._ctc_loss(log_probs().detach(), concatenated(targets), INPUT_LENGTHS, TARGET_LENGTHS)[0],
    )


def test_other_lengths_take_the_same_program():
    targets, x = padded_targets().to("xla"), log_probs().detach().to("xla").requires_grad_()

    def step(inputs: list[int], lengths: list[int]) -> None:
        x.grad = None
        F.ctc_loss(x, targets, torch.tensor(inputs), torch.tensor(lengths)).backward()
        torch_xla.sync(wait=True)

    step(INPUT_LENGTHS, TARGET_LENGTHS)
    metrics.clear_all()
    step([12, 11, 10, 8], [5, 4, 3, 2])
    assert metrics.metric_data("CompileTime") is None
    assert metrics.executed_fallback_ops() == []


@pytest.mark.parametrize(
    ("inputs", "lengths"), [([13, 12, 12, 12], [1, 1, 1, 1]), ([12, 12], [1, 1]), ([12] * 4, [6, 1, 1, 1])]
)
def test_wrong_lengths_raise_what_the_cpu_raises(inputs: list[int], lengths: list[int]):
    messages = []
    for device in ("cpu", "xla"):
        with pytest.raises(RuntimeError) as error:
            F.ctc_loss(log_probs().to(device), padded_targets().to(device), inputs, lengths)
        messages.append(str(error.value).splitlines()[0])
    assert messages[0] == messages[1]
