"""Kernels without machine code: their nodes run one after the other, in the memory of the kernel."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.running.program import Program
from tests.compile.partitions import Runner, by_nodes

SMALL = Chunking(most=5, least=1, spread=1)


def result(function, *arrays, chunking=SMALL):
    """What the kernels of a function compute, by their nodes."""
    graph = mg.trace(function, *map(mg.asarray, arrays))
    return Runner(fuse(graph, chunking), threads=2, run=by_nodes)(arrays)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("name", ["sum", "max", "prod"])
def test_partial_results_are_complete(name, dtype):
    x = np.arange(1, 13).reshape(6, 2) % 3 + 1
    (total,) = result(lambda x: getattr(mg, name)(x, axis=0) * 2, x.astype(dtype))
    np.testing.assert_array_equal(total, getattr(np, name)(x, axis=0) * 2)


def test_a_reduction_to_one_number_and_one_of_bools():
    x = np.arange(12.0).reshape(4, 3)
    total, positive = result(lambda x: (mg.sum(x), mg.all(x > -1)), x)
    assert (total, positive) == (66, True) and total.shape == ()


def test_no_elements():
    x = np.zeros((0, 3), np.float32)
    doubled, total = result(lambda x: (x * 2, mg.sum(x, axis=0)), x)
    assert doubled.shape == (0, 3) and total.tolist() == [0, 0, 0]


def test_a_value_is_stored_where_an_input_was():
    program = Program(mg.trace(lambda x, y: mg.exp(x) + y, mg.ones(5), mg.ones(5)), backend="numpy", donate={0: 0})
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    expected = np.exp(x) + 1
    assert program([x, y]) == [None]
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_numbers_in_memory_are_read_at_their_offset():
    x, table = np.ones((2, 3)), np.arange(10.0)
    (scaled,) = result(lambda x, t: x * t[7] + t[2], x, table)
    assert scaled.tolist() == [[9.0] * 3] * 2


def test_positions_of_an_array_with_one_element_are_not_read():
    def twice(x, places):
        return mg.take((x * x).sum().reshape(1), places.astype("int64") % 1, axis=0) * 2

    (found,) = result(twice, np.arange(3.0), np.ones(4))
    assert found.tolist() == [10.0] * 4


def test_many_parts_are_computed_once():
    x = np.ones((50, 40), np.float32)
    f = mg.jit(lambda x: mg.sum(mg.exp(x), axis=0))
    before = f(mg.asarray(x)).numpy()
    graph = mg.trace(lambda x: mg.sum(mg.exp(x), axis=0), mg.asarray(x))
    (after,) = Program(graph, backend="numpy")([x])
    np.testing.assert_allclose(before, after, rtol=1e-6)
