"""Matrix products against CPU: values, gradients, scaling arguments, and what they compile to."""

import math

import pytest
import torch
import torch.nn.functional as F
from parity import assert_equal, assert_same, on_xla

import torch_xla

pytestmark = pytest.mark.usefixtures("seeded")

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def tensor(*shape, dtype=torch.float32):
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=dtype, requires_grad=True)
    return torch.randint(-5, 6, shape, dtype=dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64, torch.int64, torch.int32])
def test_products(no_fallbacks, dtype):
    a, b, v = tensor(3, 4, dtype=dtype), tensor(4, 5, dtype=dtype), tensor(4, dtype=dtype)
    assert_same(torch.mm, a, b)
    assert_same(torch.mv, a, v)
    assert_same(torch.dot, v, tensor(4, dtype=dtype))
    assert_same(torch.vdot, v, tensor(4, dtype=dtype))
    assert_same(torch.outer, v, v)
    assert_same(torch.bmm, tensor(2, 3, 4, dtype=dtype), tensor(2, 4, 5, dtype=dtype))
    assert_same(torch.matmul, tensor(2, 1, 3, 4, dtype=dtype), tensor(3, 4, 2, dtype=dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 1), (2, 3), (1, 0)])
def test_added_products(no_fallbacks, dtype, beta, alpha):
    scale = {"beta": beta, "alpha": alpha}
    a, b, v = tensor(3, 4, dtype=dtype), tensor(4, 5, dtype=dtype), tensor(4, dtype=dtype)
    batch_a, batch_b = tensor(2, 3, 4, dtype=dtype), tensor(2, 4, 5, dtype=dtype)
    for bias in (tensor(5, dtype=dtype), tensor(3, 1, dtype=dtype), tensor(3, 5, dtype=dtype)):
        assert_same(lambda c, a, b: torch.addmm(c, a, b, **scale), bias, a, b)
        assert_same(lambda c, a, b: torch.baddbmm(c, a, b, **scale), bias, batch_a, batch_b)
        assert_same(lambda c, a, b: torch.addbmm(c, a, b, **scale), bias, batch_a, batch_b)
    assert_same(lambda c, a, v: torch.addmv(c, a, v, **scale), tensor(3, dtype=dtype), a, v)
    assert_same(lambda c, v, w: torch.addr(c, v, w, **scale), tensor(4, 3, dtype=dtype), v, tensor(3, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.complex64])
def test_large_products_of_other_dtypes(no_fallbacks, kernels, dtype):
    """Integers wrap around."""
    a, b = (tensor(120, 130, dtype=dtype), tensor(130, 110, dtype=dtype))
    if not dtype.is_complex:
        a, b = (x * 1_000_003 + 77 for x in (a, b))
    assert_same(torch.mm, a, b)
    assert_same(torch.mm, b.t(), a.t())
    assert_same(torch.bmm, a.view(2, 60, 130), torch.stack([b, b + 1]))


def test_fractional_scale():
    assert_same(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=-1.5), tensor(5), tensor(3, 4), tensor(4, 5))


def test_beta_zero_does_not_read_self(no_fallbacks):
    nan = torch.full((3, 5), math.nan)
    assert_same(lambda c, a, b: torch.addmm(c, a, b, beta=0), nan, tensor(3, 4).detach(), tensor(4, 5).detach())


def test_addr_of_bool(no_fallbacks):
    v, w = torch.tensor([True, False, True]), torch.tensor([True, False])
    c = torch.tensor([[False, True], [False, True], [True, False]])
    for beta, alpha in ((True, True), (False, True), (True, False)):
        assert_same(lambda c, v, w, s=(beta, alpha): torch.addr(c, v, w, beta=s[0], alpha=s[1]), c, v, w)


def test_empty_contraction_gives_zeros(no_fallbacks):
    assert_same(torch.mm, tensor(3, 0), tensor(0, 5))
    assert_same(torch.addmm, tensor(5), tensor(3, 0), tensor(0, 5))
    assert_same(torch.bmm, tensor(0, 3, 4), tensor(0, 4, 5))


def test_in_place_and_out(no_fallbacks):
    def run(c, a, b):
        c = c.clone()
        c.addmm_(a, b, alpha=2)
        out = torch.empty_like(c)
        torch.mm(a, b, out=out)
        return c, out

    assert_same(run, torch.randn(3, 5), torch.randn(3, 4), torch.randn(4, 5))


def test_integer_product_with_wide_result(no_fallbacks):
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((32, 32), (32, 16)))
    assert_same(torch._int_mm, a, b)


@pytest.mark.parametrize("use_gelu", [False, True])
def test_product_with_activation(no_fallbacks, use_gelu):
    assert_same(
        lambda c, a, b: torch._addmm_activation(c, a, b, use_gelu=use_gelu),
        torch.randn(5),
        torch.randn(3, 4),
        torch.randn(4, 5),
    )


def test_bilinear(no_fallbacks):
    assert_same(F.bilinear, tensor(6, 3), tensor(6, 4), tensor(5, 3, 4), tensor(5))


def test_a_changing_alpha_does_not_recompile(compiles):
    a, b, c = (torch.randn(4, 4).to("xla") for _ in range(3))
    torch.addmm(c, a, b, alpha=0.1).cpu()
    before = compiles()
    for i in range(3):
        result = torch.addmm(c, a, b, alpha=0.2 + i)
        assert_equal(result, torch.addmm(c.cpu(), a.cpu(), b.cpu(), alpha=0.2 + i))
    assert compiles() == before


def test_bool_product_raises_as_on_cpu():
    flags = torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
        torch.mm(flags, flags)
    with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
        torch.mm(flags.to("xla"), flags.to("xla"))


def test_wrong_shapes_raise_at_the_call():
    a, b = torch.ones(3, 4), torch.ones(5, 6)
    with pytest.raises(RuntimeError) as expected:
        torch.mm(a, b)
    with pytest.raises(RuntimeError) as actual:
        torch.mm(on_xla(a), on_xla(b))
    assert str(actual.value).startswith(str(expected.value))


def test_bfloat16_linear_stays_bfloat16():
    """No conversion to float32 around the product: the compiler sees what the program says."""
    layer = torch.nn.Linear(8, 4).to(torch.bfloat16).to("xla")
    x = torch.randn(2, 8, dtype=torch.bfloat16).to("xla")
    torch_xla.sync()
    text = torch_xla._XLAC._get_xla_tensors_hlo([layer(x)])
    assert "dot" in text
    assert "f32" not in text


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_distances(no_fallbacks, p):
    a, b = tensor(5, 3, dtype=torch.float64), tensor(4, 3, dtype=torch.float64)
    assert_same(lambda a, b: torch.cdist(a, b, p), a, b)
    assert_same(lambda a, b: torch.cdist(a, b, p), tensor(2, 1, 5, 3), tensor(3, 4, 3))
    assert_same(lambda a: torch.cdist(a, a, p), a)
