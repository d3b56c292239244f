"""What a first training step begins with is computed before it, so that all steps run one program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla
import torch_xla.debug.metrics as met

STEPS = 5


def make_model() -> nn.Module:
    # No bias before the normalization: its gradient is nothing but rounding, which optimizers make large.
    return nn.Sequential(nn.Linear(6, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 6)).double()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, after_step: Callable[[], Any]) -> list[torch.Tensor]:
    device = next(model.parameters()).device
    x, y = torch.linspace(-1, 1, 48, dtype=torch.float64).view(2, 4, 6).to(device)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        after_step()
    return losses


def train_in_programs(
    model: nn.Module, optimizer: torch.optim.Optimizer, compiles: Callable[[], int]
) -> tuple[list[torch.Tensor], list[int]]:
    """The losses, and the number of programs after each step."""
    counts: list[int] = []
    return train(model, optimizer, lambda: counts.append(compiles())), counts


OPTIMIZERS = {
    "Adadelta": {},
    "Adagrad": {},
    "Adam": {},
    "Adam-amsgrad": {"amsgrad": True},
    "Adam-foreach": {"foreach": True},
    "Adam-single": {"foreach": False, "fused": False},
    "AdamW": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Rprop": {},
    "SGD": {},
}


@pytest.mark.parametrize("syncs", [False, True], ids=["read", "read_and_sync"])
@pytest.mark.parametrize("name", ["Adam", "RMSprop"])
def test_a_loss_that_is_read_before_the_step(name: str, syncs: bool) -> None:
    """Then an optimizer's first step is recorded with the second forward, or alone."""
    model = make_model().to("xla")
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    x = torch.linspace(-1, 1, 24, dtype=torch.float64).view(4, 6).to("xla")
    torch_xla.sync()
    counts = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        assert loss.item() > 0
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if syncs:
            torch_xla.sync()
        counts.append(len(torch_xla.debug.executables()))
    assert counts[1:] == [counts[1]] * (STEPS - 1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_step_of_an_optimizer_is_one_program(name: str, compiles: Callable[[], int]) -> None:
    torch.manual_seed(0)
    cpu_model = make_model()
    model = make_model()
    model.load_state_dict(cpu_model.state_dict())
    model.to("xla")
    make_optimizer = getattr(torch.optim, name.split("-")[0])
    optimizer = make_optimizer(model.parameters(), lr=0.01, **OPTIMIZERS[name])
    torch_xla.sync()
    losses, counts = train_in_programs(model, optimizer, compiles)
    assert counts == [counts[0]] * STEPS
    cpu_optimizer = make_optimizer(cpu_model.parameters(), lr=0.01, **OPTIMIZERS[name])
    cpu_losses = train(cpu_model, cpu_optimizer, lambda: None)
    torch.testing.assert_close(torch.stack(losses).cpu(), torch.stack(cpu_losses))
    for parameter, expected in zip(model.parameters(), cpu_model.parameters(), strict=True):
        torch.testing.assert_close(parameter.cpu(), expected)
        for key, value in cpu_optimizer.state[expected].items():
            found = optimizer.state[parameter][key]
            torch.testing.assert_close(found.cpu() if isinstance(found, torch.Tensor) else found, value)


@pytest.mark.parametrize("name", ["Adam", "NAdam", "Rprop"])
def test_counters_on_the_device_that_are_updated_one_by_one(name: str, compiles: Callable[[], int]) -> None:
    model = make_model().to("xla")
    optimizer = getattr(torch.optim, name)(model.parameters(), foreach=False, capturable=True)
    torch_xla.sync()
    _, counts = train_in_programs(model, optimizer, compiles)
    assert counts == [counts[0]] * STEPS


def test_a_model_that_was_initialised_on_the_device(compiles: Callable[[], int]) -> None:
    torch.manual_seed(0)
    with torch.device("xla"):
        model = make_model()
        model[0].weight.data[2].fill_(0.25)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses, counts = train_in_programs(model, optimizer, compiles)
    assert counts == [counts[0]] * STEPS
    torch.manual_seed(0)
    with torch.device("xla"):
        again = make_model()
        again[0].weight.data[2].fill_(0.25)
    assert torch.equal(again[0].weight[2].cpu(), torch.full((6,), 0.25))
    cpu = make_model()
    cpu.load_state_dict(again.state_dict())
    expected = train(cpu, torch.optim.Adam(cpu.parameters(), lr=0.01), lambda: None)
    torch.testing.assert_close(torch.stack(losses).cpu(), torch.stack(expected))


def test_a_loop_without_marks() -> None:
    torch.manual_seed(0)
    model = make_model().to("xla")
    optimizer = torch.optim.Adam(model.parameters())
    torch_xla.sync()
    counts = []
    train(model, optimizer, lambda: counts.append(len(torch_xla.debug.executables())))
    # A step is cut when the next one begins.
    assert counts == [counts[0]] + [counts[0] + 1] * (STEPS - 1)


class Averages(torch.optim.Optimizer):
    """Keeps state that begins with values of several kinds."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    like = {"device": parameter.device}
                    state["ones"] = torch.full_like(parameter, -0.0)
                    state["ramp"] = torch.arange(parameter.numel(), dtype=parameter.dtype, **like).view_as(parameter)
                    state["count"] = torch.zeros(3, dtype=torch.int64, **like)
                    state["columns"] = torch.zeros_like(parameter).t()
                    state["half"] = torch.zeros(parameter.shape, dtype=torch.bfloat16, **like)
                    state["kept"] = torch.zeros(2, dtype=parameter.dtype, **like)
                    state["changed"] = state["kept"].clone()
                state["ones"].mul_(0.5).sub_(parameter.grad)
                state["ramp"][0] += 1
                state["count"] += 2
                state["columns"].add_(parameter.grad.t())
                state["half"].add_(parameter.grad)
                state["changed"].add_(parameter.grad.sum())
                parameter.sub_(state["ones"] * 0.01)


def test_state_of_several_kinds(compiles: Callable[[], int]) -> None:
    torch.manual_seed(0)
    cpu, model = (nn.Sequential(nn.Linear(6, 6, bias=False), nn.Tanh()).double() for _ in range(2))
    model.load_state_dict(cpu.state_dict())
    model.to("xla")
    torch_xla.sync()
    optimizer, cpu_optimizer = Averages(model.parameters()), Averages(cpu.parameters())
    _, counts = train_in_programs(model, optimizer, compiles)
    train(cpu, cpu_optimizer, lambda: None)
    assert counts[1:] == [counts[1]] * (STEPS - 1)
    for parameter, expected in zip(model.parameters(), cpu.parameters(), strict=True):
        for key, value in cpu_optimizer.state[expected].items():
            found = optimizer.state[parameter][key]
            assert found.stride() == value.stride()
            torch.testing.assert_close(found.cpu(), value)


@pytest.mark.parametrize(("size", "programs"), [(4, [1] * 8), (1 << 19, [1] * 3 + [2] * 5)], ids=["small", "large"])
def test_state_that_a_loop_makes_in_each_round(size: int, programs: list[int], compiles: Callable[[], int]) -> None:
    """Where much would be copied each time, the round itself is compiled when it has come a few times."""
    weight = torch.ones(size, device="xla", requires_grad=True)
    torch_xla.sync()
    before = compiles()
    counts, sums = [], []
    for i in range(8):
        total = torch.zeros(size, device="xla")
        loss = (weight * (i + 1.0)).sum()
        loss.backward()
        total += weight.grad
        with torch.no_grad():
            weight -= 0.5 * weight.grad
        weight.grad = None
        torch_xla.sync()
        counts.append(compiles() - before)
        sums.append(total)
    assert counts == programs
    assert [total[0].item() for total in sums] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert weight[0].item() == 1 - 0.5 * 36


def test_other_graphs_stay_whole() -> None:
    """Without a step that updates what was there, all that is pending is one program."""
    x = torch.ones(4).to("xla")
    torch_xla.sync(wait=True)
    before = met.metric_data("ExecuteTime")[0]
    total = torch.zeros(4, device="xla")
    total += x
    total[1] = 5
    torch_xla.sync(wait=True)
    assert met.metric_data("ExecuteTime")[0] == before + 1
    assert total.tolist() == [1, 5, 1, 1]
