"""The printer to LLVM: every operation of every dtype, and every kind of loop, against NumPy."""

import numpy as np
import pytest

from minigrad.compile.codegen.llvm import llvm_source
from minigrad.compile.loops.ir import For, Kernel, Let, Parameter, Store
from minigrad.compile.loops.widen import Machine
from minigrad.support.errors import CompileError
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import DTYPES, FLOAT, INT, LOOPS, awkward, check, every_operation, expected, softmax


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operations_compute_the_right_values(dtype):
    sample = every_operation(dtype)
    check(sample, native(sample.kernel))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind == "f"], ids=str)
def test_a_float_beyond_the_range_of_an_integer_becomes_the_nearest(dtype):
    sample = every_operation(dtype)
    run, arrays = native(sample.kernel), [a.copy() for a in sample.arrays]
    run(arrays, 0, sample.kernel.units)
    results = dict(zip([p.name for p in sample.kernel.parameters], arrays))
    for target in DTYPES:
        if target.kind in "iu":
            limits = np.iinfo(target)
            wanted = [0 if np.isnan(x) else int(min(max(float(x), limits.min), limits.max)) for x in results["x0"]]
            wanted = [min(w, int(limits.max)) for w in wanted]
            np.testing.assert_array_equal(results[f"to_{target}"], np.array(wanted, target))


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name):
    sample = LOOPS[name]()
    run, reference = native(sample.kernel), expected(sample)
    check(sample, run, reference=reference)
    check(sample, run, pieces=3, reference=reference)


def test_memory_beside_the_range_stays_as_it_is():
    sample = softmax(8, 16)
    arrays = [a.copy() for a in sample.arrays]
    native(sample.kernel)(arrays, 2, 5)
    result = arrays[1].reshape(8, 16)
    assert np.isfinite(result[2:5]).all() and np.isnan(result[:2]).all() and np.isnan(result[5:]).all()


def test_a_position_is_computed_once_and_outside_of_loops():
    row = ("*", ("//", ("%", "p", 12), 4), 8)
    loads = [Let(f"x{n}", "load", ("x", ("+", ("+", row, "r"), n)), FLOAT) for n in range(3)]
    body = [*loads, Let("y", "add", ("x0", "x1"), FLOAT), Let("z", "add", ("y", "x2"), FLOAT)]
    loop = For("r", 0, 6, [*body, Store("out", ("+", ("*", "p", 6), "r"), "z")])
    parameters = [Parameter("x", FLOAT, 24, "in"), Parameter("out", FLOAT, 72, "out")]
    kernel = Kernel("rows", parameters, [For("p", "lo", "hi", [loop])], 12, "rows")
    text = llvm_source(kernel)
    assert text.count("urem") == text.count("udiv") == 1
    assert text.index("udiv") < text.index("\n.round.r:") and ", i64 2\n" in text.partition("\n.round.r:")[2]
    x, out = np.arange(24, dtype=np.float32), np.zeros(72, np.float32)
    native(kernel)([x, out], 0, 12)
    wanted = [[sum(x[p // 4 * 8 + r : p // 4 * 8 + r + 3]) for r in range(6)] for p in range(12)]
    assert out.reshape(12, 6).tolist() == wanted


def test_the_text_says_what_may_be_regrouped():
    text = llvm_source(softmax().kernel)
    assert text.count("fadd reassoc nsz contract") == 1
    assert "fast" not in text and "nnan" not in text
    assert '"prefer-vector-width"="256"' in text and '"prefer-vector-width"="512"' in llvm_source(
        softmax().kernel, Machine(512)
    )


def test_operations_without_native_code_are_an_error():
    lets = [Let("x", "load", ("a", "i"), INT), Let("y", "pow", ("x", "x"), INT), Store("a", "i", "y")]
    kernel = Kernel("kernel", [Parameter("a", INT, 4, "inout")], [For("i", "lo", "hi", lets)], 4, "elements")
    with pytest.raises(CompileError, match="no native code for pow of int32"):
        llvm_source(kernel)


def test_samples_contain_nan_and_negative_zero():
    assert np.isnan(awkward(FLOAT)).any() and np.signbit(awkward(FLOAT)[awkward(FLOAT) == 0]).any()
