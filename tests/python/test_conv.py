"""Convolution and its backward against CPU: dimensions, strides, padding, dilation, groups, transposition."""

import pytest
import torch
import torch.nn.functional as F
from parity import assert_same, on_xla
from torch import nn

import torch_xla  # noqa: F401

pytestmark = pytest.mark.usefixtures("no_fallbacks", "seeded")

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
SIZES = (9, 8, 7)
KERNEL = (3, 2, 3)


def tensor(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype).mul(0.5).requires_grad_()


def check(function, channels, weight_shape, spatial, dtype=torch.float64, bias=None, **options):
    x = tensor(2, channels, *SIZES[:spatial], dtype=dtype)
    weight = tensor(*weight_shape, *KERNEL[:spatial], dtype=dtype)
    if bias is None:
        assert_same(lambda x, w: function[spatial](x, w, **options), x, weight)
    else:
        assert_same(lambda x, w, b: function[spatial](x, w, b, **options), x, weight, tensor(bias, dtype=dtype))


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2, "padding": 2},
        {"stride": 3, "padding": 2, "dilation": 2},
        {"padding": "same"},
    ],
    ids=str,
)
def test_convolution(spatial, options):
    check(CONV, 4, (6, 4), spatial, bias=6, **options)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"stride": 2, "dilation": 3, "output_padding": 2}],
    ids=str,
)
def test_transposed_convolution(spatial, options):
    check(TRANSPOSED, 4, (4, 6), spatial, bias=6, **options)


# (input channels, output channels, groups): split, depthwise, depthwise with a multiplier, many groups.
GROUPS = [(6, 4, 2), (6, 6, 6), (4, 12, 4), (72, 36, 36)]


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2}], ids=str)
@pytest.mark.parametrize(("inputs", "outputs", "groups"), GROUPS)
def test_grouped_convolution(inputs, outputs, groups, options):
    check(CONV, inputs, (outputs, inputs // groups), 2, groups=groups, **options)
    check(CONV, inputs, (outputs, inputs // groups), 1, groups=groups, **options)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}], ids=str)
@pytest.mark.parametrize(("inputs", "outputs", "groups"), [(6, 4, 2), (6, 6, 6), (12, 4, 4), (4, 12, 4)])
def test_grouped_transposed_convolution(inputs, outputs, groups, options):
    check(TRANSPOSED, inputs, (inputs, outputs // groups), 2, groups=groups, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    check(CONV, 4, (6, 4), 2, dtype=dtype, bias=6, stride=2, padding=1)
    check(CONV, 4, (4, 1), 2, dtype=dtype, groups=4)
    check(TRANSPOSED, 4, (4, 6), 2, dtype=dtype, bias=6, stride=2)


def test_integers():
    x, w = torch.randint(-9, 9, (2, 3, 6, 6)), torch.randint(-9, 9, (4, 3, 3, 3))
    assert_same(lambda x, w: F.conv2d(x, w, padding=1), x, w)


def test_complex():
    x, w = (torch.randn(shape, dtype=torch.complex64, requires_grad=True) for shape in ((2, 3, 6, 6), (4, 3, 3, 3)))
    assert_same(lambda x, w: F.conv2d(x, w, padding=1), x, w)


def test_unbatched_and_empty():
    assert_same(F.conv2d, tensor(3, 6, 6), tensor(4, 3, 3, 3))
    assert_same(F.conv2d, tensor(0, 3, 6, 6), tensor(4, 3, 3, 3))


def test_channels_last():
    def run(x, w):
        return F.conv2d(x.contiguous(memory_format=torch.channels_last), w, padding=1)

    assert_same(run, tensor(2, 3, 6, 6), tensor(4, 3, 3, 3))


def test_only_the_gradients_that_are_asked_for():
    x, w = torch.randn(2, 3, 6, 6, dtype=torch.float64), tensor(4, 3, 3, 3)
    assert_same(lambda x, w: F.conv2d(x, w), x, w)
    assert_same(lambda x, w: F.conv2d(x, w), tensor(2, 3, 6, 6), w.detach())


def test_double_backward():
    def gradient_penalty(x, w):
        (grad,) = torch.autograd.grad(F.conv2d(x, w, stride=2, padding=1).pow(3).sum(), x, create_graph=True)
        return grad.pow(2).sum()

    assert_same(gradient_penalty, tensor(2, 3, 6, 6), tensor(4, 3, 3, 3))


@pytest.mark.parametrize(
    ("x_shape", "weight_shape", "options"),
    [
        ((2, 3, 6, 6), (4, 2, 3, 3), {}),
        ((2, 3, 2, 2), (4, 3, 3, 3), {}),
        ((2, 3, 6, 6), (4, 3, 3, 3), {"groups": 2}),
        ((2, 3, 6), (4, 3, 3, 3), {}),
    ],
)
def test_wrong_shapes_raise_as_on_cpu(x_shape, weight_shape, options):
    x, weight = torch.randn(x_shape), torch.randn(weight_shape)
    with pytest.raises(RuntimeError) as expected:
        F.conv2d(x, weight, **options)
    with pytest.raises(RuntimeError) as actual:
        F.conv2d(on_xla(x), on_xla(weight), **options)
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_lazy_module_trains():
    torch.manual_seed(0)
    cpu = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3, stride=2))
    x = torch.randn(3, 1, 12, 12)

    def losses(module, x):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        values = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = module(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            values.append(loss.item())
        return values

    import copy

    device = copy.deepcopy(cpu).to("xla")
    assert losses(device, x.to("xla")) == pytest.approx(losses(cpu, x), rel=1e-5)
