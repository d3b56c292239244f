"""How many accelerators there are, for libraries that look before they start anything.

Lightning picks its `tpu` accelerator, which is its only one for `xla`, where `num_available_devices` is not 0.
"""

from __future__ import annotations

import os

import torch_xla
from torch_xla import _plugins


def num_available_devices() -> int:
    """Number of `xla` devices, where a TPU's plugin is installed or PJRT_DEVICE asks for a kind of device; else 0.

    Starts the client where it is not 0: RuntimeError when that fails.
    """
    has_tpu = any(plugin.name == "tpu" for plugin in _plugins.discover())
    return torch_xla.device_count() if has_tpu or os.environ.get("PJRT_DEVICE") else 0


def num_available_chips() -> int:
    return num_available_devices()


def version() -> int:
    """Generation of the TPU by TPU_ACCELERATOR_TYPE ("v4-8": 4); 0 for another device that PJRT_DEVICE asks for.

    OSError where neither is set: Lightning takes that as "no TPU".
    """
    kind = os.environ.get("TPU_ACCELERATOR_TYPE", "")
    if kind.startswith("v") and kind[1:2].isdigit():
        return int(kind[1])
    if os.environ.get("PJRT_DEVICE"):
        return 0
    raise OSError("neither TPU_ACCELERATOR_TYPE nor PJRT_DEVICE names a device")
