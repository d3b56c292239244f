"""The scripts of benchmarks/ run, and say what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import compare

    return compare


def measure(backend: str) -> dict:
    command = [sys.executable, str(BENCHMARKS / "measure.py"), "mlp16", backend, "--steps", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_backends_train_alike():
    eager = measure("eager")
    assert len(eager["steps"]) >= 5 and sum(eager["steps"]) >= 0.5
    assert eager["first"] > 0 and eager["peak_megabytes"] > 100
    for backend in ("exact", "xla", "xla_unmarked", "jax"):
        if backend == "jax":
            pytest.importorskip("jax")
        assert measure(backend)["loss"] == pytest.approx(eager["loss"], rel=1e-3)


def result(step: float, loss: float = 1.0, first: float = 3.0) -> dict:
    return {"steps": [step, step, 9.0], "loss": loss, "first": first, "peak_megabytes": 100.0, "host": [0.001]}


def test_ratios_are_taken_round_by_round(compare):
    runs = {"eager": [result(1.0), result(2.0)], "xla": [result(0.5, first=4.0), result(0.8, first=0.5)]}
    runs["exact"] = [{"loss": 1.0}]
    summary = compare.summarize(runs, "xla")
    assert (summary.lowest_ratio, summary.highest_ratio) == (0.4, 0.5)
    assert summary.ratio == pytest.approx(0.45) and summary.step == pytest.approx(0.65)
    assert (summary.first, summary.second_process) == (4.0, 0.5)
    eager = compare.summarize(runs, "eager")
    text = compare.step_table({"mlp16": {"eager": eager, "xla": summary}}, ["eager", "xla"])
    assert text.splitlines()[-1] == "| mlp16 | 1500.00 ms | 650.00 ms, 0.45 (0.40-0.50) |"


def test_a_loss_that_differs_is_told(compare):
    runs = {"eager": [result(1.0)], "xla": [result(1.0, loss=1.002)], "jax": [result(1.0, loss=1.002)]}
    runs["exact"] = [{"loss": 1.0015}]
    summaries = {"mlp16": {backend: compare.summarize(runs, backend) for backend in runs if backend != "exact"}}
    (text,) = compare.check_losses(summaries)
    assert text.startswith("mlp16 on xla: the loss differs from eager's by 2.0e-03; from that in float64 by 5.0e-04")
    assert not compare.is_worse_than_eager(summaries)
    runs["exact"] = [{"loss": 1.0}]
    summaries["mlp16"]["xla"] = compare.summarize(runs, "xla")
    summaries["mlp16"]["eager"] = compare.summarize(runs, "eager")
    assert compare.is_worse_than_eager(summaries)


def test_the_page_and_its_plot(compare, tmp_path: Path):
    phases = dict.fromkeys(compare.PHASES, 0.25)
    on_xla = [{**result(0.5), "phases": phases, "launch": seconds, "kernels": 0.4} for seconds in (2.0, 0.5)]
    eager = {**result(1.0), "kernels": 0.7}
    runs = {"eager": [eager] * 2, "xla": on_xla, "xla_unmarked": [{"steps": [0.5], "loss": 1.0}] * 2}
    backends = list(runs)
    runs["exact"] = [{"loss": 1.0}]
    summaries = {"gpt": {backend: compare.summarize(runs, backend) for backend in backends}}
    page = compare.document({"gpt": runs}, summaries, backends, compare.Settings(2, 20, None))
    assert "| gpt | 1000.00 ms | 500.00 ms, 0.50 (0.50-0.50) | 500.00 ms, 0.50 (0.50-0.50) |" in page
    assert "| gpt | 3.00 s, then 3.00 s | 3.00 s, then 3.00 s |" in page
    assert "| gpt, xla | 250.00 | 250.00 | 250.00 | 250.00 | 250.00 | 250.00 | 250.00 |" in page
    assert "| gpt | 2.000 s | 0.500 s | 0.25 |" in page
    assert "| gpt | 700.00 ms, 0.70 | 400.00 ms, 0.80 | 0.40 |" in page
    runs["old"] = [result(1.25)] * 2
    summaries["gpt"]["old"] = compare.summarize(runs, "old")
    table = compare.kernel_table({"gpt": runs}, summaries)
    assert "| gpt | 700.00 ms, 0.70 | 400.00 ms, 0.80 | 0.40 | 2.5, 3.1 |" in table
    pytest.importorskip("matplotlib")
    compare.plot(summaries, backends, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
