"""What the first use of the device brings into a process: PyTorch's Python meta kernels cost a second and 70 MB."""

from __future__ import annotations

from collections.abc import Callable

START = """
import sys, torch, torch_xla, torch.nn.functional as F
from torch import nn
def imported():
    return [name for name in ("sympy", "torch._dynamo", "torch.fx.experimental.symbolic_shapes") if name in sys.modules]
assert not imported(), imported()
"""


def test_arithmetic_imports_nothing(run_python: Callable[..., str]):
    program = """
x = torch.ones(3, 4, device="xla")
y = ((x + 1) * x / 2 - x.t().t()).pow(2).sqrt().exp().log().clamp(0, 1)
y += torch.arange(4, device="xla")
y = torch.where(y > 1, y, 0.0).masked_fill(y == 0, 2).abs()
z = torch.cat([y, y]).sum(0) + y.mean(0) + y.max() + y.std(1).argmax() + torch.stack([y[0], y[1]]).softmax(-1)[0]
z.mul_(2).zero_()
(z @ y.t()).cpu()
print(imported())
"""
    assert run_python(START + program) == "[]"


def test_training_imports_nothing(run_python: Callable[..., str]):
    program = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.embedding, self.norm = nn.Embedding(5, 9), nn.LayerNorm(9)
        self.dropout, self.out = nn.Dropout(0.5), nn.Linear(9, 5)
    def forward(self, x, ids):
        h = self.norm(self.image(x).flatten(2) + self.embedding(ids))
        heads = h.view(2, 4, 3, 3).transpose(1, 2)
        h = F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).reshape(2, 4, 9)
        return self.out(self.dropout(F.gelu(h)))
model = Model().to("xla")
x, ids = torch.rand(2, 3, 8, 8).to("xla"), torch.zeros(2, 4, dtype=torch.long).to("xla")
loss = F.cross_entropy(model(x, ids).flatten(0, 1), torch.zeros(8, dtype=torch.long).to("xla"))
loss.backward()
loss.item()
model.eval()
model(x, ids).cpu()
print(imported())
"""
    assert run_python(START + program) == "[]"
