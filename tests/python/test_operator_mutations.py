"""Calls that are nearly right are taken or refused on xla as on the CPU, with the same error.

By default a part of the mutations of each operator's first sample, drawn by their names; TORCH_PJRT_MUTATIONS="full" is
all of three samples, in float32, int64 and complex64. Known differences are rows of operator_exceptions.py.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from operator_comparison import dtype_name, full_name
from operator_exceptions import NOT_FOR_XLA, RANDOM, UNINITIALISED, crashes_cpu, is_known_mutation
from operator_mutations import Mutations
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compilation")]

IS_FULL = os.environ.get("TORCH_PJRT_MUTATIONS") == "full"
DTYPES = (torch.float32, torch.int64, torch.complex64) if IS_FULL else (torch.float32,)
NUM_SAMPLES = 3 if IS_FULL else 1
# Of the mutations one in so many runs by default.
SHARE = 1 if IS_FULL else 8


def cases() -> Iterator[Any]:
    for op in op_db:
        for dtype in DTYPES if full_name(op) not in NOT_FOR_XLA else ():
            if dtype in op.dtypes:
                yield pytest.param(op, dtype, id=f"{full_name(op)}-{dtype_name(dtype)}")


@pytest.mark.parametrize(("op", "dtype"), list(cases()))
def test_mutated_calls_equal_cpu(op: OpInfo, dtype: torch.dtype) -> None:
    name = full_name(op)

    def is_wanted(label: str) -> bool:
        return not crashes_cpu(name, label) and zlib.crc32(f"{name} {label}".encode()) % SHARE == 0

    comparison = Mutations(op, dtype, compare_values=name not in RANDOM | UNINITIALISED)
    found = comparison.run_mutations(NUM_SAMPLES, is_wanted)
    assert [x.text for x in found if not is_known_mutation(name, x.text)] == []
