"""The table of operations: a new operation needs one entry."""

import numpy as np
import pytest

from minigrad.compile.codegen.c import c_source
from minigrad.compile.codegen.cuda import cuda_source
from minigrad.compile.codegen.llvm import llvm_source
from minigrad.compile.fusion.count import operations
from minigrad.compile.loops.ir import FLOAT, HALF, INT, For, Kernel, Let, Parameter, Store
from minigrad.compile.loops.operations import OPERATIONS, Operation, steps_of
from minigrad.core.expression import FUNCTIONS
from minigrad.core.primitive import Primitive
from minigrad.support.errors import CompileError, DeclarationError
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import BOOL_OPERATIONS, FLOAT_OPERATIONS, INTEGER_OPERATIONS
from tests.compile.loops.verify import verify

from tests.compile.codegen.samples import awkward, check, expected, sample  # isort: skip

def bits(x):
    """The number of bits that are set in each element."""
    return np.bitwise_count(x.view(f"u{x.itemsize}")).astype(x.dtype)


C, CUDA = "__builtin_popcount({x})", "__popc({x})"
POPCOUNT = Operation("popcount", 1, "iu", bits, c=C, cuda=CUDA, llvm="llvm.ctpop", flops=2)
HYPOT = Operation("hypot", 2, "f", np.hypot, c="hypot")
RAMP = Operation("ramp", 1, "fi", lambda x: np.maximum(x, 0), rule=lambda w, x: w.select(w.lt(x, 0), 0, x))
CAPPED = Operation("capped", 2, "f", lambda x, y: np.where(y < x, y, x), c="return {y} < {x} ? {y} : {x};")


@pytest.fixture
def new(monkeypatch):
    """Adds operations to the table and to the language of `expr`."""

    def add(operation):
        monkeypatch.setitem(OPERATIONS, operation.name, operation)
        monkeypatch.setitem(FUNCTIONS, operation.name, operation.arity)

    return add


def applied(operation, dtype):
    """A kernel that applies an operation to each element."""
    first = awkward(dtype)
    given = {"x0": first, "x1": np.roll(first, 3)}
    names = list(given)[: operation.arity]
    lets = [Let(f"v{name}", "load", (name, "i"), dtype) for name in names]
    lets.append(Let("y", operation.name, tuple(f"v{name}" for name in names), dtype))
    parameters = [*[(name, dtype, first.size, "in") for name in names], ("b", dtype, first.size, "out")]
    return sample(parameters, [For("i", "lo", "hi", [*lets, Store("b", "i", "y")])], given, inexact={"b": 2})


@pytest.mark.parametrize(("operation", "dtype"), [
    (POPCOUNT, INT), (HYPOT, FLOAT), (HYPOT, HALF), (RAMP, FLOAT), (RAMP, INT),
])
def test_a_new_operation_runs_everywhere(operation, dtype, new):
    new(operation)
    tested = applied(operation, dtype)
    verify(tested.kernel)
    with np.errstate(all="ignore"):
        wanted = operation.numpy(*tested.arrays[:-1])
    reference = expected(tested)
    np.testing.assert_array_equal(reference[-1], wanted.astype(dtype))
    check(tested, native(tested.kernel), reference=reference)


@pytest.mark.parametrize(("operation", "dtype", "c", "cuda"), [
    (POPCOUNT, INT, "const int32_t y = __builtin_popcount(vx0);", "const int y = __popc(vx0);"),
    (HYPOT, FLOAT, "const float y = hypotf(vx0, vx1);", "const float y = hypotf(vx0, vx1);"),
    (RAMP, INT, "const int32_t y = y_0 ? 0 : vx0;", "const int y = y_0 ? 0 : vx0;"),
    (CAPPED, FLOAT, "return b < a ? b : a;", "const float y = capped_float32(vx0, vx1);"),
])
def test_a_new_operation_is_listed(operation, dtype, c, cuda, new):
    new(operation)
    kernel = applied(operation, dtype).kernel
    assert c in c_source(kernel) and cuda in cuda_source(kernel).text


def test_a_primitive_may_use_a_new_operation(new):
    new(POPCOUNT)
    primitive = Primitive("bits", "elementwise", ("x",), lambda inputs: inputs, expr="popcount(x) + 1")
    assert [step.op for step in steps_of(primitive)] == ["popcount", "add"]
    assert operations(primitive) == 3


@pytest.mark.parametrize(("operation", "dtype"), [(POPCOUNT, FLOAT), (HYPOT, INT)])
def test_an_operation_is_refused_for_dtypes_that_it_does_not_take(operation, dtype, new):
    new(operation)
    with pytest.raises(CompileError, match=f"{operation.name} of {dtype} as {dtype}"):
        verify(applied(operation, dtype).kernel)
    with pytest.raises(CompileError, match=f"no native code for {operation.name} of {dtype}"):
        llvm_source(applied(operation, dtype).kernel)


def test_an_operation_that_llvm_has_no_text_for_is_refused(new):
    new(CAPPED)
    with pytest.raises(CompileError, match="no native code for capped of float32"):
        llvm_source(applied(CAPPED, FLOAT).kernel)


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if operation.internal])
def test_internal_operations_are_refused(name):
    operation = OPERATIONS[name]
    operands = ("x",) * operation.arity
    body = [Let("x", "cast", (1.0,), FLOAT), Let("y", name, operands, FLOAT)]
    with pytest.raises(CompileError, match=f"the operation '{name}' of {operation.arity} operands"):
        verify(Kernel("kernel", [Parameter("a", FLOAT, 1, "in")], body, 1, "elements"))
    with pytest.raises(DeclarationError, match=f"p: expr uses {name}"):
        Primitive("p", "elementwise", ("x",), lambda inputs: inputs, expr=f"{name}({', '.join(operands)})")


def test_operations_all_appear_in_the_samples():
    tables = (FLOAT_OPERATIONS, INTEGER_OPERATIONS, BOOL_OPERATIONS)
    tried = {op for table in tables for ops in table.values() for op in ops}
    assert {name for name, each in OPERATIONS.items() if not each.internal} == tried | {
        "select", "cast", "bitcast", "position"}
