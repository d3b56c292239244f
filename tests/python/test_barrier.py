"""xm.optimization_barrier: gradients, transforms, dtypes, views, errors, and that XLA honours it."""

from __future__ import annotations

import copy

import pytest
import torch

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug

DEVICE = torch.device("xla")
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]


def barrier(tensor: torch.Tensor) -> torch.Tensor:
    return xm.optimization_barrier([tensor])[0]


def ones(*size: int, requires_grad: bool = False) -> torch.Tensor:
    return torch.ones(*size, device=DEVICE, requires_grad=requires_grad)


# --- derivatives ------------------------------------------------------------------------------------------------------


def test_gradients_flow_through_each_of_several_tensors():
    a = torch.randn(3, 4, device=DEVICE, requires_grad=True)
    b = torch.randn(2, device=DEVICE, requires_grad=True)
    count = torch.arange(5, device=DEVICE)
    out_a, out_b, out_count = xm.optimization_barrier([a * 2, b, count])
    assert out_count.dtype == torch.int64 and not out_count.requires_grad
    (out_a.sum() + (out_b * 3).sum()).backward()
    assert torch.equal(a.grad.cpu(), torch.full((3, 4), 2.0))
    assert torch.equal(b.grad.cpu(), torch.full((2,), 3.0))


def test_an_unused_result_has_no_gradient():
    a, b = ones(2, requires_grad=True), ones(2, requires_grad=True)
    out, _ = xm.optimization_barrier([a, b])
    out.sum().backward()
    assert torch.equal(a.grad.cpu(), torch.ones(2)) and b.grad is None


def test_backward_is_one_barrier_over_the_gradients():
    a, b = ones(2, requires_grad=True), ones(3, requires_grad=True)
    torch_xla.sync()
    out_a, out_b = xm.optimization_barrier([a, b])
    grads = torch.autograd.grad(out_a.sum() + out_b.sum(), [a, b])
    text = torch_xla.debug.tensors_text(list(grads))
    assert text.count("xla::optimization_barrier") == 1 and "num_outputs=2" in text


def test_second_derivative():
    x = torch.randn(5, dtype=torch.float64, device=DEVICE, requires_grad=True)
    (grad,) = torch.autograd.grad((barrier(x * x) ** 2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x)
    torch.testing.assert_close(second.cpu(), 12 * x.detach().cpu() ** 2)


def test_only_the_gradients_asked_for_are_computed():
    a, b = ones(2, requires_grad=True), ones(2, requires_grad=True)
    outs = xm.optimization_barrier([a, b])
    (grad,) = torch.autograd.grad(outs[0].sum() + outs[1].sum(), [b])
    assert torch.equal(grad.cpu(), torch.ones(2))


def test_forward_mode():
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(ones(3), ones(3) * 5)
        value, tangent = torch.autograd.forward_ad.unpack_dual(barrier(dual) * 2)
    assert torch.equal(value.cpu(), torch.full((3,), 2.0)) and torch.equal(tangent.cpu(), torch.full((3,), 10.0))


def test_in_place_keeps_autograd_and_version():
    weight = torch.nn.Parameter(ones(3))
    version = weight._version
    hidden = weight * 2
    grad_fn = hidden.grad_fn
    xm.optimization_barrier_([weight, weight.data, hidden])
    assert weight._version == version and weight.is_leaf and hidden.grad_fn is grad_fn
    hidden.sum().backward()
    assert torch.equal(weight.grad.cpu(), torch.full((3,), 2.0))


def test_data_assignment_keeps_gradient():
    weight = ones(3, requires_grad=True)
    hidden = weight * 2
    (hidden.data,) = xm.optimization_barrier([hidden])
    hidden.sum().backward()
    assert torch.equal(weight.grad.cpu(), torch.full((3,), 2.0))


# --- torch.func -------------------------------------------------------------------------------------------------------


def test_func_grad():
    grad = torch.func.grad(lambda x: (barrier(x) ** 2).sum())(ones(3))
    assert torch.equal(grad.cpu(), torch.full((3,), 2.0))


@pytest.mark.parametrize("in_dim", [0, 1, -1])
def test_vmap(in_dim: int):
    x = torch.arange(12.0).view(3, 4)
    out = torch.func.vmap(lambda row: barrier(row) * 2, in_dims=in_dim)(x.to(DEVICE))
    assert torch.equal(out.cpu(), torch.func.vmap(lambda row: row * 2, in_dims=in_dim)(x))


def test_vmap_over_one_of_two_tensors():
    def f(row: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
        row, shared = xm.optimization_barrier([row, shared])
        return row * shared

    out = torch.func.vmap(f, in_dims=(0, None))(ones(3, 2), ones(2) * 4)
    assert torch.equal(out.cpu(), torch.full((3, 2), 4.0))


def test_nested_vmap():
    out = torch.func.vmap(torch.func.vmap(lambda x: barrier(x) + 1))(ones(2, 3, 4))
    assert torch.equal(out.cpu(), torch.full((2, 3, 4), 2.0))


def test_vmap_of_grad_and_hessian():
    def f(x: torch.Tensor) -> torch.Tensor:
        return (barrier(x) ** 3).sum()

    x = torch.tensor([1.0, 2.0])
    assert torch.equal(torch.func.vmap(torch.func.grad(f))(x.to(DEVICE)[:, None]).cpu(), 3 * x[:, None] ** 2)
    torch.testing.assert_close(torch.func.hessian(f)(x.to(DEVICE)).cpu(), torch.diag(6 * x))


def test_jvp():
    value, tangent = torch.func.jvp(lambda x: barrier(x) * 2, (ones(3),), (ones(3),))
    assert torch.equal(value.cpu(), tangent.cpu()) and torch.equal(value.cpu(), torch.full((3,), 2.0))


def test_in_place_under_vmap():
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        xm.optimization_barrier_([x])
        return x

    assert torch.equal(torch.func.vmap(f)(ones(3, 2)).cpu(), torch.full((3, 2), 2.0))


# --- modes ------------------------------------------------------------------------------------------------------------


def test_no_grad_and_inference_mode():
    x = ones(3, requires_grad=True)
    with torch.no_grad():
        assert not barrier(x).requires_grad
    with torch.inference_mode():
        out = barrier(x)
        xm.optimization_barrier_([x, out])
        assert out.is_inference() and not x.is_inference()
        assert torch.equal(out.cpu(), torch.ones(3))


def test_autocast_leaves_the_dtype():
    with torch.autocast("xla", dtype=torch.bfloat16):
        assert barrier(ones(3)).dtype == torch.float32


# --- tensors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype: torch.dtype):
    x = torch.tensor([[0.0, 1.0], [2.0, 1.0]]).to(dtype)
    moved = x.to(DEVICE)
    out = barrier(moved)
    xm.optimization_barrier_([moved])
    assert out.dtype == dtype
    assert torch.equal(out.cpu().to(torch.complex128), x.to(torch.complex128))
    assert torch.equal(moved.cpu().to(torch.complex128), x.to(torch.complex128))


@pytest.mark.parametrize("size", [(), (0,), (0, 3), (1, 1)])
def test_scalars_and_empty_tensors(size: tuple[int, ...]):
    x = torch.full(size, 3.0, device=DEVICE)
    out = barrier(x)
    xm.optimization_barrier_([x])
    assert out.shape == size and torch.equal(out.cpu(), torch.full(size, 3.0))


def test_the_same_tensor_twice():
    x = ones(3, requires_grad=True)
    a, b = xm.optimization_barrier([x, x])
    (a * 2 + b * 3).sum().backward()
    assert torch.equal(x.grad.cpu(), torch.full((3,), 5.0))
    xm.optimization_barrier_([x, x])
    assert torch.equal(x.detach().cpu(), torch.ones(3))


def test_views_and_two_views_of_one_storage():
    base = torch.arange(24.0).view(4, 6)
    moved = base.to(DEVICE)
    views = [moved[0], moved[1:, ::2], moved.t(), moved[2:3].expand(5, 6)]
    expected = [base[0], base[1:, ::2], base.t(), base[2:3].expand(5, 6)]
    for out, view in zip(xm.optimization_barrier(views), expected, strict=True):
        assert torch.equal(out.cpu(), view)
    xm.optimization_barrier_(views)
    moved[0] += 1
    base[0] += 1
    for view, changed in zip(views, expected, strict=True):
        assert torch.equal(view.cpu(), changed)


def test_conjugate_and_negative_views():
    x = torch.tensor([1 + 2j, -3j])
    moved = x.to(DEVICE)
    assert torch.equal(barrier(moved.conj()).cpu(), x.conj().resolve_conj())
    assert torch.equal(barrier(moved.conj().imag).cpu(), x.conj().imag.resolve_neg())


def test_modules_keep_their_parameters():
    model = torch.nn.Linear(3, 2).to(DEVICE)
    weight = copy.deepcopy(model.weight)
    xm.optimization_barrier_(list(model.parameters()))
    assert torch.equal(model.weight.cpu(), weight.cpu())


# --- calls ------------------------------------------------------------------------------------------------------------


def test_an_empty_list():
    assert xm.optimization_barrier([]) == []
    assert xm.optimization_barrier_([]) is None
    assert torch.ops.xla.optimization_barrier([]) == []


def test_as_registered_operators():
    x = ones(2)
    (out,) = torch.ops.xla.optimization_barrier([x])
    torch.ops.xla.optimization_barrier_([x])
    assert torch.equal(out.cpu(), x.cpu())


def test_on_meta_tensors():
    (out,) = torch.ops.xla.optimization_barrier([torch.ones(2, 3, device="meta")])
    assert out.shape == (2, 3) and out.device.type == "meta"


@pytest.mark.parametrize("call", [xm.optimization_barrier, xm.optimization_barrier_])
def test_what_is_refused_is_named_by_position(call):
    with pytest.raises(RuntimeError, match="tensor 1 must be an xla tensor, but is on cpu"):
        call([ones(2), torch.ones(2)])
    with pytest.raises(RuntimeError, match="tensor 0 must be an xla tensor, but is on cpu"):
        call([torch.ones(2)])
    with pytest.raises(TypeError, match="item 1 must be a tensor, but is a float"):
        call([ones(2), 3.0])
    with pytest.raises(TypeError, match="item 0 must be a tensor, but is a NoneType"):
        call([None])
    with pytest.raises(TypeError, match="expected a list of tensors, got a tensor"):
        call(ones(2))


def test_any_iterable_of_tensors():
    outs = xm.optimization_barrier(ones(size) for size in (2, 3))
    assert [out.tolist() for out in outs] == [[1, 1], [1, 1, 1]]


def test_one_instruction_for_the_whole_list():
    outs = xm.optimization_barrier([ones(2), ones(3), ones(4)])
    text = torch_xla.debug.tensors_text(outs)
    assert text.count("xla::optimization_barrier") == 1 and "num_outputs=3" in text
    assert torch_xla.debug.tensors_hlo(outs).count("stablehlo.optimization_barrier") == 1


# --- XLA --------------------------------------------------------------------------------------------------------------

TWICE = """
import torch, torch_xla, torch_xla.debug
import torch_xla.core.xla_model as xm

def heavy(x):
    return torch.tanh(x @ x)

x = torch.randn(64, 64, device="xla")
torch_xla.sync()
first = heavy(x)
if {barrier}:
    again = xm.optimization_barrier([x, first])[0]
else:
    again = x
second = heavy(again)
torch_xla.sync(wait=True)
program = torch_xla.debug.executables()[-1]
print(torch_xla.debug.optimized_hlo(program["id"]).count(b"tanh"))
"""


@pytest.fixture(params=["newest", "oldest"])
def plugin(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment that selects one of the CPU plugins."""
    import importlib.util

    module, library = {
        "newest": ("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
        "oldest": ("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
    }[request.param]
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{module} is not installed")
    return {"PJRT_PLUGIN_LIBRARY_PATH": f"{spec.submodule_search_locations[0]}/{library}"}


def test_a_computation_on_both_sides_stays_twice(run_python, plugin: dict[str, str]):
    without = int(run_python(TWICE.format(barrier=False), **plugin))
    with_barrier = int(run_python(TWICE.format(barrier=True), **plugin))
    assert with_barrier > without > 0


EVERY_DTYPE = """
import torch
import torch_xla.core.xla_model as xm

dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.uint8, torch.int64, torch.bool,
          torch.complex64, torch.float8_e4m3fn]
values = [torch.tensor([[-0.0, float("nan"), 3.0]]).to(dtype) for dtype in dtypes]
values += [torch.tensor(float("nan")), torch.zeros(0, 3)]
for value, barred in zip(values, xm.optimization_barrier([value.to("xla") for value in values])):
    # Compared as bytes: the sign of a zero and a NaN stay too.
    assert bytes(value.untyped_storage()) == bytes(barred.cpu().untyped_storage()), value.dtype
print("unchanged")
"""


def test_no_value_changes_on_any_plugin(run_python, plugin: dict[str, str]):
    assert run_python(EVERY_DTYPE, **plugin) == "unchanged"
