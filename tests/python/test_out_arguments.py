"""out= tensors of another size than the result: resized, with eager PyTorch's warnings, at each call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_xla

Call = Callable[..., Any]


def square(device: str, size: int = 3) -> torch.Tensor:
    return torch.arange(1.0, size * size + 1, device=device).view(size, size) + 5 * torch.eye(size, device=device)


def row(device: str) -> torch.Tensor:
    return torch.arange(1.0, 4.0, device=device)


def index(device: str) -> torch.Tensor:
    return torch.zeros(2, 3, dtype=torch.int64, device=device)


# (device, outs) -> the call; by the dtypes of its out= tensors.
ONE = (torch.float32,)
INDEXED = (torch.float32, torch.int64)
OPERATORS: dict[str, tuple[tuple[torch.dtype, ...], Call]] = {
    "add": (ONE, lambda d, o: torch.add(square(d), 1, out=o)),
    "sub, broadcast": (ONE, lambda d, o: torch.sub(row(d), square(d), out=o)),
    "exp": (ONE, lambda d, o: torch.exp(square(d), out=o)),
    "sin of a transposed": (ONE, lambda d, o: torch.sin(square(d).t(), out=o)),
    "logical_and": ((torch.bool,), lambda d, o: torch.logical_and(row(d), row(d), out=o)),
    "eq": ((torch.bool,), lambda d, o: torch.eq(row(d), 2, out=o)),
    "where": (ONE, lambda d, o: torch.where(row(d) > 1, row(d), -row(d), out=o)),
    "clamp": (ONE, lambda d, o: torch.clamp(row(d), 1, 2, out=o)),
    "lerp": (ONE, lambda d, o: torch.lerp(row(d), row(d), 0.5, out=o)),
    "addcmul": (ONE, lambda d, o: torch.addcmul(row(d), row(d), row(d), out=o)),
    "sum": (ONE, lambda d, o: torch.sum(square(d), 1, out=o)),
    "mean": (ONE, lambda d, o: torch.mean(square(d), 1, out=o)),
    "prod": (ONE, lambda d, o: torch.prod(square(d), 1, out=o)),
    "std": (ONE, lambda d, o: torch.std(square(d), 1, out=o)),
    "var": (ONE, lambda d, o: torch.var(square(d), 1, out=o)),
    "norm": (ONE, lambda d, o: torch.linalg.vector_norm(square(d), dim=1, out=o)),
    "logsumexp": (ONE, lambda d, o: torch.logsumexp(square(d), 1, out=o)),
    "any": ((torch.bool,), lambda d, o: torch.any(square(d), 1, out=o)),
    "argmax": ((torch.int64,), lambda d, o: torch.argmax(square(d), 1, out=o)),
    "amax": (ONE, lambda d, o: torch.amax(square(d), 1, out=o)),
    "max of dim": (INDEXED, lambda d, o: torch.max(square(d), 1, out=o)),
    "min of dim": (INDEXED, lambda d, o: torch.min(square(d), 1, out=o)),
    "median": (INDEXED, lambda d, o: torch.median(square(d), 1, out=o)),
    "mode": (INDEXED, lambda d, o: torch.mode(square(d), 1, out=o)),
    "kthvalue": (INDEXED, lambda d, o: torch.kthvalue(square(d), 2, 1, out=o)),
    "topk": (INDEXED, lambda d, o: torch.topk(square(d), 2, out=o)),
    "sort": (INDEXED, lambda d, o: torch.sort(square(d), out=o)),
    "cummax": (INDEXED, lambda d, o: torch.cummax(square(d), 0, out=o)),
    "cumsum": (ONE, lambda d, o: torch.cumsum(square(d), 0, out=o)),
    "logcumsumexp": (ONE, lambda d, o: torch.logcumsumexp(square(d), 0, out=o)),
    "aminmax": ((torch.float32,) * 2, lambda d, o: torch.aminmax(square(d), dim=1, out=o)),
    "mm": (ONE, lambda d, o: torch.mm(square(d), square(d), out=o)),
    "matmul": (ONE, lambda d, o: torch.matmul(square(d), row(d), out=o)),
    "addmm": (ONE, lambda d, o: torch.addmm(row(d), square(d), square(d), out=o)),
    "addbmm": (ONE, lambda d, o: torch.addbmm(square(d), square(d)[None], square(d)[None], out=o)),
    "bmm": (ONE, lambda d, o: torch.bmm(square(d)[None], square(d)[None], out=o)),
    "outer": (ONE, lambda d, o: torch.outer(row(d), row(d), out=o)),
    "gather": (ONE, lambda d, o: torch.gather(square(d), 0, index(d), out=o)),
    "index_select": (ONE, lambda d, o: torch.index_select(square(d), 0, index(d)[0], out=o)),
    "take": (ONE, lambda d, o: torch.take(square(d), index(d), out=o)),
    "scatter": (ONE, lambda d, o: torch.scatter(square(d), 0, index(d), 1.0, out=o)),
    "index_add": (ONE, lambda d, o: torch.index_add(square(d), 0, index(d)[0], square(d), out=o)),
    "cat": (ONE, lambda d, o: torch.cat([square(d), square(d)], out=o)),
    "stack": (ONE, lambda d, o: torch.stack([row(d), row(d)], out=o)),
    "tril": (ONE, lambda d, o: torch.tril(square(d), out=o)),
    "diag": (ONE, lambda d, o: torch.diag(row(d), out=o)),
    "narrow_copy": (ONE, lambda d, o: torch.narrow_copy(square(d), 0, 0, 2, out=o)),
    "searchsorted": ((torch.int64,), lambda d, o: torch.searchsorted(row(d), row(d), out=o)),
    "inv": (ONE, lambda d, o: torch.linalg.inv(square(d), out=o)),
    "solve": (ONE, lambda d, o: torch.linalg.solve(square(d), row(d), out=o)),
    "cholesky": (ONE, lambda d, o: torch.linalg.cholesky(square(d) @ square(d).t(), out=o)),
    "qr": ((torch.float32,) * 2, lambda d, o: torch.linalg.qr(square(d), out=o)),
    "svdvals": (ONE, lambda d, o: torch.linalg.svdvals(square(d), out=o)),
    "eigh": ((torch.float32,) * 2, lambda d, o: torch.linalg.eigh(square(d), out=o)),
    "fft": ((torch.complex64,), lambda d, o: torch.fft.fft(square(d), out=o)),
    "erfcx": (ONE, lambda d, o: torch.special.erfcx(row(d), out=o)),
    "spherical_bessel_j0": (ONE, lambda d, o: torch.special.spherical_bessel_j0(row(d), out=o)),
    "avg_pool2d": (ONE, lambda d, o: torch._C._nn.avg_pool2d(square(d, 4)[None], 2, out=o)),
    "log_sigmoid": (ONE, lambda d, o: torch._C._nn.log_sigmoid(row(d), out=o)),
    "gelu": (ONE, lambda d, o: torch._C._nn.gelu(row(d), out=o)),
    "softmax": (ONE, lambda d, o: torch._softmax(square(d), 1, False, out=o)),
    "bernoulli": (ONE, lambda d, o: torch.bernoulli(row(d) / 4, out=o)),
    "multinomial": ((torch.int64,), lambda d, o: torch.multinomial(row(d), 2, out=o)),
    "arange": (ONE, lambda d, o: torch.arange(5, out=o)),
    "range of steps": (ONE, lambda d, o: torch.arange(0, 1, 0.3, out=o)),
    "linspace": (ONE, lambda d, o: torch.linspace(0, 1, 5, out=o)),
    "logspace": (ONE, lambda d, o: torch.logspace(0, 1, 5, out=o)),
    "eye": (ONE, lambda d, o: torch.eye(3, out=o)),
    "full": (ONE, lambda d, o: torch.full((3,), 2.0, out=o)),
    "zeros": (ONE, lambda d, o: torch.zeros(3, out=o)),
    "rand": (ONE, lambda d, o: torch.rand(3, out=o)),
    "randn": (ONE, lambda d, o: torch.randn(3, out=o)),
    "randint": (ONE, lambda d, o: torch.randint(4, (3,), out=o)),
    "randperm": ((torch.int64,), lambda d, o: torch.randperm(5, out=o)),
}  # fmt: skip

SIZES = {"larger": (6, 2), "smaller": (2,), "one dimension more": (1, 3, 3), "empty": (0, 4)}


def heard(function: Callable[[], Any]) -> list[tuple[type, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [(x.category, str(x.message)) for x in caught]


def run(name: str, device: str, size: tuple[int, ...]) -> tuple[list[tuple[type, str]], list[Any]]:
    dtypes, call = OPERATORS[name]
    outs = tuple(torch.zeros(size, dtype=dtype, device=device) for dtype in dtypes)
    words = heard(lambda: call(device, outs if len(outs) > 1 else outs[0]))
    return words, [(x.shape, x.stride()) for x in outs]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OPERATORS)
def test_warnings_sizes_and_strides(name: str, size: str) -> None:
    expected = run(name, "cpu", SIZES[size])
    for _ in range(2):  # a second call is of a known kind
        assert run(name, "xla", SIZES[size]) == expected


def test_one_of_the_right_size_is_silent() -> None:
    for name in ("add", "topk", "linspace", "inv", "randperm"):
        dtypes, call = OPERATORS[name]
        results = call("cpu", None) if name != "topk" else torch.topk(square("cpu"), 2)
        results = results if isinstance(results, tuple) else (results,)
        outs = tuple(torch.zeros(x.shape, dtype=dtype, device="xla") for x, dtype in zip(results, dtypes, strict=True))
        assert heard(lambda call=call, outs=outs: call("xla", outs if len(outs) > 1 else outs[0])) == []


LARGE = (1 << 24) + 8  # 64 MiB, and some
LARGE_OPERATORS: dict[str, Call] = {
    "add": lambda d, o: torch.add(torch.zeros(LARGE, device=d), 1, out=o),
    "sort": lambda d, o: torch.sort(torch.zeros(LARGE, device=d), out=(o, torch.zeros(3, 3, device=d).long())),
    "logcumsumexp": lambda d, o: torch.logcumsumexp(torch.zeros(LARGE, device=d), 0, out=o),
    "bernoulli": lambda d, o: torch.bernoulli(torch.zeros(LARGE, device=d), out=o),
    "full": lambda d, o: torch.full((3,), 1.0, out=o),
}


@pytest.mark.parametrize("name", LARGE_OPERATORS)
def test_what_is_too_large_to_ask_the_cpu(name: str) -> None:
    size = (LARGE + 1,) if name == "full" else (4, 2)
    words = [heard(lambda d=device: LARGE_OPERATORS[name](d, torch.empty(size, device=d))) for device in ("cpu", "xla")]
    assert words[1] == words[0]


def test_a_warning_that_is_an_error_leaves_the_result() -> None:
    out = torch.zeros(2, device="xla")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="An output with one or more elements was resized"):
            torch.add(row("xla"), 1, out=out)
    assert out.tolist() == [2, 3, 4]
    torch_xla.sync(wait=True)
