"""Sorting and order statistics against CPU, with ties and NaN, by PyTorch's kernels and by StableHLO alone."""

import math

import pytest
import torch
from parity import assert_equal, assert_same, on_xla

import torch_xla  # noqa: F401

pytestmark = pytest.mark.usefixtures("kernels")

TIED = torch.tensor([[3, 1, 3, 2, 1], [0, 0, 5, 5, 4]])
WITH_NAN = torch.tensor([[3.0, math.nan, 1.0, -math.inf, math.nan], [math.inf, 2.0, -0.0, 0.0, 1.0]])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_sort_is_stable(dtype, descending):
    for dim in (0, 1):
        assert_same(lambda x, dim=dim: torch.sort(x, dim=dim, descending=descending, stable=True), TIED.to(dtype))


@pytest.mark.parametrize("descending", [False, True])
def test_sort_puts_nan_at_the_large_end(descending):
    assert_same(lambda x: torch.sort(x, descending=descending, stable=True), WITH_NAN)


def test_sort_differentiates():
    assert_same(lambda x: x.sort(0)[0], torch.randn(5, 3, requires_grad=True))
    assert_same(lambda x: x.msort(), torch.randn(5, 3, requires_grad=True))
    assert_same(lambda x: x.argsort(stable=True), TIED)


def test_sort_of_scalars_and_of_nothing():
    assert_same(lambda x: x.sort(), torch.tensor(3.0))
    assert_same(lambda x: x.sort(1), torch.empty(2, 0))


def pointed_to(x, values, indices, dim):
    """The elements that the indices name; which of equal ones they name is free."""
    return values, x.gather(dim, indices)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("x", [TIED.float(), TIED, WITH_NAN])
def test_topk(x, largest):
    for dim in (0, 1):

        def top(x, dim=dim):
            return pointed_to(x, *x.topk(2, dim, largest=largest), dim)

        assert_equal(top(on_xla(x)), top(x))


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool, torch.bfloat16, torch.int64])
def test_ties_are_the_cpus_choice(kernels, dtype):
    if kernels == "stablehlo":
        pytest.skip("which of equal elements comes first is the algorithm's choice")
    x = torch.randint(0, 4, (4, 2000), generator=torch.Generator().manual_seed(0)).to(dtype)
    calls = [lambda x: x.sort(), lambda x: x.sort(0, descending=True), torch.argsort, lambda x: x.mode(1)]
    if dtype != torch.bool:
        calls += [lambda x: x.topk(7), lambda x: x.kthvalue(50), lambda x: x.median(1)]
    for call in calls:
        assert_same(call, x)


def test_topk_differentiates():
    assert_same(lambda x: x.topk(2)[0], torch.randn(3, 6, requires_grad=True))
    assert_same(lambda x: x.topk(1), torch.tensor(3.0))
    assert_same(lambda x: x.topk(0), torch.randn(3))


@pytest.mark.parametrize("keepdim", [False, True])
def test_kthvalue(keepdim):
    x = torch.randn(4, 5, requires_grad=True)
    assert_same(lambda x: x.kthvalue(2, 1, keepdim=keepdim), x)
    assert_same(lambda x: x.kthvalue(4, 0, keepdim=keepdim), x)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians(name):
    x = torch.randn(4, 6, requires_grad=True)
    assert_same(lambda x: getattr(x, name)(), x)
    assert_same(lambda x: getattr(x, name)(1), x)
    assert_same(lambda x: getattr(x, name)(0, keepdim=True), x)
    assert_same(lambda x: getattr(x, name)(), WITH_NAN)
    assert_equal(getattr(on_xla(WITH_NAN), name)(1)[0], getattr(WITH_NAN, name)(1)[0])
    assert_same(lambda x: getattr(x, name)(1)[0], TIED)
    assert_same(lambda x: getattr(x, name)(1)[0], torch.full((2, 3), math.nan))


def test_mode_prefers_the_smallest_of_the_most_frequent():
    for x in (TIED, TIED.t(), torch.tensor([[2, 2, 1, 1, 0]]), torch.tensor([[5.0, 1.0, 5.0]])):

        def most_frequent(x):
            return pointed_to(x, *x.mode(1, keepdim=True), 1)

        assert_equal(most_frequent(on_xla(x)), most_frequent(x))
    assert_same(lambda x: x.mode(), torch.tensor(4.0))


@pytest.mark.parametrize("bounds", [(0, 0), (-1, 1), (0.5, 0.5)])
def test_histc(bounds):
    x = torch.tensor([-1.0, -0.5, 0.0, 0.25, 0.5, 0.5, 1.0, 3.0])
    assert_same(lambda x: torch.histc(x, 4, *bounds), x)
    assert_same(lambda x: torch.histc(x, 3), torch.full((4,), 2.0))


def test_histc_ignores_nan():
    assert_same(lambda x: torch.histc(x, 4, 0, 4), torch.tensor([math.nan, 1.0, 2.5]))


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantile(interpolation):
    x = torch.randn(4, 7, requires_grad=True)
    assert_same(lambda x: torch.quantile(x, 0.3, dim=1, interpolation=interpolation), x)


def test_unique_in_the_fallback():
    assert_same(lambda x: torch.unique(x), TIED)
    assert_same(lambda x: torch.bincount(x.flatten()), TIED)


def test_histc_of_integers():
    """Other accelerators count integers, and models rely on it; the CPU does not."""
    x = torch.tensor([0, 3, 1, 3, 7, 9, -1], dtype=torch.int32)
    counts = torch.histc(x.to("xla"), bins=8, min=0, max=7)
    assert counts.dtype == torch.int32
    assert counts.tolist() == [1, 1, 0, 2, 0, 0, 0, 1]
