"""Lets `torch.nn.attention.flex_attention` take tensors on `xla`: it keeps the devices that it supports in a list."""

from __future__ import annotations

import functools

import torch
from torch.nn.attention import flex_attention


def install() -> None:
    """Called once. A release of PyTorch without the private function has other rules, which stay."""
    validate_device = getattr(flex_attention, "_validate_device", None)
    if validate_device is None:
        return

    @functools.wraps(validate_device)
    def validate_other_device(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != "xla":
            validate_device(query, key, value)

    flex_attention._validate_device = validate_other_device
