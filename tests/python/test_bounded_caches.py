"""What is kept from one graph to the next is bounded, however many different ones there are."""

from __future__ import annotations

from collections.abc import Callable


def test_ever_new_shapes_do_not_pile_up(run_python: Callable[..., str]):
    program = """
import gc, torch, torch_xla
from torch_xla import _XLAC
remembered, programs = [], []
fixed = torch.ones(3, 5, device="xla")
for size in range(1, 161):
    x = torch.ones(size, 4).to("xla")
    y = (x.t() @ x).relu() + size
    z = (fixed @ fixed.t()).sum()
    assert y[0, 0].item() == 2 * size and z.item() == 45
    remembered.append(_XLAC.num_remembered_calls())
    programs.append(_XLAC.num_cached_programs())
print(max(remembered[40:]), remembered[10], max(programs))
"""
    most, early, programs = map(int, run_python(program, XLA_MEMO_SIZE="20", XLA_COMPILATION_CACHE_SIZE="16").split())
    # Two memos, each of two generations, and what one graph adds after the limit is reached.
    assert early > 20 and most <= 2 * 2 * (20 + 15)
    assert programs <= 16


def test_forgotten_calls_work_again(run_python: Callable[..., str]):
    program = """
import torch, torch_xla
from torch_xla import _XLAC
def use(size):
    x = torch.arange(float(size), device="xla", requires_grad=True)
    (x.flip(0) * x).sum().backward()
    return x.grad.cpu()
first = [use(size) for size in range(1, 40)]
again = [use(size) for size in range(1, 40)]
print(all(torch.equal(a, b) for a, b in zip(first, again)), _XLAC.num_remembered_calls() < 150)
"""
    assert run_python(program, XLA_MEMO_SIZE="8") == "True True"


def test_explanations_outlive_what_was_forgotten(run_python: Callable[..., str]):
    program = """
import torch, torch_xla, torch_xla.debug
for size in range(1, 30):
    (torch.ones(size, 2).to("xla") * 2).sum().item()
print(torch_xla.debug.executables()[-1]["explanation"])
"""
    explanation = run_python(program, XLA_MEMO_SIZE="4")
    assert "was [28, 2], is [29, 2]" in explanation
