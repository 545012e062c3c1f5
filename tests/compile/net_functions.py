"""The functions that `net.py` compiles: each is small, and together they cover every part of the compiler.

Each function below returns a jitted function with its arguments, or the programs that ran, or a call that was
differentiated from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg

FUNCTIONS: dict[str, Callable[[], Any]] = {}


@dataclass
class Differentiated:
    """A jitted function and its arguments, whose gradient was computed outside the function."""

    call: tuple[Any, ...]


def function(make: Callable[[], Any]) -> Callable[[], Any]:
    """Decorator: add a function to the net, by its name."""
    FUNCTIONS[make.__name__] = make
    return make


def normal(*shape: int, dtype: str = "float32") -> mg.Tensor:
    return mg.asarray(np.random.default_rng(len(shape)).normal(size=shape).astype(dtype))


def whole(*shape: int, below: int, dtype: str = "int64") -> mg.Tensor:
    return mg.asarray(np.random.default_rng(below).integers(0, below, shape).astype(dtype))


# Elements -------------------------------------------------------------------------------------------------------------


@function
def chain() -> Any:
    return mg.jit(lambda x: mg.tanh(x * 2 + 1) * mg.exp(-x * x) - mg.relu(x) / 3), (normal(8, 33),)


@function
def mathematics() -> Any:
    @mg.jit
    def f(x, y):
        a = mg.exp(x) + mg.expm1(x) + mg.log1p(x * x) + mg.log(x * x + 1) + mg.sqrt(mg.abs(x))
        b = mg.sin(x) * mg.cos(y) + mg.erf(x) + mg.atan2(x, y) + mg.sigmoid(y) + mg.gelu(x)
        c = mg.floor(x) + mg.round(y) + x // 0.7 + mg.remainder(x, 0.3) + mg.sign(y) + x**3 + mg.abs(x) ** y
        return a, b, c, mg.where(x < y, mg.maximum(x, 0.1), mg.minimum(y, x))

    return f, (normal(5, 7), normal(5, 7))


@function
def integers() -> Any:
    @mg.jit
    def f(n, m):
        return (n // 3 + n % 5) ^ (m << 2), (n >> 1) & m, ~n | m, n == m, mg.where(n < m, n, -m), n.astype(mg.uint8)

    return f, (whole(40, below=9), whole(40, below=7))


@function
def mixed_dtypes() -> Any:
    @mg.jit
    def f(half, single, double, small, flag):
        return half * 2 + half, single * double + small, small * flag, (single > 0) & flag, double.astype(mg.int32)

    halves = normal(4, 6, dtype="float16")
    rest = normal(4, 6), normal(6, dtype="float64"), whole(4, 6, below=5, dtype="int8"), whole(6, below=2) == 1
    return f, (halves, *rest)


@function
def broadcasting() -> Any:
    return mg.jit(lambda row, column, x: (row + column) * x + row.sum() * mg.ones((3, 1, 1))), (
        normal(9), normal(6, 1), normal(3, 6, 9),
    )


@function
def constants() -> Any:
    @mg.jit
    def f(x):
        table = mg.arange(6) * 2 + mg.full((6,), 0.5)
        kept = mg.tril(mg.ones((6, 6), dtype=mg.bool))
        folded = mg.exp(mg.full((6,), 2.0)) * 3 + mg.asarray(1.5)
        return x * 1 + 0 - -x + (x - x) * 0, x + table, mg.where(kept, x, -1.0), folded

    return f, (normal(6, 6),)


@function
def repeated() -> Any:
    @mg.jit
    def f(x):
        mg.sin(x)  # its result is not used
        return mg.exp(x * 2) + mg.exp(x * 2), mg.abs(x * x), 0 - (-x), mg.sqrt(x * x + 1) / mg.sqrt(x * x + 1)

    return f, (normal(7),)


# Rows and reductions --------------------------------------------------------------------------------------------------


@function
def softmax() -> Any:
    return mg.jit(lambda x: mg.softmax(x * 0.5, axis=-1)), (normal(6, 40),)


@function
def softmax_gradient() -> Any:
    return mg.jit(mg.grad(lambda x, y: (mg.softmax(x, axis=-1) * y).sum())), (normal(6, 40), normal(6, 40))


@function
def layer_norm() -> Any:
    return mg.jit(lambda x, w, b: mg.layer_norm(x) * w + b), (normal(12, 20), normal(20), normal(20))


@function
def layer_norm_gradient() -> Any:
    def f(x, w, b, y):
        return ((mg.layer_norm(x) * w + b) * y).sum()

    gradients = mg.jit(lambda *given: [mg.grad(f, argnums=i)(*given) for i in range(3)])
    return gradients, (normal(12, 20), normal(20), normal(20), normal(12, 20))


@function
def across_rows() -> Any:
    @mg.jit
    def f(x):
        return x.sum(0), (x * x).mean(0), x.max(0), x.sum(), x - x.mean(0), mg.tanh(x).sum(0).astype(mg.float64)

    return f, (normal(700, 30),)


@function
def kinds_of_reductions() -> Any:
    @mg.jit
    def f(x, n):
        rows = x.max(-1), x.min(-1), mg.prod(x, -1), mg.var(x, -1), mg.logsumexp(x, axis=-1), x.argmax(-1)
        return *rows, n.sum(1), mg.any(n > 3, 0), mg.all(n < 9), x.sum((0, 2)), mg.max(n)

    return f, (normal(3, 5, 8), whole(4, 11, below=6))


@function
def long_rows() -> Any:
    return mg.jit(lambda x: (x - x.mean(-1, keepdims=True)).sum(-1) + x.sum()), (normal(2, 70_000),)


@function
def cumulative_sum() -> Any:
    gradient = mg.grad(lambda x: (mg.cumulative_sum(mg.exp(x), axis=1) ** 2).sum())
    return mg.jit(lambda x: (mg.cumulative_sum(x * 2, axis=0), gradient(x))), (normal(5, 9),)


@function
def sort() -> Any:
    gradient = mg.grad(lambda x: (mg.sort(x, axis=-1)[:, ::2] * 3).sum())
    return mg.jit(lambda x: (mg.argsort(x), mg.topk(x, 3)[0], gradient(x))), (normal(4, 10),)


# Places ---------------------------------------------------------------------------------------------------------------


@function
def gather_and_scatter() -> Any:
    @mg.jit
    def f(table, rows, values):
        picked = mg.take(table, rows, axis=0) * 2 + table[rows, 1][:, None]
        added = mg.scatter_add(mg.zeros_like(table), (rows,), values)
        return picked, added, mg.take_along_axis(values, rows[:, None], axis=1), mg.one_hot(rows, 6)

    return f, (normal(6, 6), whole(5, below=6), normal(5, 6))


@function
def gather_gradient() -> Any:
    def loss(table, rows):
        return (mg.tanh(mg.embedding(table, rows)) * table[rows]).sum()

    return mg.jit(mg.grad(loss)), (normal(30, 8), whole(3, 10, below=30))


@function
def views() -> Any:
    @mg.jit
    def f(x):
        turned = mg.permute_dims(x, (2, 0, 1))[::-1, 1:]
        flat = (turned * 2).reshape(-1, 3)
        padded = mg.pad(mg.concat([flat, flat[::2]], axis=0), 1)
        return padded.sum(1), mg.roll(x, 1, axis=0), mg.flip(x, axis=1) + x, x.reshape(-1)[3:9], mg.stack([x, x], 1)

    return f, (normal(4, 6, 5),)


@function
def written_in_place() -> Any:
    @mg.jit
    def f(x, y):
        h = x * 1.5
        h[1] = y
        h[:, ::2] += 1
        part = h[2:4]
        part *= y
        x[0] = h.sum(0)  # belongs to the caller
        return h, part.sum()

    return f, (normal(5, 6), normal(6))


# Control --------------------------------------------------------------------------------------------------------------


@function
def scan() -> Any:
    return mg.jit(lambda x, w: mg.scan(lambda h, row: (mg.tanh(w @ h + row), h.sum()), x[0], x)), (
        normal(6, 5), normal(5, 5),
    )


@function
def scan_gradient() -> Any:
    def loss(w, x):
        last, sums = mg.scan(lambda h, row: (mg.tanh(w @ h + row), (h * h).sum()), x[0], x)
        return last.sum() + sums.sum()

    return mg.jit(mg.grad(loss)), (normal(5, 5), normal(6, 5))


@function
def while_loop() -> Any:
    @mg.jit
    def f(x, w):
        return mg.while_loop(lambda h: (h * h).sum() < 1e6, lambda h: mg.relu(w @ h) * 1.5 + x, x, max_steps=20)

    return f, (normal(5), normal(5, 5))


@function
def while_loop_gradient() -> Any:
    def loss(x, w):
        return mg.while_loop(lambda h: (h * h).sum() < 50, lambda h: w @ h + x * 2, x, max_steps=6).sum()

    return mg.jit(mg.grad(loss)), (normal(4), normal(4, 4))


@function
def cond() -> Any:
    def branch(x, w):
        return mg.cond(x.sum() > 0, lambda x: mg.tanh(w * x), lambda x: (x * x - 1) * w, x)

    gradient = mg.grad(lambda x, w: branch(x, w).sum())
    return mg.jit(lambda x, w: (branch(x, w), gradient(x, w))), (normal(4, 5), normal(5))


@function
def script() -> Any:
    @mg.jit
    @mg.script
    def collatz(n, most):
        steps, highest = n * 0, n
        while n != 1 and steps < most:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps, highest = steps + 1, mg.maximum(n, highest)
        return steps, highest

    return collatz, (mg.asarray(7), mg.asarray(100))


# Transformations ------------------------------------------------------------------------------------------------------


@function
def vmap() -> Any:
    def model(x, w):
        return (mg.tanh(w @ x)[1:] * mg.softmax(x, axis=0)[:3]).sum()

    return mg.jit(mg.vmap(mg.grad(model), in_axes=(0, None))), (normal(7, 5), normal(4, 5))


@function
def jvp() -> Any:
    return mg.jit(lambda x, v: mg.jvp(lambda x: mg.softmax(mg.sin(x) @ x, axis=-1), (x,), (v,))), (
        normal(6, 6), normal(6, 6),
    )


@function
def hessian_vector() -> Any:
    return mg.jit(lambda x, v: mg.hvp(lambda x: (mg.tanh(x) ** 3).sum(), (x,), (v,))), (normal(8), normal(8))


@function
def checkpointed() -> Any:
    def loss(x, w):
        block = mg.checkpoint(lambda h: mg.gelu(mg.layer_norm(h @ w)))
        return (block(block(x)) ** 2).sum()

    return mg.jit(mg.grad(loss, argnums=1)), (normal(10, 8), normal(8, 8))


@function
def user_kernel() -> Any:
    def gated(x):
        return np.tanh(x) * x

    @mg.jit
    def f(x):
        return mg.exp(mg.tanh(x + 1) * (x + 1)).sum(), mg.tanh(x) * (x + 1)

    x = normal(4, 5)
    with mg.kernel(lambda x: mg.tanh(x) * x)(gated):
        f(x)
    return f, (x,)


@function
def parallel() -> Any:
    @mg.jit
    def f(x, w):
        h = mg.tanh(x @ w)
        return (h @ w).sum(0), mg.softmax(x @ w.T, axis=-1), (mg.sin(x).sum(0) * w).sum(1)

    return mg.jit(f.function, executor="parallel"), (normal(16, 12), normal(12, 12))


# Random numbers and effects -------------------------------------------------------------------------------------------


@function
def dropout() -> Any:
    gradient = mg.grad(lambda x: (mg.dropout(x * 2, 0.3) ** 2).sum())
    return mg.jit(lambda x: (mg.dropout(x, 0.5), gradient(x))), (normal(6, 11),)


@function
def random_numbers() -> Any:
    @mg.jit
    def f(logits):
        noise = mg.random.normal((4, 5)) + mg.random.uniform((5,))
        return noise, mg.random.categorical(logits), mg.random.permutation(6)

    return f, (normal(4, 5),)


@function
def effects() -> Any:
    @mg.jit
    def f(x):
        h = x * 2
        mg.print("the sum is", h.sum())
        return mg.exp(h)

    return f, (normal(3),)
