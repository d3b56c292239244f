"""One pass through every mechanism; small enough to run under a sanitizer."""

import copy
import gc
import io

import pytest
import torch
from threads import run_in_threads
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_xla


def test_training_steps_lower_the_loss():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(8, 1, 8, 8).to("xla")
    labels = torch.arange(8).remainder(3).to("xla")
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_writes_through_views_reach_every_alias():
    base = torch.zeros(4, 6, device="xla")
    row, column = base[1], base[:, 2]
    row.add_(1)
    column.mul_(5)
    base.t()[3].fill_(7)
    expected = torch.zeros(4, 6)
    expected[1] += 1
    expected[:, 2] *= 5
    expected.t()[3] = 7
    assert torch.equal(base.cpu(), expected)
    assert torch.equal(row.cpu(), expected[1])


def test_checkpointed_gradients_equal_plain_ones():
    weight = torch.linspace(-1, 1, 16).reshape(4, 4).to("xla").requires_grad_()

    def block(x):
        return torch.tanh(x @ weight)

    plain = torch.autograd.grad(block(block(weight)).sum(), weight)[0]
    saved = checkpoint(block, checkpoint(block, weight, use_reentrant=False), use_reentrant=False)
    again = torch.autograd.grad(saved.sum(), weight)[0]
    torch.testing.assert_close(again.cpu(), plain.cpu())


def test_save_load_and_deepcopy_keep_sharing():
    base = torch.arange(6.0).to("xla")
    pair = {"base": base, "view": base[2:]}
    file = io.BytesIO()
    torch.save(pair, file)
    file.seek(0)
    for other in (torch.load(file), copy.deepcopy(pair)):
        other["view"].zero_()
        assert other["base"].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert base.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_an_error_leaves_the_tensors_usable():
    x = torch.ones(2, 3, device="xla")
    with pytest.raises(RuntimeError):
        x @ torch.ones(2, 4, device="xla")
    assert (x + 1).sum().item() == 12.0


def test_an_operator_without_lowering_falls_back():
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    torch.testing.assert_close(torch.linalg.eigvalsh(x.to("xla")).cpu(), torch.linalg.eigvalsh(x))


def test_threads_record_at_once():
    results = {}

    def work(index):
        x = torch.full((16,), float(index), device="xla")
        for _ in range(20):
            x = x + 1
        results[index] = x.sum().item()

    run_in_threads([lambda i=i: work(i) for i in range(4)])
    assert results == {i: 16.0 * (i + 20) for i in range(4)}


def test_long_chain_is_released_without_recursion():
    x = torch.zeros((), device="xla")
    for _ in range(3000):
        x = x + 1
    del x
    gc.collect()
    assert torch.ones(1, device="xla").item() == 1.0
