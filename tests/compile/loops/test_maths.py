"""Functions written as arithmetic: their errors, and their results for special values."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.compile.loops.angles import PARTS, WIDE_PARTS, _parts_of_two_over_pi
from minigrad.compile.loops.ir import DOUBLE, For, Let, Store
from minigrad.compile.loops.legalise import legalise
from minigrad.compile.loops.operations import OPERATIONS
from minigrad.devices.special import erf
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import FLOAT, sample
from tests.compile.loops.exact import EXACT, units_off

WRITTEN_OUT = [name for name, operation in OPERATIONS.items() if operation.written_out]
OF_ONE = [name for name in WRITTEN_OUT if OPERATIONS[name].arity == 1]
OF_TWO = [name for name in WRITTEN_OUT if OPERATIONS[name].arity == 2]
REFERENCE = {"erf": erf, "pow": np.power, "atan2": np.arctan2}
REFERENCE |= {name: getattr(np, name) for name in OF_ONE if name != "erf"}
ULPS = {
    "exp": 1.1, "expm1": 1.6, "log": 1.0, "log1p": 1.6, "tanh": 2.4, "erf": 3.2, "sin": 1.6, "cos": 1.6, "pow": 0.6,
    "atan2": 2.2,
}
WIDE_ULPS = ULPS | {"expm1": 2.2, "tanh": 2.7, "sin": 0.8, "cos": 0.8, "pow": 1.2, "atan2": 2.4}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, -1.1e-38, 3e38, -3e38, 1, -1], np.float32)
WIDE_SPECIAL = [
    *[0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, -2.2e-308, 1.7e308, -1.7e308, 1, -1, 0.5, 2, 3, -3],
    *[710.0, -745.0, 1e16, -1e16, 1 + 2**-52, 1 - 2**-53],
]


def kernel_of(op, size, dtype=FLOAT):
    """A kernel that applies a function to every element."""
    names = ["x", "w"][: OPERATIONS[op].arity]
    lets = [Let(name, "load", (f"of_{name}", "i"), dtype) for name in names]
    body = For("i", "lo", "hi", [*lets, Let("y", op, tuple(names), dtype), Store("b", "i", "y")])
    parameters = [*[(f"of_{name}", dtype, size, "in") for name in names], ("b", dtype, size, "out")]
    return sample(parameters, [body], {f"of_{name}": np.zeros(size, dtype) for name in names}).kernel


@cache
def compiled(op, dtype):
    return native(kernel_of(op, 1, dtype))


def apply(op, *given):
    """A function of arrays, as machine code."""
    result = np.empty_like(given[0])
    compiled(op, given[0].dtype)([*given, result], 0, result.size)
    return result


def exact(op, *given):
    """The function of float32 computed in float64."""
    with np.errstate(all="ignore"):
        return REFERENCE[op](*[x.astype(np.float64) for x in given])


def off(op, *given):
    """The error in units of the last place; infinite where only one of the two values is finite."""
    result, true = apply(op, *given), exact(op, *given)
    with np.errstate(all="ignore"):
        rounded = true.astype(np.float32)
        units = np.abs(result - true) / np.spacing(np.abs(rounded)).astype(np.float64)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    return np.where(same, np.where(np.isfinite(units), units, 0), np.where(np.isfinite(result), units, np.inf))


def wide_off(op, *given):
    """The largest error of the function of float64, in units of the last place."""
    result = apply(op, *[np.array(x, np.float64) for x in given])
    units = [units_off(op, *numbers) for numbers in zip(result.tolist(), *given)]
    worst = int(np.argmax(units))
    return units[worst], f"{op}{[x[worst] for x in given]} = {result[worst]!r}"


@pytest.mark.parametrize("op", OF_ONE)
def test_errors_of_approximations_are_small(op):
    rng = np.random.default_rng(0)
    n = 100_000
    x = np.concatenate([
        rng.uniform(-110, 110, n), rng.standard_normal(n), rng.standard_normal(n) * 1e-3, rng.uniform(0.9, 1.1, n),
        10.0 ** rng.uniform(-44, 38, n) * rng.choice([-1, 1], n), rng.uniform(-4, 4, n),
    ]).astype(np.float32)
    units = off(op, x)
    assert units.max() <= ULPS[op], f"{op}({x[np.argmax(units)]!r}) = {apply(op, x[[np.argmax(units)]])}"


def pairs(op, n, most):
    """Numbers whose powers are mostly finite, and points in all directions."""
    rng = np.random.default_rng(0)
    if op == "pow":
        x = [rng.lognormal(size=n), 10.0 ** rng.uniform(-most, most, n), rng.normal(size=n).round(1)]
        y = [rng.uniform(-most, most, n), rng.uniform(-1, 1, n), rng.integers(-20, 20, n)]
        x, y = [*x, rng.uniform(0.9, 1.1, n)], [*y, rng.uniform(-20, 20, n) * most]
    else:
        x = [rng.normal(size=n), 10.0 ** rng.uniform(-most, most, n), rng.integers(-9, 9, n)]
        y = [rng.normal(size=n), 10.0 ** rng.uniform(-most, most, n), rng.integers(-9, 9, n)]
    return np.concatenate(x), np.concatenate(y)


@pytest.mark.parametrize("op", OF_TWO)
def test_errors_of_functions_of_two_numbers_are_small(op):
    x, y = [part.astype(np.float32) for part in pairs(op, 50_000, 37)]
    assert off(op, x, y).max() <= ULPS[op]
    x, y = [part.tolist() for part in pairs(op, 300, 300)]
    units, worst = wide_off(op, x, y)
    assert units <= WIDE_ULPS[op], worst


@pytest.mark.slow
@pytest.mark.parametrize("op", OF_ONE)
def test_errors_of_float64_are_small(op):
    rng = np.random.default_rng(0)
    n = 200
    x = [
        *rng.uniform(-750, 750, n), *rng.standard_normal(n), *rng.uniform(0.9, 1.1, n), *(rng.normal(size=n) * 1e-3),
        *(10.0 ** rng.uniform(-323, 308, n) * rng.choice([-1, 1], n)), *rng.uniform(-4, 4, n), *WIDE_SPECIAL,
    ]
    units, worst = wide_off(op, [float(number) for number in x])
    assert units <= WIDE_ULPS[op], worst


@pytest.mark.parametrize("op", OF_TWO)
def test_special_numbers_of_functions_of_two_numbers(op):
    x, y = [grid.ravel() for grid in np.meshgrid(WIDE_SPECIAL, WIDE_SPECIAL)]
    units, worst = wide_off(op, x.tolist(), y.tolist())
    assert units <= WIDE_ULPS[op], worst
    x, y = [grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL)]
    result = apply(op, x, y)
    with np.errstate(all="ignore"):
        wanted = exact(op, x, y).astype(np.float32)
    np.testing.assert_allclose(result, wanted, rtol=3e-7, atol=1e-45)
    np.testing.assert_array_equal(np.signbit(result)[wanted == 0], np.signbit(wanted)[wanted == 0])


@pytest.mark.parametrize("op", OF_ONE)
def test_errors_are_small_for_special_numbers(op):
    result = apply(op, SPECIAL)
    with np.errstate(all="ignore"):
        wanted = exact(op, SPECIAL).astype(np.float32)
    np.testing.assert_allclose(result, wanted, rtol=3e-7)
    np.testing.assert_array_equal(np.signbit(result)[wanted == 0], np.signbit(wanted)[wanted == 0])


@pytest.mark.slow
@pytest.mark.parametrize("op", WRITTEN_OUT)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_errors_are_small_for_any_number(op, data):
    numbers = [data.draw(st.floats(width=32)) for _ in range(OPERATIONS[op].arity)]
    assert off(op, *[np.array([x], np.float32) for x in numbers])[0] <= ULPS[op]
    numbers = [data.draw(st.floats()) for _ in range(OPERATIONS[op].arity)]
    units, worst = wide_off(op, *[[x] for x in numbers])
    assert units <= WIDE_ULPS[op], worst


EDGES = {
    "exp": (-104, -87.33655, 88.72283), "expm1": (-17.5, 88.72283), "tanh": (0.625, 9.01, 10), "erf": (3.83, 4.05),
    "log": (1.17549435e-38,), "sin": (2.0**24, 2.0**48, 2.0**120), "cos": (2.0**24, 2.0**96),
}
WIDE_EDGES = {
    "exp": (-745.1, -708.4, 709.78), "expm1": (-37.4, 709.78), "tanh": (0.55, 19.06), "erf": (5.9, 6),
    "log": (2.2e-308,),
    "sin": (0.7853981633974483, 2.0**201, 2.0**348, 2.0**1023), "cos": (0.7853981633974483, 2.0**201, 2.0**936),
}


@pytest.mark.slow
@pytest.mark.parametrize("op", EDGES)
def test_errors_are_small_at_the_boundaries_of_formulas(op):
    for edge in np.float32(EDGES[op]):
        near = edge.view(np.int32) + np.arange(-1000, 1000, dtype=np.int32)
        for x in (near.view(np.float32), -near.view(np.float32)):
            assert off(op, x).max() <= ULPS[op]
    for edge in np.float64(WIDE_EDGES[op]):
        near = (edge.view(np.int64) + np.arange(-20, 20)).view(np.float64)
        units, worst = wide_off(op, [*near.tolist(), *(-near).tolist()])
        assert units <= WIDE_ULPS[op], worst


@pytest.mark.parametrize("op", ["exp", "expm1", "tanh", "erf"])
def test_monotonic_functions_never_decrease(op):
    x = np.linspace(-5, 5, 200_001).astype(np.float32)
    steps = np.diff(apply(op, x).astype(np.float64))
    assert steps.min() > -3e-7 * max(1, np.abs(apply(op, x)).max())


def test_a_large_angle_has_all_of_its_places():
    x = np.float32([1e10, 3e20, 1.7e38, 16367173.0 * 2.0**72])  # the last is close to a multiple of π/2
    assert off("sin", x).max() <= ULPS["sin"] and off("cos", x).max() <= ULPS["cos"]
    hard = 6381956970095103 * 2.0**797  # of all float64 the one that is closest to a multiple of π/2
    x = [hard, -hard, np.pi, 1e5 * np.pi, 1e15 * np.pi, 1e22, 1e300, float(np.finfo(DOUBLE).max)]
    for op in ("sin", "cos"):
        units, worst = wide_off(op, x)
        assert units <= WIDE_ULPS[op], worst


def test_the_parts_of_two_over_pi_are_short_enough_for_exact_products():
    for start in range(0, 120, 24):
        for part in _parts_of_two_over_pi(start, PARTS)[:2]:
            mantissa, _ = np.frexp(part)
            assert mantissa * 2**29 == int(mantissa * 2**29)
    parts = _parts_of_two_over_pi(0, WIDE_PARTS)
    assert all(later < 2.0**-52 * earlier for earlier, later in pairwise(parts))


@pytest.mark.parametrize("y", [-3, -2.5, -2, -1.5, -1, -0.5, 0.5, 1.5, 2, 2.5, 3])
@pytest.mark.parametrize("dtype", [FLOAT, DOUBLE], ids=str)
def test_powers_of_small_numbers_need_no_logarithm(y, dtype):
    kernel = kernel_of("pow", 1, dtype)
    (loop,) = kernel.body
    loop.body[2:3] = [Let("y", "pow", ("x", y), dtype)]
    (legal,) = legalise(kernel).body
    assert len(legal.body) < 15
    special = SPECIAL if dtype == FLOAT else WIDE_SPECIAL
    x = np.array([*special, *np.random.default_rng(0).lognormal(size=200)], dtype)
    result = np.empty_like(x)
    with np.errstate(all="ignore"):
        native(kernel)([x, x, result], 0, x.size)
        wanted = np.power(x, np.full_like(x, y))
    np.testing.assert_array_max_ulp(result, wanted, 4)
    np.testing.assert_array_equal(np.signbit(result)[wanted == 0], np.signbit(wanted)[wanted == 0])


def test_functions_stay_calls_where_products_and_sums_are_not_fused():
    for op, stays in (("sin", True), ("cos", True), ("pow", True), ("exp", False), ("tanh", False)):
        for dtype in (FLOAT, DOUBLE):
            (loop,) = legalise(kernel_of(op, 1, dtype), fused=False).body
            assert any(s.op == op for s in loop.body if isinstance(s, Let)) == (stays and dtype == DOUBLE)


def test_every_function_has_an_exact_reference():
    assert set(EXACT) == set(WRITTEN_OUT)
