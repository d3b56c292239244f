"""Compiles ever new small graphs, and prints what the process holds on the way: nothing may grow with their number.

XLA_PERSISTENT_CACHE_PATH=0 python benchmarks/many_graphs.py --graphs 10000
"""

from __future__ import annotations

import argparse
import gc
import time
from pathlib import Path

import torch

from torch_xla import _XLAC
from torch_xla.debug import metrics

WIDTH = 100  # of sizes, in each of two dimensions
STRIDE = 3701  # without a common divisor with WIDTH: each stretch has small and large sizes


def use(number: int) -> None:
    """A graph that no other number has: an upload, a product in ATen's kernel, a write through a view, a sum."""
    size = number * STRIDE % WIDTH**2
    x = torch.ones(size % WIDTH + 1, size // WIDTH + 2).to("xla")
    y = x.t().clone()
    y[0] = 2
    product = (y @ x).relu().sum()
    rows, columns = x.shape
    expected = rows * columns * (columns + 1)
    assert product.item() == expected, (number, product.item(), expected)


def resident_megabytes() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0


def mappings() -> int:
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--graphs", type=int, default=WIDTH**2)
    parser.add_argument("--every", type=int, default=1000)
    arguments = parser.parse_args()
    print("| graphs | MB | mappings | programs | dropped | remembered calls | ms a graph |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    start = time.perf_counter()
    for number in range(1, arguments.graphs + 1):
        use(number)
        if number != 1 and number % arguments.every != 0:
            continue
        gc.collect()
        seconds = time.perf_counter() - start
        row = [
            number,
            round(resident_megabytes()),
            mappings(),
            _XLAC.num_cached_programs(),
            metrics.counter_value("EvictedProgram") or 0,
            _XLAC.num_remembered_calls(),
            round(1000 * seconds / (1 if number == 1 else arguments.every)),
        ]
        print("| " + " | ".join(str(value) for value in row) + " |", flush=True)
        start = time.perf_counter()


if __name__ == "__main__":
    main()
