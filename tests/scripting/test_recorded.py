"""A scripted function gives the results of plain Python while it is recorded, with one trace for all paths."""

import pytest

import minigrad as mg

from .functions import CASES
from .test_values import CALLS, NAMES, assert_same, gradients_of, tensors

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def in_graph_mode(function):
    def recorded(*args):
        with mg.graph():
            return function(*args)

    return recorded


@pytest.mark.parametrize("f, call, gradients", CALLS, ids=NAMES)
@pytest.mark.parametrize("mode", [mg.jit, in_graph_mode])
def test_recorded_is_plain(f, call, gradients, mode):
    recorded = mode(mg.script(f))
    with mg.no_grad():
        expected = f(*tensors(call))
        assert_same(recorded(*tensors(call)), expected)
        assert_same(recorded(*tensors(call)), expected)
    if gradients:
        assert_same(gradients_of(recorded, call), gradients_of(f, call))


@pytest.mark.parametrize("f, calls, gradients", CASES, ids=[f.__name__ for f, _, _ in CASES])
def test_trace_serves_all_branches(f, calls, gradients):
    jitted = mg.jit(mg.script(f))
    with mg.no_grad():
        for call in calls:
            assert_same(jitted(*tensors(call)), f(*tensors(call)))
    assert len(jitted.traces) == 1
