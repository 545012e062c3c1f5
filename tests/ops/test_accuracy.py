"""Errors of reductions and norms in float32, in all modes, beside those of NumPy.

NumPy adds neighbours in pairs, but the rows of an array one after the other.  So compiled code is compared with its
results for an array with the reduced axes last; eager mode, which calls NumPy, with the less accurate of both.  An
error may be four times NumPy's, or four units in the last place of what is added up: NumPy's own errors depend on its
version (2.0 and 2.4 differ by half).
"""

from functools import cache

import numpy as np
import pytest

import minigrad as mg

SHAPES = {  # name: shape, the axes that are reduced
    "thousand": ((1000,), None), "long": ((65_536,), None), "longest": ((4_000_000,), None), "all": ((5000, 50), None),
    "last": ((200, 1000), (-1,)), "short last": ((2000, 48), (-1,)), "long last": ((4, 100_000), (-1,)),
    "first": ((20_000, 50), (0,)), "long first": ((300_000, 4), (0,)), "wide first": ((300, 1000), (0,)),
    "middle": ((8, 4000, 5), (1,)), "outer": ((500, 16, 30), (0, 2)), "channels": ((16, 3, 32, 32), (0, 2, 3)),
}
MEANS = (0.0, 1.0, 1e4)
EPS = float(np.finfo(np.float32).eps)


def norm(m, x, axis):
    """The root of the sum of squares."""
    return mg.linalg.vector_norm(x, axis=axis) if m is mg else np.sqrt((x * x).sum(axis=axis))


def logsumexp(m, x, axis):
    if m is mg:
        return mg.logsumexp(x, axis=axis)
    top = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=axis)) + top.reshape(np.max(x, axis=axis).shape)


FUNCTIONS = {
    "sum": lambda m, x, axis: m.sum(x, axis=axis), "mean": lambda m, x, axis: m.mean(x, axis=axis),
    "var": lambda m, x, axis: m.var(x, axis=axis), "std": lambda m, x, axis: m.std(x, axis=axis),
    "vector_norm": norm, "logsumexp": logsumexp,
    "sum of products": lambda m, x, axis: m.sum(x * (x + 1.0), axis=axis),
}


@cache
def numbers(shape, mean):
    """Uniform random numbers."""
    return (np.random.default_rng(0).uniform(-0.5, 0.5, shape) + mean).astype(np.float32)


@cache
def in_order(shape, axes, mean):
    """The numbers with the reduced axes as the last one, in the order of memory."""
    x = numbers(shape, mean)
    if axes is None:
        return x.reshape(-1)
    axes = [a % x.ndim for a in axes]
    kept = [a for a in range(x.ndim) if a not in axes]
    return np.ascontiguousarray(x.transpose([*kept, *axes])).reshape(*[shape[a] for a in kept], -1)


def in_modes(function, *args):
    """The results in eager mode, under `jit` and in graph mode."""
    yield "jit", mg.jit(function)(*args)
    with mg.graph():
        result = function(*args)
    yield "graph", result
    yield "eager", function(*args)


def error(found, true, scale):
    """The largest error, in units in the last place of float32."""
    return float(np.max(np.abs(np.asarray(found, np.float64) - true) / scale)) / EPS


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("where", SHAPES)
def test_errors_of_reductions_do_not_grow_with_the_size(name, where):
    (shape, axes), function = SHAPES[where], FUNCTIONS[name]
    for mean in MEANS:
        x, ordered = numbers(shape, mean), in_order(shape, axes, mean)
        true = function(np, ordered.astype(np.float64), -1)
        scale = np.abs(true)
        if name in ("sum", "mean", "sum of products"):  # relative to what is added up, which may cancel
            scale = function(np, np.abs(ordered.astype(np.float64)), -1)
        allowed = max(4 * error(function(np, ordered, -1), true, scale), 4.0)
        for mode, found in in_modes(lambda t: function(mg, t, axes), mg.asarray(x)):
            if mode == "eager" and name != "logsumexp":
                allowed = max(4 * error(function(np, x, axes), true, scale), allowed)
            assert error(found.numpy(), true, scale) <= allowed, (mode, mean)


NORMS = {  # minigrad's function, the same with NumPy, the shape of the input
    "layer_norm": (lambda x: mg.layer_norm(x), lambda x: standardized(x, -1), (100, 3000)),
    "layer_norm of short rows": (lambda x: mg.layer_norm(x), lambda x: standardized(x, -1), (3000, 32)),
    "batch_norm": (lambda x: mg.batch_norm(x, training=True), lambda x: standardized(x, (0, 2, 3)), (32, 5, 20, 20)),
    "batch_norm of rows": (lambda x: mg.batch_norm(x, training=True), lambda x: standardized(x, 0), (20_000, 20)),
    "group_norm": (
        lambda x: mg.group_norm(x, 2),
        lambda x: standardized(x.reshape(8, 2, -1), -1).reshape(x.shape), (8, 6, 50, 50),
    ),
}


def standardized(x, axes):
    off = x - x.mean(axis=axes, keepdims=True)
    return off / np.sqrt((off * off).mean(axis=axes, keepdims=True) + x.dtype.type(1e-5))


@pytest.mark.parametrize("name", NORMS)
def test_errors_of_norms_are_those_of_the_rounded_mean(name):
    ours, theirs, shape = NORMS[name]
    for mean in MEANS:
        x = numbers(shape, mean)
        true = theirs(x.astype(np.float64))
        largest = np.abs(true).max()
        rounded = np.abs(mean) * EPS / 2 / x.std(dtype=np.float64)  # of the mean, beside a deviation
        allowed = max(4 * error(theirs(x), true, largest), 2.0 + rounded / largest / EPS)
        for mode, found in in_modes(ours, mg.asarray(x)):
            assert error(found.numpy(), true, largest) <= allowed, (mode, mean)


# ---- the variance ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0.1, 1e4 + 0.1, 1e18, -3.3, 1e-40])
@pytest.mark.parametrize("shape", [(7,), (1000,), (65_537,)])
def test_equal_numbers_have_a_small_variance_that_is_not_negative(number, shape):
    x = mg.asarray(np.full(shape, number, np.float32))
    for mode, found in in_modes(lambda x: mg.stack([mg.var(x), mg.std(x) ** 2]), x):
        least, most = found.numpy().min(), found.numpy().max()
        assert 0 <= least and most <= (4 * EPS * number) ** 2, (mode, found)


def test_nan_and_infinity_reach_the_variance():
    for special in (np.nan, np.inf, -np.inf):
        x = mg.asarray(np.float32([1.0, special, 3.0] * 50))
        for _, found in in_modes(mg.var, x):
            assert np.isnan(found.numpy())


@pytest.mark.parametrize("shape, axis", [((200,), None), ((6, 30), 0), ((6, 30), 1), ((3, 4, 20), (0, 2))])
def test_all_derivatives_of_the_variance_are_those_of_its_formula(shape, axis):
    formula = lambda x: mg.mean(x * x, axis=axis) - mg.mean(x, axis=axis) ** 2  # noqa: E731
    x = mg.asarray(np.random.default_rng(0).normal(size=shape))
    v = mg.asarray(np.random.default_rng(1).normal(size=shape))

    def derivatives(var):
        cubed = lambda x: (var(x) ** 3).sum()  # noqa: E731
        yield mg.grad(cubed)(x)
        yield mg.jvp(var, (x,), (v,))[1]
        yield mg.grad(lambda x: (mg.grad(cubed)(x) * v).sum())(x)
        yield mg.jvp(mg.grad(cubed), (x,), (v,))[1]
        yield mg.jit(mg.grad(lambda x: (mg.grad(cubed)(x) * v).sum()))(x)
        yield mg.vmap(mg.grad(cubed))(mg.stack([x, v]))

    for ours, theirs in zip(derivatives(lambda x: mg.var(x, axis=axis)), derivatives(formula)):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-12)
