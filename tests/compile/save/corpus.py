"""Functions that together use every primitive that a file may have, with arguments to save them for."""

import numpy as np

import minigrad as mg

ROWS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
SQUARE = np.eye(3, dtype=np.float32) * 4 + np.ones((3, 3), np.float32)


def arithmetic(x, y, i, j):
    floats = x + y - x * y / (x * x + 1) + (-x) ** 2 + abs(y) + mg.atan2(x, y) + mg.maximum(x, mg.minimum(y, 0.5))
    curves = mg.exp(x) + mg.expm1(x) + mg.log(y * y + 1) + mg.log1p(y * y) + mg.sqrt(y * y) + mg.sin(x) + mg.cos(x)
    bent = mg.tanh(x) + mg.sigmoid(x) + mg.erf(x) + mg.floor(x) + mg.round(y) + mg.where(x < y, x, 2.0)
    powers = mg.pow(abs(x) + 1, y)
    whole = (i // 3 + i % 5 ^ j | i & ~j) << 2 >> mg.abs(j)
    return floats + curves * bent, powers, whole, mg.bitcast(x, "int32"), (x <= y) & (i == j), i.astype("float16")


def views(x):
    y = x.T[1:, None, ::2].reshape((-1, 2)) + mg.broadcast_to(x[0, :2], (6, 2))[:3]
    return y, mg.windows(x, 2, axis=1), mg.overlap_add(mg.windows(x, 2, axis=1), x.shape, axis=1), x.copy()


def joined(x):
    z = x.copy()
    z[1:, ::2] = 5
    z[0] += x[1]
    return mg.concat([x, z, mg.full((1, 4), 0.5)]), mg.pad(x, ((1, 2), (0, 1))), mg.arange(5) * 2


def positions(x, i):
    base = mg.zeros((3, 4))
    written = x.copy()
    written[i] = x[0] * 2
    added = mg.scatter_add(base, i, x[i]), mg.scatter_max(base, i, x[i])
    return x[i, i], mg.exp(x)[i], *added, written, mg.take_along_axis(x, mg.argsort(x, axis=1), axis=1)


def reductions(x):
    parts = x.sum(0), x.prod(1), x.max(), x.min(axis=1, keepdims=True), mg.argmax(x, axis=1), mg.argmin(x, axis=0)
    running = mg.cumulative_sum(x, axis=1), mg.cumulative_prod(x, axis=0)
    return parts, running, mg.sort(x, axis=0), mg.argsort(x, axis=-1, descending=True), mg.topk(x, 2), (x > 0).sum()


def matrices(a, x):
    factors = mg.linalg.qr(x.T), mg.linalg.eigh(a @ a.T), mg.linalg.svd(x), mg.linalg.pinv(x)
    return mg.linalg.solve(a, x), mg.linalg.cholesky(a @ a.T), mg.linalg.slogdet(a), factors


def loops(x, n):
    total = mg.while_loop(lambda c: c.sum() < 30, lambda c: c * 2 + x.max(), abs(x) + 1)
    carry, ys = mg.scan(lambda c, row: (c + row, mg.tanh(c)), x[0], x)
    count = mg.fori_loop(0, n, lambda i, v: v + x[0, 0] * i, 0.0)
    chosen = mg.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - x[0], x[1])
    return total, carry, ys, count, chosen


def nested(x):
    def outer(c, row):
        inner = mg.while_loop(lambda v: v.sum() < 4, lambda v: mg.cond(v.sum() > 1, mg.exp, lambda t: t + 1, v), row)
        return c + inner, inner

    return mg.scan(outer, x[0] * 0, x, reverse=True)


def gradients(x):
    def loss(x):
        carry, ys = mg.scan(lambda c, row: (mg.tanh(c * row), c), x[0], x)
        return mg.while_loop(lambda c: c.sum() < 30, lambda c: c * 2 + 1, carry, max_steps=6).sum() + ys.sum()

    return mg.grad(loss)(x)


def elsewhere(x):
    return mg.sin(x.to("cpu:1")) * 2


WEIGHTS = mg.asarray(np.linspace(-2, 2, 20, dtype=np.float32).reshape(4, 5))
MASK = mg.asarray([True, False, True, True, False])


def network(x):
    return mg.softmax(mg.where(MASK, x @ WEIGHTS, -1e9), axis=-1), mg.gelu(x @ WEIGHTS).mean()


def of_rows(function):
    return function, (ROWS,)


WHOLE, BACK = np.arange(12).reshape(3, 4), np.arange(12)[::-1].reshape(3, 4) - 3
CORPUS = {
    "arithmetic": (arithmetic, (ROWS, ROWS[::-1].copy(), WHOLE, BACK)), "views": of_rows(views),
    "joined": of_rows(joined), "positions": (positions, (ROWS, np.array([0, 2, -1]))),
    "reductions": of_rows(reductions),
    "matrices": (matrices, (SQUARE, ROWS)), "loops": (loops, (ROWS, 5)), "nested": of_rows(nested),
    "gradients": of_rows(gradients), "elsewhere": of_rows(elsewhere), "network": of_rows(network),
}


def arguments(name):
    """The arguments as tensors."""
    return [mg.asarray(a) if isinstance(a, np.ndarray) else a for a in CORPUS[name][1]]


def save(name, path):
    """Write the program of a function to a file."""
    mg.jit(CORPUS[name][0]).save(path, *arguments(name))
