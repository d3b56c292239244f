"""Values that eager PyTorch refuses: the CPU's class and words."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import torch_xla


def ones(device: str, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(sizes, dtype=dtype).to(device)


def index(device: str, *values: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values).to(dtype).to(device)


def outcome(case: Callable[[str], object], device: str) -> tuple[type, str] | None:
    """What it throws at the call: nothing is read."""
    try:
        case(device)
    except Exception as error:
        return type(error), str(error).split("\n")[0].replace("xla:0", "cpu")
    return None


def assert_same_outcome(case: Callable[[str], object]) -> None:
    expected = outcome(case, "cpu")
    for _ in range(2):  # nothing that was refused is remembered as taken
        assert outcome(case, "xla") == expected


BAGS = {
    "index": ((0, 9, 2), (0, 1), {"mode": "max"}),
    "negative index": ((0, -1, 2), (0, 1), {"mode": "max"}),
    "index beside a padding": ((0, 9, 2), (0, 1), {"padding_idx": 2}),
    "first offset": ((0, 1, 2), (1, 2), {}),
    "last offset": ((0, 1, 2), (0, 4), {}),
    "included last offset": ((0, 1, 2), (0, 1, 4), {"include_last_offset": True}),
    "offset of nothing": ((), (0, 1), {}),
    "taken": ((0, 1, 2), (0, 3), {}),
}


@pytest.mark.parametrize("name", BAGS)
def test_bags(name):
    indices, offsets, arguments = BAGS[name]
    assert_same_outcome(lambda d: F.embedding_bag(index(d, *indices), ones(d, 5, 4), index(d, *offsets), **arguments))


def test_the_class_for_a_sum_of_bags():
    """Its words tell how many threads the CPU's kernel has."""
    for device in ("cpu", "xla"):
        with pytest.raises(RuntimeError):
            F.embedding_bag(index(device, 0, 9), ones(device, 5, 4), index(device, 0), mode="sum")


def set_masked(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    x[index(x.device, 0, 1, 1, 1, 0).bool()] = values
    return x


MASKED = {
    "setitem": lambda d, n: set_masked(ones(d, 5), ones(d, n)),
    "index_put": lambda d, n: ones(d, 5).index_put((index(d, 0, 1, 1, 1, 0).bool(),), ones(d, n), accumulate=True),
    "rows": lambda d, n: ones(d, 5, 2).index_put((index(d, 0, 1, 1, 1, 0).bool(),), ones(d, n, 2)),
    "columns": lambda d, n: ones(d, 2, 5).index_put((None, index(d, 0, 1, 1, 1, 0).bool()), ones(d, 2, n)),
    "masked_scatter": lambda d, n: ones(d, 5).masked_scatter(index(d, 0, 1, 1, 1, 0).bool(), ones(d, n)),
    "masked_scatter_": lambda d, n: ones(d, 5).masked_scatter_(index(d, 0, 1, 1, 1, 0).bool(), ones(d, n)),
}


def read_outcome(case, device):
    def read(device):
        case(device)
        torch_xla.sync(wait=True)

    found = outcome(read, device)
    return found and (found[0], found[1].split(" (in program")[0])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("name", MASKED)
def test_as_many_values_as_a_mask_selects(name, count):
    def case(device):
        kept.append(MASKED[name](device, count))

    kept = []  # a result that nobody holds is not computed
    assert read_outcome(case, "xla") == read_outcome(case, "cpu")


@pytest.mark.parametrize("deviation", [-1.0, math.nan])
def test_standard_deviations(deviation):
    kept = []
    for normal in (torch.normal, lambda mean, std: torch.normal(0.0, std)):
        case = lambda d: kept.append(normal(ones(d, 3), ones(d, 3) * deviation))  # noqa: B023, E731
        assert read_outcome(case, "xla") == read_outcome(case, "cpu")
