"""Storages of `xla` tensors, where PyTorch leaves them out.

An `xla` tensor has a real storage, but torch.UntypedStorage refuses the device in C++, and torch.Tensor's deepcopy and
pickling take a way around storages for the device type `xla`, which loses sharing between views. Here both get what
other devices have.
"""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions
from torch.overrides import has_torch_function_unary

from . import _XLAC

Storage = torch.UntypedStorage


def install() -> None:
    """Called once."""
    torch.serialization.register_package(30, _location_of, _to_location)
    _override(Storage, "resize_", _resize)
    _override(Storage, "clone", _clone)
    _override(Storage, "cpu", _cpu)
    _override(Storage, "tolist", lambda self: _cpu(self).tolist())
    _override(Storage, "__repr__", _repr)
    _override(Storage, "__getitem__", _get_item)
    _override(Storage, "share_memory_", _refuse_share_memory)
    _override(Storage, "_write_file", lambda self, *args: _cpu(self)._write_file(*args))
    _override(Storage, "_set_from_file", _set_from_file)
    _override(torch.Tensor, "_reduce_ex_internal", _reduce_tensor)
    _override(torch.Tensor, "__deepcopy__", _deepcopy_tensor)
    _override_new()
    _override_rebuild()
    ForkingPickler.register(Storage, _send)


def _override(owner: type, name: str, xla_method: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "xla":
            return xla_method(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    setattr(owner, name, method)


def _override_new() -> None:
    original = Storage.__new__

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "xla":
            return _make(*args, device=torch.device(device))
        return original(cls, *args, **kwargs)

    Storage.__new__ = new  # type: ignore[assignment, method-assign]


def _make(content: Any = 0, *, device: torch.device) -> Storage:
    """A storage of `content` bytes, or holding the bytes of the sequence `content`."""
    if isinstance(content, int):
        return torch.empty(content, dtype=torch.uint8, device=device).untyped_storage()
    return torch.tensor(content, dtype=torch.uint8).to(device).untyped_storage()


def _bytes(storage: Storage) -> torch.Tensor:
    """A tensor [n] uint8 over the storage."""
    return _elements(storage, torch.uint8)


def _resize(self: Storage, size: int) -> None:
    if size < 0:
        raise RuntimeError(f"resize_: expected a size of at least 0, got {size}")
    _XLAC.resize_storage(self, size)


def _clone(self: Storage) -> Storage:
    return _XLAC.clone_storage(_bytes(self)).untyped_storage()


def _cpu(self: Storage) -> Storage:
    return _XLAC.storage_to_cpu(self).untyped_storage()


def _repr(self: Storage) -> str:
    values = " " + "\n ".join(map(str, _cpu(self).tolist()))
    return f"{values}\n[{torch.typename(self)}(device={self.device}) of size {len(self)}]"


def _get_item(self: Storage, index: Any) -> Any:
    if isinstance(index, slice):
        raise NotImplementedError("a slice of an xla storage cannot share its memory; take a view of a tensor instead")
    return torch._C.StorageBase.__getitem__(self, index)


def _refuse_share_memory(self: Storage, *args: Any, **kwargs: Any) -> None:
    raise RuntimeError(
        f"share_memory_: other processes cannot map the memory of {self.device}; move the tensor to the CPU first"
    )


# Other processes ----------------------------------------------------------------------------------------------------


def _send(storage: Storage) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """How a storage goes through a queue: on xla as a copy on the CPU, which the receiver copies to its own device."""
    if storage.device.type == "xla":
        return _receive, (_cpu(storage), str(storage.device))
    return reductions.reduce_storage(storage)


def _receive(sent: Storage, device: str) -> Storage:
    return _bytes(sent).to(device).untyped_storage()


# Saving and loading -------------------------------------------------------------------------------------------------


def _location_of(storage: Storage) -> str | None:
    return str(storage.device) if storage.device.type == "xla" else None


def _to_location(storage: Storage, location: str) -> Storage | None:
    """A storage on the device `location` with the contents of a CPU storage that was just read from a file."""
    if not location.startswith("xla"):
        return None
    device = torch.device(location)
    if getattr(storage, "_torch_load_uninitialized", False):
        return _make(storage.nbytes(), device=device)  # the legacy format reads the contents later
    loaded = _bytes(storage).to(device).untyped_storage()
    loaded._torch_xla_host = storage  # type: ignore[attr-defined]
    return loaded


def _override_rebuild() -> None:
    """Gives a loaded storage the elements of the first tensor over it, instead of bytes.

    Bytes would be right too, but every program that reads the tensor would have to convert them.
    """
    original = torch._utils._rebuild_tensor

    @functools.wraps(original)
    def rebuild(storage: Any, storage_offset: Any, size: Any, stride: Any) -> torch.Tensor:
        tensor = original(storage, storage_offset, size, stride)
        if tensor.device.type == "xla":
            untyped = storage._untyped_storage
            whole = tensor if _covers(tensor, untyped) else _elements(untyped, storage.dtype)
            host = untyped.__dict__.pop("_torch_xla_host", None)
            if host is not None:
                _fill(whole, host)
            else:
                untyped._torch_xla_whole = whole.shape, whole.stride(), whole.dtype
        return tensor

    torch._utils._rebuild_tensor = rebuild


def _covers(tensor: torch.Tensor, storage: Storage) -> bool:
    return tensor.is_contiguous() and tensor.nbytes == storage.nbytes()


def _elements(storage: Storage, dtype: torch.dtype) -> torch.Tensor:
    """A tensor [n] over the storage, of `dtype` where that divides its size, else of bytes."""
    if storage.nbytes() % dtype.itemsize:
        dtype = torch.uint8
    return torch.empty(0, dtype=dtype, device=storage.device).set_(storage)  # type: ignore[call-overload]


def _fill(whole: torch.Tensor, host: Storage) -> None:
    """Replaces the contents of the storage that `whole` covers by those of the CPU storage `host`."""
    source = torch.empty(0, dtype=whole.dtype).set_(host, 0, whole.shape, whole.stride())
    with torch.no_grad():
        whole.copy_(source)


def _set_from_file(self: Storage, file: Any, offset: Any, is_real_file: bool, element_size: int) -> Storage:
    host = Storage(self.nbytes())
    host._set_from_file(file, offset, is_real_file, element_size)
    whole = _bytes(self)
    if geometry := self.__dict__.pop("_torch_xla_whole", None):
        size, stride, dtype = geometry
        whole = torch.empty(0, dtype=dtype, device=self.device).set_(self, 0, size, stride)
    _fill(whole, host)
    return self


def _reduce_tensor(self: torch.Tensor, proto: Any) -> tuple[Any, ...]:
    """As for other devices: by storage, offset, size and stride. The storage's location is the device."""
    if self.layout != torch.strided or self.is_quantized:
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, (
            self.cpu(),
            self.dtype,
            str(self.device),
            self.requires_grad,
        )
    from torch.utils.hooks import warn_if_has_hooks

    warn_if_has_hooks(self)
    geometry = (self.storage_offset(), tuple(self.size()), self.stride(), self.requires_grad, OrderedDict())
    metadata = torch._utils.get_tensor_metadata(self)
    rest = (metadata,) if metadata else ()
    untyped = self.untyped_storage()
    if self.dtype in torch.storage._new_dtypes():
        return torch._utils._rebuild_tensor_v3, (untyped, *geometry, self.dtype, *rest)
    typed = torch.storage.TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)
    return torch._utils._rebuild_tensor_v2, (typed, *geometry, *rest)


_deepcopy_by_clone = torch.Tensor.__deepcopy__


def _deepcopy_tensor(self: torch.Tensor, memo: dict[Any, Any]) -> torch.Tensor:
    """As for other devices: tensors over one storage stay so in the copy. Subclasses keep PyTorch's way, a clone."""
    if type(self) is not torch.Tensor or self.layout != torch.strided or not self.is_leaf:
        return _deepcopy_by_clone(self, memo)
    if has_torch_function_unary(self):
        return torch.overrides.handle_torch_function(torch.Tensor.__deepcopy__, (self,), self, memo)
    if id(self) in memo:
        return memo[id(self)]
    with torch.no_grad():
        result = self.new_empty([])
        result.set_(copy.deepcopy(self.untyped_storage(), memo), self.storage_offset(), self.size(), self.stride())
        torch._utils.set_tensor_metadata(result, torch._utils.get_tensor_metadata(self))
        result.requires_grad_(self.requires_grad)
        if self.grad is not None:
            result.grad = copy.deepcopy(self.grad, memo)
        self._clear_non_serializable_cached_data()
        result.__dict__ = copy.deepcopy(self.__dict__, memo)
    memo[id(self)] = result
    return result
