"""Every optimizer that PyTorch's own test suite describes (OptimizerInfo) takes the same steps on xla and the CPU."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing._internal.common_optimizers import OptimizerInfo, OptimizerInput, optim_db

import torch_xla
import torch_xla.debug.metrics as met

STEPS = 3
# SparseAdam makes its sparse updates by Tensor.new, which PyTorch implements for its own sparse devices only.
OPTIMIZERS = [info for info in optim_db if not info.only_supports_sparse_grads]
# Adam's first steps divide a gradient's rounding by the square root of its square.
TOLERANCE = {"rtol": 2e-5, "atol": 5e-6}
WIDER = {
    # Orthogonalizes gradients in bfloat16, whose roundings the iteration multiplies. Measured: 6.7e-4.
    "Muon": {"rtol": 1e-3, "atol": 1e-3},
    # Divides by differences of nearly equal gradients. Measured: 2.4e-4.
    "LBFGS": {"rtol": 5e-4, "atol": 5e-4},
}


@pytest.fixture(scope="module", autouse=True)
def quick_compilation() -> Iterator[None]:
    """The same programs, without the plugin's slow optimizations of machine code."""
    torch_xla.set_custom_compile_options(
        {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    )
    yield
    torch_xla.set_custom_compile_options({})


def new_parameters(device: str) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(4, 3), (3, 5), (2, 2)]  # Muon takes matrices only
    return [nn.Parameter(torch.randn(shape, generator=generator).to(device)) for shape in shapes]


def gradients(step: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(100 + step)
    return [torch.randn(shape, generator=generator) for shape in ((4, 3), (3, 5), (2, 2))]


class Trained:
    """Parameters and their optimizer on one device."""

    def __init__(self, info: OptimizerInfo, options: dict[str, Any], device: str) -> None:
        self.device = device
        self.parameters = new_parameters(device)
        self.optimizer = info.optim_cls(self.parameters, **copy.deepcopy(options))

    def loss(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = sum(((p - 0.5) ** 2).sum() for p in self.parameters)
        loss.backward()
        return loss

    def step(self, number: int, needs_closure: bool) -> None:
        if needs_closure:
            self.optimizer.step(self.loss)
            return
        for p, gradient in zip(self.parameters, gradients(number), strict=True):
            p.grad = gradient.to(self.device)
        self.optimizer.step()

    def values(self) -> list[torch.Tensor]:
        states = [self.optimizer.state.get(p, {}) for p in self.parameters]
        numbers = [torch.as_tensor(x).float() for state in states for x in state.values() if is_number(x)]
        return [x.detach().cpu() for x in (*self.parameters, *numbers)]


def is_number(x: Any) -> bool:
    return isinstance(x, (torch.Tensor, int, float))


def assert_equal(actual: Trained, expected: Trained) -> None:
    for a, e in zip(actual.values(), expected.values(), strict=True):
        torch.testing.assert_close(a, e.reshape(a.shape), **WIDER.get(type(actual.optimizer).__name__, TOLERANCE))


def configurations(info: OptimizerInfo, form: str) -> list[OptimizerInput]:
    """PyTorch lists the capturable ones for CUDA."""
    return info.optim_inputs_func("cuda" if form == "capturable" else "cpu")


def options_of(sample: OptimizerInput, form: str, info: OptimizerInfo) -> dict[str, Any]:
    form_options = {name: name == form for name in info.supported_impls}
    return {**form_options, **sample.kwargs}


def reference_options(sample: OptimizerInput, info: OptimizerInfo) -> dict[str, Any]:
    """The plain form: PyTorch itself tests the others against it."""
    options = {**options_of(sample, "plain", info)}
    options.pop("capturable", None)
    return options


def forms() -> list[Any]:
    for info in OPTIMIZERS:
        # The differentiable form steps on parameters that are no leaves: it has a test of its own.
        names = ["plain", *(name for name in info.supported_impls if name != "differentiable")]
        if info.has_capturable_arg:
            names.append("capturable")
        yield from (pytest.param(info, form, id=f"{info.name}-{form}") for form in names)


@pytest.mark.parametrize(("info", "form"), list(forms()))
def test_equals_cpu(info: OptimizerInfo, form: str) -> None:
    met.clear_all()
    pairs = [
        (Trained(info, options_of(sample, form, info), "xla"), Trained(info, reference_options(sample, info), "cpu"))
        for sample in configurations(info, form)
    ]
    for number, (actual, expected) in itertools.product(range(STEPS), pairs):
        for trained in (actual, expected):
            trained.step(number, info.step_requires_closure)
        if actual is pairs[-1][0]:
            torch_xla.sync()
    for actual, expected in pairs:
        assert_equal(actual, expected)
    assert met.executed_fallback_ops() == []


@pytest.mark.parametrize("info", OPTIMIZERS, ids=lambda info: info.name)
@pytest.mark.parametrize("direction", [("cpu", "xla"), ("xla", "cpu")], ids="-to-".join)
def test_state_dict_moves(info: OptimizerInfo, direction: tuple[str, str]) -> None:
    options = {} if info.step_requires_closure else info.optim_inputs_func("cpu")[-1].kwargs
    first, second = (Trained(info, options, device) for device in direction)
    for number in range(2):
        first.step(number, info.step_requires_closure)
    second.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
    with torch.no_grad():
        for mine, theirs in zip(second.parameters, first.parameters, strict=True):
            mine.copy_(theirs)
    for trained in (first, second):
        trained.step(2, info.step_requires_closure)
    assert_equal(second, first)


def scheduled() -> list[Any]:
    for info in OPTIMIZERS:
        for i, schedulers in enumerate(info.scheduler_inputs):
            yield pytest.param(info, schedulers, id=f"{info.name}-{i}")


@pytest.mark.parametrize(("info", "schedulers"), list(scheduled()))
def test_schedulers_do_not_recompile(
    info: OptimizerInfo, schedulers: list[Callable[[torch.optim.Optimizer], Any]], compiles: Callable[[], int]
) -> None:
    rates, counts = {}, []
    for device in ("xla", "cpu"):
        trained = Trained(info, {"lr": 0.1}, device)
        active = [make(trained.optimizer) for make in schedulers]
        rates[device] = []
        for number in range(5):
            trained.step(number % 2, info.step_requires_closure)
            for scheduler in active:
                if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
                    scheduler.step(1.0)
                else:
                    scheduler.step()
            rates[device].append(trained.optimizer.param_groups[0]["lr"])
            if device == "xla":
                counts.append(compiles())
    assert rates["xla"] == rates["cpu"]
    if not info.step_requires_closure:  # a line search decides by values how many evaluations a step has
        assert counts[-1] == counts[1]


@pytest.mark.parametrize(
    "info", [info for info in OPTIMIZERS if "differentiable" in info.supported_impls], ids=lambda info: info.name
)
def test_differentiates_through_a_step(info: OptimizerInfo) -> None:
    results = []
    for device in ("xla", "cpu"):
        leaves = new_parameters(device)
        parameters = [leaf.clone() for leaf in leaves]
        optimizer = info.optim_cls(parameters, lr=0.01, differentiable=True)
        slopes = [gradient.to(device).requires_grad_() for gradient in gradients(0)]
        for p, slope in zip(parameters, slopes, strict=True):
            p.grad = slope
        optimizer.step()
        roots = sum((p**2).sum() for p in parameters)
        results.append(torch.autograd.grad(roots, [*leaves, *slopes], allow_unused=True))
    for a, e in zip(*results, strict=True):
        assert (a is None) == (e is None)
        if e is not None:
            torch.testing.assert_close(a.cpu(), e, **TOLERANCE)


def test_foreach_is_the_default_form() -> None:
    parameters = [nn.Parameter(torch.ones(2, device="xla")) for _ in range(20)]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for p in parameters:
        p.grad = torch.ones(2).to("xla")
    torch_xla.sync()
    optimizer.step()
    assert torch_xla._XLAC.pending_nodes(0) < 20
    assert torch.equal(parameters[7].detach().cpu(), torch.full((2,), 1.0) - 0.1)


def test_clipped_gradients_of_a_model() -> None:
    results = []
    for device in ("xla", "cpu"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
        x = torch.randn(8, 5).to(device)
        model.to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(6):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        results.append([p.detach().cpu() for p in model.parameters()])
    for a, e in zip(*results, strict=True):
        torch.testing.assert_close(a, e, **TOLERANCE)
