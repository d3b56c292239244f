"""Writing by index: values, gradients and dtypes against CPU."""

import pytest
import torch
from parity import assert_same

import torch_xla  # noqa: F401

UNIQUE = torch.tensor([[2, 0, 1, 3], [1, 3, 0, 2]])
REPEATED = torch.tensor([[2, 0, 2, 3], [1, 1, 0, 0]])


def values(*size, dtype=torch.float32, grad=False):
    x = torch.randn(size) if dtype.is_floating_point else torch.randint(-5, 6, size)
    return x.to(dtype).requires_grad_(grad)


def test_scatter_of_a_tensor():
    assert_same(lambda x, i, s: x.scatter(1, i, s), values(3, 5, grad=True), UNIQUE, values(2, 4, grad=True))


def test_scatter_of_a_number():
    assert_same(lambda x, i: x.scatter(1, i, 2.5), values(3, 5, grad=True), REPEATED)


def test_scatter_into_a_scalar():
    assert_same(lambda x, i, s: x.scatter(0, i, s), torch.tensor(1.0), torch.tensor(0), torch.tensor(5.0))


def test_scatter_of_a_larger_source_and_along_rows():
    assert_same(lambda x, i, s: x.scatter(0, i, s), values(4, 5), UNIQUE[:, :2], values(6, 6))


@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_scatter_with_a_reduction(reduce, dtype):
    x, s = values(2, 4, dtype=dtype), values(2, 4, dtype=dtype)
    assert_same(lambda x, i, s: x.scatter(1, i, s, reduce=reduce), x, REPEATED, s)
    assert_same(lambda x, i: x.scatter(1, i, 3, reduce=reduce), x, REPEATED)


def test_scatter_add_sums_repeated_indices():
    assert_same(lambda x, i, s: x.scatter_add(1, i, s), values(3, 5, grad=True), REPEATED, values(2, 4, grad=True))
    assert_same(lambda x, i, s: x.clone().scatter_add_(1, i, s), values(3, 5), REPEATED, values(2, 4))


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_scatter_reduce(reduce, include_self, dtype):
    grad = dtype.is_floating_point
    x, s = values(3, 5, dtype=dtype, grad=grad), values(2, 4, dtype=dtype, grad=grad)
    assert_same(lambda x, i, s: x.scatter_reduce(1, i, s, reduce, include_self=include_self), x, REPEATED, s)


@pytest.mark.parametrize("dim", [0, 1])
def test_index_add(dim):
    index = torch.tensor([1, 0, 1])
    shape = [3, 4] if dim == 0 else [2, 3]
    assert_same(
        lambda x, i, s: x.index_add(dim, i, s, alpha=2), values(2, 4, grad=True), index, values(*shape, grad=True)
    )


def test_index_add_into_a_scalar():
    assert_same(lambda x, i, s: x.index_add(0, i, s), torch.tensor(1.0), torch.tensor([0]), torch.tensor(2.0))


def test_index_copy():
    index = torch.tensor([2, 0])
    assert_same(lambda x, i, s: x.index_copy(1, i, s), values(2, 4, grad=True), index, values(2, 2, grad=True))


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce(reduce, include_self):
    index = torch.tensor([2, 0, 2])
    assert_same(
        lambda x, i, s: x.index_reduce(0, i, s, reduce, include_self=include_self), values(4, 3), index, values(3, 3)
    )


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "indices",
    [
        lambda i, j: (i,),
        lambda i, j: (i, j),
        lambda i, j: (None, i),
        lambda i, j: (i, None, j),
        lambda i, j: (i.view(3, 1), j),
        lambda i, j: (-i - 1, j.int()),
    ],
)
def test_index_put(indices, accumulate):
    i, j = torch.tensor([2, 0, 1]), torch.tensor([1, 3, 0])

    def put(x, i, j, v):
        index = tuple(slice(None) if k is None else k for k in indices(i, j))
        if not accumulate:
            x = x.clone()
            x[index] = v
            return x
        return x.index_put(tuple(k for k in indices(i, j)), v, accumulate=True)

    if any(k is None for k in indices(i, j)) and accumulate:
        pytest.skip("index_put takes no None")
    assert_same(put, values(3, 4, 5, grad=True), i, j, torch.tensor(2.5, requires_grad=True))


def test_index_put_accumulates_repeated_indices():
    i = torch.tensor([1, 1, 0])
    assert_same(
        lambda x, i, v: x.index_put((i,), v, accumulate=True), values(3, 4, grad=True), i, values(3, 4, grad=True)
    )


def masked(x, mask, value):
    x = x.clone()
    x[mask] = value
    return x


def test_mask_takes_one_value():
    x = values(3, 4, grad=True)
    assert_same(lambda x: masked(x, x > 0, 1.0), x)
    assert_same(lambda x, v: masked(x, x > 0, v), x, torch.tensor([2.0], requires_grad=True))
    assert_same(lambda x, m: masked(x, m, 5.0), x, torch.tensor([True, False, True]))
    assert_same(lambda x, m, v: masked(x, m, v), x, torch.tensor([True, False, True]), values(4))


def test_mask_takes_a_value_for_each_set_element():
    mask = torch.tensor([[True, False, True], [False, True, False]])
    assert_same(masked, values(2, 3, grad=True), mask, values(3, grad=True))
    assert_same(masked, values(2, 3, 2), mask, values(3, 2))
    assert_same(masked, values(2, 3), torch.zeros(2, 3, dtype=torch.bool), torch.empty(0))
    assert_same(lambda x, m, v: masked(x, (slice(None), m), v), values(4, 3), mask[0], values(4, 2))


def test_mask_assignment_does_not_compile_again_for_other_counts():
    x = torch.arange(12.0, device="xla")
    for threshold in (3.0, 5.0, 9.0):
        y = x.clone()
        y[x > threshold] = 0.0
        expected = torch.arange(12.0)
        expected[expected > threshold] = 0.0
        torch.testing.assert_close(y.cpu(), expected)


def test_put():
    index = torch.tensor([1, -1, 4])
    assert_same(lambda x, i, s: x.put(i, s), values(3, 4, grad=True), index, values(3, grad=True))
    assert_same(lambda x, i, s: x.put(i * 0, s, accumulate=True), values(3, 4), index, values(3))


def test_fill_diagonal_and_scatter_of_views():
    assert_same(lambda x: x.clone().fill_diagonal_(7.0), values(4, 3))
    assert_same(lambda x, s: x.slice_scatter(s, 1, 1, 4, 2), values(3, 5, grad=True), values(3, 2, grad=True))
    assert_same(lambda x, s: x.select_scatter(s, 0, 1), values(3, 5, grad=True), values(5, grad=True))
    assert_same(lambda x, s: x.diagonal_scatter(s, 1), values(3, 5, grad=True), values(3, grad=True))
    assert_same(lambda x, s: x.as_strided_scatter(s, (2, 2), (1, 2)), values(3, 5), values(2, 2))
