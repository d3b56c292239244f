"""Times one workload of workloads.py on one backend, in a process of its own; prints a line of JSON.

python benchmarks/measure.py gpt xla
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from workloads import OPTIMIZERS, WORKLOADS, build

BACKENDS = ["eager", "inductor", "xla", "xla_unmarked", "jax"]
EXACT = "exact"  # eager in float64: what the losses are compared with, not timed
WARMUP_STEPS = 3  # compile, and fill caches
MIN_SECONDS = 0.5  # of measured steps: 20 of the small models say little
PROFILED_STEPS = 5
KERNELS = {
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "mkldnn_convolution",
    "_slow_conv2d_forward",
    "convolution_backward",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool2d_backward",
}
PHASES = ["zero_grad", "forward", "loss", "backward", "optimizer", "sync", "wait"]


class TorchStep:
    """A training step on `device`. Calling it returns the loss; `cut` starts, and `wait` awaits, what is lazy."""

    def __init__(self, name: str, backend: str) -> None:
        workload = WORKLOADS[name]
        self.device = torch.device("xla" if backend.startswith("xla") else "cpu")
        self.loss = workload.loss
        model, inputs, targets = build(name)
        if backend == EXACT:
            model.double()
            inputs, targets = (x.double() if x.is_floating_point() else x for x in (inputs, targets))
        self.inputs, self.targets = inputs.to(self.device), targets.to(self.device)
        model.to(self.device)
        self.optimizer = OPTIMIZERS[workload.optimizer](model.parameters())
        self.model: Callable[[torch.Tensor], torch.Tensor] = torch.compile(model) if backend == "inductor" else model
        self.is_marked = backend == "xla"
        self.times: list[float] = []  # when each phase of the last step began

    def __call__(self) -> torch.Tensor:
        now = time.perf_counter
        times = [now()]
        self.optimizer.zero_grad()
        times.append(now())
        outputs = self.model(self.inputs)
        times.append(now())
        loss = self.loss(outputs, self.targets)
        times.append(now())
        loss.backward()
        times.append(now())
        self.optimizer.step()
        self.times = times
        return loss.detach()

    def cut(self) -> None:
        if self.is_marked:
            import torch_xla

            torch_xla.sync()

    def wait(self) -> None:
        if self.device.type == "xla":
            import torch_xla.core.xla_model as xm

            xm.wait_device_ops()


def make_step(name: str, backend: str) -> Any:
    if backend != "jax":
        return TorchStep(name, backend)
    from jax_steps import JaxStep

    return JaxStep(name)


def reset_peak_memory() -> None:
    with contextlib.suppress(OSError):  # not every system lets it
        Path("/proc/self/clear_refs").write_text("5")


def peak_megabytes() -> float:
    """Most resident memory since the start, or since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def mapped_megabytes() -> float:
    """Resident memory that is pages of files: libraries. Processes share it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssFile:"):
            return int(line.split()[1]) / 1024
    return 0.0


def measure_unmarked(step: TorchStep, steps: int) -> dict[str, Any]:
    """A loop without a mark overlaps steps: only the whole can be timed."""
    for _ in range(WARMUP_STEPS + 1):
        loss = step()
    step.wait()
    # The last step stays pending at both ends, so that as many run as are counted.
    result: dict[str, Any] = {}
    count = 0
    start = time.perf_counter()
    while count < steps or time.perf_counter() - start < MIN_SECONDS:
        if count + WARMUP_STEPS + 1 == steps:
            result["loss"] = loss
        loss = step()
        count += 1
    step.wait()
    result["steps"] = [(time.perf_counter() - start) / count]
    return {**result, "loss": result["loss"].item()}


def kernel_seconds_of_eager(step: TorchStep) -> float:
    """Of a step: in the products, convolutions, attention and pooling that it calls, which no fusion removes."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(PROFILED_STEPS):
            step()
    kernels = [event for event in profile.key_averages() if event.key.removeprefix("aten::") in KERNELS]
    return sum(event.self_cpu_time_total for event in kernels) / 1e6 / PROFILED_STEPS


def host_call_seconds() -> float:
    """In PyTorch's kernels that programs of xla called, so far."""
    from torch_xla.debug import metrics

    found = metrics.metric_data("HostCallTime")
    return found[1] / 1e9 if found else 0.0


def measure(name: str, backend: str, steps: int) -> dict[str, Any]:
    step = make_step(name, backend)
    if backend == EXACT:
        return {"loss": [step() for _ in range(steps)][-1].item()}
    if backend == "xla_unmarked":
        return measure_unmarked(step, steps)
    if hasattr(step, "cut"):
        step.cut()
    step.wait()
    times, hosts = [], []
    is_xla = backend == "xla"
    phases: dict[str, list[float]] = {phase: [] for phase in PHASES}
    result: dict[str, Any] = {}
    while len(times) < steps or sum(times[WARMUP_STEPS:]) < MIN_SECONDS:
        if len(times) == WARMUP_STEPS:
            result["peak_megabytes_with_compiling"] = peak_megabytes()
            reset_peak_memory()
            called_before = host_call_seconds() if is_xla else 0.0
        start = time.perf_counter()
        loss = step()
        recorded = time.perf_counter()
        if hasattr(step, "cut"):
            step.cut()
        launched = time.perf_counter()
        step.wait()
        end = time.perf_counter()
        if isinstance(step, TorchStep) and len(times) >= WARMUP_STEPS:
            marks = [*step.times, recorded, launched, end]
            for phase, begin, until in zip(PHASES, marks[:-1], marks[1:], strict=True):
                phases[phase].append(until - begin)
        if not times and is_xla:
            result["launch"] = launched - start
        times.append(end - start)
        hosts.append(recorded - start)
        if len(times) == steps:
            result["loss"] = float(loss)
    result.update(first=times[0], steps=times[WARMUP_STEPS:], peak_megabytes=peak_megabytes())
    result["mapped_megabytes"] = mapped_megabytes()
    if backend == "eager":
        result["kernels"] = kernel_seconds_of_eager(step)
    if isinstance(step, TorchStep):
        result["phases"] = {phase: statistics.median(values) for phase, values in phases.items()}
    if is_xla:
        result["kernels"] = (host_call_seconds() - called_before) / len(result["steps"])
        result["host"] = hosts[WARMUP_STEPS:]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("backend", choices=[*BACKENDS, EXACT])
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.backend.startswith("xla"):
        import torch_xla  # noqa: F401
    print(json.dumps(measure(arguments.workload, arguments.backend, arguments.steps)))


if __name__ == "__main__":
    main()
