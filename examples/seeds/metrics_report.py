"""Twenty checkpointed training steps, then the metrics report of the first report about the barrier."""

import torch
from torch.utils.checkpoint import checkpoint

import torch_xla
import torch_xla.debug.metrics as met


def main() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        x = torch.randn(32, 64, device="xla", requires_grad=True)
        checkpoint(model, x, use_reentrant=False).square().mean().backward()
        optimizer.step()
        torch_xla.sync(wait=True)
    print(met.metrics_report())


if __name__ == "__main__":
    main()
