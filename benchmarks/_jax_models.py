"""The training steps of `training.py` in plain jax: functions of named weights, and one jitted step.

The step includes the update, and it may write the new weights over the old ones (`donate_argnums`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from training import Task

Weights = dict[str, Any]


def linear(w: Weights, name: str, x: Any) -> Any:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def layer_norm(w: Weights, name: str, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    spread = (centred * centred).mean(-1, keepdims=True)
    return centred / (spread + 1e-5) ** 0.5 * w[f"{name}.weight"] + w[f"{name}.bias"]


def mlp(jax: Any, sizes: tuple[int, ...], w: Weights, x: Any) -> Any:
    last = len(sizes) - 2
    for layer in range(last):
        x = jax.nn.relu(linear(w, str(2 * layer), x))
    return linear(w, str(2 * last), x)


def cnn(jax: Any, sizes: tuple[int, ...], w: Weights, x: Any) -> Any:
    """The picture has its channels last, which is the faster layout on a CPU."""
    x = x.transpose(0, 2, 3, 1)
    for name in ("0", "3"):
        kernel = w[f"{name}.weight"].transpose(2, 3, 1, 0)
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + w[f"{name}.bias"])
        b, height, width, channels = x.shape
        x = x.reshape(b, height // 2, 2, width // 2, 2, channels).max((2, 4))
    return linear(w, "7", x.transpose(0, 3, 1, 2).reshape(len(x), -1))


def gpt(jax: Any, sizes: tuple[int, ...], w: Weights, tokens: Any) -> Any:
    layers, _, heads, _, vocabulary = sizes
    x = w["tokens.weight"][tokens] + w["places.weight"]
    for layer in range(layers):
        x = x + _attention(jax, heads, w, f"blocks.{2 * layer}", x)
        feed = f"blocks.{2 * layer + 1}"
        hidden = linear(w, f"{feed}.into", layer_norm(w, f"{feed}.norm", x))
        x = x + linear(w, f"{feed}.out", jax.nn.gelu(hidden, approximate=True))
    return linear(w, "head", layer_norm(w, "norm", x)).reshape(-1, vocabulary)


def _attention(jax: Any, heads: int, w: Weights, name: str, x: Any) -> Any:
    b, t, width = x.shape
    parts = linear(w, f"{name}.into", layer_norm(w, f"{name}.norm", x)).reshape(b, t, 3, heads, width // heads)
    seen = jax.nn.dot_product_attention(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2], is_causal=True)
    return linear(w, f"{name}.out", seen.reshape(b, t, width))


MODELS: dict[str, Callable[..., Any]] = {"mlp": mlp, "cnn": cnn, "gpt": gpt}


def sgd(jax: Any, state: Any, gradients: Weights, rate: float) -> Any:
    return {"weights": {n: w - rate * gradients[n] for n, w in state["weights"].items()}}


def adam(jax: Any, state: Any, gradients: Weights, rate: float) -> Any:
    """Adam with the usual constants."""
    t = state["t"] + 1
    first = {n: 0.9 * m + 0.1 * gradients[n] for n, m in state["first"].items()}
    second = {n: 0.999 * v + 0.001 * gradients[n] ** 2 for n, v in state["second"].items()}
    rate, correction = rate / (1 - 0.9**t), 1 - 0.999**t
    weights = {n: w - rate * first[n] / (jax.numpy.sqrt(second[n] / correction) + 1e-8)
               for n, w in state["weights"].items()}
    return {"weights": weights, "first": first, "second": second, "t": t}


UPDATES: dict[str, Callable[..., Any]] = {"SGD": sgd, "Adam": adam}


def start(jax: Any, optimizer: str, weights: dict[str, np.ndarray]) -> Any:
    """The state before the first update."""
    state: dict[str, Any] = {"weights": {n: jax.numpy.asarray(w) for n, w in weights.items()}}
    if optimizer == "Adam":
        zeros = partial(jax.tree.map, jax.numpy.zeros_like)
        state |= {"first": zeros(state["weights"]), "second": zeros(state["weights"]), "t": jax.numpy.float32(0)}
    return state


def step(
    jax: Any, task: Task, weights: dict[str, np.ndarray], x: Any, y: Any, rate: float
) -> Callable[[], Any]:
    """A training step that keeps its state."""
    model, update = MODELS[task.model], UPDATES[task.optimizer]

    def loss(w: Weights, x: Any, y: Any) -> Any:
        logits = jax.nn.log_softmax(model(jax, task.sizes, w, x))
        return -jax.numpy.take_along_axis(logits, y[:, None], 1).mean()

    @partial(jax.jit, donate_argnums=0)
    def compiled(state: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(state["weights"], x, y)
        return update(jax, state, gradients, rate), value

    state = start(jax, task.optimizer, weights)
    x, y = jax.numpy.asarray(x), jax.numpy.asarray(y)

    def work() -> Any:
        nonlocal state
        state, value = compiled(state, x, y)
        return value

    return work


def update_only(
    jax: Any, optimizer: str, weights: dict[str, np.ndarray], gradients: dict[str, np.ndarray], rate: float
) -> Callable[[], Any]:
    """An update with gradients that stay the same."""
    update = UPDATES[optimizer]
    compiled = jax.jit(lambda state, gradients: update(jax, state, gradients, rate), donate_argnums=0)
    state = start(jax, optimizer, weights)
    constant = {n: jax.numpy.asarray(g) for n, g in gradients.items()}

    def work() -> Any:
        nonlocal state
        state = compiled(state, constant)
        return list(state["weights"].values())

    return work
