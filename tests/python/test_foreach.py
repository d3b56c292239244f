"""Operators over lists and fused optimizer steps against CPU."""

import math

import pytest
import torch
from parity import assert_equal, on_xla

import torch_xla
import torch_xla.debug

UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac",
    "lgamma", "log", "log10",
    "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc",
]  # fmt: skip


def tensors(dtype=torch.float32):
    torch.manual_seed(0)
    return [(torch.rand(shape) * 0.8 + 0.1).to(dtype) for shape in ((2, 3), (4,), (), (0, 2))]


def check(call, *lists):
    """`call` on CPU and on xla gives the same, and leaves the same in its lists."""
    cpu = [[t.clone() for t in ts] for ts in lists]
    xla = [on_xla(ts) for ts in cpu]
    expected, actual = call(*cpu), call(*xla)
    if expected is not None:
        assert_equal(actual, list(expected))
    assert_equal(xla, cpu)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_unary(name, dtype):
    check(getattr(torch, f"_foreach_{name}"), tensors(dtype))
    check(getattr(torch, f"_foreach_{name}_"), tensors(dtype))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_binary(name, dtype):
    function, in_place = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")
    xs = [x * 10 + 1 for x in tensors()]
    xs = [x.to(dtype) for x in xs]
    check(function, xs, xs)
    check(lambda ts: function(ts, 2), xs)
    check(lambda ts: function(ts, [1, 2, 3, 4]), xs)
    check(lambda ts: function(ts, [1.5, 2.0, 3.0, 4.0]), xs)
    if dtype.is_floating_point:
        check(lambda ts: in_place(ts, 1.5), xs)
        check(in_place, xs, xs)
    if name in ("add", "sub"):
        check(lambda a, b: function(a, b, alpha=3), xs, xs)
    if name in ("add", "mul", "div"):
        check(lambda ts: function(ts, torch.tensor(2.0, device=ts[0].device)), xs)


def test_scalar_base_of_pow():
    check(lambda ts: torch._foreach_pow(2.0, ts), tensors())


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_pointwise(name):
    function, in_place = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")
    xs = tensors()
    check(function, xs, xs, xs)
    check(lambda a, b, c: function(a, b, c, value=0.3), xs, xs, xs)
    check(lambda a, b, c: in_place(a, b, c, [1.0, 2.0, 3.0, 4.0]), xs, xs, xs)


def test_lerp_norm_max_copy_zero():
    xs, ys = tensors(), [x + 1 for x in tensors()]
    check(lambda a, b: torch._foreach_lerp(a, b, 0.3), xs, ys)
    check(lambda a, b: torch._foreach_lerp(a, b, [0.1, 0.9, 0.5, 0.2]), xs, ys)
    check(lambda a, b: torch._foreach_lerp_(a, b, [t * 0.5 for t in a]), xs, ys)
    for ord in (0, 1, 2, 3.0, math.inf):
        check(lambda a, o=ord: torch._foreach_norm(a, o), xs[:3])
    check(torch._foreach_max, xs[:3])
    check(lambda a, b: torch._foreach_copy_(a, b), xs, [y.bfloat16() for y in ys])
    check(torch._foreach_zero_, xs)


OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "adam": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    "amsgrad": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True, "maximize": True}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.1}),
}


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_trajectories(name, foreach):
    make, options = OPTIMIZERS[name]
    trajectories = []
    for device in ("cpu", "xla"):
        params = [t.to(device).requires_grad_() for t in tensors()[:3]]
        optimizer = make(params, foreach=foreach, **options)
        for step in range(4):
            optimizer.param_groups[0]["lr"] = options["lr"] * (step + 1)
            for p in params:
                p.grad = torch.cos(p.detach() * (step + 1))
            optimizer.step()
        trajectories.append([p.detach() for p in params])
    assert_equal(trajectories[1], trajectories[0])


@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.AdamW])
def test_adam_is_fused_unless_the_program_chooses(make):
    weights = on_xla(tensors()[:2])
    assert make(weights).param_groups[0]["fused"] is True
    assert make(tensors()[:2]).param_groups[0]["fused"] is None
    assert make(weights, foreach=True).param_groups[0]["fused"] is None
    assert make(weights, foreach=False).param_groups[0]["fused"] is None
    assert make(weights, fused=False).param_groups[0]["fused"] is False
    assert make(weights, differentiable=True).param_groups[0]["fused"] is None
    assert make([*weights, torch.ones(2)]).param_groups[0]["fused"] is None
    optimizer = make(weights)
    optimizer.add_param_group({"params": [torch.ones(2, dtype=torch.complex64, device="xla")]})
    assert [group["fused"] for group in optimizer.param_groups] == [True, None]


def test_the_state_of_adam_moves_between_devices():
    """Half of the steps on each device, in both orders, is the same as all on one."""
    results = []
    for devices in (("cpu", "cpu"), ("xla", "cpu"), ("cpu", "xla")):
        params, state = tensors()[:3], None
        for device in devices:
            params = [p.detach().to(device).requires_grad_() for p in params]
            optimizer = torch.optim.AdamW(params, lr=0.1)
            if state is not None:
                optimizer.load_state_dict(state)
            for _ in range(3):
                for p in params:
                    p.grad = torch.cos(p.detach())
                optimizer.step()
            state = optimizer.state_dict()
        results.append([p.detach().cpu() for p in params])
    assert_equal(results[1], results[0])
    assert_equal(results[2], results[0])


def fused_calls(params, grads, states, steps, **scaling):
    a, b, c = states
    yield lambda lr: torch._fused_sgd_(
        params, grads, a, weight_decay=0.1, momentum=0.9, lr=lr, dampening=0.2, nesterov=False, maximize=False,
        is_first_step=False, **scaling)  # fmt: skip
    yield lambda lr: torch._fused_sgd_(
        params, grads, a, weight_decay=0.0, momentum=0.9, lr=lr, dampening=0.0, nesterov=True, maximize=True,
        is_first_step=True, **scaling)  # fmt: skip
    for fused, amsgrad in ((torch._fused_adam_, False), (torch._fused_adam_, True), (torch._fused_adamw_, False)):
        yield lambda lr, fused=fused, amsgrad=amsgrad: fused(
            params, grads, a, b, c if amsgrad else [], steps, lr=lr, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8,
            amsgrad=amsgrad, maximize=amsgrad, **scaling)  # fmt: skip
    yield lambda lr: torch._fused_adagrad_(
        params, grads, a, steps, lr=lr, lr_decay=0.01, weight_decay=0.1, eps=1e-8, maximize=False, **scaling
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("scaling", [None, 0.0, 1.0])
def test_fused_steps(dtype, scaling):
    """`scaling` is found_inf beside a grad_scale of 2; with 1 nothing may change."""
    results = []
    for device in ("cpu", "xla"):
        params = [t.to(device) for t in tensors(dtype)[:3]]
        grads = [torch.cos(p * 3) for p in params]
        states = [[p * 0.1 + 0.1 for p in params] for _ in range(3)]
        steps = [torch.tensor(2.0, device=device) for _ in params]
        options = {}
        if scaling is not None:
            options = {
                "grad_scale": torch.tensor(2.0, device=device),
                "found_inf": torch.tensor(scaling, device=device),
            }
        for i, call in enumerate(fused_calls(params, grads, states, steps, **options)):
            call(0.01 * (i + 1))
        results.append([params, grads, states])
    assert_equal(results[1], results[0])


def test_a_changing_learning_rate_does_not_recompile(compiles):
    params, grads, states = (on_xla(tensors()[:3]) for _ in range(3))
    squares = on_xla(tensors()[:3])

    def step(lr):
        torch._foreach_add_(params, grads, alpha=-lr)
        torch._foreach_addcdiv_(params, grads, squares, -lr)
        torch._fused_adam_(
            params, grads, states, squares, [], [torch.full((), 2.0, device="xla")] * 3, lr=lr, beta1=0.9, beta2=0.99,
            weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False)  # fmt: skip
        torch_xla.sync(wait=True)

    step(0.1)
    step(0.2)
    before = compiles()
    for lr in (0.3, 0.4, 0.5):
        step(lr)
    assert compiles() == before


def test_gradient_scaling():
    for bad in (1.0, math.inf, math.nan):
        results = []
        for device in ("cpu", "xla"):
            grads = [t.to(device) for t in (torch.tensor([2.0, 4.0]), torch.tensor([[bad]]))]
            found = torch.zeros(1, device=device)
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.full((1,), 0.5, device=device))
            scale, tracker = torch.full((1,), 8.0, device=device), torch.full((1,), 1, dtype=torch.int32, device=device)
            torch._amp_update_scale_(scale, tracker, found, 2.0, 0.25, 2)
            results.append([grads if bad == 1.0 else grads[:1], found, scale, tracker])
        assert_equal(results[1], results[0])
