"""jvp: every primitive's tangent against central differences, and against reverse mode."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from minigrad.support.errors import ConversionError, MutationError
from tests.samples import SAMPLES

EPS = 1e-6
SMOOTH = [
    s for samples in SAMPLES.values() for s in samples
    if s.smooth and P[s.op].kind not in ("creation", "random")
    and any(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in s.inputs)
]


@pytest.mark.parametrize("sample", SMOOTH, ids=str)
def test_tangents_equal_central_differences(sample):
    rng = np.random.default_rng(0)
    moving = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray) and x.dtype == np.float64]
    points = [sample.inputs[i] for i in moving]
    directions = [rng.standard_normal(p.shape) for p in points]

    def function(*tensors):
        inputs = [mg.asarray(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
        for i, t in zip(moving, tensors):
            inputs[i] = t
        return emit(P[sample.op], *inputs, **sample.attrs)

    value, tangent = mg.jvp(function, tuple(map(mg.asarray, points)), tuple(map(mg.asarray, directions)))
    plain = function(*map(mg.asarray, points))
    np.testing.assert_array_equal(value.numpy_copy(), plain.numpy_copy())
    assert (tangent.shape, tangent.dtype) == (plain.shape, plain.dtype)
    if plain.dtype.kind != "f":
        return
    sides = [
        function(*[mg.asarray(p + s * EPS * d) for p, d in zip(points, directions)]).numpy_copy() for s in (1, -1)
    ]
    numerical = (sides[0] - sides[1]) / (2 * EPS)
    scale = max(1.0, np.abs(numerical).max(initial=0))
    rules = P[sample.op].plan((1 << len(sample.inputs)) - 1, len(sample.inputs)).rules
    if any(rule.index in moving for rule in rules):
        np.testing.assert_allclose(tangent.numpy_copy(), numerical, rtol=1e-5, atol=1e-6 * scale)
    else:
        np.testing.assert_array_equal(tangent.numpy_copy(), 0)


def f(x, y):
    return mg.tanh(x * y).sum(axis=0) + mg.exp(x).max() * y[0]


def test_forward_and_reverse_agree():
    rng = np.random.default_rng(3)
    x, y = mg.asarray(rng.standard_normal((3, 2))), mg.asarray(rng.standard_normal((3, 2)))
    v, w = mg.asarray(rng.standard_normal((3, 2))), mg.asarray(rng.standard_normal((3, 2)))
    value, change = mg.jvp(f, (x, y), (v, w))
    same, back = mg.vjp(f, x, y)
    g = mg.asarray(rng.standard_normal(value.shape))
    gx, gy = back(g)
    np.testing.assert_allclose((change * g).sum().item(), ((gx * v).sum() + (gy * w).sum()).item(), rtol=1e-12)
    np.testing.assert_array_equal(value.numpy(), same.numpy())


def test_nested_jvp_gives_higher_derivatives():
    def derivative(function):
        return lambda x: mg.jvp(function, (x,), (mg.ones_like(x),))[1]

    def cube_of_tanh(x):
        return mg.tanh(x) ** 3

    x = mg.asarray(0.7, dtype=mg.float64)
    third = derivative(derivative(derivative(cube_of_tanh)))(x)
    e = 1e-3
    d = [np.tanh(0.7 + k * e) ** 3 for k in (-2, -1, 1, 2)]
    np.testing.assert_allclose(third.item(), (d[3] - 2 * d[2] + 2 * d[1] - d[0]) / (2 * e**3), rtol=1e-4)


def test_nested_levels_are_kept_apart():
    """The tangent of the outer derivative must not be taken for the inner one's."""
    def inner(x):
        return mg.jvp(lambda y: x + y, (mg.asarray(1.0),), (mg.asarray(1.0),))[1]

    assert mg.jvp(lambda x: x * inner(x), (mg.asarray(2.0),), (mg.asarray(1.0),))[1].item() == 1.0
    assert mg.grad(lambda x: x * mg.grad(lambda y: x * y)(mg.asarray(1.0)))(mg.asarray(2.0)).item() == 4.0


def test_integers_have_zero_tangents():
    at, direction = (mg.asarray([1.0, 2.0]), mg.asarray(1)), (mg.asarray([5.0, 7.0]), mg.asarray(0))
    value, change = mg.jvp(lambda x, i: x[i], at, direction)
    assert (value.item(), change.item()) == (2.0, 7.0)


def test_detach_and_assignment():
    def function(x):
        y = x * 2.0
        y[0] = x[1] * x.detach()[1]
        return y

    change = mg.jvp(function, (mg.asarray([1.0, 3.0]),), (mg.asarray([1.0, 1.0]),))[1]
    assert change.tolist() == [3.0, 2.0]


def test_jvp_errors():
    with pytest.raises(mg.ConversionError, match="structure and shapes of the primals"):
        mg.jvp(lambda x: x, (mg.ones(2),), (mg.ones(3),))
    with pytest.raises(mg.TraceError, match="inside jvp"):
        mg.jvp(lambda x: x if x > 0 else -x, (mg.asarray(1.0),), (mg.asarray(1.0),))


def test_jvp_needs_tensors():
    with pytest.raises(ConversionError, match="jvp: there is no tensor among the primals"):
        mg.jvp(lambda x: x * x, (3.0,), (1.0,))


def test_integers_have_zero_tangents_and_tangents_keep_the_dtype_of_their_value():
    whole = mg.arange(3)
    assert mg.jvp(lambda i: i * 2, (whole,), (whole,))[1].tolist() == [0, 0, 0]
    change = mg.jvp(lambda x: x * 2, (mg.ones(2),), (mg.ones(2, dtype="float64"),))[1]
    assert change.dtype == mg.float32 and change.tolist() == [2, 2]


def test_a_tensor_from_outside_takes_in_no_tangent():
    buffer = mg.zeros(2)

    def store(x):
        buffer[0] = x[0]
        return x

    with pytest.raises(MutationError, match=r"from outside, of shape \(2,\), cannot store a value inside jvp"):
        mg.jvp(store, (mg.ones(2),), (mg.ones(2),))
    assert buffer.tolist() == [0, 0]


@pytest.mark.parametrize("function", [mg.jvp, mg.hvp])
def test_primals_and_tangents_must_be_tuples(function):
    x = mg.asarray([1.0, 2.0])
    name = function.__name__
    for primals, tangents, what in ((x, (x,), "primals"), ((x,), x, "tangents"), ({"x": x}, (x,), "primals")):
        with pytest.raises(mg.ConversionError, match=rf"{name}: {what} is a \w+\n  Expected: a tuple") as caught:
            function(lambda x: (x * x).sum(), primals, tangents)
        assert f"mg.{name}(f, (x,), (v,))" in str(caught.value)
