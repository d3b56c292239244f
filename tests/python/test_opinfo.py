"""Every operator that PyTorch's own test suite describes (OpInfo): values, gradients, shapes and dtypes equal CPU's.

./dev opinfo NAME runs the operators whose name contains NAME.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
import torch
from parity import on_xla
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree

import torch_xla

pytestmark = pytest.mark.slow

SAMPLES = 4
# Programs fuse and reorder: 1e-4 is what PyTorch's own device tests allow most float32 operators.
TOLERANCE = 1e-4

# Their numbers come from a generator, whose law but not whose sequence equals CPU's: geometry is compared.
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "nn.functional.alpha_dropout",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout.with_train", "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d", "nn.functional.multi_head_attention_forward", "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention", "normal", "normal.in_place", "normal.number_mean", "pca_lowrank",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "svd_lowrank", "uniform",
}  # fmt: skip
# Contents are whatever memory held.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# What these ask for does not exist on a strided tensor of the device xla; other devices refuse some of it too.
NOT_FOR_XLA = {
    "_native_batch_norm_legit": "the saved mean of an evaluation is empty on the CPU alone",
    "as_strided.partial_views": "views of a larger storage, which moving the sample does not move",
    "chalf": "XLA has no type complex32",
    "jiterator_2inputs_2outputs": "compiles CUDA code",
    "jiterator_4inputs_with_extra_args": "compiles CUDA code",
    "jiterator_binary": "compiles CUDA code",
    "jiterator_binary_return_by_ref": "compiles CUDA code",
    "jiterator_unary": "compiles CUDA code",
    "native_batch_norm": "the saved mean of an evaluation is empty on the CPU alone",
    "sparse.mm.reduce": "sparse tensors",
    "sparse.sampled_addmm": "sparse tensors",
    "tensor_split": "PyTorch wants the tensor of indices on the CPU, for any device",
    "to_sparse": "sparse tensors",
}


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def moved(tree: Any) -> Any:
    """The same arguments with tensors on xla, and xla where they name the device."""

    def rename(leaf: Any) -> Any:
        return "xla" if leaf == "cpu" or (isinstance(leaf, torch.device) and leaf.type == "cpu") else leaf

    return pytree.tree_map(lambda leaf: leaf if isinstance(leaf, torch.Tensor) else rename(leaf), on_xla(tree))


def gradients_of(outputs: Any, inputs: Any) -> list[torch.Tensor | None]:
    """Gradients of the sum of every differentiable output for every input that requires one."""
    roots = [x.abs().sum() if x.is_complex() else x.sum() for x in tensors_of(outputs) if x.requires_grad]
    leaves = [x for x in tensors_of(inputs) if x.requires_grad]
    return list(torch.autograd.grad(roots, leaves, allow_unused=True)) if roots and leaves else []


def assert_alike(actual: Any, expected: Any, compare_values: bool) -> None:
    pairs = zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=True)
    for a, e in pairs:
        if not isinstance(e, torch.Tensor):
            assert a == e or not compare_values
            continue
        assert (a.shape, a.dtype, a.device.type) == (e.shape, e.dtype, "xla")
        if compare_values:
            a, e = (x.detach().cpu() for x in (a, e))
            torch.testing.assert_close(a, e, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def operators() -> list[OpInfo]:
    return [op for op in op_db if torch.float32 in op.dtypes and full_name(op) not in NOT_FOR_XLA]


@pytest.mark.parametrize("op", operators(), ids=full_name)
def test_equals_cpu(op: OpInfo) -> None:
    compare = full_name(op) not in RANDOM | UNINITIALISED
    differentiable = op.supports_autograd and compare
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=differentiable), SAMPLES):
            inputs = (sample.input, sample.args, sample.kwargs)
            xla_inputs = moved(inputs)
            expected = op(inputs[0], *inputs[1], **inputs[2])
            actual = op(xla_inputs[0], *xla_inputs[1], **xla_inputs[2])
            results.append((actual, expected))
            if differentiable:
                results.append((gradients_of(actual, xla_inputs), gradients_of(expected, inputs)))
    torch_xla.sync()  # one program for all samples
    for actual, expected in results:
        assert_alike(actual, expected, compare)
