"""Fused optimizers' steps of large parameters, which programs leave to PyTorch's kernels: updates in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import torch_xla
from torch_xla import _XLAC

pytestmark = pytest.mark.skipif(not _XLAC.host_kernels_on(), reason="the plugin takes no host calls")

# Together enough for a call; some are smaller than a share's parts, one has no elements.
SHAPES = [(1024, 512), (3,), (), (0, 2), (700, 3), (1031,)]

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "Adam": (torch.optim.Adam, {"lr": 0.1}),
    "Adam, decay": (torch.optim.Adam, {"lr": 0.1, "weight_decay": 0.1, "betas": (0.8, 0.95), "eps": 1e-3}),
    "Adam, amsgrad": (torch.optim.Adam, {"lr": 0.1, "amsgrad": True, "maximize": True}),
    "Adam, lr is a tensor": (torch.optim.Adam, {"lr": torch.tensor(0.1)}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.1}),
    "AdamW, amsgrad": (torch.optim.AdamW, {"lr": 0.1, "amsgrad": True, "weight_decay": 0.2}),
    "SGD": (torch.optim.SGD, {"lr": 0.1, "fused": True}),
    "SGD, momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "fused": True}),
    "SGD, nesterov": (
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True, "fused": True},
    ),
}
on_each_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


def waves(shape: tuple[int, ...], dtype: torch.dtype, phase: float) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float64) * 0.37 + phase).sin().view(shape).to(dtype)


class Training:
    """Parameters whose gradients are given."""

    def __init__(self, device: str, name: str, dtype: torch.dtype = torch.float32) -> None:
        kind, options = OPTIMIZERS[name]
        self.dtype = dtype
        self.parameters = [waves(shape, dtype, 1.0).to(device).requires_grad_() for shape in SHAPES]
        self.optimizer = kind(self.parameters, **({"fused": True} | options))

    def step(self, number: int) -> None:
        for i, parameter in enumerate(self.parameters):
            parameter.grad = waves(SHAPES[i], self.dtype, number * 0.7 + i).to(parameter.device)
        self.optimizer.step()

    def values(self) -> list[torch.Tensor]:
        states = [self.optimizer.state[p] for p in self.parameters]
        kept = [x for state in states for x in state.values() if isinstance(x, torch.Tensor)]
        return [x.detach().cpu() for x in [*self.parameters, *(p.grad for p in self.parameters), *kept]]


def assert_equal(actual: Training, expected: Training) -> None:
    for x, y in zip(actual.values(), expected.values(), strict=True):
        torch.testing.assert_close(x, y, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@on_each_optimizer
def test_equals_cpu(name: str, dtype: torch.dtype) -> None:
    pair = [Training(device, name, dtype) for device in ("xla", "cpu")]
    for number in range(3):
        for training in pair:
            training.step(number)
        torch_xla.sync()
    assert_equal(*pair)


@on_each_optimizer
def test_several_steps_in_one_program(name: str) -> None:
    pair = [Training(device, name) for device in ("xla", "cpu")]
    for training in pair:
        for number in range(3):
            training.step(number)
    assert_equal(*pair)


@on_each_optimizer
def test_is_one_call_that_updates_in_place(name: str) -> None:
    training = Training("xla", name)
    for number in range(2):
        torch_xla.sync()
        training.step(number)
    text = _XLAC._get_xla_tensors_hlo([training.parameters[0]])
    kind = type(training.optimizer).__name__.lower()
    assert text.count(f"aten::_fused_{kind}_ ") == 1
    # A parameter, and its moments; of six.
    updated = {"SGD": 1, "SGD, momentum": 2, "SGD, nesterov": 2}.get(name, 4 if "amsgrad" in name else 3)
    assert text.count("output_operand_alias<") == 6 * updated


def test_what_was_read_before_keeps_its_value() -> None:
    pair = [Training(device, "AdamW") for device in ("xla", "cpu")]
    kept = []
    for training in pair:
        training.step(0)
        torch_xla.sync()
        weight = training.parameters[0]
        before = [weight.detach().clone(), weight.detach()[5:9].t() * 2, weight.detach().sum()]
        state = training.optimizer.state[weight]["exp_avg"].clone()
        training.step(1)
        kept.append([*before, state, weight.detach() + before[0]])
    for x, y in zip(*kept, strict=True):
        torch.testing.assert_close(x.cpu(), y, rtol=2e-6, atol=2e-4)
    assert_equal(*pair)


def test_parameters_that_begin_as_one_value() -> None:
    """XLA merges equal computations: what is updated in place must not be one memory."""
    outcomes = []
    for device in ("xla", "cpu"):
        one = torch.ones(1024, 512, device=device)
        parameters = [(one * 2).requires_grad_(), (one * 2).requires_grad_()]
        optimizer = torch.optim.Adam(parameters, lr=0.1, fused=True)
        for i, parameter in enumerate(parameters):
            parameter.grad = one * (i - 0.5)
        optimizer.step()
        outcomes.append([x.detach().cpu() for x in parameters])
    for x, y in zip(*outcomes, strict=True):
        torch.testing.assert_close(x, y)


def test_few_elements_are_left_to_xla() -> None:
    parameter = torch.ones(64, 64, device="xla", requires_grad=True)
    optimizer = torch.optim.Adam([parameter], lr=0.1)
    parameter.grad = torch.ones(64, 64, device="xla")
    optimizer.step()
    assert "_fused_adam_" not in _XLAC._get_xla_tensors_hlo([parameter])
