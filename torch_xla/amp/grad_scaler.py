"""Loss scaling for float16."""

from __future__ import annotations

from typing import Any

import torch


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler on `xla`.

    With a stock optimizer each step waits for the device, to learn whether a gradient overflowed. The optimizers of
    torch_xla.amp.syncfree decide on the device and never wait; so does `use_zero_grad`, for which an overflown step
    becomes one with gradients of zero (momentum and weight decay still act).
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
        use_zero_grad: bool = False,
    ) -> None:
        super().__init__("xla", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self._use_zero_grad = use_zero_grad

    def _maybe_opt_step(
        self, optimizer: torch.optim.Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> float | None:
        if not self._use_zero_grad:
            return super()._maybe_opt_step(optimizer, optimizer_state, *args, **kwargs)
        overflow = sum(optimizer_state["found_inf_per_device"].values())
        with torch.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.masked_fill_(overflow != 0, 0.0)
        return optimizer.step(*args, **kwargs)
