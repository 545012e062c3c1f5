"""The printer to C: the compiled listing gives the same results as the kernel compiled by LLVM."""

import ctypes
import inspect
import shutil
import subprocess

import numpy as np
import pytest

from minigrad.compile.codegen.c import CPrinter, c_source
from minigrad.compile.loops.ir import For, Kernel, Let, Parameter, Store
from minigrad.support.errors import CompileError
from tests.compile.codegen.lowered import check_roughly, lowered_samples
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import DTYPES, FUNCTIONS, INT, LOOPS, check, every_operation, expected, softmax

CC = shutil.which("cc")
FLAGS = ["-O2", "-fwrapv", "-fno-math-errno", "-ffp-contract=off", "-std=gnu11"]
FLAGS += ["-shared", "-fPIC", "-Wall", "-Wno-unused", "-Werror"]
compiled = pytest.mark.skipif(CC is None, reason="there is no C compiler `cc`")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All samples, compiled into one library."""
    folder = tmp_path_factory.mktemp("c")
    samples = {name: LOOPS[name]() for name in LOOPS}
    samples |= {f"every_operation_{dtype}": every_operation(dtype) for dtype in DTYPES if _has(dtype)}
    samples |= {f"lowered_{number}": sample for number, sample in enumerate(lowered_samples(range(2000, 2012)))}
    for name, sample in samples.items():
        (folder / f"{name}.c").write_text(c_source(sample.kernel, name))
    sources = [str(folder / f"{name}.c") for name in samples]
    subprocess.run([CC, *FLAGS, "-o", str(folder / "all.so"), *sources, "-lm"], check=True)
    return samples, ctypes.CDLL(str(folder / "all.so"))


def _has(dtype):
    """Whether this compiler supports a type: float16 is new."""
    text = "_Float16 half(_Float16 x) { return x; }"
    command = [CC, "-x", "c", "-fsyntax-only", "-"]
    return dtype != np.float16 or subprocess.run(command, input=text, text=True, capture_output=True).returncode == 0


def runner(loaded, name):
    """A function of the library as a function of arrays."""

    def run(arrays, low, high):
        function = getattr(loaded, name)
        function(*[ctypes.c_void_p(a.ctypes.data) for a in arrays], ctypes.c_int64(low), ctypes.c_int64(high))

    return run


@compiled
@pytest.mark.parametrize("name", LOOPS)
def test_loops(library, name):
    samples, loaded = library
    reference = expected(samples[name])
    check(samples[name], runner(loaded, name), reference=reference)
    check(samples[name], runner(loaded, name), pieces=3, reference=reference)


@compiled
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operations_in_c_equal_those_of_llvm(library, dtype):
    samples, loaded = library
    name = f"every_operation_{dtype}"
    if name not in samples:
        pytest.skip("this C compiler has no half precision")
    sample = samples[name]
    reference = [a.copy() for a in sample.arrays]
    native(sample.kernel)(reference, 0, sample.kernel.units)
    sample.inexact = {
        f"of_{op}": 3 for op in FUNCTIONS
    }  # compilers may fuse products and sums
    check(sample, runner(loaded, name), reference=reference)


@compiled
def test_kernels_that_the_compiler_lowers_run_in_c(library):
    samples, loaded = library
    lowered = [name for name in samples if name.startswith("lowered_")]
    assert len(lowered) > 20
    for name in lowered:
        check_roughly(samples[name], runner(loaded, name), expected(samples[name]))


def test_the_listing_reads_like_the_loops():
    text = c_source(softmax().kernel)
    function = text.split("\n\n")[-1]
    assert function.startswith("void kernel(const float *restrict a, float *restrict b, float *restrict c")
    assert "for (int64_t p = lo; p < hi; p++) {" in function
    assert "const float e = own_exp(d);" in function
    assert "total += e;" in function and "most = max_float32(most, x0);" in function
    assert "b[p * 100 + r2] = y;" in function
    assert text.count("static inline float own_exp(float x)") == 1


def test_the_printer_fits_on_the_page_of_a_lecture():
    lines = inspect.getsource(CPrinter).splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 88


def test_operations_without_native_code_are_an_error():
    lets = [Let("x", "load", ("a", "i"), INT), Let("y", "pow", ("x", "x"), INT), Store("a", "i", "y")]
    kernel = Kernel("kernel", [Parameter("a", INT, 4, "inout")], [For("i", "lo", "hi", lets)], 4, "elements")
    with pytest.raises(CompileError, match="no native code for pow of int32"):
        c_source(kernel)
