"""Fourier transforms against CPU, values, gradients and strides, by PyTorch's kernels and by StableHLO alone."""

import pytest
import torch
from parity import assert_same, on_xla

import torch_xla  # noqa: F401

pytestmark = pytest.mark.usefixtures("kernels")

REAL = torch.linspace(-1, 1, 2 * 5 * 6).reshape(2, 5, 6).sin()
COMPLEX = torch.complex(REAL, REAL.flip(1).cos())


@pytest.mark.parametrize("norm", ["forward", "backward", "ortho"])
@pytest.mark.parametrize("name", ["rfft", "rfft2", "rfftn", "ihfft", "fft", "ifft"])
def test_of_real_numbers(name, norm):
    assert_same(lambda x: getattr(torch.fft, name)(x, norm=norm), REAL.clone().requires_grad_())


@pytest.mark.parametrize("norm", ["forward", "backward", "ortho"])
@pytest.mark.parametrize("name", ["fft", "ifft", "fft2", "ifftn", "irfft", "irfft2", "irfftn", "hfft"])
def test_of_complex_numbers(name, norm):
    assert_same(lambda x: getattr(torch.fft, name)(x, norm=norm), COMPLEX.clone().requires_grad_())


@pytest.mark.parametrize("size", [1, 4, 5, 9])
def test_other_lengths(size):
    assert_same(lambda x: torch.fft.fft(x, size, 1), COMPLEX)
    assert_same(lambda x: torch.fft.rfft(x, size, 1), REAL)
    if size > 1:
        assert_same(lambda x: torch.fft.irfft(x, size, 1), COMPLEX)


@pytest.mark.parametrize(
    "name", ["rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn", "hfft", "hfft2", "hfftn", "fft"]
)
def test_strides_are_the_cpus(kernels, name):
    if kernels == "stablehlo":
        pytest.skip("rows, where the CPU's library leaves other orders")
    for x in (COMPLEX, COMPLEX.transpose(0, 1), COMPLEX.permute(2, 0, 1)):
        x = x.real if name.startswith("rfft") else x
        function = getattr(torch.fft, name)
        assert function(on_xla(x)).stride() == function(x).stride()
