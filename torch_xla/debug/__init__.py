"""What was compiled, how often it ran, and what it costs in memory."""

from __future__ import annotations

from typing import TypedDict

from torch_xla import _XLAC


class Executable(TypedDict):
    name: str
    compile_seconds: float  # 0 when it was loaded from the disk cache
    runs: int
    argument_bytes: int
    output_bytes: int
    temp_bytes: int
    alias_bytes: int  # outputs written over donated arguments
    num_nodes: int  # recorded operations that the program replaced


def executables() -> list[Executable]:
    """One entry for each program compiled or loaded in this process, oldest first.

    >>> torch_xla.sync()
    >>> [(program["name"], program["runs"]) for program in torch_xla.debug.executables()]
    """
    return [
        {
            "name": program.name,
            "compile_seconds": program.compile_seconds,
            "runs": program.runs,
            "argument_bytes": program.argument_bytes,
            "output_bytes": program.output_bytes,
            "temp_bytes": program.temp_bytes,
            "alias_bytes": program.alias_bytes,
            "num_nodes": program.num_nodes,
        }
        for program in _XLAC.executables()
    ]
