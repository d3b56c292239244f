"""Single operators on eager PyTorch, and on xla with StableHLO alone and with PyTorch's kernels in the program.

    python benchmarks/operators.py            all
    python benchmarks/operators.py topk mm    those whose name contains one of the words

What src/ops/host_kernel.cpp prefers a kernel for should have a gain above 1 here. Each time is the shortest of several
calls, waited for, in milliseconds; a program of one operator cannot be fused, which is StableHLO's strength.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable, Iterator

os.environ["XLA_PERSISTENT_CACHE_PATH"] = "0"

import torch
import torch.nn.functional as F

import torch_xla
from torch_xla import _XLAC

CALLS = 9
WARMUP_CALLS = 2  # compile
Function = Callable[..., object]


def normal(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(0))


def integers(below: int, *sizes: int) -> torch.Tensor:
    return torch.randint(below, sizes, generator=torch.Generator().manual_seed(0))


def cases() -> Iterator[tuple[str, Function, list[torch.Tensor]]]:
    """Name, function, inputs on the CPU."""
    for rows, columns in ((32, 32), (64, 128), (128, 1024), (1024, 2048)):
        x, size = normal(rows, columns), f"{rows}x{columns}"
        yield f"sort {size}", torch.sort, [x]
        yield f"topk {size}", lambda x: x.topk(8), [x]
        yield f"kthvalue {size}", lambda x: x.kthvalue(4), [x]
        yield f"median {size}", lambda x: x.median(-1), [x]
        yield f"mode {size}", torch.mode, [x.round()]
        yield f"cumsum of rows {size}", lambda x: x.cumsum(-1), [x]
        yield f"cumsum of columns {size}", lambda x: x.cumsum(0), [x]
        yield f"cumprod of rows {size}", lambda x: x.cumprod(-1), [x]
        yield f"logcumsumexp {size}", lambda x: x.logcumsumexp(-1), [x]
        yield f"softmax {size}", lambda x: x.softmax(-1), [x]
        yield f"argmax {size}", lambda x: x.argmax(-1), [x]
        yield f"rfft {size}", torch.fft.rfft, [x]
        yield f"fft {size}", torch.fft.fft, [x.to(torch.complex64)]
    for size in (64, 256, 512):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64, torch.complex64):
            factor = (normal(size, size) * 3).to(dtype)
            yield f"mm {size} {str(dtype).removeprefix('torch.')}", torch.mm, [factor, factor + 1]
    for batch, channels, size in ((2, 3, 32), (8, 16, 64)):
        image, grid = normal(batch, channels, size, size), normal(batch, size, size, 2).tanh()
        yield f"grid_sample {channels}x{size}", functools.partial(F.grid_sample, align_corners=False), [image, grid]
        yield f"max_pool2d {channels}x{size}", lambda x: F.max_pool2d(x, 2), [image]
        weight = normal(16, channels, 3, 3)
        yield f"conv2d {channels}x{size}", functools.partial(F.conv2d, padding=1), [image, weight]
    yield "conv1d", functools.partial(F.conv1d, padding=1), [normal(8, 64, 1024), normal(64, 64, 3)]
    yield "conv3d", functools.partial(F.conv3d, padding=1), [normal(2, 8, 16, 16, 16), normal(8, 8, 3, 3, 3)]
    for words, width, tokens in ((2048, 256, 1024), (50000, 256, 4096)):

        def gradient(g: torch.Tensor, i: torch.Tensor, words: int = words) -> torch.Tensor:
            return torch.ops.aten.embedding_dense_backward(g, i, words, -1, False)

        yield f"embedding backward {words}", gradient, [normal(tokens, width), integers(words, tokens)]


def shortest(function: Function, inputs: list[torch.Tensor], wait: Callable[[], None]) -> float:
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        result = function(*inputs)
        wait()
        times.append(time.perf_counter() - start)
        del result
    return min(times[WARMUP_CALLS:]) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    print(f"{'':28}{'eager':>10}{'StableHLO':>12}{'kernels':>10}{'gain':>8}{'kernels / eager':>18}")
    for name, function, inputs in cases():
        if words and not any(word in name for word in words):
            continue
        eager = shortest(function, inputs, lambda: None)
        times = []
        for wanted in (False, True):
            _XLAC.set_host_kernels_wanted(wanted)
            there = [x.to("xla") for x in inputs]
            torch_xla.sync(wait=True)
            times.append(shortest(function, there, lambda: torch_xla.sync(wait=True)))
        pure, kernels = times
        row = f"{eager:10.3f}{pure:12.3f}{kernels:10.3f}{pure / kernels:8.2f}{kernels / eager:18.2f}"
        print(f"{name:28}{row}", flush=True)


if __name__ == "__main__":
    main()
