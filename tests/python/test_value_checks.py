"""Errors that depend on values: eager PyTorch's class and words, at the wait; other tensors stay usable."""

import sys

import pytest
import torch
import torch.nn.functional as F

import torch_xla


def matrix(device):
    return torch.arange(12.0, device=device).view(3, 4)


def index(device, *values):
    return torch.tensor(values, device=device)


def computed_index(device, *values):
    """A program's result, which nobody looks at before another program does."""
    return torch.tensor(values, device=device) + torch.zeros(1, dtype=torch.int64, device=device)


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
    "index_add of a vector": lambda d: torch.ones(3, device=d).index_add_(0, index(d, 3), torch.ones(1, device=d)),
    "index_copy": lambda d: matrix(d).index_copy_(0, index(d, 3), torch.ones(1, 4, device=d)),
    "index_fill": lambda d: matrix(d).index_fill_(0, index(d, 3), 1.0),
    "index_put": lambda d: matrix(d).index_put_((index(d, 5),), torch.ones(1, 4, device=d)),
    "index_reduce": lambda d: matrix(d).index_reduce_(0, index(d, 3), torch.ones(1, 4, device=d), "prod"),
    "index_select": lambda d: matrix(d).index_select(0, index(d, 3)),
    "nll_loss": lambda d: F.nll_loss(matrix(d), index(d, 0, -1, 2)),
    "nll_loss2d": lambda d: F.nll_loss(matrix(d).view(1, 3, 4, 1), index(d, 0, 1, 3, 2).view(1, 4, 1)),
    "put": lambda d: matrix(d).put_(index(d, 12), torch.ones(1, device=d)),
    "scatter": lambda d: matrix(d).scatter_(1, index(d, 4).view(1, 1), 1.0),
    "scatter_add": lambda d: matrix(d).scatter_add_(1, index(d, -1).view(1, 1), torch.ones(1, 1, device=d)),
    "scatter_reduce": lambda d: matrix(d).scatter_reduce_(1, index(d, 9).view(1, 1), torch.ones(1, 1, device=d), "sum"),
    "take": lambda d: matrix(d).take(index(d, 12)),
}


def test_index_add_of_empty_rows_looks_at_no_index():
    empty = torch.ones(2, 0)
    source = torch.ones(2, 2)
    assert empty.index_add(1, index("cpu", 0, 9), source).shape == (2, 0)
    assert empty.to("xla").index_add(1, index("xla", 0, 9), source.to("xla")).cpu().shape == (2, 0)


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_an_uploaded_index_out_of_range_is_refused_at_the_call(name):
    with pytest.raises((IndexError, RuntimeError)) as expected:
        OUT_OF_RANGE[name]("cpu")
    bystander = torch.ones(3, device="xla") + 1
    with pytest.raises(type(expected.value)) as error:
        OUT_OF_RANGE[name]("xla")
    assert str(error.value).splitlines()[0] == str(expected.value).splitlines()[0]
    assert bystander.tolist() == [2, 2, 2]
    torch_xla.sync(wait=True)


def test_a_batch_with_a_wrong_label_costs_nothing():
    """Neither parameters, which the step overwrites, nor what else was pending."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 3)).to("xla")
    optimizer = torch.optim.Adam(model.parameters())
    batches = [([0, 1, 4], [0, 1, 2]), ([0, 1, 5], [0, 1, 2]), ([0, 1, 4], [0, 1, 3]), ([0, 1, 4], [0, -100, 2])]
    losses = []
    for tokens, labels in batches:
        try:
            loss = F.cross_entropy(model(index("xla", *tokens)), index("xla", *labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        except IndexError:
            losses.append(None)
        torch_xla.sync(wait=True)
    assert [x is None for x in losses] == [False, True, True, False]
    assert all(torch.isfinite(x.cpu()).all() for x in model.parameters())
    assert losses[3].item() < 5


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_a_computed_index_out_of_range(name, monkeypatch):
    with pytest.raises((IndexError, RuntimeError)) as expected:
        OUT_OF_RANGE[name]("cpu")
    bystander = torch.ones(3, device="xla") + 1
    torch_xla.sync(wait=True)
    monkeypatch.setattr(sys.modules[__name__], "index", computed_index)
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


NOT_CONVERTIBLE = {
    "complex": lambda d: matrix(d).masked_fill(matrix(d) > 1, torch.tensor(1 + 2j, device=d)),
    "complex to an integer": lambda d: index(d, 1, 2).masked_fill(index(d, 1, 2) > 1, torch.tensor(2j, device=d)),
    "large": lambda d: index(d, 1).to(torch.int8).masked_fill(index(d, 1) > 0, torch.tensor(300, device=d)),
    "large for a half": lambda d: matrix(d).half().masked_fill(matrix(d) > 1, torch.tensor(-1e9, device=d)),
    "number too large for a half": lambda d: matrix(d).half().masked_fill(matrix(d) > 1, -1e9),
    "complex number": lambda d: matrix(d).masked_fill(matrix(d) > 1, 2j),
    "not a number": lambda d: index(d, 1).masked_fill(index(d, 1) > 0, torch.tensor(float("nan"), device=d)),
}
CONVERTIBLE = {
    "complex": lambda d: matrix(d).masked_fill(matrix(d) > 1, torch.tensor(3 + 0j, device=d)),
    "infinite": lambda d: matrix(d).half().masked_fill(matrix(d) > 1, torch.tensor(-float("inf"), device=d)),
    "negative": lambda d: index(d, 1).byte().masked_fill(index(d, 1) > 0, torch.tensor(-1, device=d)),
    "fraction": lambda d: index(d, 1).masked_fill(index(d, 1) > 0, torch.tensor(2.5, device=d)),
}


@pytest.mark.parametrize("name", NOT_CONVERTIBLE)
def test_a_value_that_the_dtype_cannot_hold(name):
    with pytest.raises(RuntimeError) as expected:
        NOT_CONVERTIBLE[name]("cpu")
    with pytest.raises(RuntimeError) as error:
        NOT_CONVERTIBLE[name]("xla").cpu()
    assert str(error.value).startswith(str(expected.value).splitlines()[0])
    torch_xla.sync(wait=True)


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_a_value_that_the_dtype_can_hold(name):
    torch.testing.assert_close(CONVERTIBLE[name]("xla").cpu(), CONVERTIBLE[name]("cpu"))
