"""Operators at the edges of their inputs against CPU: values, shapes, signs of zeros, and the words of errors.

The cases of one test are recorded together and waited for once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import torch_xla

# What the CPU warns of, it warns of here as well: variances of one element, writes to expanded tensors.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SIGNED = [torch.int64, torch.int32, torch.int16, torch.int8]
INTEGERS = [*SIGNED, torch.uint8]
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
REALS = [*INTEGERS, *FLOATS]
ALL = [*REALS, torch.bool, torch.complex64]

# Relative error of what is not exact: two units in the last place of the half types, a few of the others.
RTOL = {
    torch.float32: 2e-6,
    torch.float64: 1e-13,
    torch.bfloat16: 1.6e-2,
    torch.float16: 2e-3,
    torch.complex64: 4e-6,
}


@dataclasses.dataclass
class Case:
    name: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    exact: bool = True


def called(function: Callable[..., Any], inputs: Any) -> Any:
    try:
        return function(*inputs)
    except Exception as error:
        return error


def moved(inputs: Any) -> Any:
    """Copies on xla that keep strides of zero, so that expanded inputs stay expanded."""

    def move(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if 0 not in x.stride():
            return x.to("xla")
        base = x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.stride())]
        return base.contiguous().to("xla").expand(x.shape)

    return pytree.tree_map(move, inputs)


def difference(actual: Any, expected: Any, exact: bool) -> str | None:
    """What is wrong with `actual`; None when nothing is."""
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        words = [f"{type(x).__name__}: {str(x).splitlines()[0]}" if isinstance(x, Exception) else "a result"
                 for x in (actual, expected)]  # fmt: skip
        return None if words[0] == words[1] else f"{words[0]} instead of {words[1]}"
    left, right = pytree.tree_leaves(actual), pytree.tree_leaves(expected)
    if len(left) != len(right):
        return f"{len(left)} results instead of {len(right)}"
    for a, e in zip(left, right, strict=True):
        if not isinstance(e, torch.Tensor):
            if a != e:
                return f"{a} instead of {e}"
            continue
        if a.dtype != e.dtype or a.shape != e.shape:
            return f"{a.dtype} {tuple(a.shape)} instead of {e.dtype} {tuple(e.shape)}"
        a = a.cpu()
        wrong = wrong_elements(a, e, exact)
        if wrong.any():
            some = wrong.reshape(-1).nonzero().flatten()[:6].tolist()
            return f"at {some}: {a.reshape(-1)[some].tolist()} instead of {e.reshape(-1)[some].tolist()}"
    return None


def wrong_elements(a: torch.Tensor, e: torch.Tensor, exact: bool) -> torch.Tensor:
    if e.is_complex():
        a, e = torch.view_as_real(a.resolve_conj()), torch.view_as_real(e.resolve_conj())
    if not e.is_floating_point():
        return a != e
    # XLA's CPU backend flushes what is not normal.
    e = torch.where((a == 0) & (e.abs() < torch.finfo(e.dtype).tiny), torch.copysign(torch.zeros_like(e), e), e)
    wrong = ~((a == e) & (torch.signbit(a) == torch.signbit(e)) | a.isnan() & e.isnan())
    if exact:
        return wrong
    rtol = RTOL[e.dtype]
    return wrong & ~torch.isclose(a, e, rtol=rtol, atol=rtol / 4, equal_nan=True)


def compare(cases: Iterator[Case] | list[Case]) -> None:
    cases = list(cases)
    expected = [called(case.function, case.inputs) for case in cases]
    actual = [called(case.function, moved(case.inputs)) for case in cases]
    torch_xla.sync(wait=True)
    found = []
    for case, a, e in zip(cases, actual, expected, strict=True):
        wrong = difference(a, e, case.exact)
        if wrong is not None:
            found.append(f"{case.name}: {wrong}")
    assert not found, "\n".join(found)


# Left out, because the CPU's own choice depends on the way by which its kernel walks the elements: the sign of the
# largest or smallest of zeros of both signs; the index of the median of NaNs alone; the sign of the zeros in a negated
# complex number. topk of booleans, which the CPU alone has not, by its words. index_fill_ of an expanded tensor, which
# PyTorch deprecates: xla keeps one of the values that are written to one place.
BETWEEN_ZEROS = {"maximum", "minimum", "fmax", "fmin", "max", "min", "amax", "amin", "aminmax", "topk", "kthvalue"}


def edges(dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype == torch.complex64:
        parts = [0.0, -0.0, 1.0, -2.5, 0.5]
        return torch.tensor([complex(x, y) for x in parts for y in parts], dtype=dtype)
    if dtype.is_floating_point:
        largest, smallest = torch.finfo(dtype).max, torch.finfo(dtype).tiny
        values = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 7.25]
        return torch.tensor([*values, largest, -largest, 4 * smallest, -4 * smallest], dtype=dtype)
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    small = [0, 1, 2, 3, 7, 100] if dtype == torch.uint8 else [0, 1, -1, 2, -2, 3, -3, 7, -7, 100]
    return torch.tensor([low, low + 1, high - 1, high, *small], dtype=dtype)


UNARY = [
    "abs", "neg", "sign", "sgn", "ceil", "floor", "trunc", "round", "frac", "signbit", "isnan", "isinf", "isposinf",
    "isneginf", "isfinite", "logical_not", "positive", "square", "relu", "nan_to_num", "bitwise_not", "isreal",
]  # fmt: skip
ROUNDED_UNARY = [
    "sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "tanh", "atan",
    "asinh", "erf", "asin", "acosh", "atanh", "angle",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "copysign", "heaviside", "nextafter",
    "gcd", "lcm", "isclose",
]  # fmt: skip
DIVISIONS = {
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "div": torch.div,
}
ROUNDED_BINARY = ["atan2", "hypot", "logaddexp", "xlogy"]
NAMES = [str(dtype).removeprefix("torch.") for dtype in ALL]


@pytest.mark.parametrize("dtype", ALL, ids=NAMES)
def test_unary(dtype):
    x = edges(dtype)
    compare(
        Case(
            name,
            getattr(torch, name),
            (x,),
            name in UNARY and not (dtype.is_complex and name in ("sgn", "square", "neg")),
        )
        for name in [*UNARY, *ROUNDED_UNARY]
        if not (dtype.is_complex and name in ROUNDED_UNARY)
    )


@pytest.mark.parametrize("dtype", ALL, ids=NAMES)
def test_binary(dtype):
    x = edges(dtype)
    pair = (x[:, None], x)

    def cases() -> Iterator[Case]:
        for name in BINARY:
            # The magnitude of the least integer is none; the CPU's divisors of it are of either sign, or trap.
            least = name in ("gcd", "lcm") and dtype in SIGNED
            yield Case(name, getattr(torch, name), (x[1:, None], x[1:]) if least else pair,
                       name not in BETWEEN_ZEROS and not dtype.is_complex)  # fmt: skip
        if dtype.is_complex:
            return
        for name in ROUNDED_BINARY:
            yield Case(name, getattr(torch, name), pair, False)
        divisor = x if dtype.is_floating_point else x[x != 0]
        # The least integer divided by -1 traps on the CPU.
        dividend = x[1:] if dtype in SIGNED else x
        if dtype.is_floating_point:
            # The CPU's vectors have no remainder of a quotient that overflows.
            dividend = x[x.abs() != torch.finfo(dtype).max]
        # In float16 the CPU rounds between the steps.
        for name, function in DIVISIONS.items():
            yield Case(name, function, (dividend[:, None], divisor), not (dtype == torch.float16 and "floor" in name))
            if dtype in SIGNED:
                yield Case(f"{name} of least", function, (x[0], divisor[divisor != -1]))
            for number in (1, -1, 2, -3, 2.5):
                if dtype != torch.uint8 or number > 0:
                    yield Case(f"{name} {number}", function, (dividend, number))
        for number in (0, 1, -1, 2, 0.5, math.nan, math.inf):
            yield Case(f"add {number}", torch.add, (x, number))
            yield Case(f"mul {number}", torch.mul, (x, number))
            yield Case(f"lt {number}", torch.lt, (x, number))

    compare(cases())


@pytest.mark.parametrize("dtype", REALS, ids=NAMES[: len(REALS)])
def test_pow(dtype):
    x = edges(dtype)

    def cases() -> Iterator[Case]:
        exponents = x if dtype.is_floating_point else x[(x >= 0) & (x < 64)]
        yield Case("tensors", torch.pow, (x[:, None], exponents), not dtype.is_floating_point)
        for number in (0, 1, 2, 3, 0.5, -1, -2, -0.5, 2.5, 5, math.inf, -math.inf, math.nan):
            yield Case(
                f"x ** {number}", torch.pow, (x, number), isinstance(number, int) and not dtype.is_floating_point
            )
        for number in (0, 1, 2, -1, 0.5, -2.0):
            yield Case(f"{number} ** x", torch.pow, (number, exponents), False)

    compare(cases())


@pytest.mark.parametrize("dtype", INTEGERS, ids=NAMES[: len(INTEGERS)])
def test_shifts(dtype):
    x = edges(dtype)
    bits = torch.iinfo(dtype).bits
    amounts = [0, 1, bits - 2, bits - 1, bits, bits + 1] + ([] if dtype == torch.uint8 else [-1, -bits])
    shift = torch.tensor(amounts, dtype=dtype)
    compare(
        case
        for name, function in (("left", torch.bitwise_left_shift), ("right", torch.bitwise_right_shift))
        for case in [
            Case(name, function, (x[:, None], shift)),
            *(Case(f"{name} {amount}", function, (x, amount)) for amount in amounts),
        ]
    )


@pytest.mark.parametrize("name", [name for name in DIVISIONS if name != "div"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=NAMES[: len(INTEGERS)])
def test_integers_divided_by_zero(name, dtype):
    function = DIVISIONS[name]
    x = torch.tensor([1, 2], dtype=dtype)
    for divisor in (torch.tensor([1, 0], dtype=dtype), torch.tensor(0, dtype=dtype), 0):
        expected = called(function, (x, divisor))
        assert isinstance(expected, RuntimeError)
        with pytest.raises(RuntimeError, match=f"^{expected}"):
            function(*moved((x, divisor))).cpu()
    torch_xla.sync(wait=True)


@pytest.mark.parametrize("source", FLOATS, ids=NAMES[len(INTEGERS) : len(REALS)])
def test_casts_of_floats(source):
    """C++ defines a cast to an integer that holds the truncated number; CPUs differ beyond."""
    x = edges(source)

    def cases() -> Iterator[Case]:
        for dtype in ALL:
            if dtype in INTEGERS:
                info = torch.iinfo(dtype)
                wide = x.double()
                fits = (wide.trunc() >= info.min) & (wide.trunc() <= info.max) & (wide < 2.0 ** (info.bits - 1))
                yield Case(f"to {dtype}", lambda x, dtype=dtype: x.to(dtype), (x[fits],))
            else:
                yield Case(f"to {dtype}", lambda x, dtype=dtype: x.to(dtype), (x,))

    compare(cases())


@pytest.mark.parametrize("source", [*INTEGERS, torch.bool], ids=[*NAMES[: len(INTEGERS)], "bool"])
def test_casts_of_integers(source):
    x = edges(source)
    compare(Case(f"to {dtype}", lambda x, dtype=dtype: x.to(dtype), (x,)) for dtype in ALL)


def lines(dtype: torch.dtype) -> list[torch.Tensor]:
    """Rows with ties, and for floats rows with NaN, infinities and both zeros."""
    if dtype == torch.bool:
        return [torch.tensor([[False, True, True, False], [False] * 4, [True] * 4])]
    tied = torch.tensor([[3, 1, 3, 1, 2, 3], [5, 5, 5, 5, 5, 5], [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]).to(dtype)
    if not dtype.is_floating_point:
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        return [tied, torch.tensor([[low, high, low, 0, high, 1]], dtype=dtype)]
    nan, inf = math.nan, math.inf
    rows = [
        [1.0, nan, 3.0, nan, -inf, inf],
        [inf, inf, -inf, -inf, 0.0, 1.0],
        [nan] * 6,
        [-0.0, 0.0, -0.0, 0.0, 0, -0.0],
    ]
    return [tied, torch.tensor(rows, dtype=dtype)]


ALONG = {
    "sort": lambda x, d: torch.sort(x, dim=d, stable=True),
    "sort descending": lambda x, d: torch.sort(x, dim=d, stable=True, descending=True),
    "argsort": lambda x, d: torch.argsort(x, dim=d, stable=True),
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "max": torch.max,
    "min": torch.min,
    "amax": torch.amax,
    "amin": torch.amin,
    "median": torch.median,
    "nanmedian": lambda x, d: torch.nanmedian(x, d)[0],
    "cummax": torch.cummax,
    "cummin": torch.cummin,
    "all": torch.all,
    "any": torch.any,
    "count_nonzero": torch.count_nonzero,
    "topk": lambda x, d: torch.topk(x, 1, dim=d)[0],
    "kthvalue": lambda x, d: torch.kthvalue(x, 1, dim=d)[0],
    "aminmax": lambda x, d: tuple(torch.aminmax(x, dim=d)),
    "unbind": torch.unbind,
    "flip": lambda x, d: torch.flip(x, [d]),
    "roll": lambda x, d: torch.roll(x, 1, d),
    "unsqueeze": torch.unsqueeze,
    "squeeze": torch.squeeze,
    "diff": lambda x, d: torch.diff(x, dim=d),
}


def along(dtype: torch.dtype) -> list[tuple[str, Callable[..., Any]]]:
    return [(name, function) for name, function in ALONG.items() if name != "topk" or dtype != torch.bool]


ADDING = {
    "sum": torch.sum,
    "nansum": torch.nansum,
    "prod": torch.prod,
    "mean": torch.mean,
    "cumsum": torch.cumsum,
    "cumprod": torch.cumprod,
    "var": torch.var,
    "std": torch.std,
    "logsumexp": torch.logsumexp,
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "norm": lambda x, d: torch.linalg.vector_norm(x, dim=d),
    "norm inf": lambda x, d: torch.linalg.vector_norm(x, math.inf, dim=d),
    "norm -inf": lambda x, d: torch.linalg.vector_norm(x, -math.inf, dim=d),
    "norm 0": lambda x, d: torch.linalg.vector_norm(x, 0, dim=d),
}
WHOLE = [
    "sum", "prod", "mean", "var", "max", "min", "amax", "amin", "argmax", "argmin", "median", "nanmedian", "all",
    "any", "count_nonzero", "nansum", "aminmax",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [*REALS, torch.bool], ids=[*NAMES[: len(REALS)], "bool"])
def test_reductions_and_sorting(dtype):
    def cases() -> Iterator[Case]:
        for i, x in enumerate(lines(dtype)):
            for d in (0, -1, 2, -3):
                for name, function in along(dtype):
                    yield Case(f"{name} {d} {i}", function, (x, d), name not in BETWEEN_ZEROS)
            for d in (-1, 2):
                for name, function in ADDING.items():
                    yield Case(f"{name} {d} {i}", function, (x, d), not dtype.is_floating_point)
            for name in WHOLE:
                if name == "prod" and dtype in (torch.bfloat16, torch.float16):
                    continue  # the CPU rounds after each factor
                yield Case(f"{name} {i}", getattr(torch, name), (x,), not dtype.is_floating_point)

    compare(cases())


SHAPES = {
    "empty": (0,),
    "no rows": (0, 3),
    "no columns": (3, 0),
    "0-dim": (),
    "one": (1,),
    "ones": (1, 1, 1),
    "8 dims": (2, 1, 2, 1, 2, 1, 1, 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, dtype):
    dims = SHAPES[shape]
    x = (torch.arange(math.prod(dims)) % 5 - 2).view(dims).to(dtype)

    def cases() -> Iterator[Case]:
        for name in ("abs", "sign", "isnan", "exp", "round"):
            yield Case(name, getattr(torch, name), (x,), False)
        for name in ("add", "mul", "maximum", "eq", "logical_and"):
            yield Case(name, getattr(torch, name), (x, x))
            yield Case(f"{name} 0-dim", getattr(torch, name), (x, torch.ones((), dtype=torch.int64)))
        for d in (0, -1, len(dims), -len(dims) - 1):
            for name, function in [*ALONG.items(), *ADDING.items()]:
                yield Case(f"{name} {d}", function, (x, d), False)
        for name in WHOLE:
            yield Case(name, getattr(torch, name), (x,), False)
        for n in (0, 1):
            yield Case(f"cat {n}", lambda x, n=n: torch.cat([x] * (n + 1), 0), (x,))
        yield Case("stack", lambda x: torch.stack([x, x], -1), (x,))
        yield Case("nothing selected", lambda x: x[..., :0], (x,))
        yield Case("none", lambda x: x[None], (x,))
        yield Case("ellipsis", lambda x: x[...], (x,))
        yield Case("flatten", torch.flatten, (x,))
        yield Case("reshape", lambda x: x.reshape(-1), (x,))
        yield Case("transposed", lambda x: x.transpose(0, -1), (x,))
        yield Case("tril", torch.tril, (x,))
        yield Case("clamp", lambda x: torch.clamp(x, 0, 1), (x,))
        yield Case("where", lambda x: torch.where(x == x, x, 0), (x,))

    compare(cases())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_expanded_inputs_and_overlapping_writes(dtype):
    row = torch.tensor([[1, 2, 3, 4]]).to(dtype)
    x = row.expand(3, 4)
    base = torch.arange(10).to(dtype)

    def in_place(name: str) -> Callable[..., Any]:
        return lambda row, *more: getattr(row.clone().expand(3, 4), name)(*more)

    def cases() -> Iterator[Case]:
        for name, function in [*ALONG.items(), *ADDING.items()]:
            if "median" not in name:  # along the stride of zero the CPU's reads beyond its copy of a line
                yield Case(name, function, (x, 0), False)
            yield Case(f"{name} 1", function, (x, 1), False)
        for name in ("add_", "mul_", "copy_", "sub_"):
            yield Case(name, in_place(name), (x, row))
        yield Case("zero_", in_place("zero_"), (row,))
        yield Case("fill_", in_place("fill_"), (row, 3))
        yield Case("masked_fill_", in_place("masked_fill_"), (row, torch.tensor([[True], [False], [True]]), 3))
        yield Case("scatter_", in_place("scatter_"), (row, 0, torch.tensor([[1, 1, 1, 1]]), 3))
        yield Case("index_add_", in_place("index_add_"), (row, 0, torch.tensor([1]), row))
        yield Case("index_put_", in_place("index_put_"), (row, (torch.tensor([1]),), row))
        yield Case("shifted add", lambda b: (c := b.clone())[1:].add_(c[:-1]), (base,))
        yield Case("shifted copy", lambda b: (c := b.clone())[1:].copy_(c[:-1]), (base,))
        yield Case("shifted out", lambda b: (c := b.clone(), torch.add(c[1:], 1, out=c[:-1]))[1], (base,))
        yield Case("same out", lambda b: (c := b.clone(), torch.add(c, c, out=c))[1], (base,))
        yield Case("cat out", lambda b: (c := b.clone(), torch.cat([c[:2], c[4:]], out=c[:8]))[1], (base,))
        yield Case(
            "gather out", lambda b: (c := b.long().clone() % 3, torch.gather(c, 0, c[:3], out=c[:3]))[1], (base,)
        )
        yield Case("index_select out", lambda b: (c := b.clone(), torch.index_select(c, 0, c[:3].long(), out=c[:3]))[1],
                   (base,))  # fmt: skip
        yield Case("sort out", lambda b: (c := b.clone(), torch.sort(c, out=(c, c.long())))[1][0], (base,))
        yield Case("take along", lambda b: torch.take_along_dim(b, b.long().expand(10), 0), (base,))

    compare(cases())


@pytest.mark.parametrize("dtype", REALS, ids=NAMES[: len(REALS)])
def test_indexing(dtype):
    x = edges(dtype)
    grid = torch.arange(12).view(3, 4).to(dtype)

    def cases() -> Iterator[Case]:
        index = torch.tensor([0, -1, 1, 1])
        yield Case("negative", lambda x, i: x[i], (x, index))
        yield Case("select", lambda x: x[-1], (x,))
        yield Case("select beyond", lambda x: x[100], (x,))
        yield Case("select beyond negative", lambda x: x[-100], (x,))
        yield Case("slice beyond", lambda x: x[-100:100], (x,))
        yield Case("step", lambda x: x[::3], (x,))
        yield Case("0-dim index", lambda x, i: x[i], (x, torch.tensor(-2)))
        yield Case("no index", lambda x, i: x[i], (x, torch.empty(0, dtype=torch.int64)))
        yield Case("mask of nothing", lambda x, i: x[i], (grid, torch.zeros(3, 4, dtype=torch.bool)))
        yield Case("pair", lambda x, i, j: x[i[:, None], j], (grid, torch.tensor([-1, 0]), torch.tensor([-4, 3])))
        yield Case("gather", torch.gather, (grid, -1, torch.tensor([[3, 3], [0, 0]])))
        yield Case("gather nothing", torch.gather, (grid, 0, torch.empty(0, 4, dtype=torch.int64)))
        yield Case("gather beyond dims", torch.gather, (grid, 2, torch.tensor([[3, 3], [0, 0]])))
        yield Case("index_select", torch.index_select, (grid, -2, torch.tensor([2, 2, 0])))
        yield Case("index_select none", torch.index_select, (grid, 1, torch.empty(0, dtype=torch.int64)))
        yield Case("index_select 0-dim", torch.index_select, (grid, 1, torch.tensor(2)))
        yield Case("take", torch.take, (grid, torch.tensor([-1, 0, 11])))
        yield Case("index_add", torch.index_add, (grid, 0, torch.tensor([1, 1, 1]), grid))
        yield Case("scatter_add", torch.scatter_add, (grid, 1, torch.zeros(3, 4, dtype=torch.int64), grid))
        for reduce in ("sum", "prod", "amax", "amin", "mean"):
            for kept in (True, False):
                yield Case(
                    f"scatter_reduce {reduce} {kept}",
                    lambda x, i, r=reduce, k=kept: x.new_zeros(2).scatter_reduce(0, i, x, r, include_self=k),
                    (x[:8], torch.tensor([0, 1, 0, 1, 0, 1, 0, 1])),
                    False,
                )
        yield Case("put accumulated", lambda x, i, v: x.index_put((i,), v, accumulate=True),
                   (x, torch.tensor([0, 0, -1]), x[:3]), False)  # fmt: skip
        yield Case("bucketize", torch.bucketize, (x, torch.tensor([-1, 0, 2]).to(dtype) if dtype != torch.uint8 else x))
        yield Case("searchsorted", torch.searchsorted, (grid[0], x))

    compare(cases())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_long_sums_of_half_types(dtype):
    torch.manual_seed(0)
    x = torch.rand(3, 10_000).to(dtype)
    compare([
        Case("sum", torch.sum, (x,), False),
        Case("sum of rows", torch.sum, (x, 1), False),
        Case("sum of ones", torch.sum, (torch.ones(10_000, dtype=dtype),)),
        Case("mean", torch.mean, (x,), False),
        Case("mean of large", torch.mean, (x * 60_000, 1), False),
        Case("var", torch.var, (x, 1), False),
        Case("norm", torch.linalg.vector_norm, (x,), False),
        Case("overflow", torch.sum, (x * 60_000,), False),
    ])  # fmt: skip


def test_bool_arithmetic():
    x = torch.tensor([False, True])
    pair = (x[:, None], x)
    compare(
        Case(name, getattr(torch, name), pair)
        for name in ["add", "mul", "sub", "div", "floor_divide", "remainder", "fmod", "pow", "maximum", "bitwise_and",
                     "bitwise_xor", "bitwise_left_shift", "matmul", "logical_xor", "true_divide", "atan2", "rsub"]
    )  # fmt: skip


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("samples", [0, -1])
def test_multinomial_counts_its_samples(samples, replacement):
    for shape in ((3,), (2, 3)):
        compare([Case("multinomial", torch.multinomial, (torch.ones(shape), samples, replacement))])


def test_denormals_move_unchanged_and_are_flushed_by_arithmetic() -> None:
    """XLA CPU sets the processor to flush them on all of its threads, as JAX has it."""
    smallest = torch.tensor([1e-40, -3e-39, 2.0])
    x = smallest.to("xla")
    for move in (torch.clone, lambda x: x.flip(0), lambda x: torch.cat([x, x]), lambda x: x[[2, 0]], lambda x: x.t()):
        assert torch.equal(move(x).cpu().view(torch.int32), move(smallest).view(torch.int32))
    assert (x * 1).tolist() == [0.0, -0.0, 2.0]
    assert (x + 0).tolist() == [0.0, 0.0, 2.0]
