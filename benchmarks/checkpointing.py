"""What gradient checkpointing saves and costs: a GPT training step, plain and with each block checkpointed.

    python benchmarks/checkpointing.py [--steps 10] [--batch 8]
    PJRT_PLUGIN_LIBRARY_PATH=/path/to/plugin.so python benchmarks/checkpointing.py      another plugin

Prints the temporaries of the compiled step, the median step time over interleaved rounds, and the largest relative
difference of a gradient.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_xla
import torch_xla.debug

VOCABULARY, WIDTH, LAYERS, HEADS, LENGTH = 2048, 256, 6, 8, 128


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.inputs(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class Gpt(nn.Module):
    """Tokens [B, T] -> logits [B, T, vocabulary]. `call` runs each block."""

    def __init__(self, call: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.call = call
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = self.call(block, x)
        return self.head(self.norm(x))


CALLS: dict[str, Callable[[nn.Module, torch.Tensor], torch.Tensor]] = {
    "plain": lambda block, x: block(x),
    "non-reentrant": functools.partial(checkpoint, use_reentrant=False),
    "reentrant": functools.partial(checkpoint, use_reentrant=True),
}


@dataclass
class Trainer:
    """One model, its optimizer and its fixed batch."""

    name: str
    batch: int

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        self.model = Gpt(CALLS[self.name]).to("xla")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.tokens = torch.randint(0, VOCABULARY, (self.batch, LENGTH)).to("xla")
        self.targets = torch.randint(0, VOCABULARY, (self.batch, LENGTH)).to("xla")
        torch_xla.sync(wait=True)

    def backward(self) -> None:
        self.optimizer.zero_grad()
        logits = self.model(self.tokens)
        F.cross_entropy(logits.flatten(0, 1), self.targets.flatten()).backward()

    def step(self) -> float:
        """Seconds of one training step."""
        start = time.perf_counter()
        self.backward()
        self.optimizer.step()
        torch_xla.sync(wait=True)
        return time.perf_counter() - start

    def gradients(self) -> list[torch.Tensor]:
        self.backward()
        torch_xla.sync(wait=True)
        return [parameter.grad.cpu() for parameter in self.model.parameters()]


def step_temporaries(trainer: Trainer) -> int:
    """Bytes of temporaries of the program that a step runs."""
    before = [program["runs"] for program in torch_xla.debug.executables()]
    trainer.step()
    ran = [
        program for program, runs in zip(torch_xla.debug.executables(), before, strict=True) if program["runs"] > runs
    ]
    return max(program["temp_bytes"] for program in ran)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()

    trainers = {name: Trainer(name, options.batch) for name in CALLS}
    gradients = {name: trainer.gradients() for name, trainer in trainers.items()}
    temporaries = {}
    for name, trainer in trainers.items():
        # The first step makes the optimizer's state; the programs of the next ones are the same.
        for _ in range(3):
            trainer.step()
        temporaries[name] = step_temporaries(trainer)
    # Interleaved, so that a busy machine disturbs all alike.
    times: dict[str, list[float]] = {name: [] for name in CALLS}
    for _ in range(options.steps):
        for name, trainer in trainers.items():
            times[name].append(trainer.step())

    print(torch_xla._XLAC.plugin_description().split("|")[1])
    print(f"{'':14s} {'temporaries':>12s} {'':7s} {'step':>9s} {'':7s} {'gradients differ by':>20s}")
    for name in CALLS:
        milliseconds, plain = (statistics.median(times[key]) * 1e3 for key in (name, "plain"))
        difference = max(
            float((a - b).abs().max() / b.abs().max()) for a, b in zip(gradients[name], gradients["plain"], strict=True)
        )
        print(
            f"{name:14s} {temporaries[name] / 1e6:9.1f} MB {temporaries[name] / temporaries['plain']:6.2f}x"
            f" {milliseconds:6.0f} ms {milliseconds / plain:6.2f}x {difference:20.1e}"
        )


if __name__ == "__main__":
    main()
