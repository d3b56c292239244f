"""Pooling and its backward against CPU, with padding, overlap, ceil mode, ties and NaN."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from parity import assert_same

import torch_xla  # noqa: F401

pytestmark = pytest.mark.usefixtures("no_fallbacks", "seeded")

SIZES = (11, 9, 7)
MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG_POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
WINDOWS = [
    {"kernel_size": 2},  # side by side, with a rest
    {"kernel_size": 3, "stride": 3, "padding": 1},
    {"kernel_size": 2, "stride": 3},  # with gaps
    {"kernel_size": 3, "stride": 2, "padding": 1},  # overlapping
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 5, "stride": 1, "padding": 2},
    {"kernel_size": 7, "stride": 2, "padding": 3},  # in three dimensions too large to unroll
]


def tensor(spatial, dtype=torch.float64):
    return torch.randn((2, 3, *SIZES[:spatial]), dtype=dtype).requires_grad_()


def tied(spatial):
    """Few distinct values, so that most windows have several maxima."""
    return torch.randint(0, 3, (2, 3, *SIZES[:spatial])).to(torch.float64).requires_grad_()


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("window", [*WINDOWS, {"kernel_size": 3, "stride": 1, "dilation": 2, "padding": 1}], ids=str)
def test_max_pool(spatial, window):
    for x in (tensor(spatial), tied(spatial)):
        assert_same(lambda x: MAX_POOL[spatial](x, return_indices=True, **window), x)


@pytest.mark.parametrize("window", WINDOWS[:4], ids=str)
def test_max_pool_of_nan_and_infinity(window):
    x = torch.randn(2, 3, 11, 9)
    x[0, 0, ::3, ::2] = math.nan
    x[0, 1] = -math.inf
    x[1, 2, 4:6] = math.inf
    assert_same(lambda x: F.max_pool2d(x, return_indices=True, **window), x)
    assert_same(lambda x: F.adaptive_max_pool2d(x, (4, 4), return_indices=True), x)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("count_include_pad", [True, False])
def test_avg_pool(spatial, window, count_include_pad):
    assert_same(lambda x: AVG_POOL[spatial](x, count_include_pad=count_include_pad, **window), tensor(spatial))


def test_avg_pool_with_its_own_divisor():
    assert_same(lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), tensor(2))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 11])
def test_adaptive_pool(size):
    for spatial, function in itertools.product((1, 2, 3), (ADAPTIVE_AVG, ADAPTIVE_MAX)):
        assert_same(lambda x, f=function[spatial]: f(x, size), tensor(spatial))


def test_adaptive_pool_mixes_sizes():
    for size in ((None, 3), (11, 4), (2, 9)):
        assert_same(lambda x, size=size: F.adaptive_avg_pool2d(x, size), tensor(2))
        assert_same(lambda x, size=size: F.adaptive_max_pool2d(x, size, return_indices=True), tied(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    assert_same(lambda x: F.max_pool2d(x, 3, 2, 1), tensor(2, dtype))
    assert_same(lambda x: F.avg_pool2d(x, 3, 2, 1), tensor(2, dtype))
    assert_same(lambda x: F.adaptive_avg_pool2d(x, 4), tensor(2, dtype))


def test_integers():
    x = torch.randint(-50, 50, (3, 9, 9))
    assert_same(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), x)
    assert_same(lambda x: F.avg_pool2d(x, 3, 2), x)


def test_unbatched_and_empty():
    for x in (torch.randn(3, 8, 8, requires_grad=True), torch.randn(0, 3, 8, 8, requires_grad=True)):
        assert_same(lambda x: F.max_pool2d(x, 2), x)
        assert_same(lambda x: F.avg_pool2d(x, 2), x)


def test_unpool_undoes_pool():
    def round_trip(x):
        y, indices = F.max_pool2d(x, 2, return_indices=True)
        return F.max_unpool2d(y, indices, 2, output_size=x.shape[-2:])

    assert_same(round_trip, tensor(2))


def test_wrong_window_raises_at_the_call():
    with pytest.raises(RuntimeError, match="pad should be at most half of effective kernel size"):
        F.max_pool2d(torch.randn(1, 1, 8, 8).to("xla"), 2, padding=2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fractional_max_pool(dtype):
    image, samples = torch.randn(2, 3, 13, 9, dtype=dtype, requires_grad=True), torch.rand(2, 3, 2, dtype=dtype)
    for kernel, size in ((2, (5, 4)), ((3, 2), (1, 3)), (3, (8, 7))):
        assert_same(
            lambda x, kernel=kernel, size=size: F.fractional_max_pool2d(
                x, kernel, output_size=size, _random_samples=samples.to(x.device), return_indices=True
            ),
            image,
        )
    volume, samples = torch.randn(2, 3, 6, 8, 7, dtype=dtype, requires_grad=True), torch.rand(2, 3, 3, dtype=dtype)
    assert_same(
        lambda x: F.fractional_max_pool3d(x, 2, output_size=(3, 4, 3), _random_samples=samples.to(x.device)), volume
    )
