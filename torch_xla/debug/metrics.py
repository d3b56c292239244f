"""Counters and timings of this process: `import torch_xla.debug.metrics as met; print(met.metrics_report())`.

Among the metrics are CompileTime, ExecuteTime, TransferToDeviceTime, TransferFromDeviceTime; a counter named `aten::x`
says how often the operator x ran on the CPU for want of a lowering.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch_xla import _XLAC

_PERCENTILES = (0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99)
_FALLBACK_PREFIX = "aten::"


def metric_names() -> list[str]:
    return sorted(_XLAC.timings())


def metric_data(name: str) -> tuple[int, float, list[tuple[float, float]]] | None:
    """(number of samples, their sum, the newest samples as (time, value)); None when nothing was measured under that
    name.

    Durations and times are in nanoseconds, the times since the epoch; sizes are in bytes.
    """
    metric = _XLAC.timings().get(name)
    if metric is None:
        return None
    return metric.total_samples, metric.accumulator, list(metric.samples)


def counter_names() -> list[str]:
    return sorted(_XLAC.counters())


def counter_value(name: str) -> int | None:
    """None when nothing was counted under that name."""
    return _XLAC.counters().get(name)


def executed_fallback_ops() -> list[str]:
    """Names of the operators that ran on the CPU: ["aten::eig"]."""
    return [name for name in counter_names() if name.startswith(_FALLBACK_PREFIX)]


def clear_counters() -> None:
    """Forgets all counters."""
    _XLAC.clear_counters()


def clear_metrics() -> None:
    """Forgets all metrics."""
    _XLAC.clear_metrics()


def clear_all() -> None:
    """Forgets all counters and metrics."""
    clear_metrics()
    clear_counters()


def metrics_report() -> str:
    """All metrics, then all counters."""
    return _report(_XLAC.timings(), _XLAC.counters())


def short_metrics_report(counter_names: Iterable[str] | None = None, metric_names: Iterable[str] | None = None) -> str:
    """The report on these counters and metrics; by default on compiling, executing, transfers and fallbacks."""
    metrics, counters = _XLAC.timings(), _XLAC.counters()
    if metric_names is None:
        metric_names = ("CompileTime", "ExecuteTime", "TransferToDeviceTime", "TransferFromDeviceTime")
    if counter_names is None:
        counter_names = [name for name in counters if name.startswith(_FALLBACK_PREFIX)]
    return _report(
        {name: metrics[name] for name in metric_names if name in metrics},
        {name: counters[name] for name in counter_names if name in counters},
    )


def _report(metrics: dict[str, _XLAC.Timing], counters: dict[str, int]) -> str:
    lines = [line for name in sorted(metrics) for line in _metric_lines(name, metrics[name])]
    for name in sorted(counters):
        lines += [f"Counter: {name}", f"  Value: {counters[name]}"]
    return "".join(line + "\n" for line in lines)


def _metric_lines(name: str, metric: _XLAC.Timing) -> list[str]:
    show = _format_time if metric.is_time else _format_bytes
    lines = [f"Metric: {name}", f"  TotalSamples: {metric.total_samples}", f"  Accumulator: {show(metric.accumulator)}"]
    if len(metric.samples) > 1:
        nanoseconds = metric.samples[-1][0] - metric.samples[0][0]
        if nanoseconds > 0:
            per_second = 1e9 / nanoseconds
            lines.append(f"  ValueRate: {show(sum(value for _, value in metric.samples) * per_second)} / second")
            lines.append(f"  Rate: {len(metric.samples) * per_second:g} / second")
    if metric.samples:
        values = sorted(value for _, value in metric.samples)
        marks = (f"{p:.0%}={show(values[min(int(p * len(values)), len(values) - 1)])}" for p in _PERCENTILES)
        lines.append(f"  Percentiles: {'; '.join(marks)}")
    return lines


def _format_time(nanoseconds: float) -> str:
    """01h02m03s004ms005.006us, without the leading parts that are zero."""
    microseconds = nanoseconds / 1e3
    text = ""
    for unit, size, width in (("d", 86400e6, 2), ("h", 3600e6, 2), ("m", 60e6, 2), ("s", 1e6, 2), ("ms", 1e3, 3)):
        count, microseconds = divmod(microseconds, size)
        if text or count:
            text += f"{int(count):0{width}d}{unit}"
    return f"{text}{microseconds:07.3f}us" if text else f"{microseconds:.3f}us"


def _format_bytes(size: float) -> str:
    """1.50MB"""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(size) < 1024 or unit == "TB":
            break
        size /= 1024
    return f"{size:.2f}{unit}"
