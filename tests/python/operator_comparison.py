"""Runs one OpInfo of PyTorch's test suite on the CPU and on xla, in every variant, and lists what differs.

Everything is recorded first and computed by one program; then results are compared.
"""

from __future__ import annotations

import dataclasses
import itertools
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


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def first_dtype(op: OpInfo) -> torch.dtype | None:
    """The dtype in which the quick set runs an operator."""
    return next((dtype for dtype in DTYPES if dtype in op.dtypes), None)


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def seed(text: str) -> None:
    number = zlib.crc32(text.encode())
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def is_whole_storage(x: torch.Tensor) -> bool:
    return x.layout != torch.strided or (x.is_contiguous() and x.untyped_storage().nbytes() == x.numel() * x.itemsize)


def whole_storage(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())


def strided_on_xla(x: torch.Tensor) -> torch.Tensor:
    """`x` on xla with its strides, offset, and the rest of its storage."""
    if x.is_conj():
        return strided_on_xla(x.conj()).conj()
    if x.is_neg():
        return torch._neg_view(strided_on_xla(torch._neg_view(x)))
    if x.device.type != "cpu":
        return x
    if is_whole_storage(x):
        return x.detach().to("xla")
    return whole_storage(x).to("xla").as_strided(x.shape, x.stride(), x.storage_offset())


def moved(tree: Any) -> Any:
    """The same arguments with tensors on xla, and xla where they name the device."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return strided_on_xla(leaf).detach().requires_grad_(leaf.requires_grad)
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
    kind: str  # value, stride, error, inplace, out, method, gradient, gradgrad
    text: str


@dataclasses.dataclass
class Pair:
    kind: str
    where: str
    actual: Any
    expected: Any


class Comparison:
    def __init__(self, op: OpInfo, dtype: torch.dtype, compare_values: bool = True) -> None:
        self.op, self.dtype, self.compare_values = op, dtype, compare_values
        self.pairs: list[Pair] = []
        self.differences: list[Difference] = []
        self.cases = 0
        self.override = self.tolerance_override()

    # --- recording -----------------------------------------------------------------------------------------------

    def run(self, most_samples: int, most_variants: int) -> list[Difference]:
        """`most_variants` samples run in place, with out= and so on; twice as many are differentiated."""
        has_gradients = self.dtype.is_floating_point or self.dtype.is_complex
        differentiable = (
            self.compare_values
            and has_gradients
            and self.op.supports_autograd
            and self.dtype in self.op.backward_dtypes
        )
        seed(full_name(self.op))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = self.op.sample_inputs("cpu", self.dtype, requires_grad=differentiable)
            for i, sample in enumerate(itertools.islice(samples, most_samples)):
                sample = SampleInput(sample.input, args=sample.args, kwargs=sample.kwargs)
                has_variants = i < most_variants
                self.compare_call(f"sample {i}", sample, differentiable and i < 2 * most_variants, has_variants)
                if has_variants:
                    self.compare_strided(f"sample {i}, strided", sample)
                    self.compare_inplace(f"sample {i}, in place", sample)
                    self.compare_method(f"sample {i}, method", sample)
                    self.compare_out(f"sample {i}, out=", sample, is_first=i == 0)
            torch_xla.sync()
            for pair in self.pairs:
                self.compare_pair(pair)
        return self.differences

    def call(self, function: Callable[..., Any], sample: SampleInput, detach: bool = True) -> Callable[[], Any]:
        def run() -> Any:
            seed("call")
            if not detach:
                return function(sample.input, *sample.args, **sample.kwargs)
            with torch.no_grad():
                return function(sample.input, *sample.args, **sample.kwargs)

        return run

    def on_both(self, sample: SampleInput) -> tuple[SampleInput, SampleInput]:
        trees = (sample.input, sample.args, sample.kwargs)
        mine, theirs = copied(trees), moved(trees)
        return (SampleInput(x[0], args=x[1], kwargs=x[2]) for x in (theirs, mine))

    def add(self, kind: str, where: str, actual: Outcome, expected: Outcome) -> bool:
        """Notes a pair of outcomes; true when both have values."""
        self.cases += 1
        if expected.error is None and actual.error is None:
            self.pairs.append(Pair(kind, where, actual.value, expected.value))
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
        results = [outcome(self.call(self.op, x, detach=not differentiable)) for x in (actual, expected)]
        if not self.add("value", where, *results) or not differentiable:
            return
        inputs = [tensors_of((x.input, x.args, x.kwargs)) for x in (actual, expected)]
        self.compare_gradients(where, [x.value for x in results], inputs, twice and self.op.supports_gradgrad)

    def compare_gradients(self, where: str, outputs: list[Any], inputs: list[list[torch.Tensor]], twice: bool) -> None:
        roots = [[x for x in tensors_of(tree) if x.requires_grad] for tree in outputs]
        leaves = [[x for x in tree if x.requires_grad] for tree in inputs]
        if len(roots[0]) != len(roots[1]):
            self.differences.append(Difference("gradient", f"{where}: {len(roots[0])} of {len(roots[1])} require one"))
            return
        if not roots[1] or not leaves[1]:
            return
        seeds = [torch.randn(x.shape, dtype=x.dtype) for x in roots[1]]
        seeds = [[x.to(device) for x in seeds] for device in ("xla", "cpu")]
        gradients = [
            outcome(
                lambda i=i: torch.autograd.grad(roots[i], leaves[i], seeds[i], allow_unused=True, create_graph=twice)
            )
            for i in range(2)
        ]
        if not self.add("gradient", f"{where}, gradient", *gradients) or not twice:
            return
        second = [[x for x in g.value if x is not None and x.requires_grad] for g in gradients]
        if len(second[0]) != len(second[1]) or not second[1]:
            return
        seeds = [torch.randn(x.shape, dtype=x.dtype) for x in second[1]]
        seeds = [[x.to(device) for x in seeds] for device in ("xla", "cpu")]
        results = [
            outcome(lambda i=i: torch.autograd.grad(second[i], leaves[i], seeds[i], allow_unused=True))
            for i in range(2)
        ]
        self.add("gradgrad", f"{where}, second gradient", *results)

    def compare_strided(self, where: str, sample: SampleInput) -> None:
        strided = outcome(sample.noncontiguous)
        if strided.error is not None:
            return
        actual, expected = self.on_both(strided.value)
        trees = (strided.value.input, strided.value.args, strided.value.kwargs)
        expected = SampleInput(trees[0], args=trees[1], kwargs=trees[2])
        self.add("value", where, outcome(self.call(self.op, actual)), outcome(self.call(self.op, expected)))

    def compare_inplace(self, where: str, sample: SampleInput) -> None:
        inplace = self.op.get_inplace()
        if inplace is None or not isinstance(sample.input, torch.Tensor):
            return
        actual, expected = self.on_both(sample)
        results = [outcome(self.call(inplace, x)) for x in (actual, expected)]
        if self.add("inplace", where, *results):
            self.pairs.append(Pair("inplace", f"{where}, self", actual.input, expected.input))

    def compare_method(self, where: str, sample: SampleInput) -> None:
        method = self.op.get_method()
        if method is None or not isinstance(sample.input, torch.Tensor):
            return
        actual, expected = self.on_both(sample)
        self.add("method", where, *(outcome(self.call(method, x)) for x in (actual, expected)))

    def compare_out(self, where: str, sample: SampleInput, is_first: bool) -> None:
        if not self.op.supports_out or "out" in sample.kwargs:
            return
        result = outcome(self.call(self.op, sample)).value
        is_tensor = isinstance(result, torch.Tensor)
        if not is_tensor and not (isinstance(result, tuple) and all(isinstance(x, torch.Tensor) for x in result)):
            return

        def with_out(label: str, make: Callable[[torch.Tensor], torch.Tensor]) -> None:
            outs = pytree.tree_map(make, result if is_tensor else tuple(result))
            results = []
            for arguments, out in zip(self.on_both(sample), (moved(outs), outs), strict=True):
                function = self.call(lambda *args, out=out, **kwargs: self.op(*args, out=out, **kwargs), arguments)
                results.append((outcome(function), out))
            if self.add("out", f"{where} {label}", results[0][0], results[1][0]):
                self.pairs.append(Pair("out", f"{where} {label}, out", results[0][1], results[1][1]))

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
        if expected.dtype in (torch.float16, torch.bfloat16):
            atol = max(atol, torch.finfo(expected.dtype).eps * scale)
        elif kind in ("gradient", "gradgrad"):
            atol *= max(1.0, scale)
        return rtol, atol

    def compare_pair(self, pair: Pair) -> None:
        leaves = [pytree.tree_leaves(x) for x in (pair.actual, pair.expected)]
        if len(leaves[0]) != len(leaves[1]):
            self.differences.append(Difference(pair.kind, f"{pair.where}: {len(leaves[0])} results"))
            return
        for a, e in zip(*leaves, strict=True):
            text = self.difference(pair.kind, a, e)
            if text:
                self.differences.append(Difference(pair.kind, f"{pair.where}: {text}"))
            elif isinstance(e, torch.Tensor) and pair.kind in ("value", "out") and has_other_strides(a, e):
                self.differences.append(Difference("stride", f"{pair.where}: {a.stride()}, not {e.stride()}"))

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


def has_other_strides(a: torch.Tensor, e: torch.Tensor) -> bool:
    """Where they matter: not of dimensions of size 1, nor of empty tensors."""
    if e.layout != torch.strided or e.numel() == 0:
        return False
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


def error_differences(op: OpInfo) -> list[str]:
    """Error inputs for which xla raises another class, or another first line, than the CPU."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, samples in enumerate(error_cases(op)):
            words = []
            for sample in samples:
                error = outcome(lambda s=sample: op(s.input, *s.args, **s.kwargs)).error
                words.append(in_words(error))
            if words[0] != words[1]:
                found.append(f"error input {i}: xla: {words[0]}; CPU: {words[1]}")
    return found
