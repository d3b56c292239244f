"""torch.optim on xla: the same parameters as on the CPU, in the plain, foreach and fused forms, without fallbacks."""

import pytest
import torch
from torch import nn

import torch_xla
import torch_xla.debug.metrics as met

OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.01, "amsgrad": True},
    "AdamW": {"lr": 0.01},
    "RMSprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.1},
    "Adadelta": {"lr": 1.0},
    "Adamax": {"lr": 0.01},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "ASGD": {"lr": 0.01},
    "Rprop": {"lr": 0.01},
}
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def train(name, device, steps=6, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    x = torch.randn(8, 5).to(device)
    model.to(device)
    optimizer = getattr(torch.optim, name)(model.parameters(), **OPTIMIZERS[name], **options)
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        if device == "xla":
            torch_xla.sync()
    return [p.detach().cpu() for p in model.parameters()]


def assert_equal_to_cpu(name, **options):
    met.clear_all()
    actual = train(name, "xla", **options)
    assert met.executed_fallback_ops() == []
    for a, e in zip(actual, train(name, "cpu", foreach=False), strict=True):
        torch.testing.assert_close(a, e, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("foreach", [False, True], ids=["plain", "foreach"])
def test_equal_to_cpu(name, foreach):
    assert_equal_to_cpu(name, foreach=foreach)


@pytest.mark.parametrize("name", FUSED)
def test_fused_equal_to_cpu(name):
    assert_equal_to_cpu(name, fused=True)


def test_foreach_is_the_default_form():
    parameters = [nn.Parameter(torch.ones(2, device="xla")) for _ in range(20)]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for p in parameters:
        p.grad = torch.ones(2).to("xla")
    torch_xla.sync()
    optimizer.step()
    assert torch_xla._XLAC.pending_nodes(0) < 20
    assert torch.equal(parameters[7].detach().cpu(), torch.full((2,), 1.0) - 0.1)
