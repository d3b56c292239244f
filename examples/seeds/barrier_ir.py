"""The recorded graph around an in-place barrier, as the first report about it showed it.

A checkpointed part computed by hand: its input and its output pass through one barrier, and what is computed again
starts from the input behind it.
"""

import torch

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug

torch_xla.debug.set_ir_debug(True)  # as XLA_IR_DEBUG=1 does


def part(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Two convolutions, each followed by a relu."""
    x = torch.relu(torch.nn.functional.conv2d(x, first))
    return torch.relu(torch.nn.functional.conv2d(x, second))


def main() -> None:
    x = torch.randn(2, 8, 14, 14).to("xla")
    weights = [torch.randn(8, 8, 1, 1).to("xla") for _ in range(2)]
    torch_xla.sync()
    out = part(x, *weights)
    xm.optimization_barrier_([x, out])
    again = part(x, *weights)
    print(torch_xla.debug.tensors_text([out, again]))


if __name__ == "__main__":
    main()
