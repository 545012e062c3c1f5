"""The operations in a legalised kernel."""

import numpy as np
import pytest

from minigrad.compile.loops.ir import Let, statements
from minigrad.compile.loops.legalise import legalise
from minigrad.compile.loops.operations import OPERATIONS
from tests.compile.codegen.samples import DTYPES, LOOPS, check, every_operation, expected
from tests.compile.interpreter import EXACT, run_kernel

LEGAL = {"load", "index", "cast", "bitcast", "whole"} | {name for name, each in OPERATIONS.items() if each.llvm}
LIBRARY = {name for name, each in OPERATIONS.items() if each.c and not each.llvm}
WRITTEN_OUT = {name for name, each in OPERATIONS.items() if each.written_out}


def operations(kernel):
    """The operations of a kernel, with the dtypes of their results."""
    return {(s.op, s.dtype) for s in statements(kernel.body) if isinstance(s, Let)}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_legalised_kernels_contain_only_legal_operations(dtype):
    for op, result in operations(legalise(every_operation(dtype).kernel)):
        assert op in LEGAL or (op in LIBRARY and (op not in WRITTEN_OUT or result.itemsize == 8))


def test_half_precision_is_only_loaded_cast_chosen_and_stored():
    left = operations(legalise(every_operation(np.dtype(np.float16)).kernel))
    assert {op for op, dtype in left if dtype == np.float16} <= {"load", "cast", "select"}


def test_functions_may_stay_what_they_are():
    left = operations(legalise(every_operation(np.dtype(np.float32)).kernel, written_out=False))
    assert {op for op, _ in left} >= LIBRARY


def test_a_kernel_of_legal_operations_stays_what_it_is():
    kernel = LOOPS["column_sums"]().kernel
    assert legalise(kernel) == kernel


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "iu"], ids=str)
def test_the_legal_kernel_computes_the_same(dtype, monkeypatch):
    monkeypatch.setitem(EXACT, "quotient", lambda a, b: _cut_off(a, b)[0])
    monkeypatch.setitem(EXACT, "remainder", lambda a, b: _cut_off(a, b)[1])
    sample = every_operation(dtype)
    reference = expected(sample)
    sample.kernel = legalise(sample.kernel)
    check(sample, lambda arrays, low, high: run_kernel(sample.kernel, arrays, low, high), reference=reference)


def _cut_off(a, b):
    """Integer division as in C, which rounds toward zero."""
    assert (b != 0).all(), "a division by zero"
    quotients = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b)]
    rests = [int(x) - q * int(y) for x, y, q in zip(a, b, quotients)]
    return np.array(quotients).astype(a.dtype), np.array(rests).astype(a.dtype)
