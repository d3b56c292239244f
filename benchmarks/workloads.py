"""Five training steps in plain PyTorch, from small and bound by the host to large and bound by arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

SEED = 0


def perceptron() -> nn.Module:
    """16 small layers: what a step costs beside arithmetic."""
    layers = [layer for _ in range(16) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(*layers)


class MnistNet(nn.Module):
    """Two convolutions with pooling and batch norm, then two linear layers; log-probabilities of 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 10, 5), nn.BatchNorm2d(10)
        self.conv2, self.norm2 = nn.Conv2d(10, 20, 5), nn.BatchNorm2d(20)
        self.hidden, self.out = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.norm1(F.relu(F.max_pool2d(self.conv1(images), 2)))
        x = self.norm2(F.relu(F.max_pool2d(self.conv2(x), 2)))
        return F.log_softmax(self.out(F.relu(self.hidden(x.flatten(1)))), dim=1)


def wide_feed_forward() -> nn.Module:
    return nn.Sequential(nn.Linear(512, 2048), nn.GELU(approximate="tanh"), nn.LayerNorm(2048), nn.Linear(2048, 512))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class DecoderBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A causal language model: tokens [N, T] -> logits [N, T, vocabulary]."""

    def __init__(self, vocabulary: int = 2048, width: int = 256, blocks: int = 6, heads: int = 8, length: int = 128):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(DecoderBlock(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.norm2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


RESNET_STAGES = [(32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1)]


class ResNet18(nn.Module):
    """Eight residual blocks for images of 32x32, at half the usual width."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32)
        before = [32] + [width for width, _ in RESNET_STAGES]
        self.blocks = nn.Sequential(*[Residual(i, o, s) for i, (o, s) in zip(before, RESNET_STAGES, strict=False)])
        self.head = nn.Linear(256, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(F.relu(self.norm(self.stem(images)))).mean((2, 3)))


def token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@dataclass
class Workload:
    model: Callable[[], nn.Module]
    inputs: Callable[[torch.Generator], torch.Tensor]
    targets: Callable[[torch.Generator], torch.Tensor]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: str


def normal(*sizes: int) -> Callable[[torch.Generator], torch.Tensor]:
    return lambda generator: torch.randn(*sizes, generator=generator)


def integers(below: int, *sizes: int) -> Callable[[torch.Generator], torch.Tensor]:
    return lambda generator: torch.randint(below, sizes, generator=generator)


WORKLOADS = {
    "mlp16": Workload(perceptron, normal(32, 64), normal(32, 64), F.mse_loss, "adam"),
    "mnist_cnn": Workload(MnistNet, normal(128, 1, 28, 28), integers(10, 128), F.nll_loss, "sgd"),
    "ffn_wide": Workload(wide_feed_forward, normal(1024, 512), normal(1024, 512), F.mse_loss, "sgd"),
    "gpt": Workload(Gpt, integers(2048, 8, 128), integers(2048, 8, 128), token_loss, "adamw"),
    "resnet18": Workload(ResNet18, normal(32, 3, 32, 32), integers(10, 32), F.cross_entropy, "sgd"),
}

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
}


def build(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Model, inputs and targets on the CPU; the same numbers in every process."""
    workload = WORKLOADS[name]
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED + 1)
    return workload.model(), workload.inputs(generator), workload.targets(generator)
