"""Lets PyTorch's optimizers use their foreach and fused forms on `xla`: one recorded operation over all parameters.

PyTorch keeps the devices that have these kernels in two lists, to which a backend outside its tree cannot add itself.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

from torch.utils import _foreach_utils

# They hold the functions by name.
_MODULES = ("torch.utils._foreach_utils", "torch.optim.optimizer", "torch.optim.swa_utils")


def install() -> None:
    """Called once."""
    for name in ("_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices"):
        listed = _with_xla(getattr(_foreach_utils, name))
        for module in map(importlib.import_module, _MODULES):
            if hasattr(module, name):
                setattr(module, name, listed)


def _with_xla(devices: Callable[[], list[str]]) -> Callable[[], list[str]]:
    @functools.wraps(devices)
    def listed() -> list[str]:
        return [*devices(), "xla"]

    return listed
