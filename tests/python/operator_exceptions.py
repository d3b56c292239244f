"""What the comparison of operators with the CPU knows of: the one table of differences, and operators left out.

A row names operators, dtypes ("*" is all), the kinds of checks that differ, and why. Kinds: value (also of strided
inputs), stride, error (the CPU refuses), inplace, out, method, gradient, gradgrad, error-inputs.
"""

from __future__ import annotations

import dataclasses
import functools


@dataclasses.dataclass(frozen=True)
class Row:
    operators: str
    kinds: str
    reason: str
    dtypes: str = "*"


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

# What these ask for does not exist on the device xla.
NOT_FOR_XLA = {
    "bmm.triton_optimized": "a kernel of CUDA's",
    "chalf": "XLA has no type complex32",
    "jiterator_2inputs_2outputs": "compiles CUDA code",
    "jiterator_4inputs_with_extra_args": "compiles CUDA code",
    "jiterator_binary": "compiles CUDA code",
    "jiterator_binary_return_by_ref": "compiles CUDA code",
    "jiterator_unary": "compiles CUDA code",
    "sparse.mm.reduce": "compressed sparse tensors",
    "sparse.sampled_addmm": "compressed sparse tensors",
    "tensor_split": "PyTorch wants the tensor of indices on the CPU, for any device",
}

_OVERLAP = "overlap of an out= tensor with an input is not refused: values never change under a reader"
_BY_VALUE = "the CPU refuses by the value of an element, which is not known while recording"
_OUT_DTYPE = "an out= tensor of this dtype is converted to, not refused"
_RESIZED = "an out= tensor that the CPU resized gets contiguous strides"

DIFFERENCES = [
    Row("native_batch_norm _native_batch_norm_legit", "value", "the saved mean of an evaluation is empty on CPU alone"),
    Row("native_group_norm", "error", "the CPU's kernel refuses strided inputs"),
    Row("as_strided.partial_views", "error", "the CPU refuses views beyond a storage that a test made too small"),
    Row("gather scatter scatter_add index_add", "error-inputs", _BY_VALUE),
    Row("kthvalue masked_select take cat gather", "error-inputs", _OVERLAP),
    Row("isin angle normal all any", "error", _OUT_DTYPE),
    Row("complex aminmax multinomial", "error-inputs", _OUT_DTYPE),
]


@functools.cache
def allowed(operator: str, dtype: str) -> dict[str, str]:
    """Reasons by kind of check."""
    return {
        kind: row.reason
        for row in DIFFERENCES
        if operator in row.operators.split() and (row.dtypes == "*" or dtype in row.dtypes.split())
        for kind in row.kinds.split()
    }
