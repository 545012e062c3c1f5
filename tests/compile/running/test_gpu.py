"""Programs on a real GPU: tests that the emulation cannot replace.  Skipped without a GPU."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen.nvrtc import compile_for_gpu
from minigrad.compile.running.gpu import cuda_target
from minigrad.compile.running.program import Program
from tests.compile.codegen.lowered import check_roughly, lowered_samples
from tests.compile.codegen.samples import LOOPS, check, column_sums, expected, softmax, total
from tests.compile.partitions import fed, graph_of
from tests.compile.programs import random_program
from tests.compile.running.cuda_models import MODELS, gpt

pytestmark = pytest.mark.gpu
SAMPLES = LOOPS | {
    "row_in_memory": lambda: softmax(3, 20_000),
    "many_rows_of_a_warp": lambda: softmax(5000, 64),
    "many_rows_of_a_block": lambda: softmax(700, 1000),
    "sums_in_registers": lambda: column_sums(3000, 1500, 100),
    "many_chunks": lambda: total(1_000_000, 5000),
}


@pytest.fixture(scope="module")
def gpu():
    return mg.as_device("cuda")


def runner(gpu, kernel):
    """A kernel as a function of NumPy arrays."""
    made = compile_for_gpu([kernel], gpu.cupy)[0]
    names = [p.name for p in kernel.parameters]
    integer = np.int32 if made.source.integer == "int" else np.int64

    def run(arrays, low, high):
        there = [gpu.cupy.asarray(a) for a in arrays]
        blocks = made.source.blocks(high - low, gpu.gpu.attributes["MultiProcessorCount"])
        given = [
            gpu.cupy.empty(blocks * p.size, p.dtype) if p in made.source.rows else there[names.index(p.name)]
            for p in made.source.arguments
        ]
        made.function((blocks,), (made.source.threads,), [*given, integer(low), integer(high)])
        for here, result in zip(arrays, there):
            here[...] = result.get()

    return run


@pytest.mark.parametrize("name", SAMPLES)
def test_kernels(gpu, name):
    sample = SAMPLES[name]()
    sample.inexact = {p.name: 64 for p in sample.kernel.parameters if p.dtype.kind == "f"}
    check(sample, runner(gpu, sample.kernel), reference=expected(sample))


def test_kernels_that_the_compiler_lowers(gpu):
    for sample in lowered_samples(range(3000, 3030)):
        check_roughly(sample, runner(gpu, sample.kernel), expected(sample))


@pytest.mark.parametrize("name", MODELS)
def test_models_train_as_they_do_eagerly_on_the_cpu(gpu, name):
    mg.random.seed(0)
    wanted = [step().item() for step in [MODELS[name]("cpu")] for _ in range(20)]
    mg.random.seed(0)
    step = mg.jit(MODELS[name]("cuda"))
    losses = [step() for _ in range(20)]
    np.testing.assert_allclose([loss.item() for loss in losses], wanted, rtol=2e-3)
    (frame,) = step.program()._idle
    assert frame.replay.recorded and frame.replay.refused == ""


def test_a_larger_model_gives_what_eager_mode_gives(gpu):
    size = {"layers": 2, "width": 128, "heads": 4, "batch": 4, "length": 64, "vocabulary": 65}
    losses = {}
    for jit in (False, True):
        mg.random.seed(0)
        step = gpt("cuda", **size)
        step = mg.jit(step) if jit else step
        losses[jit] = [step().item() for _ in range(10)]
    np.testing.assert_allclose(losses[True], losses[False], rtol=2e-3)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(gpu, seed):
    with mg.device("cuda"):
        outputs, _alive = random_program(seed, 30)
    graph = graph_of(*outputs)
    results = Program(graph, target=cuda_target(gpu))(fed(graph))
    for output, result in zip(outputs, results):
        rough = 4e-3 if output.dtype == np.float16 else 5e-4
        np.testing.assert_allclose(result.get(), output.numpy_copy(), rtol=rough, atol=rough)


@pytest.mark.parametrize("n", [100_003, 1 << 20])
@pytest.mark.parametrize("f", [mg.sum, mg.max, lambda x: mg.tanh(x * 2) + x[::-1], lambda x: x[1:] * x[:-1]])
def test_elementwise_kernels_on_aligned_and_unaligned_memory(gpu, f, n):
    values = np.random.default_rng(0).standard_normal(n + 1).astype(np.float32)
    for start in (0, 1):
        x = mg.asarray(values, device="cuda")[start : start + n]
        wanted = f(mg.asarray(values[start : start + n].astype(np.float64))).numpy_copy()
        np.testing.assert_allclose(mg.jit(f)(x).numpy_copy(), wanted, rtol=1e-3, atol=1e-3)


def test_results_that_are_still_held_are_not_overwritten(gpu):
    f = mg.jit(lambda x: (mg.exp(x) @ x, mg.concat([x, x]), mg.random.uniform((64,), device="cuda")))
    x = mg.random.normal((64, 64), device="cuda")
    kept = [f(x) for _ in range(10)]
    values = [[t.numpy_copy() for t in result] for result in kept]
    f(x)
    for result, before in zip(kept, values):
        assert all(np.array_equal(t.numpy_copy(), value) for t, value in zip(result, before))
    assert len({value[2].tobytes() for value in values}) == 10


def as_torch(tensor):
    return pytest.importorskip("torch").from_dlpack(tensor)


HELD = {
    "tensor": lambda t: t, "array": lambda t: t.data, "part of an array": lambda t: t.data[1:], "view": lambda t: t.T,
    "pointer": lambda t: t.data.data, "array of torch": as_torch,
}


@pytest.mark.parametrize("form", HELD)
def test_results_that_are_held_in_any_form_are_not_written_again(gpu, form):
    f = mg.jit(lambda x: mg.softmax(mg.tanh(x @ x) @ x) + 1)
    held = HELD[form](f(mg.random.normal((64, 64), device="cuda")))
    read = {"tensor": lambda: held.numpy_copy(), "view": lambda: held.numpy_copy()}
    read |= {"array of torch": lambda: held.cpu().numpy()}
    read |= {"pointer": lambda: gpu.cupy.ndarray((64, 64), np.float32, held).get()}
    before = read.get(form, lambda: held.get())()
    for _ in range(5):
        f(mg.random.normal((64, 64), device="cuda"))
    gpu.synchronize()
    assert np.array_equal(read.get(form, lambda: held.get())(), before)


def test_an_index_out_of_bounds_is_found_in_replayed_runs(gpu):
    f = mg.jit(lambda x, i: mg.cross_entropy(mg.tanh(x @ x), i))
    x = mg.random.normal((8, 8), device="cuda")
    index = mg.asarray(np.arange(8), device="cuda")
    for _ in range(4):
        f(x, index).item()
    index[3] = 8
    with pytest.raises(mg.IndexingError, match="index 8 is out of range for a dimension of size 8"):
        f(x, index).item()


def test_threads_run_a_program_at_the_same_time(gpu):
    f = mg.jit(lambda x: mg.softmax(mg.tanh(x @ x) @ x))
    inputs = [mg.random.normal((32, 32), device="cuda") for _ in range(4)]
    wanted = [mg.softmax(mg.tanh(x @ x) @ x).numpy_copy() for x in inputs]
    wrong = []

    def work(number):
        for _ in range(20):
            found = f(inputs[number]).numpy_copy()
            if not np.allclose(found, wanted[number], rtol=1e-4, atol=1e-5):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
