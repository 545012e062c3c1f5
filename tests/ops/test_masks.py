"""Writes to the places of a mask that is not computed yet: in graphs, under jit and under vmap, as in eager mode."""

import operator

import numpy as np
import pytest

import minigrad as mg

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 4, 2))
ROWS, COLUMNS, PAIR = np.array([True, False, True]), np.array([True, False, True, False]), np.array([True, False])
PART = slice(None)

WRITES = {  # the index, made of the tensor and the mask; the mask; the value
    "a comparison of the tensor": (lambda x, m: x > 0, ROWS, 0.0),
    "rows": (lambda x, m: m, ROWS, 5),
    "rows by a row": (lambda x, m: m, ROWS, RANDOM.normal(size=(4, 2))),
    "rows by a part of a row": (lambda x, m: m, ROWS, RANDOM.normal(size=2)),
    "two dimensions": (lambda x, m: m, RANDOM.random((3, 4)) < 0.5, np.array(7.0)),
    "columns": (lambda x, m: (PART, m), COLUMNS, -1.0),
    "the last dimension": (lambda x, m: (..., m), PAIR, 1),
    "columns of a row": (lambda x, m: (1, m), COLUMNS, 1),
    "beside a slice and a number": (lambda x, m: (m, slice(1, 3), -1), ROWS, 1),
    "after a new dimension": (lambda x, m: (None, m, ..., 0), ROWS, 7),
    "without dimensions": (lambda x, m: m, np.array(True), 0.0),
}


def written(name):
    index, mask, value = WRITES[name]
    number = isinstance(value, (int, float))

    def write(x, mask, *value):
        x = x * 1.0
        x[index(x, mask)] = WRITES[name][2] if number else value[0]
        return x

    return write, [mg.asarray(X), mg.asarray(mask)] + ([] if number else [mg.asarray(value)])


@pytest.mark.parametrize("name", WRITES)
def test_writes_by_a_mask_are_those_of_eager_mode(name):
    write, given = written(name)
    expected = X.copy()
    index, mask, value = WRITES[name]
    expected[index(expected, mask)] = value
    with mg.graph():
        recorded = write(*given)
    batched = mg.vmap(write)(*[mg.stack([each, each]) for each in given])
    for found in (write(*given), recorded, mg.jit(write)(*given), batched[1]):
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("name", WRITES)
def test_gradients_of_writes_by_a_mask(name):
    write, given = written(name)
    weights = mg.asarray(RANDOM.normal(size=X.shape))
    slopes = mg.grad(lambda *given: (write(*given) * weights).sum(), argnums=(0, 2)[: len(given) - 1])
    for found, expected in zip(mg.jit(slopes)(*given), slopes(*given), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_numbers_are_stored_in_the_dtype_of_the_tensor():
    given = mg.asarray([1, 2, 3, 2**60 + 1])

    @mg.jit
    def rounded(x):
        x = x.copy()
        x[x == 3] = 1.7
        return x

    assert rounded(given).tolist() == [1, 2, 1, 2**60 + 1]
    with pytest.raises(mg.DtypeError, match="300 does not fit into int8"):
        mg.jit(lambda x: x.__setitem__(x > 2, 300))(given.astype(mg.int8))


def test_a_value_for_each_place_needs_their_number():
    with pytest.raises(mg.TraceError, match="boolean mask"):
        mg.jit(lambda x: x.__setitem__(x > 1, mg.ones(2)))(mg.asarray([1.0, 2.0, 3.0]))
    with pytest.raises(mg.IndexingError, match=r"a mask of shape \(2,\) for dimensions of shape \(3,\)"):
        mg.jit(lambda x: x.__setitem__(x[:2] > 1, 0.0))(mg.asarray([1.0, 2.0, 3.0]))


def power(x):
    x[x > 0] **= 0.5  # elsewhere the slope would be nan
    return x


def both(x):
    hit = x > 0
    y = x * 2
    y[hit] += x[hit]  # the same places of two tensors
    return y


def moved(x):
    hit, y = x > 0, x * 0
    y[hit] = x[hit]
    return y


CHANGES = {
    "a number": lambda x: operator.setitem(x, hit := x > 0, operator.iadd(x[hit], 1)) or x,
    "a row": lambda x: operator.setitem(x, rows := x[:, 0, 0] > 0, operator.imul(x[rows], mg.asarray([2.0, 3.0]))) or x,
    "one column of the rows": lambda x: operator.setitem(x, at := (x[:, 0, 0] > 0, 1), operator.isub(x[at], 4.0)) or x,
    "two changes": lambda x: operator.setitem(x, hit := x > 0, operator.imul(operator.iadd(x[hit], 1), 2.0)) or x,
    "a part": lambda x: operator.setitem(x[1], hit := x[1] > 0, operator.iadd(x[1][hit], 1)) or x,
    "a power": power, "the same places of two tensors": both, "a copy": moved,
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_at_a_mask_are_those_of_eager_mode(name):
    def change(x):
        return CHANGES[name](x * 1.0)

    x = mg.asarray(X)
    slope = mg.grad(lambda x: (change(x) * x).sum())
    expected, expected_slope = change(x).numpy(), slope(x).numpy()
    with mg.graph():
        recorded = change(x)
    assert mg.max(mg.abs(change(x) - x)).item() > 0.1
    for found in (recorded, mg.jit(change)(x), mg.vmap(change)(mg.stack([x, x]))[1]):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    for found in (mg.jit(slope)(x), mg.vmap(slope)(mg.stack([x, x]))[1]):
        np.testing.assert_allclose(found.numpy(), expected_slope, rtol=1e-12)


@pytest.mark.parametrize("use", [
    lambda x: x[x > 1], lambda x: x[x > 1].sum(), lambda x: x[x > 1] + 1, lambda x: operator.iadd(x[x > 1], mg.ones(2)),
    lambda x: operator.setitem(x, x > 1, x[x > 2]), lambda x: len(x[x > 1]), lambda x: {"a": [x[x > 1]]},
])
def test_what_a_mask_selects_has_no_shape_before_the_mask_is_computed(use):
    with pytest.raises(mg.TraceError, match=r"boolean mask.*depends on values[^$]*mg.where\(mask, x, 0\)"):
        mg.jit(use)(mg.asarray([1.0, 2.0, 3.0]))
    with pytest.raises(mg.DtypeError, match="in-place add: the result is float32"):
        mg.jit(lambda x: operator.iadd(x[x > 1], 1.5))(mg.asarray([1, 2, 3]))
