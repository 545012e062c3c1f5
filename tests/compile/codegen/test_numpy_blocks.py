"""Kernels run by NumPy give the results of native kernels, in blocks that may cut a loop anywhere."""

from dataclasses import replace

import numpy as np
import pytest

from minigrad.compile.codegen import numpy_blocks
from minigrad.compile.codegen.numpy_blocks import compile_blocks
from minigrad.compile.loops.ir import For, Let, Store
from minigrad.compile.loops.operations import OPERATIONS
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import DTYPES, FLOAT, LOOPS, check, every_operation, expected, sample, softmax


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operations_compute_the_right_values(dtype):
    tested = every_operation(dtype)
    check(tested, compile_blocks(tested.kernel))


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 16])
@pytest.mark.parametrize("name", LOOPS)
def test_loops(name, block, monkeypatch):
    monkeypatch.setattr(numpy_blocks, "BLOCK", block)
    tested = LOOPS[name]()
    reference = expected(tested)
    check(tested, compile_blocks(tested.kernel), reference=reference)
    check(tested, compile_blocks(tested.kernel), pieces=3, reference=reference)


@pytest.mark.parametrize("name", ["softmax", "column_sums", "shared_places", "gathered", "places"])
def test_blocks_give_the_bits_of_native_code(name):
    tested = LOOPS[name]()
    reference = [a.copy() for a in tested.arrays]
    native(tested.kernel)(reference, 0, tested.kernel.units)
    check(tested, compile_blocks(tested.kernel), reference=reference)


def test_rows_are_computed_together(monkeypatch):
    tested, calls = softmax(100, 64), []
    reference = expected(tested)
    exp = replace(OPERATIONS["exp"], numpy=lambda x: calls.append(x.shape) or np.exp(x))
    monkeypatch.setitem(OPERATIONS, "exp", exp)
    check(tested, compile_blocks(tested.kernel), reference=reference)
    assert calls == [(100, 64)]


def test_positions_that_go_backwards():
    body = [For("i", "lo", "hi", [Let("x", "load", ("a", ("+", ("*", "i", -1), 9)), FLOAT), Store("b", "i", "x")])]
    tested = sample([("a", FLOAT, 10, "in"), ("b", FLOAT, 10, "out")], body, {"a": np.arange(10, dtype=np.float32)})
    check(tested, compile_blocks(tested.kernel))
    check(tested, native(tested.kernel))
