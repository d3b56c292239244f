"""The HTML page of torch_xla.debug.report: gathers what is known into JSON and puts it into the template."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from torch_xla import _XLAC

_TEMPLATE = Path(__file__).with_name("report.html")
_PLACEHOLDER = "/*DATA*/null"
# Programs whose whole graph goes into the page: the largest of those that ran while it was recorded, then others.
_MAX_GRAPHS = 8


def write(path: str | os.PathLike[str], title: str) -> None:
    write_data(path, collect(title))


def write_data(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """The page that shows what `collect` gave."""
    # A "<" in a string could end the script element.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    template = _TEMPLATE.read_text(encoding="utf-8")
    Path(path).write_text(template.replace(_PLACEHOLDER, text, 1), encoding="utf-8")


def collect(title: str = "") -> dict[str, Any]:
    """All that the page shows."""
    programs = [_program(program) for program in _XLAC.executables()]
    events = [
        [event.kind, event.begin_ns, event.end_ns, event.program, event.bytes, event.cause]
        for event in _XLAC.recorded_events()
    ]
    ran = {event[3] for event in events}
    for program in sorted(programs, key=lambda program: (program["id"] not in ran, -program["nodes"]))[:_MAX_GRAPHS]:
        program["graph"] = _graph(program["id"])
    return {
        "title": title or Path(sys.argv[0] or "python").name,
        "plugin": _XLAC.plugin_description() if _XLAC.is_client_started() else "",
        "programs": programs,
        "events": events,
        "counters": _XLAC.counters(),
    }


def _program(program: _XLAC.ExecutableStatistics) -> dict[str, Any]:
    return {
        "id": program.id,
        "cause": program.cause,
        "why": program.explanation,
        "compile_s": program.compile_seconds,
        "runs": program.runs,
        "nodes": program.num_nodes,
        "parameters": program.num_parameters,
        "outputs": program.num_outputs,
        "argument_bytes": program.argument_bytes,
        "output_bytes": program.output_bytes,
        "temp_bytes": program.temp_bytes,
        "alias_bytes": program.alias_bytes,
        "graph": None,
    }


def _graph(program: int) -> dict[str, Any] | None:
    """Names, types and lines are numbers into tables: many nodes share them."""
    graph = _XLAC.program_graph(program)
    if not graph.nodes:
        return None
    tables: dict[str, dict[str, int]] = {"ops": {}, "types": {}, "lines": {}}

    def number(table: str, text: str) -> int:
        return tables[table].setdefault(text, len(tables[table]))

    nodes = [
        [
            number("ops", node.op),
            number("types", node.type),
            number("lines", node.location),
            node.size_bytes,
            node.region,
            int(node.is_output),
            node.operands,
        ]
        for node in graph.nodes
    ]
    return {
        "nodes": nodes,
        "parameters": graph.parameters,
        "donated": [int(donated) for donated in graph.donated],
        **{name: list(table) for name, table in tables.items()},
    }
