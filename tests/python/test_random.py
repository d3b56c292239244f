"""Random operators: laws, ranges, reproducibility, generators. Numbers need not equal CPU's, their distributions do."""

import math

import pytest
import torch

import torch_xla

N = 100_000
# Five standard deviations of a mean over N samples of unit variance.
SLACK = 5 / math.sqrt(N)


def draw(fill, dtype=torch.float32, size=N):
    torch.manual_seed(1234)
    x = torch.empty(size, dtype=dtype, device="xla")
    fill(x)
    return x.cpu()


def assert_moments(x, mean, std):
    x = x.double()
    assert abs(x.mean() - mean) < SLACK * std + 1e-6
    assert abs(x.std() - std) < 4 * SLACK * std + 1e-6


def assert_law(x, cdf):
    """Kolmogorov-Smirnov at a significance of about 1e-6."""
    x = x.double().sort()[0]
    ranks = torch.arange(1, len(x) + 1, dtype=torch.float64) / len(x)
    assert (cdf(x) - ranks).abs().max() < 2.7 / math.sqrt(len(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform(dtype):
    x = draw(lambda x: x.uniform_(-2, 6), dtype)
    assert x.min() >= -2 and x.max() < 6
    assert_law(x, lambda v: (v + 2) / 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_rand_never_gives_one(dtype):
    torch.manual_seed(0)
    x = torch.rand(1_000_000, dtype=dtype, device="xla").cpu()
    assert x.min() >= 0 and x.max() < 1
    assert_moments(x, 0.5 if dtype.itemsize > 2 else 0.5 - torch.finfo(dtype).eps / 4, math.sqrt(1 / 12))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal(dtype):
    x = draw(lambda x: x.normal_(3, 2), dtype)
    assert_law(x, lambda v: 0.5 * torch.erfc((3 - v) / (2 * math.sqrt(2))))
    assert x.isfinite().all()


def test_normal_in_half_precision_and_complex():
    assert_moments(draw(lambda x: x.normal_(), torch.bfloat16), 0, 1)
    z = draw(lambda x: x.normal_(), torch.complex64)
    assert_moments(z.real, 0, math.sqrt(0.5))
    assert_moments(z.imag, 0, math.sqrt(0.5))
    assert abs((z.real * z.imag).mean()) < SLACK


def test_normal_of_tensors():
    torch.manual_seed(1)
    mean = torch.tensor([[0.0], [10.0]], device="xla").expand(2, N)
    std = torch.tensor([[1.0], [3.0]], device="xla").expand(2, N)
    both, one = torch.normal(mean, std).cpu(), torch.normal(mean, 2.0).cpu()
    assert_moments(both[0], 0, 1)
    assert_moments(both[1], 10, 3)
    assert_moments(one[1], 10, 2)
    assert_moments(torch.normal(1.0, std).cpu()[1], 1, 3)


def test_neighbours_are_uncorrelated():
    x = draw(lambda x: x.normal_())
    for lag in (1, 2, 64, 1024):
        assert abs((x[lag:] * x[:-lag]).mean()) < SLACK


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli(p):
    for x in (
        draw(lambda x: x.bernoulli_(p)),
        draw(lambda x: x.bernoulli_(p), torch.bool).float(),
        draw(lambda x: x.bernoulli_(torch.tensor(p, device="xla"))),
        torch.bernoulli(torch.full((N,), p, device="xla")).cpu(),
        torch.bernoulli(torch.empty(N, device="xla"), p).cpu(),
    ):
        assert set(x.unique().tolist()) <= {0.0, 1.0}
        assert_moments(x, p, math.sqrt(p * (1 - p)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float32, torch.bfloat16])
def test_random_between_bounds(dtype):
    x = draw(lambda x: x.random_(3, 10), dtype)
    counts = torch.bincount(x.long(), minlength=10)
    assert counts[:3].sum() == 0 and len(counts) == 10
    assert (counts[3:] / N * 7 - 1).abs().max() < 0.05


def test_random_without_bounds_covers_the_dtype():
    assert draw(lambda x: x.random_(), torch.uint8).unique().numel() == 256
    assert draw(lambda x: x.random_(), torch.int8).min() == 0
    assert draw(lambda x: x.random_(), torch.int64).max() > 2**62
    assert draw(lambda x: x.random_(), torch.bool).unique().numel() == 2
    assert draw(lambda x: x.random_(-(2**63), None), torch.int64).min() < -(2**62)
    assert draw(lambda x: x.random_(), torch.float32).max() <= 2**24


def test_randint_of_a_wide_range():
    torch.manual_seed(0)
    x = torch.randint(-(2**40), 2**40, (N,), device="xla").cpu()
    assert x.min() >= -(2**40) and x.max() < 2**40
    assert_law(x, lambda v: (v + 2.0**40) / 2.0**41)


def test_exponential():
    x = draw(lambda x: x.exponential_(2.0))
    assert (x > 0).all()
    assert_law(x, lambda v: 1 - torch.exp(-2 * v))


def test_cauchy():
    assert_law(draw(lambda x: x.cauchy_(1.0, 2.0)), lambda v: 0.5 + torch.atan((v - 1) / 2) / math.pi)


def test_log_normal():
    x = draw(lambda x: x.log_normal_(0.5, 0.25))
    assert_law(x.log(), lambda v: 0.5 * torch.erfc((0.5 - v) / (0.25 * math.sqrt(2))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_geometric(dtype):
    x = draw(lambda x: x.geometric_(0.25), dtype)
    assert x.min() == 1
    assert_moments(x, 4, math.sqrt(0.75) / 0.25)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_randperm(n):
    torch.manual_seed(3)
    x = torch.randperm(n, device="xla")
    assert x.dtype == torch.int64
    assert x.cpu().sort()[0].tolist() == list(range(n))
    if n == 1000:
        assert x.cpu().tolist() != list(range(n))


def test_multinomial_with_replacement():
    torch.manual_seed(0)
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0, 0.0])
    x = torch.multinomial(weights.to("xla"), N, replacement=True).cpu()
    frequencies = torch.bincount(x, minlength=6) / N
    assert (frequencies[weights == 0] == 0).all()
    assert (frequencies - weights / 8).abs().max() < 0.01


def test_multinomial_without_replacement():
    torch.manual_seed(0)
    weights = torch.tensor([1.0, 0.0, 2.0, 5.0]).expand(20000, 4).to("xla")
    x = torch.multinomial(weights, 3).cpu()
    assert (x.sort(1)[0] == torch.tensor([0, 2, 3])).all()
    first = torch.bincount(x[:, 0], minlength=4) / len(x)
    assert (first - torch.tensor([1.0, 0.0, 2.0, 5.0]) / 8).abs().max() < 0.02
    assert torch.multinomial(weights[0], 1).shape == (1,)


@pytest.mark.parametrize("categories", [1023, 1025, 50257])
def test_multinomial_of_many_categories_compiles(run_python, categories):
    """In a process of its own: what the compiler does not come to an end with is no failure, but a wait for ever."""
    run_python(
        "import torch, torch_xla\n"
        f"weights = torch.zeros({categories}); weights[[7, 1000]] = 1\n"
        "for replacement in (False, True):\n"
        "    x = torch.multinomial(weights.to('xla'), 3 if replacement else 2, replacement).cpu()\n"
        "    assert set(x.tolist()) <= {7, 1000}, x\n"
        "    assert replacement or len(set(x.tolist())) == 2, x\n"
    )


def test_dropout_scales_what_it_keeps():
    torch.manual_seed(0)
    x = torch.ones(N, device="xla", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    assert_moments((y.detach() > 0).cpu(), 0.75, math.sqrt(0.75 * 0.25))
    torch.testing.assert_close(y.detach().cpu().unique(), torch.tensor([0.0, 1 / 0.75]))
    torch.testing.assert_close(x.grad.cpu(), y.detach().cpu())


def test_native_dropout():
    torch.manual_seed(0)
    x = torch.ones(N, device="xla", requires_grad=True)
    y, mask = torch.native_dropout(x, 0.5, True)
    torch.testing.assert_close(y.detach().cpu(), mask.cpu() * 2.0)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient.cpu(), mask.cpu() * 2.0)
    kept, all_set = torch.native_dropout(x, 0.5, False)
    assert all_set.cpu().all() and (kept.detach().cpu() == 1).all()


def test_native_dropout_backward_of_booleans():
    grad, mask = torch.tensor([True, True, False]), torch.tensor([True, False, True])
    result = torch.ops.aten.native_dropout_backward(grad.to("xla"), mask.to("xla"), 1.5)
    assert result.dtype == torch.float32
    assert result.tolist() == [1.5, 0, 0]


def test_rrelu_draws_negative_slopes():
    torch.manual_seed(0)
    x = torch.full((N,), -1.0, device="xla", requires_grad=True)
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True)
    assert_law(-y.detach().cpu(), lambda v: (v - 0.1) / 0.2)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient.cpu(), -y.detach().cpu())


def three_draws(cut):
    torch.manual_seed(7)
    a = torch.rand(10, device="xla")
    if cut:
        torch_xla.sync()
    b = torch.randn(10, device="xla")
    if cut:
        torch_xla.sync()
    return a.cpu(), b.cpu(), torch.randint(0, 100, (10,), device="xla").cpu()


def test_numbers_do_not_depend_on_where_graphs_are_cut():
    for whole, cut in zip(three_draws(False), three_draws(True), strict=True):
        assert torch.equal(whole, cut)


def test_calls_draw_different_numbers():
    torch.manual_seed(7)
    a, b = torch.rand(1000, device="xla"), torch.rand(1000, device="xla")
    assert not (a == b).any()
    torch.manual_seed(8)
    assert not torch.equal(torch.rand(1000, device="xla"), a)


def test_generators_are_independent_of_the_default_one():
    generator = torch.Generator(device="xla").manual_seed(42)
    first = torch.rand(5, generator=generator, device="xla").cpu()
    torch.rand(5, device="xla")
    second = torch.rand(5, generator=generator, device="xla").cpu()
    generator.manual_seed(42)
    again = torch.rand(10, generator=generator, device="xla").cpu()
    assert torch.equal(first, again[:5]) and torch.equal(second, again[5:])


def test_generator_state_can_be_restored():
    generator = torch.Generator(device="xla").manual_seed(1)
    torch.randn(3, generator=generator, device="xla")
    state = generator.get_state()
    first = torch.randn(3, generator=generator, device="xla").cpu()
    generator.set_state(state)
    assert torch.equal(first, torch.randn(3, generator=generator, device="xla").cpu())


def test_words_are_threefry_2x32():
    """The published answer for a key and a counter of zeros."""
    torch.manual_seed(0)
    word = torch.empty(1, dtype=torch.int64, device="xla").random_(-(2**63), None).item()
    assert word + 2**63 == 0x6B20015999BA4EFE


def error_of(call, device):
    with pytest.raises(Exception) as info:
        call(torch.empty(3, device=device))
    return type(info.value), str(info.value).split("\n")[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.bernoulli_(1.5),
        lambda x: torch.bernoulli(x, -0.5),
        lambda x: x.uniform_(5, 4),
        lambda x: x.uniform_(-3e38, 3e38),
        lambda x: x.normal_(0, -1),
        lambda x: x.exponential_(-1),
        lambda x: x.cauchy_(0, 0),
        lambda x: x.geometric_(1.0),
        lambda x: x.log_normal_(0, -1),
        lambda x: x.random_(5, 5),
        lambda x: x.int().random_(0, 2**40),
        lambda x: x.int().normal_(),
        lambda x: torch.multinomial(x.int(), 1),
        lambda x: torch.randperm(300, dtype=torch.uint8, device=x.device),
    ],
)
def test_errors_are_those_of_the_cpu(call):
    good = torch.empty(3, device="xla")
    good.bernoulli_(0.5).uniform_(0, 1).normal_(0, 1).exponential_(1).cauchy_(0, 1).geometric_(0.5).log_normal_(0, 1)
    assert error_of(call, "xla") == error_of(call, "cpu")
