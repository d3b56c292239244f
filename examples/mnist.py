"""Trains a small convolutional network on handwritten digits, on xla or any other PyTorch device.

    python examples/mnist.py                          the digits that scikit-learn ships
    python examples/mnist.py --data DIR --plot m.png  MNIST's IDX files (gzipped or not), or Fashion-MNIST's

DIR may hold the training and the test files, or one pair of files, of which --hold-out images are then kept for the
test.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

Pair = tuple[np.ndarray, np.ndarray]  # images [N, H, W] and labels [N]


@dataclass
class Data:
    """Normalised images [N, 1, H, W] float32 and labels [N] int64, on the CPU."""

    name: str
    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor


def read_idx(path: Path) -> np.ndarray:
    """The array in an IDX file of unsigned bytes."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        content = file.read()
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: not an IDX file of unsigned bytes")
    rank = content[3]
    dims = np.frombuffer(content, ">u4", rank, offset=4)
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * rank)
    if values.size != int(dims.prod()):
        raise SystemExit(f"{path}: holds {values.size} values, its header says {list(map(int, dims))}")
    return values.reshape(dims)


def find_pair(folder: Path, part: str) -> Pair | None:
    """The pair "train" or "t10k", when the folder has both of its files."""
    paths = [sorted(folder.glob(f"{part}*{kind}*idx*")) for kind in ("images", "labels")]
    if not all(paths):
        return None
    images, labels = (read_idx(found[0]) for found in paths)
    if len(images) != len(labels):
        raise SystemExit(f"{folder}: {len(images)} images but {len(labels)} labels in {part}")
    return images, labels


def find_pairs(folder: Path) -> list[Pair]:
    """What the folder has of "train" and "t10k", else what the first folder inside it has that has any."""
    for candidate in [folder, *sorted(p for p in folder.rglob("*") if p.is_dir())]:
        pairs = [pair for pair in (find_pair(candidate, "train"), find_pair(candidate, "t10k")) if pair]
        if pairs:
            return pairs
    raise SystemExit(f"{folder}: no train-images-idx3-ubyte or t10k-images-idx3-ubyte, gzipped or not")


def export(folder: Path) -> None:
    """Writes scikit-learn's digits as IDX files, for examples/cpp/mnist.cpp."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    folder.mkdir(parents=True, exist_ok=True)
    for kind, values in (("images-idx3", digits.images), ("labels-idx1", digits.target)):
        header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
        (folder / f"t10k-{kind}-ubyte").write_bytes(header + values.astype(np.uint8).tobytes())


def load(folder: Path | None, hold_out: int | None) -> Data:
    if folder is None:
        from sklearn.datasets import load_digits

        digits = load_digits()
        train, test = split((digits.images.astype(np.float32), digits.target), hold_out)
        name = "handwritten digits that scikit-learn ships (8 x 8 pixels; not MNIST)"
    else:
        pairs = find_pairs(folder)
        train, test = pairs if len(pairs) == 2 else split(pairs[0], hold_out)
        name = f"IDX files in {folder}"
    mean, std = train[0].mean(dtype=np.float64), train[0].std(dtype=np.float64)
    tensors = []
    for images, labels in (train, test):
        tensors.append(torch.from_numpy((images - mean) / std).float().unsqueeze(1))
        tensors.append(torch.from_numpy(labels.astype(np.int64)))
    return Data(name, *tensors)


def split(pair: Pair, hold_out: int | None) -> tuple[Pair, Pair]:
    """Keeps `hold_out` images (a fifth when None, at most 1,500), drawn by a fixed seed, for the test."""
    images, labels = pair
    hold_out = hold_out or min(1500, len(images) // 5)
    order = np.random.default_rng(0).permutation(len(images))
    train, test = order[hold_out:], order[:hold_out]
    return (images[train], labels[train]), (images[test], labels[test])


class Net(nn.Module):
    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(32 * (height // 4) * (width // 4), 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """images [N, 1, H, W] -> logits [N, 10]"""
        return self.classifier(self.features(images))


def train_batches(data: Data, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Shuffled batches; the rest that fills no batch is left out this time, so that every batch has one shape."""
    order = torch.randperm(len(data.train_labels))
    for start in range(0, len(order) - size + 1, size):
        rows = order[start : start + size]
        yield data.train_images[rows], data.train_labels[rows]


def test_batches(data: Data, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """All test images; the last batch is filled up with images of label -1, which no answer equals."""
    for start in range(0, len(data.test_labels), size):
        images, labels = data.test_images[start : start + size], data.test_labels[start : start + size]
        missing = size - len(labels)
        yield F.pad(images, (0, 0) * 3 + (0, missing)), F.pad(labels, (0, missing), value=-1)


class Trainer:
    def __init__(self, data: Data, device: torch.device, epochs: int, batch_size: int, learning_rate: float) -> None:
        self.data, self.device, self.batch_size = data, device, batch_size
        self.model = Net(*data.train_images.shape[2:]).to(device)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4
        )
        self.steps = len(data.train_labels) // batch_size
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, learning_rate, total_steps=epochs * self.steps, cycle_momentum=False
        )

    def sync(self) -> None:
        """Cuts the recorded step, which xla then runs while the next one is recorded; eager devices need nothing."""
        if self.device.type == "xla":
            import torch_xla

            torch_xla.sync()

    def train_epoch(self, title: str) -> list[float]:
        """One pass over the training images; the loss of each step."""
        self.model.train()
        losses: list[torch.Tensor] = []
        with tqdm(total=self.steps * self.batch_size, desc=title, unit=" images", unit_scale=True, leave=False) as bar:
            for images, labels in train_batches(self.data, self.batch_size):
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(images.to(self.device)), labels.to(self.device))
                loss.backward()
                self.optimizer.step()
                self.schedule.step()
                self.sync()
                losses.append(loss.detach())
                bar.update(self.batch_size)
                if len(losses) % 10 == 0:
                    # An older loss has been computed already: reading it does not hold up this step.
                    bar.set_postfix(loss=f"{losses[-5].item():.4f}")
            return [loss.item() for loss in losses]

    def test(self) -> float:
        """Accuracy on the test images, in percent."""
        self.model.eval()
        correct = []
        with torch.no_grad():
            for images, labels in test_batches(self.data, self.batch_size):
                answers = self.model(images.to(self.device)).argmax(1)
                correct.append((answers == labels.to(self.device)).sum())
                self.sync()
        return 100 * sum(count.item() for count in correct) / len(self.data.test_labels)


def plot(losses: list[float], accuracies: list[float], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    left.plot(losses, linewidth=1)
    left.set(xlabel="step", ylabel="training loss", yscale="log")
    right.plot(range(1, len(accuracies) + 1), accuracies, marker="o")
    right.set(xlabel="epoch", ylabel="test accuracy, %")
    figure.tight_layout()
    figure.savefig(path)


def print_statistics() -> None:
    import torch_xla.debug
    import torch_xla.debug.metrics as metrics

    programs = torch_xla.debug.executables()
    seconds = sum(program["compile_seconds"] for program in programs)
    print(f"compiles: {len(programs)} ({seconds:.1f} s), runs: {sum(program['runs'] for program in programs)}")
    fallbacks = [f"{name} {metrics.counter_value(name)}" for name in metrics.executed_fallback_ops()]
    print("fallbacks:", ", ".join(fallbacks) or "none")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of IDX files (default: scikit-learn's digits)")
    parser.add_argument(
        "--hold-out", type=int, metavar="N", help="images kept for the test where DIR has one pair of files"
    )
    parser.add_argument("--epochs", type=int, help="default: 6, or 20 for data of fewer than 5,000 images")
    parser.add_argument("--batch-size", type=int, help="default: 64, or 32 for data of fewer than 5,000 images")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="highest rate of the one-cycle schedule")
    parser.add_argument("--device", default="xla")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, metavar="PNG", help="write the curves of loss and accuracy here")
    parser.add_argument("--export", type=Path, metavar="DIR", help="only write the digits to DIR as IDX files")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    if arguments.export:
        export(arguments.export)
        return
    data = load(arguments.data, arguments.hold_out)
    print(
        f"data: {data.name}: {len(data.train_labels):,} images to train, {len(data.test_labels):,} to test", flush=True
    )
    small = len(data.train_labels) < 5000
    epochs = arguments.epochs or (20 if small else 6)
    batch_size = arguments.batch_size or (32 if small else 64)

    torch.manual_seed(arguments.seed)
    trainer = Trainer(data, torch.device(arguments.device), epochs, batch_size, arguments.learning_rate)
    losses: list[float] = []
    accuracies: list[float] = []
    for epoch in range(1, epochs + 1):
        start = time.perf_counter()
        losses += trainer.train_epoch(f"epoch {epoch}/{epochs}")
        seconds = time.perf_counter() - start
        accuracies.append(trainer.test())
        loss = sum(losses[-trainer.steps :]) / trainer.steps
        rate = trainer.steps * batch_size / seconds
        print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {accuracies[-1]:.2f} %, {rate:,.0f} images/s", flush=True)

    if arguments.plot:
        plot(losses, accuracies, arguments.plot)
        print(f"curves: {arguments.plot}")
    if trainer.device.type == "xla":
        print_statistics()
    print(f"final test accuracy: {accuracies[-1]:.2f} %")


if __name__ == "__main__":
    main()
