"""Arguments that eager PyTorch refuses by their dtypes, sizes and numbers: the CPU's class and words, at the call."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import torch_xla

DTYPES = (torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)


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


# One argument is of dtype `t`, whatever the others are.
MIXED = {
    "index_put": lambda d, t: ones(d, 4).index_put((index(d, 0, 1),), ones(d, 2, dtype=t)),
    "index_put_": lambda d, t: ones(d, 4).index_put_((index(d, 0, 1),), ones(d, 2, dtype=t), accumulate=True),
    "setitem": lambda d, t: ones(d, 4).__setitem__(index(d, 0, 1), ones(d, 2, dtype=t)),
    "setitem mask": lambda d, t: ones(d, 4).__setitem__(index(d, 0, 1, 1, 0).bool(), ones(d, 2, dtype=t)),
    "put_": lambda d, t: ones(d, 4).put_(index(d, 0, 1), ones(d, 2, dtype=t)),
    "masked_scatter": lambda d, t: ones(d, 2).masked_scatter(ones(d, 2).bool(), ones(d, 2, dtype=t)),
    "index_add": lambda d, t: ones(d, 4).index_add(0, index(d, 0, 1), ones(d, 2, dtype=t)),
    "index_add_": lambda d, t: ones(d, 4).index_add_(0, index(d, 0, 1), ones(d, 2, dtype=t)),
    "index_copy_": lambda d, t: ones(d, 4).index_copy_(0, index(d, 0, 1), ones(d, 2, dtype=t)),
    "index_reduce_": lambda d, t: ones(d, 4).index_reduce_(0, index(d, 0, 1), ones(d, 2, dtype=t), "prod"),
    "scatter": lambda d, t: ones(d, 4).scatter(0, index(d, 0, 1), ones(d, 2, dtype=t)),
    "scatter_add_": lambda d, t: ones(d, 4).scatter_add_(0, index(d, 0, 1), ones(d, 2, dtype=t)),
    "add_": lambda d, t: ones(d, 4).add_(ones(d, 4, dtype=t)),
    "lerp": lambda d, t: ones(d, 4).lerp(ones(d, 4, dtype=t), 0.5),
    "cross": lambda d, t: torch.linalg.cross(ones(d, 3), ones(d, 3, dtype=t)),
    "dot": lambda d, t: torch.dot(ones(d, 3), ones(d, 3, dtype=t)),
    "mm": lambda d, t: torch.mm(ones(d, 4, 3), ones(d, 3, 2, dtype=t)),
    "bmm": lambda d, t: torch.bmm(ones(d, 2, 4, 3), ones(d, 2, 3, 2, dtype=t)),
    "matmul": lambda d, t: torch.matmul(ones(d, 2, 4, 3), ones(d, 3, 2, dtype=t)),
    "addmm": lambda d, t: torch.addmm(ones(d, 2, dtype=t), ones(d, 4, 3), ones(d, 3, 2)),
    "linear": lambda d, t: F.linear(ones(d, 2, 3), ones(d, 4, 3, dtype=t)),
    "linear bias": lambda d, t: F.linear(ones(d, 2, 3), ones(d, 4, 3), ones(d, 4, dtype=t)),
    "linear of volumes": lambda d, t: F.linear(ones(d, 2, 3, 3), ones(d, 4, 3, dtype=t), ones(d, 4)),
    "linear bias of volumes": lambda d, t: F.linear(ones(d, 2, 3, 3), ones(d, 4, 3), ones(d, 4, dtype=t)),
    "layer_norm": lambda d, t: F.layer_norm(ones(d, 2, 3, dtype=t), (3,), ones(d, 3), ones(d, 3)),
    "layer_norm weight": lambda d, t: F.layer_norm(ones(d, 2, 3), (3,), ones(d, 3, dtype=t)),
    "layer_norm bias": lambda d, t: F.layer_norm(ones(d, 2, 3), (3,), ones(d, 3), ones(d, 3, dtype=t)),
    "group_norm": lambda d, t: F.group_norm(ones(d, 2, 4, 3), 2, ones(d, 4, dtype=t), ones(d, 4, dtype=t)),
    "batch_norm": lambda d, t: F.batch_norm(ones(d, 2, 4), None, None, ones(d, 4, dtype=t), None, True),
    "batch_norm mean": lambda d, t: F.batch_norm(ones(d, 2, 4), ones(d, 4, dtype=t), ones(d, 4)),
    "rms_norm": lambda d, t: F.rms_norm(ones(d, 2, 3), (3,), ones(d, 3, dtype=t)),
    "grid_sample": lambda d, t: F.grid_sample(ones(d, 1, 2, 4, 4), ones(d, 1, 3, 3, 2, dtype=t)),
    "cross_entropy": lambda d, t: F.cross_entropy(ones(d, 2, 3), index(d, 0, 1, dtype=t)),
    "nll_loss": lambda d, t: F.nll_loss(ones(d, 2, 3, 1), index(d, 0, 1, dtype=t).view(2, 1)),
    "multi_margin_loss": lambda d, t: F.multi_margin_loss(ones(d, 2, 3), index(d, 0, 1, dtype=t)),
    "binary_cross_entropy": lambda d, t: F.binary_cross_entropy(ones(d, 2), ones(d, 2, dtype=t)),
    "embedding_bag weights": lambda d, t: F.embedding_bag(
        index(d, 0, 1), ones(d, 4, 3), index(d, 0), mode="sum", per_sample_weights=ones(d, 2, dtype=t)
    ),
    **{
        f"conv{n}d": lambda d, t, n=n: getattr(F, f"conv{n}d")(
            ones(d, 2, 3, *[5] * n), ones(d, 4, 3, *[3] * n, dtype=t)
        )
        for n in (1, 2, 3)
    },
    **{
        f"conv{n}d bias": lambda d, t, n=n: getattr(F, f"conv{n}d")(
            ones(d, 1, 1, *[1] * n), ones(d, 1, 1, *[1] * n), ones(d, 1, dtype=t)
        )
        for n in (1, 2, 3)
    },
    "conv_transpose2d": lambda d, t: F.conv_transpose2d(ones(d, 2, 3, 5, 5), ones(d, 3, 4, 3, 3, dtype=t)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MIXED)
def test_mixed_dtypes(name, dtype):
    if name == "embedding_bag weights" and dtype in (torch.int64, torch.int32, torch.uint8, torch.bool):
        pytest.skip("the CPU's kernel reads other memory than it was given")
    assert_same_outcome(lambda device: MIXED[name](device, dtype))


def test_most_mixtures_are_refused():
    refused = [name for name in MIXED if outcome(lambda d: MIXED[name](d, torch.complex64), "xla")]  # noqa: B023
    assert len(refused) > len(MIXED) * 0.8


INDEXED = {
    "index_select": lambda d, i: ones(d, 4).index_select(0, i),
    "index_select out of range": lambda d, i: ones(d, 1).index_select(0, i),
    "getitem": lambda d, i: ones(d, 4)[i],
    "gather": lambda d, i: ones(d, 4).gather(0, i),
    "take": lambda d, i: ones(d, 4).take(i),
    "index_add": lambda d, i: ones(d, 4).index_add(0, i, ones(d, 2)),
    "index_copy": lambda d, i: ones(d, 4).index_copy(0, i, ones(d, 2)),
    "index_fill": lambda d, i: ones(d, 4).index_fill(0, i, 1.0),
    "index_reduce": lambda d, i: ones(d, 4).index_reduce(0, i, ones(d, 2), "mean"),
    "scatter": lambda d, i: ones(d, 4).scatter(0, i, 1.0),
    "put": lambda d, i: ones(d, 4).put(i, ones(d, 2)),
    "embedding": lambda d, i: F.embedding(i, ones(d, 4, 3)),
    "one_hot": lambda d, i: F.one_hot(i, 3),
}


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str
)
@pytest.mark.parametrize("name", INDEXED)
def test_dtypes_of_indices(name, dtype):
    # A mask is read, and bytes are one.
    if name == "getitem" and dtype in (torch.bool, torch.uint8):
        pytest.skip("a mask")
    assert_same_outcome(lambda device: INDEXED[name](device, index(device, 0, 1, dtype=dtype)))


SINGLE = {
    "norm": torch.norm,
    "norm inf": lambda x: torch.norm(x, math.inf),
    "vector_norm": torch.linalg.vector_norm,
    "mean": torch.mean,
    "var": torch.var,
    "clamp": lambda x: x.clamp(1, 2),
    "clamp_": lambda x: x.clamp_(1, 2),
    "maximum": lambda x: torch.maximum(x, x),
    "add alpha": lambda x: torch.add(x, x, alpha=True),
    "sub alpha": lambda x: torch.sub(x, x, alpha=True),
    "add fraction": lambda x: torch.add(x, x, alpha=1.5),
    "add complex": lambda x: torch.add(x, x, alpha=1j),
    "addcmul complex": lambda x: torch.addcmul(x, x, x, value=1j),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "softmax": lambda x: torch.softmax(x, 0),
    "max_pool2d": lambda x: F.max_pool2d(x.view(1, 1, 2, 2), 2),
    "inv": lambda x: torch.linalg.inv(x.view(2, 2)),
    "det": lambda x: torch.linalg.det(x.view(2, 2)),
    "arange": lambda x: torch.arange(3, dtype=x.dtype, device=x.device),
    "randperm": lambda x: torch.randperm(3, dtype=x.dtype, device=x.device),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("name", SINGLE)
def test_dtypes_of_one_tensor(name, dtype):
    expected = outcome(lambda d: SINGLE[name](ones(d, 4, dtype=dtype)), "cpu")
    if name in ("inv",) and expected and expected[0] is torch.linalg.LinAlgError:
        pytest.skip("the values")
    assert_same_outcome(lambda d: SINGLE[name](ones(d, 4, dtype=dtype)))


NUMBERS = {
    "smooth_l1_loss": lambda d, x: F.smooth_l1_loss(ones(d, 2), ones(d, 2), beta=x),
    "huber_loss": lambda d, x: F.huber_loss(ones(d, 2), ones(d, 2), delta=x),
    "normal": lambda d, x: torch.normal(0.0, x, (3,), device=d),
    "normal mean": lambda d, x: torch.normal(ones(d, 3), x),
    "normal_": lambda d, x: ones(d, 3).normal_(0, x),
    "native_dropout": lambda d, x: torch.native_dropout(ones(d, 3), x, True),
    "celu": lambda d, x: F.celu(ones(d, 3), x),
    "softshrink": lambda d, x: F.softshrink(ones(d, 3), x),
    "renorm": lambda d, x: torch.renorm(ones(d, 3, 3), 2.0, 0, x),
    "histc": lambda d, x: torch.histc(ones(d, 3), 3, x, x),
    "exponential_": lambda d, x: ones(d, 3).exponential_(x),
    "bernoulli_": lambda d, x: ones(d, 3).bernoulli_(x),
}


@pytest.mark.parametrize("value", [-1.0, 0.0, math.nan, math.inf])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name, value):
    outcome(lambda device: NUMBERS[name](device, 0.5), "xla")  # remembered: the number is no part of it
    assert_same_outcome(lambda device: NUMBERS[name](device, value))


def conv_transpose(device, **arguments):
    return F.conv_transpose2d(ones(device, 1, 2, 4, 4), ones(device, 2, 2, 3, 3), **arguments)


SIZES = {
    "conv_transpose stride": lambda d: conv_transpose(d, stride=0),
    "conv_transpose output padding": lambda d: conv_transpose(d, output_padding=1),
    "conv_transpose negative output padding": lambda d: conv_transpose(d, output_padding=-1),
    "conv_transpose groups": lambda d: conv_transpose(d, groups=0),
    "conv_transpose many groups": lambda d: conv_transpose(d, groups=9),
    "conv stride": lambda d: F.conv2d(ones(d, 1, 2, 4, 4), ones(d, 2, 2, 3, 3), stride=0),
    "unfold of nothing": lambda d: F.unfold(ones(d, 0, 1, 5, 5), 2, padding=-1),
    **{
        f"interpolate {mode}": lambda d, mode=mode, n=n: F.interpolate(ones(d, 1, 1, *[4] * n), size=[0] * n, mode=mode)
        for mode, n in (("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("nearest", 2))
    },
    "index_reduce": lambda d: ones(d, 5, 5).index_reduce(0, index(d, *[0] * 9), ones(d, 5, 5), "mean"),
    "inv": lambda d: torch.linalg.inv(ones(d, 2, 3)),
    "inv of a vector": lambda d: torch.linalg.inv(ones(d, 3)),
    "inv_ex": lambda d: torch.linalg.inv_ex(ones(d, 2, 3)),
    "det": lambda d: torch.linalg.det(ones(d, 2, 3)),
    "slogdet": lambda d: torch.linalg.slogdet(ones(d, 2, 3)),
    "solve": lambda d: torch.linalg.solve(ones(d, 2, 3), ones(d, 2)),
    "norm of a dimension": lambda d: ones(d, 3).norm(2, 5),
    "one_hot": lambda d: F.one_hot(index(d, 0, 3), 2),
    "one_hot counted": lambda d: F.one_hot(index(d, 0, -1)),
    "one_hot negative": lambda d: F.one_hot(index(d, 0, -1), 2),
    "one_hot of no class": lambda d: F.one_hot(index(d, 0, 1), 0),
    "one_hot of nothing": lambda d: F.one_hot(index(d)),
    "mask of another shape": lambda d: ones(d, 5, 5).index_put((index(d, 1).bool(),), ones(d, 1, 5)),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    assert_same_outcome(SIZES[name])


EMPTY = {
    "norm inf": lambda x: x.norm(math.inf),
    "norm -inf": lambda x: x.norm(-math.inf),
    "norm -1": lambda x: x.norm(-1),
    "norm inf of a dimension": lambda x: x.norm(math.inf, 0),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, math.inf, -1),
    "foreach_norm": lambda x: torch._foreach_norm([x], math.inf),
    "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin(-1),
    "aminmax": lambda x: x.aminmax(),
    "max": lambda x: x.max(-1),
    "argmin": lambda x: x.argmin(),
    "median": lambda x: x.median(0),
    "mode": lambda x: x.mode(-1),
    "kthvalue": lambda x: x.kthvalue(1, 0),
    "cummax": lambda x: x.cummax(0),
    "topk": lambda x: x.topk(1, 0),
}


@pytest.mark.parametrize("sizes", [(0,), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("name", EMPTY)
def test_tensors_of_no_elements(name, sizes):
    if name == "norm inf of a dimension" and len(sizes) == 1:
        pytest.skip("torch.norm names that dimension where it means all of them, too: the words differ")
    assert_same_outcome(lambda device: EMPTY[name](ones(device, *sizes)))


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
