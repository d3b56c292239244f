"""Reductions, scans and factories against CPU."""

import math

import pytest
import torch
from parity import assert_equal, assert_same, on_xla

import torch_xla  # noqa: F401

DTYPES = [
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8,
    torch.bool, torch.complex64,
]  # fmt: skip
WITH_NAN = torch.tensor([[3.0, math.nan, 1.0, math.nan], [math.inf, 2.0, -math.inf, 0.0], [1.0, 5.0, 5.0, -2.0]])
TIED = torch.tensor([[3, 1, 3, 2, 1], [0, 0, 5, 5, 4]])


def sample(dtype, shape=(3, 4, 5)):
    torch.manual_seed(0)
    return torch.randint(0, 4, shape).to(dtype) if not dtype.is_floating_point else torch.randn(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["sum", "nansum", "mean", "prod", "amax", "amin", "any", "all", "count_nonzero", "logsumexp"]
)
def test_reduction(name, dtype):
    function = getattr(torch, name)
    x = sample(dtype)
    calls = [lambda t: function(t, 1), lambda t: function(t, -1)]
    if name not in ("logsumexp",):
        calls.append(function)
    if name not in ("prod", "count_nonzero"):
        calls += [lambda t: function(t, (0, 2)), lambda t: function(t, (-1, 0), keepdim=True)]
    if name in ("sum", "mean", "amax", "amin", "any", "all"):
        calls.append(lambda t: function(t, ()))
    for call in calls:
        try:
            expected = call(x)
        except (RuntimeError, NotImplementedError):
            with pytest.raises((RuntimeError, NotImplementedError)):
                call(on_xla(x)).cpu()
            continue
        actual = call(on_xla(x))
        assert actual.dtype == expected.dtype
        assert_equal(actual, expected)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64])
def test_dtype_argument(name, dtype):
    function = getattr(torch, name)
    if name == "mean" and dtype == torch.int64:
        pytest.skip("an integer mean is an error")
    for source in (torch.float32, torch.int32, torch.bool):
        x = (sample(torch.float32) * 3).to(source)
        assert_same(lambda t: function(t, 1, dtype=dtype), x)


def test_integer_sums_are_int64_and_wrap():
    assert_same(torch.sum, torch.tensor([2**62, 2**62, 2**62]))
    assert_same(torch.sum, torch.full((300,), 200, dtype=torch.uint8))
    assert_same(torch.prod, torch.full((70,), 2))


def test_sums_of_sixteen_bit_floats_accumulate_in_float32():
    x = torch.full((4096,), 1.0, dtype=torch.bfloat16)
    assert on_xla(x).sum().item() == 4096
    assert on_xla(x * 0.5).mean().item() == 0.5


def test_long_sums_keep_their_digits():
    x = torch.full((2**22,), 0.1)
    torch.testing.assert_close(on_xla(x).sum().cpu(), x.double().sum().float(), rtol=2e-6, atol=0)


@pytest.mark.parametrize("x", [WITH_NAN, TIED, TIED.to(torch.uint8), TIED.bfloat16()])
def test_extrema_and_their_indices(x):
    for dim in (0, 1, -1):
        assert_same(lambda t, d=dim: t.max(d), x)
        assert_same(lambda t, d=dim: t.min(d, keepdim=True), x)
        assert_same(lambda t, d=dim: t.argmax(d), x)
        assert_same(lambda t, d=dim: t.argmin(d, keepdim=True), x)
        assert_same(lambda t, d=dim: torch.aminmax(t, dim=d), x)
    for function in (torch.max, torch.min, torch.argmax, torch.argmin, torch.amax, torch.aminmax):
        assert_same(function, x)
    assert_same(lambda t: t.argmax(keepdim=True), x)


def test_any_and_all_keep_uint8():
    assert_same(torch.any, TIED.to(torch.uint8))
    assert_same(lambda t: torch.all(t, 1), TIED.to(torch.uint8))
    assert_same(torch.any, WITH_NAN)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("correction", [0, 1, 2.5, 60])
def test_variance(name, correction):
    function = getattr(torch, name)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
        x = torch.randn(3, 4, 5, dtype=dtype)
        assert_same(lambda t: function(t, dim=(0, 2), correction=correction), x)
        assert_same(lambda t: function(t, correction=correction, keepdim=True), x)
    assert_same(lambda t: function(t, dim=1, correction=correction), torch.randn(3, 4, 5, requires_grad=True))


def test_variance_of_large_numbers_is_exact():
    assert_same(torch.var, torch.tensor([10000.0, 10001.0, 10002.0]))
    assert_same(lambda t: torch.var(t, unbiased=True), torch.tensor([2.0]))


@pytest.mark.parametrize("ord", [0, 1, 2, 3, 0.5, -1, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_vector_norm(ord, dtype):
    x = torch.randn(3, 4, 5).to(dtype)
    assert_same(lambda t: torch.linalg.vector_norm(t, ord), x)
    assert_same(lambda t: torch.linalg.vector_norm(t, ord, dim=(0, -1), keepdim=True), x)
    if dtype != torch.complex64:
        assert_same(lambda t: torch.linalg.vector_norm(t, ord, dim=1, dtype=torch.float64), x.float())
        assert_same(lambda t: torch.norm(t, ord, 1), x.float().requires_grad_())


def test_logsumexp_of_infinities():
    x = torch.tensor([[math.inf, 1.0], [-math.inf, -math.inf], [1000.0, 1000.0], [math.nan, 0.0]])
    assert_same(lambda t: torch.logsumexp(t, 1), x)
    assert_same(lambda t: torch.logsumexp(t, 0), torch.randn(4, 3, requires_grad=True))
    assert_same(lambda t: torch.logsumexp(t, 0), torch.empty(0, 3))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_reductions_of_scalars_and_of_nothing(shape):
    x = torch.ones(shape)
    for function in (torch.sum, torch.prod, torch.mean, torch.any, torch.all, torch.count_nonzero, torch.var):
        assert_same(function, x)
    assert_same(lambda t: t.sum(-1), x)
    assert_same(lambda t: t.cumsum(-1), x)
    if shape == ():
        for function in (torch.amax, torch.max, torch.argmax, lambda t: t.max(0), lambda t: t.cummax(0)):
            assert_same(function, x)
    else:
        with pytest.raises(IndexError, match="argmax"):
            torch.argmax(on_xla(x))
        with pytest.raises(IndexError, match="amax"):
            torch.amax(on_xla(x), tuple(range(x.dim())))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "logsumexp", "cumsum", "cumprod", "logcumsumexp"])
def test_gradients(name):
    torch.manual_seed(0)
    assert_same(lambda t: getattr(torch, name)(t, 1), torch.randn(3, 4, 5, requires_grad=True))


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 100, 256, 257, 5000])
def test_scans_of_any_length(kernels, size):
    torch.manual_seed(0)
    x = torch.randint(-9, 9, (2, size, 3))
    for function in (torch.cumsum, torch.cummax, torch.cummin):
        assert_same(lambda t, f=function: f(t, 1), x)
    assert_same(lambda t: t.cumsum(1), x.double())
    assert_same(lambda t: t.logcumsumexp(1), x.double())
    assert_same(lambda t: t.cumprod(1), (x.double() / 100 + 1))
    rows = x.double().transpose(1, 2).contiguous()
    assert_same(lambda t: t.cumsum(-1), rows)
    assert_same(lambda t: t.cumprod(2), (rows / 100 + 1))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8, torch.bool, torch.complex64]
)
def test_cumsum_and_cumprod_dtypes(dtype):
    for dim in (0, -1):
        assert_same(lambda t, d=dim: t.cumsum(d), sample(dtype))
        assert_same(lambda t, d=dim: t.cumprod(d), sample(dtype))


@pytest.mark.parametrize("x", [WITH_NAN, TIED, TIED.bool(), TIED.bfloat16()])
def test_cumulative_extrema(x):
    for dim in (0, 1):
        assert_same(lambda t, d=dim: t.cummax(d), x)
        assert_same(lambda t, d=dim: t.cummin(d), x)


def test_trace_and_dist():
    for shape in ((3, 3), (2, 5), (5, 2), (0, 3)):
        assert_same(torch.trace, torch.randn(shape))
    assert_same(torch.trace, TIED)
    for p in (0, 1, 2, 3.5, math.inf):
        assert_same(lambda a, b, p=p: torch.dist(a, b, p), torch.randn(4), torch.randn(4))


def factories(device):
    yield torch.arange(5, device=device)
    yield torch.arange(2, 11, 3, device=device)
    yield torch.arange(10, 0, -3, device=device)
    yield torch.arange(0, 1, 0.1, device=device)
    yield torch.arange(0.5, 5, 1, dtype=torch.int64, device=device)
    yield torch.arange(2**24, 2**24 + 9, dtype=torch.float32, device=device)
    yield torch.arange(2**40, 2**40 + 3, device=device)
    yield torch.arange(0, 3, 0.1, dtype=torch.bfloat16, device=device)
    yield torch.arange(0, device=device)
    yield torch.linspace(0, 1, 7, device=device)
    yield torch.linspace(-3, 10, 50, dtype=torch.int32, device=device)
    yield torch.linspace(2, -4, 1, device=device)
    yield torch.linspace(2, 3, 0, dtype=torch.float64, device=device)
    yield torch.linspace(1j, 2, 5, dtype=torch.complex64, device=device)
    yield torch.logspace(0, 3, 5, device=device)
    yield torch.logspace(0, 4, 5, base=2, dtype=torch.int64, device=device)
    yield torch.eye(3, device=device)
    yield torch.eye(2, 4, dtype=torch.bool, device=device)
    yield torch.full((2, 3), 1.5, device=device)
    yield torch.full((2,), True, device=device)
    yield torch.full((2,), 3, device=device)
    yield torch.full((2,), 1 + 2j, device=device)
    yield torch.zeros(2, 3, dtype=torch.int16, device=device)
    yield torch.ones(0, 3, dtype=torch.complex64, device=device)
    yield torch.tril_indices(4, 3, device=device)
    yield torch.triu_indices(3, 5, 1, device=device)
    yield torch.scalar_tensor(2.5, device=device)
    x = torch.arange(24.0, device=device).reshape(2, 3, 4)
    yield x.new_full((2,), 7)
    yield torch.full_like(x, 3, dtype=torch.int64)
    yield torch.ones_like(x)
    for diagonal in (-4, -1, 0, 1, 5):
        yield x.tril(diagonal)
        yield x.bool().triu(diagonal)
    yield torch.empty(3, dtype=torch.int64, device=device).fill_(2.7)
    yield torch.empty(3, dtype=torch.bool, device=device).fill_(2)
    yield torch.empty(3, device=device).fill_(torch.tensor(4, device=device))
    yield torch.randn(3, device=device).zero_()


def test_factories():
    for i, (actual, expected) in enumerate(zip(factories("xla"), factories("cpu"), strict=True)):
        assert actual.dtype == expected.dtype, i
        assert actual.stride() == expected.stride(), i
        assert_equal(actual, expected)


def test_fill_with_another_number_does_not_recompile(compiles):
    x = torch.empty(4, device="xla")
    x.fill_(1.5).cpu()
    before = compiles()
    for value in (2.5, 3.5, 4.5):
        assert torch.equal(x.fill_(value).cpu(), torch.full((4,), value))
    assert compiles() == before


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_variance_of_integers_is_refused(name):
    with pytest.raises(RuntimeError, match="only support floating point and complex dtypes"):
        getattr(torch, name)(torch.arange(6, device="xla"))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape, dim", [((512, 24), 0), ((24, 512), 1), ((3, 200, 5), 1)])
def test_cumulative_results_are_as_accurate_as_the_cpus(name: str, shape: tuple[int, ...], dim: int) -> None:
    x = torch.rand(shape) * 0.1 + 0.95
    exact = getattr(torch, name)(x.double(), dim)
    actual, expected = (getattr(torch, name)(y, dim).cpu().double() for y in (x.to("xla"), x))
    errors = [((y - exact) / exact).abs().max().item() for y in (actual, expected)]
    assert errors[0] <= errors[1] * 1.01
