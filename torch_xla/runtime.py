"""`import torch_xla.runtime as xr`: the process, its devices and its compiled programs.

This version runs one process on one device; functions that would need more say so when they are called.
"""

from __future__ import annotations

import os

import torch

import torch_xla
from torch_xla import _XLAC


def device_type() -> str:
    """The platform in capitals ("CPU", "CUDA", "TPU"): PJRT_DEVICE's, else the plugin's (starts the client)."""
    return (os.environ.get("PJRT_DEVICE") or _XLAC.platform()).split(":")[0].upper()


def set_device_type(pjrt_device: str) -> None:
    """Sets PJRT_DEVICE, which chooses among the installed plugins. RuntimeError when the client has started."""
    if _XLAC.is_client_started() and pjrt_device.upper() != device_type():
        raise RuntimeError(
            f"set_device_type: the client has started, on {device_type()}; set it before the first tensor"
        )
    os.environ["PJRT_DEVICE"] = pjrt_device


def using_pjrt() -> bool:
    return True


def xla_device(n: int | None = None, devkind: str | None = None) -> torch.device:
    from .core import xla_model

    return xla_model.xla_device(n, devkind)


def world_size() -> int:
    """Number of replicas that train together: 1."""
    return 1


def global_ordinal() -> int:
    return 0


def local_ordinal() -> int:
    return 0


def process_count() -> int:
    return 1


def process_index() -> int:
    return 0


def local_process_count() -> int:
    return 1


def host_index() -> int:
    return 0


def addressable_device_count() -> int:
    """Number of `xla` devices of this process."""
    return torch_xla.device_count()


def addressable_runtime_device_count() -> int:
    return torch_xla.device_count()


def local_device_count() -> int:
    return torch_xla.device_count()


def global_device_count() -> int:
    return torch_xla.device_count()


def global_runtime_device_count() -> int:
    """Number of devices of all processes; there is one process."""
    return torch_xla.device_count()


def use_spmd(auto: bool = False) -> None:
    raise NotImplementedError("use_spmd: programs sharded over several devices are not supported yet")


def is_spmd() -> bool:
    return False


def initialize_cache(path: str | os.PathLike[str], readonly: bool = False) -> None:
    """Keeps compiled programs in the folder `path`, so that the next process need not compile them again.

    Without a call they are kept in the folder that XLA_PERSISTENT_CACHE_PATH names (empty or 0: nowhere), else in
    `torch_xla` of the user's cache folder. Processes may share it. The entries used least recently are dropped beyond
    XLA_PERSISTENT_CACHE_SIZE_MB (default 1024). `readonly` takes programs from it and leaves it as it is.
    """
    if not os.fspath(path):
        raise ValueError("initialize_cache: expected a path, got an empty one")
    _XLAC.initialize_cache(os.path.abspath(path), readonly)


def get_num_cached_compilation_graph() -> int:
    """Number of programs in memory."""
    return _XLAC.num_cached_programs()
