"""What the comparison of operators with the CPU knows of: the one table of differences, and operators left out.

Results that are as near to float64's as the CPU's need no row (operator_comparison.py).

A row names operators, dtypes ("*" is all), the kinds of checks that differ, and why. Kinds: value (also of strided
inputs), stride, error (the CPU refuses), inplace, out, warning, method, gradient, gradgrad, error-inputs.
"""

from __future__ import annotations

import dataclasses
import functools
import re

import torch_xla


@dataclasses.dataclass(frozen=True)
class Row:
    operators: str
    kinds: str
    reason: str
    dtypes: str = "*"
    is_pure: bool = False  # only where programs are StableHLO alone


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

_HALF = "bfloat16 float16"
_INTEGERS = "bool int16 int32 int64 int8 uint8"

_HALF_VALUE = "a sum of a few terms, rounded elsewhere. Measured: 3 times as far from float64's as the CPU's"
_HALF_GRADIENTS = "rounded at other places of a fused program; sums cancel. Measured: up to 10 units in the last place"
_STRIDES = "rows, where LAPACK and MKL leave columns"
_TIES = "which of equal elements comes first is unspecified, and the CPU's choice depends on its algorithm"

DIFFERENCES = [
    # Results.
    Row("native_batch_norm _native_batch_norm_legit", "value", "the saved mean of an evaluation is empty on CPU alone"),
    Row(
        "native_batch_norm _native_batch_norm_legit _batch_norm_with_update native_layer_norm",
        "value",
        "statistics of half types are float32, as on other accelerators",
        _HALF,
    ),
    Row(
        "nn.functional.ctc_loss",
        "gradient",
        "rounded elsewhere. Measured: up to 1.7e-4 relative, less than either differs from float64",
        "float32",
    ),
    Row("complex view_as_complex", "value", "XLA has no type complex32", "float16"),
    Row(
        "sort argsort msort mode topk kthvalue",
        "value out method gradient",
        _TIES,
        f"{_HALF} {_INTEGERS}",
        is_pure=True,
    ),
    Row(
        "linspace linspace.tensor_overload logspace logspace.tensor_overload",
        "out",
        "of 0 steps is made empty",
        is_pure=True,
    ),
    Row("nn.functional.linear_cross_entropy.chunked_none", "value", _HALF_VALUE, _HALF),
    Row(
        "nn.functional.linear_cross_entropy.chunked",
        "value",
        "logits that cancel, rounded elsewhere. Measured: 7 % of a loss of 0.13",
        _HALF,
    ),
    Row("logspace logspace.tensor_overload", "value", "10 to a rounded power. Measured: 2.6e-2 relative", "bfloat16"),
    Row("nn.functional.poisson_nll_loss", "value", "a sum of terms of 1e3 that cancel. Measured: 25 units", "uint8"),
    Row("special.hermite_polynomial_he", "value", "a recursion that cancels. Measured: 3e-5 relative", "float32"),
    Row("nn.functional.avg_pool3d nn.functional.gelu narrow_copy", "out", "the CPU leaves a strided out= unwritten"),
    Row("special.bessel_j0 special.bessel_y1", "value out", "3e-7 absolute near zeros", "float64"),
    Row(
        "nn.functional.conv2d", "value", "a sum of 12 products of up to 1e2 that cancel. Measured: 1.4e-5", "complex64"
    ),
    Row("__rpow__", "value", "a complex power of size 7e8. Measured: 1.6e-6 relative", "complex64"),
    Row("logcumsumexp", "gradient gradgrad", "PyTorch's formula cancels. Measured: 5e-3", is_pure=True),
    Row("fft.hfft fft.hfft2 fft.hfftn", "value out", "1 unit of the largest element, of 2e2", "float32", is_pure=True),
    Row("linalg.householder_product", "gradgrad", "ill-conditioned. Measured: 1 % of the largest", "float32 complex64"),
    Row(
        "linalg.eigh linalg.svd svd",
        "value gradient gradgrad",
        "vectors are unique but for their sign, or the basis of equal values: the algorithm chooses",
        is_pure=True,
    ),
    Row("erfinv", "gradgrad", "ill-conditioned beside 1. Measured: 20 % above the tolerance"),
    Row(
        "corrcoef dist logaddexp nn.functional.cosine_embedding_loss nn.functional.cosine_similarity "
        "nn.functional.normalize scatter_reduce.prod",
        "gradient gradgrad",
        _HALF_GRADIENTS,
        _HALF,
    ),
    # Strides.
    Row(
        "fft.ifft fft.ihfft fft.rfft2 fft.rfftn fft.irfft fft.irfft2 fft.irfftn fft.hfft fft.hfft2 fft.hfftn",
        "stride",
        _STRIDES,
        is_pure=True,
    ),
    Row("linalg.lstsq linalg.lstsq.grad_oriented", "stride", _STRIDES),
    Row("geqrf svd_lowrank pca_lowrank", "stride", _STRIDES, is_pure=True),
    Row("cholesky_inverse", "stride", "the CPU gives an out= tensor without elements other strides"),
    # Errors.
    Row("gather scatter scatter_add", "error-inputs", "indices out of range are clamped or ignored", is_pure=True),
    Row("masked_fill", "error-inputs", "a value that the dtype cannot hold is converted", is_pure=True),
    Row("multinomial", "error-inputs", "the CPU words the same refusal by algorithm"),
]


@dataclasses.dataclass(frozen=True)
class MutationRow:
    operators: str  # "*" is all; a name without a variant is all its variants
    pattern: str  # found in what test_operator_mutations.py says of a difference
    reason: str


KNOWN_MUTATIONS = [
    MutationRow(
        "*",
        r"xla: no error; CPU: NotImplementedError: .* not implemented for '(Half|BFloat16)'",
        "accelerators have the kernels of half types that the CPU lacks",
    ),
    MutationRow(
        "as_strided_scatter atleast_1d atleast_2d atleast_3d broadcast_tensors diagonal_scatter expand_as narrow "
        "reshape_as resize_as_ select_scatter slice_scatter to view_as",
        r"on the CPU: no error",
        "sizes are all that is read of it, or it is copied: PyTorch takes it on any device",
    ),
    MutationRow(
        "_unsafe_masked_index _unsafe_masked_index_put_accumulate index_put",
        r"on the CPU: no error",
        "indices may be on the CPU, like those of x[indices]",
    ),
    MutationRow("resize_", r"negative dimension .* integer multiplication overflow", "the same refusal, found later"),
    MutationRow(
        "nn.functional.normalize norm",
        r"xla: \w+: (norm\(\)|only valid string values)|dim must be a 2-tuple|cannot compute the -inf norm on",
        "torch.norm of devices that PyTorch's Python does not list is another operator, with words of its own",
    ),
    MutationRow(
        "addbmm addmm baddbmm addmv",
        r"\['(alpha|beta)'\] as (nan|inf): ",
        "whether BLAS multiplies the operands or the sum is unspecified, and so what becomes of infinity",
    ),
    MutationRow(
        "addmv", r"with an empty first dimension: \[0\]", "the CPU forgets to broadcast a result of no elements"
    ),
    MutationRow(
        "_softmax_backward_data", r"argument \[2\] as", "the CPU's kernel misreads a dtype that is not its own"
    ),
    MutationRow("ldexp", r"\"ldexp_cpu_exp\" not implemented for 'Bool'", "a kernel that PyTorch has on the CPU alone"),
    MutationRow(
        "linalg.lu_solve lu_solve lu_unpack",
        r"(Pivots given to lu_solve|pivots passed to lu_unpack) must",
        "PyTorch looks at the values of pivots on the CPU alone",
    ),
    MutationRow(
        "native_group_norm", r"of bfloat16: .* torch.bfloat16 xla:0, not", "statistics where a half type is mixed"
    ),
    MutationRow(
        "_upsample_bilinear2d_aa",
        r"\['output_size'\]\[1\] as True",
        "the CPU's kernel repeats the first row where the result is one element wide",
    ),
    MutationRow(
        "triangular_solve",
        r"input with an empty last dimension: Tensor-likes",
        "the CPU leaves the copy of the matrix unwritten when there is nothing to solve",
    ),
    MutationRow("native_dropout_backward", r"argument \[1\] as (nan|inf)", "dropped elements are 0 whatever the scale"),
    MutationRow("grid_sampler_2d grid_sampler_3d", r"argument \[[12]\] as", "numbers of modes that there are not"),
    MutationRow("nn.functional.ctc_loss", r"on the CPU: no error", "targets may be on the CPU"),
    MutationRow("histc", r"xla: no error; CPU: .*not implemented for", "other accelerators count integers"),
    MutationRow("_segment_reduce", r"\['(lengths|offsets)'\] with", "without a result nothing is computed"),
    MutationRow(
        "linalg.vector_norm",
        r"\['ord'\] as (100|4611686018427387904): .* but got inf",
        "powers overflow float32, as on other accelerators; the CPU adds them in float64",
    ),
    MutationRow("special.bessel_j1", r"input of float64: ", "3e-7 absolute beside a zero"),
    MutationRow(
        "nn.functional.linear nn.functional.multi_head_attention_forward nn.functional.linear_cross_entropy",
        r"(m1 and m2|mat1|mat2|The expanded size of|argument \[1\] with a dimension more)",
        "linear is composed of other operators, whose words differ",
    ),
    MutationRow("index_add", r"CPU: IndexError: index out of range in self", "words for some dimensions and layouts"),
    MutationRow(
        "nn.functional.embedding_bag",
        r"CPU: RuntimeError: (Expected |Index |offsets)|argument \[0\] of bool",
        "the words of the CPU's kernels for indices and offsets depend on the mode, and some do not look",
    ),
    MutationRow(
        "nonzero_static", r"\['size'\] as 4611686018427387904", "sizes whose product XLA cannot count, beside one of 0"
    ),
    MutationRow("resize_ resize_as_", r": Tensor-likes", "new elements are whatever memory held"),
    MutationRow("unravel_index", r"xla: RuntimeError: ZeroDivisionError", "found by the program, in C++"),
    MutationRow("masked.norm", r"argument \[0\] as nan", "the CPU's kernel forgets an order that is no number"),
    MutationRow("polygamma special.polygamma", r"as 4611686018427387904: Tensor-likes", "infinity times zero"),
]

# What ends the process, or never ends, in PyTorch's CPU kernels, and so cannot be compared.
CRASHES_CPU = [
    MutationRow("lu_unpack", r"argument \[0\] ", "pivots of another number than rows are read beyond their end"),
    MutationRow(
        "native_batch_norm _native_batch_norm_legit _batch_norm_with_update",
        r"argument \[[0-4]\] with|negated",
        "weights and statistics of another size than the channels are read beyond their end, or when there are none",
    ),
    MutationRow("nn.functional.embedding_bag", r"\['offsets'\] without elements", "the maximum of no bag is read"),
    MutationRow("_segment_reduce.offsets", r"input with", "offsets beyond the data are not looked at"),
    MutationRow("nn.functional.max_pool1d", r"\['kernel_size'\]\[0\] as 4611686018427387904", "counts to there"),
]

# What the older CPU plugin (xla-cpu-pjrt 0.0.1) does otherwise, and tests allow there by these names.
OLDER_PLUGIN = {
    "barrier": "is dropped before equal computations are merged, so programs guard one by some more operations "
    "(docs/checkpointing.md), which their StableHLO shows",
    "erf": "of float32 ends 3 * 2^-24 before 1. So `gelu` of -infinity is -infinity, where eager PyTorch has NaN, and "
    "of -30 it is -2.7e-6, where eager has -0",
    "sums": "over space of images are one chain of additions. Measured: 17 times as far from float64's as the CPU's",
}


def differs_on_older_plugin(name: str) -> bool:
    """Whether the tests run on that plugin, which `name` of OLDER_PLUGIN is about."""
    assert name in OLDER_PLUGIN
    return torch_xla._XLAC.plugin_description().startswith("cpu|cpu|0.81|")


@functools.cache
def reasons_of(operator: str, dtype: str, are_pure: bool) -> dict[str, str]:
    """Reasons by kind of check, of the rows of an operator and dtype."""
    return {
        kind: row.reason
        for row in DIFFERENCES
        if are_pure >= row.is_pure
        and operator in row.operators.split()
        and (row.dtypes == "*" or dtype in row.dtypes.split())
        for kind in row.kinds.split()
    }


def allowed(operator: str, dtype: str) -> dict[str, str]:
    """Those of the programs that the tests run."""
    return reasons_of(operator, dtype, are_pure=not torch_xla._XLAC.host_kernels_on())


def _has_row(rows: list[MutationRow], operator: str, text: str) -> bool:
    def is_about(row: MutationRow) -> bool:
        names = row.operators.split()
        return row.operators == "*" or operator in names or operator.rpartition(".")[0] in names

    return any(is_about(row) and re.search(row.pattern, text) for row in rows)


def is_known_mutation(operator: str, text: str) -> bool:
    return _has_row(KNOWN_MUTATIONS, operator, text)


def crashes_cpu(operator: str, mutation: str) -> bool:
    return _has_row(CRASHES_CPU, operator, mutation)
