"""torch.compile of functions on `xla`: captured graphs are recorded when they run, and XLA compiles them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla
import torch_xla.core.xla_model as xm
from torch_xla.debug import metrics as met

BACKENDS = ["inductor", "openxla"]  # inductor is the default
on_each_backend = pytest.mark.parametrize("backend", BACKENDS)


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.25), nn.Linear(8, 3))


def train(model: nn.Module, run: Callable[[torch.Tensor], torch.Tensor], steps: int, after_step: Callable[[], Any]):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    x = torch.linspace(-1, 1, 48).view(8, 6).to("xla")
    y = torch.arange(8).remainder(3).to("xla")
    losses = []
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(run(x), y)
        loss.backward()
        optimizer.step()
        after_step()
        losses.append(loss.detach())
    return torch.stack(losses).cpu()


@on_each_backend
def test_training_equals_training_without_it(backend: str, compiles: Callable[[], int]) -> None:
    model = make_model().to("xla")
    other = copy.deepcopy(model)
    expected = train(model, model, 5, torch_xla.sync)
    met.clear_all()
    counts, runs = [], []

    def after_step() -> None:
        torch_xla.sync(wait=True)
        counts.append(compiles())
        runs.append(met.metric_data("ExecuteTime")[0])

    found = train(other, torch.compile(other, backend=backend), 5, after_step)
    assert torch.equal(found, expected)  # dropout's numbers, too
    for parameter, value in zip(other.state_dict().values(), model.state_dict().values(), strict=True):
        assert torch.equal(parameter.cpu(), value.cpu())
    # A compiled forward, its backward and the optimizer are one program.
    assert runs == [1, 2, 3, 4, 5]
    assert counts[1:] == [counts[1]] * 4
    assert met.executed_fallback_ops() == []


@on_each_backend
def test_writes_and_views_of_inputs(backend: str) -> None:
    def update(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x[0].add_(y)
        y.mul_(2)
        return x[1:], x.t()

    values = torch.arange(12.0).view(3, 4), torch.ones(4)
    expected_inputs = [x.clone() for x in values]
    inputs = [x.to("xla") for x in values]
    expected = update(*expected_inputs)
    found = torch.compile(update, backend=backend)(*inputs)
    for x, y in zip([*inputs, *found], [*expected_inputs, *expected], strict=True):
        assert torch.equal(x.cpu(), y)
        assert x.stride() == y.stride()
    found[0].zero_()
    assert inputs[0][1:].sum().item() == 0


@on_each_backend
def test_a_number_that_varies_compiles_a_few_programs(backend: str, compiles: Callable[[], int]) -> None:
    compiled = torch.compile(lambda x, scale: x * scale + 1, backend=backend)
    x = torch.arange(3.0).to("xla")
    results, counts = [], []
    for i in range(8):
        results.append(compiled(x, i + 0.5))
        counts.append(compiles())
    assert [result[2].item() for result in results] == [2 * (i + 0.5) + 1 for i in range(8)]
    assert counts[2:] == [counts[2]] * 6


@on_each_backend
def test_sizes_that_vary(backend: str) -> None:
    compiled = torch.compile(lambda x: (x.softmax(-1) * x.shape[0]).sum(0), backend=backend, dynamic=True)
    for rows in (2, 5, 3):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x.to("xla")).cpu(), (x.softmax(-1) * rows).sum(0))


def test_a_function_without_tensor_arguments() -> None:
    compiled = torch.compile(lambda: torch.arange(5, device="xla").square().sum(), fullgraph=True)
    assert compiled().item() == 30
    assert compiled().device == xm.xla_device()


def test_autocast_and_gradients_of_gradients() -> None:
    @torch.compile
    def product(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("xla", dtype=torch.bfloat16):
            return x @ x

    assert product(torch.ones(2, 2, device="xla")).dtype == torch.bfloat16
    x = torch.tensor(3.0, device="xla", requires_grad=True)
    (first,) = torch.autograd.grad(torch.compile(lambda x: x**3)(x), x, create_graph=True)
    first.backward()
    assert (first.item(), x.grad.item()) == (27, 18)


def test_an_optimizer() -> None:
    def steps(compile_step: bool) -> torch.Tensor:
        parameter = torch.ones(3, device="xla", requires_grad=True)
        optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
        step = torch.compile(optimizer.step) if compile_step else optimizer.step
        for _ in range(4):
            optimizer.zero_grad()
            parameter.square().sum().backward()
            step()
        return parameter.detach().cpu()

    assert torch.equal(steps(True), steps(False))


def test_other_devices_keep_their_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import compile_fx

    called = []

    def stand_in(model: torch.fx.GraphModule, *_: Any, **__: Any) -> torch.fx.GraphModule:
        called.append(model)
        return model

    monkeypatch.setattr(compile_fx, "compile_fx", stand_in)
    compiled = torch.compile(lambda x: x + 1)
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert len(called) == 1
    assert compiled(torch.ones(2, device="xla")).tolist() == [2, 2]
    assert len(called) == 1
