"""Programs that are dropped from memory, by number or for want of memory mappings: what they did and what ran them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

needs_mappings = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system has no list of mappings")


@needs_mappings
@pytest.mark.slow
def test_mappings_stay_within_the_limit(run_python: Callable[..., str]):
    start = """
import torch, torch_xla
from torch_xla.debug import metrics
def mappings():
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)
def use(size):
    return (torch.ones(size).to("xla") * 2 + size).sum().item() == size * (size + 2)
use(1)
before = mappings()
"""
    before = int(run_python(start + "print(before)"))
    # A program takes three at least: there is room for 130 of them.
    limit = int((before + 400) / 0.6)
    program = """
most, right = 0, True
for size in range(2, 202):
    right = use(size) and right
    most = max(most, mappings())
compiled = len(torch_xla.debug.executables())
right = use(2) and use(201) and right
print(right, most, len(torch_xla.debug.executables()) - compiled, metrics.counter_value("EvictedProgram"))
"""
    right, most, recompiled, evicted = run_python(start + program, XLA_MAX_MEMORY_MAPPINGS=str(limit)).split()
    assert right == "True" and recompiled == "1"
    assert int(most) <= before + 400 + 15  # what the newest program takes is known afterwards
    assert 30 <= int(evicted) <= 170


def test_a_program_that_runs_may_be_dropped(run_python: Callable[..., str]):
    program = """
import torch, torch_xla
from torch_xla import _XLAC
from torch_xla.debug import metrics
x = torch.full((600, 600), 0.01, device="xla")
torch_xla.sync(wait=True)
def slow(k):
    y = x
    for _ in range(30):
        y = torch.tanh(y @ x) + k
    return y.sum()
running = [slow(k) for k in range(3)]
torch_xla.sync()
before = metrics.counter_value("EvictedProgram") or 0
for size in range(2, 8):  # each takes the only place
    assert (torch.ones(size).to("xla") * 2).sum().item() == 2 * size
assert _XLAC.num_cached_programs() == 1
dropped = metrics.counter_value("EvictedProgram") - before
got = torch.stack(running).cpu()
x = x.cpu()
print(dropped, torch.allclose(got, torch.stack([slow(k) for k in range(3)]), rtol=1e-4))
"""
    dropped, is_right = run_python(program, XLA_COMPILATION_CACHE_SIZE="1").split()
    assert int(dropped) >= 6 and is_right == "True"


def test_a_program_that_fails_may_be_dropped_before(run_python: Callable[..., str]):
    program = """
import torch, torch_xla
x = torch.zeros(400, 400, device="xla")
inverse = torch.linalg.inv(x @ x)
kept = x + 3
torch_xla.sync()
for size in range(2, 6):
    (torch.ones(size).to("xla") * 2).sum()
    torch_xla.sync()
try:
    inverse.cpu()
except torch.linalg.LinAlgError as error:
    print("raised", "singular" in str(error))
print(kept[0, 0].item())
"""
    assert run_python(program, XLA_COMPILATION_CACHE_SIZE="1") == "raised True\n3.0"


def test_a_limit_must_be_positive(run_python: Callable[..., str]):
    program = """
import torch, torch_xla
try:
    (torch.ones(3, device="xla") + 1).cpu()
except ValueError as error:
    print(error)
"""
    assert run_python(program, XLA_COMPILATION_CACHE_SIZE="0").startswith(
        "XLA_COMPILATION_CACHE_SIZE: expected a positive"
    )
