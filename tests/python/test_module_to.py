"""Module.to("xla") keeps Parameter objects, and with them ties, optimizers and gradients."""

import copy

import pytest
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.embedding(x))


def test_parameters_stay_the_same_objects():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    before = list(model.parameters())
    model.to("xla")
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    assert all(p.device.type == "xla" for p in model.parameters())
    assert all(b.device.type == "xla" for b in model.buffers())
    model.cpu()
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    assert all(p.device.type == "cpu" for p in model.parameters())


def test_tied_weights_stay_tied_and_train_together():
    model = Tied().to("xla")
    assert model.head.weight is model.embedding.weight
    model(torch.tensor([1, 2], device="xla")).sum().backward()
    with torch.no_grad():
        model.head.weight.add_(1)
    assert torch.equal(model.head.weight.cpu(), model.embedding.weight.cpu())
    assert len(list(model.parameters())) == 1


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_an_optimizer_built_before_to_trains_the_moved_parameters(name):
    def train(device):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
        model.to(device)
        x = torch.arange(12.0).view(4, 3).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            if name == "Adagrad":
                # Its state was made on the CPU, as for every device that a model is moved to afterwards.
                for state in optimizer.state.values():
                    state["sum"] = state["sum"].to(device)
            optimizer.step()
        return [p.detach().cpu() for p in model.parameters()]

    for actual, expected in zip(train("xla"), train("cpu"), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_gradients_move_along():
    model = nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    expected = model.weight.grad.clone()
    model.to("xla")
    assert model.weight.grad.device.type == "xla"
    assert torch.equal(model.weight.grad.cpu(), expected)


def test_to_changes_the_dtype_of_parameters_in_place():
    model = nn.Linear(3, 2)
    weight = model.weight
    model.to("xla", torch.bfloat16)
    assert model.weight is weight
    assert (weight.dtype, weight.device.type) == (torch.bfloat16, "xla")


def test_state_dict_round_trip_between_devices():
    torch.manual_seed(0)
    source = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).to("xla")
    source(torch.randn(4, 1, 5, 5).to("xla"))
    target = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    target.load_state_dict(source.state_dict())
    for name, value in source.state_dict().items():
        assert torch.equal(value.cpu(), target.state_dict()[name]), name
    back = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).to("xla")
    back.load_state_dict(target.state_dict())
    for name, value in back.state_dict().items():
        assert torch.equal(value.cpu(), target.state_dict()[name]), name


def test_deepcopy_of_a_module_is_independent_and_keeps_ties():
    model = Tied().to("xla")
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embedding.weight
    assert twin.head.weight is not model.head.weight
    before = model.head.weight.detach().cpu()
    with torch.no_grad():
        twin.head.weight.zero_()
    assert torch.equal(model.head.weight.cpu(), before)
    assert twin.head.weight.abs().sum().item() == 0


def test_modules_can_be_made_on_the_device():
    with torch.device("xla"):
        model = nn.Linear(3, 2)
    assert model.weight.device.type == "xla"
    assert model(torch.ones(1, 3, device="xla")).shape == (1, 2)


def test_share_memory_is_refused_with_a_reason():
    model = nn.Linear(2, 2).to("xla")
    with pytest.raises(RuntimeError, match="share_memory_: other processes cannot map the memory of xla:0"):
        model.share_memory()
    with pytest.raises(RuntimeError, match="share_memory_"):
        torch.ones(2, device="xla").share_memory_()
