"""Training steps on xla beside eager PyTorch, inductor and JAX: one process a measurement, interleaved, several rounds.

    ./dev bench                                  all workloads and backends, 3 rounds: about 15 minutes on 2 cores
    ./dev bench --only gpt --rounds 5            one workload
    ./dev bench --old-python /path/to/python     and the torch_xla that this interpreter has

The first round of `xla` starts without a disk cache, the later ones find the programs of the first. Writes
docs/performance.md with its plot and performance.json; with --only or --backends it prints and writes nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import BACKENDS, EXACT, PHASES
from workloads import WORKLOADS

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
TITLES = {
    "eager": "eager",
    "inductor": "inductor",
    "xla": "xla",
    "xla_unmarked": "xla, no sync in the loop",
    "jax": "JAX",
    "old": "older torch_xla",
}
# Relative difference from eager's loss after all steps. JAX's initial sums differ in order from the first step on, and
# a loss near 0 shows it.
LOSS_TOLERANCE = {"jax": 1e-2}
Runs = dict[str, dict[str, list[dict[str, Any]]]]  # workload -> backend -> one result a round


@dataclass
class Settings:
    rounds: int
    steps: int
    old_python: str | None


def run_once(workload: str, backend: str, caches: Path, settings: Settings) -> dict[str, Any]:
    environment = {
        **os.environ,
        "XLA_PERSISTENT_CACHE_PATH": str(caches / "xla" / workload),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor" / workload),
    }
    python, name = sys.executable, backend
    if backend == "old":
        python, name = settings.old_python or sys.executable, "xla"
        environment["PJRT_DEVICE"] = "CPU"
        environment.pop("PYTHONPATH", None)  # which may lead to this package
        del environment["XLA_PERSISTENT_CACHE_PATH"]
    command = [python, str(HERE / "measure.py"), workload, name, "--steps", str(settings.steps)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure_all(workloads: list[str], backends: list[str], settings: Settings) -> Runs:
    runs: Runs = {workload: {backend: [] for backend in [*backends, EXACT]} for workload in workloads}
    with tempfile.TemporaryDirectory() as caches:
        for workload in workloads:
            runs[workload][EXACT].append(run_once(workload, EXACT, Path(caches), settings))
        for number in range(settings.rounds):
            for workload in workloads:
                for backend in backends:
                    result = run_once(workload, backend, Path(caches), settings)
                    runs[workload][backend].append(result)
                    step = statistics.median(result["steps"]) * 1e3
                    print(f"round {number + 1}: {workload:10}{TITLES[backend]:26}{step:9.2f} ms a step", flush=True)
    return runs


# --- What the runs say ---------------------------------------------------------------------------------------------


def median_step(result: dict[str, Any]) -> float:
    return statistics.median(result["steps"])


@dataclass
class Summary:
    """Of one workload on one backend. Seconds and megabytes; ratios are to eager's run of the same round."""

    step: float
    ratio: float
    lowest_ratio: float
    highest_ratio: float
    first: float | None
    second_process: float | None
    launch: float | None  # until the first step runs
    second_launch: float | None
    peak: float | None
    mapped: float | None
    host: float | None
    loss_difference: float  # from eager's, relative
    loss_error: float  # from that of eager in float64, relative


def summarize(runs: dict[str, list[dict[str, Any]]], backend: str) -> Summary:
    results, eager = runs[backend], runs["eager"]
    ratios = [median_step(a) / median_step(b) for a, b in zip(results, eager, strict=True)]
    expected, exact = eager[0]["loss"], runs[EXACT][0]["loss"]
    firsts = [result["first"] for result in results if "first" in result]
    launches = [result["launch"] for result in results if "launch" in result]
    hosts = [statistics.median(result["host"]) for result in results if "host" in result]
    peaks = [result["peak_megabytes"] for result in results if "peak_megabytes" in result]
    mapped = [result["mapped_megabytes"] for result in results if "mapped_megabytes" in result]
    return Summary(
        step=statistics.median(median_step(result) for result in results),
        ratio=statistics.median(ratios),
        lowest_ratio=min(ratios),
        highest_ratio=max(ratios),
        first=firsts[0] if firsts else None,
        second_process=statistics.median(firsts[1:]) if len(firsts) > 1 else None,
        launch=launches[0] if launches else None,
        second_launch=statistics.median(launches[1:]) if len(launches) > 1 else None,
        peak=statistics.median(peaks) if peaks else None,
        mapped=statistics.median(mapped) if mapped else None,
        host=statistics.median(hosts) if hosts else None,
        loss_difference=max(abs(result["loss"] - expected) / abs(expected) for result in results),
        loss_error=max(abs(result["loss"] - exact) / abs(exact) for result in results),
    )


def check_losses(summaries: dict[str, dict[str, Summary]]) -> list[str]:
    return [
        f"{workload} on {TITLES[backend]}: the loss differs from eager's by {summary.loss_difference:.1e}; from that "
        f"in float64 by {summary.loss_error:.1e}, where eager's differs by {backends['eager'].loss_error:.1e}"
        for workload, backends in summaries.items()
        for backend, summary in backends.items()
        if summary.loss_difference > LOSS_TOLERANCE.get(backend, 1e-3)
    ]


def is_worse_than_eager(summaries: dict[str, dict[str, Summary]]) -> bool:
    """Whether a loss on xla is neither eager's nor as near to that in float64.

    Where training multiplies the rounding of its first steps, eager's own loss is not known to 1e-3."""
    return any(
        summary.loss_difference > LOSS_TOLERANCE.get(backend, 1e-3)
        and summary.loss_error > backends["eager"].loss_error
        for backends in summaries.values()
        for backend, summary in backends.items()
        if backend.startswith("xla")
    )


# --- Tables and plots ----------------------------------------------------------------------------------------------


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def step_table(summaries: dict[str, dict[str, Summary]], backends: list[str]) -> str:
    def cell(summary: Summary, backend: str) -> str:
        if backend == "eager":
            return f"{summary.step * 1e3:.2f} ms"
        spread = f"{summary.lowest_ratio:.2f}-{summary.highest_ratio:.2f}"
        return f"{summary.step * 1e3:.2f} ms, {summary.ratio:.2f} ({spread})"

    rows = [[name, *(cell(summaries[name][b], b) for b in backends)] for name in summaries]
    return table(["", *(TITLES[b] for b in backends)], rows)


def start_table(summaries: dict[str, dict[str, Summary]], backends: list[str]) -> str:
    def cell(summary: Summary) -> str:
        if summary.first is None:
            return ""
        if summary.second_process is None:
            return f"{summary.first:.2f} s"
        return f"{summary.first:.2f} s, then {summary.second_process:.2f} s"

    shown = [b for b in backends if b != "xla_unmarked"]
    return table(["", *(TITLES[b] for b in shown)], [[n, *(cell(summaries[n][b]) for b in shown)] for n in summaries])


def phase_table(runs: Runs) -> str:
    """Medians over rounds, on eager and xla."""
    rows = []
    for name, backends in runs.items():
        for backend in ("eager", "xla"):
            results = [result["phases"] for result in backends.get(backend, []) if "phases" in result]
            if results:
                cells = [f"{statistics.median(result[phase] for result in results) * 1e3:.2f}" for phase in PHASES]
                rows.append([f"{name}, {TITLES[backend]}", *cells])
    return table(["", *PHASES], rows)


def kernel_table(runs: Runs, summaries: dict[str, dict[str, Summary]]) -> str:
    """Medians over rounds of the time in PyTorch's kernels."""

    def kernels(name: str, backend: str) -> float:
        return statistics.median(result["kernels"] for result in runs[name][backend])

    rows = []
    for name, backends in summaries.items():
        eager, xla = kernels(name, "eager"), kernels(name, "xla")
        row = [name, f"{eager * 1e3:.2f} ms, {eager / backends['eager'].step:.2f}"]
        row += [f"{xla * 1e3:.2f} ms, {xla / backends['xla'].step:.2f}", f"{xla / backends['eager'].step:.2f}"]
        if "old" in backends:
            multiple = backends["old"].step / backends["xla"].step
            row.append(f"{multiple:.1f}" + (f", {backends['old'].step / xla:.1f}" if xla else ""))
        rows.append(row)
    header = ["", "eager", "xla", "ratio of xla's kernels to eager's step"]
    if any("old" in backends for backends in summaries.values()):
        header.append("older torch_xla's step, ratio to xla's, then to xla's kernels alone")
    return table(header, rows)


def launch_table(summaries: dict[str, dict[str, Summary]]) -> str:
    rows = []
    for name, backends in summaries.items():
        cold, second = backends["xla"].launch, backends["xla"].second_launch
        if cold is not None and second is not None:
            rows.append([name, f"{cold:.3f} s", f"{second:.3f} s", f"{second / cold:.2f}"])
    return table(["", "empty cache", "second process", "ratio"], rows)


def memory_table(summaries: dict[str, dict[str, Summary]], backends: list[str]) -> str:
    def own(summary: Summary) -> float:
        return (summary.peak or 0) - (summary.mapped or 0)

    def cell(summary: Summary, eager: Summary) -> str:
        return f"{summary.peak or 0:.0f} MB, {own(summary):.0f} MB, {own(summary) / own(eager):.2f}"

    shown = [b for b in backends if b != "xla_unmarked"]
    rows = [[name, *(cell(summaries[name][b], summaries[name]["eager"]) for b in shown)] for name in summaries]
    return table(["", *(TITLES[b] for b in shown)], rows)


def document(runs: Runs, summaries: dict[str, dict[str, Summary]], backends: list[str], settings: Settings) -> str:
    import torch

    text = f"""# Performance

Written by `./dev bench` on {platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}: medians of
{settings.rounds} interleaved rounds, each measurement in a process of its own, {settings.steps} steps each, or half a
second of them. After step {settings.steps} losses equal eager's to 1e-3 (JAX's to 1e-2){loss_text(summaries)}.

## A training step

Milliseconds, the ratio to eager of the same round, and the lowest and highest ratio.

{step_table(summaries, backends)}

![Ratios to eager](performance.png)

`xla` waits for each step before the next is recorded. Without a wait recording overlaps the execution. What the host
spends on recording a step: {host_text(summaries)}.

Where the time of a step goes, in milliseconds. Eager computes in these phases; `xla` records in them, starts the
program in `sync`, and computes until the end of `wait`:

{phase_table(runs)}

What of a step is spent in PyTorch's own kernels, in milliseconds and as a share of it. For eager these are products,
convolutions, attention and pooling, which no fusion removes; for `xla` what programs call instead of computing it
themselves (`HostCallTime`). Their sum is what a step cannot be shorter than with these kernels:

{kernel_table(runs, summaries)}

## The first step

Seconds of the first step with an empty disk cache, then in a second process, which finds the programs there. It
includes the execution.

{start_table(summaries, backends)}

Until the first step starts to run on xla (recording, lowering, and compiling or loading), without its execution:

{launch_table(summaries)}

## Memory

Peak resident memory while training, without the first steps and their compilation; then without pages of files, which
are libraries (the CPU plugin is a large one) and which processes share, and the ratio of that to eager's.

{memory_table(summaries, backends)}
"""
    return text


def loss_text(summaries: dict[str, dict[str, Summary]]) -> str:
    failures = check_losses(summaries)
    return "" if not failures else ", but for these:\n" + ";\n".join(f"- {failure}" for failure in failures)


def host_text(summaries: dict[str, dict[str, Summary]]) -> str:
    hosts = {name: backends["xla"].host for name, backends in summaries.items() if "xla" in backends}
    return ", ".join(f"{name} {seconds * 1e3:.2f} ms" for name, seconds in hosts.items() if seconds is not None)


def plot(summaries: dict[str, dict[str, Summary]], backends: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [b for b in backends if b != "eager"]
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    width = 0.8 / len(shown)
    for i, backend in enumerate(shown):
        values = [summaries[name][backend] for name in summaries]
        places = [j + (i - (len(shown) - 1) / 2) * width for j in range(len(values))]
        errors = [[v.ratio - v.lowest_ratio for v in values], [v.highest_ratio - v.ratio for v in values]]
        axes.bar(places, [v.ratio for v in values], width, yerr=errors, label=TITLES[backend], capsize=2)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(summaries)), list(summaries))
    axes.set_ylabel("time of a step, ratio to eager")
    axes.legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=WORKLOADS, action="append", help="a workload; may be repeated")
    parser.add_argument("--backends", help="separated by commas; eager is always measured")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--old-python", help="a Python interpreter with another torch_xla")
    arguments = parser.parse_args()
    if arguments.steps < 8 or arguments.rounds < 1:
        parser.error("at least 8 steps and 1 round")
    available = [b for b in BACKENDS if b != "jax" or importlib.util.find_spec("jax")]
    if arguments.old_python:
        available.append("old")
    wanted = arguments.backends.split(",") if arguments.backends else available
    backends = [b for b in available if b == "eager" or b in wanted]
    settings = Settings(arguments.rounds, arguments.steps, arguments.old_python)
    runs = measure_all(arguments.only or list(WORKLOADS), backends, settings)
    summaries = {name: {b: summarize(runs[name], b) for b in backends} for name in runs}
    print("\n" + step_table(summaries, backends) + "\n\n" + start_table(summaries, backends))
    print("\n" + phase_table(runs))
    if "xla" in backends:
        print("\n" + kernel_table(runs, summaries) + "\n\n" + launch_table(summaries))
    print("\n" + memory_table(summaries, backends))
    print("\n".join(check_losses(summaries)))
    if not arguments.only and not arguments.backends:
        (DOCS / "performance.json").write_text(json.dumps(runs) + "\n")
        (DOCS / "performance.md").write_text(document(runs, summaries, backends, settings))
        plot(summaries, backends, DOCS / "performance.png")
    return 1 if is_worse_than_eager(summaries) else 0


if __name__ == "__main__":
    sys.exit(main())
