"""Compiled programs that are kept between processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RunPython = Callable[..., str]

# A small training step; prints (programs compiled, found on disk, not found there) and the loss.
STEP = """
import torch, torch_xla
from torch_xla import _XLAC
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)).to("xla")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4, device="xla")).square().mean()
    loss.backward()
    optimizer.step()
    torch_xla.sync()
counters = _XLAC.counters()
names = ["UncachedCompile", "PersistentCacheHit", "PersistentCacheMiss"]
print(*(counters.get(name, 0) for name in names), round(loss.item(), 6))
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder that a process has filled, and what that process printed."""
    directory = tmp_path_factory.mktemp("filled")
    environment = {**os.environ, "XLA_PERSISTENT_CACHE_PATH": str(directory)}
    done = subprocess.run([sys.executable, "-c", STEP], env=environment, capture_output=True, text=True, check=True)
    return directory, done.stdout.split()


@pytest.fixture
def copied(filled: tuple[Path, list[str]], tmp_path: Path) -> tuple[Path, list[str]]:
    """A copy of that folder which the test may change."""
    directory = tmp_path / "copy"
    shutil.copytree(filled[0], directory)
    return directory, filled[1]


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.program"))


def test_a_second_process_compiles_nothing(run_python: RunPython, copied: tuple[Path, list[str]]):
    directory, cold = copied
    assert int(cold[0]) > 0 and cold[0] == cold[2] and cold[1] == "0"
    assert len(entries(directory)) == int(cold[0])
    warm = run_python(STEP, XLA_PERSISTENT_CACHE_PATH=str(directory), PYTHONHASHSEED="7").split()
    assert warm == ["0", cold[0], "0", cold[3]]
    assert sorted(path.name for path in directory.iterdir()) == [path.name for path in entries(directory)]


def test_the_default_is_in_the_users_cache_folder(run_python: RunPython, tmp_path: Path):
    program = "import os\ndel os.environ['XLA_PERSISTENT_CACHE_PATH']\n" + STEP
    run_python(program, XDG_CACHE_HOME=str(tmp_path))
    assert entries(tmp_path / "torch_xla")
    run_python(program, XDG_CACHE_HOME="", HOME=str(tmp_path / "home"))
    assert entries(tmp_path / "home" / ".cache" / "torch_xla")


@pytest.mark.parametrize("value", ["", "0"])
def test_it_can_be_switched_off(run_python: RunPython, tmp_path: Path, value: str):
    counts = run_python(STEP, XLA_PERSISTENT_CACHE_PATH=value, XDG_CACHE_HOME=str(tmp_path)).split()
    assert int(counts[0]) > 0 and counts[1:3] == ["0", "0"]
    assert not list(tmp_path.iterdir())


def test_other_options_are_other_programs(run_python: RunPython, copied: tuple[Path, list[str]]):
    directory, _ = copied
    count = len(entries(directory))
    options = "import torch_xla\ntorch_xla.set_custom_compile_options({'xla_cpu_enable_fast_math': True})\n"
    fast = run_python(options + STEP, XLA_PERSISTENT_CACHE_PATH=str(directory)).split()
    assert fast[1] == "0" and len(entries(directory)) == 2 * count
    flags = run_python(STEP, XLA_PERSISTENT_CACHE_PATH=str(directory), XLA_FLAGS="--xla_cpu_enable_fast_math=false")
    assert flags.split()[1] == "0"


def test_damaged_entries_are_built_again(run_python: RunPython, copied: tuple[Path, list[str]]):
    directory, cold = copied
    sizes = {path: path.stat().st_size for path in entries(directory)}
    for number, path in enumerate(sizes):
        if number % 2:
            os.truncate(path, sizes[path] // 2)
        else:
            contents = bytearray(path.read_bytes())
            contents[-9] ^= 1
            path.write_bytes(contents)
    again = run_python(STEP, XLA_PERSISTENT_CACHE_PATH=str(directory)).split()
    assert again == [cold[0], "0", cold[0], cold[3]]
    assert [path for path in sizes if path.stat().st_size < sizes[path] // 2 + 1] == []
    assert run_python(STEP, XLA_PERSISTENT_CACHE_PATH=str(directory)).split()[1] == cold[0]


def test_a_folder_that_cannot_be_written_is_no_error(run_python: RunPython, tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    program = "import os, sys\nos.dup2(1, 2)\n" + STEP
    *warnings, counts = run_python(program, XLA_PERSISTENT_CACHE_PATH=str(tmp_path / "file")).splitlines()
    assert int(counts.split()[0]) > 0
    assert len([line for line in warnings if "not kept on disk" in line]) == 1


def test_readonly(run_python: RunPython, copied: tuple[Path, list[str]]):
    directory, _ = copied
    count = len(entries(directory))
    readonly = f"import torch_xla.runtime as xr\nxr.initialize_cache({str(directory)!r}, readonly=True)\n"
    other = STEP.replace("Linear(8, 1)", "Linear(8, 2)")
    counts = run_python(readonly + STEP).split()
    assert counts[:3] == ["0", str(count), "0"]
    counts = run_python(readonly + other).split()
    assert int(counts[0]) > 0 and counts[0] == counts[2]
    assert len(entries(directory)) == count


def test_initialize_cache(run_python: RunPython, tmp_path: Path):
    program = f"import torch_xla.runtime as xr\nxr.initialize_cache({str(tmp_path / 'a' / 'b')!r})\n" + STEP
    cold = run_python(program).split()
    assert len(entries(tmp_path / "a" / "b")) == int(cold[0])
    assert run_python(program).split()[:3] == ["0", cold[0], "0"]
    with pytest.raises(ValueError, match="empty"):
        import torch_xla.runtime as xr

        xr.initialize_cache("")
