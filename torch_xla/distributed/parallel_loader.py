"""Loaders that move batches to the device while the last one is being worked on."""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import torch

from torch_xla.core import xla_model as xm


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


def _fill(source: Iterator[Any], device: torch.device, batches: queue.Queue[Any], stopped: threading.Event) -> None:
    """The thread's work: puts batches, then _END or a _Failure.

    Holds no reference to the loader, so that dropping it stops us.
    """

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                batches.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    try:
        for batch in source:
            if not put(xm.send_cpu_data_to_device((batch,), device)[0]):
                return
        put(_END)
    except BaseException as error:  # the consumer raises it, whatever it is
        put(_Failure(error))


class _FillThread(threading.Thread):
    """Moves batches to the device until the source ends or it is stopped."""

    running: ClassVar[weakref.WeakSet[_FillThread]] = weakref.WeakSet()

    def __init__(self, source: Iterator[Any], device: torch.device, batches: queue.Queue[Any]) -> None:
        self.stopped = threading.Event()
        super().__init__(
            target=_fill, args=(source, device, batches, self.stopped), name="torch_xla_loader", daemon=True
        )
        self.running.add(self)


@atexit.register
def _stop_all() -> None:
    """A thread that is in C++ while the interpreter goes away would come back to nothing."""
    threads = list(_FillThread.running)
    for thread in threads:
        thread.stopped.set()
    for thread in threads:
        thread.join(timeout=5)  # longer only where the source itself hangs


class PerDeviceLoader:
    """Iterates over batches on the device, and calls mark_step before each `batches_per_execution`-th.

    An exception of the source is raised in the consumer, at the batch where it occurred. Closing or dropping the loader
    stops its thread.
    """

    def __init__(
        self, source: Iterator[Any], device: torch.device, prefetch_size: int, batches_per_execution: int = 1
    ) -> None:
        self._batches: queue.Queue[Any] = queue.Queue(prefetch_size)
        self._batches_per_execution = batches_per_execution
        self._yielded = 0
        self._ended = False
        thread = _FillThread(source, device, self._batches)
        self._stop = weakref.finalize(self, thread.stopped.set)
        thread.start()

    def __iter__(self) -> PerDeviceLoader:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        if self._yielded % self._batches_per_execution == 0:
            xm.mark_step()
        if self._ended:
            raise StopIteration
        item = self._batches.get()
        if item is _END or isinstance(item, _Failure):
            self._ended = True
            if isinstance(item, _Failure):
                raise item.error
            raise StopIteration
        self._yielded += 1
        return item

    def close(self) -> None:
        self._ended = True
        self._stop()
        # Batches that nobody will take hold device memory; a consumer that waits is told the end.
        with contextlib.suppress(queue.Empty):
            while True:
                self._batches.get_nowait()
        with contextlib.suppress(queue.Full):
            self._batches.put_nowait(_END)


class ParallelLoader:
    """Wraps a loader of CPU batches; `per_device_loader(device)` gives its batches on the device.

    Args:
        cpu_loader: any iterable of batches: tensors, or lists, tuples and dicts of them. Other values pass unchanged.
        devices: one `xla` device.
        loader_prefetch_size, device_prefetch_size: batches kept ready; their sum bounds what waits on the device.
        batches_per_execution: batches between two calls of mark_step.
    """

    def __init__(
        self,
        cpu_loader: Iterable[Any],
        devices: Sequence[torch.device | str],
        batchdim: int = 0,
        batches_per_execution: int = 1,
        loader_prefetch_size: int = 4,
        device_prefetch_size: int = 4,
        host_to_device_transfer_threads: int = 1,
        input_sharding: Any = None,
    ) -> None:
        if len(devices) != 1:
            raise NotImplementedError(f"ParallelLoader: {len(devices)} devices are not supported, only one")
        if input_sharding is not None:
            raise NotImplementedError("ParallelLoader: input_sharding is not supported yet")
        if batches_per_execution < 1:
            raise ValueError(f"batches_per_execution: expected at least 1, got {batches_per_execution}")
        self._cpu_loader = cpu_loader
        self._device = torch.device(devices[0])
        self._batches_per_execution = batches_per_execution
        self._prefetch_size = max(1, min(loader_prefetch_size, device_prefetch_size))
        self._loaders: weakref.WeakSet[PerDeviceLoader] = weakref.WeakSet()

    def per_device_loader(self, device: torch.device | str) -> PerDeviceLoader:
        if torch.device(device) != self._device:
            raise ValueError(f"per_device_loader: the loader is for {self._device}, got {device}")
        loader = PerDeviceLoader(iter(self._cpu_loader), self._device, self._prefetch_size, self._batches_per_execution)
        self._loaders.add(loader)
        return loader

    @property
    def batches_per_execution(self) -> int:
        return self._batches_per_execution

    def close(self) -> None:
        for loader in list(self._loaders):
            loader.close()


class MpDeviceLoader:
    """A loader whose batches arrive on the device, moved by a thread while the last one is being worked on.

    Each pass calls mark_step between batches, so that a training loop needs no call of its own. Attributes that
    this class lacks (`dataset`, `batch_sampler`) are the loader's.

    >>> for images, labels in MpDeviceLoader(DataLoader(dataset, 64), torch_xla.device()):
    ...     train_step(images, labels)
    """

    def __init__(self, loader: Iterable[Any], device: torch.device | str, **kwargs: Any) -> None:
        self._loader = loader
        self._device = torch.device(device)
        self._parallel_loader_kwargs = kwargs

    def __iter__(self) -> Iterator[Any]:
        loader = ParallelLoader(self._loader, [self._device], **self._parallel_loader_kwargs)
        return loader.per_device_loader(self._device)

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # not made yet: pickling and copying ask before __init__
            raise AttributeError(name)
        return getattr(self._loader, name)
