"""Lets PyTorch's optimizers use their foreach, fused and capturable forms on `xla`.

Foreach and fused forms are one recorded operation over all parameters. PyTorch keeps the devices that have these
kernels in lists, to which a backend outside its tree cannot add itself. By default it picks the foreach form; that of
Adam and AdamW is a dozen operations and some Python for each parameter, a tenth of a small model's step. So they are
fused on `xla`, unless the program says what it wants.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

# What gives the lists; modules of torch.optim hold these functions by name.
_LISTS = (
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_get_capturable_supported_devices",
)
_HOLDERS = ("torch.optim.", "torch.utils._foreach_utils")
# Not this one: its foreach form refuses averages of integers, such as the count of batches of a batch norm.
_AVERAGING = "torch.optim.swa_utils"


def install() -> None:
    """Called once."""
    torch.optim.Adam.add_param_group = _fused_by_default(torch.optim.Adam.add_param_group)
    replaced: dict[Callable[..., Any], Callable[..., Any]] = {}
    for module in [module for name, module in sys.modules.items() if name.startswith(_HOLDERS) and name != _AVERAGING]:
        for name in _LISTS:
            devices = vars(module).get(name)
            if devices is not None:
                setattr(module, name, replaced.setdefault(devices, _with_xla(devices)))


def _with_xla(devices: Callable[..., list[str]]) -> Callable[..., list[str]]:
    @functools.wraps(devices)
    def listed(*args: Any, **kwargs: Any) -> list[str]:
        found = devices(*args, **kwargs)
        return found if "xla" in found else [*found, "xla"]

    return listed


def _fused_by_default(add_param_group: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(add_param_group)
    def added(self: torch.optim.Optimizer, param_group: dict[str, Any]) -> None:
        add_param_group(self, param_group)
        group = self.param_groups[-1]
        is_chosen = group.get("fused") is not None or group.get("foreach") is not None
        if not is_chosen and not group.get("differentiable") and all(map(_takes_fused, group["params"])):
            group["fused"] = True

    return added


def _takes_fused(parameter: torch.Tensor) -> bool:
    return parameter.device.type == "xla" and parameter.is_floating_point()
