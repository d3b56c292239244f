"""Finds the PJRT plugins that are installed, without importing the packages that hold them.

Which of them is used is decided in C++ (src/pjrt/discovery.cpp) when the client starts: PJRT_PLUGIN_LIBRARY_PATH names
a library, PJRT_DEVICE a kind; otherwise accelerators come before CPUs, and here the newest CPU plugin before older
ones.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Plugin(NamedTuple):
    name: str  # "cpu", "cuda12", "tpu", or what its package calls it
    library_path: Path


# Module, name of the plugin, file. Best first: lammps-jax-pjrt-cpu follows XLA's releases, xla-cpu-pjrt is of 2025.
_KNOWN = (
    ("lammps_jax_pjrt_cpu", "cpu", "pjrt_c_api_cpu_plugin.so"),
    ("xla_plugins.xla_cpu_pjrt", "cpu", "xla_cpu_pjrt.so"),
    ("jax_plugins.xla_cuda13", "cuda13", "xla_cuda_plugin.so"),
    ("jax_plugins.xla_cuda12", "cuda12", "xla_cuda_plugin.so"),
    ("jax_plugins.xla_rocm7", "rocm7", "xla_rocm_plugin.so"),
    ("libtpu", "tpu", "libtpu.so"),
)
_ENTRY_POINT_GROUPS = ("xla_plugins", "jax_plugins")


def discover() -> list[Plugin]:
    """Plugins of known packages, then of the entry-point groups; each library once."""
    plugins = {plugin.library_path: plugin for plugin in [*_known_plugins(), *_entry_point_plugins()][::-1]}
    return list(plugins.values())[::-1]


def _known_plugins() -> Iterator[Plugin]:
    for module, name, file in _KNOWN:
        for directory in module_directories(module):
            if (directory / file).is_file():
                yield Plugin(name, directory / file)
                break


def _entry_point_plugins() -> Iterator[Plugin]:
    entry_points = importlib.metadata.entry_points()
    for group in _ENTRY_POINT_GROUPS:
        for entry_point in entry_points.select(group=group):
            for directory in module_directories(entry_point.module):
                if library := plugin_library(directory):
                    yield Plugin(entry_point.name, library)
                    break


def module_directories(module: str) -> list[Path]:
    """Where a package's files lie.

    find_spec of a submodule would import its parents, so only the first part is asked for.
    """
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        return []
    if spec is None or spec.submodule_search_locations is None:
        return []
    directories = (Path(location, *rest) for location in spec.submodule_search_locations)
    # A module that is a file, not a package, lies beside its library.
    return [d if d.is_dir() else d.parent for d in directories if d.is_dir() or d.with_suffix(".py").is_file()]


def plugin_library(directory: Path) -> Path | None:
    """The shared library in a plugin's package that is the plugin, told from Python extension modules by its name."""
    libraries = sorted(p for p in directory.glob("*.so") if ".cpython-" not in p.name and ".abi3." not in p.name)
    for word in ("pjrt", "plugin", "libtpu"):
        for library in libraries:
            if word in library.name:
                return library
    return libraries[0] if len(libraries) == 1 else None
