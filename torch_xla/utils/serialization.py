"""Saving `xla` tensors so that they load anywhere. torch.save and torch.load work on `xla` tensors too."""

from __future__ import annotations

import os
from typing import Any

import torch

from torch_xla.core import xla_model as xm


def save(data: Any, path: str | os.PathLike[str], master_only: bool = True, global_master: bool = False) -> None:
    """Writes the nested `data`, with its `xla` tensors moved to the CPU, to the file `path`."""
    xm.save(data, path, master_only=master_only, global_master=global_master)


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote, on the CPU."""
    return torch.load(path, map_location="cpu")
