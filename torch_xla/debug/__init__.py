"""What was recorded, what was compiled and why, how often it ran, and what it costs in memory.

Environment variables, read when `xla` is first used:

- `XLA_IR_DEBUG=1`: every recorded operator carries the Python line that recorded it; see set_ir_debug.
- `PT_XLA_DEBUG=1`: every cut and every compile is printed to stderr with its cause.
- `XLA_SAVE_TENSORS_FILE=path`: every graph is appended to the file before it is compiled, in the form
  `XLA_SAVE_TENSORS_FMT`: `text` (default), `hlo` (StableHLO) or `dot` (Graphviz).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict

import torch

from torch_xla import _XLAC


class Executable(TypedDict):
    id: int  # 0, 1, 2, ... in the order of compilation
    name: str
    cause: str  # what made the graph be cut, and where: ".item(), at train@train.py:31"
    explanation: str  # why no earlier program served
    compile_seconds: float  # 0 when it was loaded from the disk cache
    runs: int
    argument_bytes: int
    output_bytes: int
    temp_bytes: int
    alias_bytes: int  # outputs written over donated arguments
    num_nodes: int  # recorded operations that the program replaced
    num_parameters: int
    num_outputs: int


def executables() -> list[Executable]:
    """One entry for each program compiled or loaded in this process, oldest first.

    >>> torch_xla.sync()
    >>> [(program["name"], program["runs"]) for program in torch_xla.debug.executables()]
    """
    return [
        {
            "id": program.id,
            "name": program.name,
            "cause": program.cause,
            "explanation": program.explanation,
            "compile_seconds": program.compile_seconds,
            "runs": program.runs,
            "argument_bytes": program.argument_bytes,
            "output_bytes": program.output_bytes,
            "temp_bytes": program.temp_bytes,
            "alias_bytes": program.alias_bytes,
            "num_nodes": program.num_nodes,
            "num_parameters": program.num_parameters,
            "num_outputs": program.num_outputs,
        }
        for program in _XLAC.executables()
    ]


def tensors_text(tensors: Sequence[torch.Tensor]) -> str:
    """The pending computation of the tensors, one operator a line, in the order in which they were recorded.

    >>> x = torch.ones(2, 3, device="xla")
    >>> print(torch_xla.debug.tensors_text([x + 1]))
    IR {
      %0 = f32[2,3]{1,0} aten::fill()
      %1 = f32[2,3]{1,0} aten::add(%0), ROOT=0
    }
    """
    return _XLAC._get_xla_tensors_text(list(tensors))


def tensors_hlo(tensors: Sequence[torch.Tensor]) -> str:
    """The pending computation of the tensors as StableHLO text."""
    return _XLAC._get_xla_tensors_hlo(list(tensors))


def tensors_dot(tensors: Sequence[torch.Tensor]) -> str:
    """The pending computation of the tensors as a Graphviz graph."""
    return _XLAC._get_xla_tensors_dot(list(tensors))


def optimized_hlo(program: int) -> bytes:
    """The compiled program with this id as the plugin gives it: usually a serialized HloModuleProto.

    ValueError when the program is not in memory any more.
    """
    return _XLAC.optimized_program(program)


def set_ir_debug(wanted: bool) -> None:
    """Whether operators recorded from now on carry the Python line that records them.

    The line is that of the innermost frame outside PyTorch, this package and the standard library. It is shown by
    tensors_text, by PT_XLA_DEBUG=1, by the report and in errors of the compiler. Costs about a microsecond an operator.
    """
    _XLAC.set_ir_debug(wanted)


def ir_debug() -> bool:
    """Whether recorded operators carry their Python lines."""
    return _XLAC.ir_debug()


def start_recording() -> None:
    """Forgets the events of an earlier recording and takes new ones, at most the newest 65,536; see report.

    Also switches source lines on.
    """
    _XLAC.set_ir_debug(True)
    _XLAC.start_recording()


def stop_recording() -> None:
    _XLAC.stop_recording()


def is_recording() -> bool:
    return _XLAC.is_recording()


def report(path: str | os.PathLike[str], title: str = "") -> None:
    """Writes one HTML page, which needs no network, about what this process has recorded, compiled and run so far.

    Programs and memory are always there; the time line and source lines cover what ran since start_recording().

    >>> torch_xla.debug.start_recording()
    >>> train(...)
    >>> torch_xla.debug.report("report.html")
    """
    from . import _page

    _page.write(path, title)
