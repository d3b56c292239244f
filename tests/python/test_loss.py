"""Softmax, losses and embeddings against CPU: every reduction, weights, ignored targets."""

import math

import pytest
import torch
import torch.nn.functional as F
from parity import assert_same

import torch_xla  # noqa: F401

pytestmark = pytest.mark.usefixtures("no_fallbacks", "seeded")

DTYPES = [torch.float32, torch.float64, torch.bfloat16]
REDUCTIONS = ["none", "mean", "sum"]


def tensor(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax, F.softmin])
def test_softmax(function, dtype):
    for dim in (0, 1, -1):
        assert_same(lambda x, dim=dim: function(x, dim), tensor(3, 4, 5, dtype=dtype))
    assert_same(lambda x: function(x, 1, dtype=torch.float64), tensor(3, 4, dtype=dtype))
    assert_same(lambda x: function(x, 0), tensor(dtype=dtype))
    assert_same(lambda x: function(x, 1), tensor(0, 4, dtype=dtype))


def test_softmax_of_infinities():
    x = torch.tensor([[-math.inf, 0.0], [-math.inf, -math.inf], [math.inf, 0.0], [1e30, -1e30]])
    assert_same(lambda x: F.softmax(x, 1), x)
    assert_same(lambda x: F.log_softmax(x, 1), x)
    assert_same(lambda x: torch._safe_softmax(x, 1), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_distances(function, reduction, dtype):
    x, y = tensor(4, 5, dtype=dtype), tensor(4, 5, dtype=dtype)
    assert_same(lambda x, y: function(x, y, reduction=reduction), x, y)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_distances_with_a_threshold(reduction):
    x, y = tensor(4, 5), tensor(4, 5)
    assert_same(lambda x, y: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.3), x, y)
    assert_same(lambda x, y: F.huber_loss(x, y, reduction=reduction, delta=0.3), x, y)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction):
    x, y, weight = tensor(4, 5), torch.rand(4, 5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    options = {"reduction": reduction}
    assert_same(lambda x, y: F.binary_cross_entropy(x.sigmoid(), y, **options), x, y)
    assert_same(lambda x, y, w: F.binary_cross_entropy(x.sigmoid(), y, w, **options), x, y, weight)
    assert_same(lambda x, y: F.binary_cross_entropy_with_logits(x, y, **options), x, y)
    assert_same(lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=2 * w, **options), x, y, weight)
    certain = torch.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    assert_same(lambda x, y: F.binary_cross_entropy(x, y, **options), certain, torch.tensor([0.0, 1.0, 1.0, 0.0]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_other_losses(reduction):
    x, y = tensor(4, 5), torch.randint(0, 2, (4, 5)).to(torch.float64) * 2 - 1
    options = {"reduction": reduction}
    assert_same(lambda x, y: F.soft_margin_loss(x, y, **options), x, y)
    assert_same(lambda x, y: F.hinge_embedding_loss(x, y, **options), x, y)
    assert_same(lambda x, y: F.kl_div(x, y.abs(), **options), x, y)
    assert_same(lambda x, y: F.poisson_nll_loss(x, y.abs(), **options), x, y)
    assert_same(lambda x, y, t: F.cosine_embedding_loss(x, y, t, **options), x, tensor(4, 5), y[:, 0])
    assert_same(lambda x, y, z: F.triplet_margin_loss(x, y, z, **options), x, tensor(4, 5), tensor(4, 5))
    assert_same(lambda x, y: F.multilabel_soft_margin_loss(x, y.clamp(min=0), **options), x, y)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(reduction, p):
    target, weight = torch.tensor([0, 4, 2, 1]), torch.rand(5, dtype=torch.float64)
    options = {"p": p, "margin": 0.7, "reduction": reduction}
    assert_same(lambda x, t: F.multi_margin_loss(x, t, **options), tensor(4, 5), target)
    assert_same(lambda x, t, w: F.multi_margin_loss(x, t, weight=w, **options), tensor(4, 5), target, weight)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("p", [1, 2])
def test_margins_that_are_nan(reduction, p):
    """They count as none, also in the gradient."""
    x = torch.tensor([[1.0, math.nan, 2.0, 0.5], [3.0, 1.0, 2.0, math.nan]], requires_grad=True)
    target, labels = torch.tensor([0, 3]), torch.tensor([[0, 1, -1, -1], [2, -1, 0, 0]])
    for margin in (1.0, math.nan):
        assert_same(lambda x, t, m=margin: F.multi_margin_loss(x, t, p=p, margin=m, reduction=reduction), x, target)
    assert_same(lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), x, labels)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (4, 5, 3, 2), (4, 5, 2, 3, 2)])
def test_nll_loss(shape, reduction):
    x = tensor(*shape)
    target = torch.randint(0, 5, (shape[0], *shape[2:]))
    target[0] = 3
    target[1] = -100
    weight = torch.rand(5, dtype=torch.float64)
    options = {"reduction": reduction}
    assert_same(lambda x, t: F.nll_loss(x, t, **options), x, target)
    assert_same(lambda x, t, w: F.nll_loss(x, t, w, **options), x, target, weight)
    assert_same(lambda x, t, w: F.nll_loss(x, t.clamp(0), w, ignore_index=3, **options), x, target, weight)
    assert_same(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, **options), x, target)


def test_nll_loss_of_one_sample_and_of_nothing():
    assert_same(F.nll_loss, tensor(5), torch.tensor(2))
    assert_same(lambda x, t: F.nll_loss(x, t, reduction="none"), tensor(5), torch.tensor(2))
    assert_same(F.nll_loss, tensor(4, 5), torch.full((4,), -100))
    assert_same(lambda x, t: F.nll_loss(x, t, reduction="sum"), tensor(0, 5), torch.zeros(0, dtype=torch.int64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_probabilities(dtype):
    assert_same(lambda x, y: F.cross_entropy(x, y.softmax(1)), tensor(4, 5, dtype=dtype), tensor(4, 5, dtype=dtype))


INDICES = torch.tensor([[0, 3, 3], [6, 1, 0]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"padding_idx": 3}, {"scale_grad_by_freq": True}], ids=str)
def test_embedding(dtype, options):
    for indices in (INDICES, INDICES.int(), torch.tensor(2), torch.zeros(0, dtype=torch.int64)):
        assert_same(lambda w, i: F.embedding(i, w, **options), tensor(7, 4, dtype=dtype), indices)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, math.inf])
def test_embedding_renormalises_in_place(norm_type):
    def run(weight, indices):
        weight = weight.clone()
        return F.embedding(indices, weight, max_norm=1.0, norm_type=norm_type), weight

    assert_same(run, tensor(7, 4).detach(), INDICES)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 3}, {"include_last_offset": True}], ids=str)
def test_embedding_bag(mode, options):
    weight, flat = tensor(7, 4), INDICES.flatten()
    offsets = torch.tensor([0, 2, 2, 6])  # an empty bag in the middle, another at the end

    assert_same(lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, **options), weight, flat, offsets)
    if "include_last_offset" not in options:
        assert_same(lambda w, i: F.embedding_bag(i, w, mode=mode, **options), weight, INDICES)


def test_embedding_bag_weighs_samples():
    assert_same(
        lambda w, i, s: F.embedding_bag(i, w, mode="sum", per_sample_weights=s), tensor(7, 4), INDICES, tensor(2, 3)
    )


def test_embedding_bag_scales_gradients_by_frequency():
    """CPU's own kernel looks up the frequency of the wrong word here; the lookup without bags is right."""

    def run(weight, indices):
        if weight.device.type == "cpu":
            return F.embedding(indices, weight, scale_grad_by_freq=True).sum(1)
        return F.embedding_bag(indices, weight, mode="sum", scale_grad_by_freq=True)

    assert_same(run, tensor(7, 4), INDICES)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_margin_loss(reduction):
    target = torch.tensor([[3, 0, -1, 1, 2], [4, 4, 1, -1, 0], [-1, 0, 1, 2, 3], [0, 1, 2, 3, 4]])
    assert_same(lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), tensor(4, 5), target)
    if reduction != "none":  # there PyTorch's meta kernel says [1] and its CPU kernel []: it runs on the CPU
        assert_same(lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), tensor(5), target[0])
