"""The device module `torch.xla`: the functions that PyTorch itself, and libraries over it, look for on a device module.

PJRT has no streams: what is recorded for a device runs in the order recorded. Stream and Event say so honestly: a
stream has nothing to wait for but the device, and an event is a point in the program that can be waited for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch

from . import _XLAC

DeviceLike = torch.device | str | int | None

# Whether torch.utils.checkpoint may save the generator's state: it lives on the host, so always.
_initialized = True
_forked_after_start = False


def _after_fork() -> None:
    global _forked_after_start
    _forked_after_start = _XLAC.is_client_started()


os.register_at_fork(after_in_child=_after_fork)


def _is_in_bad_fork() -> bool:
    """True in a child forked after the client started: its threads do not exist there."""
    return _forked_after_start


# Devices ------------------------------------------------------------------------------------------------------------


def _get_device_index(device: DeviceLike, optional: bool = True) -> int:
    if device is None and optional:
        return _XLAC.current_device()
    if isinstance(device, int):
        if device < 0:
            raise ValueError(f"expected a device index of at least 0, got {device}")
        return device
    found = torch.device(device)  # type: ignore[arg-type]
    if found.type != "xla":
        raise ValueError(f"expected an xla device, got {found}")
    return _XLAC.current_device() if found.index is None else found.index


def is_available() -> bool:
    """True when a plugin is installed or named; whether it works shows at the first tensor."""
    from . import _plugins

    return bool(os.environ.get("PJRT_PLUGIN_LIBRARY_PATH")) or bool(_plugins.discover())


def is_initialized() -> bool:
    """True when the client has started."""
    return _XLAC.is_client_started()


def init() -> None:
    """Starts the client, which the first tensor would do too."""
    _XLAC.platform()


_lazy_init = init


def device_count() -> int:
    return _XLAC.device_count()


def current_device() -> int:
    """Index of the device that "xla" alone means in this thread."""
    return _XLAC.current_device()


def set_device(device: DeviceLike) -> None:
    _XLAC.set_current_device(_get_device_index(device))


class device:
    """Context manager: "xla" without an index means this device inside. A negative index or None changes nothing."""

    def __init__(self, device: DeviceLike) -> None:
        is_none = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if is_none else _get_device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _XLAC.current_device()
            _XLAC.set_current_device(self.idx)

    def __exit__(self, *_: object) -> None:
        if self.idx >= 0:
            _XLAC.set_current_device(self.prev_idx)


class device_of(device):
    """Context manager: the device of a tensor or storage, when that is an `xla` device."""

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
        super().__init__(obj.device if obj.device.type == "xla" else None)


@dataclass(frozen=True)
class DeviceProperties:
    name: str  # the plugin's: "TFRT_CPU_0"
    platform: str  # "cpu", "cuda", "tpu"
    total_memory: int  # bytes; 0 when the plugin does not say


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    index = _get_device_index(device)
    return DeviceProperties(_XLAC.device_descriptions()[index], _XLAC.platform(), _XLAC.bytes_limit(index))


def get_device_name(device: DeviceLike = None) -> str:
    return _XLAC.device_descriptions()[_get_device_index(device)]


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    return False


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


# Random numbers -----------------------------------------------------------------------------------------------------
# The state is 16 bytes, as CUDA's: the seed, then the count of numbers drawn. It lives on the host: nothing here
# executes.


def get_rng_state(device: DeviceLike = None) -> torch.Tensor:
    """The default generator's state, a CPU tensor [16] uint8."""
    state = b"".join(word.to_bytes(8, "little") for word in _XLAC.rng_state(_get_device_index(device)))
    return torch.frombuffer(bytearray(state), dtype=torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = None) -> None:
    if new_state.dtype != torch.uint8 or new_state.device.type != "cpu":
        raise TypeError("RNG state must be a torch.ByteTensor")
    if new_state.numel() != 16:
        raise RuntimeError("RNG state is wrong size")
    state = bytes(new_state.tolist())
    seed, offset = (int.from_bytes(state[at : at + 8], "little") for at in (0, 8))
    _XLAC.set_rng_state(_get_device_index(device), seed, offset)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's default generator."""
    set_rng_seed(seed, None)


def set_rng_seed(seed: int, device: DeviceLike) -> None:
    _XLAC.set_rng_state(_get_device_index(device), _unsigned(seed), 0)


def manual_seed_all(seed: int) -> None:
    """Seeds the default generators of all devices."""
    _XLAC.manual_seed(_unsigned(seed))


def seed() -> None:
    """Seeds the current device's default generator from the system's randomness."""
    manual_seed(int.from_bytes(os.urandom(8), "little"))


def seed_all() -> None:
    manual_seed_all(int.from_bytes(os.urandom(8), "little"))


def initial_seed() -> int:
    """The seed of the current device's default generator."""
    return _XLAC.rng_state(_XLAC.current_device())[0]


def _unsigned(seed: int) -> int:
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise RuntimeError(f"Overflow when unpacking long long: the seed {seed} does not fit 64 bits")
    return seed % 2**64


# Memory, in bytes ---------------------------------------------------------------------------------------------------


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes of device memory that values of this process hold."""
    return _XLAC.bytes_live(_get_device_index(device))


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most that memory_allocated has been since the start, or since reset_peak_memory_stats."""
    return _XLAC.bytes_peak(_get_device_index(device))


def memory_reserved(device: DeviceLike = None) -> int:
    """The same as memory_allocated: what the plugin's allocator holds beyond it, PJRT does not tell."""
    return memory_allocated(device)


def max_memory_reserved(device: DeviceLike = None) -> int:
    return max_memory_allocated(device)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    _XLAC.reset_peak(_get_device_index(device))


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """`allocated_bytes.all.current` and `allocated_bytes.all.peak`, by CUDA's names."""
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
    }


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """(free, total). RuntimeError when the plugin does not say how much memory the device has."""
    index = _get_device_index(device)
    total = _XLAC.bytes_limit(index)
    if total == 0:
        raise RuntimeError(f"mem_get_info: the plugin ({_XLAC.platform()}) does not report the memory of xla:{index}")
    return total - _XLAC.bytes_live(index), total


def empty_cache() -> None:
    """Gives freed memory that is kept for the next run back to the system, on CPU plugins, where it is host memory.

    Other plugins keep what they have: freed memory goes back to the plugin at once, and PJRT cannot ask for more.
    """
    _XLAC.release_freed_memory()


# Streams and events -------------------------------------------------------------------------------------------------


def synchronize(device: DeviceLike = None) -> None:
    """Cuts what is recorded for the device, and blocks until it and all that was started before have finished."""
    _XLAC.sync(_get_device_index(device), True)


class Event:
    """A point in a device's program. Waiting for it waits for everything recorded up to now, not only up to the event.

    With `enable_timing` recording blocks until the device has come to this point: without streams there is no other
    way to know when it did.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise RuntimeError("torch.xla.Event: interprocess events are not supported")
        self.enable_timing = enable_timing
        self._device: int | None = None
        self._seconds: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        self._device = _XLAC.current_device() if stream is None else stream.device_index
        if self.enable_timing:
            synchronize(self._device)
            self._seconds = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to do: work recorded later on the device runs later."""

    def query(self) -> bool:
        """True, after waiting: PJRT cannot be asked whether a program has finished without recording one."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        if self._device is not None:
            synchronize(self._device)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two recorded events, by the host's clock."""
        if self._seconds is None or end_event._seconds is None:
            raise RuntimeError("elapsed_time: both events must have been recorded with enable_timing=True")
        return (end_event._seconds - self._seconds) * 1e3


class Stream:
    """The one order in which a device executes."""

    def __init__(self, device: DeviceLike = None, priority: int = 0) -> None:
        self.device_index = _get_device_index(device)
        self.device = torch.device("xla", self.device_index)
        self.stream_id = 0

    def synchronize(self) -> None:
        synchronize(self.device_index)

    def query(self) -> bool:
        """True, after waiting; see Event.query."""
        self.synchronize()
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Nothing to do on the device of this stream; waits for an event of another device."""
        if event._device is not None and event._device != self.device_index:
            event.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        """Nothing to do on the device of this stream; waits for another device."""
        if stream.device_index != self.device_index:
            stream.synchronize()

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device_index == self.device_index

    def __hash__(self) -> int:
        return hash((Stream, self.device_index))

    def __repr__(self) -> str:
        return f"<torch.xla.Stream of {self.device}>"


def current_stream(device: DeviceLike = None) -> Stream:
    return Stream(device)


def default_stream(device: DeviceLike = None) -> Stream:
    return Stream(device)


def set_stream(stream: Stream) -> None:
    """Makes the stream's device the current one."""
    set_device(stream.device_index)


class StreamContext(device):
    """`with torch.xla.stream(s):` makes the device of `s` the current one inside."""

    def __init__(self, stream: Stream | None) -> None:
        super().__init__(None if stream is None else stream.device_index)


def stream(stream: Stream | None) -> AbstractContextManager[Any]:
    return StreamContext(stream)
