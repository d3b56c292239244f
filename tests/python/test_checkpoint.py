"""Gradient checkpointing with unmodified torch.utils.checkpoint: the results of the CPU, and less memory."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

import pytest
import torch
import torch.utils.checkpoint
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

import torch_xla
import torch_xla.debug
import torch_xla.utils.checkpoint

DEVICE = torch.device("xla")
DIM = 64

# Name and call of each way to checkpoint.
WAYS = {
    "reentrant": functools.partial(checkpoint, use_reentrant=True),
    "non_reentrant": functools.partial(checkpoint, use_reentrant=False),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Callable[..., torch.Tensor]:
    return WAYS[request.param]


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(DIM, 4 * DIM)
        self.down = torch.nn.Linear(4 * DIM, DIM)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.tanh(self.up(x)))


def make_blocks(count: int = 4) -> torch.nn.ModuleList:
    torch.manual_seed(0)
    return torch.nn.ModuleList(Block() for _ in range(count))


def gradients(module: torch.nn.Module, *inputs: torch.Tensor) -> list[torch.Tensor]:
    return [parameter.grad.cpu() for parameter in module.parameters()] + [x.grad.cpu() for x in inputs]


def assert_close(actual: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def run(run_model: Callable[[torch.nn.Module, torch.Tensor], torch.Tensor], module: torch.nn.Module, device: object):
    """Loss and gradients of a copy of the module on the device."""

    module = copy.deepcopy(module).to(device)
    torch.manual_seed(1)
    x = torch.randn(32, DIM).to(device).requires_grad_()
    loss = run_model(module, x)
    loss.backward()
    return loss.detach().cpu(), gradients(module, x)


def check_against_cpu(run_model: Callable[[torch.nn.Module, torch.Tensor], torch.Tensor], module: torch.nn.Module):
    loss, grads = run(run_model, module, DEVICE)
    expected_loss, expected_grads = run(run_model, module, "cpu")
    torch.testing.assert_close(loss, expected_loss, rtol=1e-4, atol=1e-5)
    assert_close(grads, expected_grads)


def pending_barriers(tensors: list[torch.Tensor]) -> int:
    return torch_xla.debug.tensors_text(tensors).count("xla::optimization_barrier(")


# --- results ----------------------------------------------------------------------------------------------------------


def test_gradients_equal_those_of_the_cpu(way):
    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = way(block, x)
        return (x * x).mean()

    check_against_cpu(model, make_blocks())


def test_nested(way):
    def inner(block: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return way(block, torch.sin(x))

    def outer(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return inner(blocks[1], inner(blocks[0], x))

    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return way(outer, blocks, x).square().mean()

    check_against_cpu(model, make_blocks(2))


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_sequential(use_reentrant: bool):
    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return checkpoint_sequential(list(blocks), 2, x, use_reentrant=use_reentrant).square().mean()

    check_against_cpu(model, make_blocks())


def test_selective():
    def policy(context: object, op: object, *args: object, **kwargs: object) -> CheckpointPolicy:
        keep = op in (torch.ops.aten.addmm.default, torch.ops.aten.mm.default)
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        contexts = functools.partial(create_selective_checkpoint_contexts, policy)
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False, context_fn=contexts)
        return x.square().mean()

    check_against_cpu(model, make_blocks())


def test_checkpoint_wrapper():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = block(x)
        return x.square().mean()

    check_against_cpu(model, torch.nn.ModuleList(checkpoint_wrapper(block) for block in make_blocks()))


def test_the_function_of_torch_xla():
    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        for use_reentrant, block in zip((True, False), blocks, strict=True):
            x = torch_xla.utils.checkpoint.checkpoint(block, x, use_reentrant=use_reentrant)
        return x.square().mean()

    check_against_cpu(model, make_blocks(2))


def test_several_outputs_and_arguments_that_are_no_tensors(way):
    def part(block: torch.nn.Module, x: torch.Tensor, power: int, name: str | None):
        y = block(x)
        return y, y**power, x.argmax(), name

    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        y, cube, index, name = way(part, blocks[0], x, 3, "name")
        assert name == "name" and index.dtype == torch.int64
        return (y + cube).mean()

    check_against_cpu(model, make_blocks(1))


def test_keyword_arguments():
    def part(block: torch.nn.Module, x: torch.Tensor, *, scale: float, shift: torch.Tensor):
        return block(x) * scale + shift

    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(part, blocks[0], x, scale=0.5, shift=x.detach(), use_reentrant=False).square().mean()

    check_against_cpu(model, make_blocks(1))


def test_parameters_shared_between_blocks(way):
    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = way(blocks[0], x)
        return x.square().mean()

    check_against_cpu(model, make_blocks(1))


def test_batch_norm(way):
    def model(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return way(module, x).square().mean()

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(DIM, DIM), torch.nn.BatchNorm1d(DIM), torch.nn.ReLU())
    check_against_cpu(model, module)
    buffers = []
    for device in ("cpu", DEVICE):
        copied = copy.deepcopy(module).to(device)
        model(copied, torch.linspace(-1, 1, 8 * DIM).view(8, DIM).to(device).requires_grad_()).backward()
        buffers.append([buffer.cpu() for buffer in copied.buffers()])
    assert_close(buffers[1], buffers[0])


def test_autocast(way):
    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            for block in blocks:
                x = way(block, x)
        return x.float().square().mean()

    loss, grads = run(model, make_blocks(2), DEVICE)
    expected_loss, expected_grads = run(model, make_blocks(2), "cpu")
    torch.testing.assert_close(loss, expected_loss, rtol=2e-2, atol=2e-2)
    for a, b in zip(grads, expected_grads, strict=True):
        torch.testing.assert_close(a, b, rtol=5e-2, atol=5e-3)


@pytest.mark.parametrize("early_stop", [True, False])
def test_early_stop(early_stop: bool):
    def model(blocks: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.utils.checkpoint.set_checkpoint_early_stop(early_stop):
            for block in blocks:
                x = checkpoint(block, x, use_reentrant=False)
        return x.square().mean()

    check_against_cpu(model, make_blocks(2))


def test_dropout_replays_its_mask(way):
    masks: list[torch.Tensor] = []

    def part(x: torch.Tensor) -> torch.Tensor:
        dropped = torch.nn.functional.dropout(x, 0.5)
        masks.append(dropped.detach() != 0)
        # A result that the backward needs, so that early stop does not leave the mask out.
        return torch.tanh(dropped) * dropped

    x = torch.ones(64, 64, device=DEVICE, requires_grad=True)
    out = way(part, x)
    out.sum().backward()
    assert len(masks) == 2 and torch.equal(masks[0].cpu(), masks[1].cpu())
    assert torch.equal(x.grad.cpu() != 0, out.detach().cpu() != 0)
    assert 0.3 < masks[0].float().mean().item() < 0.7


def test_dropout_without_the_state_draws_again():
    masks: list[torch.Tensor] = []

    def part(x: torch.Tensor) -> torch.Tensor:
        dropped = torch.nn.functional.dropout(x, 0.5)
        masks.append(dropped.detach() != 0)
        return dropped * dropped

    x = torch.ones(64, 64, device=DEVICE, requires_grad=True)
    checkpoint(part, x, use_reentrant=False, preserve_rng_state=False).sum().backward()
    assert not torch.equal(masks[0].cpu(), masks[1].cpu())


def test_a_recomputation_leaves_the_generator_as_it_was(way):
    x = torch.ones(8, 8, device=DEVICE, requires_grad=True)
    draws = []
    for use_checkpoint in (True, False):
        torch.manual_seed(3)
        part = functools.partial(torch.nn.functional.dropout, p=0.5)
        (way(part, x) if use_checkpoint else part(x)).sum().backward()
        draws.append(torch.rand(4, device=DEVICE).cpu())
    assert torch.equal(draws[0], draws[1])


def test_an_exception_inside_a_recomputation(way):
    calls = 0

    def part(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        y = torch.sin(x)
        if calls == 2:
            raise ValueError("the second time")
        return y * y

    x = torch.ones(4, device=DEVICE, requires_grad=True)
    with pytest.raises(ValueError, match="the second time"):
        way(part, x).sum().backward()
    # What is recorded afterwards is no recomputation.
    x.grad = None
    y = torch.cos(x).sum()
    y.backward()
    assert pending_barriers([x.grad]) == 0
    assert torch.allclose(x.grad.cpu(), -torch.sin(torch.ones(4)))


# --- memory and structure ---------------------------------------------------------------------------------------------


def temporaries(blocks: torch.nn.Module, call: Callable[..., torch.Tensor]) -> int:
    x = torch.randn(2048, DIM).to(DEVICE).requires_grad_()
    blocks.zero_grad()
    torch_xla.sync(wait=True)
    before = [program["runs"] for program in torch_xla.debug.executables()]
    h = x
    for block in blocks:
        h = call(block, h)
    h.square().mean().backward()
    torch_xla.sync(wait=True)
    programs = torch_xla.debug.executables()
    (ran,) = (program for i, program in enumerate(programs) if i >= len(before) or program["runs"] > before[i])
    return ran["temp_bytes"]


def test_it_saves_memory(way):
    blocks = make_blocks(8).to(DEVICE)
    plain = temporaries(blocks, lambda block, x: block(x))
    if plain == 0:
        pytest.skip("the plugin counts no temporaries")
    assert temporaries(blocks, way) < 0.5 * plain


def test_every_step_uses_one_program(way, compiles):
    blocks = make_blocks(2).to(DEVICE)
    counts = []
    for _ in range(4):
        x = torch.randn(8, DIM).to(DEVICE).requires_grad_()
        h = x
        for block in blocks:
            h = way(block, h)
        h.square().mean().backward()
        blocks.zero_grad()
        counts.append(compiles())
    assert counts[1] == counts[3]


def test_create_graph_without_checkpointing_gets_no_barrier():
    x = torch.ones(4, device=DEVICE, requires_grad=True)
    (grad,) = torch.autograd.grad(torch.sin(x * x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x, create_graph=True)
    assert pending_barriers([grad, second]) == 0
    expected = torch.ones(4, requires_grad=True)
    (grad_cpu,) = torch.autograd.grad(torch.sin(expected * expected).sum(), expected, create_graph=True)
    (second_cpu,) = torch.autograd.grad(grad_cpu.sum(), expected)
    torch.testing.assert_close(second.detach().cpu(), second_cpu)


def test_a_recomputation_enters_through_barriers(way):
    x = torch.ones(4, device=DEVICE, requires_grad=True)
    torch_xla.sync()
    way(lambda x: torch.tanh(x) * 2, x).sum().backward()
    assert pending_barriers([x.grad]) >= 1


def test_the_switch(run_python):
    program = """
import torch, torch_xla, torch_xla.debug
from torch.utils.checkpoint import checkpoint
x = torch.ones(4, device="xla", requires_grad=True)
checkpoint(lambda x: torch.tanh(x) * 2, x, use_reentrant=False).sum().backward()
print(torch_xla.debug.tensors_text([x.grad]).count("xla::optimization_barrier("))
"""
    assert run_python(program, XLA_REMAT_BARRIER="0") == "0"
    assert int(run_python(program, XLA_REMAT_BARRIER="1")) >= 1
