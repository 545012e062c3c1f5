"""Functions written as arithmetic: their errors, and their results for special values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.compile.loops.ir import For, Let, Store
from minigrad.compile.loops.maths import _parts_of_two_over_pi
from minigrad.compile.loops.operations import OPERATIONS
from minigrad.devices.special import erf
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import FLOAT, sample

WRITTEN_OUT = [name for name, operation in OPERATIONS.items() if operation.written_out]
REFERENCE = {name: erf if name == "erf" else getattr(np, name) for name in WRITTEN_OUT}
ULPS = {"exp": 1.1, "expm1": 1.6, "log": 1.0, "log1p": 1.6, "tanh": 2.4, "erf": 3.2, "sin": 1.6, "cos": 1.6}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, -1.1e-38, 3e38, -3e38, 1, -1], np.float32)


def kernel_of(op, size):
    """A kernel that applies a function to every element."""
    lets = [Let("x", "load", ("a", "i"), FLOAT), Let("y", op, ("x",), FLOAT)]
    body = For("i", "lo", "hi", [*lets, Store("b", "i", "y")])
    return sample([("a", FLOAT, size, "in"), ("b", FLOAT, size, "out")], [body], {"a": np.zeros(size, "f4")}).kernel


RUN = dict.fromkeys(WRITTEN_OUT)


def apply(op, x):
    """A function of arrays, as machine code."""
    run = RUN[op] = RUN[op] or native(kernel_of(op, 1))
    result = np.empty_like(x)
    run([x, result], 0, x.size)
    return result


def exact(op, x):
    """The function computed in float64."""
    with np.errstate(all="ignore"):
        return REFERENCE[op](x.astype(np.float64))


def off(op, x):
    """The error in units of the last place; infinite where only one of the two values is finite."""
    result, true = apply(op, x), exact(op, x)
    with np.errstate(all="ignore"):
        rounded = true.astype(np.float32)
        units = np.abs(result - true) / np.spacing(np.abs(rounded)).astype(np.float64)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same, np.where(np.isfinite(units), units, 0), np.where(np.isfinite(result), units, np.inf))


@pytest.mark.parametrize("op", WRITTEN_OUT)
def test_errors_of_approximations_are_small(op):
    rng = np.random.default_rng(0)
    n = 100_000
    x = np.concatenate([
        rng.uniform(-110, 110, n), rng.standard_normal(n), rng.standard_normal(n) * 1e-3, rng.uniform(0.9, 1.1, n),
        10.0 ** rng.uniform(-44, 38, n) * rng.choice([-1, 1], n), rng.uniform(-4, 4, n),
    ]).astype(np.float32)
    units = off(op, x)
    assert units.max() <= ULPS[op], f"{op}({x[np.argmax(units)]!r}) = {apply(op, x[[np.argmax(units)]])}"


@pytest.mark.parametrize("op", WRITTEN_OUT)
def test_errors_are_small_for_special_numbers(op):
    result = apply(op, SPECIAL)
    with np.errstate(all="ignore"):
        wanted = exact(op, SPECIAL).astype(np.float32)
    np.testing.assert_allclose(result, wanted, rtol=3e-7)
    np.testing.assert_array_equal(np.signbit(result)[wanted == 0], np.signbit(wanted)[wanted == 0])


@pytest.mark.parametrize("op", WRITTEN_OUT)
@given(x=st.floats(width=32))
@settings(max_examples=100, deadline=None)
def test_errors_are_small_for_any_number(op, x):
    assert off(op, np.array([x], np.float32))[0] <= ULPS[op]


EDGES = {
    "exp": (-104, -87.33655, 88.72283), "expm1": (-17.5, 88.72283), "tanh": (0.625, 9.01, 10), "erf": (3.83, 4.05),
    "log": (1.17549435e-38,), "sin": (2.0**24, 2.0**48, 2.0**120), "cos": (2.0**24, 2.0**96),
}


@pytest.mark.parametrize("op", EDGES)
def test_errors_are_small_at_the_boundaries_of_formulas(op):
    for edge in np.float32(EDGES[op]):
        near = edge.view(np.int32) + np.arange(-1000, 1000, dtype=np.int32)
        for x in (near.view(np.float32), -near.view(np.float32)):
            assert off(op, x).max() <= ULPS[op]


@pytest.mark.parametrize("op", ["exp", "expm1", "tanh", "erf"])
def test_monotonic_functions_never_decrease(op):
    x = np.linspace(-5, 5, 200_001).astype(np.float32)
    steps = np.diff(apply(op, x).astype(np.float64))
    assert steps.min() > -3e-7 * max(1, np.abs(apply(op, x)).max())


def test_a_large_angle_has_all_of_its_places():
    x = np.float32([1e10, 3e20, 1.7e38, 16367173.0 * 2.0**72])  # the last is close to a multiple of π/2
    assert off("sin", x).max() <= ULPS["sin"] and off("cos", x).max() <= ULPS["cos"]


def test_the_parts_of_two_over_pi_are_short_enough_for_exact_products():
    for stretch in range(6):
        for part in _parts_of_two_over_pi(stretch)[:2]:
            mantissa, _ = np.frexp(part)
            assert mantissa * 2**29 == int(mantissa * 2**29)
