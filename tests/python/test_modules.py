"""Every torch.nn module that PyTorch's own test suite describes (ModuleInfo) is on xla what it is on the CPU."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from parity import on_xla
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.utils import _pytree as pytree

import torch_xla

# The inputs of an entry are all recorded and then computed by one program. Entries of up to 1700 inputs, whose options
# are products, contribute every n-th.
MOST_INPUTS = 12

# Long compilations: fewer inputs.
FEW_INPUTS = 4
LARGE = {
    "nn.GRU", "nn.LSTM", "nn.RNN", "nn.Transformer", "nn.TransformerDecoderLayer", "nn.TransformerEncoder",
    "nn.TransformerEncoderLayer", "nn.MultiheadAttention",
}  # fmt: skip
# Their inputs hold float64 samples for any dtype.
FLOAT64 = {"nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d"}


@pytest.fixture(scope="module", autouse=True)
def quick_compilation() -> Iterator[None]:
    """The same programs, without the plugin's slow optimizations of machine code."""
    torch_xla.set_custom_compile_options(
        {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    )
    yield
    torch_xla.set_custom_compile_options({})


def dtype_of(info: ModuleInfo) -> torch.dtype:
    return torch.float64 if info.name in FLOAT64 else torch.float32


def inputs_of(info: ModuleInfo, training: bool) -> list[ModuleInput]:
    torch.manual_seed(0)
    inputs = info.module_inputs_func(info, "cpu", dtype_of(info), requires_grad=True, training=training)
    step = -(-len(inputs) // (FEW_INPUTS if info.name in LARGE else MOST_INPUTS))
    return inputs[::step]


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def arguments_of(sample: ModuleInput) -> tuple[tuple, dict]:
    """The arguments of forward, each tensor a leaf of its own."""

    def leaf(x: Any) -> Any:
        return x.detach().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x

    return pytree.tree_map(leaf, (sample.forward_input.args, sample.forward_input.kwargs))


def build(info: ModuleInfo, sample: ModuleInput, training: bool) -> torch.nn.Module:
    torch.manual_seed(1)
    constructor = sample.constructor_input
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return info.module_cls(*constructor.args, **constructor.kwargs).to(dtype_of(info)).train(training)


def run(module: torch.nn.Module, arguments: tuple, keywords: dict) -> dict[str, list[torch.Tensor | None]]:
    """Outputs, gradients and buffers after one step; nothing is computed yet on xla."""
    outputs = module(*arguments, **keywords)
    roots = [x for x in tensors_of(outputs) if x.requires_grad]
    leaves = [x for x in (*tensors_of((arguments, keywords)), *module.parameters()) if x.requires_grad]
    torch.manual_seed(2)
    seeds = [torch.randn(x.shape, dtype=x.dtype).to(x.device) for x in roots]
    gradients = torch.autograd.grad(roots, leaves, seeds, allow_unused=True) if roots and leaves else []
    return {"output": tensors_of(outputs), "gradient": list(gradients), "buffer": list(module.buffers())}


def assert_close(actual: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """PyTorch's tolerances. The absolute one grows with the largest element: a sum's rounding does with its terms."""
    actual, expected = actual.detach().cpu(), expected.detach()
    rtol, atol = (1.3e-6, 1e-5) if expected.dtype == torch.float32 else (1e-7, 1e-7)
    if expected.numel() and expected.is_floating_point():
        atol *= max(1.0, expected.nan_to_num(0, 0, 0).abs().max().item())
    torch.testing.assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: f"{what}: {text}"
    )


def assert_alike(actual: dict, expected: dict) -> None:
    for what, tensors in expected.items():
        for i, (a, e) in enumerate(zip(actual[what], tensors, strict=True)):
            assert (a is None) == (e is None), f"{what} {i}"
            if e is None:
                continue
            assert (a.shape, a.dtype, a.device.type) == (e.shape, e.dtype, "xla"), f"{what} {i}"
            if what == "output":
                assert a.stride() == e.stride()
            assert_close(a, e, f"{what} {i}")


def round_trip(module: torch.nn.Module) -> torch.nn.Module:
    """The module after pickling, with parameters loaded from its state dict on the CPU."""
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    state = {name: x.cpu() if isinstance(x, torch.Tensor) else x for name, x in module.state_dict().items()}
    loaded.load_state_dict(state)
    return loaded


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_equals_cpu(info: ModuleInfo, training: bool) -> None:
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in inputs_of(info, training):
            module = build(info, sample, training)
            arguments, keywords = arguments_of(sample)
            if info.is_lazy:
                module(*arguments, **keywords)
            xla_module = copy.deepcopy(module).to("xla")
            actual = run(xla_module, *on_xla((arguments, keywords)))
            results.append((actual, run(module, arguments, keywords)))
    torch_xla.sync()
    for actual, expected in results:
        assert_alike(actual, expected)


@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
def test_state_and_pickle(info: ModuleInfo) -> None:
    sample = inputs_of(info, training=True)[0]
    module = build(info, sample, training=True)
    if info.is_lazy:
        module(*sample.forward_input.args, **sample.forward_input.kwargs)
    loaded = round_trip(copy.deepcopy(module).to("xla"))
    assert all(x.device.type == "xla" for x in (*loaded.parameters(), *loaded.buffers()))
    expected = module.state_dict()
    assert loaded.state_dict().keys() == expected.keys()
    for name, value in loaded.state_dict().items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value.cpu(), expected[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    "info", [info for info in module_db if info.module_memformat_affects_out], ids=lambda info: info.name
)
def test_memory_formats(info: ModuleInfo) -> None:
    """A channels-last module and input give the CPU's values and strides."""
    results = []
    for sample in inputs_of(info, training=True):
        x = sample.forward_input.args[0]
        module = build(info, sample, training=True)
        module(x)
        rank = module.weight.dim()
        if rank not in (4, 5) or x.dim() != rank:
            continue  # these formats are of batches of images and volumes
        memory_format = torch.channels_last if rank == 4 else torch.channels_last_3d
        module = module.to(memory_format=memory_format)
        xla_module = copy.deepcopy(module).to("xla")
        assert [p.stride() for p in xla_module.parameters()] == [p.stride() for p in module.parameters()]
        x = x.detach().to(memory_format=memory_format)
        results.append((run(xla_module, (x.to("xla"),), {}), run(module, (x,), {})))
    torch_xla.sync()
    for actual, expected in results:
        assert_alike(actual, expected)
