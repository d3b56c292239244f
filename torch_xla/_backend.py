"""Makes the `xla` device known to PyTorch: native library, plugins, device module, storages, seeding."""

from __future__ import annotations

import functools

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
    from . import _device_module, _plugins, _storage

    for plugin in _plugins.discover():
        _XLAC.register_plugin(plugin.name, str(plugin.library_path))
    if not hasattr(torch, "xla"):
        torch._register_device_module("xla", _device_module)
    _storage.install()
    _seed_with_torch()
    _registered = True


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
