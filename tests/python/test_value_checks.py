"""Errors that depend on values: eager PyTorch's class and words, at the wait; other tensors stay usable."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla


def matrix(device):
    return torch.arange(12.0, device=device).view(3, 4)


def index(device, *values):
    return torch.tensor(values, device=device)


OUT_OF_RANGE = {
    "cross_entropy": lambda d: F.cross_entropy(matrix(d), index(d, 0, 1, 4)),
    "embedding": lambda d: F.embedding(index(d, 3), matrix(d)),
    "embedding negative": lambda d: F.embedding(index(d, -1), matrix(d)),
    "gather": lambda d: matrix(d).gather(1, index(d, 4).view(1, 1)),
    "gather negative": lambda d: matrix(d).gather(0, index(d, -1).view(1, 1)),
    "getitem": lambda d: matrix(d)[index(d, 5)],
    "getitem dim 1": lambda d: matrix(d)[:, index(d, 7)],
    "getitem negative": lambda d: matrix(d)[index(d, -4)],
    "getitem two": lambda d: matrix(d)[index(d, 0), index(d, 9)],
    "index_add": lambda d: matrix(d).index_add_(0, index(d, 3), torch.ones(1, 4, device=d)),
    "index_copy": lambda d: matrix(d).index_copy_(0, index(d, 3), torch.ones(1, 4, device=d)),
    "index_fill": lambda d: matrix(d).index_fill_(0, index(d, 3), 1.0),
    "index_put": lambda d: matrix(d).index_put_((index(d, 5),), torch.ones(1, 4, device=d)),
    "index_reduce": lambda d: matrix(d).index_reduce_(0, index(d, 3), torch.ones(1, 4, device=d), "prod"),
    "index_select": lambda d: matrix(d).index_select(0, index(d, 3)),
    "nll_loss": lambda d: F.nll_loss(matrix(d), index(d, 0, -1, 2)),
    "nll_loss2d": lambda d: F.nll_loss(matrix(d).view(1, 3, 4, 1), torch.full((1, 4, 1), 3, device=d)),
    "put": lambda d: matrix(d).put_(index(d, 12), torch.ones(1, device=d)),
    "scatter": lambda d: matrix(d).scatter_(1, index(d, 4).view(1, 1), 1.0),
    "scatter_add": lambda d: matrix(d).scatter_add_(1, index(d, -1).view(1, 1), torch.ones(1, 1, device=d)),
    "scatter_reduce": lambda d: matrix(d).scatter_reduce_(1, index(d, 9).view(1, 1), torch.ones(1, 1, device=d), "sum"),
    "take": lambda d: matrix(d).take(index(d, 12)),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_an_index_out_of_range(name):
    with pytest.raises((IndexError, RuntimeError)) as expected:
        OUT_OF_RANGE[name]("cpu")
    bystander = torch.ones(3, device="xla") + 1
    torch_xla.sync(wait=True)
    with pytest.raises(type(expected.value)) as error:
        OUT_OF_RANGE[name]("xla").cpu()
    assert str(expected.value).splitlines()[0] in str(error.value)
    assert bystander.tolist() == [2, 2, 2]
    torch_xla.sync(wait=True)


IN_RANGE = {
    "ignore_index": lambda d: F.cross_entropy(matrix(d), index(d, 0, -100, 3)),
    "getitem": lambda d: matrix(d)[index(d, -3, 2), index(d, -4, 3)],
    "empty": lambda d: matrix(d)[torch.empty(0, dtype=torch.int64, device=d)],
    "take": lambda d: matrix(d).take(index(d, -12, 11)),
    "int32": lambda d: F.embedding(index(d, 0, 2).int(), matrix(d)),
}


@pytest.mark.parametrize("name", IN_RANGE)
def test_an_index_in_range(name):
    torch.testing.assert_close(IN_RANGE[name]("xla").cpu(), IN_RANGE[name]("cpu"))
