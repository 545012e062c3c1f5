"""Sums of loops: which products they take in, and in which blocks they add up."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.loops.bands import in_blocks, with_long_sums_in_blocks, with_terms
from minigrad.compile.loops.ir import (
    FLOAT,
    INT,
    Accumulate,
    Accumulator,
    For,
    Kernel,
    Let,
    Parameter,
    Running,
    Store,
    statements,
)
from tests.compile.partitions import graph_of, recorded

X, Y = Let("x", "load", ("a", "i"), FLOAT), Let("y", "mul", ("x", "x"), FLOAT)


def kernel(*body, buffers=("a", "t", "u"), dtype=FLOAT):
    return Kernel("kernel", [Parameter(name, dtype, 1 << 20, "inout") for name in buffers], [*body], 1, "rows")


def loops_of(changed):
    return [(each.variable, each.high) for each in statements(changed.body) if isinstance(each, For)]


def ops_of(changed):
    return [each.op for each in statements(changed.body) if isinstance(each, Let)]


# ---- terms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more, op", [
    ([], "term"), ([Store("u", "i", "y")], "mul"), ([Let("z", "add", ("y", 1.0), FLOAT)], "mul"),
    ([Accumulate("sum", "u", "i", "y")], "mul"), ([For("j", 0, 2, [Store("u", "j", "y")])], "mul"),
])  # fmt: skip
def test_a_product_is_a_term_if_only_one_sum_reads_it(more, op):
    loop = For("i", 0, 8, [X, Y, *more], [Accumulator("s", "sum", "y", FLOAT)])
    assert op in ops_of(with_terms(kernel(loop)))
    assert ops_of(kernel(loop))[1] == "mul"  # the given kernel stays


def test_products_of_sums_in_memory_are_terms_and_those_of_maxima_and_integers_are_not():
    assert "term" in ops_of(with_terms(kernel(For("i", 0, 8, [X, Y, Accumulate("sum", "t", "i", "y")]))))
    for op in ("max", "prod"):
        assert "term" not in ops_of(with_terms(kernel(For("i", 0, 8, [X, Y], [Accumulator("s", op, "y", FLOAT)]))))
    whole = Let("y", "mul", ("x", "x"), INT)
    assert "term" not in ops_of(with_terms(kernel(For("i", 0, 8, [X, whole], [Accumulator("s", "sum", "y", INT)]))))
    running = For("i", 0, 8, [X, Y, Running("s", "sum", "y", FLOAT)])
    assert "term" not in ops_of(with_terms(kernel(running)))


# ---- blocks ----------------------------------------------------------------------------------------------------------


def test_loops_are_nested_until_they_are_short():
    loop = in_blocks(For("r", 0, 1 << 20, [], [Accumulator("t", "sum", "x", FLOAT)]), 2048)
    counts = []
    while isinstance(loop, For):
        counts.append(loop.variable)
        loop = loop.body[0] if loop.body else None
    assert counts == ["r_block_block_block", "r_block_block", "r_block", "r"]


def test_what_rows_add_to_one_place_is_added_up_in_a_register():
    row = For("r", 0, 10, [X], [Accumulator("s", "sum", "x", FLOAT)])
    rows = For("p", 0, 64, [row, Accumulate("sum", "t", 0, "s"), Accumulate("sum", "u", "p", "s")])
    changed = with_long_sums_in_blocks(kernel(rows))
    assert loops_of(changed) == [("p_block", 4), ("p", ("+", ("*", "p_block", 16), 16)), ("r", 10)]
    assert changed.body[-1] == Accumulate("sum", "t", 0, "s_p_t")
    assert sum(isinstance(each, Accumulate) for each in statements(changed.body)) == 2


@pytest.mark.parametrize("read", ["t", "u"])
def test_a_sum_that_is_read_on_the_way_stays_in_memory(read):
    row = For("r", 0, 10, [X], [Accumulator("s", "sum", "x", FLOAT)])
    rows = For("p", 0, 64, [row, Accumulate("sum", "t", 0, "s"), Let("q", "load", (read, 0), FLOAT)])
    assert (("p", 64) in loops_of(with_long_sums_in_blocks(kernel(rows)))) == (read == "t")


def test_sums_of_integers_maxima_and_running_totals_stay():
    for op, dtype in (("sum", INT), ("max", FLOAT)):
        loop = For("i", 0, 1 << 20, [X], [Accumulator("s", op, "x", dtype)])
        assert loops_of(with_long_sums_in_blocks(kernel(loop))) == [("i", 1 << 20)]
    loop = For("i", 0, 1 << 20, [X, Running("q", "sum", "x", FLOAT)], [Accumulator("s", "sum", "x", FLOAT)])
    assert loops_of(with_long_sums_in_blocks(kernel(loop))) == [("i", 1 << 20)]


@pytest.mark.parametrize("size", [1, 2047, 4096, 4097, 65_536, 70_001, 300_007])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_all_elements_are_added_up(size, rows):
    x = np.random.default_rng(size).integers(-4, 5, (rows, size)).astype(np.float32)
    row = mg.ones(size)
    total, lines, most = mg.jit(lambda x: (mg.sum(x * row), mg.sum(x, axis=-1), mg.max(x, axis=-1)))(mg.asarray(x))
    assert total.item() == x.sum(dtype=np.float64)
    np.testing.assert_array_equal(lines.numpy(), x.sum(axis=-1, dtype=np.float64))
    np.testing.assert_array_equal(most.numpy(), x.max(axis=-1))


@pytest.mark.parametrize("shape, axis", [
    ((20_000, 4), 0), ((1500, 100), 0), ((3000, 8, 4), (0, 2)), ((7, 3000, 3), 1), ((999, 7), 0),
    ((600, 5, 16), (0, 1)),
])  # fmt: skip
def test_all_rows_are_added_up(shape, axis):
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    given = mg.asarray(x)
    total, gradient = mg.jit(lambda x: (mg.sum(x * x, axis=axis), mg.grad(lambda x: (x * x).sum())(x)))(given)
    np.testing.assert_array_equal(total.numpy(), (x * x).sum(axis=axis))
    np.testing.assert_array_equal(gradient.numpy(), 2 * x)


@pytest.mark.parametrize("shape, axis, chunks", [
    ((100_000, 40), 0, 196), ((500, 40), 0, 1), ((1_000_000, 20), 0, 1000), ((512, 1024), 0, 8),
    ((100_000, 8, 4), (0, 2), 633), ((64, 32, 28, 28), (0, 2, 3), 24),
])  # fmt: skip
def test_few_floats_are_added_to_one_place(shape, axis, chunks):
    with recorded() as _alive:
        y = mg.sum(mg.asarray(np.ones(shape, np.float32)) * 2.0, axis=axis)
    assert f"in {chunks} chunks" in str(fuse(graph_of(y)))


def test_maxima_and_integers_need_no_more_chunks():
    x = mg.asarray(np.ones((100_000, 40), np.float32))
    with recorded() as _alive:
        most, count = mg.max(x * 2.0, axis=0), mg.sum(x < 2.0, axis=0)
    assert "in 61 chunks" in str(fuse(graph_of(most))) and "in 61 chunks" in str(fuse(graph_of(count)))
