"""Mixed precision: torch.autocast("xla") and a gradient scaler, under the names that scripts for XLA use."""

from __future__ import annotations

import torch

from . import syncfree
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "syncfree"]


class autocast(torch.autocast):
    """torch.autocast on `xla`, by default to bfloat16.

    >>> with torch_xla.amp.autocast(torch_xla.device()):
    ...     loss = loss_function(model(images), labels)
    """

    def __init__(
        self,
        device: torch.device | str = "xla",
        enabled: bool = True,
        dtype: torch.dtype | None = None,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__(torch.device(device).type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
