"""Every operator that PyTorch's own test suite describes (OpInfo) is on xla what it is on the CPU.

./dev opinfo runs all dtypes, ./dev opinfo --quick one dtype of each operator, ./dev opinfo NAME operators whose name
contains NAME. Known differences are rows of operator_exceptions.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from operator_comparison import DTYPES, Comparison, dtype_name, error_differences, first_dtype, full_name
from operator_exceptions import NOT_FOR_XLA, RANDOM, UNINITIALISED, allowed
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

import torch_xla
import torch_xla.debug.metrics as met

pytestmark = pytest.mark.slow

IS_FULL = os.environ.get("TORCH_PJRT_OPINFO") == "full"
# A file that gets one line of JSON for each operator and dtype.
REPORT = os.environ.get("TORCH_PJRT_OPINFO_REPORT")
MOST_SAMPLES = 4
# Samples that also run strided, in place, with out= and as a method.
MOST_VARIANTS = 1


@pytest.fixture(scope="module", autouse=True)
def quick_compilation() -> Iterator[None]:
    """The same programs, without the plugin's slow optimizations of machine code."""
    torch_xla.set_custom_compile_options(
        {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    )
    yield
    torch_xla.set_custom_compile_options({})


def cases() -> Iterator[Any]:
    for op in op_db:
        name = full_name(op)
        if name in NOT_FOR_XLA:
            continue
        for dtype in DTYPES if IS_FULL else [first_dtype(op)]:
            if dtype in op.dtypes:
                yield pytest.param(op, dtype, id=f"{name}-{dtype_name(dtype)}")


def report(op: OpInfo, dtype: torch.dtype, count: int, differences: dict[str, str]) -> None:
    if REPORT is None:
        return
    line = {
        "operator": full_name(op), "dtype": dtype_name(dtype), "cases": count, "differences": sorted(differences),
        "fallbacks": met.executed_fallback_ops(),
    }  # fmt: skip
    with open(REPORT, "a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize(("op", "dtype"), list(cases()))
def test_equals_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    met.clear_all()
    name = full_name(op)
    comparison = Comparison(op, dtype, compare_values=name not in RANDOM | UNINITIALISED)
    found = {difference.kind: difference.text for difference in reversed(comparison.run(MOST_SAMPLES, MOST_VARIANTS))}
    report(op, dtype, comparison.cases, found)
    known = allowed(name, dtype_name(dtype))
    assert {kind: text for kind, text in found.items() if kind not in known} == {}


@pytest.mark.parametrize(
    "op", [op for op in op_db if op.error_inputs_func and full_name(op) not in NOT_FOR_XLA], ids=full_name
)
def test_errors_equal_cpu(op: OpInfo) -> None:
    known = allowed(full_name(op), "*")
    assert "error-inputs" in known or error_differences(op) == []
