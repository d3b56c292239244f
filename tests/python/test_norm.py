"""Normalisation layers against CPU: values, gradients, running statistics."""

import copy

import pytest
import torch
import torch.nn.functional as F
from parity import assert_equal, assert_same
from torch import nn

import torch_xla

pytestmark = pytest.mark.usefixtures("no_fallbacks", "seeded")

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def tensor(*shape, dtype=torch.float64):
    return (torch.randn(shape, dtype=torch.float64) * 2 + 1).to(dtype).requires_grad_()


def check(function, *inputs):
    """Half types against CPU's float32 result: CPU's own half kernels round what they save for backward."""
    if inputs[0].dtype in (torch.float32, torch.float64):
        assert_same(function, *inputs)
        return
    wide = [x.detach().float().requires_grad_(x.requires_grad) for x in inputs]
    narrow = [x.detach().to("xla").requires_grad_(x.requires_grad) for x in inputs]
    expected, actual = function(*wide), function(*narrow)
    assert_equal(actual, expected.to(inputs[0].dtype))
    grad = torch.randn_like(expected).to(inputs[0].dtype)
    expected.backward(grad.float())
    actual.backward(grad.to("xla"))
    assert_equal(
        [x.grad for x in narrow if x.requires_grad],
        [x.grad.to(y.dtype) for x, y in zip(wide, narrow, strict=True) if x.requires_grad],
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 5), (3, 4, 5, 2), (2, 4, 3, 2, 2)])
def test_batch_norm_functional(dtype, shape):
    x, weight, bias = tensor(*shape, dtype=dtype), tensor(4, dtype=dtype), tensor(4, dtype=dtype)
    mean, var = torch.zeros(4, dtype=dtype), torch.ones(4, dtype=dtype)
    check(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), x, weight, bias)
    check(lambda x: F.batch_norm(x, None, None, training=True), x)
    check(lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b), x, weight, bias, mean + 0.5, var + 1)


@pytest.mark.parametrize(
    "options", [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}], ids=str
)
def test_batch_norm_module_keeps_running_statistics(options):
    cpu = nn.BatchNorm2d(4, **options)
    device = copy.deepcopy(cpu).to("xla")
    for _ in range(3):
        x = torch.randn(5, 4, 3, 3) * 3 + 2
        assert_equal(device(x.to("xla")), cpu(x))
    assert_equal(list(device.state_dict().values()), list(cpu.state_dict().values()))
    cpu.eval(), device.eval()
    assert_equal(device(x.to("xla")), cpu(x))


def test_running_statistics_of_a_half_model_in_float32():
    cpu = nn.BatchNorm2d(4)
    device = copy.deepcopy(cpu).to("xla")
    x = torch.randn(5, 4, 3, 3).to(torch.bfloat16)
    assert_equal(device(x.to("xla")), cpu(x))
    assert_equal(device.running_var, cpu.running_var)


def test_batch_norm_does_not_recompile_when_momentum_changes(compiles):
    module = nn.BatchNorm1d(4, momentum=None).to("xla")
    x = torch.randn(8, 4).to("xla")
    for _ in range(3):
        module(x)
        torch_xla.sync()
    before = compiles()
    for _ in range(3):
        module(x)
        torch_xla.sync()
    assert compiles() == before


def test_variance_of_large_numbers_keeps_its_digits():
    x = (torch.randn(64, 3, 4, 4) + 1e4).requires_grad_()
    actual = F.batch_norm(x.to("xla"), None, None, training=True).cpu()
    expected = F.batch_norm(x.double(), None, None, training=True)
    torch.testing.assert_close(actual.double(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normalized", [(5,), (4, 5), (3, 4, 5)])
def test_layer_norm(dtype, normalized):
    x, weight, bias = tensor(3, 4, 5, dtype=dtype), tensor(*normalized, dtype=dtype), tensor(*normalized, dtype=dtype)
    check(lambda x, w, b: F.layer_norm(x, normalized, w, b), x, weight, bias)
    check(lambda x, w: F.layer_norm(x, normalized, w), x, weight)
    check(lambda x: F.layer_norm(x, normalized), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(dtype, groups):
    x, weight, bias = tensor(3, 6, 4, 2, dtype=dtype), tensor(6, dtype=dtype), tensor(6, dtype=dtype)
    check(lambda x, w, b: F.group_norm(x, groups, w, b), x, weight, bias)
    check(lambda x: F.group_norm(x, groups), x)


def test_instance_norm():
    x, weight, bias = tensor(3, 4, 5, 2), tensor(4), tensor(4)
    assert_same(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), x, weight, bias)
    cpu = nn.InstanceNorm2d(4, track_running_stats=True)
    device = copy.deepcopy(cpu).to("xla")
    assert_equal(device(x.detach().float().to("xla")), cpu(x.detach().float()))
    assert_equal(device.running_mean, cpu.running_mean)


def test_other_norms():
    x = tensor(3, 4, 5, 2)
    assert_same(lambda x: F.local_response_norm(x, 2), x)
    assert_same(lambda x, w: F.rms_norm(x, (2,), w), x, tensor(2))
    assert_same(lambda x: F.normalize(x, dim=1), x)


@pytest.mark.parametrize("p", [1, 2, 3, float("inf")])
def test_renorm(p):
    for dim in (0, 1, -1):
        assert_same(lambda x, dim=dim: x.renorm(p, dim, 3.0), tensor(3, 4, 5))


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    cpu = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3), dim=dim)
    device = copy.deepcopy(cpu).to("xla")
    x = torch.randn(5, 4)
    for module, data in ((cpu, x), (device, x.to("xla"))):
        module(data).pow(2).sum().backward()
    assert_equal([p.grad for p in device.parameters()], [p.grad for p in cpu.parameters()])


def test_empty_batch():
    assert_same(lambda x: F.layer_norm(x, (5,)), tensor(0, 5))
    assert_same(lambda x: F.batch_norm(x, torch.zeros(4).to(x), torch.ones(4).to(x)), tensor(0, 4, 3))


def test_batch_norm_of_one_value_raises_as_on_cpu():
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        nn.BatchNorm1d(4).to("xla")(torch.randn(1, 4).to("xla"))
