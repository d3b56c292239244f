"""Bad input: one error of the usual class, at the call, in eager PyTorch's words; everything stays usable."""

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
    ],
)
def test_wrong_arguments(case):
    assert_same_error(case)


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
except RuntimeError as error:
    print(type(error).__name__)
del huge
print(y.tolist(), x.tolist())
"""
    assert run_python(program).split("\n") == ["OutOfMemoryError", "[1.0, 2.0, 3.0] [0.0, 1.0, 2.0]"]
