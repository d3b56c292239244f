"""Sparse COO tensors equal the CPU's: made, taken apart, computed with, differentiated through, trained with."""

import copy
import pickle

import pytest
import torch

import torch_xla  # noqa: F401


def example(device):
    return torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0]), (2, 3)).to(
        device
    )


def dense_list(tensor):
    return tensor.detach().to_dense().cpu().tolist() if tensor.is_sparse else tensor.detach().cpu().tolist()


def ones(device, *sizes):
    return torch.ones(*sizes, device=device)


def gradient_of_dense(device):
    x = ones(device, 3, 2).requires_grad_()
    torch.sparse.mm(example(device), x).sum().backward()
    return x.grad


def gradient_of_sparse(device):
    x = example(device).requires_grad_()
    torch.sparse.mm(x, ones(device, 3, 2)).sum().backward()
    return x.grad


def gradient_of_embedding_bag(device):
    bag = torch.nn.EmbeddingBag(4, 2, sparse=True, mode="sum").to(device)
    bag(torch.tensor([[1, 2, 1]], device=device)).sum().backward()
    return bag.weight.grad


CASES = {
    "add": lambda d: example(d) + example(d),
    "add_ to dense": lambda d: ones(d, 2, 3).add_(example(d), alpha=-0.5),
    "cat": lambda d: torch.cat([example(d), example(d)]),
    "clone": lambda d: example(d).clone(),
    "coalesce": lambda d: torch.sparse_coo_tensor([[0, 0], [2, 2]], [1.0, 2.0], (2, 3), device=d).coalesce().values(),
    "deepcopy": lambda d: copy.deepcopy(example(d)),
    "double": lambda d: example(d).double(),
    "gradient of dense": gradient_of_dense,
    "gradient of embedding_bag": gradient_of_embedding_bag,
    "gradient of sparse": gradient_of_sparse,
    "hybrid": lambda d: torch.sparse_coo_tensor(torch.tensor([[0, 1]], device=d), ones(d, 2, 2), (3, 2)),
    "index_select": lambda d: example(d).index_select(0, torch.tensor([1], device=d)),
    "indices": lambda d: example(d).coalesce().indices(),
    "mask": lambda d: ones(d, 2, 3).sparse_mask(example(d).coalesce()),
    "matmul": lambda d: example(d) @ ones(d, 3, 2),
    "mul": lambda d: example(d) * 2,
    "pickle": lambda d: pickle.loads(pickle.dumps(example(d))),
    "select": lambda d: example(d)[1],
    "softmax": lambda d: torch.sparse.softmax(example(d), 1),
    "sum": lambda d: torch.sparse.sum(example(d)),
    "t": lambda d: example(d).t(),
    "to_dense": lambda d: example(d).to_dense(),
    "to_sparse": lambda d: torch.eye(2, device=d).to_sparse(),
    "zero_": lambda d: example(d).zero_(),
    "zeros_like": lambda d: torch.zeros_like(example(d)),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_cpu(name):
    expected, actual = CASES[name]("cpu"), CASES[name]("xla")
    assert actual.device.type == "xla"
    assert (actual.layout, actual.dtype, actual.shape) == (expected.layout, expected.dtype, expected.shape)
    assert dense_list(actual) == dense_list(expected)


def test_structure():
    x = example("xla")
    assert (x._nnz(), x.sparse_dim(), x.dense_dim(), x.is_coalesced()) == (3, 2, 0, False)
    assert x.coalesce().is_coalesced()
    assert x._indices().device.type == x._values().device.type == "xla"
    assert "nnz=3" in str(x) and "xla:0" in str(x)


def test_errors_are_the_cpus():
    with pytest.raises(RuntimeError, match="Use add\\(dense, sparse\\) instead"):
        example("xla") + 1
    with pytest.raises(RuntimeError, match="copy_\\(\\) between dense and sparse Tensors is not implemented"):
        torch.zeros(2, 3, device="xla").copy_(example("xla"))


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, 0.1),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.Adagrad(p, 0.1),
    ],
    ids=["SGD", "momentum", "Adagrad"],
)
def test_an_embedding_with_sparse_gradients_trains(optimizer):
    weights = []
    for device in ("cpu", "xla"):
        torch.manual_seed(0)
        embedding = torch.nn.Embedding(5, 3, sparse=True).to(device)
        steps = optimizer(embedding.parameters())
        for _ in range(3):
            steps.zero_grad()
            embedding(torch.tensor([1, 3, 1], device=device)).pow(2).sum().backward()
            assert embedding.weight.grad.is_sparse
            steps.step()
        weights.append(embedding.weight.detach().cpu())
    torch.testing.assert_close(weights[1], weights[0])
