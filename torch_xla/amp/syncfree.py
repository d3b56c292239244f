"""Optimizers that skip an overflown step on the device, without the host having to learn of it.

Use them with torch_xla.amp.GradScaler or torch.amp.GradScaler("xla"), or pass `found_inf` to step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class _SyncFree(torch.optim.Optimizer):
    # torch.amp.GradScaler then sets the attributes found_inf and grad_scale during step, instead of reading found_inf.
    _step_supports_amp_scaling = True

    def step(self, closure: Callable[[], Any] | None = None, found_inf: torch.Tensor | None = None) -> Any:
        """A step that changes nothing where `found_inf`, a scalar tensor, is not 0."""
        # PyTorch's own step refuses the scaler's attributes, and the scaler deletes them afterwards.
        names = ("grad_scale", "found_inf")
        from_scaler: dict[str, Any] = {name: self.__dict__.pop(name) for name in names if name in self.__dict__}
        try:
            if from_scaler.get("grad_scale") is not None:
                self._unscale(from_scaler["grad_scale"])
            found_inf = from_scaler.get("found_inf") if found_inf is None else found_inf
            return super().step(closure) if found_inf is None else self._step_unless(found_inf != 0, closure)
        finally:
            self.__dict__.update(from_scaler)

    def _step_unless(self, skip: torch.Tensor, closure: Callable[[], Any] | None) -> Any:
        before = {id(tensor): tensor.clone() for tensor in self._tensors()}
        result = super().step(closure)
        with torch.no_grad():
            for tensor in self._tensors():
                # State that this step made starts from zero, as if made by the first step that counts.
                old = before.get(id(tensor))
                tensor.copy_(torch.where(skip, torch.zeros_like(tensor) if old is None else old, tensor))
        return result

    def _unscale(self, scale: torch.Tensor) -> None:
        inverse = scale.double().reciprocal().float()
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(inverse)

    def _tensors(self) -> list[torch.Tensor]:
        """Parameters that have a gradient, and all state on their devices."""
        parameters = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        state = [value for p in parameters for value in self.state.get(p, {}).values()]
        return [t for t in [*parameters, *state] if isinstance(t, torch.Tensor)]


class SGD(_SyncFree, torch.optim.SGD):
    """torch.optim.SGD."""


class Adam(_SyncFree, torch.optim.Adam):
    """torch.optim.Adam, its step count on the device."""

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(params, *args, **{"capturable": True, **kwargs})


class AdamW(_SyncFree, torch.optim.AdamW):
    """torch.optim.AdamW, its step count on the device."""

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(params, *args, **{"capturable": True, **kwargs})
