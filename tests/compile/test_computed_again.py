"""Values that are computed several times: each time they have the same bits, so that comparisons find what is equal.

MINIGRAD_FUZZ=2000 compares more random programs than the default.
"""

import os

import numpy as np
import pytest

import minigrad as mg

PROGRAMS = int(os.environ.get("MINIGRAD_FUZZ", "60"))
CHUNKS = 5
X, Y = np.random.default_rng(0).normal(size=(2, 1000, 16))
SHAPES = [(300, 16), (64, 100), (7, 600), (100, 33), (1, 3000), (16, 64)]

# Operations that every machine rounds alike.
STEPS = {
    "mul": lambda a, b: a * b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "square": lambda a, b: a * a,
    "div": lambda a, b: a / (mg.abs(b) + 0.5), "scale": lambda a, b: a * 1.3 + b, "neg": lambda a, b: -a,
    "sqrt": lambda a, b: mg.sqrt(mg.abs(a) + 0.1), "relu": lambda a, b: mg.relu(a), "half": lambda a, b: b * 0.7,
    "clip": lambda a, b: mg.clip(a, -1.0, 1.5), "mul_add": lambda a, b: a * b + a, "mul_sub": lambda a, b: a * b - b,
    "where": lambda a, b: mg.where(a > b, a, b), "maximum": lambda a, b: mg.maximum(a, b),
}
# What is chosen by comparing values of h with values that are computed again; `first` is an earlier value.
CHOICES = {
    "max": lambda h, first: mg.max(h, axis=-1), "min": lambda h, first: mg.min(h, axis=-1),
    "columns": lambda h, first: mg.max(h, axis=0), "all": lambda h, first: mg.max(h),
    "pool": lambda h, first: mg.max_pool1d(h[None, :, : h.shape[1] // 4 * 4], 4),
    "norm": lambda h, first: mg.linalg.vector_norm(h, ord=np.inf, axis=-1),
    "where": lambda h, first: mg.where(h == mg.max(h, axis=-1, keepdims=True), h * first, 0.0),
    "at_least": lambda h, first: mg.where(h >= mg.max(h, axis=-1, keepdims=True), h, 0.0),
    "argmax": lambda h, first: mg.take_along_axis(h, mg.argmax(h, axis=-1, keepdims=True), axis=-1),
    "median": lambda h, first: mg.median(h, axis=-1), "sort": lambda h, first: mg.sort(h, axis=-1) * first,
    "clip": lambda h, first: mg.clip(h, first - 0.1, first),
    "maximum": lambda h, first: mg.maximum(h, first) + mg.minimum(h, first),
}


def in_graph(function):
    """A function in graph mode."""

    def run(*args):
        with mg.graph():
            return function(*args)

    return run


def gradients(loss):
    return mg.grad(loss, argnums=(0, 1))


MODES = {
    "jit": lambda loss: mg.jit(gradients(loss)),
    "graph": lambda loss: in_graph(gradients(loss)),
    "eager programs": gradients,
    "backward through jit": lambda loss: gradients(mg.jit(loss)),
    "checkpoint": lambda loss: mg.jit(gradients(mg.checkpoint(loss))),
    "two programs": lambda loss: in_graph(gradients(mg.checkpoint(loss))),
}


def compared(loss, arrays, modes):
    """Compare the gradients in these modes with those of NumPy's operations one by one: the same bits."""
    given = [mg.asarray(a) for a in arrays]
    with mg.eager_programs(False):
        expected = [g.numpy_copy() for g in gradients(loss)(*given)]
    for mode in modes:
        for found, wanted in zip(MODES[mode](loss)(*given), expected):
            np.testing.assert_array_equal(found.numpy(), wanted, err_msg=mode)


def random_loss(rng):
    """A program of a few exact operations that chooses by comparison, and uses its products before and after."""
    names = [*STEPS]
    plan = [(names[rng.integers(len(names))], *rng.integers(9, size=2)) for _ in range(rng.integers(2, 9))]
    choice, side = [*CHOICES][rng.integers(len(CHOICES))], rng.integers(1, 4)

    def loss(x, y):
        values = [x, y]
        for name, near, other in plan:
            values.append(STEPS[name](values[-1 - near % min(3, len(values))], values[other % len(values)]))
        squares = [(value * value).sum() for value in values[2 : 2 + side]]
        return CHOICES[choice](values[-1] * y + values[-2], x).sum() + sum(squares, (x * y).sum())

    return choice, loss


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_chosen_has_the_gradients_of_eager_mode(name, dtype):
    def loss(x, y):
        product = x * y
        return CHOICES[name](product + x, y).sum() + (product * product).sum()

    compared(loss, [a.astype(dtype) for a in (X, Y)], ["jit", "graph"])


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs_have_the_gradients_of_eager_mode(chunk):
    for seed in range(chunk, PROGRAMS, CHUNKS):
        rng = np.random.default_rng(seed)
        shape, dtype = SHAPES[rng.integers(len(SHAPES))], ["float32", "float64"][rng.integers(2)]
        choice, loss = random_loss(rng)
        arrays = [rng.normal(size=shape).astype(dtype) for _ in range(2)]
        modes = [*MODES] if PROGRAMS > 60 else ["jit", [*MODES][1 + seed % (len(MODES) - 1)]]
        try:
            compared(loss, arrays, modes)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {choice} of {dtype} {shape}") from error


def test_sums_and_products_of_elements_are_rounded_as_in_eager_mode():
    x, y = [mg.asarray(a.astype(np.float32)) for a in (X, Y)]
    f = lambda x, y: (x * y + x, x - y * y, (x + 1.0) * y - x, x * y - y * x, (x * 3.0 - y) / (x * y + 2.0))  # noqa: E731
    for ours, eager in zip(mg.jit(f)(x, y), f(x, y)):
        np.testing.assert_array_equal(ours.numpy(), eager.numpy())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["max", "where", "argmax", "maximum"])
def test_loops_in_machine_code_find_what_is_equal(name):
    def step(carry, row):
        h = (carry * row + row)[None]
        chosen = CHOICES[name](h, row[None])
        return carry * 0.9 + row * carry, mg.max(chosen * 1.0)

    loss = lambda x, y: (mg.scan(step, y[0], x)[1] * mg.scan(step, y[1], x)[1]).sum()  # noqa: E731
    compared(loss, [X[:6].astype(np.float32), Y[:6].astype(np.float32)], ["jit", "graph"])


def test_each_row_contains_its_maximum_in_another_kernel():
    x, y = [mg.asarray(a.astype(np.float32)) for a in (X, Y)]

    def found(x, y):
        h = x * y + x
        most = mg.max(h, axis=-1, keepdims=True)
        at = mg.argmax(h, axis=-1, keepdims=True)
        return mg.sum(h == most, axis=-1), mg.take_along_axis(h, at, axis=-1) == most, mg.tanh(x * y)

    hits, right, _ = mg.jit(found)(x, y)
    assert hits.numpy().min() == hits.numpy().max() == 1 and right.numpy().all()
