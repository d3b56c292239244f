"""nn.LSTM, nn.GRU and nn.RNN: values and gradients as on the CPU, and programs whose size does not grow with time."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from parity import assert_equal
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import torch_xla
from torch_xla.debug import metrics

OPTIONS = {
    "plain": {},
    "layers": {"num_layers": 2},
    "bidirectional": {"num_layers": 2, "bidirectional": True},
    "batch_first": {"batch_first": True},
    "no_bias": {"bias": False},
}
MODULES = {
    "LSTM": (nn.LSTM, {}),
    "LSTM_projection": (nn.LSTM, {"proj_size": 3}),
    "GRU": (nn.GRU, {}),
    "RNN_tanh": (nn.RNN, {}),
    "RNN_relu": (nn.RNN, {"nonlinearity": "relu"}),
}
STEPS, BATCH, FEATURES, HIDDEN = 7, 4, 3, 5


def make(name: str, option: str = "plain", dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(0)
    module, own = MODULES[name]
    return module(FEATURES, HIDDEN, dtype=dtype, **own, **OPTIONS[option])


def leaves(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, PackedSequence):
        return [tree.data]
    if isinstance(tree, (tuple, list)):
        return [leaf for branch in tree for leaf in leaves(branch)]
    return [tree]


def assert_same_module(module: nn.Module, *inputs: Any, packed: list[int] | None = None) -> None:
    """Outputs, and gradients of parameters and inputs, for a random gradient of every output."""
    results = []
    torch.manual_seed(1)
    weights: list[torch.Tensor] = []
    for device in ("cpu", "xla"):
        here = copy.deepcopy(module).to(device)
        moved = [x.detach().to(device).requires_grad_() for x in inputs]
        arguments: list[Any] = list(moved)
        if packed:
            arguments[0] = pack_padded_sequence(
                moved[0], torch.tensor(packed), batch_first=module.batch_first, enforce_sorted=False
            )
        if isinstance(module, nn.LSTM) and len(arguments) == 3:
            arguments = [arguments[0], tuple(arguments[1:])]
        outputs = leaves(here(*arguments))
        weights = weights or [torch.randn_like(x) for x in outputs]
        sum((x * w.to(device)).sum() for x, w in zip(outputs, weights, strict=True)).backward()
        results.append((outputs, [x.grad for x in moved], [p.grad for p in here.parameters()]))
    assert_equal(results[1], results[0])


def states_of(module: nn.Module, batch: int = BATCH) -> list[torch.Tensor]:
    cells = module.num_layers * (2 if module.bidirectional else 1)
    sizes = [module.proj_size or HIDDEN] + ([HIDDEN] if isinstance(module, nn.LSTM) else [])
    return [torch.randn(cells, batch, size, dtype=torch.float64) for size in sizes]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", MODULES)
def test_padded(name: str, option: str):
    module = make(name, option)
    x = torch.randn(STEPS, BATCH, FEATURES, dtype=torch.float64)
    assert_same_module(module, x.transpose(0, 1) if module.batch_first else x, *states_of(module))


@pytest.mark.parametrize("option", ["bidirectional", "batch_first"])
@pytest.mark.parametrize("name", MODULES)
def test_packed(name: str, option: str):
    module = make(name, option)
    x = torch.randn(STEPS, BATCH, FEATURES, dtype=torch.float64)
    x = x.transpose(0, 1) if module.batch_first else x
    assert_same_module(module, x, *states_of(module), packed=[3, STEPS, 1, 5])


def test_packed_sequences_of_one_length():
    assert_same_module(make("LSTM"), torch.randn(STEPS, 2, FEATURES, dtype=torch.float64), packed=[STEPS, STEPS])


def test_without_states_and_without_a_batch():
    for name in ("LSTM", "GRU"):
        assert_same_module(make(name), torch.randn(STEPS, FEATURES, dtype=torch.float64))


def test_one_step():
    assert_same_module(make("LSTM"), torch.randn(1, BATCH, FEATURES, dtype=torch.float64))


def test_pad_packed_sequence_after_a_layer():
    module = make("GRU").to("xla")
    x = torch.randn(STEPS, BATCH, FEATURES, dtype=torch.float64)
    packed = pack_padded_sequence(x.to("xla"), torch.tensor([7, 5, 5, 2]))
    padded, lengths = pad_packed_sequence(module(packed)[0])
    expected, _ = pad_packed_sequence(module.cpu()(pack_padded_sequence(x, torch.tensor([7, 5, 5, 2])))[0])
    assert lengths.tolist() == [7, 5, 5, 2]
    assert_equal(padded, expected)


@pytest.mark.parametrize("name", ["LSTM", "LSTM_projection", "GRU", "RNN_relu"])
def test_gradients_of_gradients(name: str):
    results = []
    x = torch.randn(3, 2, FEATURES, dtype=torch.float64)
    for device in ("cpu", "xla"):
        module = make(name).to(device)
        here = x.to(device).requires_grad_()
        parameters = list(module.parameters())
        first = torch.autograd.grad(module(here)[0].square().sum(), [here, *parameters], create_graph=True)
        penalty = sum(grad.square().sum() for grad in first)
        results.append((first, torch.autograd.grad(penalty, [here, *parameters])))
    assert_equal(results[1], results[0])


def test_torch_func_takes_the_composed_operators():
    x = torch.randn(3, 2, FEATURES, dtype=torch.float64)
    results = []
    for device in ("cpu", "xla"):
        module = make("LSTM").to(device)
        results.append(torch.func.grad(lambda x, module=module: module(x)[0].sum())(x.to(device)))

    assert_equal(results[1], results[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", MODULES)
def test_low_precision_is_rounded_no_more_than_on_the_cpu(name: str, dtype: torch.dtype):
    torch.manual_seed(0)
    module, own = MODULES[name]
    network = module(8, 16, num_layers=2, bidirectional=True, **own).to(dtype)
    x = torch.randn(12, 32, 8, dtype=dtype)

    def outputs(device: str, dtype: torch.dtype) -> list[torch.Tensor]:
        here = copy.deepcopy(network).to(device, dtype)
        return [y.detach().cpu().double() for y in leaves(here(x.to(device, dtype)))]

    exact = outputs("cpu", torch.float64)

    def errors(device: str) -> list[float]:
        return [(y - e).square().mean().sqrt().item() for y, e in zip(outputs(device, dtype), exact, strict=True)]

    for mine, theirs in zip(errors("xla"), errors("cpu"), strict=True):
        assert 0 < mine <= 1.1 * theirs


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_autocast_keeps_states_in_float32(name: str):
    module = make(name, dtype=torch.float32)
    x = torch.randn(STEPS, BATCH, FEATURES)
    expected = copy.deepcopy(module)(x)[0]
    module.to("xla")
    with torch.autocast("xla", dtype=torch.bfloat16):
        output = module(x.to("xla"))[0]
    output.sum().backward()
    assert output.dtype == torch.float32
    assert all(p.grad.dtype == torch.float32 for p in module.parameters())
    torch.testing.assert_close(output.cpu(), expected, rtol=0.05, atol=0.05)


def test_dropout_between_layers():
    torch.manual_seed(0)
    module = nn.GRU(FEATURES, HIDDEN, num_layers=2, dropout=0.5).to("xla")
    x = torch.randn(STEPS, BATCH, FEATURES).to("xla")
    assert not torch.equal(module(x)[0].cpu(), module(x)[0].cpu())
    module.eval()
    assert torch.equal(module(x)[0].cpu(), module(x)[0].cpu())


@pytest.mark.parametrize("name", MODULES)
def test_programs_do_not_grow_with_the_sequence(name: str):
    module = make(name).to("xla")
    lines = []
    for steps in (16, 256):
        x = torch.randn(steps, BATCH, FEATURES, dtype=torch.float64).to("xla")
        module.zero_grad()
        module(x)[0].sum().backward()
        gradients = [p.grad for p in module.parameters()]
        lines.append(len(torch_xla._XLAC._get_xla_tensors_hlo(gradients).splitlines()))
        torch_xla.sync()
    assert lines[0] == lines[1]


def test_nothing_runs_on_the_host():
    metrics.clear_all()
    module = make("LSTM", "bidirectional").to("xla")
    module(torch.randn(STEPS, BATCH, FEATURES, dtype=torch.float64).to("xla"))[0].sum().backward()
    torch_xla.sync()
    assert metrics.executed_fallback_ops() == []


def test_wrong_weights_raise_what_the_cpu_raises():
    module = make("LSTM")
    x, h, c = (
        torch.randn(3, 2, FEATURES).double(),
        torch.zeros(1, 2, HIDDEN).double(),
        torch.zeros(1, 2, HIDDEN).double(),
    )
    arguments = (list(module.parameters())[:3], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError) as expected:
        torch.lstm(x, (h, c), *arguments)
    parameters = [p.to("xla") for p in arguments[0]]
    with pytest.raises(RuntimeError) as actual:
        torch.lstm(x.to("xla"), (h.to("xla"), c.to("xla")), parameters, *arguments[1:])
    assert str(actual.value).splitlines()[0] == str(expected.value).splitlines()[0]
