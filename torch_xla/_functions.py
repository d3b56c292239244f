"""The functions of the package `torch_xla` itself."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, overload

import torch

from . import _XLAC

F = TypeVar("F", bound=Callable[..., Any])


def device(index: int | None = None) -> torch.device:
    """The `xla` device of this index; without one, the current device."""
    return torch.device("xla", _XLAC.current_device() if index is None else index)


def device_count() -> int:
    """Number of `xla` devices of this process."""
    return _XLAC.device_count()


def devices() -> list[torch.device]:
    """All `xla` devices of this process. Starts the client."""
    return [torch.device("xla", index) for index in range(device_count())]


def real_devices() -> list[str]:
    """The devices by the plugin's platform: ["CPU:0"], ["CUDA:0", "CUDA:1"]. Starts the client."""
    platform = _XLAC.platform().upper()
    return [f"{platform}:{index}" for index in range(device_count())]


def sync(wait: bool = False, reset_scope: bool = True) -> None:
    """Cuts the graph recorded so far, on every device, compiles it unless it was seen before, and starts it.

    With `wait` it blocks until the results exist, and raises what went wrong in this or an earlier execution; without,
    an error surfaces at the next wait. Step closures added with `xm.add_step_closure` run before it returns.
    `reset_scope` is accepted for compatibility and has no effect.
    """
    del reset_scope
    from .core import _step_closures

    _XLAC.sync(-1, wait)
    _step_closures.run()


def manual_seed(seed: int, device: torch.device | str | int | None = None) -> None:
    """Seeds the generator of `device`, or of every `xla` device. torch.manual_seed does the latter too."""
    from . import _device_module

    if device is None:
        _device_module.manual_seed_all(seed)
    else:
        _device_module.set_rng_seed(seed, device)


def set_custom_compile_options(options: Mapping[str, object]) -> None:
    """XLA's debug options (as in XLA_FLAGS, without dashes) for programs compiled from now on, replacing earlier ones.

    >>> torch_xla.set_custom_compile_options({"xla_cpu_enable_fast_math": True})
    """
    _XLAC.set_compile_options({name: _option_text(value) for name, value in options.items()})


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Region:
    """Code whose recording becomes graphs of its own, checked against what was promised of them."""

    def __init__(self, name: str, full_graph: bool = False, num_different_graphs_allowed: int | None = None) -> None:
        self.name = name
        self.full_graph = full_graph
        self.num_different_graphs_allowed = num_different_graphs_allowed
        self.num_compiled = 0

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        sync()
        num_runs, num_compiled = _total_runs(), len(_XLAC.executables())
        _XLAC.open_uncut_region()
        try:
            yield
        finally:
            _XLAC.close_uncut_region()
        if self.full_graph and _total_runs() != num_runs:
            raise RuntimeError(
                f"torch_xla.compile: {self.name} was to be one graph (full_graph=True), "
                "but reading a value, printing, a sync or a fallback inside cut it"
            )
        sync()
        self.num_compiled += len(_XLAC.executables()) - num_compiled
        allowed = self.num_different_graphs_allowed
        if allowed is not None and self.num_compiled > allowed:
            raise RuntimeError(
                f"torch_xla.compile: {self.name} compiled {self.num_compiled} different graphs, {allowed} allowed"
            )


def _total_runs() -> int:
    return sum(executable.runs for executable in _XLAC.executables())


@overload
def compile(
    f: F, full_graph: bool = ..., name: str | None = ..., num_different_graphs_allowed: int | None = ...
) -> F: ...
@overload
def compile(
    f: None = ..., full_graph: bool = ..., name: str | None = ..., num_different_graphs_allowed: int | None = ...
) -> contextlib.AbstractContextManager[None]: ...


def compile(
    f: Any = None,
    full_graph: bool = False,
    name: str | None = None,
    num_different_graphs_allowed: int | None = None,
) -> Any:
    """Makes what `f` records one graph of its own: cuts before it begins and when it ends.

    Usable on a function or a module, as a decorator, and as a context manager (`with torch_xla.compile():`). Calls with
    the same shapes use the program compiled first.

    Args:
        full_graph: raise RuntimeError where something inside, such as `.item()`, cut the graph.
        name: what errors call the function; by default its own name.
        num_different_graphs_allowed: raise RuntimeError when the calls compile more programs than this.
    """
    if num_different_graphs_allowed is not None and num_different_graphs_allowed < 1:
        raise ValueError(f"num_different_graphs_allowed: expected at least 1, got {num_different_graphs_allowed}")
    if f is None:
        return _Region(name or "the region", full_graph, num_different_graphs_allowed).enter()
    title = name or str(getattr(f, "__name__", type(f).__name__))
    region = _Region(title, full_graph, num_different_graphs_allowed)

    @functools.wraps(f.forward if isinstance(f, torch.nn.Module) else f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with region.enter():
            return f(*args, **kwargs)

    return wrapper


def step() -> contextlib.AbstractContextManager[None]:
    """`with torch_xla.step():` around a training step: whatever it records becomes a graph of its own.

    >>> for images, labels in loader:
    ...     with torch_xla.step():
    ...         loss = loss_function(model(images), labels)
    ...         loss.backward()
    ...         optimizer.step()
    """
    return _Region("the step").enter()


def launch(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), start_method: str = "spawn", debug_single_process: bool = False
) -> None:
    """Calls fn(0, *args) in this process: one process with one device is what this version supports."""
    from .distributed import xla_multiprocessing

    nprocs = 1 if debug_single_process else None
    xla_multiprocessing.spawn(fn, args=args, nprocs=nprocs, start_method=start_method)
