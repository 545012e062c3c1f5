"""Kernels on vectors: every operation in every dtype, every number of rounds, and the loops that are left to LLVM."""

from dataclasses import replace

import numpy as np
import pytest

from minigrad.compile.codegen.lanes import lanes_of
from minigrad.compile.codegen.llvm import READY
from minigrad.compile.codegen.vectors import vector_source
from minigrad.compile.loops.ir import (
    Accumulate,
    Accumulator,
    For,
    Kernel,
    Lanes,
    Let,
    Parameter,
    Running,
    Store,
    statements,
)
from minigrad.compile.loops.legalise import legalise
from minigrad.compile.loops.operations import OPERATIONS
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import DTYPES, FLOAT, INT, LONG, LOOPS, check, every_operation, expected, sample


def chosen(kernel):
    """The lanes of the innermost loops, in order."""
    found = lanes_of(legalise(kernel), 256)
    return found and [*found.values()]


def on_vectors(dtype):
    """All operations of a dtype that processors have on vectors."""
    whole = every_operation(dtype)
    (loop,) = whole.kernel.body

    def computed(name):
        body = [s for s in loop.body if getattr(s, "name", "").startswith("a") or name in
                (getattr(s, "name", ""), getattr(s, "value", ""))]
        return chosen(replace(whole.kernel, body=[replace(loop, body=body)]))

    scalar = {s.name for s in loop.body if isinstance(s, Let) and s.op in OPERATIONS and computed(s.name) == [1]}
    body = [s for s in loop.body if getattr(s, "value", getattr(s, "name", "")) not in scalar]
    skipped = {s.buffer for s in loop.body if isinstance(s, Store) and s.value in scalar}
    return replace(whole, kernel=replace(whole.kernel, body=[replace(loop, body=body)])), skipped


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operations_on_vectors_compute_the_right_values(dtype):
    made, skipped = on_vectors(dtype)
    assert chosen(made.kernel)[0] > 1 and len(skipped) < 14
    check(made, native(made.kernel), skip=skipped)
    check(made, native(made.kernel), pieces=7, skip=skipped)


def row_sums(columns, dtype, op):
    body = [
        For("p", "lo", "hi", [
            For("r", 0, columns, [
                Let("x", "load", ("a", ("+", "r", ("*", "p", columns))), dtype),
                Let("n", "index", ("r",), LONG), Let("odd", "and", ("n", 1), LONG),
                Let("zero", "eq", ("odd", 0), bool_),
                Let("y", "select", ("zero", "x", 1), dtype),
                Store("b", ("+", "r", ("*", "p", columns)), "y"),
            ], [Accumulator("s", op, "y", dtype)]),
            Store("c", "p", "s"),
        ]),
    ]
    x = np.random.default_rng(columns).integers(-3, 4, 3 * columns).astype(dtype)
    parameters = [("a", dtype, 3 * columns, "in"), ("b", dtype, 3 * columns, "out"), ("c", dtype, 3, "out")]
    return sample(parameters, body, {"a": x}, parallel="rows", units=3)


bool_ = np.dtype(bool)


@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", [FLOAT, np.dtype("float64"), INT, np.dtype("int8")], ids=str)
def test_rows_of_every_length(dtype, op):
    for columns in (1, 2, 3, 7, 8, 13, 14, 31, 32, 33, 65, 100):
        made = row_sums(columns, dtype, op)
        check(made, native(made.kernel))


def test_short_rows_have_no_loop_and_long_rows_have_one():
    """Rounds that are left come after the loop, on vectors that halve their lanes."""
    short, long = (vector_source(row_sums(columns, FLOAT, "sum").kernel) for columns in (14, 1006))
    assert ".round.2" not in short and "<8 x float>" in short and "<4 x float>" in short and "<2 x float>" in short
    assert ".round.2" in long and ".round.3" not in long and "<32 x float>" in long and "<8 x float>" in long


def slice_gradient(size=11, part=7, rows=4):
    """The elements of a part where it is, and zeros elsewhere, turned around."""
    where = ("%", ("+", "r", size - 2), size)
    body = [
        For("p", "lo", "hi", [
            For("r", 0, size, [
                Let("n", "index", (where,), LONG), Let("inside", "lt", ("n", part), bool_),
                Let("x", "load", ("a", ("+", ("min", where, part - 1), ("*", "p", part))), FLOAT),
                Let("y", "select", ("inside", "x", 0.0), FLOAT), Store("b", ("+", "r", ("*", "p", size)), "y"),
            ]),
        ]),
    ]
    x = np.arange(rows * part, dtype=np.float32)
    parameters = [("a", FLOAT, rows * part, "in"), ("b", FLOAT, rows * size, "out")]
    return sample(parameters, body, {"a": x}, parallel="rows", units=rows)


def test_reads_that_are_not_neighbours_in_a_short_loop():
    made = slice_gradient()
    assert ".round.2" not in vector_source(made.kernel), "there is no loop over r"
    check(made, native(made.kernel))


def one_loop(statements, variables=()):
    return Kernel("kernel", [Parameter(name, FLOAT, 99, "inout") for name in "ab"], [For("i", "lo", "hi", statements)],
                  99, "elements")


LEFT_TO_LLVM = {
    "strided": [Let("x", "load", ("a", ("*", "i", 2)), FLOAT), Store("b", "i", "x")],
    "written and read elsewhere": [Let("x", "load", ("a", ("+", "i", 1)), FLOAT), Store("a", "i", "x")],
    "written twice": [Let("x", "load", ("b", "i"), FLOAT), Store("a", "i", "x"), Store("a", ("+", "i", 1), "x")],
    "one place": [Let("x", "load", ("b", "i"), FLOAT), Accumulate("sum", "a", 0, "x")],
    "read from a computed place": [
        Let("n", "index", ("i",), LONG), Let("x", "load", ("a", ("+", "i", "n")), FLOAT), Store("b", "i", "x"),
    ],
}


@pytest.mark.parametrize("name", LEFT_TO_LLVM)
def test_loops_that_llvm_turns_into_vectors(name):
    kernel = one_loop(LEFT_TO_LLVM[name])
    assert lanes_of(kernel, 256) is None and vector_source(kernel) is None


def test_functions_of_the_library_run_one_by_one():
    lets = [Let("x", "load", ("a", "i"), FLOAT), Let("y", "remainder", ("x", "x"), FLOAT)]
    kernel = one_loop([*lets, Store("b", "i", "y")])
    assert chosen(kernel) == [1] and "<" not in vector_source(kernel)


def test_text_on_vectors_needs_no_passes():
    text = vector_source(LOOPS["softmax"]().kernel)
    assert text.startswith(READY) and "<32 x float>" in text and "reassoc" in text and "fast" not in text


@pytest.mark.parametrize("name", LOOPS)
def test_loops_in_uneven_pieces(name):
    made = LOOPS[name]()
    check(made, native(made.kernel), pieces=5, reference=expected(made))


def test_values_are_computed_once_before_the_loop():
    """A place that is the same in all rounds, and a number for all lanes."""
    text = vector_source(LOOPS["in_place"]().kernel)
    loop = text[text.index(".round.1:") : text.index(".end.1:")]
    assert "shufflevector" not in loop and "shufflevector" in text
    assert sum(isinstance(s, Let) for s in statements(LOOPS["in_place"]().kernel.body)) == 5


def test_loops_over_lanes_are_vectors():
    text = vector_source(LOOPS["lanes"]().kernel)
    assert text.count("load <8 x float>") == 3 and text.count("store <8 x float>") == 3
    assert "load <16 x float>" in vector_source(LOOPS["wide_lanes"]().kernel)
    assert text.startswith(READY)


def over_lanes(statements, lanes=8, kind=Lanes):
    """A loop over lanes that reads 24 numbers from `a`, 16 flags from `c`, and writes to `b`."""
    parameters = [("a", FLOAT, 24, "in"), ("c", bool_, 16, "in"), ("b", FLOAT, 40, "inout")]
    given = {"a": np.arange(1, 25, dtype=np.float32), "c": np.arange(16) % 3 == 0, "b": np.zeros(40, np.float32)}
    return sample(parameters, [For("p", "lo", "hi", [kind("l", 0, lanes, statements)])], given, "rows", 1)


LANE = Let("x", "load", ("a", ("+", "l", 2)), FLOAT)
IN_LANES = {
    "function": [LANE, Let("y", "sqrt", ("x",), FLOAT), Store("b", "l", "y")],
    "comparison": [
        LANE, Let("flag", "load", ("c", "l"), bool_), Let("y", "select", ("flag", "x", 2.0), FLOAT),
        Store("b", "l", "y"),
    ],
    "the same number": [Let("x", "load", ("a", 3), FLOAT), Accumulate("sum", "b", ("+", "l", 4), "x")],
    "positions": [Let("n", "index", ("l",), LONG), Let("y", "cast", ("n",), FLOAT), Store("b", "l", "y")],
}
ONE_BY_ONE = {
    "far apart": ([Let("x", "load", ("a", ("*", "l", 2)), FLOAT), Store("b", "l", "x")], 8),
    "a sum at one place": ([LANE, Accumulate("sum", "b", 0, "x")], 8),
    "loops of different length": ([For("k", 0, "l", [Store("b", ("+", "k", "l"), 1.0)])], 8),
    "too many": ([Store("b", "l", 1.0)], 40),
    "lanes in lanes": ([Lanes("m", 0, 8, [Store("b", ("+", ("*", "l", 2), "m"), 1.0)])], 8),
}


@pytest.mark.parametrize("name", IN_LANES)
def test_statements_in_lanes(name):
    made = over_lanes(IN_LANES[name])
    assert "<8 x " in vector_source(made.kernel)
    check(made, native(made.kernel))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_loops_over_lanes_that_are_not_vectors_run_one_by_one(name):
    made = over_lanes(*ONE_BY_ONE[name])
    assert vector_source(made.kernel) is None
    check(made, native(made.kernel), reference=expected(over_lanes(*ONE_BY_ONE[name], kind=For)))


@pytest.mark.parametrize("columns", [1, 2, 3, 40])
def test_running_totals_need_no_passes(columns):
    place = ("+", "r", ("*", "p", columns))
    body = [
        Let("x", "load", ("a", place), FLOAT), Running("t", "sum", "x", FLOAT), Let("y", "mul", ("t", 2.0), FLOAT),
        Store("b", place, "y"),
    ]
    loops = [For("p", "lo", "hi", [For("r", 0, columns, body, [Accumulator("m", "max", "t", FLOAT)])])]
    x = np.random.default_rng(0).integers(-9, 9, 3 * columns).astype(np.float32)
    parameters = [("a", FLOAT, 3 * columns, "in"), ("b", FLOAT, 3 * columns, "out")]
    made = sample(parameters, loops, {"a": x}, parallel="rows", units=3)
    assert vector_source(made.kernel).startswith(READY)
    check(made, native(made.kernel))
