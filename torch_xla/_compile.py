"""Lets `torch.compile` take functions on `xla`.

Its default backend, inductor, makes code for devices that it knows. On `xla` the operators of a captured graph are
recorded when it runs, and XLA compiles them together with what else is pending: there is nothing else to make.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def install() -> None:
    """Called once. A release of PyTorch without the private class keeps `backend="openxla"` alone."""
    wrapper = getattr(torch, "_TorchCompileInductorWrapper", None)
    if wrapper is None:
        return
    with_inductor = wrapper.__call__

    @functools.wraps(with_inductor)
    def compiled(self: Any, model_: torch.fx.GraphModule, inputs_: list[Any], **kwargs: Any) -> Callable[..., Any]:
        return model_ if _is_on_xla(model_, inputs_) else with_inductor(self, model_, inputs_, **kwargs)

    wrapper.__call__ = compiled


def _is_on_xla(model: torch.fx.GraphModule, inputs: list[Any]) -> bool:
    """Some value of the graph, which PyTorch has annotated with examples, is on `xla`."""
    values = torch.utils._pytree.tree_leaves([inputs, *(node.meta for node in model.graph.nodes)])
    return any(isinstance(value, torch.Tensor) and value.device.type == "xla" for value in values)
