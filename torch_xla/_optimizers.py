"""Lets PyTorch's optimizers use their foreach, fused and capturable forms on `xla`.

Foreach and fused forms are one recorded operation over all parameters. PyTorch keeps the devices that have these
kernels in lists, to which a backend outside its tree cannot add itself.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

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
