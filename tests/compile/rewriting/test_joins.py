"""Joins and rolls as choices by position: the values of NumPy, to the last bit, in kernels with what reads them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.compile.rewriting.reductions import MOST_JOINED

DTYPES = ["float32", "float64", "float16", "int8", "int64", "uint8", "bool"]
HARD = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, 3e-45]


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice(HARD, shape).astype(dtype) if dtype[0] == "f" else rng.integers(0, 100, shape).astype(dtype)


def same_bits(found, wanted):
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes()


def kernels_alone(f, *args):
    """Whether a program has no library call."""
    program = f.program(*args)
    return all(group.library is None for group in program.partition.groups)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=MOST_JOINED + 1), st.integers(0, 2), st.sampled_from(DTYPES),
    st.sampled_from([(1, 1), (2, 3), (1, 5), (7, 1), (0, 2)]),
)
def test_joins_have_the_bits_of_numpy(lengths, axis, dtype, others):
    parts = []
    for number, length in enumerate(lengths):
        shape = list(others)
        shape.insert(axis, length)
        parts.append(values(shape, dtype, number))
    found = mg.jit(lambda *xs: mg.concat(list(xs), axis))(*map(mg.asarray, parts))
    same_bits(found.numpy(), np.concatenate(parts, axis))


@given(st.integers(1, 40), st.integers(-50, 50), st.sampled_from(DTYPES))
def test_rolls_have_the_bits_of_numpy(size, shift, dtype):
    x = values((size,), dtype)
    same_bits(mg.jit(lambda x: mg.roll(x, shift))(mg.asarray(x)).numpy(), np.roll(x, shift))


@pytest.mark.parametrize("size", [5, 1000, 70_000])
def test_a_stencil_is_one_kernel_without_a_library(size):
    x = mg.asarray(np.random.default_rng(0).standard_normal(size))
    f = mg.jit(lambda x: mg.roll(x, 1) + mg.roll(x, -1) - 2.0 * x)
    assert kernels_alone(f, x)
    given = x.numpy()
    same_bits(f(x).numpy(), np.roll(given, 1) + np.roll(given, -1) - 2.0 * given)


def test_values_of_kernels_are_joined_and_reduced():
    x, y = (np.random.default_rng(seed).standard_normal((6, 8)) for seed in (0, 1))
    f = mg.jit(lambda x, y: mg.concat([mg.exp(x), y * 2, x], 1).sum(1))
    assert kernels_alone(f, mg.asarray(x), mg.asarray(y))
    wanted = np.concatenate([np.exp(x), y * 2, x], 1).sum(1)
    np.testing.assert_allclose(f(mg.asarray(x), mg.asarray(y)).numpy(), wanted, rtol=1e-14)


def test_many_tensors_are_joined_by_the_library():
    x = mg.ones((2, 3))
    f = mg.jit(lambda x: mg.concat([x] * (MOST_JOINED + 1)) * 2)
    assert not kernels_alone(f, x) and f(x).shape == (2 * (MOST_JOINED + 1), 3)


def test_gradients_of_joins():
    x, y = (mg.asarray(np.random.default_rng(seed).standard_normal((4, 3))) for seed in (0, 1))
    f = mg.grad(lambda x, y: (mg.roll(mg.concat([x, y], 1), 2, 1) ** 2 * mg.arange(6.0)).sum(), (0, 1))
    for found, wanted in zip(mg.jit(f)(x, y), f(x, y), strict=True):
        same_bits(found.numpy(), wanted.numpy())
