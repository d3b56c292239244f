"""torch_xla, xm, xr and the debug modules: names that programs call exist, and behave as in a world of one replica."""

import ast
import importlib
import io
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.runtime as xr
from torch_xla.debug import profiler
from torch_xla.distributed import fsdp, spmd
from torch_xla.distributed import xla_multiprocessing as xmp

# What accelerate, transformers, Lightning, diffusers, optimum and vLLM call.
NAMES = {
    "torch_xla": (
        "sync device devices device_count manual_seed step compile launch set_custom_compile_options "
        "real_devices __version__"
    ),
    "torch_xla.core.xla_model": (
        "xla_device mark_step wait_device_ops set_rng_state get_rng_state get_xla_supported_devices "
        "xla_real_devices xla_device_hw set_replication is_xla_tensor unlazy add_step_closure optimizer_step "
        "rendezvous mesh_reduce all_reduce REDUCE_SUM REDUCE_MAX all_gather reduce_scatter all_to_all "
        "collective_permute collective_broadcast reduce_gradients save is_master_ordinal master_print "
        "get_ordinal get_local_ordinal xrt_world_size send_cpu_data_to_device get_memory_info "
        "broadcast_master_param get_stablehlo _maybe_convert_to_cpu _fetch_gradients optimization_barrier "
        "optimization_barrier_"
    ),
    "torch_xla.runtime": (
        "device_type set_device_type world_size global_ordinal local_ordinal process_count host_index "
        "use_spmd is_spmd global_runtime_device_count initialize_cache get_num_cached_compilation_graph"
    ),
    "torch_xla.distributed.parallel_loader": "MpDeviceLoader ParallelLoader",
    "torch_xla.distributed.xla_multiprocessing": "spawn MpModelWrapper",
    "torch_xla.distributed.spmd": "Mesh set_global_mesh get_global_mesh mark_sharding ShardingSpec",
    "torch_xla.distributed.fsdp": "XlaFullyShardedDataParallel checkpoint_module",
    "torch_xla.debug": "executables",
    "torch_xla.debug.metrics": (
        "metrics_report short_metrics_report metric_names metric_data counter_names counter_value clear_all"
    ),
    "torch_xla.debug.profiler": "start_server Trace StepTrace trace_detached",
    "torch_xla.amp": "autocast GradScaler syncfree",
    "torch_xla.amp.syncfree": "SGD Adam AdamW",
    "torch_xla.utils.checkpoint": "checkpoint",
    "torch_xla.utils.serialization": "save load",
    "torch_xla._XLAC": (
        "_xla_get_tensor_id _get_xla_tensors_text _get_xla_tensors_hlo _get_xla_tensors_dot _xla_sync_multi "
        "_xla_get_default_device"
    ),
}


@pytest.mark.parametrize("module", NAMES)
def test_names_exist(module):
    found = importlib.import_module(module)
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


def test_the_stub_of_the_bindings_lists_what_there_is():
    from torch_xla import _XLAC

    stub = ast.parse(Path(torch_xla.__file__).with_name("_XLAC.pyi").read_text())
    listed = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert set(listed) == {name for name in vars(_XLAC) if not name.startswith("__")}
    for name, node in listed.items():
        if isinstance(node, ast.ClassDef):
            fields = {name for name in vars(getattr(_XLAC, name)) if not name.startswith("_")}
            assert {item.name for item in node.body} == fields


def test_submodules_are_attributes_after_importing_the_package(run_python):
    program = "import torch_xla; print(torch_xla.debug.executables(), torch_xla.runtime.world_size())"
    assert run_python(program) == "[] 1"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = torch_xla.nothing


def test_devices():
    device = torch.device("xla:0")
    assert torch_xla.device() == torch_xla.device(0) == xm.xla_device() == xr.xla_device() == device
    assert torch_xla.devices()[0] == device and len(torch_xla.devices()) == torch_xla.device_count()
    platform = torch_xla._XLAC.platform().upper()
    assert torch_xla.real_devices()[0] == f"{platform}:0" == xm.xla_real_devices(["xla:0"])[0]
    assert xm.get_xla_supported_devices()[0] == "xla:0" == torch_xla._XLAC._xla_get_default_device()
    assert xm.get_xla_supported_devices(platform) == xm.get_xla_supported_devices()
    assert xm.get_xla_supported_devices("ABACUS") == []
    assert (xm.xla_device_hw("xla:0"), xm.xla_device_hw("cpu")) == (platform, "CPU")
    assert xr.device_type().split(":")[0] in (platform, "GPU") or platform == "CPU"
    with pytest.raises(RuntimeError, match="ABACUS"):
        xm.xla_device(devkind="ABACUS")
    with pytest.raises(RuntimeError, match="the client has started"):
        xr.set_device_type("ABACUS")


def test_is_xla_tensor():
    assert xm.is_xla_tensor(torch.ones(1, device="xla")) and not xm.is_xla_tensor(torch.ones(1))


def test_world_of_one(capsys):
    assert (xm.get_ordinal(), xm.get_local_ordinal(), xm.xrt_world_size(), xm.is_master_ordinal()) == (0, 0, 1, True)
    assert (xr.world_size(), xr.process_count(), xr.process_index(), xr.host_index(), xr.is_spmd()) == (
        1,
        1,
        0,
        0,
        False,
    )
    assert xr.global_runtime_device_count() == xr.addressable_device_count() == torch_xla.device_count()
    assert xm.rendezvous("here", b"payload") == [b"payload"]
    assert xm.mesh_reduce("tag", torch.ones(2, device="xla"), lambda parts: sum(parts).device.type) == "cpu"
    xm.master_print("only", "once")
    assert capsys.readouterr().out == "only once\n"
    xm.set_replication("xla:0", ["xla:0"])
    with pytest.raises(NotImplementedError, match="one process on one device"):
        xm.set_replication("xla:0", ["xla:0", "xla:1"])


def test_collectives_are_identities():
    x = torch.arange(6.0, device="xla").view(2, 3)
    for reduce_type in (xm.REDUCE_SUM, xm.REDUCE_MAX, xm.REDUCE_MIN, xm.REDUCE_MUL):
        assert torch.equal(xm.all_reduce(reduce_type, x).cpu(), x.cpu())
    assert torch.equal(xm.all_reduce(xm.REDUCE_SUM, x, scale=0.5).cpu(), x.cpu() / 2)
    y = x.clone()
    assert xm.all_reduce(xm.REDUCE_SUM, [y], scale=2.0) is None
    assert torch.equal(y.cpu(), x.cpu() * 2)
    for result in (
        xm.all_gather(x, dim=1),
        xm.reduce_scatter(xm.REDUCE_SUM, x, 1.0, scatter_dim=0, shard_count=1),
        xm.all_to_all(x, 0, 1, 1),
        xm.collective_permute(x, [[0, 0]]),
    ):
        assert torch.equal(result.cpu(), x.cpu()) and result.data_ptr() != x.data_ptr()
    assert xm.collective_permute(x, []).abs().sum().item() == 0
    xm.collective_broadcast([x])
    out = torch.empty(2, 3, device="xla")
    assert xm.all_gather(x, output=out) is out and torch.equal(out.cpu(), x.cpu())
    with pytest.raises(ValueError, match="unknown reduce_type 'avg'"):
        xm.all_reduce("avg", x)
    with pytest.raises(IndexError, match="Dimension out of range"):
        xm.all_gather(x, dim=2)
    for call in (
        lambda: xm.all_reduce(xm.REDUCE_SUM, x, groups=[[0, 1]]),
        lambda: xm.reduce_scatter(xm.REDUCE_SUM, x, 1.0, 0, 2),
        lambda: xm.all_to_all(x, 0, 1, 2),
        lambda: xm.collective_permute(x, [[0, 1], [1, 0]]),
        lambda: xm.collective_broadcast([x], root_ordinal=1),
    ):
        with pytest.raises(NotImplementedError, match="one process on one device"):
            call()


def test_optimizer_step_and_gradients():
    parameter = nn.Parameter(torch.ones(2, device="xla"))
    unused = nn.Parameter(torch.ones(2, device="xla"))
    optimizer = torch.optim.SGD([parameter, unused], lr=0.5)
    (parameter * 2).sum().backward()
    assert [g is parameter.grad for g in xm._fetch_gradients(optimizer)] == [True]
    xm.reduce_gradients(optimizer)
    assert xm.optimizer_step(optimizer, barrier=True) is None
    assert torch_xla._XLAC.pending_nodes(0) == 0
    assert parameter.tolist() == [0, 0]
    result = xm.optimizer_step(optimizer, optimizer_args={"closure": lambda: 7})
    assert result == 7


def test_sync_and_unlazy():
    x = torch.ones(2, device="xla") + 1
    assert torch_xla._XLAC.pending_nodes(0) > 0
    xm.mark_step()
    assert torch_xla._XLAC.pending_nodes(0) == 0
    xm.wait_device_ops()
    y = x + 1
    xm.unlazy([y])
    assert torch_xla._XLAC.pending_nodes(0) == 0
    z = y + 1
    torch_xla._XLAC._xla_sync_multi([z], devices=[], wait=True)
    torch_xla._XLAC._xla_sync_multi([z], [], wait=True, sync_xla_data=False)
    assert (x.tolist(), y.tolist(), z.tolist()) == ([2, 2], [3, 3], [4, 4])


def test_step_closures_run_after_the_cut():
    seen = []
    x = torch.ones(2, device="xla") * 3
    xm.add_step_closure(lambda t, n: seen.append((torch_xla._XLAC.pending_nodes(0), t.sum().item(), n)), args=(x, 5))
    assert seen == []
    xm.mark_step()
    assert seen[0][1:] == (6.0, 5)
    xm.mark_step()
    assert len(seen) == 1


def test_an_exception_in_an_asynchronous_closure_is_raised_later():
    from torch_xla.core import _step_closures

    def fail():
        raise ValueError("closure failed")

    xm.add_step_closure(fail, run_async=True)
    xm.mark_step()
    _step_closures._unfinished[-1].exception(timeout=10)
    with pytest.raises(ValueError, match="closure failed"):
        xm.mark_step()
    xm.mark_step()


def test_step_and_compile_make_graphs_of_their_own(compiles):
    def double_and_sum(x):
        return (x * 2).sum()

    compiled = torch_xla.compile(double_and_sum)
    assert compiled.__name__ == "double_and_sum"
    x = torch.ones(3).to("xla")
    assert compiled(x).item() == 6
    before = compiles()
    for _ in range(3):
        assert compiled(x).item() == 6
    assert compiles() == before
    with torch_xla.step():
        y = x + 1
    assert torch_xla._XLAC.pending_nodes(0) == 0
    with torch_xla.compile():
        y = y + 1
    assert y.tolist() == [3, 3, 3]
    model = torch_xla.compile(nn.Linear(3, 2).to("xla"))
    assert model(x).shape == (2,)


def test_compile_checks_what_was_promised():
    def reads(x):
        return x * (x + 1).sum().item()

    with pytest.raises(RuntimeError, match=r"reads was to be one graph \(full_graph=True\)"):
        torch_xla.compile(reads, full_graph=True)(torch.ones(2).to("xla"))
    limited = torch_xla.compile(lambda x: x * 41, name="grows", num_different_graphs_allowed=1)
    for _ in range(2):
        limited(torch.ones(31).to("xla"))
    with pytest.raises(RuntimeError, match="grows compiled 2 different graphs, 1 allowed"):
        limited(torch.ones(32).to("xla"))
    with pytest.raises(ValueError, match="at least 1"):
        torch_xla.compile(lambda: None, num_different_graphs_allowed=0)


def test_launch_and_spawn_run_in_this_process():
    calls = []
    torch_xla.launch(lambda index, value: calls.append((index, value)), args=(4,), debug_single_process=True)
    xmp.spawn(lambda index: calls.append(index), nprocs=1)
    assert calls == [(0, 4), 0]
    with pytest.raises(NotImplementedError, match="nprocs=4"):
        xmp.spawn(print, nprocs=4)
    model = nn.Linear(1, 1)
    assert xmp.MpModelWrapper(model).to("xla") is model
    assert xmp.MpSerialExecutor().run(lambda: 3) == 3


def test_rng_state_round_trip():
    xm.set_rng_state(42)
    assert xm.get_rng_state() == 42
    torch.rand(3, device="xla")
    state = xm.get_rng_state()
    assert state != 42
    first = torch.rand(3, device="xla").cpu()
    xm.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="xla").cpu(), first)
    torch_xla.manual_seed(42)
    assert xm.get_rng_state("xla:0") == 42
    torch_xla.manual_seed(43, device="xla:0")
    assert xm.get_rng_state() == 43


def test_memory_info():
    x = torch.ones(1000).to("xla")
    info = xm.get_memory_info("xla:0")
    assert info["peak_bytes_used"] >= info["bytes_used"] >= 4 * x.numel()
    assert set(info) == {"bytes_used", "bytes_limit", "peak_bytes_used"}
    # The tests run on XLA CPU, whose memory is the host's.
    assert info["bytes_limit"] > info["bytes_used"]
    assert torch.xla.mem_get_info()[1] == info["bytes_limit"] == torch.xla.get_device_properties().total_memory


def test_moving_nested_data():
    x = torch.ones(2)
    (alone,) = xm.send_cpu_data_to_device(x, "xla")
    nested = xm.send_cpu_data_to_device({"a": [x, 3], "b": None}, torch.device("xla"))
    assert alone.device.type == nested["a"][0].device.type == "xla" and nested["a"][1:] == [3] and nested["b"] is None
    base = torch.arange(4.0, device="xla", requires_grad=True)
    back = xm._maybe_convert_to_cpu({"base": base, "twice": [base, base.detach()[1:]], "text": "t"})
    assert back["base"] is back["twice"][0] and back["base"].requires_grad and back["text"] == "t"
    assert back["twice"][1].tolist() == [1, 2, 3] and not back["twice"][1].requires_grad
    assert back["base"].untyped_storage().data_ptr() == back["twice"][1].untyped_storage().data_ptr()
    file = io.BytesIO()
    xm.save({"weight": base}, file)
    file.seek(0)
    assert torch.load(file)["weight"].device.type == "cpu"


def test_dumps_of_pending_computation():
    x = torch.ones(2, 3).to("xla")
    y = (x + 1).sum()
    assert "add" in torch_xla._XLAC._get_xla_tensors_text([y])
    assert "stablehlo.add" in xm.get_stablehlo([y])
    assert torch_xla._XLAC._get_xla_tensors_dot([y]).startswith("digraph")
    identity = torch_xla._XLAC._xla_get_tensor_id
    assert identity(x) == identity(x.view(6)) != identity(y)
    with pytest.raises(RuntimeError, match="expected an xla tensor"):
        identity(torch.ones(1))


def test_executables_describe_programs(compiles):
    before = compiles()
    x = torch.ones(17, 5).to("xla")
    for _ in range(2):
        y = (x * 3 + 1).sum(0)
        torch_xla.sync(wait=True)
    new = torch_xla.debug.executables()[before:]
    assert len(new) == 1
    program = new[0]
    assert program["runs"] == 2 and program["num_nodes"] >= 3 and program["compile_seconds"] > 0
    assert program["argument_bytes"] >= 17 * 5 * 4 and program["output_bytes"] >= 5 * 4
    assert set(program) >= {"temp_bytes", "alias_bytes", "name"}
    assert xr.get_num_cached_compilation_graph() == before + 1
    assert y.tolist() == [68] * 5


def test_metrics():
    met.clear_all()
    assert met.metric_data("ExecuteTime") is None and met.counter_value("nothing") is None
    (torch.ones(3).to("xla") * 1.5 + 2).cpu()
    total, accumulator, samples = met.metric_data("ExecuteTime")
    assert total == 1 == len(samples)
    assert samples[0][1] == accumulator > 100, "nanoseconds"
    assert {"ExecuteTime", "TransferToDeviceTime", "TransferFromDeviceTime"} <= set(met.metric_names())
    report = met.metrics_report()
    assert "Metric: ExecuteTime\n  TotalSamples: 1\n  Accumulator: " in report
    assert "Percentiles: 1%=" in report
    for name in met.counter_names():
        assert f"Counter: {name}\n  Value: {met.counter_value(name)}\n" in report
    assert "Metric: ExecuteTime" in met.short_metrics_report() and "Counter" not in met.short_metrics_report([])
    met.clear_all()
    assert met.counter_names() == [] == met.executed_fallback_ops()


def test_metric_formats():
    assert met._format_time(1500) == "1.500us"
    assert met._format_time(157893043) == "157ms893.043us"
    assert met._format_time(3723004005006.0) == "01h02m03s004ms005.006us"
    assert (met._format_bytes(8), met._format_bytes(1536), met._format_bytes(3 * 2**30)) == (
        "8.00B",
        "1.50KB",
        "3.00GB",
    )


def test_profiler_marks_ranges():
    with torch.profiler.profile() as profile, profiler.StepTrace("train", step_num=3), profiler.Trace("forward"):
        torch.ones(2).add(1)
    names = {event.key for event in profile.key_averages()}
    assert {"train#step_num=3#", "forward"} <= names
    for call in (lambda: profiler.start_server(9012), lambda: profiler.trace_detached("localhost:9012", "/tmp")):
        with pytest.raises(NotImplementedError, match="no profiler server"):
            call()


def test_compile_options_reach_the_compiler():
    torch_xla.set_custom_compile_options({"xla_cpu_enable_fast_math": True})
    try:
        assert (torch.full((3,), 2.0, device="xla") * 1.25).tolist() == [2.5] * 3
        torch_xla.set_custom_compile_options({"xla_no_such_option": 1})
        with pytest.raises(RuntimeError, match="xla_no_such_option"):
            (torch.full((3,), 2.0, device="xla") * 1.75).tolist()
    finally:
        torch_xla.set_custom_compile_options({})
    assert (torch.full((3,), 2.0, device="xla") * 1.75).tolist() == [3.5] * 3


def test_checkpoint_module_rematerialises():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).to("xla")
    x = torch.ones(2, 4, device="xla", requires_grad=True)
    model(x).sum().backward()
    expected = model[0].weight.grad.cpu()
    model.zero_grad()
    assert fsdp.checkpoint_module(model) is model
    model(x).sum().backward()
    torch.testing.assert_close(model[0].weight.grad.cpu(), expected)


def test_what_is_not_supported_says_so():
    assert spmd.get_global_mesh() is None
    for call in (
        lambda: spmd.Mesh(),
        lambda: spmd.mark_sharding(torch.ones(1), None, ()),
        lambda: spmd.ShardingSpec(),
        lambda: xr.use_spmd(),
        lambda: fsdp.XlaFullyShardedDataParallel(nn.Linear(1, 1)),
    ):
        with pytest.raises(NotImplementedError, match=r"several devices (is|are) not supported yet"):
            call()


def test_counters_and_metrics_are_cleared_apart():
    (torch.ones(3, device="xla") * 2).tolist()
    assert met.counter_names() and met.metric_names()
    met.clear_counters()
    assert not met.counter_names() and met.metric_names()
    met.clear_metrics()
    assert not met.metric_names()


def test_lightning_finds_the_device_when_it_is_asked_for(monkeypatch):
    from torch_xla.experimental import pjrt, tpu

    assert pjrt.using_pjrt()
    monkeypatch.delenv("PJRT_DEVICE", raising=False)
    monkeypatch.delenv("TPU_ACCELERATOR_TYPE", raising=False)
    with pytest.raises(OSError, match="neither TPU_ACCELERATOR_TYPE nor PJRT_DEVICE"):
        tpu.version()
    assert tpu.num_available_devices() == 0
    monkeypatch.setenv("PJRT_DEVICE", "CPU")
    assert tpu.version() == 0
    assert tpu.num_available_devices() == torch_xla.device_count()
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4")
    assert tpu.version() == 5
