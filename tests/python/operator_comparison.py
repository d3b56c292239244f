"""Runs one OpInfo of PyTorch's test suite on the CPU and on xla, in every variant, and lists what differs.

Everything is recorded first and computed by one program; then results are compared. Where they differ by more than
PyTorch's tolerance, the same call in float64 is the judge: a result that is as near to that as the CPU's is counted
apart, and is no difference.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

import torch_xla

DTYPES = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool, torch.complex64,
)  # fmt: skip

HALF_DTYPES = (torch.float16, torch.bfloat16)

DEVICES = ("xla", "cpu")


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def first_dtype(op: OpInfo) -> torch.dtype | None:
    """The dtype in which the quick set runs an operator."""
    return next((dtype for dtype in DTYPES if dtype in op.dtypes), None)


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def spread(count: int, most: int, name: str) -> list[int]:
    """At most `most` of the indices below `count`: the first, the last, and others drawn by `name`."""
    if count <= most:
        return list(range(count))
    ends = [0, count - 1][:most]
    drawn = random.Random(zlib.crc32(name.encode())).sample(range(1, count - 1), most - len(ends))
    return sorted([*ends, *drawn])


def seed(text: str) -> None:
    number = zlib.crc32(text.encode())
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def is_whole_storage(x: torch.Tensor) -> bool:
    return x.layout != torch.strided or (x.is_contiguous() and x.untyped_storage().nbytes() == x.numel() * x.itemsize)


def whole_storage(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())


def strided_on_xla(x: torch.Tensor, storages: dict[int, torch.Tensor]) -> torch.Tensor:
    """`x` on xla with its strides, offset, and the rest of its storage, which is moved once for all its tensors."""
    if x.is_conj():
        return strided_on_xla(x.conj(), storages).conj()
    if x.is_neg():
        return torch._neg_view(strided_on_xla(torch._neg_view(x), storages))
    if x.device.type != "cpu":
        return x
    if x.layout != torch.strided:
        return x.detach().to("xla")
    key = x.untyped_storage()._cdata
    if key not in storages:
        storages[key] = x.detach().to("xla") if is_whole_storage(x) else whole_storage(x).to("xla")
    base = storages[key]
    if base.dtype != x.dtype:
        base = base.view(-1).view(x.dtype)
    return base.as_strided(x.shape, x.stride(), x.storage_offset())


def moved(tree: Any) -> Any:
    """The same arguments with tensors on xla, and xla where they name the device. Tensors of one storage stay so."""
    storages: dict[int, torch.Tensor] = {}
    tensors: dict[int, torch.Tensor] = {}

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if id(leaf) not in tensors:
                tensors[id(leaf)] = strided_on_xla(leaf, storages).detach().requires_grad_(leaf.requires_grad)
            return tensors[id(leaf)]
        return "xla" if leaf == "cpu" or (isinstance(leaf, torch.device) and leaf.type == "cpu") else leaf

    return pytree.tree_map(move, tree)


def copied(tree: Any) -> Any:
    """Leaves of their own, with the strides of the originals."""

    def copy(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if is_whole_storage(x) or x.is_conj() or x.is_neg():
            return x.detach().clone().requires_grad_(x.requires_grad)
        view = whole_storage(x).clone().as_strided(x.shape, x.stride(), x.storage_offset())
        return view.requires_grad_(x.requires_grad)

    return pytree.tree_map(copy, tree)


def with_reversed_strides(x: Any) -> Any:
    """The same elements, stored in the order of the dimensions from last to first."""
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.dim() < 2:
        return x
    order = tuple(reversed(range(x.dim())))
    return x.detach().permute(order).contiguous().permute(order)


def on_default_device(device: str, sample: SampleInput) -> contextlib.AbstractContextManager[Any]:
    """Makes `device` that of factories whose arguments name none."""
    is_named = "device" in sample.kwargs or tensors_of((sample.input, sample.args, sample.kwargs))
    return contextlib.nullcontext() if is_named else torch.device(device)


def in_double(tree: Any) -> Any:
    """The same arguments, with floating-point and complex numbers of 64 bits each. One tensor given twice stays one."""
    wider = {torch.float32: torch.float64, torch.float16: torch.float64, torch.bfloat16: torch.float64}
    wider[torch.complex64] = torch.complex128
    made: dict[int, torch.Tensor] = {}

    def widen(leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return wider.get(leaf, leaf)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in made:
            x = leaf.detach().clone()
            made[id(leaf)] = x.to(wider.get(x.dtype, x.dtype)).requires_grad_(leaf.requires_grad)
        return made[id(leaf)]

    return pytree.tree_map(widen, tree)


def largest_error(x: torch.Tensor, exact: torch.Tensor) -> float:
    """Infinite where one is NaN or infinite and the other is not the same."""
    x = x.to(exact.dtype)
    error = (x - exact).abs()
    is_same = (x == exact) | (x.isnan() & exact.isnan())
    return torch.where(is_same, 0.0, error.nan_to_num(nan=torch.inf)).max().item()


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


def in_words(error: Exception | None) -> str:
    """Class and first line, the device's name apart."""
    return f"{type(error).__name__}: {first_line(error)}".replace("xla:0", "cpu") if error else "no error"


@dataclasses.dataclass
class Outcome:
    """What a call returned or raised."""

    value: Any = None
    error: Exception | None = None


def outcome(function: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(value=function())
    except Exception as error:
        return Outcome(error=error)


@dataclasses.dataclass
class Difference:
    kind: str  # value, stride, error, inplace, out, warning, method, gradient, gradgrad
    text: str

    @property
    def where(self) -> str:
        return self.text.split(":", 1)[0]


@dataclasses.dataclass
class Pair:
    kind: str
    where: str
    actual: Any
    expected: Any
    exact: Callable[[], Any] | None = None  # the same in float64


@dataclasses.dataclass(frozen=True)
class Extent:
    """How many samples run at most, and how many of those in all variants, with gradients, with second gradients."""

    samples: int
    variants: int
    gradients: int
    second_gradients: int


# More make XLA's time to compile a program grow faster than the program.
SAMPLES_A_PROGRAM = 64


class Comparison:
    def __init__(self, op: OpInfo, dtype: torch.dtype, compare_values: bool = True) -> None:
        self.op, self.dtype, self.compare_values = op, dtype, compare_values
        self.pairs: list[Pair] = []
        self.differences: list[Difference] = []
        self.cases = 0
        self.as_near: set[str] = set()  # where results differ from the CPU's, but not by being farther from float64's
        self.kinds: set[str] = set()
        self.samples = self.all_samples = 0
        self.override = self.tolerance_override()

    # --- recording -----------------------------------------------------------------------------------------------

    def run(self, extent: Extent) -> list[Difference]:
        has_gradients = self.dtype.is_floating_point or self.dtype.is_complex
        differentiable = (
            self.compare_values
            and has_gradients
            and self.op.supports_autograd
            and self.dtype in self.op.backward_dtypes
        )
        name = f"{full_name(self.op)} {dtype_name(self.dtype)}"
        seed(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = list(self.op.sample_inputs("cpu", self.dtype, requires_grad=differentiable))
            chosen = spread(len(samples), extent.samples, name)
            self.samples, self.all_samples = len(chosen), len(samples)
            varied, once, twice = (
                {chosen[i] for i in spread(len(chosen), most, name)}
                for most in (extent.variants, extent.gradients, extent.second_gradients)
            )
            for position, i in enumerate(chosen):
                sample = SampleInput(samples[i].input, args=samples[i].args, kwargs=samples[i].kwargs)
                self.compare_call(f"sample {i}", sample, differentiable and i in once, i in twice)
                if i in varied:
                    self.compare_strided(f"sample {i}, strided", sample)
                    self.compare_transposed(f"sample {i}, transposed", sample)
                    self.compare_inplace(f"sample {i}, in place", sample)
                    self.compare_method(f"sample {i}, method", sample)
                    self.compare_out(f"sample {i}, out=", sample, is_first=i == chosen[0])
                if position % SAMPLES_A_PROGRAM == SAMPLES_A_PROGRAM - 1:
                    self.compare_pairs()
            self.compare_pairs()
        return self.differences

    def compare_pairs(self) -> None:
        torch_xla.sync()
        for pair in self.pairs:
            self.compare_pair(pair)
        self.pairs.clear()

    def call(
        self, function: Callable[..., Any], sample: SampleInput, device: str, detach: bool = True
    ) -> Callable[[], Any]:
        def run() -> Any:
            seed("call")
            with torch.set_grad_enabled(not detach), on_default_device(device, sample):
                return function(sample.input, *sample.args, **sample.kwargs)

        return run

    def outcomes(
        self, function: Callable[..., Any], actual: SampleInput, expected: SampleInput, detach: bool = True
    ) -> list[Outcome]:
        pairs = zip((actual, expected), DEVICES, strict=True)
        return [outcome(self.call(function, sample, device, detach)) for sample, device in pairs]

    def on_both(self, sample: SampleInput) -> tuple[SampleInput, SampleInput]:
        trees = (sample.input, sample.args, sample.kwargs)
        mine, theirs = copied(trees), moved(trees)
        return (SampleInput(x[0], args=x[1], kwargs=x[2]) for x in (theirs, mine))

    def exactly(self, function: Callable[..., Any], sample: SampleInput) -> Callable[[], Any]:
        def run() -> Any:
            trees = in_double((sample.input, sample.args, sample.kwargs))
            return self.call(function, SampleInput(trees[0], args=trees[1], kwargs=trees[2]), "cpu")()

        return run

    def add(
        self, kind: str, where: str, actual: Outcome, expected: Outcome, exact: Callable[[], Any] | None = None
    ) -> bool:
        """Notes a pair of outcomes; true when both have values."""
        self.cases += 1
        self.kinds.add(kind)
        if expected.error is None and actual.error is None:
            self.pairs.append(Pair(kind, where, actual.value, expected.value, exact))
            return True
        words = [in_words(x.error) for x in (actual, expected)]
        if (actual.error is None) != (expected.error is None):
            # The CPU's refusals are of the error kind; an xla that refuses what the CPU takes fails the variant.
            is_mine = expected.error is None
            self.differences.append(
                Difference(kind if is_mine else "error", f"{where}: xla: {words[0]}; CPU: {words[1]}")
            )
        elif type(actual.error) is not type(expected.error) or words[0] != words[1]:
            self.differences.append(Difference("error", f"{where}: xla: {words[0]}; CPU: {words[1]}"))
        return False

    def compare_call(self, where: str, sample: SampleInput, differentiable: bool, twice: bool) -> None:
        actual, expected = self.on_both(sample)
        results = self.outcomes(self.op, actual, expected, detach=not differentiable)
        if not self.add("value", where, *results, self.exactly(self.op, sample)) or not differentiable:
            return
        inputs = [tensors_of((x.input, x.args, x.kwargs)) for x in (actual, expected)]
        outputs = [x.value for x in results]
        self.compare_gradients(where, sample, outputs, inputs, twice and self.op.supports_gradgrad)

    def compare_gradients(
        self, where: str, sample: SampleInput, outputs: list[Any], inputs: list[list[torch.Tensor]], twice: bool
    ) -> None:
        roots = [[x for x in tensors_of(tree) if x.requires_grad] for tree in outputs]
        leaves = [[x for x in tree if x.requires_grad] for tree in inputs]
        if len(roots[0]) != len(roots[1]):
            self.differences.append(Difference("gradient", f"{where}: {len(roots[0])} of {len(roots[1])} require one"))
            return
        if not roots[1] or not leaves[1] or has_complex32(roots[1]):
            return
        seeds = [torch.randn(x.shape, dtype=x.dtype) for x in roots[1]]
        on_devices = [[x.to(device) for x in seeds] for device in DEVICES]
        gradients = [
            outcome(lambda i=i: first_gradients(roots[i], leaves[i], on_devices[i], create_graph=twice))
            for i in range(2)
        ]
        exact = lambda: self.exact_gradients(sample, seeds)  # noqa: E731
        if not self.add("gradient", f"{where}, gradient", *gradients, exact) or not twice:
            return
        second = [[x for x in g.value if x is not None and x.requires_grad] for g in gradients]
        if len(second[0]) != len(second[1]) or not second[1]:
            return
        second_seeds = [torch.randn(x.shape, dtype=x.dtype) for x in second[1]]
        on_devices = [[x.to(device) for x in second_seeds] for device in DEVICES]
        results = [outcome(lambda i=i: first_gradients(second[i], leaves[i], on_devices[i])) for i in range(2)]
        exact_second = lambda: self.exact_gradients(sample, seeds, second_seeds)  # noqa: E731
        self.add("gradgrad", f"{where}, second gradient", *results, exact_second)

    def exact_gradients(
        self, sample: SampleInput, seeds: list[torch.Tensor], second_seeds: list[torch.Tensor] | None = None
    ) -> Any:
        """The first gradients in float64, or the second ones where their seeds are given."""
        trees = in_double((sample.input, sample.args, sample.kwargs))
        wide = SampleInput(trees[0], args=trees[1], kwargs=trees[2])
        leaves = [x for x in tensors_of(trees) if x.requires_grad]
        roots = [x for x in tensors_of(self.call(self.op, wide, "cpu", detach=False)()) if x.requires_grad]
        gradients = first_gradients(roots, leaves, in_double(seeds), create_graph=second_seeds is not None)
        if second_seeds is None:
            return gradients
        second = [x for x in gradients if x is not None and x.requires_grad]
        return first_gradients(second, leaves, in_double(second_seeds))

    def compare_strided(self, where: str, sample: SampleInput) -> None:
        strided = outcome(sample.noncontiguous)
        if strided.error is None:
            self.compare_as_it_is(where, strided.value)

    def compare_transposed(self, where: str, sample: SampleInput) -> None:
        trees = (sample.input, sample.args, sample.kwargs)
        if any(x.dim() > 1 and x.layout == torch.strided for x in tensors_of(trees)):
            trees = pytree.tree_map(with_reversed_strides, trees)
            self.compare_as_it_is(where, SampleInput(trees[0], args=trees[1], kwargs=trees[2]))

    def compare_as_it_is(self, where: str, sample: SampleInput) -> None:
        """The CPU gets the very tensors of the sample, xla the same strides."""
        actual, _ = self.on_both(sample)
        self.add("value", where, *self.outcomes(self.op, actual, sample), self.exactly(self.op, sample))

    def compare_inplace(self, where: str, sample: SampleInput) -> None:
        inplace = self.op.get_inplace()
        if inplace is None or not isinstance(sample.input, torch.Tensor):
            return
        actual, expected = self.on_both(sample)
        results = self.outcomes(inplace, actual, expected)
        exact = self.exactly(inplace, sample)
        if self.add("inplace", where, *results, exact):
            self.pairs.append(Pair("inplace", f"{where}, self", actual.input, expected.input, exact))

    def compare_method(self, where: str, sample: SampleInput) -> None:
        method = self.op.get_method()
        if method is None or not isinstance(sample.input, torch.Tensor):
            return
        actual, expected = self.on_both(sample)
        self.add("method", where, *self.outcomes(method, actual, expected), self.exactly(method, sample))

    def compare_out(self, where: str, sample: SampleInput, is_first: bool) -> None:
        if not self.op.supports_out or "out" in sample.kwargs:
            return
        result = outcome(self.call(self.op, sample, "cpu")).value
        is_tensor = isinstance(result, torch.Tensor)
        if not is_tensor and not (isinstance(result, tuple) and all(isinstance(x, torch.Tensor) for x in result)):
            return
        if has_complex32(result):
            return

        def with_out(label: str, make: Callable[[torch.Tensor], torch.Tensor]) -> None:
            outs = pytree.tree_map(make, result if is_tensor else tuple(result))
            results, warned = [], []
            for arguments, out, device in zip(self.on_both(sample), (moved(outs), outs), DEVICES, strict=True):
                function = self.call(
                    lambda *args, out=out, **kwargs: self.op(*args, out=out, **kwargs), arguments, device
                )
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    results.append((outcome(function), out))
                warned.append([str(x.message) for x in caught if "resized" in str(x.message)])
            if warned[0] != warned[1]:
                self.differences.append(Difference("warning", f"{where} {label}: {warned[0]}, not {warned[1]}"))
            exact = self.exactly(self.op, sample)
            if self.add("out", f"{where} {label}", results[0][0], results[1][0], exact):
                self.pairs.append(Pair("out", f"{where} {label}, out", results[0][1], results[1][1], exact))

        with_out("of the right size", lambda x: torch.zeros_like(x))
        with_out("empty", lambda x: torch.empty(0, dtype=x.dtype))
        if is_first:

            def other(dtype: torch.dtype) -> torch.dtype:
                return torch.bool if dtype == torch.int64 else torch.int64

            with_out("of a wrong size", lambda x: torch.zeros((*x.shape, 2), dtype=x.dtype))
            with_out("of a wrong dtype", lambda x: torch.zeros(x.shape, dtype=other(x.dtype)))
            with_out("strided", lambda x: torch.zeros((*x.shape, 2), dtype=x.dtype)[..., 0])

    # --- comparing -----------------------------------------------------------------------------------------------

    def tolerance_override(self) -> tuple[float, float]:
        """The widest tolerance that the OpInfo asks for with this dtype, in any of PyTorch's tests."""
        widest = (0.0, 0.0)
        for decorator in self.op.decorators:
            for inner in getattr(decorator, "decorators", [decorator]):
                if isinstance(inner, toleranceOverride) and self.dtype in inner.d:
                    widest = tuple(max(pair) for pair in zip(widest, inner.d[self.dtype][::-1], strict=True))
        return widest

    def tolerance(self, kind: str, expected: torch.Tensor) -> tuple[float, float]:
        """PyTorch's default of the dtype, or the OpInfo's own.

        The absolute one grows with the largest element for half types, which a fused program rounds at other places, to
        one unit in its last place; and for gradients, which are sums of terms."""
        if not (expected.is_floating_point() or expected.is_complex()):
            return 0.0, 0.0
        rtol, atol = torch.testing._comparison.default_tolerances(expected.dtype, dtype_precisions=None)
        rtol, atol = (max(pair) for pair in zip((rtol, atol), self.override, strict=True))
        finite = expected.abs().nan_to_num(0, 0, 0)
        scale = finite.max().item() if expected.numel() else 0.0
        if expected.dtype in HALF_DTYPES:
            atol = max(atol, torch.finfo(expected.dtype).eps * scale)
        elif kind in ("gradient", "gradgrad"):
            atol *= max(1.0, scale)
        return rtol, atol

    def compare_pair(self, pair: Pair) -> None:
        leaves = [pytree.tree_leaves(x) for x in (pair.actual, pair.expected)]
        if len(leaves[0]) != len(leaves[1]):
            self.differences.append(Difference(pair.kind, f"{pair.where}: {len(leaves[0])} results"))
            return
        for i, (a, e) in enumerate(zip(*leaves, strict=True)):
            text = self.difference(pair.kind, a, e)
            if text and self.is_as_near(pair, i, a, e):
                self.as_near.add(pair.where)
            elif text:
                self.differences.append(Difference(pair.kind, f"{pair.where}: {text}"))
            elif isinstance(e, torch.Tensor) and pair.kind in ("value", "out") and has_other_strides(a, e):
                self.differences.append(Difference("stride", f"{pair.where}: {a.stride()}, not {e.stride()}"))

    def is_as_near(self, pair: Pair, i: int, a: Any, e: Any) -> bool:
        """Whether the i-th result on xla is not farther from float64's, rounded to the dtype, than the CPU's.

        Of half types, up to twice as far: where a sum is rounded in another order, either may come out nearer."""
        if pair.exact is None or not self.compare_values or not all(isinstance(x, torch.Tensor) for x in (a, e)):
            return False
        if a.shape != e.shape or a.dtype != e.dtype or not (e.is_floating_point() or e.is_complex()):
            return False
        if has_complex32(e):
            return False
        exact = outcome(lambda: pytree.tree_leaves(pair.exact())[i])
        x = exact.value
        if not isinstance(x, torch.Tensor) or x.shape != e.shape or x.dtype not in (torch.float64, torch.complex128):
            return False
        a, e, x = (y.detach().cpu().resolve_conj().resolve_neg() for y in (a, e, x))
        nearest = x.to(e.dtype).to(x.dtype)
        slack = 2 if e.dtype in HALF_DTYPES else 1
        return e.dtype != x.dtype and largest_error(a, nearest) <= slack * largest_error(e, nearest)

    def difference(self, kind: str, a: Any, e: Any) -> str:
        if not isinstance(e, torch.Tensor):
            if isinstance(e, float) and isinstance(a, float):
                return "" if np.isclose(a, e, equal_nan=True) or not self.compare_values else f"{a}, not {e}"
            same = type(a) is type(e) and (not self.compare_values or a == e or is_renamed(a, e))
            return "" if same else f"{a!r}, not {e!r}"
        if not isinstance(a, torch.Tensor):
            return f"{type(a)}, not a tensor"
        if (a.shape, a.dtype, a.layout, a.device.type) != (e.shape, e.dtype, e.layout, "xla"):
            return f"{list(a.shape)} {a.dtype} {a.device}, not {list(e.shape)} {e.dtype}"
        if not self.compare_values:
            return ""
        actual = outcome(lambda: a.detach().cpu())
        if actual.error is not None:
            return f"{type(actual.error).__name__}: {first_line(actual.error)}"
        a, e = actual.value.resolve_conj().resolve_neg(), e.detach().resolve_conj().resolve_neg()
        if e.layout != torch.strided:
            a, e = a.to_dense(), e.to_dense()
        rtol, atol = self.tolerance(kind, e)
        try:
            torch.testing.assert_close(a, e, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return " ".join(line for line in str(error).split("\n") if line)
        return ""


def has_complex32(tree: Any) -> bool:
    """There are no such tensors on xla, but for views that nobody reads."""
    return any(x.dtype == torch.complex32 for x in tensors_of(tree))


def first_gradients(
    roots: list[torch.Tensor], leaves: list[torch.Tensor], seeds: list[torch.Tensor], create_graph: bool = False
) -> Any:
    return torch.autograd.grad(roots, leaves, seeds, allow_unused=True, create_graph=create_graph)


def has_other_strides(a: torch.Tensor, e: torch.Tensor) -> bool:
    """Those of dimensions of size 1 apart, unless the tensor is empty: then no stride means anything."""
    if e.layout != torch.strided:
        return False
    if e.numel() == 0:
        return a.stride() != e.stride()
    return any(x != y for x, y, size in zip(a.stride(), e.stride(), e.shape, strict=True) if size > 1)


def is_renamed(a: Any, e: Any) -> bool:
    return isinstance(e, (torch.device, str)) and str(a).replace("xla:0", "cpu") == str(e)


def error_cases(op: OpInfo) -> Iterator[tuple[SampleInput, SampleInput]]:
    """The OpInfo's error inputs, on xla and on the CPU."""
    seed(full_name(op))
    for case in op.error_inputs("cpu"):
        sample = case.sample_input
        trees = (sample.input, sample.args, sample.kwargs)
        yield tuple(SampleInput(x[0], args=x[1], kwargs=x[2]) for x in (moved(trees), trees))


def finished(op: OpInfo, sample: SampleInput) -> Any:
    """Also waits: what the values make an error is known when they are."""
    value = op(sample.input, *sample.args, **sample.kwargs)
    torch_xla.sync(wait=True)
    return value


def error_differences(op: OpInfo) -> list[str]:
    """Error inputs for which xla raises another class, or another first line, than the CPU."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, samples in enumerate(error_cases(op)):
            words = []
            for sample in samples:
                words.append(in_words(outcome(lambda s=sample: finished(op, s)).error))
            # What is found while a program runs names the program, too.
            if words[0] != words[1] and not words[0].startswith(f"{words[1]} (in program "):
                found.append(f"error input {i}: xla: {words[0]}; CPU: {words[1]}")
    return found
