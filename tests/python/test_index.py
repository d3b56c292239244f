"""Reading by index and by mask: values, gradients and dtypes against CPU."""

import pytest
import torch
from parity import assert_same, on_xla

import torch_xla  # noqa: F401

DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]


def values(*size, dtype=torch.float32, grad=False):
    x = (
        torch.randn(size, dtype=dtype)
        if dtype.is_floating_point or dtype.is_complex
        else torch.randint(0, 2, size).to(dtype)
    )
    return x.requires_grad_(grad)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_select(dtype, dim):
    index = torch.tensor([2, 0, 2, 1], dtype=torch.int32)
    assert_same(lambda x, i: x.index_select(dim, i), values(3, 4, 5, dtype=dtype), index)


def test_index_select_of_a_scalar_and_of_nothing():
    assert_same(lambda x, i: x.index_select(0, i), torch.tensor(3.0), torch.tensor([0]))
    assert_same(lambda x, i: x.index_select(0, i), values(3, 4), torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_with_a_smaller_index(dim):
    index = torch.randint(0, 3, (2, 3, 2))
    assert_same(lambda x, i: x.gather(dim, i), values(3, 4, 5, grad=True), index)


def test_gather_of_scalars():
    assert_same(lambda x, i: x.gather(0, i), torch.tensor(2.0), torch.tensor([0, 0]))
    assert_same(lambda x, i: x.gather(0, i), values(3), torch.tensor(1))


@pytest.mark.parametrize(
    "index",
    [
        lambda i, j: (i,),
        lambda i, j: (slice(None), i),
        lambda i, j: (i, j),
        lambda i, j: (slice(None), i, j),
        lambda i, j: (i, slice(None), j),
        lambda i, j: (i.view(2, 1, 2), slice(None), j.view(2, 2)),
        lambda i, j: (Ellipsis, i),
        lambda i, j: (i, None, 1),
        lambda i, j: (i.int(), 2, j),
        lambda i, j: (-i - 1, j),
        lambda i, j: (i[:0],),
    ],
)
def test_advanced_indexing(index):
    i, j = torch.tensor([0, 2, 1, 2]), torch.tensor([1, 1, 0, 2])
    assert_same(lambda x, i, j: x[index(i, j)], values(3, 4, 5, grad=True), i, j)


def test_mask_selects_in_the_fallback():
    assert_same(lambda x: x[x > 0], values(4, 5))
    assert_same(lambda x: x.masked_select(x > 0), values(4, 5))
    assert_same(lambda x: (x > 0).nonzero(), values(4, 5))


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_fill_broadcasts_mask_and_self(dtype):
    mask = torch.tensor([True, False, True])
    assert_same(lambda x, m: x.masked_fill(m, 1), values(2, 3, dtype=dtype), mask)
    assert_same(lambda x, m: x.masked_fill(m.view(3, 1), 1), values(2, dtype=dtype), mask)


def test_mask_beside_indices():
    mask, rows = torch.tensor([True, False, True]), torch.tensor([0, 3])
    assert_same(lambda x, m, i: x[m, i], values(3, 4, 2, grad=True), mask, rows)
    assert_same(lambda x, m, i: x[m, :, i], values(3, 2, 4, grad=True), mask, rows)
    assert_same(lambda x, m, i: x[m.view(3, 1).expand(3, 2), i], values(3, 2, 4), mask, torch.tensor([0, 3, 1, 2]))


def test_masked_fill_by_a_tensor_in_place():
    mask = torch.rand(3, 4) > 0.5
    assert_same(lambda x, m, v: x.clone().masked_fill_(m, v), values(3, 4, grad=True), mask, torch.tensor(2.5))


def test_masked_scatter_counts_set_elements():
    mask = torch.tensor([[True, False, True], [False, True, True]])
    assert_same(lambda x, m, s: x.masked_scatter(m, s), values(2, 3, grad=True), mask, values(10, grad=True))
    assert_same(lambda x, m, s: x.masked_scatter(m[0], s), values(2, 3), mask, values(10))


def test_take_wraps_negative_indices():
    assert_same(lambda x, i: x.take(i), values(3, 4, grad=True), torch.tensor([[0, -1], [5, -12]]))


def test_take_along_dim():
    x = values(3, 4, grad=True)
    assert_same(lambda x, i: torch.take_along_dim(x, i, dim=1), x, x.argsort(1))


@pytest.mark.parametrize("dim", [0, 1])
def test_index_fill(dim):
    assert_same(lambda x, i: x.index_fill(dim, i, -1.0), values(3, 4, grad=True), torch.tensor([0, -1]))
    assert_same(lambda x, i, v: x.index_fill(dim, i, v), values(3, 4), torch.tensor([1]), torch.tensor(7.0))


@pytest.mark.parametrize("index", [slice(1, 3), slice(None, None, 2), slice(-2, None), slice(5, 1), slice(1, None, 3)])
def test_gradient_of_a_slice(index):
    assert_same(lambda x: x[:, index] * 2, values(2, 6, grad=True))


def test_gradient_of_select_and_diagonal():
    assert_same(lambda x: x[1] * x[:, 2, None], values(3, 3, grad=True))
    assert_same(lambda x: x.diagonal(1) * 3, values(4, 5, grad=True))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_searchsorted(right, dtype):
    boundaries = torch.tensor([[1, 3, 3, 7], [0, 2, 4, 6]]).to(dtype)
    wanted = torch.tensor([[0, 1, 3, 8, 5], [0, 2, 3, 9, -1]]).to(dtype)
    assert_same(lambda b, v: torch.searchsorted(b, v, right=right), boundaries, wanted)
    assert_same(lambda b, v: torch.bucketize(v, b[0], right=right, out_int32=True), boundaries, wanted)


def test_searchsorted_places_nan_last():
    boundaries = torch.tensor([1.0, 2.0, float("nan")])
    wanted = torch.tensor([0.5, 2.0, 5.0, float("nan")])
    for right in (False, True):
        assert_same(lambda b, v, right=right: torch.searchsorted(b, v, right=right), boundaries, wanted)


def test_searchsorted_with_a_sorter():
    sequence = torch.tensor([[3, 1, 2], [9, 8, 7]])
    order = sequence.argsort(1)
    assert_same(lambda s, v, o: torch.searchsorted(s, v, sorter=o), sequence, torch.tensor([[2, 4], [8, 1]]), order)


def test_searchsorted_of_a_number():
    assert_same(lambda b: torch.searchsorted(b, 2.5), torch.tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("invert", [False, True])
def test_isin(invert):
    assert_same(lambda x, t: torch.isin(x, t, invert=invert), torch.arange(6).view(2, 3), torch.tensor([1, 4, 9]))
    assert_same(lambda x: torch.isin(x, 3, invert=invert), torch.arange(6))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_one_hot(order):
    classes = torch.tensor([[0, 4], [2, 2], [1, 0]]).permute(order)
    assert_same(lambda x: torch.nn.functional.one_hot(x, 5), classes)
    assert torch.nn.functional.one_hot(on_xla(classes), 5).is_contiguous()


def test_repeat_interleave_of_a_given_size():
    repeats = torch.tensor([2, 0, 3])
    assert_same(lambda x, r: x.repeat_interleave(r, dim=0, output_size=5), values(3, 2), repeats)
    assert_same(lambda x: x.repeat_interleave(2, dim=1), values(3, 2, grad=True))


def test_nonzero_static():
    x = torch.tensor([[0, 1, 0], [2, 0, 3]])
    assert_same(lambda x: torch.nonzero_static(x, size=2), x)
    assert_same(lambda x: torch.nonzero_static(x, size=5, fill_value=-7), x)


def test_indices_may_be_on_the_cpu():
    x = values(3, 4)
    for index in (torch.tensor([2, 0]), torch.tensor([True, False, True]), [1, 2]):
        expected = x.clone()
        expected[index] = 5.0
        actual = x.to("xla")
        assert torch.equal(actual[index].cpu(), x[index])
        actual[index] = 5.0
        assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.index_select(0, torch.ones(2, 2, device=x.device).long()),
        lambda x: x.index_select(0, torch.ones(2, device=x.device)),
        lambda x: x.gather(0, torch.zeros(1, device=x.device).long()),
        lambda x: x[torch.zeros(2, device=x.device)],
        lambda x: x.take(torch.zeros(2, device=x.device)),
        lambda x: x.masked_fill(torch.ones(3, device=x.device), 1),
        lambda x: torch.searchsorted(x[0], x[0], side="foo"),
    ],
)
def test_errors_are_those_of_the_cpu(call):
    def error_of(x):
        with pytest.raises(Exception) as info:
            call(x)
        return type(info.value), str(info.value).split("\n")[0]

    x = values(3, 4)
    assert error_of(x.to("xla")) == error_of(x)
