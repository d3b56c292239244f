"""The StableHLO around a barrier, and what XLA keeps of it: a computation on both sides stays twice.

Prints the module's lines at the barrier, then how many tanh operations the optimized program has without and with it.
"""

import torch

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug


def count_tanh(with_barrier: bool) -> int:
    """Of the optimized program that computes the same thing twice."""
    x = torch.randn(64, 64).to("xla")
    torch_xla.sync()
    first = torch.tanh(x @ x)
    again = xm.optimization_barrier([x, first])[0] if with_barrier else x
    second = torch.tanh(again @ again)
    torch_xla.sync(wait=True)
    del first, second
    return torch_xla.debug.optimized_hlo(torch_xla.debug.executables()[-1]["id"]).count(b"tanh")


def main() -> None:
    x = torch.randn(4, 4).to("xla")
    torch_xla.sync()
    barred = xm.optimization_barrier([x, torch.tanh(x)])
    module = torch_xla.debug.tensors_hlo([torch.tanh(barred[0]) + barred[1]])
    print("\n".join(line.strip() for line in module.splitlines() if "optimization_barrier" in line or "tanh" in line))
    without, with_barrier = count_tanh(False), count_tanh(True)
    print(f"tanh in the optimized program: {'more often' if with_barrier > without else 'as often'} with the barrier")


if __name__ == "__main__":
    main()
