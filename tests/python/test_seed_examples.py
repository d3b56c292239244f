"""The scripts of examples/seeds print what docs/seeing.md shows, apart from times."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from operator_exceptions import differs_on_older_plugin

ROOT = Path(__file__).resolve().parents[2]


def run(name: str) -> str:
    script = ROOT / "examples" / "seeds" / name
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def shown(start: str) -> str:
    """The block of docs/seeing.md that begins so."""
    blocks = re.findall(r"^```\n(.*?)\n```$", (ROOT / "docs" / "seeing.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if block.startswith(start))
    return block


def test_graph_around_a_barrier():
    assert run("barrier_ir.py") == shown("IR {")


def test_metrics_report():
    names = re.compile(r"^(?:Metric|Counter): .*$", re.MULTILINE)
    assert names.findall(run("metrics_report.py")) == names.findall(shown("Metric: CompileTime"))


def test_memory_figures():
    def temporaries(text: str) -> list[float]:
        return [float(number) for number in re.findall(r"([\d.]+) MB of temporaries", text)]

    off, on = temporaries(run("checkpoint_memory.py"))
    if off == 0:
        pytest.skip("the plugin counts no temporaries")
    assert len(temporaries(shown("step 2, used memory"))) == 2
    assert on < 0.5 * off


def test_program_around_a_barrier():
    printed, expected = run("barrier_hlo.py"), shown("%1 = stablehlo.tanh")
    if differs_on_older_plugin("barrier"):  # the guard's values are numbered too
        printed, expected = (re.sub(r"%\d+", "%", text) for text in (printed, expected))
    assert printed.splitlines() == expected.splitlines()
