"""Large elementwise operations in blocks, by several threads: the results never depend on the blocks or threads."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.core import emit as emitting
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from minigrad.devices import registry, threads
from minigrad.devices.compiled import SLOW
from minigrad.devices.threads import THREADS, elementwise_in_blocks, in_blocks
from minigrad.support.errors import ConversionError
from tests.samples import SAMPLES


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Three threads, and blocks of a few elements."""
    before = mg.devices.num_threads()
    mg.devices.set_num_threads(3)
    monkeypatch.setattr(threads, "BLOCK", 64)
    monkeypatch.setattr(registry, "WORTH_SHARING", 0)
    yield
    mg.devices.set_num_threads(before)


CASES = [
    ((1000,), (1000,)),
    ((10, 101), (10, 101)),
    ((10, 101), (101,)),
    ((10, 101), (10, 1)),
    ((10, 1), (1, 101)),
    ((1, 7, 50), (50,)),
    ((1, 1, 500), (1, 1, 1)),
    ((3, 1, 50), (7, 1)),
    ((2, 500), ()),
    ((1, 1), (1, 1)),
    ((1000, 1), (1000, 1)),
]


LAYOUTS = ["plain", "transposed", "reversed"]


def operands(shapes, layout):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s) for s in shapes)
    if layout == "transposed":
        return [np.ascontiguousarray(a.T).T for a in (x, y)]
    return [a[(slice(None, None, -1),) * a.ndim] for a in (x, y)] if layout == "reversed" else [x, y]


def in_blocks_of(function, values, shape):
    out = np.full(shape, np.nan)
    elementwise_in_blocks(function, values, {}, out)
    return out


@pytest.mark.parametrize("shapes", CASES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_give_the_results_of_the_whole_array(shapes, layout):
    x, y = operands(shapes, layout)
    shape = np.broadcast_shapes(*shapes)
    np.testing.assert_array_equal(in_blocks_of(np.subtract, [x, y], shape), x - y)
    np.testing.assert_array_equal(in_blocks_of(np.multiply, [x, 2.5], x.shape), x * 2.5)
    # NumPy computes arctan2 with vector instructions or with the C library, depending on the strides of its innermost
    # loop. A part of an array may have other strides than the whole, and the two methods round differently.
    np.testing.assert_array_max_ulp(in_blocks_of(np.arctan2, [x, y], shape), np.arctan2(x, y), maxulp=4)


@pytest.mark.parametrize("shapes", CASES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_do_not_depend_on_the_number_of_threads(shapes, layout):
    values, shape = operands(shapes, layout), np.broadcast_shapes(*shapes)
    by_three = in_blocks_of(np.arctan2, values, shape)
    mg.devices.set_num_threads(1)
    np.testing.assert_array_equal(in_blocks_of(np.arctan2, values, shape), by_three)


@pytest.mark.parametrize("name", [op.name for op in P if op.kind == "elementwise"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise_primitives_give_the_same_in_blocks(name, monkeypatch):
    monkeypatch.setattr(threads, "BLOCK", 2)
    for sample in SAMPLES[name]:
        inputs = [mg.asarray(x) if isinstance(x, np.ndarray) else x for x in sample.inputs]
        whole = emit(P[name], *inputs, **sample.attrs)
        with monkeypatch.context() as small:
            small.setattr(emitting, "LARGE", 1)
            blocks = emit(P[name], *inputs, **sample.attrs)
        assert (blocks.dtype, blocks.shape) == (whole.dtype, whole.shape)
        if name in SLOW and whole.dtype == mg.float64:  # where they are large, machine code computes them
            np.testing.assert_array_max_ulp(blocks.numpy(), whole.numpy(), 4)
        else:
            np.testing.assert_array_equal(blocks.numpy(), whole.numpy(), err_msg=str(sample))


def test_large_operations_are_right_in_every_thread():
    seen = set()

    def slow_tanh(x, out=None):
        seen.add(threading.current_thread().name)
        barrier.wait(10)
        return np.tanh(x, out=out)

    barrier = threading.Barrier(3)  # waits until three threads are working
    x = np.linspace(-3, 3, 192)
    out = np.empty(192)
    elementwise_in_blocks(slow_tanh, [x], {}, out)
    np.testing.assert_array_equal(out, np.tanh(x))
    assert len(seen) == 3 and any(name.startswith("minigrad") for name in seen)


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_an_error_in_any_thread_reaches_the_caller(where):
    main = threading.current_thread()
    failed = threading.Event()

    def work(start, stop):
        if (threading.current_thread() is main) == (where == "caller"):
            failed.set()
            raise KeyError("on purpose")
        failed.wait(10)

    with pytest.raises(KeyError, match="on purpose"):
        in_blocks(work, 100, 1)
    done = []
    in_blocks(lambda start, stop: done.append(start), 5, 1)
    assert sorted(done) == [0, 1, 2, 3, 4], "and the threads go on working"


def test_blocks_cover_everything_once():
    for size, step in [(0, 3), (1, 3), (3, 3), (10, 3), (9, 1)]:
        hits = np.zeros(size, int)

        def work(start, stop, hits=hits):
            hits[start:stop] += 1

        in_blocks(work, size, step)
        assert (hits == 1).all()


def test_the_callers_errstate_holds_in_the_threads():
    x = np.zeros(1000)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        elementwise_in_blocks(np.log, [x], {}, np.empty(1000))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux places threads on cores")
def test_helpers_keep_off_the_core_of_the_caller(monkeypatch):
    core = min(os.sched_getaffinity(0))
    monkeypatch.setattr(threads, "current_core", lambda: core)
    mg.devices.set_num_threads(3)
    met = threading.Barrier(3)
    for _ in range(2):  # the first call starts the helpers
        in_blocks(lambda start, stop: met.wait(10), 3, 1)
    others = os.sched_getaffinity(0) - {core} or {core}
    assert [os.sched_getaffinity(thread) for thread in THREADS.apart.threads] == [others] * 2


@pytest.mark.slow
def test_callers_in_many_threads_at_once():
    x = mg.asarray(np.linspace(0.1, 2, 300_000))
    expected = np.log(x.numpy())
    wrong = []

    def work():
        for _ in range(5):
            if not np.array_equal(mg.log(x).numpy(), expected):
                wrong.append(1)

    callers = [threading.Thread(target=work) for _ in range(6)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_starts_its_own_threads():
    x = mg.ones(300_000)
    mg.exp(x)
    assert THREADS.helpers is not None
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if abs(mg.exp(x)[0].item() - np.e) < 1e-6 and THREADS.helpers is not None else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_one_thread_is_that_of_the_caller():
    mg.devices.set_num_threads(1)
    names = set()
    in_blocks(lambda start, stop: names.add(threading.current_thread().name), 100, 1)
    assert names == {threading.current_thread().name}


def test_the_number_of_threads(monkeypatch):
    with pytest.raises(ConversionError, match="at least one thread is needed, not 0"):
        mg.devices.set_num_threads(0)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert threads.Threads().count == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert 1 <= threads.Threads().count <= threads.MOST
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= threads.Threads().count <= threads.MOST
    for cores, count in ((3, 3), (100, threads.MOST)):
        mine = {0: range(cores)}  # by process: 0 is this one
        monkeypatch.setattr(threads.os, "sched_getaffinity", mine.__getitem__, raising=False)
        assert threads.Threads().count == count


@pytest.mark.slow
def test_caller_works_alone_at_the_end_of_the_program():
    code = (
        "import atexit, threading, numpy as np, minigrad as mg\n"
        "from minigrad.devices import threads\n"
        "mg.devices.set_num_threads(2)\n"
        "threads.in_blocks(lambda a, b: None, 4, 1)\n"
        "class Last:\n"
        "    def __del__(self):\n"
        "        done = []; threads.in_blocks(lambda a, b: done.append(a), 4, 1); print(sorted(done))\n"
        "atexit.register(Last().__del__)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "[0, 1, 2, 3]" in result.stdout, result.stderr
