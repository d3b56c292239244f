"""Calls that are wrong, or nearly: samples of an OpInfo with one thing changed, compared on the CPU and on xla.

Both must return the same, or raise the same class with the same first line.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from operator_comparison import (
    SAMPLES_A_PROGRAM,
    Comparison,
    Difference,
    Outcome,
    Pair,
    dtype_name,
    full_name,
    in_words,
    outcome,
    seed,
    spread,
    tensors_of,
)
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

import torch_xla

OTHER_DTYPES = (torch.float64, torch.int64, torch.int32, torch.bool, torch.complex64, torch.bfloat16)

# Beyond any size, and no sum or product of sizes holds it.
HUGE = 2**62


def with_element(x: torch.Tensor, value: int) -> torch.Tensor:
    changed = x.detach().clone()
    changed.view(-1)[-1] = value
    return changed


def changed_tensors(x: torch.Tensor) -> Iterator[tuple[str, Any]]:
    if x.layout != torch.strided:
        return
    x = x.detach()
    for dtype in OTHER_DTYPES:
        if dtype != x.dtype:
            yield f"of {dtype_name(dtype)}", (x.real if x.is_complex() and not dtype.is_complex else x).to(dtype)
    yield "with a dimension more", x.unsqueeze(0).clone()
    yield "without elements", torch.empty(0, dtype=x.dtype)
    if x.dim() > 0 and x.numel() > 0:
        yield "with a dimension less", x[0].clone()
        yield "with a longer last dimension", torch.cat([x, x.narrow(-1, 0, 1)], -1)
        yield "with an empty last dimension", x.narrow(-1, 0, 0).clone()
    if x.dim() > 1 and x.numel() > 0:
        yield "with a longer first dimension", torch.cat([x, x.narrow(0, 0, 1)], 0)
        yield "with an empty first dimension", x.narrow(0, 0, 0).clone()
    if x.dtype in (torch.int64, torch.int32) and x.numel() > 0 and x.is_contiguous():
        for value in (-1, -100, 10**5):
            yield f"with an element {value}", with_element(x, value)
    yield "as the number 2", 2
    yield "as None", None


def changed_leaves(leaf: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(leaf, torch.Tensor):
        yield from changed_tensors(leaf)
    elif isinstance(leaf, bool):
        yield from (("negated", not leaf), ("as 2", 2), ("as None", None))
    elif isinstance(leaf, int):
        for value in (-1, -2, 0, 100, HUGE, True, 1.5, None):
            if value is not leaf and (value != leaf or type(value) is not int):
                yield f"as {value}", value
    elif isinstance(leaf, float):
        for value in (-1.5, 0.0, torch.nan, torch.inf, 2, True, 1j, None):
            yield f"as {value}", value
    elif isinstance(leaf, str):
        yield "as wrong", "wrong"
    elif isinstance(leaf, torch.dtype):
        for dtype in OTHER_DTYPES:
            if dtype != leaf:
                yield f"as {dtype_name(dtype)}", dtype
    elif isinstance(leaf, complex):
        yield from (("as 1.5", 1.5), ("as None", None))


def changed_lists(tree: Any) -> Iterator[tuple[str, Any]]:
    """The arguments with one list longer or shorter, at the top or as a keyword."""

    def variants(x: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(x, (list, tuple)) and len(x) > 0:
            yield "shorter", type(x)(x[:-1]) if type(x) in (list, tuple) else list(x[:-1])
            yield "longer", [*x, x[-1]] if not isinstance(x, tuple) else (*x, x[-1])

    first, args, kwargs = tree
    for label, value in variants(first):
        yield f"input {label}", (value, args, kwargs)
    for i, argument in enumerate(args):
        for label, value in variants(argument):
            yield f"argument {i} {label}", (first, (*args[:i], value, *args[i + 1 :]), kwargs)
    for name, argument in kwargs.items():
        for label, value in variants(argument):
            yield f"{name} {label}", (first, args, {**kwargs, name: value})


def path_name(path: Any) -> str:
    top, *rest = path
    inner = "".join(pytree.keystr((key,)) for key in rest)
    return ("input" if top.idx == 0 else "" if top.idx == 2 else "argument ") + inner


def mutations(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    tree = (sample.input, tuple(sample.args), dict(sample.kwargs))
    leaves, spec = pytree.tree_flatten(tree)
    paths = [path_name(path) for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    for i, leaf in enumerate(leaves):
        for label, value in changed_leaves(leaf):
            changed = pytree.tree_unflatten([*leaves[:i], value, *leaves[i + 1 :]], spec)
            yield f"{paths[i]} {label}", SampleInput(changed[0], args=changed[1], kwargs=changed[2])
    for label, changed in changed_lists(tree):
        yield label, SampleInput(changed[0], args=changed[1], kwargs=changed[2])


def without_device(words: str) -> str:
    """Types are named by their device."""
    return re.sub(r"\b(?:XLA|CPU)(\w+)Type\b", r"torch.\1Tensor", words)


class Mutations(Comparison):
    """Compares mutated calls. What both take is computed by common programs; each refusal is waited for alone."""

    def __init__(self, op: OpInfo, dtype: torch.dtype, compare_values: bool = True) -> None:
        super().__init__(op, dtype, compare_values)
        self.refusals = 0
        self.comparing = ""
        self.refused: list[tuple[str, SampleInput, Outcome]] = []

    def run_mutations(self, num_samples: int, is_wanted: Callable[[str], bool]) -> list[Difference]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, sample in self.first_samples(num_samples):
                for label, mutated in mutations(sample):
                    name = f"sample {i}, {label}"
                    if is_wanted(name):
                        self.compare_mutated(name, mutated)
                    if len(self.pairs) >= SAMPLES_A_PROGRAM:
                        self.compare_pairs()
                # A program that fails would take the values of other calls with it.
                self.compare_pairs()
                for refused in self.refused:
                    self.compare_refused(*refused)
                self.refused.clear()
                self.compare_one_on_cpu(f"sample {i}", sample, is_wanted)
        return self.differences

    def first_samples(self, num_samples: int) -> Iterator[tuple[int, SampleInput]]:
        seed(f"{full_name(self.op)} {dtype_name(self.dtype)}")
        samples = list(self.op.sample_inputs("cpu", self.dtype, requires_grad=False))
        for i in spread(len(samples), num_samples, full_name(self.op)):
            yield i, samples[i]

    def compare_mutated(self, where: str, sample: SampleInput) -> None:
        actual, expected = self.on_both(sample)
        theirs = outcome(self.call(self.op, expected, "cpu"))
        if theirs.error is not None:
            self.refused.append((where, actual, theirs))
        else:
            mine = outcome(self.call(self.op, actual, "xla"))
            self.add("value", where, mine, theirs, self.exactly(self.op, sample))

    def compare_refused(self, where: str, sample: SampleInput, theirs: Outcome) -> None:
        self.refusals += 1
        mine = self.refusal(sample)
        if mine.error is None:
            self.add("error", where, mine, theirs)
            return
        self.cases += 1
        words = [without_device(in_words(x.error)) for x in (mine, theirs)]
        # What is found while a program runs names the program, too, and the kernel that threw.
        if words[0] != words[1] and not re.match(rf"{re.escape(words[1])} (\(in aten::\w+\) )?\(in program ", words[0]):
            self.differences.append(Difference("error", f"{where}: xla: {words[0]}; CPU: {words[1]}"))

    def refusal(self, sample: SampleInput) -> Outcome:
        """What the CPU refuses: the values may be what is wrong, so wait for them."""
        mine = outcome(self.call(self.op, sample, "xla"))
        if mine.error is not None:
            return mine

        def wait() -> Any:
            for x in tensors_of(mine.value):
                x.detach().cpu()
            torch_xla.sync(wait=True)
            return mine.value

        refused = outcome(wait)
        if refused.error is not None:
            # Its frames would keep the lost value, and each later wait would tell of it again.
            refused.error.with_traceback(None)
            mine.value = None
        return refused

    def tolerance(self, kind: str, expected: torch.Tensor) -> tuple[float, float]:
        """Numbers of 100 where samples have 1 make sums of terms of another size: as for gradients."""
        rtol, atol = super().tolerance("gradient", expected)
        if expected.dtype == torch.float32 and "bfloat16" in self.comparing:
            # Promoted after operators that rounded.
            rtol, atol = super().tolerance("gradient", expected.to(torch.bfloat16))
        return rtol, atol

    def compare_pair(self, pair: Pair) -> None:
        self.comparing = pair.where
        refused = outcome(lambda: super(Mutations, self).compare_pair(pair)).error
        if refused is not None:
            self.differences.append(Difference("value", f"{pair.where}: xla: {in_words(refused)}; CPU: no error"))

    def compare_one_on_cpu(self, where: str, sample: SampleInput, is_wanted: Callable[[str], bool]) -> None:
        """Calls with one operand left on the CPU among those on xla: they must say so."""
        actual, expected = (pytree.tree_flatten((x.input, tuple(x.args), dict(x.kwargs))) for x in self.on_both(sample))
        places = [k for k, x in enumerate(actual[0]) if isinstance(x, torch.Tensor)]
        for k in places if len(places) > 1 else ():
            name = f"{where}, tensor {places.index(k)} on the CPU"
            if actual[0][k].dim() == 0 or not is_wanted(name):
                continue
            leaves = [*actual[0][:k], expected[0][k], *actual[0][k + 1 :]]
            tree = pytree.tree_unflatten(leaves, actual[1])
            mixed = SampleInput(tree[0], args=tree[1], kwargs=tree[2])
            self.cases += 1
            words = in_words(self.refusal(mixed).error)
            if not re.search("[Dd]evice", words):
                self.differences.append(Difference("device", f"{name}: {words}"))
