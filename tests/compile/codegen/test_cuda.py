"""The printer to CUDA: kernels run on the CPU with threads in several orders; NVRTC compiles them if installed."""

import ctypes
import ctypes.util
import importlib.util
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from minigrad.compile.codegen.cuda import cuda_source
from minigrad.compile.codegen.gpu_loops import own_sums
from minigrad.compile.loops.ir import For, Kernel, Let, Parameter, Store
from tests.compile.codegen.lowered import check_roughly, lowered_samples
from tests.compile.codegen.samples import DTYPES, FLOAT, FUNCTIONS, LOOPS, check, every_operation, expected, poison

from tests.compile.codegen.samples import column_sums, finished, softmax, total, windows  # isort: skip

CXX = shutil.which("g++") if sys.platform == "linux" else None
EMULATION = Path(__file__).parent / "emulation"
FLAGS = ["-O1", "-fwrapv", "-ffp-contract=off", "-shared", "-fPIC", "-std=c++17", f"-I{EMULATION}", "-w"]
ORDERS = {"ascending": 0, "descending": 1, "shuffled": 5}
SAMPLES = LOOPS | {f"every_operation_{dtype}": lambda dtype=dtype: every_operation(dtype) for dtype in DTYPES}
LONG_ROWS = {
    "row_in_memory": lambda: softmax(3, 20_000),  # too long for shared memory
    "rows_of_a_warp": lambda: softmax(20, 256),
    "rows_of_a_block": lambda: softmax(4, 1000),
    "sums_in_shared_memory": lambda: column_sums(30, 200, 7, "max"),
    "many_sums_in_shared_memory": lambda: column_sums(9, 1500, 4),
    "too_many_sums_for_shared_memory": lambda: column_sums(9, 20_000, 4),
    "a_chunk": lambda: total(1000, 300),
    "a_long_chunk": lambda: total(100_000, 60_000),
}
SAMPLES |= LONG_ROWS
emulated = pytest.mark.skipif(CXX is None, reason="the emulation needs g++ and Linux")


def launcher(source):
    """A function that launches a kernel in the emulator."""
    names = [p.name for p in source.arguments]
    given = ", ".join([*(f"Cast{{table[{i}]}}" for i in range(len(names))), "lo", "hi"])
    return (
        f'extern "C" void launch_{source.name}(void **table, {source.integer} lo, {source.integer} hi, int blocks, '
        f"int how) {{\n    run_grid(blocks, {source.threads}, how, [&] {{ {source.name}({given}); }});\n}}\n"
    )


CAST = """
struct Cast { void *address; template <class T> operator T *() const { return (T *)address; } };
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All samples, compiled into one library."""
    folder = tmp_path_factory.mktemp("cuda")
    samples = {name: make() for name, make in SAMPLES.items()}
    samples |= {f"lowered_{number}": sample for number, sample in enumerate(lowered_samples(range(3000, 3012)))}
    sources = {name: cuda_source(sample.kernel, name) for name, sample in samples.items()}
    files = []
    for number in range(2):  # files, which are compiled at the same time
        part = [sources[name] for name in list(sources)[number::2]]
        text = "\n".join(f"namespace in_{s.name} {{\n{_without_includes(s.text)}\n{launcher(s)}\n}}" for s in part)
        path = folder / f"part{number}.cpp"
        path.write_text(f'#include "cuda.h"\n#include "cuda_fp16.h"\n{CAST}\n{text}')
        files.append(path)
    running = [subprocess.Popen([CXX, *FLAGS, "-o", f"{path}.so", str(path)]) for path in files]
    assert [process.wait() for process in running] == [0, 0]
    return samples, sources, [ctypes.CDLL(f"{path}.so") for path in files]


def _without_includes(text):
    return text.replace("#include <cuda_fp16.h>", "")


def runner(library, name, order, blocks=3):
    """A kernel as a function of arrays."""
    samples, sources, loaded = library
    source = sources[name]
    launch = next(getattr(part, f"launch_{name}") for part in loaded if hasattr(part, f"launch_{name}"))
    integer = ctypes.c_int if source.integer == "int" else ctypes.c_longlong
    positions = {p.name: number for number, p in enumerate(samples[name].kernel.parameters)}

    def run(arrays, low, high):
        used = [poison(p.size * blocks, p.dtype) if p in source.rows else arrays[positions[p.name]]
                for p in source.arguments]
        table = (ctypes.c_void_p * len(used))(*[a.ctypes.data for a in used])
        launch(table, integer(low), integer(high), blocks, order)

    return run


@emulated
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", [*LOOPS, *LONG_ROWS])
def test_loops(library, name, order):
    sample = library[0][name]
    check(sample, runner(library, name, ORDERS[order]), reference=expected(sample))


@emulated
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operations_compute_the_right_values(library, dtype):
    sample = library[0][f"every_operation_{dtype}"]
    sample.inexact = {f"of_{op}": 4 for op in FUNCTIONS}
    check(sample, runner(library, f"every_operation_{dtype}", ORDERS["shuffled"]))


@emulated
@pytest.mark.parametrize("order", ORDERS)
def test_kernels_that_the_compiler_lowers_run_in_cuda(library, order):
    lowered = {name: sample for name, sample in library[0].items() if name.startswith("lowered_")}
    assert len(lowered) > 20
    for name, sample in lowered.items():
        check_roughly(sample, runner(library, name, ORDERS[order]), expected(sample))


@emulated
def test_a_thread_makes_few_additions_one_after_the_other(library):
    x = (np.random.default_rng(0).uniform(0, 1, 100_000) + 1e4).astype(np.float32)
    found = np.zeros(2, np.float32)
    runner(library, "a_long_chunk", 0)([x, found], 0, 2)
    exact = [part.sum(dtype=np.float64) for part in (x[:60_000], x[60_000:])]
    np.testing.assert_allclose(found, exact, rtol=3 * np.finfo(np.float32).eps)


@emulated
def test_missing_barriers_are_found(tmp_path):
    sample = softmax(9, 600)
    source = cuda_source(sample.kernel, "broken")
    text = source.text.replace("__syncthreads();", "")
    (tmp_path / "broken.cpp").write_text(f'#include "cuda.h"\n{CAST}\n{text}\n{launcher(source)}')
    subprocess.run([CXX, *FLAGS, "-o", f"{tmp_path}/broken.so", f"{tmp_path}/broken.cpp"], check=True)
    library = ({"broken": sample}, {"broken": source}, [ctypes.CDLL(f"{tmp_path}/broken.so")])
    with pytest.raises(AssertionError):
        check(sample, runner(library, "broken", ORDERS["descending"]))


# The text -------------------------------------------------------------------------------------------------------------


def test_rows_are_divided_among_blocks_and_threads():
    text = cuda_source(softmax(9, 601).kernel).text
    assert "__launch_bounds__(256)" in text
    assert "for (int p = lo + blockIdx.x; p < hi; p += gridDim.x) {" in text
    assert "for (int r1 = threadIdx.x; r1 < 601; r1 += 256) {" in text
    assert "__shared__ __align__(16) float s0[601];" in text
    assert "total = team_sum_float32(total);" in text and "warp < 8" in text
    assert "if (threadIdx.x == 0) c[p] = total;" in text


def test_rows_that_do_not_fit_in_shared_memory_together_are_not_all_there():
    kernel = softmax(3, 8000).kernel  # a row takes 32 kB of 48 kB
    two = replace(kernel, parameters=[*kernel.parameters, Parameter("s1", FLOAT, 8000, "scratch")])
    text = cuda_source(two).text
    assert "__shared__ __align__(16) float s0[8000];" in text and "s1[8000]" not in text


def test_sums_that_are_read_on_the_way_are_not_kept_in_shared_memory():
    def chunks(body):
        loops = [s for s in body if isinstance(s, For)]
        return [loop for s in loops for loop in (s, *chunks(s.body))]

    (chunk, own), *_ = [(c, own_sums(c)) for c in chunks(column_sums(30, 200, 7, "max").kernel.body) if own_sums(c)]
    reading = Let("read", "load", (next(iter(own)), 0), FLOAT)
    assert own_sums(replace(chunk, body=[*chunk.body, reading])) == {}


def test_rows_that_are_short_have_a_warp_each():
    source = cuda_source(softmax(9, 100).kernel)
    assert (source.threads, source.together) == (256, 8)
    assert "for (int p = lo + blockIdx.x * 8 + threadIdx.x / 32; p < hi; p += gridDim.x * 8) {" in source.text
    assert "for (int r1 = threadIdx.x % 32; r1 < 100; r1 += 32) {" in source.text
    assert "float *s0 = all_s0 + threadIdx.x / 32 * 100;" in source.text
    assert "__syncthreads" not in source.text and "warp <" not in source.text


def test_sums_across_rows_stay_in_shared_memory():
    text = cuda_source(column_sums(9, 1500, 4).kernel).text
    assert "own_t[r] += y;" in text and "t[c * 1500 + r]" not in text and text.count("__syncthreads();") == 0
    assert "own_t" not in cuda_source(column_sums(9, 20_000, 4).kernel).text


def test_windows_are_gathered_by_the_threads_of_their_places():
    source = cuda_source(windows(600, 40).kernel)
    assert source.parts == 24_000 and source.blocks(1, 132) > 90
    assert "hi *= 24000;" in source.text and "for (int r = 0; r < 4; r++) {" in source.text
    assert "t[p] = total_t;" in source.text and "== threadIdx.x)" not in source.text


def test_a_reduction_that_begins_with_another_number_is_not_gathered():
    kernel = windows().kernel
    chunk = kernel.body[0]
    fill = replace(chunk.body[0], body=[replace(chunk.body[0].body[0], value=1.0)])
    other = replace(kernel, body=[replace(chunk, body=[fill, chunk.body[1]])])
    assert cuda_source(kernel).parts == 24 and cuda_source(other).parts == 1


def test_elements_that_several_threads_add_to_have_one_owner():
    text = cuda_source(LOOPS["shared_places"]().kernel).text
    assert "% 256 == threadIdx.x) t[" in text
    assert "% 256 ==" not in cuda_source(LOOPS["column_sums"]().kernel).text


def test_few_results_are_each_reduced_by_a_team():
    source = cuda_source(finished(512, 1).kernel)
    assert "for (int k = 1 + threadIdx.x; k < 512; k += 256) {" in source.text and source.blocks(1, 132) == 1
    assert "if (threadIdx.x == 0) b[m] = x;" in source.text and "if (threadIdx.x == 0) b[n] += total_k;" in source.text
    for kernel in (finished(512, 9000).kernel, finished(60, 1).kernel):  # all are busy; there is little to share
        assert "for (int n = lo + blockIdx.x * 256 + threadIdx.x;" in cuda_source(kernel).text


def test_a_reduction_of_what_the_kernel_writes_is_not_shared():
    kernel = finished(512, 1).kernel
    first = replace(kernel.body[0], body=[kernel.body[0].body[0], Store("a", "m", "x"), kernel.body[0].body[1]])
    assert "team_sum" in cuda_source(kernel).text
    assert "team_sum" not in cuda_source(replace(kernel, body=[first, kernel.body[1]])).text


def test_arrays_of_more_than_2_to_the_31_elements_have_64_bit_positions():
    kernel = softmax().kernel
    large = Kernel("large", kernel.parameters, kernel.body, 1 << 31, "rows")
    assert cuda_source(kernel).integer == "int" and cuda_source(large).integer == "long long"


def test_threads_and_blocks_follow_from_the_sizes():
    threads = [cuda_source(softmax(2, n).kernel).threads for n in (1, 128, 129, 300, 600, 5000, 50_000)]
    assert threads == [256, 256, 160, 256, 256, 1024, 1024]
    elements, rows = cuda_source(LOOPS["places"]().kernel), cuda_source(softmax(9, 1000).kernel)
    assert elements.blocks(1000, 100) == 4 and rows.blocks(1000, 10) == 160 and rows.blocks(9, 10) == 9


def test_a_row_that_is_too_long_lies_in_memory():
    source = cuda_source(softmax(3, 20_000).kernel)
    assert [p.name for p in source.rows] == ["s0"] and "s0 += (long long)blockIdx.x * 20000;" in source.text
    assert cuda_source(softmax(3, 5000).kernel).rows == []


# Compiling ------------------------------------------------------------------------------------------------------------


def nvrtc():
    """CUDA's compiler, which works without a GPU; None if it is not installed."""
    places = []
    for package in ("nvidia.cuda_nvrtc", "nvidia.cu13", "nvidia.cu12"):
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            found = None
        for folder in found.submodule_search_locations or [] if found else []:
            places += sorted(map(str, Path(folder).rglob("libnvrtc.so.*")))
    named = ctypes.util.find_library("nvrtc")
    for place in [*places, *([named] if named else []), "libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


WITHOUT_HALF = [d for d in DTYPES if d != np.float16]  # float16 needs CUDA's headers
COMPILED = LOOPS | LONG_ROWS | {
    f"every_operation_{dtype}": lambda dtype=dtype: every_operation(dtype, WITHOUT_HALF) for dtype in WITHOUT_HALF
}


@pytest.mark.parametrize("name", COMPILED)
def test_nvrtc_compiles_it(name):
    if nvrtc() is None:
        pytest.skip("NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
    compile_by_nvrtc(cuda_source(COMPILED[name]().kernel, name).text)


def compile_by_nvrtc(text, options=()):
    """Compile CUDA C for a GPU."""
    library, program = nvrtc(), ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
    given = [b"--gpu-architecture=compute_80", *[option.encode() for option in options]]
    result = library.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    assert result == 0, log.value.decode()


def test_half_precision_asks_for_its_header():
    assert cuda_source(every_operation(np.dtype(np.float16)).kernel).text.startswith("#include <cuda_fp16.h>")
