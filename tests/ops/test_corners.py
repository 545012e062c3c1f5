"""Values and gradients where formulas break down: far tails, zeros, infinities and empty arrays, in every mode.

The expected values were computed by PyTorch 2.13, or in double precision where this is more exact.
"""

import math

import numpy as np
import pytest

import minigrad as mg

inf, nan = math.inf, math.nan
MODES = {"eager": lambda f: f, "jit": mg.jit}
in_both_modes = pytest.mark.parametrize("mode", MODES)


def value_and_gradients(mode, function, *values):
    """The values of an elementwise function and its gradients by each argument, as lists."""

    def total(*xs):
        ys = function(*xs)
        return ys.sum(), ys.detach()

    tensors = [mg.asarray(x, dtype=mg.float32) for x in values]
    step = MODES[mode](mg.value_and_grad(total, tuple(range(len(tensors))), has_aux=True))
    (_, ys), gradients = step(*tensors)
    return ys.tolist(), *[g.tolist() for g in gradients]


# Powers: (x, y), then x^y and its gradients by x and by y -------------------------------------------------------------

POWERS = [
    (0.0, -2.0, inf, -inf, -inf), (0.0, -1.0, inf, -inf, -inf), (0.0, -0.5, inf, -inf, -inf), (0.0, 0.0, 1, 0, 0),
    (0.0, 0.5, 0, inf, 0), (0.0, 1.0, 0, 1, 0), (0.0, 2.0, 0, 0, 0), (0.0, inf, 0, nan, 0), (0.0, nan, nan, nan, nan),
    (0.0, -inf, inf, -inf, -inf), (-0.0, -1.0, -inf, -inf, inf), (-0.0, -2.0, inf, inf, -inf),
    (-2.0, 2.0, 4, -4, nan), (-2.0, 0.0, 1, 0, nan), (1.0, inf, 1, inf, 0), (2.0, -inf, 0, nan, 0),
    (inf, -1.0, 0, 0, nan), (inf, 0.0, 1, 0, inf), (inf, 0.5, inf, 0, inf), (nan, 0.0, 1, 0, nan),
]


@in_both_modes
def test_gradients_of_powers_in_the_corners(mode):
    x, y, value, by_x, by_y = (list(column) for column in zip(*POWERS))
    np.testing.assert_array_equal(value_and_gradients(mode, mg.pow, x, y), (value, by_x, by_y))


@pytest.mark.parametrize(("x", "y", "value", "by_x", "by_y"), POWERS)
def test_gradients_of_powers_of_numbers_and_to_numbers(x, y, value, by_x, by_y):
    np.testing.assert_array_equal(value_and_gradients("eager", lambda t: x**t, y), (value, by_y))
    np.testing.assert_array_equal(value_and_gradients("eager", lambda t: t**y, x), (value, by_x))


@pytest.mark.parametrize("base", [0.0, -2.0, 2.0])
def test_gradients_of_powers_of_a_number_are_the_same_in_a_program(base):
    y = [-2.0, -0.0, 0.0, 0.5, 3.0, inf, nan]
    same = [value_and_gradients(mode, lambda t: base**t, y) for mode in MODES]
    np.testing.assert_allclose(*same, rtol=1e-6)


def test_powers_beside_the_corner_have_correct_second_derivatives():
    y = mg.asarray([2.0, 3.0])
    twice = mg.grad(lambda x: mg.grad(lambda x: (x**y).sum())(x).sum())
    assert twice(mg.asarray([0.0, 2.0])).tolist() == [2.0, 12.0]


# Left tails -----------------------------------------------------------------------------------------------------------

TAIL = [-1000.0, -100.0, -89.0, -80.0, -40.0, -18.5, -17.0, -11.5, -3.0, -1e-3, -0.0, 0.0, 1e-3, 3.0, 40.0, 1000.0]


def exact_sigmoid(x):
    x = x.astype(np.float64)
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


@in_both_modes
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_the_left_tail_is_exact_and_so_is_its_gradient(mode, dtype, name):
    x = np.array(TAIL, dtype)
    s, wide = exact_sigmoid(x), x.astype(np.float64)
    value, slope = (s, s * exact_sigmoid(-x)) if name == "sigmoid" else (wide * s, s * (1 + wide * exact_sigmoid(-x)))

    def total(x):
        y = getattr(mg, name)(x)
        return y.sum(), y.detach()

    (_, ours), gradient = MODES[mode](mg.value_and_grad(total, has_aux=True))(mg.asarray(x))
    assert ours.dtype == dtype
    limits = np.finfo(dtype)
    grain = 4 * limits.smallest_subnormal * np.maximum(1, abs(wide))  # silu multiplies the rounded sigmoid by x
    left = wide < 0.5  # in the right tail, 1 - sigmoid has the absolute precision of 1
    assert (abs(ours.numpy() - value) <= 12 * limits.eps * abs(value) + grain).all()
    assert (abs(gradient.numpy() - slope) <= 30 * limits.eps * abs(slope) + grain)[left].all()
    np.testing.assert_allclose(gradient.numpy(), slope, rtol=0, atol=8 * limits.eps)


def test_sigmoid_second_derivatives():
    curve = mg.grad(lambda x: mg.grad(lambda x: mg.sigmoid(x).sum())(x).sum())(mg.asarray([-30.0, 0.0, 30.0]))
    assert curve.tolist() == pytest.approx([math.exp(-30.0), 0.0, 0.0], rel=1e-5)
    mg.gradcheck(mg.sigmoid, [mg.asarray([-2.0, 0.0, 1.5], dtype=mg.float64)], order=2)


def test_functions_of_integers_return_floats():
    assert mg.sigmoid(mg.asarray([0])).tolist() == [0.5]


# Statistics of too few, or equal, numbers -----------------------------------------------------------------------------


@in_both_modes
def test_the_deviation_of_equal_numbers_has_no_slope(mode):
    rows = [[1.0, 1.0, 1.0], [1.0, 2.0, 4.0]]
    deviations, gradient = value_and_gradients(mode, lambda x: mg.std(x, axis=1), rows)
    assert deviations[0] == 0.0
    assert gradient[0] == [0.0, 0.0, 0.0]
    assert gradient[1] == pytest.approx([-0.3563483, -0.0890871, 0.4454355], rel=1e-5)


@in_both_modes
@pytest.mark.parametrize("correction", [3, 4, 3.5])
def test_a_correction_by_all_numbers_or_more_gives_infinity(mode, correction):
    x = mg.asarray([1.0, 2.0, 4.0])
    assert MODES[mode](lambda x: mg.var(x, correction=correction))(x).item() == inf
    assert MODES[mode](lambda x: mg.std(x, correction=correction))(x).item() == inf


@in_both_modes
def test_variance_of_too_few_numbers_is_nan(mode):
    assert math.isnan(MODES[mode](lambda x: mg.var(x, correction=1))(mg.asarray([3.0])).item())
    assert math.isnan(MODES[mode](lambda x: mg.std(x, correction=2))(mg.asarray([3.0])).item())
    assert math.isnan(MODES[mode](mg.var)(mg.zeros(0)).item())


# Limits and ties: the value, and the gradient by each argument ------------------------------------------------------

EDGES = {
    "clip": (lambda x: mg.clip(x, 0.0, 1.0), [-1, 0, 1, 2, nan], [0, 0, 1, 1, nan], [0, 1, 1, 0, 1]),
    "clip, one number": (lambda x: mg.clip(x, 1.0, 1.0), [0, 1, 2], [1, 1, 1], [0, 1, 0]),
    "clip to tensors": (mg.clip, [1, 1, 1, nan], [1, 2, nan, 1], [1, 2, nan, nan], [1, 0, 0, 1], [0, 1, 1, 0]),
    "fmax": (mg.fmax, [1, 2, nan, 1, nan], [1, 1, 1, nan, nan], [1, 2, 1, 1, nan], [1, 1, 0, 1, 0], [0, 0, 1, 0, 1]),
    "fmin": (mg.fmin, [1, 2, nan, 1], [1, 1, 1, nan], [1, 1, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]),
    "atan2": (mg.atan2, [0, 0, 1], [0, 1, 0], [0, 0, math.pi / 2], [0, 1, 0], [0, 0, -1]),
    "asin": (mg.asin, [-1, 0, 1], [-math.pi / 2, 0, math.pi / 2], [inf, 1, inf]),
    "acos": (mg.acos, [-1, 0, 1], [math.pi, math.pi / 2, 0], [-inf, -1, -inf]),
    "binary_cross_entropy": (lambda p: mg.binary_cross_entropy(p, mg.ones_like(p), "none"),
                             [0, 1e-40, 0.5, 1], [100, 92.1034, math.log(2), 0], [0, 0, -2, -1]),
    "sinh": (mg.sinh, [-inf, -1e30, 0, inf, nan], [-inf, -inf, 0, inf, nan], [inf, inf, 1, inf, nan]),
    "cosh": (mg.cosh, [-inf, -1e30, 0, inf, nan], [inf, inf, 1, inf, nan], [-inf, -inf, 0, inf, nan]),
    "asinh": (mg.asinh, [-inf, 0, inf, nan], [-inf, 0, inf, nan], [0, 1, 0, nan]),
    "acosh": (mg.acosh, [0, 1, inf, nan], [nan, 0, inf, nan], [nan, inf, 0, nan]),
    "softplus": (mg.softplus, [-inf, -200, 0, inf, nan], [0, 0, math.log(2), inf, nan], [0, 0, 0.5, 1, nan]),
    "lgamma": (mg.lgamma, [2, inf, nan], [0, inf, nan], [0.4227843, inf, nan]),
    "digamma": (mg.digamma, [1, inf, nan], [-0.5772157, inf, nan], [1.644934, 0, nan]),
    "erfinv": (mg.erfinv, [-2, -1, 0, 1, nan], [nan, -inf, 0, inf, nan], [nan, inf, math.sqrt(math.pi) / 2, inf, nan]),
}


@in_both_modes
@pytest.mark.parametrize("name", EDGES)
def test_values_and_gradients_at_limits_and_ties(mode, name):
    function, *rest = EDGES[name]
    count = len(rest) // 2
    if name in ("fmax", "fmin"):  # which of two nans has the gradient does not matter
        rest = [column[:4] for column in rest]
    for found, expected in zip(value_and_gradients(mode, function, *rest[:count]), rest[count:], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@in_both_modes
def test_a_sigmoid_far_below_zero_has_no_infinite_gradient(mode):
    def loss(x):
        return mg.binary_cross_entropy(mg.sigmoid(x), mg.ones_like(x), "none")

    _, slope = value_and_gradients(mode, loss, [-95.0, -120.0])
    assert np.isfinite(slope).all()


# Empty arrays ---------------------------------------------------------------------------------------------------------


@in_both_modes
def test_softmax_along_an_empty_axis_is_empty(mode):
    for function in (mg.softmax, mg.log_softmax):
        assert MODES[mode](function)(mg.zeros((2, 0))).shape == (2, 0)
        assert MODES[mode](lambda x, f=function: f(x, axis=0))(mg.zeros((0, 2))).shape == (0, 2)
    assert MODES[mode](mg.logsumexp)(mg.zeros((2, 0))).tolist() == [-inf, -inf]
    x = mg.zeros((2, 0), requires_grad=True)
    mg.softmax(x).sum().backward()
    assert x.grad.shape == (2, 0)


@in_both_modes
def test_diff_of_order_zero_returns_its_input(mode):
    x, more = mg.asarray([1, 4, 9]), mg.asarray([0])
    assert MODES[mode](lambda x: mg.diff(x, n=0))(x).tolist() == [1, 4, 9]
    assert MODES[mode](lambda x, more: mg.diff(x, n=0, prepend=more, append=more))(x, more).tolist() == [1, 4, 9]


# Vectors that broadcast along the axis --------------------------------------------------------------------------------


@in_both_modes
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [(((2, 3), (2, 1)), 1), (((1,), (4, 3)), -1), (((3,), (2, 3)), 0), (((5, 1, 3), (4, 1)), 1), (((3,), (3,)), 0)],
)
def test_cosine_similarity_of_vectors_that_broadcast(mode, shapes, axis):
    random = np.random.default_rng(0)
    x, y = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    a, b = np.broadcast_arrays(x, y)
    expected = (a * b).sum(axis) / np.sqrt((a * a).sum(axis) * (b * b).sum(axis))
    ours = MODES[mode](lambda x, y: mg.cosine_similarity(x, y, axis=axis))(mg.asarray(x), mg.asarray(y))
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-5)
    assert abs(ours.numpy()).max() <= 1 + 1e-6
