"""The verifier, by which tests check the kernels of the compiler, accepts every sample and finds every fault."""

import numpy as np
import pytest

from minigrad.compile.loops.ir import Accumulate, Accumulator, For, Kernel, Let, Parameter, Running, Store
from minigrad.support.errors import CompileError
from tests.compile.codegen.samples import LOOPS, every_operation
from tests.compile.loops.verify import range_of, verify

FLOAT, LONG = np.dtype(np.float32), np.dtype(np.int64)


@pytest.mark.parametrize("name", LOOPS)
def test_samples_pass(name):
    verify(LOOPS[name]().kernel)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"])
def test_operations_pass(dtype):
    verify(every_operation(np.dtype(dtype)).kernel)


def kernel(body, size=10, role="out", units=10, parallel="elements", name="kernel", parameter="a"):
    return Kernel(
        name, [Parameter(parameter, FLOAT, size, role), Parameter("b", FLOAT, size, "in")], body, units, parallel
    )


def loop(*body, low="lo", high="hi", accumulators=()):
    return [For("i", low, high, list(body), list(accumulators))]


WHOLE = Let("n", "index", ("i",), LONG)
AT = Let("at", "position", ("n", 10), LONG)
LOAD = Let("x", "load", ("b", "i"), FLOAT)


def _nested(index, depth):
    return ("+", _nested(index, depth - 1), 0) if depth else index


def _nested_loops(depth):
    return [For(f"i{depth}", 0, 1, _nested_loops(depth - 1))] if depth else []


@pytest.mark.parametrize(("wrong", "message"), [
    (kernel(loop(LOAD), units=11), "it goes from 0 to 10 in b, which has 10 elements"),
    (kernel(loop(LOAD, low=-1)), "it goes from -1 to 9"),
    (kernel(loop(LOAD, high=("+", "hi", 1))), "it goes from 0 to 10"),
    (kernel(loop(Store("a", ("*", "i", 2), 1.0))), "it goes from 0 to 18 in a"),
    (kernel(loop(Store("a", ("+", ("*", "i", -1), 8), 1.0))), "it goes from -1 to 8"),
    (kernel(loop(Store("b", "i", 1.0))), "it writes b, which it may only read"),
    (kernel(loop(Store("c", "i", 1.0))), "there is no memory named 'c'"),
    (kernel(loop(Store("a", "j", 1.0))), "there is no variable 'j'"),
    (kernel(loop(Store("a", "i", "x"))), "'x' is not a value in scope"),
    (kernel([*loop(LOAD), Store("a", 0, "x")]), "'x' is not a value in scope"),  # defined in the loop only
    (kernel(loop(Store("a", ("%", "i", 0), 1.0))), "the index operation '%'"),
    (kernel(loop(Store("a", ("//", "i", "i"), 1.0))), "the index operation '//'"),
    (kernel(loop(Accumulate("mean", "a", "i", 1.0))), "the reduction 'mean'"),
    (kernel(loop(LOAD, accumulators=[Accumulator("s", "sum", "y", FLOAT)])), "'y' is not a value in scope"),
    (kernel(loop(LOAD, accumulators=[Accumulator("s", "mean", "x", FLOAT)])), "the reduction 'mean'"),
    (kernel(loop(LOAD, Running("t", "mean", "x", FLOAT))), "the reduction 'mean'"),
    (kernel(loop(LOAD, Running("t", "sum", "y", FLOAT))), "'y' is not a value in scope"),
    (kernel(loop(LOAD, Running("t", "sum", "x", LONG))), "'x' is a float32 where a int64 is needed"),
    (kernel([Running("t", "sum", 1.0, FLOAT)]), "the running total t"),
    (kernel(loop(Let("x y", "exp", (1.0,), FLOAT))), "the name 'x y'"),
    (kernel(loop(Let("x", "exp", (1.0, 2.0), FLOAT))), "the operation 'exp' of 2 operands"),
    (kernel(loop(Let("x", "exp", (1.0,), np.dtype("complex64")))), "the type or the operands of x"),
    (kernel(["text"]), "a statement of the kind str"),
    (kernel([], role="own"), "the parameter a"),
    (kernel([], size=-1), "the parameter a"),
    (kernel([], parameter="b"), "the name 'b' is used twice"),
    (kernel([], parallel="threads"), "how they are shared"),
    (kernel([], units=-1), "its units"),
    (kernel([], name="a b"), "its name"),
    *[(kernel(loop(*twice)), "the name .* is used twice") for twice in (
        [Let("i", "add", (1.0, 1.0), FLOAT)], [Let("a", "add", (1.0, 1.0), FLOAT)], [LOAD, LOAD],
        [Let("lo", "add", (1.0, 1.0), FLOAT)], [LOAD, For("x", 0, 2, [])], [For("i", 0, 2, [])],
        [LOAD, For("j", 0, 2, [LOAD])], [For("j", 0, 2, [LOAD], [Accumulator("x", "sum", 1.0, FLOAT)])],
        [For("j", 0, 2, [], [Accumulator("j", "sum", 1.0, FLOAT)])],
    )],
    (kernel(loop(Let("x_0", "add", (1.0, 1.0), FLOAT))), "the name 'x_0'"),  # like the steps of x
    (kernel(loop(Store("a", ("min", ("*", "i", 2**62 - 10**9), 7), 1.0))), "64 bits do not hold"),
    (kernel(loop(Store("a", ("min", ("+", 2**63 - 5, "i"), 7), 1.0))), "64 bits do not hold"),
    (kernel(loop(high=("+", 2**63 - 1, "hi"))), "64 bits do not hold"),
    (kernel(loop(Store("a", _nested("i", 250), 1.0))), "the index"),
    (kernel(_nested_loops(20)), "a loop inside 16 loops"),
    (kernel(loop(Let("x", "load", ("b", "i"), LONG))), "x is a int64 and b holds float32"),
    (kernel(loop(LOAD, Let("y", "add", ("x", 1), LONG))), "add of float32 as int64"),
    (kernel(loop(LOAD, Let("y", "and", ("x", 1.0), FLOAT))), "and of float32 as float32"),
    (kernel(loop(LOAD, Let("y", "lt", ("x", 1.0), FLOAT))), "lt of float32 as float32"),
    (kernel(loop(LOAD, Let("y", "select", ("x", "x", "x"), FLOAT))), "'x' is a float32 where a bool is needed"),
    (kernel(loop(LOAD, Let("y", "bitcast", ("x",), LONG))), "bitcast of float32 as int64"),
    (kernel(loop(Let("y", "add", (300, 1), np.dtype(np.int8)))), "300 is not a int8"),
    (kernel(loop(Let("y", "index", ("i",), LONG), Store("a", "i", "y"))), "'y' is a int64 where a float32 is needed"),
    (kernel(loop(LOAD, accumulators=[Accumulator("s", "sum", "x", LONG)])), "'x' is a float32 where a int64 is needed"),
    (kernel(loop(WHOLE, Let("p", "position", ("n", 11), LONG), Store("a", "p", 1.0))), "it goes from 0 to 10 in a"),
    (kernel(loop(WHOLE, Let("p", "position", ("n", 0), LONG))), "a position of 'n' as int64 in a dimension of 0"),
    (kernel(loop(WHOLE, Let("p", "position", ("n", "n"), LONG))), "a position of 'n' as int64 in a dimension of 'n'"),
    (kernel(loop(Let("p", "position", (3, 10), LONG))), "a position of 3 as int64"),
    (kernel(loop(WHOLE, Store("a", "n", 1.0))), "there is no variable 'n'"),  # it is not inside a dimension
    (kernel(loop(WHOLE, AT, For("j", 0, "at", []))), "there is no variable 'at'"),  # loops have known bounds
    (kernel([*loop(WHOLE, AT), Store("a", "at", 1.0)]), "there is no variable 'at'"),
    # A loop without rounds is printed as well.
    (kernel([For("i", 3, 3, [Let("x = call void @exit(i32 1)", "add", (1.0, 1.0), FLOAT)])]), "the name 'x = "),
    (kernel([For("i", 3, 3, [Store("a", "j", 1.0)])]), "there is no variable 'j'"),
])
def test_invalid_kernels_are_refused(wrong, message):
    with pytest.raises(CompileError, match=message):
        verify(wrong)


def test_loop_that_is_never_entered_may_have_any_index():
    verify(kernel(loop(Store("a", 99, 1.0), low=3, high=3)))


@pytest.mark.parametrize("index", [
    ("+", ("*", "p", 7), "i"), ("%", ("+", "p", "i"), 5), ("//", ("+", ("*", "p", 3), 2), 4),
    ("min", ("*", "i", 2), "p"),
    ("%", ("+", "i", 10), 7), ("+", ("*", ("%", "p", 3), -2), ("//", "p", 3)), ("*", ("min", "p", 2), ("+", "i", 1)),
])
def test_the_range_of_an_index_holds_all_its_values(index):
    def value(index, variables):
        if not isinstance(index, tuple):
            return variables.get(index, index)
        operation, a, b = index[0], value(index[1], variables), value(index[2], variables)
        return {"+": a + b, "*": a * b, "min": min(a, b), "//": a // (b or 1), "%": a % (b or 1)}[operation]

    low, high = range_of(index, {"p": (0, 6), "i": (2, 5)})
    values = {value(index, {"p": p, "i": i}) for p in range(7) for i in range(2, 6)}
    assert low <= min(values) and max(values) <= high
