"""Functions that run after the graph that computes their arguments was started."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_local = threading.local()
_background: ThreadPoolExecutor | None = None
_unfinished: list[Future[Any]] = []


def add(closure: Callable[..., Any], args: Sequence[Any], run_async: bool) -> None:
    pending = _local.__dict__.setdefault("pending", [])
    pending.append((closure, tuple(args), run_async))


def run() -> None:
    """Runs this thread's closures in the order added.

    An exception keeps the later ones from running, and they are dropped. That of an asynchronous closure is raised by
    the first call after it.
    """
    for future in [future for future in _unfinished if future.done()]:
        _unfinished.remove(future)
        future.result()
    for closure, args, run_async in _local.__dict__.pop("pending", ()):
        if run_async:
            _unfinished.append(_executor().submit(closure, *args))
        else:
            closure(*args)


def _executor() -> ThreadPoolExecutor:
    global _background
    if _background is None:
        # One thread: asynchronous closures keep their order.
        _background = ThreadPoolExecutor(max_workers=1, thread_name_prefix="torch_xla_step_closure")
    return _background
