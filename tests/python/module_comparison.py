"""Runs modules of PyTorch's ModuleInfo on the CPU and on xla, stored in several ways, and lists what differs.

As in operator_comparison: everything is recorded first and computed by one program; then results are compared.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from operator_comparison import (
    DEVICES,
    Comparison,
    Pair,
    copied,
    first_gradients,
    in_double,
    in_words,
    moved,
    outcome,
    seed,
    tensors_of,
    with_reversed_strides,
)
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.testing._internal.common_modules import ErrorModuleInput, ModuleErrorEnum, ModuleInfo, ModuleInput
from torch.utils import _pytree as pytree

# (positional, keyword)
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def is_packed(x: Any) -> bool:
    return isinstance(x, PackedSequence)


def with_data(x: PackedSequence, data: torch.Tensor, move: Callable[[Any], Any] = lambda x: x) -> PackedSequence:
    """The same sequence of other elements; its batch sizes are on the CPU for any device."""
    return PackedSequence(data, x.batch_sizes, move(x.sorted_indices), move(x.unsorted_indices))


def on_xla(arguments: Arguments) -> Arguments:
    """Leaves of their own with the same strides."""
    positional, keyword = arguments
    packed = tuple(with_data(x, moved(x.data), moved) if is_packed(x) else None for x in positional)
    rest, keyword = moved((tuple(None if is_packed(x) else x for x in positional), keyword))
    return tuple(a if b is None else b for a, b in zip(rest, packed, strict=True)), keyword


def every_second(x: torch.Tensor) -> torch.Tensor:
    """The same elements, with others between them."""
    return x if x.dim() == 0 else torch.stack((x, torch.zeros_like(x)), -1)[..., 0]


def channels_last(x: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats[x.dim()]) if x.dim() in formats else x


# How arguments, and how parameters and the gradients of outputs are stored.
LAYOUTS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[torch.Tensor], torch.Tensor]]] = {
    "as made": (torch.clone, torch.clone),
    "strided": (every_second, every_second),
    "reversed": (with_reversed_strides, with_reversed_strides),
    "channels last": (channels_last, channels_last),
    "input channels last": (channels_last, torch.clone),
    "module channels last": (torch.clone, channels_last),
}


def stored(arguments: Arguments, layout: str) -> Arguments:
    """Leaves of their own."""

    def store(x: Any) -> Any:
        if is_packed(x):
            return with_data(x, store(x.data))
        if not isinstance(x, torch.Tensor):
            return x
        y = LAYOUTS[layout][0](x.detach())
        return (y.detach() if y is x else y).requires_grad_(x.requires_grad)

    return pytree.tree_map(store, arguments, is_leaf=is_packed)


def changes_anything(layout: str, arguments: Arguments, module: nn.Module) -> bool:
    tensors = [*tensors_of(arguments), *module.parameters()]
    if "channels last" in layout:
        return any(x.dim() in (4, 5) for x in tensors)
    return layout == "as made" or any(x.dim() > (layout == "reversed") for x in tensors)


def inputs_of(info: ModuleInfo, dtype: torch.dtype, training: bool) -> list[ModuleInput]:
    packed = {"with_packed_sequence": True} if info.module_cls in (nn.RNN, nn.GRU) else {}
    seed(info.name)
    return info.module_inputs_func(info, "cpu", dtype, requires_grad=True, training=training, **packed)


def build(info: ModuleInfo, sample: ModuleInput, dtype: torch.dtype, training: bool, **options: Any) -> nn.Module:
    """The same parameters at each call."""
    seed("parameters")
    constructor = sample.constructor_input
    return info.module_cls(*constructor.args, **constructor.kwargs, **options).to(dtype).train(training)


def with_parameters(module: nn.Module, store: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    for parameter in module.parameters():
        parameter.data = store(parameter.detach())
    return module


class ModuleComparison(Comparison):
    """Of one module in one dtype and mode. `op` is the ModuleInfo."""

    def __init__(self, info: ModuleInfo, dtype: torch.dtype, training: bool) -> None:
        super().__init__(info, dtype)
        self.training = training

    def compare(self, where: str, sample: ModuleInput, layout: str, twice: bool, **options: Any) -> None:
        """Outputs, gradients, buffers and, `twice`, second gradients; what the CPU refuses, xla does in its words."""
        module = build(self.op, sample, self.dtype, self.training, **options)
        forward = sample.forward_input
        arguments = stored((forward.args, forward.kwargs), layout)
        if self.op.is_lazy and outcome(lambda: module(*arguments[0], **arguments[1])).error is not None:
            return
        if not changes_anything(layout, arguments, module):
            return
        module = with_parameters(module, LAYOUTS[layout][1])
        exact = self.in_float64(copy.deepcopy(module), arguments, is_inplace=bool(options.get("inplace")))
        modules = [with_parameters(copy.deepcopy(module), moved).to("xla"), module]
        trees = [on_xla(arguments), arguments]
        inputs = trees
        if options.get("inplace"):
            inputs = [((positional[0].clone(), *positional[1:]), keyword) for positional, keyword in trees]
        results = []
        for module, (positional, keyword) in zip(modules, inputs, strict=True):
            seed("call")
            results.append(outcome(lambda m=module, p=positional, k=keyword: m(*p, **k)))
        if not self.add("value", where, *results, lambda: exact()[0]):
            return
        if options.get("inplace"):
            self.pairs.append(Pair("inplace", f"{where}, input", *(positional[0] for positional, _ in inputs)))
        leaves = [[*tensors_of(tree), *m.parameters()] for tree, m in zip(trees, modules, strict=True)]
        outputs = [x.value for x in results]
        self.compare_gradients(where, exact, outputs, leaves, twice and self.op.supports_gradgrad)
        self.pairs.append(Pair("buffer", f"{where}, buffers", *(list(m.buffers()) for m in modules)))

    def in_float64(
        self, module: nn.Module, arguments: Arguments, is_inplace: bool
    ) -> Callable[[], tuple[Any, list[torch.Tensor]]]:
        """Makes the outputs of the same call in float64, and what they are to be differentiated by."""

        def run() -> tuple[Any, list[torch.Tensor]]:
            wide = copy.deepcopy(module).to(torch.complex128 if self.dtype.is_complex else torch.float64)
            positional, keyword = in_double(arguments)
            given = (positional[0].clone(), *positional[1:]) if is_inplace else positional
            seed("call")
            return wide(*given, **keyword), [*tensors_of((positional, keyword)), *wide.parameters()]

        return run

    def exact_gradients(self, sample: Any, seeds: list[torch.Tensor], second_seeds: Any = None) -> Any:
        """`sample` is what in_float64 returns."""
        outputs, leaves = sample()
        roots = [x for x in tensors_of(outputs) if x.requires_grad]
        leaves = [x for x in leaves if x.requires_grad]
        gradients = first_gradients(roots, leaves, in_double(seeds), create_graph=second_seeds is not None)
        if second_seeds is None:
            return gradients
        second = [x for x in gradients if x is not None and x.requires_grad]
        return first_gradients(second, leaves, in_double(second_seeds))

    def compare_pair(self, pair: Pair) -> None:
        exact = pair.exact
        pair.exact = exact and (lambda: self.without_batch_sizes(exact()))
        pair.actual, pair.expected = (self.without_batch_sizes(x) for x in (pair.actual, pair.expected))
        super().compare_pair(pair)

    @staticmethod
    def without_batch_sizes(tree: Any) -> Any:
        def data(x: Any) -> Any:
            return (x.data, x.batch_sizes.tolist(), x.sorted_indices, x.unsorted_indices) if is_packed(x) else x

        return pytree.tree_map(data, tree, is_leaf=is_packed)


def error_differences(info: ModuleInfo) -> tuple[int, list[str]]:
    """The number of error inputs, and those for which xla raises another class or other words than the CPU."""
    seed(info.name)
    found = []
    cases = info.module_error_inputs_func(info, "cpu", torch.float32, requires_grad=False, training=True)
    for i, case in enumerate(cases):
        mine, theirs = (in_words(raised(info, case, device)) for device in DEVICES)
        # What is found while a program runs names the program, too.
        is_same = mine == theirs or mine.startswith(f"{theirs} (in program ")
        if not is_same or theirs == "no error":
            found.append(f"error input {i}: xla: {mine}; CPU: {theirs}")
    return len(cases), found


def raised(info: ModuleInfo, case: ErrorModuleInput, device: str) -> Exception | None:
    constructor, forward = case.module_error_input.constructor_input, case.module_error_input.forward_input
    options = dict(constructor.kwargs)
    if "device" in inspect.signature(info.module_cls.__init__).parameters:
        options.setdefault("device", device)

    def run() -> list[torch.Tensor]:
        module = info.module_cls(*constructor.args, **options).to(device)
        if case.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR:
            return []
        positional, keyword = (on_xla if device == "xla" else copied)((forward.args, forward.kwargs))
        return [x.cpu() for x in tensors_of(module(*positional, **keyword))]

    return outcome(run).error
