"""QR, eigenvalues and singular values, by PyTorch's kernels in the program and by StableHLO alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from parity import assert_equal, assert_same, on_xla

import torch_xla
from torch_xla.debug import metrics

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.complex64: 2e-5}
DTYPES = [torch.float32, torch.complex64]
SHAPES = [(6, 3), (3, 6), (2, 5, 5), (1, 1)]


def matrix(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(shape, dtype=dtype)


def in_one_program(function: Callable[..., Any], cases: list[tuple[Any, ...]]) -> list[Any]:
    """The results of all cases, computed together: compilation is what these tests wait for."""
    results = [tuple(function(*on_xla(list(case)))) for case in cases]
    torch_xla.sync()
    return [tuple(part.cpu() for part in result) for result in results]


def assert_orthonormal(q: torch.Tensor) -> None:
    identity = torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1)
    torch.testing.assert_close(q.mH @ q, identity, rtol=0, atol=TOLERANCE[q.dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(kernels: str, dtype: torch.dtype):
    cases = [(matrix(shape, dtype), mode) for shape in SHAPES for mode in ("reduced", "complete")]
    atol = 10 * TOLERANCE[dtype]
    for (x, mode), (q, r) in zip(cases, in_one_program(torch.linalg.qr, cases), strict=True):
        expected = torch.linalg.qr(x, mode)
        assert (q.shape, r.shape) == (expected.Q.shape, expected.R.shape)
        assert_orthonormal(q)
        torch.testing.assert_close(q @ r, x, rtol=0, atol=atol)
        assert torch.equal(r.triu(), r)
        # Reflections leave no choice of signs.
        torch.testing.assert_close(r, expected.R, rtol=0, atol=atol)


def test_qr_without_q(kernels: str):
    x = matrix((5, 3))
    assert_equal(torch.linalg.qr(x.to("xla"), "r").R, torch.linalg.qr(x, "r").R)


def test_householder_product_and_geqrf(kernels: str):
    x = matrix((6, 4))
    reflectors, scales = torch.geqrf(x.to("xla"))
    assert_equal((reflectors, scales), tuple(torch.geqrf(x)))
    assert_equal(torch.linalg.householder_product(reflectors, scales), torch.linalg.qr(x).Q)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(kernels: str, dtype: torch.dtype):
    cases = [(matrix((4, 4), dtype), "L"), (matrix((1, 1), dtype), "L"), (matrix((3, 5, 5), dtype), "U")]
    found = in_one_program(lambda x, uplo: (*torch.linalg.eigh(x, uplo), torch.linalg.eigvalsh(x, uplo)), cases)
    atol = 20 * TOLERANCE[dtype]
    for (x, triangle), (values, vectors, values_alone) in zip(cases, found, strict=True):
        torch.testing.assert_close(values, torch.linalg.eigh(x, triangle).eigenvalues, rtol=0, atol=atol)
        torch.testing.assert_close(values_alone, values, rtol=0, atol=atol)
        half = x.tril(-1) if triangle == "L" else x.triu(1)
        hermitian = half + half.mH + x.diagonal(dim1=-2, dim2=-1).real.to(dtype).diag_embed()
        torch.testing.assert_close(hermitian @ vectors, vectors * values.unsqueeze(-2), rtol=0, atol=atol)
        identity = torch.eye(x.shape[-1], dtype=dtype).expand(x.shape)
        torch.testing.assert_close(vectors.mH @ vectors, identity, rtol=0, atol=atol)


def assert_singular(cases: list[tuple[torch.Tensor, bool]]) -> None:
    for (x, full), (u, s, vh) in zip(cases, in_one_program(torch.linalg.svd, cases), strict=True):
        expected = torch.linalg.svd(x, full_matrices=full)
        assert (u.shape, s.shape, vh.shape) == (expected.U.shape, expected.S.shape, expected.Vh.shape)
        atol = 20 * TOLERANCE[x.dtype] * max(1.0, x.abs().max().item())
        torch.testing.assert_close(s, expected.S, rtol=20 * TOLERANCE[x.dtype], atol=atol)
        k = s.shape[-1]
        torch.testing.assert_close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], x, rtol=0, atol=atol)
        assert_orthonormal(u)
        assert_orthonormal(vh.mH)


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(kernels: str, dtype: torch.dtype):
    assert_singular(
        [(matrix(shape, dtype), full) for shape in SHAPES for full in (True, False) if full or len(shape) == 2]
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_svd_of_singular_matrices(kernels: str, dtype: torch.dtype):
    factor = matrix((6, 2), dtype)
    of_rank_two = factor @ factor.T
    square = torch.stack([of_rank_two, torch.zeros_like(of_rank_two), torch.eye(6, dtype=dtype)])
    flat = torch.ones(3, 5, dtype=dtype)
    for scale in (1.0, 1e-25, 1e15):
        assert_singular([(square * scale, True), (flat * scale, False)])


def test_svd_keeps_small_singular_values(kernels: str):
    left, right = torch.linalg.qr(matrix((6, 6))).Q, torch.linalg.qr(matrix((6, 6)) + 1).Q
    sizes = torch.tensor([1.0, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10], dtype=torch.float64)
    found = torch.linalg.svdvals(((left * sizes) @ right).to("xla")).cpu()
    torch.testing.assert_close(found, sizes, rtol=0, atol=1e-15)


def test_gradients(kernels: str):
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, s, _ = torch.linalg.svd(x, full_matrices=False)
        values, vectors = torch.linalg.eigh(x.mH @ x)
        return torch.linalg.qr(x).R.abs(), u.abs(), s, values, vectors.abs()

    assert_same(function, matrix((5, 3)).requires_grad_())


def test_composed_operators(kernels: str):
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        norm = torch.linalg.matrix_norm
        return torch.linalg.pinv(x), torch.linalg.matrix_rank(x), torch.linalg.cond(x), norm(x, "nuc"), norm(x, 2)

    assert_same(function, matrix((5, 3)))


def test_nothing_runs_on_the_host(kernels: str):
    metrics.clear_all()
    x = matrix((5, 3)).to("xla")
    torch.linalg.qr(x)
    torch.linalg.svd(x)
    torch.linalg.eigh(x.T @ x)
    torch_xla.sync()
    assert metrics.executed_fallback_ops() == []
    called = {name.removeprefix("ATenInProgram::aten::") for name in metrics.counter_names() if "ATenInProgram" in name}
    assert called == ({"linalg_qr", "_linalg_svd", "_linalg_eigh"} if kernels == "aten" else set())


@pytest.mark.parametrize("kernels", ["aten"], indirect=True)
def test_strides_are_the_cpus(kernels: str):
    """Also of an out= that was empty: LAPACK leaves columns."""
    x = matrix((2, 5, 3))
    reflectors, scales = torch.geqrf(x)
    hermitian = x.mH @ x

    def results(device: str) -> list[torch.Tensor]:
        def outputs(count: int) -> list[torch.Tensor]:
            return [torch.empty(0, dtype=x.dtype, device=device) for _ in range(count)]

        a, h, r, s = (part.to(device) for part in (x, hermitian, reflectors, scales))
        return [
            *torch.linalg.qr(a),
            *torch.linalg.qr(a, out=outputs(2)),
            *torch.geqrf(a),
            torch.linalg.householder_product(r, s),
            torch.linalg.householder_product(r, s, out=outputs(1)[0]),
            *torch.linalg.eigh(h),
            *torch.linalg.eigh(h, out=outputs(2)),
            *torch.linalg.svd(a, full_matrices=False),
            *torch.linalg.svd(a, full_matrices=False, out=outputs(3)),
        ]

    found, expected = results("xla"), results("cpu")
    assert [part.stride() for part in found] == [part.stride() for part in expected]
    assert_equal(found, expected)
