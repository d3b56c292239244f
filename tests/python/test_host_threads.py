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
import os
os.environ["NPROC"] = "{threads}"  # of XLA's pool
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


OTHER_CALLS = """
def waves(*sizes):
    count = torch.Size(sizes).numel()
    return torch.linspace(-1, 1, count).mul(count).sin().view(sizes)

def products(device):
    for m, k, n in ((1, 4100, 4100), (300, 301, 303), (4100, 4100, 1), (1000, 5, 3001)):
        a, b = waves(m, k).to(device), waves(k, n).to(device)
        yield from (a @ b, waves(k, m).to(device).t() @ b, a @ waves(n, k).to(device).t())
    a, b = waves(7, 150, 90).to(device), waves(7, 90, 160).to(device)
    yield from (a @ b, a[:, ::2] @ b, a.double() @ b.double())

def attention(device):
    for batch in (1, 2, 5):
        for mask in (None, waves(70, 70), waves(1, 3, 70, 70), waves(batch, 3, 70, 70), waves(batch, 1, 1, 70)):
            leaves = [waves(batch, 3, 70, 8).mul(i + 1).to(device).requires_grad_() for i in range(3)]
            result = F.scaled_dot_product_attention(*leaves, attn_mask=None if mask is None else mask.to(device))
            (result * waves(*result.shape).to(device)).sum().backward()
            yield from (result.detach(), *(x.grad for x in leaves))

def layer_norm(device):
    for sizes, normalized in (((1, 40000), (40000,)), ((301, 64), (64,)), ((2, 3, 50, 8, 9), (8, 9))):
        leaves = [waves(*sizes), waves(*normalized), waves(*normalized).cos()]
        leaves = [x.to(device).requires_grad_() for x in leaves]
        result = F.layer_norm(leaves[0], normalized, *leaves[1:])
        (result * waves(*sizes).cos().to(device)).sum().backward()
        yield from (result.detach(), *(x.grad for x in leaves))
"""


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_shares_of_other_calls(threads: int, run_python: Callable[..., str]) -> None:
    run_python(
        PRELUDE.format(threads=threads)
        + OTHER_CALLS
        + """
def all_of(device):
    return [*products(device), *attention(device), *layer_norm(device)]

for actual, expected in zip([x.cpu() for x in all_of("xla")], all_of("cpu"), strict=True):
    assert actual.stride() == expected.stride()
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
