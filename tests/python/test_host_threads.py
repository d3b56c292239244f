"""Host calls that threads share: shares of every size, sums, errors, and several programs at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import torch_xla
from torch_xla import _XLAC

pytestmark = pytest.mark.skipif(not _XLAC.host_kernels_on(), reason="the plugin takes no host calls")

# The number of threads is taken when a thread of XLA's makes its first call, so it is set in a process of its own.
PRELUDE = """
import torch, torch.nn.functional as F
torch.set_num_threads({threads})
import torch_xla
torch.manual_seed(0)

def forward_backward(device, samples):
    # Waves of both signs in each sample: none that relu silences may be left out of the sums unnoticed.
    leaves = [torch.linspace(-40, 40, samples * 3 * 12 * 12).view(samples, 3, 12, 12).mul(samples).sin()]
    leaves += [torch.linspace(-1, 1, 10 * 3 * 9).view(10, 3, 3, 3).cos(), torch.linspace(0, 1, 10)]
    leaves = [x.to(device).detach().requires_grad_() for x in leaves]
    result = F.max_pool2d(F.conv2d(*leaves).relu(), 2)
    (result * torch.linspace(-1, 1, result.numel(), device=device).view(result.shape)).sum().backward()
    return [result.detach().cpu()] + [leaf.grad.cpu() for leaf in leaves]
"""


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_shares_equal_the_whole(run_python: Callable[..., str], threads: int) -> None:
    run_python(
        PRELUDE.format(threads=threads)
        + """
for samples in (1, 2, 5, 64):
    for actual, expected in zip(forward_backward("xla", samples), forward_backward("cpu", samples), strict=True):
        torch.testing.assert_close(actual, expected, rtol=2e-5, atol=2e-5 * max(1.0, float(expected.abs().max())))
"""
    )


def test_the_same_sums_in_every_run(run_python: Callable[..., str]) -> None:
    run_python(
        PRELUDE.format(threads=3)
        + """
first = forward_backward("xla", 37)
for _ in range(5):
    for a, b in zip(forward_backward("xla", 37), first, strict=True):
        assert torch.equal(a, b)
"""
    )


def test_threads_of_the_caller_are_left_alone(run_python: Callable[..., str]) -> None:
    run_python(
        PRELUDE.format(threads=3)
        + """
forward_backward("xla", 16)
assert torch.get_num_threads() == 3
"""
    )


def test_the_library_stays_where_the_threads_run(run_python: Callable[..., str]) -> None:
    library = Path(torch_xla.__path__[0]) / "lib" / "libtorch_pjrt.so"
    loaded = run_python(
        f"""
import _ctypes, ctypes, torch
handle = ctypes.CDLL({str(library)!r})._handle
_ctypes.dlclose(handle)
print("libtorch_pjrt" in open("/proc/self/maps").read())
""",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert loaded == "True"


def test_a_small_product_equals_the_cpu() -> None:
    x, y = torch.randn(130, 70), torch.randn(70, 90)
    torch.testing.assert_close((x.to("xla") @ y.to("xla")).cpu(), x @ y, rtol=2e-5, atol=2e-5)
    images = torch.randn(6, 4, 5, 5)
    normal = F.batch_norm(images.to("xla"), None, None, training=True)
    torch.testing.assert_close(normal.cpu(), F.batch_norm(images, None, None, training=True), rtol=2e-5, atol=2e-5)
