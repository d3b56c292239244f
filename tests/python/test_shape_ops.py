"""Joining, repeating, padding and interpolating against CPU."""

import pytest
import torch
import torch.nn.functional as F
from parity import assert_same

import torch_xla  # noqa: F401


def values(*size, dtype=torch.float32):
    if dtype.is_floating_point:
        return torch.randn(size, dtype=dtype).requires_grad_(dtype == torch.float32)
    return torch.randint(0, 100, size).to(dtype)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_promotes_and_skips_empty_vectors(dim):
    other = values(3, 4)
    assert_same(lambda a, b: torch.cat([a, b], dim), values(3, 4), other)
    assert_same(lambda a, b: torch.cat([a, b], dim), values(3, 4, dtype=torch.int64), other)
    assert_same(lambda a, b, e: torch.cat([e, a, e, b], dim), values(3, 4), other, torch.empty(0))


def test_cat_of_empty_vectors():
    assert_same(lambda a, b: torch.cat([a, b]), torch.empty(0), torch.arange(3.0))
    assert_same(lambda a: torch.cat([a, a]), torch.empty(0))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_stack(dim):
    assert_same(lambda a, b: torch.stack([a, b], dim), values(3, 4), values(3, 4))


def test_flip_roll_rot90():
    x = values(3, 4, 5)
    assert_same(lambda x: x.flip(0, -1), x)
    assert_same(lambda x: x.roll(2), x)
    assert_same(lambda x: x.roll((1, -7), (0, 2)), x)
    assert_same(lambda x: x.rot90(1, (1, 2)), x)


@pytest.mark.parametrize("repeats", [(2, 3), (2, 1, 3), (0, 1), (1, 1)])
def test_repeat(repeats):
    assert_same(lambda x: x.repeat(*repeats), values(2, 3))
    assert_same(lambda x: x.tile(repeats), values(2, 3))


@pytest.mark.parametrize("pad", [(1, 2), (1, 0, 0, 3), (-1, 1), (-1, -1, 2, -2), (0, 0, 0, 0, 1, 1)])
def test_constant_pad(pad):
    assert_same(lambda x: F.pad(x, pad, value=1.5), values(2, 4, 5))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_pads_that_repeat_the_image(mode):
    assert_same(lambda x: F.pad(x, (2, 1), mode=mode), values(2, 3, 4))
    assert_same(lambda x: F.pad(x, (2, 1, 0, 3), mode=mode), values(2, 3, 4, 5))
    assert_same(lambda x: F.pad(x, (1, 1, 2, 0, 1, 2), mode=mode), values(1, 2, 3, 4, 5))


def test_replicate_beyond_the_size():
    assert_same(lambda x: F.pad(x, (20, 30), mode="replicate"), values(1, 2, 4))


def test_pixel_and_channel_shuffles():
    assert_same(lambda x: F.pixel_shuffle(x, 2), values(2, 12, 3, 2))
    assert_same(lambda x: F.pixel_unshuffle(x, 2), values(2, 3, 4, 6))
    assert_same(lambda x: F.channel_shuffle(x, 3), values(2, 6, 3, 2).detach())


@pytest.mark.parametrize("size,step", [(2, 1), (3, 2), (2, 3), (5, 5), (1, 1)])
def test_unfold_of_a_dimension(size, step):
    assert_same(lambda x: x.unfold(1, size, step) * 2, values(2, 7, 3))


def test_unfold_and_fold_of_images():
    x = values(2, 3, 6, 7)
    arguments = {"kernel_size": (2, 3), "dilation": (2, 1), "padding": (1, 0), "stride": (1, 2)}
    assert_same(lambda x: F.unfold(x, **arguments), x)
    assert_same(lambda x: F.unfold(x[0], **arguments), x)
    columns = F.unfold(x, **arguments)
    assert_same(lambda c: F.fold(c, (6, 7), **arguments), columns.detach().requires_grad_())


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_nearest_interpolation(mode, dtype):
    assert_same(lambda x: F.interpolate(x, scale_factor=2, mode=mode), values(2, 3, 5, dtype=dtype))
    assert_same(lambda x: F.interpolate(x, size=(7, 3), mode=mode), values(2, 3, 5, 4, dtype=dtype))
    assert_same(lambda x: F.interpolate(x, scale_factor=(1.3, 2.0, 0.7), mode=mode), values(1, 2, 3, 4, 5, dtype=dtype))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode,rank", [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2)])
def test_weighted_interpolation(mode, rank, align_corners):
    x = values(2, 3, *(5, 4, 6)[:rank])
    for arguments in (
        {"scale_factor": 2.0},
        {"scale_factor": 0.6},
        {"size": (9, 1, 3)[:rank]},
        {"size": (5, 4, 6)[:rank]},
    ):
        assert_same(lambda x, a=arguments: F.interpolate(x, mode=mode, align_corners=align_corners, **a), x)


def test_strong_reduction_by_interpolation():
    assert_same(lambda x: F.interpolate(x, size=64, mode="linear"), values(1, 1, 3))
    assert_same(lambda x: F.interpolate(x, size=50, mode="nearest"), values(1, 1, 3))


def test_composed_shape_operators():
    x = values(3, 4)
    assert_same(lambda x: torch.diag_embed(x, 1), x)
    assert_same(lambda x, y: torch.block_diag(x, y), x, values(2, 1))
    assert_same(lambda x: x.narrow_copy(1, 1, 2), x.detach())
    assert_same(lambda x: torch.cartesian_prod(x[0], x[1]), x)
    assert_same(lambda x: torch.kron(x, x), x)
    assert_same(lambda x: torch.split_with_sizes_copy(x, [1, 3], 1), x.detach())


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(kernels, mode, padding, align_corners):
    image = values(2, 3, 4, 5)
    grid = (torch.rand(2, 3, 6, 2) * 3 - 1.5).requires_grad_()
    if mode == "bicubic":  # whose gradient of the grid cancels: in float32 the CPU's own error is 1e-5
        image, grid = (x.detach().double().requires_grad_() for x in (image, grid))
    assert_same(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners), image, grid)
    if mode != "bicubic":
        volume, grid = values(1, 2, 3, 4, 5), (torch.rand(1, 2, 3, 2, 3) * 3 - 1.5).requires_grad_()
        assert_same(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners), volume, grid)
