"""Bad input: one error of the usual class, at the call, in eager PyTorch's words; everything stays usable."""

import re

import pytest
import torch
import torch.nn.functional as F

import torch_xla


def outcome(case, device):
    with pytest.raises(Exception) as info:
        case(device)
        torch_xla.sync(wait=True)
    return type(info.value), str(info.value).split("\n")[0]


def assert_same_error(case):
    """The same class and words as on the CPU, at the call: nothing is cut in between."""
    assert outcome(case, "xla") == outcome(case, "cpu")
    assert (torch.ones(2, device="xla") + 1).tolist() == [2, 2]


@pytest.mark.parametrize(
    "case",
    [
        lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 4, device=d),
        lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
        lambda d: torch.ones(2, 3, device=d).view(4),
        lambda d: torch.ones(2, 3, device=d).sum(5),
        lambda d: torch.ones(3, device=d)[4],
        lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(3, 2, device=d)]),
        lambda d: torch.ones(2, 3, device=d).add_(torch.ones(4, 2, 3, device=d)),
        lambda d: F.linear(torch.ones(2, 3, device=d), torch.ones(4, 5, device=d)),
        lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 2, 3, 3, device=d)),
        lambda d: torch.ones(2, device=d, dtype=torch.int64).add_(1.5),
        lambda d: torch.ones(2, device=d).backward(),
        lambda d: torch.ones(2, device=d, requires_grad=True).add_(1),
        lambda d: bool(torch.ones(2, device=d)),
        lambda d: torch.ones(2, device=d).item(),
        lambda d: torch.ones(4, device=d).as_strided((3, 3), (3, 1)).sum().item(),
        lambda d: torch.empty(-1, device=d),
        lambda d: torch.ones(0, 3, device=d).max(),
        lambda d: torch.ones(0, device=d).min(),
    ],
    ids=[
        "broadcast",
        "matmul",
        "view",
        "dim",
        "index",
        "cat",
        "in_place_broadcast",
        "linear",
        "conv2d",
        "result_type",
        "backward",
        "leaf_in_place",
        "bool",
        "item",
        "as_strided_out_of_bounds",
        "negative_size",
        "max_of_nothing",
        "min_of_nothing",
    ],
)
def test_wrong_arguments(case):
    assert_same_error(case)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool])
@pytest.mark.parametrize("shapes", [((0, 1, 3), (0, 10, 3)), ((2, 1), (2, 5)), ((), (5, 5))], ids=str)
@pytest.mark.parametrize("name", ["true_divide_", "copysign_", "atan2_", "xlogy_"])
def test_a_wrong_size_comes_before_a_wrong_type(name, shapes, dtype):
    def case(device):
        x, y = (torch.ones(shape, dtype=dtype, device=device) for shape in shapes)
        getattr(x, name)(y)

    assert_same_error(case)


@pytest.mark.parametrize("dim", [1, -2])
@pytest.mark.parametrize("name", ["cummax", "cummin", "cumsum", "cumprod", "logcumsumexp", "sort", "median", "mode"])
def test_a_scalar_has_one_dimension(name, dim):
    assert_same_error(lambda d: getattr(torch, name)(torch.tensor(3.0, device=d), dim))


def test_sizes_in_words_are_those_of_the_call():
    assert_same_error(lambda d: torch.ones((), device=d).addcmul_(torch.ones(5, 5, device=d), torch.ones(5, device=d)))
    assert_same_error(lambda d: torch.ones((), device=d).addmm_(torch.ones(2, 4, device=d), torch.ones(4, 3, device=d)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("sizes", [(0,), (3,), (2, 3, 3)])
def test_a_loss_refuses_a_weight_of_another_dtype(dtype, sizes):
    def case(device):
        x = torch.rand(*sizes[:1], 4, *sizes[1:], device=device)
        target = torch.zeros(sizes, dtype=torch.int64, device=device)
        return F.nll_loss(x, target, weight=torch.ones(4, dtype=dtype, device=device))

    assert_same_error(case)


# Meta kernels promote these, or see no dtypes.
MIXED_DTYPES = {
    "add_": lambda x, y: x.clone().add_(y.cfloat()),
    "addcmul_": lambda x, y: x.clone().addcmul_(y.cfloat(), y),
    "addmm": lambda x, y: torch.addmm(x, y.double(), y.double()),
    "addmm_": lambda x, y: x.clone().addmm_(y.double(), y.double()),
    "batch_norm": lambda x, y: F.batch_norm(x, None, None, y[0].double(), y[0].double(), training=True),
    "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x, y.double()),
    "clamp": lambda x, y: torch.clamp(x.cfloat(), y, y),
    "conv1d": lambda x, y: F.conv1d(x[None], y[None].double()),
    "cross": lambda x, y: torch.linalg.cross(x.expand(3, 2, 2), y.double().expand(3, 2, 2), dim=0),
    "cross_entropy": lambda x, y: F.cross_entropy(x, y[0].int()),
    "grid_sample": lambda x, y: F.grid_sample(x[None, None], torch.stack([y, y], -1)[None].double()),
    "heaviside": lambda x, y: torch.heaviside(x, y.double()),
    "index_add": lambda x, y: x.index_add(0, torch.tensor([0, 1], device=x.device), y.half()),
    "index_copy": lambda x, y: x.index_copy(0, torch.tensor([0, 1], device=x.device), y.double()),
    "index_put": lambda x, y: x.index_put((torch.tensor([0, 1], device=x.device),), y.bfloat16()),
    "layer_norm": lambda x, y: F.layer_norm(x, (2,), y[0].double()),
    "linear": lambda x, y: F.linear(x, y, y[0].double()),
    "put_": lambda x, y: x.clone().put_(torch.tensor([0], device=x.device), y[0, :1].double()),
    "sub": lambda x, y: x - (y > 0),
    "sub_": lambda x, y: x.clone().sub_(y > 0),
}


@pytest.mark.parametrize("name", MIXED_DTYPES)
def test_dtypes_that_do_not_go_together_are_refused(name):
    assert_same_error(lambda d: MIXED_DTYPES[name](torch.ones(2, 2, device=d), torch.ones(2, 2, device=d)))


# A number that the dtype cannot hold.
TOO_LARGE = {
    "assignment": lambda x: x.__setitem__(0, 300),
    "clamp": lambda x: x.clamp(max=300),
    "clamp_min_": lambda x: x.clamp_min_(300),
    "full": lambda x: torch.full((2,), 300, dtype=x.dtype, device=x.device),
    "full_like": lambda x: torch.full_like(x, 300),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0], device=x.device), 300),
    "new_full": lambda x: x.new_full((2,), 300),
    "pad": lambda x: F.pad(x, (1, 1), value=300),
    "scatter": lambda x: x.scatter(0, torch.tensor([0], device=x.device), 300),
    "complex": lambda x: x.float().__setitem__(0, 1j),
    "half": lambda x: x.half().new_full((2,), 1e9),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_number_that_the_dtype_cannot_hold_is_refused(name):
    assert_same_error(lambda d: TOO_LARGE[name](torch.ones(2, dtype=torch.uint8, device=d)))


def test_numbers_that_promote_or_fit_are_taken():
    x = torch.ones(2, dtype=torch.uint8, device="xla")
    assert x.clamp(max=300.0).dtype == torch.float32
    assert torch.full((1,), 255, dtype=torch.uint8, device="xla").item() == 255
    assert torch.full((1,), float("inf"), dtype=torch.float16, device="xla").item() == float("inf")
    assert torch.full((1,), 2j, device="xla").dtype == torch.complex64


def test_mixed_devices_are_refused_in_either_order():
    x, y = torch.ones(2, device="xla"), torch.ones(2)
    for call in (lambda: x + y, lambda: y + x, lambda: torch.cat([x, y]), lambda: F.linear(x, torch.ones(3, 2))):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call()
    assert (x + torch.tensor(1.0)).tolist() == [2, 2], "a CPU number is not a mixed device"
    assert x.tolist() == [1, 1]


def test_an_in_place_write_to_a_saved_tensor_is_detected():
    x = torch.ones(2, device="xla", requires_grad=True)
    y = x.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert x.tolist() == [1, 1]


def test_dtypes_that_xla_lacks_are_named():
    with pytest.raises(TypeError, match="tensors of dtype ComplexHalf are not supported"):
        torch.empty(2, dtype=torch.complex32, device="xla")
    assert torch.ones(1, device="xla").item() == 1


def test_reading_a_freed_storage_is_an_error_and_refilling_it_works():
    x = torch.arange(4.0).to("xla")
    storage = x.untyped_storage()
    storage.resize_(0)
    for use in (lambda: x + 1, lambda: x[1:].add_(1), lambda: x.cpu()):
        with pytest.raises(
            RuntimeError, match="requiring a storage size of 16 are out of bounds for storage of size 0"
        ):
            use()
    storage.resize_(16)
    x.copy_(torch.full((4,), 3.0))
    assert (x + 1).tolist() == [4] * 4


def test_no_such_device():
    for call in (
        lambda: torch.ones(1, device="xla:99"),
        lambda: torch.ones(1).to("xla:99"),
        lambda: torch.ones(1, device="xla:0").to("xla:99"),
    ):
        with pytest.raises(RuntimeError, match="xla:99: invalid device ordinal; there"):
            call()
    with torch.xla.device(99), pytest.raises(RuntimeError, match="xla:99: invalid device ordinal; there"):
        torch.ones(1, device="xla")
    torch_xla.sync(wait=True)
    assert torch.ones(1, device="xla:0").item() == 1


def test_numpy_of_a_device_tensor_is_refused_as_for_other_devices():
    with pytest.raises(TypeError, match="can't convert xla:0 device type tensor to numpy"):
        torch.ones(1, device="xla").numpy()


def test_a_failed_compilation_loses_nothing():
    x = torch.ones(3).to("xla")
    y = x * 7.25 + 1
    torch_xla.set_custom_compile_options({"xla_no_such_option": True})
    try:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="xla_no_such_option"):
                torch_xla.sync(wait=True)
    finally:
        torch_xla.set_custom_compile_options({})
    assert y.tolist() == [8.25] * 3 and x.tolist() == [1] * 3


def test_device_memory_exhausted_is_an_error_and_the_tensors_stay(run_python):
    program = """
import torch, torch_xla
x = torch.arange(3.0).to("xla")
y = x + 1
huge = torch.ones(1 << 23, 1 << 23, device="xla")  # 256 TiB
try:
    torch_xla.sync(wait=True)
except torch.OutOfMemoryError as error:
    print(error)
# While it lives, it keeps no other tensor from being read.
print(y.tolist(), x.tolist())
del huge
torch_xla.sync(wait=True)
"""
    message, values = run_python(program, XLA_IR_DEBUG="1").split("\n")
    assert re.match(r"xla:0 out of memory. Tried to allocate 262144.00 GiB for results and temporaries; the", message)
    assert "cut by sync, at <module>@<string>:7, whose largest value is f32[8388608,8388608] of `aten::fill`" in message
    assert message.endswith(", at <module>@<string>:5)")
    assert values == "[1.0, 2.0, 3.0] [0.0, 1.0, 2.0]"


OVERLAPPING_WRITES = {
    "add_": lambda x: x[1:].add_(x[:-1]),
    "add_ to its transpose": lambda x: x[:9].view(3, 3).add_(x[:9].view(3, 3).t()),
    "addcmul_": lambda x: x[:4].addcmul_(x[1:5], x[4:8]),
    "cat out": lambda x: torch.cat([x[:4], x[1:5]], out=x[2:10]),
    "clamp_": lambda x: x[1:5].clamp_(x[0:4], x[2:6]),
    "copy_": lambda x: x[1:].copy_(x[:-1]),
    "cumsum out": lambda x: torch.cumsum(x[:4], 0, out=x[2:6]),
    "foreach": lambda x: torch._foreach_add_([x[:4], x[8:]], [x[1:5], x[8:]]),
    "index_add_": lambda x: x[:4].index_add_(0, torch.tensor([0, 1], device=x.device), x[1:3]),
    "index_add_ of itself": lambda x: x.index_add_(0, torch.arange(12, device=x.device), x),
    "index_put_": lambda x: x[:4].index_put_((torch.tensor([0, 1], device=x.device),), x[1:3]),
    "mul out": lambda x: torch.mul(x[:-1], 2, out=x[1:]),
    "scatter_": lambda x: x[:4].scatter_(0, torch.tensor([0, 1], device=x.device), x[1:3]),
    "setitem": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "expanded add_": lambda x: x[:1].expand(4).add_(1),
    "expanded copy_": lambda x: x[:1].expand(4).copy_(x[:4]),
    "expanded normal_": lambda x: x[:1].expand(4).normal_(),
}


@pytest.mark.parametrize("name", OVERLAPPING_WRITES)
def test_overlapping_writes_are_refused_as_on_cpu(name):
    write = OVERLAPPING_WRITES[name]
    with pytest.raises(RuntimeError, match="single memory location") as expected:
        write(torch.arange(12.0))
    x = torch.arange(12.0, device="xla")
    with pytest.raises(RuntimeError, match="single memory location") as error:
        write(x)
    assert str(error.value).splitlines()[0] == str(expected.value).splitlines()[0]
    assert x.tolist() == list(range(12))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(x),
        lambda x: x[:4].add_(x[4:8]),
        lambda x: x[:1].expand(4).fill_(2),
        lambda x: torch._foreach_mul_([x[:4], x[4:8]], [x[4:8], x[4:8]]),
        lambda x: torch.mul(x[::2], x[1::2], out=x[::2]),
    ],
)
def test_harmless_overlap_is_accepted_as_on_cpu(write):
    expected, x = torch.arange(12.0), torch.arange(12.0, device="xla")
    write(expected), write(x)
    assert x.tolist() == expected.tolist()
