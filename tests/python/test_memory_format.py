"""Strides of results equal the CPU's where a memory format other than row-major goes in."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla


def image(device):
    return torch.rand(2, 4, 6, 6).to(device).to(memory_format=torch.channels_last)


def volume(device):
    return torch.rand(2, 4, 6, 6, 6).to(device).to(memory_format=torch.channels_last_3d)


IMAGE_OPERATORS = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "bce": lambda x: F.binary_cross_entropy(x, x.contiguous(), reduction="none"),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "antialias": lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True),
    "cat": lambda x: torch.cat([x, x], 1),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "conv2d": lambda x: F.conv2d(x, torch.ones(3, 4, 3, 3, device=x.device)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, torch.ones(4, 3, 3, 3, device=x.device)),
    "depthwise": lambda x: F.conv2d(x, torch.ones(4, 1, 3, 3, device=x.device), groups=4),
    "dropout": F.dropout,
    "group_norm": lambda x: torch.native_group_norm(x, None, None, 2, 4, 36, 2, 1e-5)[0],
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "relu": F.relu,
    "replicate": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "roll": lambda x: x.roll(1, 1),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "softmax": lambda x: F.softmax(x, 1),
    "to": lambda x: x.to(torch.bfloat16),
}
VOLUME_OPERATORS = {
    "conv3d": lambda x: F.conv3d(x, torch.ones(3, 4, 2, 2, 2, device=x.device)),
    "conv_transpose3d": lambda x: F.conv_transpose3d(x, torch.ones(4, 3, 2, 2, 2, device=x.device)),
    # Whether the CPU writes channels last depends on the convolution that it chooses.
    "conv3d of one": lambda x: F.conv3d(x[:1], torch.ones(3, 4, 2, 2, 2, device=x.device)),
    "conv3d of doubles": lambda x: F.conv3d(x.double(), torch.ones(3, 4, 2, 2, 2, device=x.device).double()),
    "reflect": lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), mode="reflect"),
    "max_pool3d": lambda x: F.max_pool3d(x, 2),
}


def assert_same_strides(make, operator):
    strides = []
    for device in ("cpu", "xla"):
        x = make(device).requires_grad_()
        y = operator(x)
        (y * y).sum().backward()
        strides.append((y.stride(), x.grad.stride()))
    assert strides[0] == strides[1]


@pytest.mark.parametrize("name", IMAGE_OPERATORS)
def test_channels_last(name):
    assert_same_strides(image, IMAGE_OPERATORS[name])


@pytest.mark.parametrize("name", VOLUME_OPERATORS)
def test_channels_last_3d(name):
    assert_same_strides(volume, VOLUME_OPERATORS[name])


def test_a_weight_in_channels_last_is_enough():
    for device in ("cpu", "xla"):
        weight = torch.ones(3, 4, 3, 3, device=device).to(memory_format=torch.channels_last)
        assert F.conv2d(torch.ones(2, 4, 6, 6, device=device), weight).stride() == (48, 1, 12, 3)


def test_losses_of_pixels_are_row_major():
    target = torch.zeros(6, 6, 2, dtype=torch.int64).permute(2, 1, 0)
    x = torch.rand(6, 6, 4, 2).permute(3, 2, 1, 0)
    losses = [F.nll_loss(x.to(device), target.to(device), reduction="none") for device in ("cpu", "xla")]
    assert losses[0].stride() == losses[1].stride() == (36, 6, 1)


def test_convolution_in_channels_last_equals_cpu():
    torch.manual_seed(0)
    x, weight = torch.randn(2, 4, 6, 6), torch.randn(3, 4, 3, 3)
    results = []
    # In float64: CPU's own float32 gradient is 1.4e-5 off.
    for device, dtype in (("cpu", torch.float64), ("xla", torch.float32)):
        a = x.to(device, dtype).to(memory_format=torch.channels_last).requires_grad_()
        w = weight.to(device, dtype).to(memory_format=torch.channels_last).requires_grad_()
        y = F.conv2d(a, w)
        y.sin().sum().backward()
        results.append([t.detach().cpu() for t in (y, a.grad, w.grad)])
    for expected, actual in zip(*results, strict=True):
        scale = expected.abs().max()
        torch.testing.assert_close(actual / scale, (expected / scale).float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_to_keeps_strides_both_ways(dtype):
    host = torch.rand(4, 2, 6, 6).transpose(0, 1)
    there = host.to("xla", dtype)
    assert there.stride() == host.stride()
    assert there.cpu().stride() == host.stride()
    assert there.double().stride() == host.stride()
    assert torch.equal(there.cpu(), host.to(dtype))


NOT_DENSE = {
    "stepped": lambda x: x.transpose(0, 1)[:, :, ::2],
    "real": lambda x: torch.view_as_complex(x).transpose(0, 1).real,
    "expanded": lambda x: x[:, :1].transpose(0, 2).expand(2, 5, 4),
    "narrowed": lambda x: x.permute(2, 0, 1)[:, 1:3],
    "sliced channels last": lambda x: x.view(1, 4, 5, 2).to(memory_format=torch.channels_last)[:, 1:3],
}


@pytest.mark.parametrize("name", NOT_DENSE)
@pytest.mark.parametrize(
    "copy",
    [lambda x: x.to("xla"), lambda x: x.to("xla", torch.bfloat16), torch.clone, torch.zeros_like, lambda x: x + 1],
    ids=["to", "to another dtype", "clone", "zeros_like", "add"],
)
def test_copies_of_views_with_holes_keep_the_order_of_dimensions(copy, name):
    view = NOT_DENSE[name](torch.arange(40.0).view(4, 5, 2))
    expected = view.clone().stride()
    assert copy(view).stride() == expected
    there = NOT_DENSE[name](torch.arange(40.0).view(4, 5, 2).to("xla"))
    copied = copy(there)
    assert copied.stride() == (view.stride() if copied is there else expected)
    assert torch.equal(there.to("cpu"), view)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("size", [0, 3])
def test_a_resized_out_gets_the_strides_that_a_new_result_has(size):
    def cases(device):
        x = torch.eye(3, device=device).expand(2, 3, 3).contiguous()
        image = torch.ones(2, 2, 2, 2, device=device).to(memory_format=torch.channels_last)
        yield lambda **out: torch.cat([image, image], 1, **out)
        yield lambda **out: torch.cholesky_inverse(x, **out)
        yield lambda **out: torch.add(image, 1, **out)

    for expected, actual in zip(cases("cpu"), cases("xla"), strict=True):
        strides = []
        for case, device in ((expected, "cpu"), (actual, "xla")):
            out = torch.empty(size, device=device)
            case(out=out)
            strides.append((out.stride(), case().stride()))
        assert strides[0] == strides[1]


EMPTY = {
    "row-major": lambda d: torch.empty(6, 7, 0, device=d),
    "transposed": lambda d: torch.empty(6, 0, 7, device=d).transpose(0, 2),
    "view": lambda d: torch.empty(6, 7, 8, device=d).permute(2, 0, 1)[:, :, 3:3],
    "expanded": lambda d: torch.empty(1, 7, 0, device=d).expand(6, 7, 0),
    "reversed": lambda d: torch.empty(0, 7, 6, device=d).permute(2, 1, 0),
    "channels last": lambda d: torch.empty(0, 4, 3, 3, device=d).to(memory_format=torch.channels_last),
}
EMPTY_OPERATORS = {
    "add": lambda x: x + 1,
    "add itself": lambda x: x + x,
    "add broadcast": lambda x: x + torch.ones(1, device=x.device),
    "exp": torch.exp,
    "gt": lambda x: x > 0,
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "clone": torch.clone,
    "contiguous": lambda x: x.contiguous(),
    "empty_like": torch.empty_like,
    "zeros_like": torch.zeros_like,
    "to": lambda x: x.double(),
    "sort": lambda x: x.sort(),
    "sort of dim 0": lambda x: x.sort(0),
    "topk": lambda x: x.topk(0),
    "cumsum": lambda x: x.cumsum(0),
    "cummax": lambda x: x.cummax(-1),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "tril": torch.tril,
    "softmax": lambda x: x.softmax(-1),
    "cat": lambda x: torch.cat([x, x]),
    "stack": lambda x: torch.stack([x, x]),
    "index": lambda x: x[:, [0]] if x.shape[1] else x,
    "gather": lambda x: x.gather(0, torch.zeros(x.shape, dtype=torch.int64, device=x.device)),
    "sum of dim 0": lambda x: x.sum(0),
    "sum, kept": lambda x: x.sum(0, keepdim=True),
    "amax of dim 1": lambda x: x.amax(1) if x.shape[1] else x,
    "matmul": lambda x: x @ x.mT,
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "dropout": F.dropout,
    "bernoulli": torch.bernoulli,
    "pad": lambda x: F.pad(x, (1, 1), value=1.0)[..., :0],
    "reshape": lambda x: x.reshape(-1),
    "fft": torch.fft.fft2,
}


def strides_of(results):
    return [(x.shape, x.stride()) for x in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("kind", EMPTY)
@pytest.mark.parametrize("operator", EMPTY_OPERATORS)
def test_strides_of_tensors_without_elements(operator, kind):
    function = EMPTY_OPERATORS[operator]
    try:
        expected = strides_of(function(EMPTY[kind]("cpu")))
    except (RuntimeError, IndexError):
        pytest.skip("the CPU refuses it")
    results = function(EMPTY[kind]("xla"))
    assert strides_of(results) == expected
    torch_xla.sync(wait=True)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("make", [image, volume])
def test_group_norm_keeps_the_format(make, affine):
    def operator(x):
        return torch.nn.GroupNorm(2, 4, affine=affine, device=x.device)(x)

    assert_same_strides(make, operator)


# Row-major and channels last at once: eager PyTorch still tells which.
ONE_CHANNEL_OPERATORS = {
    "add": lambda x: x + 1,
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2, 1),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "cat": lambda x: torch.cat([x, x]),
    "clone": torch.clone,
    "conv2d": lambda x: F.conv2d(x, torch.ones(3, x.size(1), 1, 1, device=x.device)),
    "conv2d of one": lambda x: F.conv2d(x, torch.ones(1, x.size(1), 1, 1, device=x.device)),
    "global max": lambda x: F.adaptive_max_pool2d(x, 1),
    "group_norm": lambda x: F.group_norm(x, 1),
    "max_pool2d": lambda x: F.max_pool2d(x, 2, 1),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 1),
    "prelu": lambda x: F.prelu(x, torch.ones(1, device=x.device)),
    "relu": F.relu,
    "softmax": lambda x: torch.softmax(x, 1),
}


@pytest.mark.parametrize("sizes", [(4, 1, 6, 6), (1, 3, 6, 6), (2, 3, 1, 6), (1, 1, 6, 6)], ids=str)
@pytest.mark.parametrize("name", ONE_CHANNEL_OPERATORS)
def test_strides_of_dimensions_of_one_element(name, sizes):
    def operator(x):
        # The same sizes and other strides come first: they are another signature.
        ONE_CHANNEL_OPERATORS[name](torch.rand(sizes).to(x.device))
        return ONE_CHANNEL_OPERATORS[name](x)

    if 1 in sizes[2:] and "pool" in name and "adaptive" not in name:
        pytest.skip("the window is larger")
    assert_same_strides(lambda d: torch.rand(sizes).to(d).to(memory_format=torch.channels_last), operator)
