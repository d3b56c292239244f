"""Low precision stays low: no cast around the transposes of nn.Linear, and only autocast's own casts under autocast."""

from __future__ import annotations

import re

import torch
from torch import nn

from torch_xla import _XLAC


def converts_between(text: str, source: str, target: str) -> int:
    """Converts of tensors with dimensions from one dtype to another in StableHLO text."""
    pattern = rf"stablehlo\.convert [^:]*: \(tensor<(?:\d+x)+{source}>\) -> tensor<(?:\d+x)+{target}>"
    return len(re.findall(pattern, text))


def gradients_text(dtype: torch.dtype, autocast: bool) -> str:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4)).to(device="xla", dtype=dtype)
    x = torch.randn(3, 8, device="xla", dtype=dtype, requires_grad=True)
    with torch.autocast("xla", dtype=torch.bfloat16, enabled=autocast):
        y = model(x)
    y.backward(torch.ones_like(y))
    return _XLAC._get_xla_tensors_hlo([y, x.grad, *(p.grad for p in model.parameters())])


def test_pure_bfloat16_has_no_float32_around_linear() -> None:
    text = gradients_text(torch.bfloat16, autocast=False)
    assert text.count("stablehlo.dot_general") == 6
    # The bias gradients are sums, which accumulate in float32 as on CPU: one convert each way for each of the two.
    assert converts_between(text, "bf16", "f32") == 2
    for line in text.splitlines():
        if "stablehlo.dot_general" in line or "stablehlo.transpose" in line:
            assert "f32" not in line, line


def test_autocast_casts_what_cpu_autocast_casts() -> None:
    text = gradients_text(torch.float32, autocast=True)
    assert text.count("stablehlo.dot_general") == 6
    # The input, two weights, two biases; and the two bias gradients, whose sums accumulate in float32.
    assert converts_between(text, "f32", "bf16") == 5 + 2
    for line in text.splitlines():
        if "stablehlo.dot_general" in line:
            assert "f32" not in line, line
