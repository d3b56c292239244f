"""PyTorch's CPU kernels inside compiled programs: values and gradients, strides, the switch, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from threads import run_in_threads

import torch_xla
import torch_xla.debug.metrics as met
from torch_xla import _XLAC

pytestmark = pytest.mark.skipif(not _XLAC.host_kernels_on(), reason="the plugin takes no host calls")

DEVICE = torch.device("xla")


@pytest.fixture
def without_kernels() -> Iterator[Callable[[bool], None]]:
    """Switches the kernels; they are on again after the test."""
    yield lambda off: _XLAC.set_host_kernels_wanted(not off)
    _XLAC.set_host_kernels_wanted(True)


def program(tensor: torch.Tensor) -> str:
    """The StableHLO of a pending tensor."""
    return _XLAC._get_xla_tensors_hlo([tensor])


def forward_backward(function, inputs, device):
    leaves = [x.to(device).detach().requires_grad_() for x in inputs]
    result = function(*leaves)
    (result * torch.linspace(-1, 1, result.numel(), device=device).view(result.shape)).sum().backward()
    return [result.detach().cpu(), *[leaf.grad.cpu() for leaf in leaves]], result.stride()


def assert_same(function, *inputs, tolerance=2e-5):
    expected, strides = forward_backward(function, inputs, "cpu")
    actual, actual_strides = forward_backward(function, inputs, DEVICE)
    assert actual_strides == strides
    for value, other in zip(actual, expected, strict=True):
        scale = max(1.0, float(other.abs().max()))
        torch.testing.assert_close(value / scale, other / scale, rtol=tolerance, atol=tolerance)


def seconds_of(metric: str) -> float:
    found = met.metric_data(metric)
    return found[1] / 1e9 if found else 0.0


def test_time_in_kernels_is_a_part_of_the_execution():
    x = torch.rand(600, 600, device=DEVICE)
    torch_xla.sync(wait=True)
    in_calls, executing = seconds_of("HostCallTime"), seconds_of("ExecuteTime")
    (x + 1).sum().item()
    assert seconds_of("HostCallTime") == in_calls
    # Two that may run side by side.
    y = (x @ x) + (x.t() @ x)
    y.sum().item()
    torch_xla.sync(wait=True)
    assert 0 < seconds_of("HostCallTime") - in_calls < seconds_of("ExecuteTime") - executing


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x @ y.t(),
        lambda x, y: (x.t() @ y).relu(),
        lambda x, y: x[:, 1:-1] @ y[:, 1:-1].t(),
        lambda x, y: x[::2] @ y.t(),
        lambda x, y: torch.bmm(x.view(4, 64, 128), y.view(4, 64, 128).transpose(1, 2)),
        lambda x, y: torch.addmm(x[:, :1], x, y.t(), beta=0.5, alpha=2),
        lambda x, y: x.expand(2, 256, 128).transpose(0, 1).reshape(512, 128) @ y.t(),
    ],
    ids=["transposed", "both", "narrowed", "stepped", "batched", "added", "expanded"],
)
def test_products(function, dtype, seeded):
    assert_same(function, torch.randn(256, 128, dtype=dtype), torch.randn(256, 128, dtype=dtype))


def test_a_product_is_a_call_that_copies_no_transpose(seeded):
    x = torch.randn(256, 128, device=DEVICE)
    text = program(x.t() @ x)
    assert "torch_pjrt_aten" in text
    assert "t0:128,256;1,128;0" in text


def test_small_and_empty_products_stay_stablehlo():
    x = torch.ones(4, 3, device=DEVICE)
    assert "custom_call" not in program(x @ x.t())
    assert torch.equal(
        (torch.ones(2048, 0, device=DEVICE) @ torch.ones(0, 2048, device=DEVICE)).cpu(), torch.zeros(2048, 2048)
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2, "padding": 2},
        {"groups": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_convolutions(spatial, options, seeded):
    function = [F.conv1d, F.conv2d, F.conv3d][spatial - 1]
    x = torch.randn(2, 4, *[7] * spatial)
    weight = torch.randn(6, 4 // options.get("groups", 1), *[3] * spatial)
    assert_same(lambda x, w, b: function(x, w, b, **options).tanh(), x, weight, torch.randn(6))


def test_transposed_convolution(seeded):
    x, weight = torch.randn(2, 4, 6, 6), torch.randn(4, 3, 3, 3)
    assert_same(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), x, weight)


def test_channels_last_convolution(seeded):
    x = torch.randn(2, 4, 8, 8).to(memory_format=torch.channels_last)
    assert_same(lambda x, w: F.conv2d(x, w, padding=1), x, torch.randn(6, 4, 3, 3))


def test_a_network_keeps_the_order_of_its_convolutions(seeded):
    def block(x, w, v):
        y = F.relu(F.batch_norm(F.conv2d(x, w, padding=1), None, None, training=True))
        return F.relu(F.conv2d(y, v, padding=1) + y).mean((2, 3))

    inputs = torch.randn(8, 16, 32, 32), torch.randn(16, 16, 3, 3) / 12, torch.randn(16, 16, 3, 3) / 12
    assert_same(block, *inputs, tolerance=2e-4)
    x, w, v = (t.to(DEVICE) for t in inputs)
    text = program(block(x, w, v))
    # One transpose brings the input into the order of the kernels. What brings results back is never used.
    sums = [line for line in text.splitlines() if "stablehlo.add" in line and "32x32" in line]
    assert sums
    assert all("tensor<8x32x32x16xf32>" in line for line in sums)


def attended(x: torch.Tensor) -> torch.Tensor:
    heads = x.reshape(8, 4, 64, -1)
    return F.scaled_dot_product_attention(heads, heads, heads)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.conv2d(x, torch.ones(16, 16, 3, 3, device=x.device) / 12, padding=1),
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.batch_norm(x, None, None, training=True),
        attended,
    ],
    ids=["convolution", "max_pool", "batch_norm", "attention"],
)
@pytest.mark.parametrize("num_samples", [8, 64], ids=["small", "large"])
def test_kernels_write_their_results_where_the_program_wants_them(function, num_samples, seeded):
    met.clear_all()
    assert_same(function, torch.randn(num_samples, 16, 32, 32), tolerance=2e-4)
    assert _XLAC.counters().get("HostCallCopiedBytes", 0) == 0


def test_results_of_one_size_do_not_mix(seeded):
    """The gradients of query, key and value, and the pooled values and indices of doubles, are equally large."""
    inputs = [torch.randn(2, 4, 128, 16) for _ in range(3)]
    assert_same(F.scaled_dot_product_attention, *inputs)
    x = torch.randn(4, 8, 64, 64, dtype=torch.float64)
    expected, actual = (F.max_pool2d(y, 2, return_indices=True) for y in (x, x.to(DEVICE)))
    for value, other in zip(actual, expected, strict=True):
        assert torch.equal(value.cpu(), other)


@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_in_training(affine, seeded):
    x = torch.randn(8, 16, 32, 32) * 3 + 2
    parameters = [torch.randn(16), torch.randn(16)] if affine else []
    assert_same(lambda x, *p: F.batch_norm(x, None, None, *p, training=True), x, *parameters, tolerance=2e-4)
    norms = [torch.nn.BatchNorm2d(16), torch.nn.BatchNorm2d(16).to(DEVICE)]
    for norm in norms:
        norm(x.to(norm.running_mean.device))
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(norms[1], name).cpu(), getattr(norms[0], name))


@pytest.mark.parametrize(
    ("is_causal", "mask"),
    [
        (False, None),
        (True, None),
        (False, torch.linspace(-1, 1, 16 * 16).view(16, 16)),
        (False, torch.arange(2 * 256).view(2, 1, 16, 16) % 5 > 0),
    ],
    ids=["full", "causal", "numbers", "flags"],
)
@pytest.mark.parametrize("off", [False, True])
def test_attention(is_causal, mask, off, without_kernels, seeded):
    without_kernels(off)

    def attention(qkv):
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        moved = None if mask is None else mask.to(qkv.device)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=moved, is_causal=is_causal)
        return out.transpose(1, 2).reshape(2, 16, 32)

    assert_same(attention, torch.randn(2, 16, 3, 4, 8))


def test_attention_that_the_kernel_does_not_take(seeded):
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    mask = torch.zeros(5, 7)
    assert_same(lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m), query, key, mask)
    assert_same(lambda q, k: F.scaled_dot_product_attention(q[0, 0], k[0, 0], k[0, 0]), query, key)


def test_switched_off_a_program_is_stablehlo_alone(without_kernels, seeded):
    x = torch.randn(2, 4, 8, 8, device=DEVICE)
    weight = torch.randn(6, 4, 3, 3, device=DEVICE)
    results = []
    for off in (False, True):
        without_kernels(off)
        y = F.conv2d(x, weight)
        assert ("custom_call" in program(y)) != off
        results.append(y.cpu())
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-4)


def test_several_threads(seeded):
    x, weight = torch.randn(8, 8, 16, 16), torch.randn(8, 8, 3, 3)
    expected = F.conv2d(x, weight).flatten(1)
    expected = expected @ expected.t()
    results: list[torch.Tensor] = []

    def work() -> None:
        for _ in range(5):
            y = F.conv2d(x.to(DEVICE), weight.to(DEVICE)).flatten(1)
            results.append((y @ y.t()).cpu())

    run_in_threads([work] * 4)
    assert len(results) == 20
    for result in results:
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-3)


TRAIN = """
import torch, torch_xla
from torch import nn
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(1568, 512))
torch.manual_seed(0)
model = model.to("xla")
x = torch.ones(64, 3, 16, 16).to("xla")
for _ in range(3):
    model(x).square().mean().backward()
    torch_xla.sync()
print(torch_xla._XLAC.host_kernels_on(), bool(model[0].weight.grad.isfinite().all()))
"""


@pytest.mark.parametrize("threads", ["1", "2", "16"])
def test_any_number_of_threads(threads, run_python):
    assert run_python(TRAIN, OMP_NUM_THREADS=threads) == "True True"


def test_switched_off_by_the_environment(run_python):
    assert run_python(TRAIN, XLA_ATEN_KERNELS="0") == "False True"


def test_sync_of_a_program_with_calls_leaves_nothing_running():
    x = torch.ones(512, 512, device=DEVICE)
    for _ in range(3):
        x = x @ x / 512
    torch_xla.sync(wait=True)
    assert torch.equal(x.cpu(), torch.ones(512, 512))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": (2, 3), "stride": (2, 1), "ceil_mode": True},
        {"kernel_size": 2, "dilation": 2},
    ],
    ids=["apart", "overlapping", "uneven", "dilated"],
)
def test_max_pool(options):
    x = torch.randn(4, 8, 50, 51)
    assert_same(lambda x: F.max_pool2d(x, **options), x)
    assert_same(lambda x: F.max_pool2d(x, **options), x.to(memory_format=torch.channels_last))
    indices = F.max_pool2d(x.to(DEVICE), return_indices=True, **options)[1]
    assert torch.equal(indices.cpu(), F.max_pool2d(x, return_indices=True, **options)[1])
    assert "max_pool2d" in program(F.max_pool2d(x.to(DEVICE), **options))


def test_max_pool_passes_nan_on():
    x = torch.randn(2, 8, 64, 64)
    x[0, 0, 1, 1] = float("nan")
    assert torch.equal(F.max_pool2d(x.to(DEVICE), 2).cpu().isnan(), F.max_pool2d(x, 2).isnan())
