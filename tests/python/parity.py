"""Runs a function on CPU and on an xla device and compares values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

TOLERANCES = {
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (2e-2, 2e-2),
    torch.float32: (1e-5, 1e-5),
    torch.float64: (1e-9, 1e-9),
    torch.complex64: (1e-5, 1e-5),
}


def on_xla(tree: Any) -> Any:
    def move(x: Any) -> Any:
        return x.detach().to("xla").requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x

    return pytree.tree_map(move, tree)


def assert_equal(actual: Any, expected: Any) -> None:
    actual_leaves, expected_leaves = pytree.tree_leaves(actual), pytree.tree_leaves(expected)
    assert len(actual_leaves) == len(expected_leaves)
    for a, e in zip(actual_leaves, expected_leaves, strict=True):
        if not isinstance(e, torch.Tensor):
            assert a == e
            continue
        rtol, atol = TOLERANCES.get(e.dtype, (0, 0))
        torch.testing.assert_close(a.detach().cpu(), e.detach(), rtol=rtol, atol=atol, equal_nan=True)


def assert_same(function: Callable[..., Any], *inputs: Any) -> None:
    """Values, and gradients of every input that requires one, for a random gradient of every differentiable output."""
    inputs = pytree.tree_map(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x, inputs
    )
    xla_inputs = on_xla(inputs)
    expected, actual = function(*inputs), function(*xla_inputs)
    assert_equal(actual, expected)

    def differentiable(tree: Any) -> list[torch.Tensor]:
        return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor) and x.requires_grad]

    if not differentiable(inputs):
        return
    gradients = [torch.randn_like(x) for x in differentiable(expected)]
    assert_equal(
        torch.autograd.grad(differentiable(actual), differentiable(xla_inputs), on_xla(gradients), allow_unused=True),
        torch.autograd.grad(differentiable(expected), differentiable(inputs), gradients, allow_unused=True),
    )
