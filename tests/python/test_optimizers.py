"""Every optimizer that PyTorch's own test suite describes (OptimizerInfo) takes the same steps on xla and the CPU."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from operator_comparison import in_words, outcome
from torch import nn
from torch.optim import lr_scheduler, swa_utils
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, OptimizerInfo, OptimizerInput, optim_db

import torch_xla
import torch_xla.debug.metrics as met

pytestmark = pytest.mark.usefixtures("quick_compilation")

STEPS = 3
DENSE = [info for info in optim_db if not info.only_supports_sparse_grads]
# Adam's first steps divide a gradient's rounding by the square root of its square.
TOLERANCES = {
    torch.float64: {"rtol": 1e-7, "atol": 1e-7},
    torch.float32: {"rtol": 2e-5, "atol": 5e-6},
    torch.complex64: {"rtol": 2e-5, "atol": 5e-6},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-5},
    torch.float16: {"rtol": 1e-3, "atol": 1e-5},
}
WIDER = {
    # Orthogonalizes gradients in bfloat16, whose roundings the iteration multiplies. Measured: 6.7e-4.
    "Muon": {"rtol": 1e-3, "atol": 1e-3},
    # Divides by differences of nearly equal gradients. Measured: 2.4e-4.
    "LBFGS": {"rtol": 5e-4, "atol": 5e-4},
    # The capturable form computes the rectification in float32, by differences. Measured: 9.3e-6.
    "RAdam": {"rtol": 1e-4, "atol": 1e-5},
}


def name_of(info: OptimizerInfo) -> str:
    return info.name


def random(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    wide = torch.complex64 if dtype.is_complex else torch.float64
    return torch.randn(shape, generator=generator, dtype=wide).to(dtype)


# What is optimized: (shape, dtype).
Kinds = list[tuple[tuple[int, ...], torch.dtype]]
MATRICES: Kinds = [(shape, torch.float32) for shape in ((4, 3), (3, 5), (2, 2))]
# Also a vector, a number, nothing, and one that will be strided.
SHAPES: Kinds = [(shape, torch.float32) for shape in ((4, 3), (3,), (), (0, 2), (2, 3, 2))]
MIXED: Kinds = [((2, 3), dtype) for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16)]
COMPLEX: Kinds = [((2, 3), torch.complex64), ((3,), torch.complex64), ((2,), torch.float32)]


def kinds_of(info: OptimizerInfo) -> Kinds:
    if info.name == "Muon":  # orthogonalizes matrices
        return MATRICES
    left_out = {
        "Adafactor": [(0, 2)],  # divides by the number of elements
        "LBFGS": [(2, 3, 2)],  # views gradients as vectors, which no strided ones are
    }
    kinds = [kind for kind in SHAPES if kind[0] not in left_out.get(info.name, ())]
    # It stops where a gradient or a change is small: in float32 the last rounding decides when.
    return [(shape, torch.float64) for shape, _ in kinds] if info.step_requires_closure else kinds


class Trained:
    """Parameters and their optimizer on one device; the last parameters are a group of their own."""

    def __init__(self, info: OptimizerInfo, options: dict[str, Any], device: str, kinds: Kinds | None = None) -> None:
        self.device, self.info = device, info
        self.kinds = kinds or kinds_of(info)
        values = [random(shape, dtype, i) for i, (shape, dtype) in enumerate(self.kinds)]
        self.parameters = [nn.Parameter(self.strided(x).to(device)) for x in values]
        options = copy.deepcopy(options)
        groups: list[Any] = self.parameters
        if info.supports_param_groups:
            own = {"weight_decay": 0.05} if "weight_decay" in inspect.signature(info.optim_cls).parameters else {}
            groups = [{"params": self.parameters[:-1]}, {"params": self.parameters[-1:], **own}]
        self.optimizer = info.optim_cls(groups, **options)

    @staticmethod
    def strided(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(0, 2).contiguous().transpose(0, 2) if x.dim() == 3 else x

    def loss(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = sum(((p - 0.5).abs() ** 2).sum() for p in self.parameters)
        loss.backward()
        return loss

    def step(self, number: int) -> None:
        """The second step leaves one parameter out."""
        if self.info.step_requires_closure:
            self.optimizer.step(self.loss)
            return
        for i, (p, (shape, dtype)) in enumerate(zip(self.parameters, self.kinds, strict=True)):
            skipped = number == 1 and i == 1
            # Stored as the parameter is, which autograd sees to and the CPU's fused kernels take for granted.
            p.grad = None if skipped else self.strided(random(shape, dtype, 100 * (number + 1) + i)).to(self.device)
        self.optimizer.step()

    def states(self) -> list[dict[str, Any]]:
        return [self.optimizer.state.get(p, {}) for p in self.parameters]


def assert_close(actual: Any, expected: Any, info: OptimizerInfo, what: str) -> None:
    actual, expected = (x.detach().cpu() if isinstance(x, torch.Tensor) else x for x in (actual, expected))
    if not isinstance(expected, torch.Tensor):
        assert type(actual) is type(expected), what
        torch.testing.assert_close(actual, expected, rtol=2e-5, atol=5e-6)
        return
    tolerance = TOLERANCES[expected.dtype]
    if expected.dtype == torch.float32:
        tolerance = WIDER.get(info.name, tolerance)
    torch.testing.assert_close(actual, expected, **tolerance, equal_nan=True, msg=lambda text: f"{what}: {text}")


def numbers_of(state: dict[str, Any]) -> dict[str, Any]:
    return {name: x for name, x in state.items() if isinstance(x, (torch.Tensor, int, float))}


def assert_equal(actual: Trained, expected: Trained, where: str = "") -> None:
    """Parameters and states: the same names, types and values."""
    info = actual.info
    for i, (a, e) in enumerate(zip(actual.parameters, expected.parameters, strict=True)):
        assert (a.dtype, a.stride()) == (e.dtype, e.stride())
        assert_close(a, e, info, f"{where} parameter {i}")
    for i, (a, e) in enumerate(zip(actual.states(), expected.states(), strict=True)):
        assert a.keys() == e.keys()
        a, e = numbers_of(a), numbers_of(e)
        for name in e:
            assert_close(a[name], e[name], info, f"{where} {name} of {i}")


def on_host(state: dict[str, Any]) -> set[str]:
    return {name for name, x in state.items() if isinstance(x, torch.Tensor) and x.device.type == "cpu"}


def configurations(info: OptimizerInfo, form: str) -> list[OptimizerInput]:
    """PyTorch lists the capturable ones for CUDA."""
    return info.optim_inputs_func("cuda" if form == "capturable" else "cpu")


def options_of(kwargs: dict[str, Any], form: str, info: OptimizerInfo) -> dict[str, Any]:
    options = {**{name: name == form for name in info.supported_impls}, **kwargs}
    return {**options, "capturable": True} if form == "capturable" else options


def reference_options(kwargs: dict[str, Any], form: str, info: OptimizerInfo) -> dict[str, Any]:
    """The same form; the plain one where the CPU has no other."""
    options = options_of(kwargs, "plain" if form == "capturable" else form, info)
    options.pop("capturable", None)
    return options


def forms_of(info: OptimizerInfo) -> list[str]:
    # The differentiable form steps on parameters that are no leaves: it has a test of its own.
    names = ["plain", *(name for name in info.supported_impls if name != "differentiable")]
    return [*names, "capturable"] if info.has_capturable_arg else names


def forms() -> Iterator[Any]:
    for info in DENSE:
        yield from (pytest.param(info, form, id=f"{info.name}-{form}") for form in forms_of(info))


def pairs_of(info: OptimizerInfo, form: str, kwargs: dict[str, Any], kinds: Kinds) -> tuple[Trained, Trained]:
    return (
        Trained(info, options_of(kwargs, form, info), "xla", kinds),
        Trained(info, reference_options(kwargs, form, info), "cpu", kinds),
    )


@pytest.mark.parametrize(("info", "form"), list(forms()))
def test_equals_cpu(info: OptimizerInfo, form: str) -> None:
    """Every configuration on tensors of every kind."""
    met.clear_all()
    cases = [(sample.kwargs, sample.desc, kinds_of(info)) for sample in configurations(info, form)]
    if info.name != "Muon" and not info.step_requires_closure:
        cases.append(({}, "mixed dtypes", MIXED))
        if info.supports_complex and form != "fused":
            cases.append(({}, "complex", COMPLEX))
    pairs = [(pairs_of(info, form, kwargs, kinds), text) for kwargs, text, kinds in cases]
    for number in range(STEPS):
        for pair, _ in pairs:
            for trained in pair:
                trained.step(number)
        torch_xla.sync()
    for pair, text in pairs:
        assert_equal(*pair, text)
        for state in pair[0].states():
            steps = {"step"} & numbers_of(state).keys()
            # Not fused and not capturable, a count of steps stays on the host, as on every accelerator.
            assert info.step_requires_closure or on_host(state) <= (
                {"step", "mu_product", "eta", "mu"} if form in ("plain", "foreach") else set()
            )
            assert form not in ("fused", "capturable") or not steps or state["step"].device.type == "xla"
    assert met.executed_fallback_ops() == []


@pytest.mark.parametrize("form", ["plain", "foreach", "fused", "capturable"])
@pytest.mark.parametrize("info", [info for info in DENSE if info.name in ("Adam", "AdamW")], ids=name_of)
def test_amsgrad_keeps_the_largest_second_moment(info: OptimizerInfo, form: str) -> None:
    """Which differs from the last one after gradients that shrink, with an average over few steps."""
    pair = pairs_of(info, form, {"amsgrad": True, "betas": (0.5, 0.5), "lr": 0.1}, MATRICES)
    for scale in (1.0, 0.1):
        for trained in pair:
            for i, (p, (shape, dtype)) in enumerate(zip(trained.parameters, MATRICES, strict=True)):
                p.grad = (scale * random(shape, dtype, 100 + i)).to(trained.device)
            trained.optimizer.step()
    assert_equal(*pair)


@pytest.mark.parametrize("info", DENSE, ids=name_of)
@pytest.mark.parametrize("direction", [("cpu", "xla"), ("xla", "cpu"), ("xla", "xla")], ids="-to-".join)
def test_state_dict_moves(info: OptimizerInfo, direction: tuple[str, str]) -> None:
    """Through a file, to parameters elsewhere, with and without a tensor for the count of steps."""
    options = {} if info.step_requires_closure else info.optim_inputs_func("cpu")[-1].kwargs
    first, second, third = (Trained(info, options, device) for device in (*direction, direction[1]))
    for number in range(2):
        first.step(number)
    file = io.BytesIO()
    torch.save(first.optimizer.state_dict(), file)
    file.seek(0)
    second.optimizer.load_state_dict(torch.load(file, weights_only=True))
    file.seek(0)
    older = torch.load(file, map_location="cpu", weights_only=True)
    for group in older["param_groups"]:
        for flag in info.not_og_supported_flags:
            if flag != "maximize":
                group.pop(flag, None)
    for state in older["state"].values():
        if isinstance(state.get("step"), torch.Tensor):
            state["step"] = state["step"].item()
    third.optimizer.load_state_dict(older)
    with torch.no_grad():
        for loaded in (second, third):
            for mine, theirs in zip(loaded.parameters, first.parameters, strict=True):
                mine.copy_(theirs)
    for trained in (first, second, third):
        trained.step(2)
    assert_equal(second, first)
    assert_equal(third, first)
    assert direction[1] == "cpu" or all(on_host(state) <= {"step"} for state in second.states())


# A copy of LBFGS has lost its list of parameters, on any device.
@pytest.mark.parametrize("info", [info for info in DENSE if not info.step_requires_closure], ids=name_of)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies_train_on(info: OptimizerInfo, copied: Callable[[Any], Any]) -> None:
    original = Trained(info, {}, "xla")
    original.step(0)
    twin = copy.copy(original)
    twin.parameters, twin.optimizer = copied((original.parameters, original.optimizer))
    assert repr(twin.optimizer) == repr(original.optimizer)
    assert all(p.device.type == "xla" for p in twin.parameters)
    twin.step(2)
    for a, b in zip(original.parameters, twin.parameters, strict=True):
        assert a.numel() == 0 or not torch.equal(a, b), "the copy has parameters of its own"
    original.step(2)
    assert_equal(twin, original)


# Hyperparameters that change ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("info", [info for info in DENSE if not info.step_requires_closure], ids=name_of)
def test_hyperparameters_change_without_recompiling(info: OptimizerInfo, compiles: Callable[[], int]) -> None:
    """Learning rates as numbers, as tensors on the CPU and on xla, other numbers, in every form."""
    trained, expected, rates = [], [], []
    for form in forms_of(info):
        for make in (lambda: 0.1, lambda: torch.tensor(0.1), lambda: torch.tensor(0.1, device="xla")):
            rate = make()
            options = options_of({"lr": rate}, form, info)
            made = outcome(lambda options=options: info.optim_cls(new_parameters(MATRICES, "xla"), **options))
            if made.error is not None:
                assert "lr as a Tensor is not supported for capturable=False and foreach=True" in str(made.error)
                continue
            # As PyTorch's own tests do: copies would not be the tensors that change.
            mine = Trained(info, options, "xla", MATRICES)
            for group in mine.optimizer.param_groups:
                group["lr"] = rate
            trained.append(mine)
            expected.append(Trained(info, reference_options({"lr": 0.1}, form, info), "cpu", MATRICES))
            rates.append(rate)
    counts = []
    warm = 7 if info.name == "RAdam" else 3  # whose sixth step is the first with rectification
    for number in range(warm + 3):
        rate = 0.1 / (number + 1)
        for pair, mine in zip(zip(trained, expected, strict=True), rates, strict=True):
            for one in pair:
                for group in one.optimizer.param_groups:
                    if one is pair[0] and isinstance(mine, torch.Tensor):
                        mine.fill_(rate)
                    else:
                        group["lr"] = rate
                    change_others(group, number)
                one.step(2)
        counts.append(compiles())
    assert counts[-1] == counts[warm - 1]
    for pair in zip(trained, expected, strict=True):
        assert_equal(*pair)


def new_parameters(kinds: Kinds, device: str) -> list[nn.Parameter]:
    return [nn.Parameter(random(shape, dtype, i).to(device)) for i, (shape, dtype) in enumerate(kinds)]


def change_others(group: dict[str, Any], number: int) -> None:
    """What schedulers and users change while they train."""
    if group.get("weight_decay"):
        group["weight_decay"] = 0.05 + 0.01 * number
    if group.get("momentum"):
        group["momentum"] = 0.9 - 0.01 * number
    if isinstance(group.get("betas"), tuple):
        group["betas"] = (0.9 - 0.01 * number, group["betas"][1])


SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.5, 2),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=2),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch)),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 4),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [1, 3]),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.9),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=8),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 5, 2.0),
    "SWALR": lambda o: swa_utils.SWALR(o, 0.05, anneal_epochs=3),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(o, 0.9), lr_scheduler.ConstantLR(o, 0.5, 2)]
    ),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.5, 2), lr_scheduler.ExponentialLR(o, 0.9)], [3]
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1),
}


def scheduled() -> Iterator[Any]:
    for info in DENSE:
        for i, schedulers in enumerate(info.scheduler_inputs):
            yield pytest.param(info, {}, schedulers, id=f"{info.name}-{i}")
    by_name = {info.name: info for info in DENSE}
    for name, make in SCHEDULERS.items():
        yield pytest.param(by_name["SGD"], {"momentum": 0.9}, [make], id=f"SGD-{name}")
        if name in ("CyclicLR", "OneCycleLR"):  # these also change the first beta
            yield pytest.param(by_name["Adam"], {}, [make], id=f"Adam-{name}")


@pytest.mark.parametrize(("info", "options", "schedulers"), list(scheduled()))
def test_schedulers_do_not_recompile(
    info: OptimizerInfo,
    options: dict[str, Any],
    schedulers: list[Callable[[torch.optim.Optimizer], Any]],
    compiles: Callable[[], int],
) -> None:
    rates, counts, runs = {}, [], []
    for device in ("xla", "cpu"):
        trained = Trained(info, {"lr": 0.1, **options}, device, MATRICES)
        active = [make(trained.optimizer) for make in schedulers]
        rates[device] = []
        for number in range(6):
            trained.step(0 if number % 2 else 2)
            for scheduler in active:
                if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
                    scheduler.step(1.0)
                else:
                    scheduler.step()
            # On xla Adam chooses its fused form itself.
            rates[device].append([dict(group, params=None, fused=None) for group in trained.optimizer.param_groups])
            if device == "xla":
                counts.append(compiles())
        runs.append(trained)
    assert rates["xla"] == rates["cpu"]
    assert_equal(*runs)
    if not info.step_requires_closure:  # a line search decides by values how many evaluations a step has
        assert counts[-1] == counts[1]


# Forms --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("info", [info for info in DENSE if "differentiable" in info.supported_impls], ids=name_of)
def test_differentiates_through_a_step(info: OptimizerInfo) -> None:
    kinds = list(enumerate(MATRICES))
    for sample in info.optim_inputs_func("cpu"):
        results = []
        for device in ("xla", "cpu"):
            leaves = new_parameters(MATRICES, device)
            parameters = [leaf.clone() for leaf in leaves]
            optimizer = info.optim_cls(parameters, **sample.kwargs, differentiable=True)
            slopes = [random(shape, dtype, 100 + i).to(device).requires_grad_() for i, (shape, dtype) in kinds]
            for p, slope in zip(parameters, slopes, strict=True):
                p.grad = slope
            optimizer.step()
            roots = sum((p**2).sum() for p in parameters)
            results.append(torch.autograd.grad(roots, [*leaves, *slopes], allow_unused=True))
        for a, e in zip(*results, strict=True):
            assert (a is None) == (e is None)
            if e is not None:
                assert_close(a, e, info, sample.desc)


@pytest.mark.parametrize("info", [info for info in DENSE if "foreach" in info.supported_impls], ids=name_of)
def test_the_default_form_is_one_of_lists(info: OptimizerInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    name = {"Adam": "_fused_adam", "AdamW": "_fused_adam"}.get(info.name, f"_multi_tensor_{info.name.lower()}")
    monkeypatch.setattr(
        inspect.getmodule(inspect.unwrap(info.optim_cls.step)), name, lambda *args, **kwargs: called.append(name)
    )
    Trained(info, {}, "xla").step(0)
    assert bool(called) == (info.name != "Adafactor")  # which PyTorch leaves plain, to save memory


def test_foreach_records_few_operators() -> None:
    parameters = [nn.Parameter(torch.ones(2, device="xla")) for _ in range(20)]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for p in parameters:
        p.grad = torch.ones(2).to("xla")
    torch_xla.sync()
    optimizer.step()
    assert torch_xla._XLAC.pending_nodes(0) < 20
    assert torch.equal(parameters[7].detach().cpu(), torch.full((2,), 1.0) - 0.1)


@pytest.mark.parametrize("info", DENSE, ids=name_of)
def test_steps_without_effect(info: OptimizerInfo) -> None:
    """No gradients: nothing changes. zero_grad leaves zeros or nothing."""
    trained = Trained(info, {}, "xla")
    before = [p.detach().clone() for p in trained.parameters]
    if not info.step_requires_closure:
        trained.optimizer.step()
        assert all(torch.equal(a, b) for a, b in zip(before, trained.parameters, strict=True))
        assert info.name == "Adagrad" or all(state == {} for state in trained.states())
    trained.loss()
    trained.optimizer.zero_grad(set_to_none=False)
    assert all(p.grad is not None and p.grad.abs().sum().item() == 0 for p in trained.parameters)
    trained.optimizer.zero_grad()
    assert all(p.grad is None for p in trained.parameters)


@pytest.mark.parametrize("info", DENSE, ids=name_of)
def test_hooks(info: OptimizerInfo) -> None:
    """Called around a step, with what the device holds then."""
    trained = Trained(info, {}, "xla", MATRICES)
    seen = []
    hooks = [
        trained.optimizer.register_step_pre_hook(lambda *_: seen.append(trained.parameters[0].detach().clone())),
        trained.optimizer.register_step_post_hook(lambda *_: seen.append(trained.parameters[0].detach().clone())),
    ]
    trained.step(0)
    for hook in hooks:
        hook.remove()
    trained.step(2)
    assert len(seen) == 2
    assert torch.equal(seen[0].cpu(), random(*MATRICES[0], 0)) and not torch.equal(seen[0], seen[1])


# Errors -------------------------------------------------------------------------------------------------------------


def raised(info: OptimizerInfo, case: Any, device: str) -> str:
    """The words of the error or of the warning."""
    params, kwargs = case.optimizer_error_input.params, case.optimizer_error_input.kwargs
    if params is None:
        params = new_parameters(MATRICES[:1], "cpu")

    def there(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and device == "xla":
            y = x.detach().to("xla")
            y.grad = None if x.grad is None else x.grad.to("xla")
            return nn.Parameter(y) if isinstance(x, nn.Parameter) else y.requires_grad_(x.requires_grad)
        return x

    made: dict[int, Any] = {}

    def tree(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return made.setdefault(id(x), there(x))
        if isinstance(x, (list, tuple)):
            return type(x)(tree(item) for item in x)
        if isinstance(x, dict):
            return {name: tree(item) if name == "params" else item for name, item in x.items()}
        return x

    def run() -> None:
        optimizer = info.optim_cls(tree(params), **kwargs)
        if case.error_on == OptimizerErrorEnum.STEP_ERROR:
            optimizer.step()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = outcome(run).error
    return in_words(error) if error else "; ".join(f"{x.category.__name__}: {x.message}" for x in caught)


@pytest.mark.parametrize("info", optim_db, ids=name_of)
def test_errors_equal_cpu(info: OptimizerInfo) -> None:
    cases = info.optim_error_inputs_func("cpu", torch.float32)
    assert cases
    for case in cases:
        mine, theirs = (raised(info, case, device) for device in ("xla", "cpu"))
        assert case.error_type.__name__ in theirs
        assert mine.replace("torch.xla.", "torch.") == theirs, case.optimizer_error_input.desc


@pytest.mark.parametrize("options", [{"foreach": True, "fused": True}, {"fused": True, "differentiable": True}])
@pytest.mark.parametrize("info", [info for info in DENSE if "fused" in info.supported_impls], ids=name_of)
def test_forms_that_exclude_each_other(info: OptimizerInfo, options: dict[str, bool]) -> None:
    words = [
        in_words(outcome(lambda d=d: info.optim_cls(new_parameters(MATRICES, d), **options)).error)
        for d in ("xla", "cpu")
    ]
    assert words[0] == words[1] != "no error"


@pytest.mark.parametrize("info", [info for info in DENSE if "fused" in info.supported_impls], ids=name_of)
def test_fused_wants_real_parameters_on_a_device(info: OptimizerInfo) -> None:
    words = []
    for device in ("xla", "cpu"):
        parameters = new_parameters(COMPLEX, device)
        for p in parameters:
            p.grad = torch.ones_like(p)
        error = in_words(outcome(info.optim_cls(parameters, fused=True).step).error)
        words.append(error.removesuffix(device))
    assert words[0] == words[1] != "no error"
    model = nn.Linear(2, 3, device="meta")
    optimizer = info.optim_cls(model.parameters(), fused=True)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"):
        optimizer.step()
    optimizer.zero_grad()
    model.to_empty(device="xla")
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert model.weight.cpu().shape == (3, 2)


# Sparse gradients ---------------------------------------------------------------------------------------------------

SPARSE = [info for info in optim_db if info.supports_sparse or info.only_supports_sparse_grads]


def sparse_gradient(step: int, device: str) -> torch.Tensor:
    """[4, 3] with indices that occur twice; at step 1 without any."""
    indices = torch.tensor([[[0, 2, 2], [], [3, 0, 3]][step]]).long().view(1, -1)
    values = random((indices.shape[1], 3), torch.float32, 50 + step)
    return torch.sparse_coo_tensor(indices.to(device), values.to(device), (4, 3))


@pytest.mark.parametrize("info", SPARSE, ids=name_of)
def test_sparse_gradients(info: OptimizerInfo) -> None:
    """As those of an embedding: every configuration that takes them, plain and foreach."""
    updates, _ = info.metadata_for_sparse
    options = [{**sample.kwargs, **updates} for sample in info.optim_inputs_func("cpu")]
    options += [{**updates, "maximize": True}]
    if "foreach" in info.supported_impls:
        options += [{**x, "foreach": True} for x in options if not isinstance(x.get("lr"), torch.Tensor)]
    for kwargs in options:
        runs = []
        for device in ("xla", "cpu"):
            parameter = nn.Parameter(random((4, 3), torch.float32, 0).to(device))
            optimizer = info.optim_cls([parameter], **copy.deepcopy(kwargs))
            for step in range(STEPS):
                parameter.grad = sparse_gradient(step, device)
                optimizer.step()
            runs.append([parameter, *numbers_of(optimizer.state[parameter]).values()])
        for a, e in zip(*runs, strict=True):
            assert_close(a, e, info, str(kwargs))


def test_an_embedding_with_sparse_gradients_trains_with_sparse_adam(recwarn: pytest.WarningsRecorder) -> None:
    results = []
    for device in ("xla", "cpu"):
        torch.manual_seed(0)
        embedding = nn.Embedding(7, 3, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(embedding.parameters(), lr=0.1)
        for step in range(STEPS):
            optimizer.zero_grad()
            embedding(torch.tensor([1, step, 5], device=device)).pow(2).sum().backward()
            optimizer.step()
        results.append(embedding.weight.detach().cpu())
    torch.testing.assert_close(*results)
    assert [str(x.message) for x in recwarn] == []


# What stands around an optimizer ------------------------------------------------------------------------------------


def small_model(device: str) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4, bias=False), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3)).to(device)


def batch(device: str, seed: int = 0) -> torch.Tensor:
    return random((8, 5), torch.float32, seed).to(device)


def clip_norm(options: dict[str, Any]) -> Callable[[nn.Module], torch.Tensor]:
    return lambda model: nn.utils.clip_grad_norm_(model.parameters(), **options)


CLIPS: dict[str, Callable[[nn.Module], Any]] = {
    "norm": clip_norm({"max_norm": 0.1}),
    "norm inf": clip_norm({"max_norm": 0.1, "norm_type": float("inf")}),
    "norm 1": clip_norm({"max_norm": 0.1, "norm_type": 1}),
    "norm, plain": clip_norm({"max_norm": 0.1, "foreach": False}),
    "norm, foreach": clip_norm({"max_norm": 0.1, "foreach": True}),
    "norm, finite": clip_norm({"max_norm": 0.1, "error_if_nonfinite": True}),
    "value": lambda model: nn.utils.clip_grad_value_(model.parameters(), 0.05),
    "total norm": lambda model: nn.utils.get_total_norm([p.grad for p in model.parameters()]),
    "by norm": lambda model: nn.utils.clip_grads_with_norm_(
        model.parameters(), 0.1, torch.tensor(2.0, device=model[0].weight.device)
    ),
}


@pytest.mark.parametrize("clip", CLIPS)
def test_clipping(clip: str, no_fallbacks: None) -> None:
    results = []
    for device in ("xla", "cpu"):
        model = small_model(device)
        model(batch(device)).pow(2).mean().backward()
        norm = CLIPS[clip](model)
        results.append([p.grad for p in model.parameters()] + ([] if norm is None else [norm]))
    for a, e in zip(*results, strict=True):
        assert a.device.type == "xla"
        torch.testing.assert_close(a.detach().cpu(), e.detach(), rtol=2e-5, atol=5e-6)


def test_clipping_refuses_what_is_not_finite() -> None:
    words = []
    for device in ("xla", "cpu"):
        parameter = nn.Parameter(torch.ones(2, device=device))
        parameter.grad = torch.tensor([1.0, float("nan")], device=device)
        clip = outcome(lambda p=parameter: nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True))
        words.append(in_words(clip.error))
    assert words[0] == words[1] != "no error"


def test_clipped_gradients_of_a_model() -> None:
    results = []
    for device in ("xla", "cpu"):
        model = small_model(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(6):
            optimizer.zero_grad()
            model(batch(device)).pow(2).mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        results.append([p.detach().cpu() for p in model.parameters()])
    for a, e in zip(*results, strict=True):
        torch.testing.assert_close(a, e, rtol=2e-5, atol=5e-6)


AVERAGES: dict[str, dict[str, Any]] = {
    "equal": {},
    "equal, at once": {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
    "exponential": {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
    "exponential, at once": {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
    "with buffers": {"use_buffers": True},
}


@pytest.mark.parametrize("average", AVERAGES)
def test_averaged_models(average: str, compiles: Callable[[], int]) -> None:
    results, counts = [], []
    for device in ("xla", "cpu"):
        model = small_model(device)
        averaged = swa_utils.AveragedModel(model, **AVERAGES[average])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            model(batch(device, step)).pow(2).mean().backward()
            optimizer.step()
            averaged.update_parameters(model)
            if device == "xla":
                counts.append(compiles())
        swa_utils.update_bn([batch(device, 7), batch(device, 8)], averaged)
        results.append([averaged(batch(device)), *averaged.state_dict().values()])
    assert counts[-1] == counts[2]
    for a, e in zip(*results, strict=True):
        torch.testing.assert_close(a.detach().cpu(), e.detach(), rtol=2e-5, atol=5e-6)


def scaled_forms() -> Iterator[Any]:
    for info in DENSE:
        for form in forms_of(info) if info.name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop") else ():
            yield pytest.param(info, form, id=f"{info.name}-{form}")


@pytest.mark.parametrize(("info", "form"), list(scaled_forms()))
def test_gradient_scaling(info: OptimizerInfo, form: str, compiles: Callable[[], int]) -> None:
    """A step that overflows is left out, the scale follows, and nothing recompiles."""
    runs, scales, counts = [], [], []
    for device in ("xla", "cpu"):
        options = (options_of if device == "xla" else reference_options)({"lr": 0.05}, form, info)
        trained = Trained(info, options, device, MATRICES)
        scaler = torch.amp.GradScaler(device, init_scale=64.0, growth_interval=2)
        scales.append([])
        for step in range(8):
            trained.optimizer.zero_grad()
            loss = sum(((p - 0.5) ** 2).sum() for p in trained.parameters)
            if step == 4:
                loss = loss * float("inf")
            scaler.scale(loss).backward()
            if step % 2:
                scaler.unscale_(trained.optimizer)
                nn.utils.clip_grad_norm_(trained.parameters, 1.0)
            scaler.step(trained.optimizer)
            scaler.update()
            scales[-1].append(scaler.get_scale())
            if device == "xla":
                counts.append(compiles())
        runs.append(trained)
    assert scales[0] == scales[1] and len(set(scales[0])) > 2
    assert_equal(*runs)
    assert counts[-1] == counts[5]


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize("form", ["plain", "foreach", "fused", "capturable"])
def test_the_count_of_steps_has_the_default_dtype(form: str) -> None:
    info = next(info for info in DENSE if info.name == "Adam")
    double = torch.float32 if form == "fused" else torch.float64
    for dtype, expected in ((torch.float64, double), (torch.float16, torch.float32)):
        with default_dtype(dtype):
            trained = Trained(info, options_of({}, form, info), "xla", MATRICES)
            trained.step(0)
            assert {state["step"].dtype for state in trained.states()} == {expected}
