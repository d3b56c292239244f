"""Memory of a training step with and without gradient checkpointing, by torch.utils.checkpoint as it is.

Prints what the first report printed, the memory that is free after the forward and after the step, and what that report
could not show: the temporaries of the compiled step.
"""

import torch
from torch.utils.checkpoint import checkpoint

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug

WIDTH, BLOCKS, BATCH, STEPS = 128, 8, 1024, 3


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(x), approximate="tanh"))


def train(use_checkpoint: bool) -> None:
    torch.manual_seed(0)
    blocks = torch.nn.ModuleList(Block() for _ in range(BLOCKS)).to("xla")
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        h = torch.ones(BATCH, WIDTH, device="xla", requires_grad=True)
        for block in blocks:
            h = checkpoint(block, h, use_reentrant=False) if use_checkpoint else block(h)
        h.square().mean().backward()
        optimizer.step()
        torch_xla.sync(wait=True)
        if step == STEPS - 1:
            used = xm.get_memory_info("xla:0")["bytes_used"] // 1024
            print(f"step {step}, used memory = {used} kB")
    program = max(torch_xla.debug.executables(), key=lambda program: program["num_nodes"])
    print(f"checkpointing {'on' if use_checkpoint else 'off'}: {program['temp_bytes'] / 1e6:.1f} MB of temporaries")


if __name__ == "__main__":
    train(use_checkpoint=False)
    train(use_checkpoint=True)
