"""Kernels on vectors: every operation in every dtype, every number of rounds, and loops over lanes."""

from dataclasses import replace

import numpy as np
import pytest

from minigrad.compile.codegen.llvm import llvm_source
from minigrad.compile.codegen.wasm import wasm_function
from minigrad.compile.codegen.wasm_format import module
from minigrad.compile.loops.ir import Accumulate, Accumulator, For, Lanes, Let, Running, Store, statements
from minigrad.compile.loops.widen import Machine, widen
from tests.compile.codegen.in_node import in_node
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import DTYPES, FLOAT, INT, LONG, LOOPS, check, every_operation, expected, sample


def vector_source(kernel):
    """The text of a kernel on vectors."""
    return llvm_source(kernel, Machine())


def chosen(kernel):
    """The lanes of the loops on vectors, in order; 1 if there are none."""
    found = [s.stride for s in statements(widen(kernel, Machine()).body) if isinstance(s, For) and s.stride > 1]
    return found or [1]


def on_vectors(dtype):
    """All operations of a dtype that processors have on vectors."""
    whole = every_operation(dtype)
    (loop,) = whole.kernel.body
    types = {s.name: s.dtype for s in loop.body if isinstance(s, Let)}
    scalar = {s.name for s in loop.body if isinstance(s, Let) and not Machine().has_vectors(s, types, 8)}
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


@pytest.mark.parametrize("columns", [3, 8, 14, 100])
def test_sums_of_a_number(columns):
    sums = [Accumulator("s", "sum", 1.0, FLOAT), Accumulator("m", "max", 2.0, FLOAT)]
    loop = For("r", 0, columns, [Let("x", "load", ("a", "r"), FLOAT), Store("c", "r", "x")], sums)
    body = [For("p", "lo", "hi", [loop, Store("b", "p", "s"), Store("d", "p", "m")])]
    sizes = {"a": columns, "b": 1, "c": columns, "d": 1}
    parameters = [(name, FLOAT, size, "in" if name == "a" else "out") for name, size in sizes.items()]
    made = sample(parameters, body, {"a": np.ones(columns, np.float32)}, parallel="rows", units=1)
    check(made, native(made.kernel))
    check(made, in_node(module([wasm_function(made.kernel)])))


def test_short_rows_have_no_loop_and_long_rows_have_one():
    """Rounds that are left come after the loop, on vectors that halve their lanes."""
    short, long = (vector_source(row_sums(columns, FLOAT, "sum").kernel) for columns in (14, 1006))
    assert ".round.r" not in short and "<8 x float>" in short and "<4 x float>" in short and "<2 x float>" in short
    assert long.count("\n.round.r") == 1 and "<32 x float>" in long and "<8 x float>" in long


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
    assert ".round.r" not in vector_source(made.kernel), "there is no loop over r"
    check(made, native(made.kernel))


def test_the_text_says_what_may_be_regrouped():
    text = vector_source(LOOPS["softmax"]().kernel)
    assert "<32 x float>" in text and "reassoc" in text and "fast" not in text


@pytest.mark.parametrize("name", LOOPS)
def test_loops_in_uneven_pieces(name):
    made = LOOPS[name]()
    check(made, native(made.kernel), pieces=5, reference=expected(made))


def test_values_are_computed_once_before_the_loop():
    """A place that is the same in all rounds, and a number for all lanes."""
    text = vector_source(LOOPS["in_place"]().kernel)
    loop = text[text.index(".round.i:") : text.index(".end.i:")]
    assert "shufflevector" not in loop and "shufflevector" in text
    assert sum(isinstance(s, Let) for s in statements(LOOPS["in_place"]().kernel.body)) == 5


def test_loops_over_lanes_are_vectors():
    text = vector_source(LOOPS["lanes"]().kernel)
    assert text.count("load <8 x float>") == 3 and text.count("store <8 x float>") == 3
    assert "load <16 x float>" in vector_source(LOOPS["wide_lanes"]().kernel)


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

@pytest.mark.parametrize("name", IN_LANES)
def test_statements_in_lanes(name):
    made = over_lanes(IN_LANES[name])
    assert "<8 x " in vector_source(made.kernel)
    check(made, native(made.kernel))


@pytest.mark.parametrize("columns", [1, 2, 3, 40])
def test_running_totals(columns):
    place = ("+", "r", ("*", "p", columns))
    body = [
        Let("x", "load", ("a", place), FLOAT), Running("t", "sum", "x", FLOAT), Let("y", "mul", ("t", 2.0), FLOAT),
        Store("b", place, "y"),
    ]
    loops = [For("p", "lo", "hi", [For("r", 0, columns, body, [Accumulator("m", "max", "t", FLOAT)])])]
    x = np.random.default_rng(0).integers(-9, 9, 3 * columns).astype(np.float32)
    parameters = [("a", FLOAT, 3 * columns, "in"), ("b", FLOAT, 3 * columns, "out")]
    made = sample(parameters, loops, {"a": x}, parallel="rows", units=3)
    check(made, native(made.kernel))
