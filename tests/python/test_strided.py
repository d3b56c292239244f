"""Random chains of views, read and written in place, against CPU; compile counts of changing offsets."""

import random

import pytest
import torch
from parity import on_xla

import torch_xla
import torch_xla.debug.metrics as metrics

VIEWS = [
    lambda r, x: x[tuple(slice(r.randint(0, n), r.randint(0, n), r.randint(1, 3)) for n in x.shape)],
    lambda r, x: x.select(d := r.randrange(x.dim()), r.randrange(x.shape[d])) if x.numel() and x.dim() else x,
    lambda r, x: x.transpose(r.randrange(x.dim()), r.randrange(x.dim())) if x.dim() else x,
    lambda r, x: x.unsqueeze(r.randint(0, x.dim())),
    lambda r, x: x.squeeze(),
    lambda r, x: x.diagonal(r.randint(0, 1)) if x.dim() >= 2 else x,
    lambda r, x: x.unfold(d := r.randrange(x.dim()), x.shape[d], 2) if x.numel() and x.dim() else x,
    lambda r, x: x.view(-1) if x.is_contiguous() else x,
    lambda r, x: x.unflatten(0, (2, -1)) if x.dim() and x.shape[0] and x.shape[0] % 2 == 0 else x,
]


def views(x, seed):
    """The same view of equal tensors: the choices depend on the seed and the shapes alone."""
    r = random.Random(seed)
    for _ in range(r.randint(1, 5)):
        x = r.choice(VIEWS)(r, x)
    return x


@pytest.mark.parametrize("seed", range(60))
def test_views_read_and_write_as_on_cpu(seed):
    r = random.Random(seed)
    size = [r.randint(1, 6) for _ in range(r.randint(0, 4))]
    base = torch.arange(float(torch.Size(size).numel())).view(size)
    other = on_xla(base)
    view, other_view = views(base, seed), views(other, seed)
    assert other_view.stride() == view.stride() and other_view.storage_offset() == view.storage_offset()
    assert torch.equal(other_view.cpu(), view)
    view.mul_(-3).add_(1)
    other_view.mul_(-3).add_(1)
    assert torch.equal(other.cpu(), base)
    assert torch.equal(other_view.cpu(), view)


@pytest.mark.parametrize("size,stride,offset", [((3, 3), (2, 1), 1), ((2, 2), (5, 3), 4), ((4,), (0,), 7), ((), (), 3)])
def test_as_strided(size, stride, offset):
    base = torch.arange(20.0)
    assert torch.equal(on_xla(base).as_strided(size, stride, offset).cpu(), base.as_strided(size, stride, offset))


def compiles_for(step):
    torch_xla.sync(wait=True)
    step(0)
    torch_xla.sync(wait=True)
    before = metrics.counter_value("UncachedCompile") or 0
    for i in range(1, 6):
        step(i)
        torch_xla.sync(wait=True)
    return (metrics.counter_value("UncachedCompile") or 0) - before


def test_changing_index_does_not_compile_again():
    x = torch.arange(60.0, device="xla").view(6, 10)
    total = torch.zeros(10, device="xla")
    assert compiles_for(lambda i: total.add_(x[i])) == 0
    assert compiles_for(lambda i: total.add_(x[:, i].sum())) == 0
    assert compiles_for(lambda i: x[i].fill_(1.0)) == 0
    assert compiles_for(lambda i: x[:, 2 * i : 2 * i + 2].fill_(2.0) if i < 5 else None) == 0


@pytest.mark.parametrize(
    "source", [torch.float32, torch.int64, torch.uint8, torch.complex64, torch.float16, torch.bool]
)
@pytest.mark.parametrize("target", [torch.float32, torch.int64, torch.uint8, torch.complex64, torch.int16, torch.bool])
def test_view_as_another_dtype(source, target):
    x = torch.randint(0, 2, (4, 16)).to(source)
    if target == torch.bool and source not in (torch.bool, torch.uint8):
        x = torch.zeros(4, 16, dtype=source)
    assert torch.equal(on_xla(x).view(target).cpu(), x.view(target))


@pytest.mark.parametrize(
    "write",
    [
        lambda z: z.copy_(torch.full_like(z, 1 + 2j)),
        lambda z: z.copy_(torch.full((3,), 1 + 2j)),
        lambda z: z.add_(1j),
        lambda z: z.sqrt_(),
        lambda z: z[1:].fill_(2j),
        lambda z: z.imag.zero_(),
        lambda z: z.imag[:2].add_(4),
        lambda z: z.__setitem__(torch.tensor([1], device=z.device), 1j),
        lambda z: torch.add(torch.ones_like(z), 1j, out=z),
    ],
    ids=["copy", "copy from the host", "add", "sqrt", "fill", "zero imag", "add imag", "setitem", "out"],
)
def test_writes_through_a_conjugate_view_are_seen(write):
    base = torch.tensor([1 + 2j, 3 - 1j, 2j])
    other = on_xla(base)
    write(base.conj()), write(other.conj())
    torch.testing.assert_close(other.cpu(), base)
