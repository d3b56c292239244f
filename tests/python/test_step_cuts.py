"""Loops that never sync are cut once a round, at the same place, so that programs are reused and memory is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import torch_xla
import torch_xla.debug
from torch_xla import _XLAC

DEVICE = torch.device("xla")
Step = Callable[[], torch.Tensor]


def pending() -> int:
    return _XLAC.pending_nodes(0)


def causes_since(count: int) -> list[str]:
    return [record["cause"].split(",")[0] for record in torch_xla.debug.executables()[count:]]


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    torch_xla.sync(wait=True)
    yield
    torch_xla.sync(wait=True)


def make_step(optimizer: Callable[..., torch.optim.Optimizer], device: str = "xla", width: int = 8) -> Step:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 1)).to(device)
    optimizer_ = optimizer(model.parameters())
    inputs = torch.randn(4, width).to(device)

    def step() -> torch.Tensor:
        optimizer_.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer_.step()
        return loss.detach()

    return step


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "adamw_for_loop": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=False, fused=False),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loop_without_sync_runs_the_programs_of_one_with_it(name: str, compiles: Callable[[], int]):
    marked, before = make_step(OPTIMIZERS[name], width=9), compiles()
    for _ in range(6):
        marked()
        torch_xla.sync()
    programs_of_marked = compiles() - before
    unmarked, before = make_step(OPTIMIZERS[name], width=10), compiles()
    most = 0
    for _ in range(30):
        unmarked()
        most = max(most, pending())
    assert most < 2 * pending()
    assert compiles() - before <= programs_of_marked + 1  # what is left at the end


def test_losses_are_those_of_eager():
    eager, lazy = make_step(OPTIMIZERS["adam"], "cpu"), make_step(OPTIMIZERS["adam"])
    expected = torch.stack([eager() for _ in range(20)])
    losses = [lazy() for _ in range(20)]
    torch.testing.assert_close(torch.stack(losses).cpu(), expected, rtol=1e-4, atol=1e-6)


def test_the_cut_comes_after_zero_grad_and_before_the_next_forward(compiles: Callable[[], int]):
    count = compiles()
    step = make_step(OPTIMIZERS["sgd"], width=11)
    step()
    nodes = pending()
    step()
    assert pending() <= nodes  # the first step ran when the second began
    assert causes_since(count) == ["the end of a training step"]


def test_reading_the_loss_each_step_compiles_each_program_once(compiles: Callable[[], int]):
    step, before = make_step(OPTIMIZERS["adam"], width=12), compiles()
    for _ in range(3):
        step().item()
    settled = compiles()
    assert settled - before <= 3
    for _ in range(5):
        step().item()
    assert compiles() == settled


@pytest.mark.parametrize("reads", [False, True])
def test_an_evaluation_after_each_epoch_compiles_nothing_new(reads: bool, compiles: Callable[[], int]):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 13 + reads), nn.ReLU(), nn.Linear(13 + reads, 3)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    batches = [(torch.randn(4, 8), torch.randint(3, (4,))) for _ in range(5)]

    def epoch() -> None:
        for images, labels in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images.to(DEVICE)), labels.to(DEVICE)).backward()
            optimizer.step()
        correct = torch.zeros((), device=DEVICE)
        with torch.no_grad():
            for images, labels in batches:
                matches = (model(images.to(DEVICE)).argmax(1) == labels.to(DEVICE)).sum()
                if reads:
                    matches.item()
                else:
                    correct += matches
        correct.item()

    for _ in range(2):
        epoch()
    settled = compiles()
    for _ in range(3):
        epoch()
    assert compiles() == settled


def test_gradient_accumulation_is_cut_once_an_optimizer_step(compiles: Callable[[], int]):
    torch.manual_seed(0)
    model = nn.Linear(8, 14).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(4, 8).to(DEVICE)
    count = compiles()

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(3):
            model(inputs).square().mean().backward()
        optimizer.step()

    for _ in range(4):
        step()
    assert causes_since(count) == ["the end of a training step"]


def test_parameters_written_by_hand(compiles: Callable[[], int]):
    weight = torch.randn(6, 15).to(DEVICE).requires_grad_()
    inputs = torch.randn(4, 6).to(DEVICE)
    count = compiles()
    for _ in range(8):
        (inputs @ weight).square().sum().backward()
        with torch.no_grad():
            weight -= 0.01 * weight.grad
        weight.grad = None
        assert pending() < 40
    assert causes_since(count) == ["the end of a training step"]


def long_round(state: torch.Tensor) -> None:
    x = state
    for _ in range(100):
        x = torch.sin(x) * 0.9
    state.mul_(0.5)
    state.add_(x)


def test_a_loop_without_gradients_is_recognised(compiles: Callable[[], int]):
    state = torch.ones(16).to(DEVICE)
    count = compiles()
    most = 0
    for _ in range(40):
        long_round(state)
        most = max(most, pending())
    assert most < 1000
    programs = causes_since(count)
    assert set(programs) == {"the end of a round"} and len(programs) <= 3
    expected = torch.ones(16)
    for _ in range(40):
        long_round(expected)
    torch.testing.assert_close(state.cpu(), expected)


def test_many_short_rounds_run_together(compiles: Callable[[], int]):
    state = torch.ones(17).to(DEVICE)
    count = compiles()
    most = 0
    for _ in range(1000):
        state.mul_(0.9)
        state.add_(torch.cos(state))
        most = max(most, pending())
    assert most < 300
    assert len(causes_since(count)) <= 2


def test_inference_over_uploaded_batches_is_bounded(compiles: Callable[[], int]):
    layers = [nn.Linear(8, 8) for _ in range(30)]
    model = nn.Sequential(*[module for layer in layers for module in (layer, nn.GELU())]).to(DEVICE)
    count = compiles()
    outputs = []
    most = 0
    with torch.no_grad():
        for i in range(60):
            outputs.append(model(torch.full((2, 8), float(i)).to(DEVICE)))
            most = max(most, pending())
    assert most < 1500
    assert len(causes_since(count)) <= 4
    expected = model(torch.full((2, 8), 59.0).to(DEVICE))
    torch.testing.assert_close(outputs[-1].cpu(), expected.detach().cpu())


def test_building_a_model_on_the_device_is_not_cut(compiles: Callable[[], int]):
    count = compiles()
    with torch.device("xla"):
        nn.Sequential(*[nn.Linear(4, 4) for _ in range(10)])
    assert causes_since(count) == []


def test_a_long_chain_of_fresh_values_is_not_cut(compiles: Callable[[], int]):
    count = compiles()
    x = torch.ones(4).to(DEVICE)
    for _ in range(2000):
        x = x * 1.0001 + 0.5
    assert pending() == 4000 and causes_since(count) == []


def test_checkpointed_steps_are_cut_between_steps_only(compiles: Callable[[], int]):
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 8)) for _ in range(4))
    blocks.to(DEVICE)
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01)
    inputs = torch.randn(4, 8).to(DEVICE)
    count = compiles()
    for _ in range(6):
        optimizer.zero_grad()
        x = inputs
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        x.square().mean().backward()
        optimizer.step()
    assert set(causes_since(count)) == {"the end of a training step"}
    assert len(causes_since(count)) <= 2


def test_a_region_stays_one_graph(compiles: Callable[[], int]):
    step = make_step(OPTIMIZERS["sgd"], width=13)
    step()
    before = compiles()

    @torch_xla.compile(full_graph=True)
    def three_steps() -> None:
        for _ in range(3):
            step()

    three_steps()
    assert compiles() == before + 1
    step()
    step()
    assert compiles() > before + 1  # outside of it steps are cut again


def test_it_can_be_switched_off(run_python: Callable[..., str]):
    program = """
import torch, torch_xla
from torch_xla import _XLAC
weight = torch.ones(4).to("xla").requires_grad_()
for _ in range(10):
    weight.square().sum().backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
print(len(_XLAC.executables()))
"""
    assert run_python(program, XLA_STEP_CUTS="0") == "0"
    assert int(run_python(program)) > 0
