"""torch.xla: what PyTorch itself looks for on a device module, and the parts of PyTorch that use it."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_xla
from torch_xla.amp import GradScaler, autocast, syncfree

DROPOUT = nn.Dropout(0.5)


def test_devices():
    assert torch.get_device_module("xla") is torch.xla
    assert torch.xla.is_available() and torch.xla.device_count() >= 1
    torch.ones(1, device="xla").cpu()
    assert torch.xla.is_initialized()
    assert torch.xla.current_device() == 0
    with torch.xla.device("xla:0"), torch.xla.device(-1), torch.xla.device_of(torch.ones(1)):
        assert torch.xla.current_device() == 0
    torch.xla.set_device(0)
    assert torch.xla.get_device_properties().platform == torch_xla._XLAC.platform()
    assert torch.xla.get_device_name(0) == torch.xla.get_device_properties("xla:0").name != ""
    with pytest.raises(ValueError, match="expected an xla device, got cpu"):
        torch.xla.set_device("cpu")
    assert not torch.xla._is_in_bad_fork()


def test_torch_manual_seed_seeds_xla():
    torch.manual_seed(7)
    first = torch.rand(4, device="xla").cpu()
    second = torch.rand(4, device="xla").cpu()
    torch.manual_seed(7)
    assert torch.equal(torch.rand(4, device="xla").cpu(), first)
    assert not torch.equal(first, second)
    assert torch.xla.initial_seed() == 7
    torch.seed()
    assert torch.xla.initial_seed() == torch.initial_seed()
    torch.manual_seed(-1)
    assert torch.xla.initial_seed() == 2**64 - 1


def test_rng_state_is_saved_and_restored_without_executing(compiles):
    torch.xla.manual_seed_all(3)
    before = compiles()
    state = torch.xla.get_rng_state()
    assert (state.dtype, state.shape, state.device.type) == (torch.uint8, (16,), "cpu")
    assert compiles() == before
    first = torch.randn(5, device="xla").cpu()
    torch.xla.set_rng_state(state)
    assert torch.equal(torch.randn(5, device="xla").cpu(), first)
    torch.xla.set_rng_state_all(torch.xla.get_rng_state_all())
    with pytest.raises(RuntimeError, match="wrong size"):
        torch.xla.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(TypeError, match="ByteTensor"):
        torch.xla.set_rng_state(torch.zeros(16))


def test_numbers_do_not_depend_on_where_graphs_are_cut():
    torch.manual_seed(1)
    whole = [torch.rand(3, device="xla") for _ in range(3)]
    torch.manual_seed(1)
    parts = []
    for _ in range(3):
        parts.append(torch.rand(3, device="xla"))
        torch_xla.sync()
    for a, b in zip(whole, parts, strict=True):
        assert torch.equal(a.cpu(), b.cpu())


def test_fork_rng():
    torch.manual_seed(5)
    with torch.random.fork_rng(device_type="xla"):
        inside = torch.rand(3, device="xla").cpu()
    assert torch.equal(torch.rand(3, device="xla").cpu(), inside)


def test_generator():
    generator = torch.Generator(device="xla")
    assert generator.device.type == "xla"
    generator.manual_seed(11)
    assert generator.initial_seed() == 11
    first = torch.randn(4, device="xla", generator=generator).cpu()
    torch.randn(4, device="xla")
    state = generator.get_state()
    second = torch.randn(4, device="xla", generator=generator).cpu()
    generator.manual_seed(11)
    assert torch.equal(torch.randn(4, device="xla", generator=generator).cpu(), first)
    generator.set_state(state)
    assert torch.equal(torch.randn(4, device="xla", generator=generator).cpu(), second)
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(4, device="xla", generator=torch.Generator())


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_replays_the_dropout_mask(use_reentrant):
    torch.manual_seed(0)
    weight = torch.ones(64, 64, device="xla", requires_grad=True)
    x = torch.ones(8, 64, device="xla", requires_grad=True)

    def block(x):
        return DROPOUT(x * weight.sum(0)).pow(2)

    torch.manual_seed(2)
    block(x).sum().backward()
    expected = x.grad.cpu(), weight.grad.cpu()
    x.grad = weight.grad = None
    torch.manual_seed(2)
    checkpoint(block, x, use_reentrant=use_reentrant).sum().backward()
    assert torch.equal(x.grad.cpu(), expected[0])
    assert torch.allclose(weight.grad.cpu(), expected[1])


def test_memory_accounting():
    torch_xla.sync(wait=True)
    torch.xla.reset_peak_memory_stats()
    before = torch.xla.memory_allocated()
    x = torch.ones(1000, 250).to("xla")
    torch_xla.sync(wait=True)
    assert torch.xla.memory_allocated() == before + 1_000_000
    assert torch.xla.max_memory_allocated() >= before + 1_000_000
    del x
    torch_xla.sync(wait=True)
    assert torch.xla.memory_allocated() == before
    assert torch.xla.max_memory_allocated() >= before + 1_000_000
    torch.xla.reset_peak_memory_stats()
    assert torch.xla.max_memory_allocated() == before
    torch.xla.empty_cache()
    assert torch.xla.memory_stats()["allocated_bytes.all.current"] == before == torch.xla.memory_reserved()


def test_streams_and_events():
    stream = torch.xla.current_stream()
    assert stream == torch.xla.default_stream() == torch.xla.Stream("xla:0")
    start, end = torch.xla.Event(enable_timing=True), torch.xla.Event(enable_timing=True)
    with torch.xla.stream(stream):
        start.record()
        x = torch.ones(100, device="xla") * 2
        end.record(stream)
    assert end.query() and start.elapsed_time(end) > 0
    stream.wait_event(end)
    stream.wait_stream(torch.xla.Stream())
    stream.record_event().synchronize()
    torch.xla.synchronize()
    assert x.sum().item() == 200
    with pytest.raises(RuntimeError, match="enable_timing"):
        torch.xla.Event().elapsed_time(end)


def test_an_event_of_pytorch_waits_for_what_was_recorded():
    event = torch.Event("xla")
    x = torch.ones(100, device="xla") * 2
    event.record()
    event.synchronize()
    assert torch_xla._XLAC.pending_nodes(0) == 0 and event.query()
    assert x.sum().item() == 200


def test_autocast_runs_matrix_products_in_bfloat16_and_losses_in_float32():
    layer = nn.Linear(4, 3).to("xla")
    x = torch.randn(2, 4, device="xla")
    with torch.autocast("xla", dtype=torch.bfloat16):
        y = layer(x)
        loss = nn.functional.mse_loss(y, torch.zeros(2, 3, device="xla"))
        assert y.dtype == torch.bfloat16 and loss.dtype == torch.float32
        assert (x + 1).dtype == torch.float32
        assert torch.softmax(y, 1).dtype == torch.float32
        with torch.autocast("xla", enabled=False):
            assert layer(x).dtype == torch.float32
    assert layer(x).dtype == torch.float32
    loss.backward()
    assert layer.weight.grad.dtype == torch.float32
    with autocast("xla"):
        assert layer(x).dtype == torch.bfloat16
    with autocast(torch_xla.device(), dtype=torch.float16):
        assert (x @ x.t()).dtype == torch.float16


@pytest.mark.parametrize(
    "make", [lambda: torch.amp.GradScaler("xla"), GradScaler, lambda: GradScaler(use_zero_grad=True)]
)
@pytest.mark.parametrize("optimizer_class", [torch.optim.SGD, syncfree.SGD, syncfree.Adam, syncfree.AdamW])
def test_grad_scaler_skips_a_step_that_overflows(make, optimizer_class):
    parameter = nn.Parameter(torch.ones(3, device="xla"))
    optimizer = optimizer_class([parameter], lr=0.1)
    scaler = make()
    scale = scaler.get_scale()
    scaler.scale(parameter.sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [1, 1, 1]
    assert scaler.get_scale() == scale / 2
    optimizer.zero_grad()
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(parameter.detach().cpu(), torch.full((3,), 0.9), rtol=0, atol=0.01)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_syncfree_optimizers_equal_the_stock_ones(name):
    def train(optimizer_class, **options):
        parameter = nn.Parameter(torch.linspace(1, 2, 5, device="xla"))
        optimizer = optimizer_class([parameter], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            parameter.pow(2).sum().backward()
            optimizer.step()
        return parameter.detach().cpu()

    options = {"momentum": 0.9} if name == "SGD" else {}
    actual, expected = (train(getattr(module, name), **options) for module in (syncfree, torch.optim))
    # With its step count on the device, Adam rounds in another order.
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.uint8, torch.bool]
)
def test_deterministic_algorithms_fill_what_nobody_wrote(dtype):
    torch.use_deterministic_algorithms(True)
    try:
        for make in (
            lambda d: torch.empty(2, 3, dtype=dtype, device=d),
            lambda d: torch.empty_like(torch.zeros(2, 3, dtype=dtype, device=d).t()),
            lambda d: torch.empty_strided((2, 3), (1, 2), dtype=dtype, device=d),
            lambda d: torch.zeros(2, dtype=dtype, device=d).resize_(2, 3),
            lambda d: torch.zeros(6, dtype=dtype, device=d).resize_(2),
        ):
            torch.testing.assert_close(make("xla").cpu(), make("cpu"), equal_nan=True)
    finally:
        torch.use_deterministic_algorithms(False)
