"""Scripted functions give the values and gradients of plain Python, also for batches."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.tree import flatten

from .functions import CASES

pytestmark = pytest.mark.usefixtures("numpy_kernels")
CALLS = [(f, call, gradients) for f, calls, gradients in CASES for call in calls]
NAMES = [f"{f.__name__}-{number}" for f, calls, _ in CASES for number in range(len(calls))]


def tensors(call):
    return [mg.asarray(x, requires_grad=True) for x in call]


def assert_same(result, expected):
    found, wanted = flatten(result, (int, float))[0], flatten(expected, (int, float))[0]
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(number(a), number(b), rtol=1e-5)


def number(x):
    return x.numpy_copy() if isinstance(x, mg.Tensor) else x


def gradients_of(function, call):
    inputs = tensors(call)
    results = [t for t in flatten(function(*inputs))[0] if t.requires_grad]
    if not results:
        return [0 for _ in inputs]
    total = sum((t * (i + 1)).sum() for i, t in enumerate(results))
    return [0 if g is None else g for g in mg.gradients(total, inputs, allow_unused=True)]


@pytest.mark.parametrize("f, call, gradients", CALLS, ids=NAMES)
def test_scripted_is_plain(f, call, gradients):
    scripted = mg.script(f)
    assert_same(scripted(*tensors(call)), f(*tensors(call)))
    assert_same(gradients_of(scripted, call), gradients_of(f, call))


@pytest.mark.parametrize("f, calls, gradients", CASES, ids=[f.__name__ for f, _, _ in CASES])
def test_examples_of_a_batch_go_their_own_ways(f, calls, gradients):
    if not numbers_only(f(*tensors(calls[0]))):
        pytest.skip("a text cannot be batched")
    if f.__name__ == "the_right_side_is_not_computed":
        pytest.skip("it is, where the examples of a batch differ")
    batch = [mg.asarray(np.array(column, dtype=np.float32)) for column in zip(*calls)]
    together = flatten(mg.vmap(mg.script(f))(*batch), (int, float))[0]
    for i, call in enumerate(calls):
        alone = flatten(f(*tensors(call)), (int, float))[0]
        assert_same([t[i] if isinstance(t, mg.Tensor) else t for t in together], alone)


def numbers_only(result):
    return not isinstance(result, tuple) or len(flatten(result, (int, float))[0]) == len(result)
