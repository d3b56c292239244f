"""Tensor.new of sparse `xla` tensors, which torch.optim.SparseAdam calls.

PyTorch implements it for a list of its own devices, to which a backend outside its tree cannot add itself.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def install() -> None:
    """Called once."""
    original = torch.Tensor.new

    @functools.wraps(original)
    def new(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.layout == torch.sparse_coo and self.device.type == "xla":
            return _new_sparse(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    torch.Tensor.new = new  # type: ignore[assignment, method-assign]


def _new_sparse(self: torch.Tensor, *args: Any, device: Any = None) -> torch.Tensor:
    """(), (size) or (indices, values, size of the result if it is not the smallest)."""
    device = self.device if device is None else device
    if len(args) > 1 and isinstance(args[0], torch.Tensor):
        # Told, since PyTorch warns where it is not.
        is_checked = torch.sparse.check_sparse_tensor_invariants.is_enabled()
        return torch.sparse_coo_tensor(*args, dtype=self.dtype, device=device, check_invariants=is_checked)
    size = (0,) if not args else args[0] if isinstance(args[0], (tuple, list)) else args
    return torch.empty(size, dtype=self.dtype, layout=torch.sparse_coo, device=device)
