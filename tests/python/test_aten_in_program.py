"""Operators without a lowering: PyTorch's CPU kernel inside the compiled program, without a cut and without a copy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from threads import run_in_threads
from torch.utils import _pytree as pytree

import torch_xla
from torch_xla import _XLAC
from torch_xla.debug import metrics

pytestmark = pytest.mark.skipif(not _XLAC.host_kernels_on(), reason="the plugin takes no host calls")

DEVICE = torch.device("xla")


@pytest.fixture
def without_kernels() -> Any:
    """Switches the kernels off; they are on again after the test."""
    _XLAC.set_host_kernels_wanted(False)
    yield
    _XLAC.set_host_kernels_wanted(True)


def calls(name: str) -> int:
    return metrics.counter_value(f"ATenInProgram::{name}") or 0


def fallbacks() -> dict[str, int | None]:
    return {name: metrics.counter_value(name) for name in metrics.executed_fallback_ops()}


def on(device: torch.device | str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return pytree.tree_map_only(torch.Tensor, lambda x: x.to(device), arguments)


def assert_in_program(name: str, function: Callable[..., Any], *arguments: Any) -> None:
    """The same values, dtypes and strides as on the CPU; `name` was called in the program, and nothing on the host."""
    expected = pytree.tree_leaves(function(*arguments))
    counted, on_host = calls(name), fallbacks()
    actual = pytree.tree_leaves(function(*on(DEVICE, arguments)))
    assert calls(name) > counted
    assert fallbacks() == on_host
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a.device.type == "xla"
        assert a.stride() == e.stride() or e.numel() == 0
        torch.testing.assert_close(a.cpu(), e)


def symmetric(size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    x = torch.randn(size, size, dtype=dtype)
    return x @ x.mH + torch.eye(size, dtype=dtype)


OPERATORS = {
    "eig": ("aten::linalg_eig", torch.linalg.eig, lambda: (torch.diag(torch.arange(1.0, 5.0)),)),
    "complex": ("aten::linalg_eig", torch.linalg.eig, lambda: (torch.diag(torch.arange(1.0, 4.0) + 2j),)),
    "ldl_factor": ("aten::linalg_ldl_factor_ex", torch.linalg.ldl_factor, lambda: (symmetric(4),)),
    "lists": (
        "aten::_histogramdd_bin_edges",
        lambda x: torch.histogramdd(x, [2, 3], range=[-1.0, 1.0, -2.0, 2.0]),
        lambda: (torch.randn(20, 2),),
    ),
    "several results": ("aten::geqrf", torch.geqrf, lambda: (torch.randn(4, 3),)),
    "transposed": ("aten::geqrf", lambda x: torch.geqrf(x.mT), lambda: (torch.randn(3, 4),)),
    "a slice": ("aten::geqrf", lambda x: torch.geqrf(x[1:, ::2]), lambda: (torch.randn(5, 6),)),
    "expanded": ("aten::geqrf", lambda x: torch.geqrf(x.expand(3, 3)), lambda: (torch.randn(3),)),
    "batches": ("aten::ormqr", lambda x, t, y: torch.ormqr(x, t, y), lambda: _reflectors(2)),
    "empty": ("aten::geqrf", torch.geqrf, lambda: (torch.empty(0, 3),)),
    "lengths": (
        "aten::segment_reduce",
        lambda x, lengths: torch.segment_reduce(x, "sum", lengths=lengths),
        lambda: (torch.randn(6), torch.tensor([2, 4])),
    ),
    "integers": ("aten::hash_tensor", torch.hash_tensor, lambda: (torch.arange(7),)),
}  # fmt: skip


def _reflectors(batch: int) -> tuple[torch.Tensor, ...]:
    return *torch.geqrf(torch.randn(batch, 4, 3)), torch.randn(batch, 4, 2)


@pytest.mark.parametrize("case", OPERATORS)
def test_equals_the_cpu(case, seeded):
    name, function, arguments = OPERATORS[case]
    assert_in_program(name, function, *arguments())


def test_nothing_is_cut_and_one_program_runs_all(compiles, seeded):
    x = torch.randn(4, 4)
    before = compiles()
    pending = x.to(DEVICE)
    for _ in range(3):
        factors, scales = torch.geqrf(pending)
        pending = factors * scales
    assert _XLAC.pending_nodes(0) > 3
    text = _XLAC._get_xla_tensors_hlo([pending])
    assert text.count('call = "aten::geqrf t0 | r r"') == 1
    assert text.count('@"torch_pjrt_aten"') == 3
    expected = x
    for _ in range(3):
        factors, scales = torch.geqrf(expected)
        expected = factors * scales
    torch.testing.assert_close(pending.cpu(), expected)
    assert compiles() == before + 1


def test_gradients(seeded):
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        values, vectors = torch.linalg.eigh(x)
        (values.square().sum() + vectors.abs().sum()).backward()
        return x.grad

    x = symmetric(4, torch.float64)
    before = fallbacks()
    torch.testing.assert_close(gradient(x.to(DEVICE)).cpu(), gradient(x))
    assert fallbacks() == before


def test_out(seeded):
    x = torch.randn(4, 3)
    expected = torch.geqrf(x)
    columns = torch.empty(3, 4, device=DEVICE).t()
    out = (columns, torch.empty(0, device=DEVICE))
    before = calls("aten::geqrf")
    torch.geqrf(x.to(DEVICE), out=out)
    assert calls("aten::geqrf") == before + 1
    assert columns.stride() == (1, 4)
    for a, e in zip(out, expected, strict=True):
        torch.testing.assert_close(a.cpu(), e)


def test_none_where_a_tensor_would_be_updated(seeded):
    inputs = [torch.randn(1, 2, 3), torch.rand(2), torch.rand(2)]

    def normalize(device: torch.device | str) -> list[torch.Tensor]:
        outs = tuple(torch.zeros(size, device=device) for size in ((1, 2, 3), (2,), (2,)))
        x, weight, bias = (tensor.to(device) for tensor in inputs)
        torch.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5, out=outs)
        return [out.cpu() for out in outs]

    for actual, expected in zip(normalize(DEVICE), normalize("cpu"), strict=True):
        torch.testing.assert_close(actual, expected)


def test_fused_operators_that_are_no_steps_of_optimizers(seeded):
    x = torch.randn(4, 6)

    def observe(device: torch.device | str) -> list[torch.Tensor]:
        state = [torch.zeros(1, device=device) for _ in range(2)] + [torch.ones(1, device=device)]
        ones = [torch.ones(1, dtype=torch.long, device=device) for _ in range(2)]
        points = torch.zeros(1, dtype=torch.int32, device=device)
        results = torch._fused_moving_avg_obs_fq_helper(x.to(device), *ones, *state, points, 0.5, 0, 255, 0)
        return [tensor.cpu() for tensor in (*results, *state, points)]

    for actual, expected in zip(observe(DEVICE), observe("cpu"), strict=True):
        torch.testing.assert_close(actual, expected)


def test_numbers_do_not_recompile(custom, compiles, seeded):
    x = torch.ones(3, device=DEVICE)
    torch_xla.sync()
    custom.scale_(x, 0.5)
    first = compiles()
    for i in range(4):
        custom.scale_(x, 1.0 + i)
        torch_xla.sync()
    assert compiles() == first
    assert x.tolist() == [12.0] * 3


def test_operators_of_other_libraries(custom, seeded):
    x = torch.randn(3, 4)
    assert_in_program("tp_test::twice", custom.twice, x)
    assert_in_program("tp_test::rows", custom.rows, x)
    view = x.to(DEVICE)
    custom.scale_(view[1], 3.0)
    expected = x.clone()
    expected[1] *= 3
    torch.testing.assert_close(view.cpu(), expected)


@pytest.mark.parametrize("number", [2, 2.5, True, 1 + 2j], ids=str)
@pytest.mark.parametrize("mask", [[True, True], [True, False]], ids=str)
def test_every_kind_of_argument(custom, number, mask, seeded):
    def call(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        dtype = torch.complex128 if isinstance(number, complex) else torch.float64
        mode = "with spaces | and bars" if mask[1] else 'quotes " and ünicode'
        results = custom.everything(x, [y, None, y], number, [1, 2.5], [0.25], [3, 4], mode, dtype, None, mask)
        return [result for result in results if result is not None]

    assert_in_program("tp_test::everything", call, torch.randn(3), torch.randn(2, 3))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.permute(2, 0, 1),
        lambda x: x.transpose(0, 1).contiguous(),
        lambda x: x.contiguous(memory_format=torch.channels_last_3d) if x.dim() == 5 else x.transpose(1, 2) + 1,
        lambda x: x[1:, :, 2],
    ],
    ids=["row-major", "permuted", "copied", "computed", "sliced"],
)
def test_kernels_meet_the_strides_that_eager_has(custom, view):
    x = torch.arange(24.0).view(2, 3, 4)
    assert custom.strides(view(x.to(DEVICE))).tolist() == custom.strides(view(x)).tolist()


ERRORS = {
    "IndexError": IndexError,
    "ValueError": ValueError,
    "TypeError": TypeError,
    "NotImplementedError": NotImplementedError,
    "LinAlgError": torch.linalg.LinAlgError,
    "OutOfMemoryError": torch.OutOfMemoryError,
    "RuntimeError": RuntimeError,
    "runtime_error": RuntimeError,
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_keep_their_class_and_words(custom, kind):
    result = custom.fail(torch.ones(3, device=DEVICE), kind)
    with pytest.raises(ERRORS[kind]) as info:
        result.cpu()
    assert type(info.value) is ERRORS[kind]
    assert str(info.value).startswith(f"no luck with {kind}\nsecond line")
    del result
    assert (torch.ones(2, device=DEVICE) + 1).tolist() == [2, 2]
    torch_xla.sync(wait=True)


@pytest.mark.parametrize(("kind", "error"), [("bad_alloc", torch.OutOfMemoryError), ("int", RuntimeError)])
def test_errors_that_are_not_pytorchs(custom, kind, error):
    with pytest.raises(error):
        custom.fail(torch.ones(3, device=DEVICE), kind).cpu()
    assert custom.fail(torch.ones(3, device=DEVICE), "nothing").tolist() == [1, 1, 1]


SINGULAR = {
    "inv": lambda d: torch.linalg.inv(torch.zeros(3, 3, device=d)),
    "cholesky": lambda d: torch.linalg.cholesky(-torch.eye(3, device=d)),
    "solve": lambda d: torch.linalg.solve(torch.zeros(2, 2, device=d), torch.ones(2, device=d)),
    "eig": lambda d: torch.linalg.eig(torch.full((3, 3), float("nan"), device=d))[0],
    "assert": lambda d: torch._assert_async(torch.zeros(1, device=d)),
}  # fmt: skip


@pytest.mark.parametrize("read", [lambda x: torch_xla.sync(wait=True), lambda x: x.cpu()], ids=["sync", "read"])
@pytest.mark.parametrize("case", SINGULAR)
def test_what_values_make_an_error_is_one_at_the_wait(case, read):
    with pytest.raises(RuntimeError) as expected:
        SINGULAR[case]("cpu")
    pending = SINGULAR[case](DEVICE)
    with pytest.raises(type(expected.value)) as error:
        read(torch.ones(1, device=DEVICE) if pending is None else pending)
    assert str(error.value).startswith(str(expected.value).splitlines()[0])
    del pending, error  # its traceback holds on to the tensor
    torch_xla.sync(wait=True)
    assert (torch.ones(2, device=DEVICE) + 1).tolist() == [2, 2]


def test_a_check_that_holds_goes_unnoticed(compiles, seeded):
    x = symmetric(3)
    before = compiles()
    inverse = torch.linalg.inv(x.to(DEVICE))
    assert _XLAC.pending_nodes(0) > 0
    torch.testing.assert_close(inverse.cpu(), torch.linalg.inv(x))
    assert compiles() == before + 1
    torch_xla.sync(wait=True)
    assert _XLAC.pending_nodes(0) == 0


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("aten::nonzero", lambda x: torch.nonzero(x)),
        ("aten::masked_select", lambda x: x.masked_select(x > 0)),
        ("aten::_unique2", lambda x: x.unique()),
        ("aten::linalg_lstsq", lambda x: torch.linalg.lstsq(x, x, driver="gelsd").residuals),
    ],
)
def test_sizes_that_depend_on_values_are_the_hosts(name, call, seeded):
    x = torch.randn(5, 4)
    before = metrics.counter_value(name) or 0
    torch.testing.assert_close(call(x.to(DEVICE)).cpu(), call(x))
    assert metrics.counter_value(name) == before + 1


def test_kernels_in_python_and_without_sizes_are_the_hosts(custom):
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    library = torch.library.Library("tp_test_python", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", twice, "CPU")
    library.impl("twice", twice, "Meta")
    for name, call in (
        ("tp_test::without_meta", custom.without_meta),
        ("tp_test_python::twice", torch.ops.tp_test_python.twice),
    ):
        assert call(torch.ones(2, device=DEVICE)).tolist() == [2, 2]
        assert metrics.counter_value(name) == 1 and calls(name) == 0


def test_refused_arguments_are_refused_at_the_call():
    def error_of(device: str) -> tuple[type, str]:
        with pytest.raises(Exception) as info:
            torch.ormqr(torch.ones(3, 3, device=device), torch.ones(4, device=device), torch.ones(3, 3, device=device))
        return type(info.value), str(info.value).splitlines()[0]

    assert error_of("xla") == error_of("cpu")
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        torch.geqrf(torch.ones(3, 3, device=DEVICE, dtype=torch.float16))
    torch_xla.sync(wait=True)


def test_switched_off_the_host_runs_it(without_kernels, seeded):
    arguments = *torch.geqrf(torch.randn(4, 3)), torch.randn(4, 2)
    before = metrics.counter_value("aten::ormqr") or 0, calls("aten::ormqr")
    found = torch.ormqr(*(argument.to(DEVICE) for argument in arguments))
    torch.testing.assert_close(found.cpu(), torch.ormqr(*arguments))
    assert (metrics.counter_value("aten::ormqr"), calls("aten::ormqr")) == (before[0] + 1, before[1])
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(torch.zeros(2, 2, device=DEVICE))


def test_a_dump_shows_the_operator(seeded):
    factors, _ = torch.geqrf(torch.randn(4, 3).to(DEVICE))
    text = torch_xla.debug.tensors_text([factors + 1])
    assert re.search(r"aten::geqrf\(%0\), num_outputs=2.*, kernel=ATen", text)


MANY_CALLS = """
import torch, torch_xla
from torch_xla import _XLAC
from torch_xla.debug import metrics
torch.manual_seed(0)
x = torch.randn(8, 6, 6)
def run(x):
    parts = [torch.geqrf(part)[0] * part for part in x]            # independent of each other
    rest = sum(parts)
    for _ in range(4):
        rest = torch.geqrf(rest)[0] / 2                            # each needs the one before
    return torch.stack(parts).sum(0) + rest @ torch.linalg.eigh(rest @ rest.mT)[0].diag()
expected = run(x)
for _ in range(5):
    result = run(x.to("xla"))
    torch_xla.sync()
torch.testing.assert_close(result.cpu(), expected, rtol=1e-3, atol=1e-3)
counters = _XLAC.counters()
print(counters.get("UncachedCompile", 0), counters["ATenInProgram::aten::geqrf"], metrics.executed_fallback_ops())
"""


@pytest.mark.parametrize("threads", ["1", "2", "16"])
def test_any_number_of_threads(threads, run_python):
    assert run_python(MANY_CALLS, NPROC=threads, OMP_NUM_THREADS=threads) == "1 60 []"


def test_a_second_process_takes_the_program_from_the_disk(run_python, tmp_path):
    folder = str(tmp_path)
    assert run_python(MANY_CALLS, XLA_PERSISTENT_CACHE_PATH=folder) == "1 60 []"
    assert run_python(MANY_CALLS, XLA_PERSISTENT_CACHE_PATH=folder) == "0 60 []"


def test_several_threads_of_python(seeded):
    x = torch.randn(6, 6)
    expected = torch.geqrf(x)[0]
    results: list[torch.Tensor] = []

    def work() -> None:
        for _ in range(5):
            results.append(torch.geqrf(x.to(DEVICE))[0].cpu())

    run_in_threads([work] * 4)
    assert len(results) == 20
    for result in results:
        torch.testing.assert_close(result, expected)


def test_losses_train_without_a_cut(compiles, seeded):
    """A call in the forward and one in the backward, in the one program of a step."""
    scores = torch.randn(10, 2, 5)
    targets = torch.randint(1, 5, (2, 4))

    def step(device: str) -> torch.Tensor:
        leaf = scores.to(device).detach().requires_grad_()
        image = F.interpolate(leaf[None, None, :, 0], size=(7, 3), mode="bilinear", antialias=True)
        loss = F.ctc_loss(leaf.log_softmax(-1), targets.to(device), [10, 8], [3, 4]) + image.square().mean()
        loss.backward()
        return leaf.grad

    expected = step("cpu")
    before, on_host = compiles(), fallbacks()
    torch.testing.assert_close(step("xla").cpu(), expected)
    assert compiles() == before + 1
    assert fallbacks() == on_host


RANDOM = {
    "poisson": ("aten::poisson", lambda d: torch.poisson(torch.full((2000,), 4.0, device=d)), 4.0),
    "binomial": (
        "aten::binomial",
        lambda d: torch.binomial(torch.full((2000,), 10.0, device=d), torch.full((2000,), 0.3, device=d)),
        3.0,
    ),
    "gamma": ("aten::_standard_gamma", lambda d: torch._standard_gamma(torch.full((2000,), 2.0, device=d)), 2.0),
    "dirichlet": ("aten::_sample_dirichlet", lambda d: torch._sample_dirichlet(torch.ones(1000, 2, device=d)), 0.5),
}


@pytest.mark.parametrize("case", RANDOM)
def test_random_kernels_follow_the_devices_generator(case, compiles):
    name, draw, mean = RANDOM[case]
    host_state = torch.get_rng_state()
    counted, on_host = calls(name), fallbacks()
    torch.xla.manual_seed(5)
    first, second = draw(DEVICE), draw(DEVICE)
    pair = first.cpu(), second.cpu()
    assert (calls(name), fallbacks()) == (counted + 2, on_host)
    assert not torch.equal(*pair)
    assert abs(pair[0].mean().item() - mean) < 0.25
    assert torch.equal(torch.get_rng_state(), host_state)
    # The same numbers whether or not the graph is cut in between, and without another program for another seed.
    torch.xla.manual_seed(5)
    assert torch.equal(draw(DEVICE).cpu(), pair[0])
    before = compiles()
    assert torch.equal(draw(DEVICE).cpu(), pair[1])
    torch.xla.manual_seed(6)
    assert not torch.equal(draw(DEVICE).cpu(), pair[0])
    assert compiles() == before
