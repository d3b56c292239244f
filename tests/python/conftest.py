"""Fixtures of the Python tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import torch_xla
import torch_xla.debug
from torch_xla.debug import metrics

# Programs that the tests compile are neither taken from the user's cache nor put there.
os.environ["XLA_PERSISTENT_CACHE_PATH"] = "0"


@pytest.fixture
def compiles() -> Callable[[], int]:
    """The number of programs compiled so far, after cutting what is pending."""

    def count() -> int:
        torch_xla.sync(wait=True)
        return len(torch_xla.debug.executables())

    return count


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Nothing that torch.compile captured before is known, nor afterwards."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """No slow optimizations of machine code; half types are rounded at each operator, not where a fusion ends."""
    torch_xla.set_custom_compile_options(
        {
            "xla_backend_optimization_level": 0,
            "xla_llvm_disable_expensive_passes": True,
            "xla_allow_excess_precision": False,
        }
    )
    yield
    torch_xla.set_custom_compile_options({})


@pytest.fixture(params=["aten", "stablehlo"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test twice: with PyTorch's kernels where ops/host_kernel.cpp prefers them, and with StableHLO alone."""
    if request.param == "aten" and not torch_xla._XLAC.host_kernels_on():
        pytest.skip("the plugin takes no host calls")
    before = torch_xla._XLAC.set_host_kernels_wanted(request.param == "aten")
    yield request.param
    torch_xla._XLAC.set_host_kernels_wanted(before)


@pytest.fixture
def run_python() -> Callable[..., str]:
    """Runs a program in a new interpreter and returns its standard output; the test fails when the program does."""

    def run(program: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture(scope="session")
def custom() -> Any:
    """Operators of another library (custom_operators.cpp)."""
    build = [Path(torch_xla.__path__[0]).parents[1], Path(__file__).resolve().parents[2] / "build" / "dev"]
    found = [folder / "libcustom_operators.so" for folder in build if (folder / "libcustom_operators.so").exists()]
    if not found:
        pytest.skip("not beside a development build")
    torch.ops.load_library(str(found[0]))
    return torch.ops.tp_test


@pytest.fixture
def no_fallbacks() -> Iterator[None]:
    """Fails a test in which an operator ran on the CPU for want of a lowering."""

    def count() -> dict[str, int | None]:
        return {name: metrics.counter_value(name) for name in metrics.executed_fallback_ops()}

    before = count()
    yield
    assert count() == before


@pytest.fixture
def seeded() -> None:
    """The test draws the same numbers in every run."""
    torch.manual_seed(0)
