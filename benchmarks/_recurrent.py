"""Recurrent layers for `compiled.py`: loops whose rounds are small matrix products and gates."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from _harness import BEST, Case, Options, Work

import minigrad as mg

CONTENDERS = ("minigrad", "eager", "torch", "jax.jit")
Weights = dict[str, Any]


def cases(opts: Options) -> list[Case]:
    """An LSTM and a GRU, forward, and forward with backward."""
    found = []
    for kind in ("LSTM", "GRU"):
        for batch in (2,) if opts.smoke else (1, 32):
            length, inputs, size = (3, 4, 5) if opts.smoke else (100, 32, 64)
            for backward in (False, True):
                label = f"{kind} {inputs}-{size}, batch {batch}, {length} steps" + ", forward + backward" * backward
                work = partial(run, kind=kind, shape=(length, batch, inputs), size=size, backward=backward, opts=opts)
                found.append(Case(label, CONTENDERS, work, 1.2, BEST, least=0.05, pause=0.05))
    return found


def run(contender: str, kind: str, shape: tuple[int, int, int], size: int, backward: bool, opts: Options) -> Work:
    """The outputs for a sequence; with `backward` the mean of their squares and its gradient for the sequence."""
    mg.random.seed(0)
    layer = getattr(mg.nn, kind)(shape[-1], size)
    weights = {name: value.numpy_copy() for name, value in layer.state_dict().items()}
    array = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    if contender == "torch":
        return _torch(opts.library("torch"), kind, weights, array, size, backward)
    if contender == "jax.jit":
        return _jax(opts.library("jax"), kind, weights, array, backward)
    x = mg.asarray(array)
    for parameter in layer.parameters():
        parameter.requires_grad = False
    function: Any = lambda x: layer(x)[0]  # noqa: E731
    if backward:
        function = mg.value_and_grad(lambda x: (layer(x)[0] ** 2).mean())
    function = mg.jit(function) if contender == "minigrad" else function
    return lambda: function(x)


def _torch(torch: Any, kind: str, weights: Weights, array: Any, size: int, backward: bool) -> Work:
    layer = getattr(torch.nn, kind)(array.shape[-1], size).requires_grad_(False)
    layer.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    x = torch.tensor(array, requires_grad=backward)

    def work() -> Any:
        if not backward:
            return layer(x)[0]
        loss = (layer(x)[0] ** 2).mean()
        return loss, *torch.autograd.grad(loss, x)

    return work


def _jax(jax: Any, kind: str, weights: Weights, array: Any, backward: bool) -> Work:
    step = _lstm if kind == "LSTM" else _gru
    w = {name: jax.numpy.asarray(value) for name, value in weights.items()}

    def outputs(w: Weights, x: Any) -> Any:
        rows = x @ w["weight_ih_l0"].T + w["bias_ih_l0"]
        zeros = jax.numpy.zeros((x.shape[1], w["weight_hh_l0"].shape[1]), x.dtype)
        return jax.lax.scan(lambda state, row: step(jax, w, state, row), (zeros, zeros), rows)[1]

    both = jax.value_and_grad(lambda w, x: (outputs(w, x) ** 2).mean(), argnums=1)
    x, jitted = jax.numpy.asarray(array), jax.jit(both if backward else outputs)
    return lambda: jax.block_until_ready(jitted(w, x))


def _lstm(jax: Any, w: Weights, state: Any, row: Any) -> Any:
    hidden, cell = state
    gates = row + hidden @ w["weight_hh_l0"].T + w["bias_hh_l0"]
    into, stay, new, out = jax.numpy.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(stay) * cell + jax.nn.sigmoid(into) * jax.numpy.tanh(new)
    hidden = jax.nn.sigmoid(out) * jax.numpy.tanh(cell)
    return (hidden, cell), hidden


def _gru(jax: Any, w: Weights, state: Any, row: Any) -> Any:
    hidden, unused = state
    inner = hidden @ w["weight_hh_l0"].T + w["bias_hh_l0"]
    (reset, stay, new), (reset_inner, stay_inner, new_inner) = [jax.numpy.split(each, 3, -1) for each in (row, inner)]
    new = jax.numpy.tanh(new + jax.nn.sigmoid(reset + reset_inner) * new_inner)
    stay = jax.nn.sigmoid(stay + stay_inner)
    hidden = (1 - stay) * new + stay * hidden
    return (hidden, unused), hidden
