"""Programs sharded over several devices: not supported yet.

The names exist so that programs which only ask for them can be imported.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"{name}: programs sharded over several devices are not supported yet")


class Mesh:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("Mesh")


class ShardingSpec:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("ShardingSpec")


class XLAShardedTensor(torch.Tensor):
    """No tensor is one."""


def set_global_mesh(mesh: Any) -> None:
    if mesh is not None:
        _refuse("set_global_mesh")


def get_global_mesh() -> None:
    """None: there is no mesh."""


def mark_sharding(*args: Any, **kwargs: Any) -> NoReturn:
    _refuse("mark_sharding")


def clear_sharding(tensor: torch.Tensor) -> None:
    """Nothing to clear."""


def xla_distribute_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    _refuse("xla_distribute_tensor")


def xla_distribute_module(*args: Any, **kwargs: Any) -> NoReturn:
    _refuse("xla_distribute_module")


def auto_policy(*args: Any, **kwargs: Any) -> NoReturn:
    _refuse("auto_policy")
