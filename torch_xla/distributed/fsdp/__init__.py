"""Fully sharded training is not supported yet; rematerialising a module's activations is."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_xla.utils.checkpoint import checkpoint


class XlaFullyShardedDataParallel(torch.nn.Module):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "XlaFullyShardedDataParallel: training sharded over several devices is not supported yet"
        )


class SpmdFullyShardedDataParallel(torch.nn.Module):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "SpmdFullyShardedDataParallel: training sharded over several devices is not supported yet"
        )


def checkpoint_module(module: torch.nn.Module) -> torch.nn.Module:
    """The module itself. Its forward keeps only its inputs for the backward, which computes the rest again."""
    module.forward = functools.partial(checkpoint, module.forward)  # type: ignore[method-assign]
    return module
