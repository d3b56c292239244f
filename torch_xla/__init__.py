"""PyTorch on the `xla` device: operations recorded lazily, compiled and run by a PJRT plugin.

`import torch` already makes the device known (through the `torch.backends` entry point); this package adds the
functions that scripts for XLA call.

    >>> import torch, torch_xla
    >>> x = torch.ones(2, 3, device="xla")
    >>> y = (x + 1).sum()     # recorded
    >>> torch_xla.sync()      # compiled and started
    >>> y.item()
    12.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any


def _autoload() -> None:
    """Registers the `xla` device with PyTorch. `import torch` calls it; again is harmless. Starts no client."""
    from . import _backend

    _backend.register()


# `import torch_xla` alone reaches _autoload while this module is only half executed: it must be defined above this
# line.
import torch  # noqa: E402, F401

_autoload()

from ._functions import (  # noqa: E402
    compile,
    device,
    device_count,
    devices,
    launch,
    manual_seed,
    real_devices,
    set_custom_compile_options,
    step,
    sync,
)

if TYPE_CHECKING:
    from . import _XLAC as _XLAC
    from . import amp as amp
    from . import core as core
    from . import debug as debug
    from . import distributed as distributed
    from . import runtime as runtime
    from . import utils as utils

__version__ = "0.1.0"
__all__ = [
    "compile",
    "device",
    "device_count",
    "devices",
    "launch",
    "manual_seed",
    "real_devices",
    "set_custom_compile_options",
    "step",
    "sync",
]

_SUBMODULES = frozenset({"amp", "core", "debug", "distributed", "runtime", "utils"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
