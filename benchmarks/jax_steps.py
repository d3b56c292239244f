"""The training steps of workloads.py in JAX, on the parameters of the PyTorch models."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from workloads import RESNET_STAGES, WORKLOADS, build

Parameters = dict[str, jax.Array]
Array = jax.Array


def linear(p: Parameters, name: str, x: Array) -> Array:
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def layer_norm(p: Parameters, name: str, x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scale = lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * p[f"{name}.weight"] + p[f"{name}.bias"]


def batch_norm(p: Parameters, name: str, x: Array) -> Array:
    # Running statistics, which a training step only updates, are left out.
    centred = x - x.mean((0, 2, 3), keepdims=True)
    scale = lax.rsqrt((centred**2).mean((0, 2, 3), keepdims=True) + 1e-5)
    return centred * scale * p[f"{name}.weight"][:, None, None] + p[f"{name}.bias"][:, None, None]


def convolution(p: Parameters, name: str, x: Array, stride: int = 1, padding: int = 0) -> Array:
    y = lax.conv_general_dilated(
        x,
        p[f"{name}.weight"],
        (stride, stride),
        ((padding, padding), (padding, padding)),
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
    )
    return y + p[f"{name}.bias"][:, None, None] if f"{name}.bias" in p else y


def max_pool(x: Array) -> Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def perceptron(p: Parameters, x: Array) -> Array:
    for i in range(0, 32, 2):
        x = jax.nn.relu(linear(p, str(i), x))
    return x


def mnist_cnn(p: Parameters, x: Array) -> Array:
    x = batch_norm(p, "norm1", jax.nn.relu(max_pool(convolution(p, "conv1", x))))
    x = batch_norm(p, "norm2", jax.nn.relu(max_pool(convolution(p, "conv2", x))))
    x = jax.nn.relu(linear(p, "hidden", x.reshape(x.shape[0], -1)))
    return jax.nn.log_softmax(linear(p, "out", x))


def wide_feed_forward(p: Parameters, x: Array) -> Array:
    return linear(p, "3", layer_norm(p, "2", jax.nn.gelu(linear(p, "0", x), approximate=True)))


def attention(p: Parameters, name: str, x: Array, heads: int = 8) -> Array:
    batch, length, width = x.shape
    qkv = linear(p, f"{name}.qkv", x).reshape(batch, length, 3, heads, width // heads)
    query, key, value = qkv.transpose(2, 0, 3, 1, 4)
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = jax.nn.softmax(scores) @ value
    return linear(p, f"{name}.out", mixed.swapaxes(1, 2).reshape(batch, length, width))


def gpt(p: Parameters, tokens: Array) -> Array:
    x = p["tokens.weight"][tokens] + p["positions.weight"][jnp.arange(tokens.shape[1])]
    for i in range(6):
        x = x + attention(p, f"blocks.{i}.attention", layer_norm(p, f"blocks.{i}.norm1", x))
        hidden = jax.nn.gelu(linear(p, f"blocks.{i}.up", layer_norm(p, f"blocks.{i}.norm2", x)), approximate=True)
        x = x + linear(p, f"blocks.{i}.down", hidden)
    return linear(p, "head", layer_norm(p, "norm", x))


def residual(p: Parameters, name: str, x: Array, stride: int) -> Array:
    y = jax.nn.relu(batch_norm(p, f"{name}.norm1", convolution(p, f"{name}.conv1", x, stride, 1)))
    y = batch_norm(p, f"{name}.norm2", convolution(p, f"{name}.conv2", y, 1, 1))
    if f"{name}.shortcut.0.weight" in p:
        x = batch_norm(p, f"{name}.shortcut.1", convolution(p, f"{name}.shortcut.0", x, stride))
    return jax.nn.relu(y + x)


def resnet18(p: Parameters, x: Array) -> Array:
    x = jax.nn.relu(batch_norm(p, "norm", convolution(p, "stem", x, 1, 1)))
    for i, (_, stride) in enumerate(RESNET_STAGES):
        x = residual(p, f"blocks.{i}", x, stride)
    return linear(p, "head", x.mean((2, 3)))


def mean_square(outputs: Array, targets: Array) -> Array:
    return ((outputs - targets) ** 2).mean()


def cross_entropy(logits: Array, targets: Array) -> Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()


MODELS: dict[str, tuple[Callable[[Parameters, Array], Array], Callable[[Array, Array], Array]]] = {
    "mlp16": (perceptron, mean_square),
    "mnist_cnn": (mnist_cnn, cross_entropy),
    "ffn_wide": (wide_feed_forward, mean_square),
    "gpt": (gpt, cross_entropy),
    "resnet18": (resnet18, cross_entropy),
}


def sgd(p: Array, g: Array, state: tuple[Array, Array], step: Array) -> tuple[Array, tuple[Array, Array]]:
    momentum = 0.9 * state[0] + g
    return p - 0.01 * momentum, (momentum, state[1])


def adam(
    p: Array, g: Array, state: tuple[Array, Array], step: Array, decay: float = 0.0
) -> tuple[Array, tuple[Array, Array]]:
    first = 0.9 * state[0] + 0.1 * g
    second = 0.999 * state[1] + 0.001 * g * g
    denominator = jnp.sqrt(second / (1 - 0.999**step)) + 1e-8
    return p * (1 - 1e-3 * decay) - 1e-3 * first / (1 - 0.9**step) / denominator, (first, second)


def adamw(p: Array, g: Array, state: tuple[Array, Array], step: Array) -> tuple[Array, tuple[Array, Array]]:
    return adam(p, g, state, step, decay=0.01)


UPDATES = {"sgd": sgd, "adam": adam, "adamw": adamw}


def to_array(tensor: torch.Tensor) -> Array:
    array = tensor.detach().numpy()
    return jnp.asarray(array.astype(np.int32) if array.dtype == np.int64 else array)


class JaxStep:
    """One compiled training step; parameters and optimizer state are donated."""

    def __init__(self, name: str) -> None:
        model, inputs, targets = build(name)
        self.parameters = {key: to_array(value) for key, value in model.named_parameters()}
        self.state = {key: (jnp.zeros_like(value), jnp.zeros_like(value)) for key, value in self.parameters.items()}
        self.inputs, self.targets = to_array(inputs), to_array(targets)
        self.count = 0
        forward, loss = MODELS[name]
        update = UPDATES[WORKLOADS[name].optimizer]

        def step(parameters, state, inputs, targets, count):
            value, gradients = jax.value_and_grad(lambda p: loss(forward(p, inputs), targets))(parameters)
            updated = {key: update(parameters[key], gradients[key], state[key], count) for key in parameters}
            return {k: v[0] for k, v in updated.items()}, {k: v[1] for k, v in updated.items()}, value

        self.compiled = jax.jit(step, donate_argnums=(0, 1))

    def __call__(self) -> Array:
        self.count += 1
        self.parameters, self.state, loss = self.compiled(
            self.parameters, self.state, self.inputs, self.targets, jnp.float32(self.count)
        )
        return loss

    def wait(self) -> None:
        jax.block_until_ready((self.parameters, self.state))
