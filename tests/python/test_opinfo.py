"""Every operator that PyTorch's own test suite describes (OpInfo) is on xla what it is on the CPU.

./dev opinfo runs all dtypes, ./dev opinfo --quick one dtype of each operator, ./dev opinfo NAME operators whose name
contains NAME. Known differences are rows of operator_exceptions.py.

The environment chooses what runs:
- TORCH_PJRT_OPINFO: "quick" (default), "full", or "quick K/N": the quick set, and entry K, K + N, ... of the full one.
- TORCH_PJRT_OPINFO_SHARD: "I/M": the share of one of M processes.
- TORCH_PJRT_OPINFO_REPORT: a file that gets one line of JSON for each operator and dtype.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from operator_comparison import DTYPES, Comparison, Extent, dtype_name, error_differences, first_dtype, full_name
from operator_exceptions import NOT_FOR_XLA, RANDOM, UNINITIALISED, allowed
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

import torch_xla
import torch_xla.debug.metrics as met

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compilation")]

# The full set takes every sample up to 400. Six operators have more, which are all combinations of their options: of
# those the first, the last, and some drawn by the names of operator and dtype. In the first dtype of an operator more
# of them run in all variants and with gradients.
MOST_SAMPLES = 400
QUICK = Extent(samples=4, variants=1, gradients=2, second_gradients=2)
FULL_FIRST_DTYPE = Extent(samples=MOST_SAMPLES, variants=3, gradients=32, second_gradients=4)
FULL = Extent(samples=MOST_SAMPLES, variants=2, gradients=6, second_gradients=2)


def fraction(text: str) -> tuple[int, int]:
    part, whole = text.split("/")
    return int(part), int(whole)


SET, *QUARTER = os.environ.get("TORCH_PJRT_OPINFO", "quick").split()
PART = fraction(QUARTER[0]) if QUARTER else None
SHARD = fraction(os.environ.get("TORCH_PJRT_OPINFO_SHARD", "0/1"))
REPORT = os.environ.get("TORCH_PJRT_OPINFO_REPORT")


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    """An entry has the same result wherever it runs: no pending graph and no setting is left to the next."""
    met.clear_all()
    yield
    torch_xla.sync(wait=True)
    settings = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled())
    assert settings == (torch.float32, True, False)


def is_mine(name: str) -> bool:
    part, whole = SHARD
    return zlib.crc32(f"shard {name}".encode()) % whole == part


def extent(op: OpInfo, dtype: torch.dtype, name: str) -> Extent | None:
    """What of an entry runs in the chosen set."""
    is_first = dtype == first_dtype(op)
    if SET == "full" or (PART is not None and zlib.crc32(name.encode()) % PART[1] == PART[0]):
        return FULL_FIRST_DTYPE if is_first else FULL
    return QUICK if is_first else None


def cases() -> Iterator[Any]:
    for op in op_db:
        for dtype in DTYPES if full_name(op) not in NOT_FOR_XLA else ():
            name = f"{full_name(op)}-{dtype_name(dtype)}"
            if dtype in op.dtypes and is_mine(name):
                size = extent(op, dtype, name)
                if size is not None:
                    yield pytest.param(op, dtype, size, id=name)


def report(comparison: Comparison, differences: dict[str, str], known: dict[str, str], seconds: float) -> None:
    if REPORT is None:
        return
    line = {
        "operator": full_name(comparison.op),
        "dtype": dtype_name(comparison.dtype),
        "samples": [comparison.samples, comparison.all_samples],
        "cases": comparison.cases,
        "kinds": sorted(comparison.kinds | differences.keys()),
        "as_near_cases": len(comparison.as_near),
        "differing_cases": len({difference.where for difference in comparison.differences}),
        "differences": differences,
        "unknown": sorted(differences.keys() - known.keys()),
        "fallbacks": met.executed_fallback_ops(),
        "in_program": sorted(
            name.removeprefix("ATenInProgram::") for name in met.counter_names() if name.startswith("ATenInProgram::")
        ),
        "seconds": round(seconds, 3),
    }
    with open(REPORT, "a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize(("op", "dtype", "size"), list(cases()))
def test_equals_cpu(op: OpInfo, dtype: torch.dtype, size: Extent) -> None:
    name = full_name(op)
    start = time.monotonic()
    comparison = Comparison(op, dtype, compare_values=name not in RANDOM | UNINITIALISED)
    found = {difference.kind: difference.text for difference in reversed(comparison.run(size))}
    known = allowed(name, dtype_name(dtype))
    report(comparison, found, known, time.monotonic() - start)
    assert {kind: text for kind, text in found.items() if kind not in known} == {}


@pytest.mark.parametrize(
    "op",
    [op for op in op_db if op.error_inputs_func and full_name(op) not in NOT_FOR_XLA and is_mine(full_name(op))],
    ids=full_name,
)
def test_errors_equal_cpu(op: OpInfo) -> None:
    known = allowed(full_name(op), "*")
    assert "error-inputs" in known or error_differences(op) == []
