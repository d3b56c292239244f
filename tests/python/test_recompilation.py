"""What varies from step to step is an input of the program: a training loop compiles a few programs, then none."""

import gc

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla


def settle(step, warm_up=3):
    for i in range(warm_up):
        step(i)
        torch_xla.sync()


def assert_no_compiles(compiles, step, steps=range(3, 8)):
    settle(step)
    before = compiles()
    for i in steps:
        step(i)
        torch_xla.sync()
    assert compiles() == before


def test_python_numbers(compiles):
    x = torch.ones(4).to("xla")
    results = []

    def step(i):
        results.append(x * (i + 0.5) + i)

    assert_no_compiles(compiles, step)
    assert [r[0].item() for r in results] == [2 * i + 0.5 for i in range(8)]


def test_numbers_that_become_equal(compiles):
    x = torch.ones(4).to("xla")

    def step(i):
        return x * (i % 3 + 1.0) + 1.0 + x * 2.0

    assert_no_compiles(compiles, step, range(6))


READS = pytest.mark.parametrize(
    "index",
    [
        lambda x, i: x[i],
        lambda x, i: x[i : i + 2],
        lambda x, i: x[:, i],
        lambda x, i: x.narrow(0, i, 2),
        lambda x, i: x.select(1, i),
    ],
    ids=["int", "slice", "column", "narrow", "select"],
)


@READS
def test_reading_at_a_varying_index(compiles, index):
    cpu = torch.arange(100.0).view(10, 10)
    x = cpu.to("xla")
    results = []

    def step(i):
        results.append(index(x, i) + 1)

    assert_no_compiles(compiles, step)
    for i, result in enumerate(results):
        assert torch.equal(result.cpu(), index(cpu, i) + 1)


@READS
def test_gradient_of_reading_at_a_varying_index(compiles, index):
    cpu = torch.arange(100.0).view(10, 10).requires_grad_()
    x = cpu.detach().to("xla").requires_grad_()
    results = []

    def step(i):
        results.append(torch.autograd.grad((index(x, i) ** 2).sum(), x)[0])

    assert_no_compiles(compiles, step)
    for i, result in enumerate(results):
        assert torch.equal(result.cpu(), torch.autograd.grad((index(cpu, i) ** 2).sum(), cpu)[0])


def test_writing_at_a_varying_index(compiles):
    x, cpu = torch.zeros(10, 3).to("xla"), torch.zeros(10, 3)

    def step(i):
        for t in (x, cpu):
            t[i] = i + 1.0
            t[i, 1] += 10

    assert_no_compiles(compiles, step)
    assert torch.equal(x.cpu(), cpu)


def test_masked_assignment_with_a_varying_count(compiles):
    x, cpu = torch.arange(10.0).to("xla"), torch.arange(10.0)

    def step(i):
        for t in (x, cpu):
            t[t > 9 - i] = -1.0

    assert_no_compiles(compiles, step)
    assert torch.equal(x.cpu(), cpu)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_training_loop_with_dropout_and_schedule(compiles, name):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4)).to("xla")
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **options)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    losses = []

    def step(i):
        x = torch.randn(32, 8).to("xla")
        y = torch.randint(0, 4, (32,)).to("xla")
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())

    assert_no_compiles(compiles, step)
    assert all(loss == loss for loss in losses)


def test_reading_the_loss_compiles_nothing_new(compiles):
    w = torch.ones(3, requires_grad=True, device="xla")

    def step(i):
        loss = (w * 2).sum()
        loss.backward()
        torch_xla.sync()
        assert not bool(torch.isnan(loss))
        assert f"{loss.item():.1f}" == "6.0"
        w.grad = None

    assert_no_compiles(compiles, step)


def test_memory_and_programs_stay_constant_over_steps(compiles):
    model = nn.Linear(16, 16).to("xla")
    optimizer = torch.optim.Adam(model.parameters())

    def step(i):
        optimizer.zero_grad()
        model(torch.ones(4, 16).to("xla")).pow(2).mean().backward()
        optimizer.step()

    settle(step)
    before = compiles()
    gc.collect()  # what earlier tests left
    live = torch.xla.memory_allocated()
    for i in range(50):
        step(i)
        torch_xla.sync()
        assert torch_xla._XLAC.pending_nodes(0) == 0
    assert compiles() == before
    assert torch.xla.memory_allocated() == live


def test_deleted_models_free_their_memory(compiles):
    def use_a_model():
        model = nn.Linear(64, 64).to("xla")
        model(torch.ones(2, 64).to("xla")).sum().backward()
        torch_xla.sync(wait=True)
        del model
        gc.collect()
        compiles()
        return torch.xla.memory_allocated()

    first = use_a_model()
    assert [use_a_model() for _ in range(3)] == [first] * 3
