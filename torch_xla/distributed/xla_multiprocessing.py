"""Starting the processes of a training job; this version runs one process on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

import torch_xla

T = TypeVar("T")


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int | None = None,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Calls fn(0, *args) in this process.

    `nprocs` must be 1 or None, and None where there are several devices is refused rather than taken for 1: such a job
    would train on one of them only.
    """
    if nprocs is None and torch_xla.device_count() > 1:
        raise NotImplementedError(
            f"spawn: a process for each of {torch_xla.device_count()} devices is not supported; nprocs=1 uses one"
        )
    if nprocs not in (None, 1):
        raise NotImplementedError(
            f"spawn: nprocs={nprocs} is not supported: this version runs one process on one device"
        )
    fn(0, *args)


class MpModelWrapper:
    """Holds a model until each process moves it to its device."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model

    def to(self, device: torch.device | str) -> torch.nn.Module:
        """The model, moved to the device: the same object."""
        return self._model.to(device)


class MpSerialExecutor:
    """Calls a function in each process in turn."""

    def run(self, fn: Callable[[], T]) -> T:
        return fn()
