"""The gradient of every primitive and composed function inside a compiled loop and branch is that of eager mode."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.composed import COMPOSED
from tests.composed_nn import plain  # noqa: F401 - adds its samples
from tests.samples import SAMPLES

MOST = 3  # samples of one composed function


def calls_of_primitive(name):
    """The smooth samples as functions of their arrays, and the arrays."""
    for sample in SAMPLES[name]:
        def call(*tensors, sample=sample):
            rest = iter(tensors)
            given = [next(rest) if isinstance(x, np.ndarray) else x for x in sample.inputs]
            return emit(P[sample.op], *given, **sample.attrs)

        if sample.smooth:
            yield call, [x for x in sample.inputs if isinstance(x, np.ndarray)]


def calls_of_function(name):
    for sample in COMPOSED[name]:
        if sample.smooth:
            yield (lambda *tensors, sample=sample: sample.call(mg, *tensors)), list(sample.arrays)


def weighted(results):
    """A number that every element of every result has another share in."""
    total = mg.zeros((), dtype=mg.float64)
    for result in results if isinstance(results, (tuple, list)) else [results]:
        if result.dtype.kind == "f":
            shares = mg.reshape(mg.cos(mg.arange(result.size, dtype=mg.float64)), result.shape)
            total = total + (result.astype(mg.float64) * shares).sum()
    return total


def in_loop_and_branch(call):
    """A number: two rounds, each of which calls the function in its body, and in a branch."""

    def one_round(carry, given):
        number = weighted(call(*given))
        other = mg.cond(carry > -1e300, lambda given: weighted(call(*given)), lambda given: carry * 1.0, given)
        return carry + number, other

    def total(*tensors):
        last, others = mg.scan(one_round, mg.zeros((), dtype=mg.float64), [mg.stack([t, t]) for t in tensors])
        return last + others.sum()

    return total


def check(calls):
    for call, arrays in calls:
        tensors = [mg.asarray(x, requires_grad=x.dtype.kind == "f") for x in arrays]
        floats = [t for t in tensors if t.requires_grad]
        total = in_loop_and_branch(call)

        def gradients(*tensors, total=total):
            floats = [t for t in tensors if t.dtype.kind == "f"]
            return mg.gradients(total(*tensors), floats, allow_unused=True)

        if not floats or not total(*tensors).requires_grad:
            continue
        for ours, theirs in zip(mg.jit(gradients)(*tensors), gradients(*tensors)):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                rtol = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-9}[str(theirs.dtype)]
                np.testing.assert_allclose(ours.numpy_copy(), theirs.numpy_copy(), rtol=rtol, atol=rtol)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(op.name for op in P if op.rules and op.name in SAMPLES))
def test_gradients_of_primitives(name):
    check(calls_of_primitive(name))


@pytest.mark.parametrize("name", sorted(COMPOSED))
def test_gradients_of_composed_functions(name):
    check([*calls_of_function(name)][:MOST])
