"""Random programs: tensors made from tensors by all kinds of operations that a compiler must handle."""

import numpy as np

import minigrad as mg
from tests.compile.partitions import recorded

SHAPES = [(4, 6), (6,), (4, 1), (1, 6), (2, 4, 6), (2, 1, 6), (), (3, 5), (24,), (4, 2, 3), (1,)]


def random_leaf(rng, shape=None):
    """A tensor of random floats that requires a gradient, or of random integers or bools."""
    shape = SHAPES[rng.integers(len(SHAPES))] if shape is None else shape
    kind = rng.integers(10)
    if kind == 0:
        return mg.asarray(rng.integers(-3, 4, shape), dtype=[mg.int64, mg.int32, mg.uint8, mg.int8][rng.integers(4)])
    if kind == 1:
        return mg.asarray(rng.random(shape) < 0.5)
    dtype = mg.float64 if kind == 2 else mg.float32
    return mg.asarray(rng.standard_normal(shape), dtype=dtype, requires_grad=bool(rng.integers(2)))


def unary(rng, x):
    """One operation of one operand."""
    if x.dtype.kind != "f":
        return [lambda: x.astype(mg.float32), lambda: x == 1, lambda: x < x, lambda: x.astype(mg.int64) * 2,
                lambda: mg.where(x, 1.5, -0.5), lambda: x.astype(mg.bool)][rng.integers(6)]()
    return [
        lambda: mg.exp(x * 0.3), lambda: mg.tanh(x), lambda: -x, lambda: mg.abs(x), lambda: mg.sqrt(x * x + 1.0),
        lambda: mg.relu(x), lambda: mg.sigmoid(x), lambda: x * 0.5, lambda: 1.0 - x, lambda: x.astype(mg.float32),
        lambda: mg.log1p(x * x), lambda: mg.gelu(x), lambda: x // 0.7, lambda: x.astype(mg.int32), lambda: mg.sin(x),
        lambda: mg.maximum(x, 0.1), lambda: mg.sign(x), lambda: mg.floor(x) + mg.round(x), lambda: x < 0.2,
    ][rng.integers(19)]()


def binary(rng, x, y):
    """One operation of two operands, which broadcast if they can."""
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return None
    return [
        lambda: x + y, lambda: x * y, lambda: x.astype(mg.float32) - y, lambda: mg.maximum(x, y),
        lambda: mg.where(x < y, x, y), lambda: x / (y.astype(mg.float32) ** 2 + 1.0), lambda: x == y, lambda: x <= y,
        lambda: mg.where(x, y, 0), lambda: mg.minimum(x, y),
    ][rng.integers(10)]()


def view(rng, x):
    """One view operation, which computes nothing."""
    choice = rng.integers(7)
    if choice == 0 and x.ndim:
        return mg.permute_dims(x, [int(a) for a in rng.permutation(x.ndim)])
    if choice == 1:
        return x.reshape(-1)
    if choice == 2 and x.ndim:
        axis = int(rng.integers(x.ndim))
        index = [slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), 0, -1][rng.integers(6)]
        if x.shape[axis] > 2:
            return x[(slice(None),) * axis + (index,)]
    if choice == 3:
        return mg.broadcast_to(x, (int(rng.integers(1, 4)), *x.shape)) if x.ndim < 4 else x.reshape(-1)
    if choice == 4:
        return x[..., None] if x.ndim < 4 else x[None]
    if choice == 5 and x.size % 6 == 0 and x.size:
        return x.reshape((6, x.size // 6))
    if choice == 6 and x.size % 4 == 0 and x.size:
        return x.reshape((4, x.size // 4))
    return x.reshape((1, *x.shape)) if x.ndim < 4 else x


def reduction(rng, x):
    """One reduction, or a composition of several."""
    if not x.ndim or not x.size:
        return None
    axes = tuple(int(a) for a in rng.permutation(x.ndim)[: rng.integers(1, x.ndim + 1)])
    keep = bool(rng.integers(2))
    if x.dtype.kind != "f":
        return [lambda: mg.sum(x, axes, keepdims=keep), lambda: mg.max(x, axes, keepdims=keep),
                lambda: mg.any(x, axes, keepdims=keep)][rng.integers(3)]()
    last = axes[0]
    return [
        lambda: mg.sum(x, axes, keepdims=keep), lambda: mg.max(x, axes, keepdims=keep),
        lambda: mg.mean(x, axes, keepdims=keep), lambda: mg.softmax(x, axis=last), lambda: mg.layer_norm(x),
        lambda: mg.sum(x, -1, keepdims=True), lambda: mg.var(x, axes, keepdims=keep), lambda: mg.min(x, last),
        lambda: mg.logsumexp(x, axis=last), lambda: mg.prod(x * 0.5 + 1.0, axes, keepdims=keep),
        lambda: mg.cumulative_sum(x, axis=last),
    ][rng.integers(11)]()


def made(rng, x):
    """A filled tensor, a range, a placed part or a choice."""
    if not x.ndim or x.dtype.kind != "f":
        return mg.full((4, 6), 2.5) * x if x.shape in ((), (6,), (4, 1)) else mg.ones(x.shape)
    return [
        lambda: x + mg.arange(x.shape[-1]), lambda: mg.triu(x) if x.ndim > 1 else x * mg.arange(1.5, 99.0)[: x.size],
        lambda: mg.concat([x, x * 2.0], axis=-1), lambda: mg.pad(x, 1), lambda: mg.take(x, mg.asarray([0, 0]), axis=-1),
        lambda: x.reshape((-1, x.shape[-1])) @ mg.ones((x.shape[-1], 6)), lambda: x * mg.full((1,), 3.0),
    ][rng.integers(7)]()


def random_program(seed, size):
    """The recorded results of a random program, some of them gradients; and all its tensors, to keep them alive."""
    rng = np.random.default_rng(seed)
    with recorded() as sources:
        pool = [random_leaf(rng, shape) for shape in ((4, 6), (6,), None)]
        while len(pool) < size:
            x = pool[-1] if rng.random() < 0.5 else pool[rng.integers(len(pool))]
            choice = rng.choice(5, p=[0.3, 0.3, 0.15, 0.15, 0.1])
            if choice == 1:
                new = binary(rng, x, pool[rng.integers(len(pool))])
            else:
                new = [unary, None, view, reduction, made][choice](rng, x)
            if new is not None and new.size < 3000:
                pool.append(new)
        outputs = [pool[-1], *[pool[i] for i in rng.integers(len(pool), size=2)]]
        leaves = [t for t in pool[:3] if t.tracked]
        tracked = [t for t in outputs if t.tracked and t.node.op is not None]
        if leaves and tracked:
            loss = sum([mg.sum(t.astype(mg.float32) * 0.1) for t in tracked], start=mg.asarray(0.0))
            grads = mg.gradients(loss, leaves, create_graph=True, allow_unused=True)
            outputs += [g for g in grads if g is not None]
    return [t for t in outputs if t.node is not None], (pool, sources)
