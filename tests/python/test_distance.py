"""Distances between the rows of one matrix, and interpolation that widens its filter."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from parity import assert_same


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("rows", [1, 2, 3, 70])
def test_pdist(rows: int, p: float):
    torch.manual_seed(0)
    assert_same(lambda x: F.pdist(x, p), torch.randn(rows, 4, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_antialiased_interpolation(mode: str, align_corners: bool):
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        image = torch.randn(2, 3, 13, 9, dtype=dtype, requires_grad=True)
        for size in ((5, 4), (20, 17), (13, 9), (1, 1), (7, 18)):
            assert_same(
                lambda x, size=size: F.interpolate(x, size, mode=mode, antialias=True, align_corners=align_corners),
                image,
            )
