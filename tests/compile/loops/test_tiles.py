"""Tiles: kernels that read against the order of memory compute the same in bands, and others stay as they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.compile.loops.bands import tiled
from minigrad.compile.loops.index import plus, times
from minigrad.compile.loops.ir import FLOAT, Accumulate, For, Kernel, Let, Parameter, statements
from minigrad.compile.nodes.thresholds import BAND_COLUMNS
from minigrad.compile.running.program import Program
from tests.compile.loops.verify import verify

AGAINST = {
    "elementwise": lambda x: x.T * 2 + 1,
    "with another": lambda x: mg.tanh(x.T) + x[:, :1].T,
    "sums across rows": lambda x: mg.sum(x.T, axis=0),
    "largest across rows": lambda x: mg.max(x.T * 2, axis=0),
}
IN_ORDER = {
    "plain": lambda x: x * 2 + 1, "softmax": lambda x: mg.softmax(x), "row sums": lambda x: mg.sum(x, axis=1),
    "column sums": lambda x: mg.sum(x, axis=0), "sums of rows of x.T": lambda x: mg.softmax(x.T),
}


def kernels(f, x):
    program = Program(mg.trace(f, x), without="layouts")  # that pass turns most loops to the order of memory
    return [step.kernel for step in program.plan.steps if hasattr(step, "kernel")]


def bands(kernel):
    return [s for s in statements(tiled(kernel).body) if isinstance(s, For) and s.variable.endswith("_band")]


@pytest.mark.parametrize("name", AGAINST)
def test_kernels_that_read_against_the_order_of_memory_have_bands(name):
    made = kernels(AGAINST[name], mg.ones((300, 400)))
    assert sum(len(bands(kernel)) for kernel in made) == 1
    for kernel in made:
        verify(tiled(kernel))


@pytest.mark.parametrize("name", IN_ORDER)
def test_other_kernels_stay_as_they_are(name):
    for kernel in kernels(IN_ORDER[name], mg.ones((300, 400))):
        assert repr(tiled(kernel).body) == repr(kernel.body)


@pytest.mark.parametrize(("place", "is_tiled"), [("r", True), (0, False), (plus("p", "r"), False), ("p", False)])
def test_additions_to_one_place_keep_their_order(place, is_tiled):
    """In bands, the numbers of several columns would be added in a different order, with a different rounding."""
    load = Let("v", "load", ("x", plus(times("r", 300), "p")), FLOAT)
    inner = For("r", 0, 400, [load, Accumulate("sum", "OUT", place, "v")])
    parameters = [Parameter("x", FLOAT, 120_000, "in"), Parameter("OUT", FLOAT, 700, "inout")]
    kernel = Kernel("sums", parameters, [For("p", 0, 300, [inner])], 120_000, "rows")
    verify(kernel)
    assert len(bands(kernel)) == is_tiled


@pytest.mark.slow
@given(
    rows=st.integers(2 * BAND_COLUMNS, 200), columns=st.sampled_from([128, 131, 500]),
    name=st.sampled_from(sorted(AGAINST)),
)
def test_values_are_those_of_eager_mode(rows, columns, name):
    rows += rows % 2
    x = mg.asarray(np.random.default_rng(rows).standard_normal((rows, columns)))
    program, wanted = Program(mg.trace(AGAINST[name], x), without="layouts"), AGAINST[name](x)
    (found,) = program([x.numpy_copy()])
    np.testing.assert_allclose(found, wanted.numpy_copy(), rtol=1e-9, atol=1e-9)
