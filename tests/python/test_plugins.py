"""Finding plugins, importing the package, and what goes wrong with a plugin."""

import sys
from pathlib import Path

import pytest

from torch_xla import _plugins


def make_package(root: Path, module: str, *files: str) -> None:
    directory = root.joinpath(*module.split("."))
    directory.mkdir(parents=True)
    (directory / "__init__.py").write_text("raise AssertionError('a plugin package must not be imported')\n")
    for file in files:
        (directory / file).touch()


def register(root: Path, group: str, name: str, module: str) -> None:
    metadata = root / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_installed_cpu_plugin_is_found():
    plugins = _plugins.discover()
    assert "cpu" in [plugin.name for plugin in plugins]
    assert all(plugin.library_path.is_file() for plugin in plugins)
    paths = [plugin.library_path for plugin in plugins]
    assert len(set(paths)) == len(paths)


def test_the_newest_cpu_plugin_comes_first():
    names = [plugin.library_path.name for plugin in _plugins.discover() if plugin.name == "cpu"]
    if "pjrt_c_api_cpu_plugin.so" not in names:
        pytest.skip("lammps-jax-pjrt-cpu is not installed")
    assert names[0] == "pjrt_c_api_cpu_plugin.so"


@pytest.mark.parametrize("group", ["xla_plugins", "jax_plugins"])
def test_entry_points_are_found_without_importing_their_package(site, group):
    make_package(site, f"{group}_vendor.inner", "pjrt_plugin_x.so", "helper.cpython-311-x86_64-linux-gnu.so")
    register(site, group, f"{group}_x", f"{group}_vendor.inner")
    found = {plugin.name: plugin.library_path for plugin in _plugins.discover()}
    assert found[f"{group}_x"] == site / f"{group}_vendor" / "inner" / "pjrt_plugin_x.so"
    assert f"{group}_vendor" not in sys.modules


def test_an_entry_point_that_names_a_function_in_a_module_file(site):
    make_package(site, "vendor_f", "libvendor_pjrt.so")
    (site / "vendor_f" / "init.py").touch()
    register(site, "jax_plugins", "vendor_f", "vendor_f.init:initialize")
    assert _plugins.Plugin("vendor_f", site / "vendor_f" / "libvendor_pjrt.so") in _plugins.discover()


def test_an_entry_point_without_a_library_is_passed_over(site):
    make_package(site, "vendor_empty")
    register(site, "xla_plugins", "vendor_empty", "vendor_empty")
    register(site, "xla_plugins", "vendor_missing", "no_such_module")
    assert not {"vendor_empty", "vendor_missing"} & {plugin.name for plugin in _plugins.discover()}


def test_accelerator_plugins_of_known_packages_are_found(site):
    make_package(site, "libtpu", "libtpu.so")
    assert _plugins.Plugin("tpu", site / "libtpu" / "libtpu.so") in _plugins.discover()


@pytest.mark.parametrize("first", ["torch_xla", "torch_xla.core.xla_model", "torch_xla.runtime", "torch"])
def test_either_package_may_be_imported_first(run_python, first):
    program = f"import {first}, torch, torch_xla; print(torch.ones(2, device=torch_xla.device()).sum().item())"
    assert run_python(program) == "2.0"
    assert run_python(program + ";", TORCH_DEVICE_BACKEND_AUTOLOAD="0" if first != "torch" else "1") == "2.0"


def test_registering_the_device_imports_no_other_framework(run_python):
    program = """
import sys, torch
before = set(sys.modules)
import torch_xla
print(sorted({name.split(".")[0] for name in set(sys.modules) - before} & {"jax", "jaxlib", "numpy", "torch_xla"}))
"""
    assert run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "['torch_xla']"


def test_cpu_autograd_may_run_before_the_first_xla_tensor(run_python):
    program = """
import torch
torch.ones(2, requires_grad=True).sum().backward()
x = torch.ones(2, device="xla", requires_grad=True)
(x * 3).sum().backward()
print(x.grad.tolist())
"""
    assert run_python(program) == "[3.0, 3.0]"


def failure(run_python, **environment):
    program = """
import torch
try:
    torch.ones(2, device="xla").add(1).cpu()
except Exception as error:
    print(type(error).__name__, error)
print(torch.ones(2).sum().item())
"""
    message, alive = run_python(program, **environment).rsplit("\n", 1)
    assert alive == "2.0"
    return message


def test_a_missing_plugin_is_named(run_python, tmp_path):
    path = tmp_path / "no_plugin.so"
    message = failure(run_python, PJRT_PLUGIN_LIBRARY_PATH=str(path))
    assert message.startswith("RuntimeError") and str(path) in message


def test_a_corrupt_plugin_is_named(run_python, tmp_path):
    path = tmp_path / "corrupt.so"
    path.write_bytes(b"not a shared library")
    message = failure(run_python, PJRT_PLUGIN_LIBRARY_PATH=str(path))
    assert message.startswith("RuntimeError") and str(path) in message


def test_a_device_kind_without_plugin_says_what_to_install(run_python):
    message = failure(run_python, PJRT_DEVICE="TPU", PJRT_PLUGIN_LIBRARY_PATH="")
    assert message.startswith("RuntimeError") and "TPU" in message and "libtpu" in message


def test_dataloader_workers_may_fork_after_the_client_started(run_python):
    program = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.ones(2, device="xla").add(1).cpu()
loader = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=3, num_workers=2, multiprocessing_context="fork")
print([batch[0].to("xla").tolist() for batch in loader])
"""
    assert run_python(program) == "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]"


def test_a_forked_worker_that_records_is_told_at_once(run_python):
    program = """
import torch
import torch_xla
from torch.utils.data import DataLoader, Dataset

class OnDevice(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.full((2,), float(index), device="xla")

torch.ones(1, device="xla").item()
try:
    list(DataLoader(OnDevice(), num_workers=1, multiprocessing_context="fork"))
except RuntimeError as error:
    print(str(error).splitlines()[-1])
"""
    assert run_python(program).startswith("RuntimeError: Cannot use the XLA device in a forked subprocess")


def test_tensors_pass_between_processes_as_copies(tmp_path, run_python):
    script = tmp_path / "queues.py"
    script.write_text("""
import torch
import torch_xla

def work(inbox, outbox):
    matrix, row, layer = inbox.get()
    row.add_(1)
    outbox.put((matrix, layer(matrix).shape, str(layer.weight.device)))
    inbox.get()  # as with CPU tensors, the sender must live until its tensors have arrived

if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=work, args=(inbox, outbox))
    process.start()
    matrix = torch.arange(4.0, device="xla").view(2, 2).t()
    inbox.put((matrix, matrix[0], torch.nn.Linear(2, 3).to("xla")))
    received, shape, device = outbox.get()
    inbox.put("done")
    process.join()
    # The receiver's views share their storage; the sender's tensor stays as it was.
    print(received.tolist(), received.device, list(shape), device, matrix.tolist(), process.exitcode)
""")
    output = run_python(f"import subprocess, sys; subprocess.run([sys.executable, {str(script)!r}], check=True)")
    assert output == "[[1.0, 3.0], [1.0, 3.0]] xla:0 [2, 3] xla:0 [[0.0, 2.0], [1.0, 3.0]] 0"
