"""Time to record, hash, lower and compile against the number of operators; the columns a node should stay level.

    python benchmarks/compile_curve.py

A chain of element-wise operators (a program for each length, up to 50,000) and training steps of a perceptron of
up to 200 layers. "sync" is the whole of a sync whose program is known: flattening, hashing, looking up, starting.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

os.environ["XLA_PERSISTENT_CACHE_PATH"] = "0"
os.environ.setdefault("XLA_MAX_PENDING_NODES", "1000000")

import torch
from torch import nn

import torch_xla
from torch_xla import _XLAC


@dataclass
class Times:
    """Seconds, but for the number of operators."""

    nodes: int
    record: float
    sync: float
    lower: float
    compile: float


def accumulated(name: str) -> float:
    timing = _XLAC.timings().get(name)
    return timing.accumulator / 1e9 if timing else 0.0


def measure(step: Callable[[], object]) -> Times:
    """Runs the step until it compiles nothing new, then twice more."""
    torch_xla.sync(wait=True)
    lower = compile_ = 0.0
    for _ in range(4):
        lowered, compiled = accumulated("LowerTime"), accumulated("CompileTime")
        kept = step()
        torch_xla.sync(wait=True)
        if accumulated("CompileTime") == compiled:
            break
        lower, compile_ = accumulated("LowerTime") - lowered, accumulated("CompileTime") - compiled
    best = Times(0, float("inf"), float("inf"), lower, compile_)
    for _ in range(3):
        start = time.perf_counter()
        kept = step()
        recorded = time.perf_counter()
        nodes = _XLAC.pending_nodes(0)
        before_sync = time.perf_counter()
        torch_xla.sync()
        done = time.perf_counter()
        torch_xla.sync(wait=True)
        best = Times(nodes, min(best.record, recorded - start), min(best.sync, done - before_sync), lower, compile_)
    del kept
    return best


def chain(length: int) -> Callable[[], torch.Tensor]:
    start = torch.ones(16).to("xla")

    def step() -> torch.Tensor:
        x = start
        for _ in range(length // 2):
            x = x * 1.0001
            x = x + 0.5
        return x

    return step


def perceptron(layers: int) -> Callable[[], torch.Tensor]:
    modules = [module for _ in range(layers) for module in (nn.Linear(32, 32), nn.ReLU())]
    model = nn.Sequential(*modules).to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs = torch.ones(8, 32).to("xla")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def print_row(name: str, times: Times) -> None:
    def cell(seconds: float) -> str:
        return f"{seconds * 1e3:11.2f} ({seconds / times.nodes * 1e6:7.2f})"

    print(
        f"{name:18}{times.nodes:8}{cell(times.record)}{cell(times.sync)}{cell(times.lower)}{cell(times.compile)}"
        f"{times.lower / max(times.compile, 1e-9) * 100:8.1f} %",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--largest", type=int, default=50000, help="operators in the longest chain")
    arguments = parser.parse_args()
    print(f"{'ms (us a node)':18}{'nodes':>8}{'record':>21}{'sync':>21}{'lower':>21}{'compile':>21}{'lower':>10}")
    for length in (500, 2000, 5000, 10000, 20000, 50000):
        if length <= arguments.largest:
            print_row(f"chain {length}", measure(chain(length)))
    for layers in (12, 25, 50, 100, 200):
        print_row(f"{layers} layers", measure(perceptron(layers)))


if __name__ == "__main__":
    main()
