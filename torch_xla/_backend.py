"""Makes the `xla` device known to PyTorch: native library, plugins, device module, storages, seeding."""

from __future__ import annotations

import atexit
import functools
import os
from pathlib import Path

import torch

_registered = False


def register() -> None:
    """Idempotent. Costs a few milliseconds and starts no client."""
    global _registered
    if _registered:
        return
    try:
        from . import _XLAC
    except ModuleNotFoundError as error:
        if error.name not in ("torch_xla._XLAC", "_XLAC"):
            raise
        raise ImportError("torch_xla: its C++ part is not built; run `./dev build` or `pip install .`") from None
    from . import _attention, _compile, _device_module, _optimizers, _plugins, _sparse, _storage

    _XLAC.install_call_site_hook(_library_prefixes())
    if os.environ.get("XLA_IR_DEBUG", "").lower() in ("1", "true", "yes", "on"):
        _XLAC.set_ir_debug(True)
    for plugin in _plugins.discover():
        _XLAC.register_plugin(plugin.name, str(plugin.library_path))
    if not hasattr(torch, "xla"):
        torch._register_device_module("xla", _device_module)
    _storage.install()
    _optimizers.install()
    _sparse.install()
    _attention.install()
    _compile.install()
    atexit.register(_settle_autograd, os.getpid())
    _seed_with_torch()
    _registered = True


def _settle_autograd(process: int) -> None:
    # A forked child has none of the threads that would be waited for.
    if os.getpid() == process:
        from . import _XLAC

        _XLAC.settle_autograd()


def _library_prefixes() -> list[str]:
    """Where code lies that is not the user's: PyTorch, this package, the standard library."""
    directories = (Path(torch.__file__).parent, Path(__file__).parent, Path(os.__file__).parent)
    return [f"{directory}{os.sep}" for directory in directories]


def _seed_with_torch() -> None:
    """Makes torch.manual_seed and torch.seed seed `xla` too: PyTorch's own hook is for privateuse1 alone."""
    seed_custom_device = torch.random._seed_custom_device

    @functools.wraps(seed_custom_device)
    def seed_custom_device_and_xla(seed: int) -> None:
        seed_custom_device(seed)
        from . import _device_module

        if not _device_module._is_in_bad_fork():
            _device_module.manual_seed_all(int(seed))

    torch.random._seed_custom_device = seed_custom_device_and_xla
