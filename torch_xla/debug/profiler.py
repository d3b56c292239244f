"""Names for stretches of a program in the traces of torch.profiler.

PJRT's C API gives no access to a profiler server: what would need one says so when it is called.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NoReturn

import torch

import torch_xla

_NO_SERVER = "the PJRT plugins offer no profiler server; record the host's part with torch.profiler.profile instead"


def start_server(port: int, only_on_master: bool = True) -> NoReturn:
    raise NotImplementedError(f"profiler.start_server: {_NO_SERVER}")


def trace(service_addr: str, logdir: str, duration_ms: int = 1000, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(f"profiler.trace: {_NO_SERVER}")


def trace_detached(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(f"profiler.trace_detached: {_NO_SERVER}")


class Trace(AbstractContextManager["Trace"]):
    """Marks the recording of what is inside under `name`, as torch.profiler.record_function does.

    Execution is asynchronous: the time shown is that of recording, unless something inside waits.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        details = ",".join(f"{key}={value}" for key, value in kwargs.items())
        self._range = torch.profiler.record_function(f"{name}#{details}#" if details else name)

    def __enter__(self) -> Trace:
        self._range.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._range.__exit__(kind, error, trace)


class StepTrace(Trace):
    """Trace of a training step, which it cuts at the end."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            torch_xla.sync()
        super().__exit__(kind, error, trace)
