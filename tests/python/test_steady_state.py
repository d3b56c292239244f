"""A training loop reaches a steady state: after a few steps nothing grows and nothing compiles."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla
from torch_xla import _XLAC

STEPS = 300
WARM_UP = 3


def mlp() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor], type[torch.optim.Optimizer]]:
    layers = [nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(4)]
    return nn.Sequential(*layers), (torch.randn(8, 16), torch.randn(8, 16)), torch.optim.Adam


def cnn() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor], type[torch.optim.Optimizer]]:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(36, 5),
    )
    return model, (torch.randn(6, 1, 8, 8), torch.randn(6, 5)), torch.optim.SGD


def transformer() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor], type[torch.optim.Optimizer]]:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
    return layer, (torch.randn(2, 6, 16), torch.randn(2, 6, 16)), torch.optim.AdamW


@pytest.mark.parametrize("workload", [mlp, cnn, transformer])
def test_bytes_nodes_and_compiles_stay_constant(workload) -> None:
    torch.manual_seed(0)
    model, (x, y), optimizer_class = workload()
    model, x, y = model.to("xla"), x.to("xla"), y.to("xla")
    optimizer = optimizer_class(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    states = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        scheduler.step()
        torch_xla.sync(wait=True)
        compiles = _XLAC.counters().get("UncachedCompile", 0)
        states.append((_XLAC.bytes_live(0), _XLAC.pending_nodes(0), compiles))
    assert set(states[WARM_UP:]) == {states[WARM_UP]}
    assert states[-1][1] == 0


def test_a_loop_that_never_syncs_is_cut_into_bounded_pieces() -> None:
    x = torch.zeros(2, device="xla")
    most_pending = 0
    for _ in range(10_000):
        x = x + 1
        most_pending = max(most_pending, _XLAC.pending_nodes(0))
    assert 8_000 < most_pending < 9_000
    assert x.tolist() == [10_000.0, 10_000.0]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def two_sums_of_products(x: torch.Tensor) -> torch.Tensor:
    """Its temporaries are larger than any block that the C library keeps."""
    product = x @ x
    return (product @ product.t()).sum() + product.sum()


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted by Linux")
def test_a_step_maps_no_pages_anew() -> None:
    x = torch.full((3000, 3000), 1e-3).to("xla")  # 36 MB

    def run() -> torch.Tensor:
        y = two_sums_of_products(x)
        torch_xla.sync(wait=True)
        return y

    for _ in range(3):
        run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        run()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 5 * 36_000_000 // 4096 // 10


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from Linux")
def test_empty_cache_gives_the_temporaries_back() -> None:
    x = torch.full((3000, 3000), 1e-3).to("xla")
    y = two_sums_of_products(x)
    torch_xla.sync(wait=True)
    held = resident_bytes()
    torch.xla.empty_cache()
    assert resident_bytes() < held - 36_000_000
    assert y.item() == pytest.approx(two_sums_of_products(x.cpu().double()).item(), rel=1e-4)


def adam_steps(device: str, steps: int, touched: int | None = None) -> list[torch.Tensor]:
    """The counters and the parameters afterwards. Before step `touched`, the second counter is set to 10."""
    torch.manual_seed(0)
    parameters = [nn.Parameter(torch.randn(3).to(device)) for _ in range(4)]
    optimizer = torch.optim.Adam(parameters, fused=True)
    for step in range(steps):
        if step == touched:
            optimizer.state[parameters[1]]["step"].fill_(10)
        sum((x * x).sum() for x in parameters).backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "xla":
            torch_xla.sync()
    counters = [optimizer.state[x]["step"] for x in parameters]
    return [x.detach().cpu() for x in [*counters, *parameters]]


def test_counters_of_steps_are_one_value() -> None:
    adam_steps("xla", 2)
    before = _XLAC.counters()
    adam_steps("xla", 5)
    after = _XLAC.counters()
    aliased = after["InputOutputAliasCount"] - before["InputOutputAliasCount"]
    # In each step: parameters, two averages each, and one counter for all.
    assert aliased == 5 * (3 * 4 + 1)
    assert after["UncachedCompile"] == before["UncachedCompile"]


@pytest.mark.parametrize("touched", [None, 1, 3])
def test_a_counter_of_one_parameter_may_be_written(touched: int | None) -> None:
    torch.testing.assert_close(adam_steps("xla", 5, touched), adam_steps("cpu", 5, touched))
