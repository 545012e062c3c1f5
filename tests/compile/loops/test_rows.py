"""Rows at once: loops that add rows to one row compute the same with several rows per round."""

import numpy as np
import pytest

from minigrad.compile.codegen.native import compile_kernels, is_available
from minigrad.compile.loops.bands import with_rows_at_once
from minigrad.compile.loops.ir import FLOAT, Accumulate, For, Let, statements
from minigrad.compile.nodes.thresholds import LONG_ROW_BYTES, ROWS_AT_ONCE
from tests.compile.codegen.samples import column_sums, sample

needs_llvm = pytest.mark.skipif(not is_available(), reason="needs LLVM")


def rounds(kernel):
    """The rows of each round over several rows."""
    loops = [s for s in statements(with_rows_at_once(kernel).body) if isinstance(s, For)]
    return [sum(isinstance(s, Let) and s.op == "load" for s in statements(loop.body))
            for loop in loops if loop.variable.endswith("_round")]


def test_sums_across_rows_take_several_rows_per_round():
    kernel = column_sums(50, 24, 16).kernel
    assert rounds(kernel) == [ROWS_AT_ONCE]
    assert rounds(column_sums(50, LONG_ROW_BYTES // 4 - 1, 16).kernel) == [ROWS_AT_ONCE]
    for op in ("sum", "prod"):  # rounding errors are smaller than those of row by row
        assert rounds(column_sums(50, LONG_ROW_BYTES // 4, 16, op).kernel) == [ROWS_AT_ONCE]
    assert rounds(column_sums(50, LONG_ROW_BYTES // 4 - 1, 16, "max").kernel) == [ROWS_AT_ONCE]
    assert not rounds(column_sums(50, LONG_ROW_BYTES // 4, 16, "max").kernel)


@needs_llvm
@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("rows, columns, chunk", [(50, 24, 16), (16, 7, 8), (61, 16, 61), (3, 5, 2), (9, 100, 9)])
def test_values_are_those_of_numpy(op, rows, columns, chunk):
    from minigrad.eager.stack_loops import run_on

    given = column_sums(rows, columns, chunk, op)
    x, out = [array.copy() for array in given.arrays]
    made = compile_kernels([given.kernel])[0]
    run_on(made, [x.ctypes.data, out.ctypes.data], given.kernel.units)
    ufunc, x = np.add if op == "sum" else np.maximum, x.reshape(rows, columns) * 0.5
    wanted = [ufunc.reduce(x[start : start + chunk]) for start in range(0, rows, chunk)]
    np.testing.assert_array_equal(out.reshape(-1, columns), wanted)


def looped(body):
    parameters = [("a", FLOAT, 400, "in"), ("t", FLOAT, 400, "inout")]
    return sample(parameters, [For("p", 0, 20, [For("r", 0, 20, body)])], {"a": np.ones(400, "f4")}, "rows", 1).kernel


HERE = ("+", "r", ("*", "p", 20))


@pytest.mark.parametrize("body", [
    [Let("x", "load", ("a", HERE), FLOAT), Accumulate("sum", "t", HERE, "x")],
    [Let("x", "load", ("t", ("+", "r", "p")), FLOAT), Accumulate("sum", "t", "r", "x")],
], ids=["each row has its own place", "it reads what it writes"])
def test_other_loops_stay_as_they_are(body):
    kernel = looped(body)
    assert repr(with_rows_at_once(kernel).body) == repr(kernel.body)
