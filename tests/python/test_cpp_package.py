"""The installed CMake package: a libtorch program trains on xla without Python."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import torch_xla

ROOT = Path(__file__).resolve().parents[2]


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where find_package looks: the package directory, or an installation of the development build."""
    package = Path(torch_xla.__path__[0])
    if (package / "share/cmake/torch_pjrt").is_dir():
        return package
    build = ROOT / "build" / "dev"
    if not (build / "cmake_install.cmake").exists():
        pytest.skip("neither an installed package nor ./dev build's tree")
    installed = tmp_path_factory.mktemp("prefix")
    run(sys.executable, "-m", "cmake", "--install", build, "--prefix", installed, "--component", "torch_xla")
    return installed


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """IDX files of images that a network learns at once: the class is the place of a bright bar."""
    folder = tmp_path_factory.mktemp("bars")
    random = np.random.default_rng(0)
    for part, count in (("train", 1024), ("t10k", 256)):
        labels = random.integers(0, 10, count)
        images = random.integers(0, 60, (count, 28, 28))
        images[np.arange(count), 2 * labels + 4] = 255
        write_idx(folder / f"{part}-images-idx3-ubyte", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte", labels)
    return folder


@pytest.mark.slow
def test_a_cpp_program_trains_on_xla(prefix: Path, bars: Path, tmp_path: Path):
    cmake = (sys.executable, "-m", "cmake")
    generator = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja_program()}")
    run(*cmake, "-S", ROOT / "examples/cpp", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", *generator)
    run(*cmake, "--build", tmp_path)
    needed = [line for line in run("readelf", "-d", tmp_path / "mnist").splitlines() if "(NEEDED)" in line]
    assert any("libtorch_pjrt.so" in line for line in needed)
    assert not any("python" in line for line in needed)
    output = run(tmp_path / "mnist", bars, "--epochs", 2, PJRT_PLUGIN_LIBRARY_PATH=plugin_of_the_tests())
    accuracy = float(output.split("final test accuracy:")[1].split("%")[0])
    assert accuracy > 95, output


def ninja_program() -> Path:
    import ninja

    return Path(ninja.BIN_DIR) / "ninja"


def plugin_of_the_tests() -> str:
    from torch_xla import _plugins

    return os.environ.get("PJRT_PLUGIN_LIBRARY_PATH") or str(_plugins.discover()[0].library_path)
