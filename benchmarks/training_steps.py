"""Training steps on xla beside eager CPU PyTorch, in one process.

    ./dev bench                       every workload
    ./dev bench --only gpt --steps 30

For each workload: the first step (with compilation), then medians of a whole step and of its recording alone (what the
host spends before the device can start), the programs compiled, and operators that fell back.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

import torch_xla
import torch_xla.debug
import torch_xla.debug.metrics as metrics


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.in_projection = nn.Linear(width, 3 * width)
        self.out_projection = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.in_projection(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out_projection(mixed.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    """A causal language model: tokens [N, T] -> logits [N, T, vocabulary]."""

    def __init__(self, vocabulary: int = 2048, width: int = 256, layers: int = 4, heads: int = 8, length: int = 128):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.zeros(length, width))
        self.attention = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), Attention(width, heads)) for _ in range(layers)
        )
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(layers)
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        for attention, mlp in zip(self.attention, self.mlp, strict=True):
            x = x + attention(x)
            x = x + mlp(x)
        return self.head(x)


def convolutional() -> nn.Module:
    def stage(before: int, after: int) -> list[nn.Module]:
        return [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(*stage(1, 16), *stage(16, 32), nn.Flatten(), nn.Linear(32 * 49, 10))


def perceptron() -> nn.Module:
    layers = [layer for _ in range(16) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(64, 10))


@dataclass
class Workload:
    model: Callable[[], nn.Module]
    inputs: Callable[[], torch.Tensor]
    targets: Callable[[], torch.Tensor]
    optimizer: Callable[..., torch.optim.Optimizer]


WORKLOADS = {
    "mlp": Workload(perceptron, lambda: torch.randn(32, 64), lambda: torch.randint(10, (32,)), torch.optim.Adam),
    "cnn": Workload(
        convolutional, lambda: torch.randn(64, 1, 28, 28), lambda: torch.randint(10, (64,)), torch.optim.SGD
    ),
    "gpt": Workload(
        Decoder, lambda: torch.randint(2048, (4, 128)), lambda: torch.randint(2048, (4, 128)), torch.optim.AdamW
    ),
}


@dataclass
class Times:
    """Seconds; the loss after the last step tells whether both devices trained alike."""

    first: float
    step: float
    recording: float
    loss: float


def train(workload: Workload, device: str, steps: int) -> Times:
    torch.manual_seed(0)
    model = workload.model().to(device)
    inputs, targets = workload.inputs().to(device), workload.targets().to(device)
    optimizer = workload.optimizer(model.parameters(), lr=1e-3)
    steps_taken, recordings = [], []
    loss = torch.zeros(())
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        recordings.append(time.perf_counter() - start)
        if device != "cpu":
            torch_xla.sync(wait=True)
        steps_taken.append(time.perf_counter() - start)
    # The first steps compile, and fill PyTorch's own caches.
    return Times(steps_taken[0], statistics.median(steps_taken[3:]), statistics.median(recordings[3:]), loss.item())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", choices=WORKLOADS, help="one workload")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.steps < 4:
        parser.error("--steps must be at least 4: the first three are not counted")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print("workload   eager ms   xla ms  recording ms   first s  compiles      loss eager / xla")
    for name, workload in WORKLOADS.items():
        if arguments.only not in (None, name):
            continue
        eager = train(workload, "cpu", arguments.steps)
        compiled_before = len(torch_xla.debug.executables())
        xla = train(workload, "xla", arguments.steps)
        compiles = len(torch_xla.debug.executables()) - compiled_before
        print(
            f"{name:9}{eager.step * 1e3:10.2f}{xla.step * 1e3:9.2f}{xla.recording * 1e3:14.2f}{xla.first:10.2f}"
            f"{compiles:10}{eager.loss:12.5f} / {xla.loss:.5f}"
        )
    fallbacks = [name for name in metrics.counter_names() if name.startswith("aten::")]
    print("fallbacks:", ", ".join(fallbacks) or "none")


if __name__ == "__main__":
    main()
