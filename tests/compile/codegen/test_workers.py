"""Workers in machine code: each piece is computed once, whatever happens around the pool."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen import workers
from minigrad.compile.codegen.workers import POSIX, WINDOWS, WORKERS, Pool, System, Workers, share_function, this_system
from minigrad.compile.running import frame
from minigrad.devices import threads

on_cores = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux places threads on cores")
PIECE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # a function of Python as machine code


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    """Three threads, which share every kernel."""
    before = mg.devices.num_threads()
    mg.devices.set_num_threads(3)
    monkeypatch.setattr(frame, "WORTH_SHARING_BYTES", 0)
    WORKERS.ready()
    yield
    mg.devices.set_num_threads(before)


def share(work, count):
    """Call `work` of 1, 2 ... count as the pieces of a job."""
    job = WORKERS.job(PIECE(work), range(1, count + 1))
    share_function()(ctypes.addressof(job))


def test_every_piece_is_computed_once():
    for count in (1, 2, 3, 50):
        done = []
        share(done.append, count)
        assert sorted(done) == [*range(1, count + 1)]


def test_workers_compute_pieces():
    barrier, names = threading.Barrier(3), set()

    def work(number):
        barrier.wait(10)  # until three threads are at work
        names.add(threading.current_thread().name)

    share(work, 3)
    assert {"minigrad_worker_0", "minigrad_worker_1"} < names


def test_a_job_runs_again():
    done = []
    piece = PIECE(done.append)
    job = WORKERS.job(piece, range(1, 5))
    for _ in range(3):
        share_function()(ctypes.addressof(job))
    assert sorted(done) == sorted([1, 2, 3, 4] * 3)


def test_caller_computes_alone_while_another_job_is_on_offer():
    barrier, finished, inner = threading.Barrier(3), threading.Event(), []

    def outer(number):
        barrier.wait(10)  # until three threads are at work: a thread without a piece would withdraw the offer
        if number > 1:
            assert finished.wait(10)
            return
        here = threading.current_thread()
        share(lambda k: inner.append((k, threading.current_thread() is here)), 4)
        finished.set()

    share(outer, 3)
    assert sorted(inner) == [(1, True), (2, True), (3, True), (4, True)]


def test_callers_in_many_threads():
    done = [[] for _ in range(8)]

    def call(mine):
        for _ in range(50):
            share(mine.append, 5)

    callers = [threading.Thread(target=call, args=(mine,)) for mine in done]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    assert [len(mine) for mine in done] == [250] * 8


def test_caller_waits_until_workers_have_finished():
    main, begun, done = threading.current_thread(), threading.Event(), []

    def work(number):
        if threading.current_thread() is main:
            assert begun.wait(10)
            return
        begun.set()
        time.sleep(0.05)
        done.append(number)

    share(work, 3)
    assert done


def test_number_of_threads_may_change_between_runs():
    x = np.linspace(-1, 1, 4097)
    f = mg.jit(lambda x: mg.sqrt(x * x) * 2)
    for count in (3, 1, 2, 5, 1, 3):
        mg.devices.set_num_threads(count)
        np.testing.assert_array_equal(f(mg.asarray(x)).numpy_copy(), np.abs(x) * 2)
        assert WORKERS.count == count - 1
        assert bool(WORKERS.place.value) == (count > 1)


def test_workers_end_when_the_number_of_threads_changes():
    mine = WORKERS.threads[-2:]
    mg.devices.set_num_threads(1)
    WORKERS.ready()
    for thread in mine:
        thread.join(10)
    assert not any(thread.is_alive() for thread in mine)


def test_results_do_not_depend_on_the_number_of_threads():
    x = np.random.default_rng(0).normal(size=(300, 70)).astype(np.float32)
    functions = [lambda x: mg.softmax(x, -1) + 1, lambda x: x.sum(0), lambda x: x.sum(), lambda x: x.T + x.mean()]
    results = []
    for count in (1, 2, 3):
        mg.devices.set_num_threads(count)
        results.append([mg.jit(f)(mg.asarray(x)).numpy_copy() for f in functions])
    for other in results[1:]:
        for ours, theirs in zip(results[0], other):
            np.testing.assert_array_equal(ours, theirs)


def test_loops_in_machine_code_share_their_kernels():
    x = mg.asarray(np.linspace(-1, 1, 3000))
    f = mg.jit(lambda x: mg.fori_loop(0, 30, lambda i, s: mg.tanh(s) * 1.5, x))
    expected = x.numpy_copy()
    for _ in range(30):
        expected = np.tanh(expected) * 1.5
    np.testing.assert_allclose(f(x).numpy_copy(), expected, rtol=1e-12)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_starts_its_own_workers():
    x, f = mg.ones(4000), mg.jit(lambda x: x * 2 + 1)
    f(x)
    child = os.fork()
    if child == 0:
        try:
            alone = not WORKERS.place.value
            right = f(x)[-1].item() == 3.0
            os._exit(0 if alone and right and len(WORKERS.threads) == 2 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


BEGIN = """
import threading, minigrad as mg
from minigrad.compile.running import frame
from minigrad.devices import threads
frame.WORTH_SHARING_BYTES = 0
mg.devices.set_num_threads(4)
f, x = mg.jit(lambda x: mg.tanh(x) * 2), mg.ones(40_000)
f(x)
"""
ENDINGS = {
    "waiting workers": "",
    "a thread that still computes": """
def compute():
    while True:
        f(x)
threading.Thread(target=compute, daemon=True).start()
""",
    "a run after the workers have ended": """
import atexit, minigrad.compile.codegen.workers as workers
atexit.unregister(workers.WORKERS.close)
atexit.register(lambda: print("last", f(x)[0].item()))
atexit.register(workers.WORKERS.close)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDINGS)
def test_process_ends_in_peace(how):
    code = BEGIN + ENDINGS[how] + 'print("end")\n'
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("end") and ("last" in result.stdout) == ("run after" in how)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an interrupt in a callback is lost
def test_interrupts_leave_the_pool_free():
    x, f = mg.ones(100_000), mg.jit(lambda x: mg.tanh(x) * 2)
    f(x)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(20):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                for _ in range(100):
                    f(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not WORKERS.pools[-1].table[0], "no job is left on offer"
    test_workers_compute_pieces()


def test_kernels_of_numpy_use_the_threads_of_python(monkeypatch):
    shared = []
    real = frame.in_blocks
    monkeypatch.setattr(frame, "in_blocks", lambda *given: (shared.append(given[1]), real(*given)))
    monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    x = np.linspace(-1, 1, 500)
    np.testing.assert_allclose(mg.jit(lambda x: mg.exp(x) + 1)(mg.asarray(x)).numpy_copy(), np.exp(x) + 1)
    assert shared == [6]


def test_a_system_without_more_threads_has_fewer_workers(monkeypatch):
    started = []

    class Limited(threading.Thread):
        def start(self):
            if len(started) == 1:
                raise RuntimeError("can't start new thread")
            started.append(self)
            super().start()

    monkeypatch.setattr(workers, "Thread", Limited)
    few = Workers()
    few.ready()
    assert (few.count, len(few.threads)) == (2, 1)
    few.close()
    assert not started[0].is_alive() and not few.place.value


def test_functions_are_chosen_by_the_system(monkeypatch):
    for platform, expected in (("linux", POSIX), ("darwin", POSIX), ("win32", WINDOWS)):
        monkeypatch.setattr(sys, "platform", platform)
        assert this_system() is expected


def test_a_pool_has_the_functions_of_its_system():
    """A stand-in for another system: other names, and functions that note their calls."""
    kind, calls = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p), []

    def note(name):
        return kind(lambda one, other: calls.append(name) or 0)

    made = {name: note(name) for name in WINDOWS._fields[1:]}

    class StandIn(System):
        def address(self, name):
            field = WINDOWS._fields[WINDOWS.index(name)]
            return ctypes.cast(made[field], ctypes.c_void_p).value

    pool = Pool(StandIn(*WINDOWS))
    assert calls == ["new_mutex", "new_condition", "new_condition"]
    pool.end()
    assert calls[3:] == ["lock", "unlock", "wake_all"] and pool.table[1] == 1


@on_cores
def test_workers_keep_off_the_core_of_the_caller(monkeypatch):
    core = min(os.sched_getaffinity(0))
    monkeypatch.setattr(threads, "current_core", lambda: core)
    others = os.sched_getaffinity(0) - {core} or {core}
    for count in (3, 2):
        mg.devices.set_num_threads(count)
        WORKERS.ready()
        living = [thread.native_id for thread in WORKERS.threads][1 - count :]
        assert [os.sched_getaffinity(thread) for thread in living] == [others] * (count - 1)


@on_cores
def test_workers_go_where_they_may_if_nothing_tells_the_core(monkeypatch):
    monkeypatch.setattr(threads, "current_core", threads._unknown)
    mg.devices.set_num_threads(4)
    WORKERS.ready()
    done = []
    share(done.append, 20)
    assert sorted(done) == [*range(1, 21)]
    assert os.sched_getaffinity(WORKERS.threads[-1].native_id) == os.sched_getaffinity(0)
