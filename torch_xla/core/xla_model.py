"""`import torch_xla.core.xla_model as xm`: the functions that training scripts for XLA call.

This version runs one process on one device: a world of size 1. The collectives are exactly what they are in such a
world (sums over one replica, gathers of one part), and arguments that name other replicas are refused.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any, TypedDict, TypeVar

import torch
from torch.utils import _pytree

import torch_xla
from torch_xla import _XLAC

from . import _step_closures

T = TypeVar("T")

REDUCE_SUM = "sum"
REDUCE_MUL = "mul"
REDUCE_AND = "and"
REDUCE_OR = "or"
REDUCE_MIN = "min"
REDUCE_MAX = "max"
_REDUCE_TYPES = frozenset({REDUCE_SUM, REDUCE_MUL, REDUCE_AND, REDUCE_OR, REDUCE_MIN, REDUCE_MAX})


class MemoryInfo(TypedDict):
    bytes_used: int  # held by this process's tensors and pending results
    bytes_limit: int  # what the device has, on XLA CPU the host; 0 when the plugin does not say
    peak_bytes_used: int


# Devices ------------------------------------------------------------------------------------------------------------


def xla_device(n: int | None = None, devkind: str | None = None) -> torch.device:
    """The `xla` device of index `n`, by default the current one.

    `devkind` ("CPU", "TPU", "CUDA") must be the plugin's platform.
    """
    _check_kind(devkind)
    return torch_xla.device(n)


def get_xla_supported_devices(devkind: str | None = None, max_devices: int | None = None) -> list[str]:
    """["xla:0", ...]; empty when `devkind` is not the plugin's platform."""
    if devkind is not None and devkind.upper() != _XLAC.platform().upper():
        return []
    return [str(device) for device in torch_xla.devices()[:max_devices]]


def xla_real_devices(devices: Sequence[str | torch.device] | None = None) -> list[str]:
    """The devices by the plugin's platform: ["CPU:0"]."""
    if devices is None:
        return torch_xla.real_devices()
    return [f"{_XLAC.platform().upper()}:{_index(device)}" for device in devices]


def xla_device_hw(device: str | torch.device) -> str:
    """The platform behind an `xla` device ("CPU", "CUDA", "TPU"), or the type of another device, in capitals."""
    device = torch.device(device)
    return _XLAC.platform().upper() if device.type == "xla" else device.type.upper()


def is_xla_tensor(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "xla"


def set_replication(device: str | torch.device, devices: Sequence[str | torch.device] | None) -> None:
    """Accepts replication over this device alone."""
    if devices and [_index(d) for d in devices] != [_index(device)]:
        raise _single_device_error("set_replication", f"over {[str(d) for d in devices]}")


def _index(device: str | torch.device) -> int:
    device = torch.device(device)
    if device.type != "xla":
        raise ValueError(f"expected an xla device, got {device}")
    return _XLAC.current_device() if device.index is None else device.index


def _check_kind(devkind: str | None) -> None:
    if devkind is not None and devkind.upper() != _XLAC.platform().upper():
        raise RuntimeError(f"xla_device: no {devkind} device; the plugin's platform is {_XLAC.platform().upper()}")


def _single_device_error(function: str, what: str) -> NotImplementedError:
    return NotImplementedError(f"{function}: {what} is not supported: this version runs one process on one device")


# World --------------------------------------------------------------------------------------------------------------


def get_ordinal(defval: int = 0) -> int:
    """This replica among all replicas: 0."""
    return 0


def get_local_ordinal(defval: int = 0) -> int:
    """This replica among those of its host: 0."""
    return 0


def is_master_ordinal(local: bool = True) -> bool:
    return True


def xrt_world_size(defval: int = 1) -> int:
    """Number of replicas: 1."""
    return 1


def master_print(*args: Any, fd: IO[str] | None = None, local: bool = False, flush: bool = False) -> None:
    """print on the replica of ordinal 0."""
    print(*args, file=fd or sys.stdout, flush=flush)


def rendezvous(tag: str, payload: bytes = b"", replicas: Sequence[int] = ()) -> list[bytes]:
    """The payload of every replica, which is a barrier among them."""
    _check_replicas("rendezvous", replicas)
    return [payload]


def mesh_reduce(tag: str, data: Any, reduce_fn: Callable[[list[Any]], T]) -> T:
    """reduce_fn over the list of every replica's `data`, whose tensors are moved to the CPU."""
    return reduce_fn([_maybe_convert_to_cpu(data)])


def do_on_ordinals(target: Callable[..., Any], data: Sequence[Any] = (), ordinals: Sequence[int] = (0,)) -> None:
    """Calls target(*data) on the replicas of these ordinals."""
    if 0 in ordinals:
        target(*_maybe_convert_to_cpu(list(data)))


def _check_replicas(function: str, replicas: Iterable[int]) -> None:
    others = [replica for replica in replicas if replica != 0]
    if others:
        raise _single_device_error(function, f"replicas {others}")


def _check_groups(function: str, groups: Sequence[Sequence[int]] | None) -> None:
    for group in groups or ():
        _check_replicas(function, group)


# Steps --------------------------------------------------------------------------------------------------------------


def mark_step(wait: bool = False, reset_scope: bool = True) -> None:
    """torch_xla.sync."""
    torch_xla.sync(wait, reset_scope)


def wait_device_ops(devices: Sequence[str | torch.device] = ()) -> None:
    """Blocks until every execution that was started has finished, and raises what went wrong in it. Cuts nothing."""
    _XLAC.wait_device_ops()


def unlazy(tensors: Sequence[torch.Tensor]) -> None:
    """Computes the values of these tensors, and blocks until they exist."""
    _XLAC.sync_tensors(list(tensors), True)


def add_step_closure(closure: Callable[..., Any], args: Sequence[Any] = (), run_async: bool = False) -> None:
    """Calls closure(*args) after the next mark_step, when reading tensors among `args` cuts no graph any more.

    With `run_async` a thread of its own calls it; an exception there is raised by a later mark_step.
    """
    _step_closures.add(closure, args, run_async)


def optimizer_step(
    optimizer: torch.optim.Optimizer,
    barrier: bool = False,
    optimizer_args: dict[str, Any] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
    pin_layout: bool = True,
) -> Any:
    """Reduces the gradients over the replicas, then optimizer.step(**optimizer_args); with `barrier`, mark_step too."""
    reduce_gradients(optimizer, groups, pin_layout)
    result = optimizer.step(**(optimizer_args or {}))
    if barrier:
        mark_step()
    return result


def reduce_gradients(
    optimizer: torch.optim.Optimizer, groups: Sequence[Sequence[int]] | None = None, pin_layout: bool = True
) -> None:
    """Averages the optimizer's gradients over the replicas: with one, they stay as they are."""
    _check_groups("reduce_gradients", groups)


def _fetch_gradients(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]


# Collectives --------------------------------------------------------------------------------------------------------


def all_reduce(
    reduce_type: str,
    inputs: torch.Tensor | list[torch.Tensor],
    scale: float = 1.0,
    groups: Sequence[Sequence[int]] | None = None,
    pin_layout: bool = True,
) -> torch.Tensor | None:
    """The reduction over all replicas, times `scale`. A list is reduced in place, and None returned."""
    if reduce_type not in _REDUCE_TYPES:
        raise ValueError(f"all_reduce: unknown reduce_type {reduce_type!r}, expected one of {sorted(_REDUCE_TYPES)}")
    _check_groups("all_reduce", groups)
    if isinstance(inputs, torch.Tensor):
        return inputs * scale if scale != 1.0 else inputs.clone()
    if scale != 1.0:
        with torch.no_grad():
            for tensor in inputs:
                tensor.mul_(scale)
    return None


def all_gather(
    value: torch.Tensor,
    dim: int = 0,
    groups: Sequence[Sequence[int]] | None = None,
    output: torch.Tensor | None = None,
    pin_layout: bool = True,
) -> torch.Tensor:
    """Every replica's value, concatenated along `dim`."""
    _check_groups("all_gather", groups)
    _check_dim("all_gather", value, dim)
    return value.clone() if output is None else output.copy_(value)


def reduce_scatter(
    reduce_type: str,
    input: torch.Tensor | list[torch.Tensor],
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: Sequence[Sequence[int]] | None = None,
    output: torch.Tensor | list[torch.Tensor] | None = None,
    pin_layout: bool = True,
) -> torch.Tensor | list[torch.Tensor]:
    """This replica's part, along `scatter_dim`, of the reduction over all replicas times `scale`."""
    if shard_count != 1:
        raise _single_device_error("reduce_scatter", f"shard_count={shard_count}")
    tensors = [input] if isinstance(input, torch.Tensor) else list(input)
    results = []
    for tensor in tensors:
        _check_dim("reduce_scatter", tensor, scatter_dim)
        result = all_reduce(reduce_type, tensor, scale, groups)
        assert result is not None
        results.append(result)
    if output is not None:
        outputs = [output] if isinstance(output, torch.Tensor) else list(output)
        results = [out.copy_(result) for out, result in zip(outputs, results, strict=True)]
    return results[0] if isinstance(input, torch.Tensor) else results


def all_to_all(
    value: torch.Tensor,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: Sequence[Sequence[int]] | None = None,
    pin_layout: bool = True,
) -> torch.Tensor:
    """Splits along one dimension, exchanges the parts among the replicas, concatenates along another."""
    _check_groups("all_to_all", groups)
    if split_count != 1:
        raise _single_device_error("all_to_all", f"split_count={split_count}")
    _check_dim("all_to_all", value, split_dimension)
    _check_dim("all_to_all", value, concat_dimension)
    return value.clone()


def collective_permute(value: torch.Tensor, pairs: Sequence[Sequence[int]]) -> torch.Tensor:
    """The value of the replica that sends to this one, by (source, target) pairs; zeros when none does."""
    for pair in pairs:
        _check_replicas("collective_permute", pair)
    return value.clone() if pairs else torch.zeros_like(value)


def collective_broadcast(
    tensors: Sequence[torch.Tensor],
    root_ordinal: int = 0,
    groups: Sequence[int] | None = None,
    pin_layout: bool = True,
) -> None:
    """Gives every replica the values of the root, in place."""
    _check_replicas("collective_broadcast", [root_ordinal])


def broadcast_master_param(model: torch.nn.Module) -> None:
    """Gives every replica the parameters and buffers of the replica of ordinal 0."""


def _check_dim(function: str, value: torch.Tensor, dim: int) -> None:
    rank = value.dim()
    if not -rank <= dim < max(rank, 1):
        raise IndexError(
            f"{function}: Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
        )


# Random numbers and memory ------------------------------------------------------------------------------------------


def set_rng_state(seed: int, device: str | torch.device | None = None) -> None:
    """Sets the generator's state: a seed, or what get_rng_state gave."""
    offset, seed = divmod(int(seed), 2**64) if seed >= 0 else (0, int(seed) % 2**64)
    _XLAC.set_rng_state(_device_index(device), seed, offset)


def get_rng_state(device: str | torch.device | None = None) -> int:
    """The generator's state as one number: the seed, plus 2**64 times the count of numbers drawn. Executes nothing."""
    seed, offset = _XLAC.rng_state(_device_index(device))
    return seed | offset << 64


def get_memory_info(device: str | torch.device | None = None) -> MemoryInfo:
    """Bytes in use on a device, at most in use since torch.xla.reset_peak_memory_stats, and available in all."""
    index = _device_index(device)
    return {
        "bytes_used": _XLAC.bytes_live(index),
        "bytes_limit": _XLAC.bytes_limit(index),
        "peak_bytes_used": _XLAC.bytes_peak(index),
    }


def _device_index(device: str | torch.device | None) -> int:
    return _XLAC.current_device() if device is None else _index(device)


# Barriers and text --------------------------------------------------------------------------------------------------


def optimization_barrier(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Differentiable identities of the tensors, in order, that XLA may not move computation across.

    One barrier over all of them: each result exists only when every input does. The backward is a barrier over the
    gradients.
    """
    return _XLAC.optimization_barrier(_check_barrier_items(tensors))


def optimization_barrier_(tensors: Iterable[torch.Tensor]) -> None:
    """The same in place: the tensors' storages get their values behind one barrier. Autograd does not see it."""
    _XLAC.optimization_barrier_(_check_barrier_items(tensors))


def _check_barrier_items(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        # It would be taken for the list of its rows.
        raise TypeError("optimization_barrier: expected a list of tensors, got a tensor")
    items = list(tensors)
    for i, item in enumerate(items):
        if not isinstance(item, torch.Tensor):
            raise TypeError(f"optimization_barrier: item {i} must be a tensor, but is a {type(item).__name__}")
    return items


def get_stablehlo(tensors: Sequence[torch.Tensor]) -> str:
    """StableHLO text of the pending computation of these tensors."""
    return _XLAC._get_xla_tensors_hlo(list(tensors))


# Moving data --------------------------------------------------------------------------------------------------------


def send_cpu_data_to_device(datas: Any, device: str | torch.device, input_sharding: Any = None) -> Any:
    """A copy of the nested `datas` whose CPU tensors are on `device`; a tensor alone comes back in a list."""
    if input_sharding is not None:
        raise _single_device_error("send_cpu_data_to_device", "input_sharding")
    if isinstance(datas, torch.Tensor):
        datas = [datas]
    return _pytree.tree_map_only(torch.Tensor, lambda t: t.to(device) if t.device.type == "cpu" else t, datas)


def _maybe_convert_to_cpu(data: Any, convert: bool = True) -> Any:
    """A copy of the nested `data` with its `xla` tensors on the CPU, detached.

    Tensors that share a storage share one again.
    """
    if not convert:
        return data
    tensors = {id(t): t for t in _pytree.tree_leaves(data) if isinstance(t, torch.Tensor) and is_xla_tensor(t)}
    users = Counter(t.untyped_storage()._cdata for t in tensors.values())
    storages: dict[int, torch.UntypedStorage] = {}

    def to_cpu(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if users[storage._cdata] == 1:
            return tensor.detach().cpu()
        if storage._cdata not in storages:
            storages[storage._cdata] = storage.cpu()
        empty = torch.empty(0, dtype=tensor.dtype)
        return empty.set_(storages[storage._cdata], tensor.storage_offset(), tensor.size(), tensor.stride())

    moved = {key: to_cpu(tensor).requires_grad_(tensor.requires_grad) for key, tensor in tensors.items()}
    return _pytree.tree_map_only(torch.Tensor, lambda t: moved.get(id(t), t), data)


def save(
    data: Any,
    file_or_path: str | os.PathLike[str] | IO[bytes],
    master_only: bool = True,
    global_master: bool = False,
) -> None:
    """torch.save of the data, its `xla` tensors moved to the CPU: it loads where there is no `xla` device too."""
    torch.save(_maybe_convert_to_cpu(data), file_or_path)


class RateTracker:
    """Items a second, smoothed; thread safe.

    >>> tracker = RateTracker()
    >>> tracker.add(batch_size)
    >>> tracker.rate(), tracker.global_rate()
    """

    def __init__(self, smooth_factor: float = 0.4) -> None:
        self._smooth_factor = smooth_factor
        self._lock = threading.Lock()
        self._start = self._partial_start = time.monotonic()
        self._count = self._partial_count = 0.0
        self._rate: float | None = None

    def add(self, count: float) -> None:
        with self._lock:
            self._count += count
            self._partial_count += count

    def rate(self) -> float:
        """Of the items since the last call, averaged with earlier rates."""
        with self._lock:
            now = time.monotonic()
            seconds = now - self._partial_start
            if seconds > 0:
                current = self._partial_count / seconds
                smooth = 0.0 if self._rate is None else self._smooth_factor
                self._rate = smooth * (self._rate or 0.0) + (1 - smooth) * current
                self._partial_start, self._partial_count = now, 0.0
            return self._rate or 0.0

    def global_rate(self) -> float:
        """Of all items since the tracker was made."""
        with self._lock:
            seconds = time.monotonic() - self._start
            return self._count / seconds if seconds > 0 else 0.0
