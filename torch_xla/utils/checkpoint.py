"""torch.utils.checkpoint, which on `xla` needs nothing special; here for the scripts that import it from this place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.utils.checkpoint


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool = True, **kwargs: Any) -> Any:
    """function(*args), keeping only the arguments for the backward, which computes the rest again."""
    return torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=use_reentrant, **kwargs)
