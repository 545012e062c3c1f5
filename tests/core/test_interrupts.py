"""Ctrl-C anywhere: later calls give the results of a fresh run.

The tests try opcodes that are spread over each case; MINIGRAD_EXAMPLES=100000 tries all of them.
"""

import gc
import signal
import sys
import weakref
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.core import clock
from minigrad.core.mode import CURRENT, current_mode
from minigrad.devices import threads
from minigrad.support import context
from minigrad.support.interrupts import all_or_none
from tests.conftest import EXAMPLES
from tests.core.interrupted_programs import CASES
from tests.core.interrupting import faults, points

TRIED = EXAMPLES or 25


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of callbacks that were interrupted
@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_leaves_the_old_state_or_the_new_one(name):
    count = points(CASES[name])
    stride = max(1, count // TRIED)
    assert count > 5
    assert not faults(CASES[name], range(1 + len(name) % stride, count + 1, stride))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["InPlace", "Jitted", "Switches"])
def test_the_last_opcodes_of_a_call_are_where_it_writes(name):
    count = points(CASES[name])
    assert not faults(CASES[name], range(max(1, count - 40), count + 1))


# Faults that were found, each in its own test ------------------------------------------------------------------------


def interrupted(target, name, monkeypatch, after=True):
    """The next call of `target.name` is interrupted, before or after it does its work."""
    real = getattr(target, name)

    def stopped(*args, **kwargs):
        monkeypatch.setattr(target, name, real)
        if after:
            real(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(target, name, stopped)


def test_a_write_that_was_done_is_noted_although_it_was_interrupted(monkeypatch):
    x, w = mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0], requires_grad=True)
    y = (w * x).sum()
    interrupted(sys.modules["minigrad.ops.write"], "mark_written", monkeypatch, after=False)
    with pytest.raises(KeyboardInterrupt):
        x += 1.0
    with pytest.raises(mg.MutationError, match="changed in place"):
        y.backward()


def test_the_clock_never_holds_an_entry_that_is_not_complete(monkeypatch):
    x = mg.asarray([1.0, 2.0])

    def stopped(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(clock.weakref, "ref", stopped)
        clock.mark_written(x.data)
    x += 1.0
    assert x.tolist() == [2.0, 3.0]


def test_a_frame_that_was_interrupted_between_addresses_writes_all_of_them_the_next_time(monkeypatch):
    from minigrad.compile.running.frame import Frame

    f = mg.jit(lambda x, y: (x + y, x * 2.0))
    a, b, y = mg.asarray([1.0, 2.0]), mg.asarray([5.0, 6.0]), mg.asarray([10.0, 20.0])
    f(a, y)
    interrupted(Frame, "_write_address", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        f(b, y)
    assert f(a, y)[0].tolist() == [11.0, 22.0]
    interrupted(Frame, "_write_address", monkeypatch, after=False)
    with pytest.raises(KeyboardInterrupt):
        f(b, y)
    assert f(b, y)[0].tolist() == [15.0, 26.0]


# No array is kept after an error ------------------------------------------------------------------------------------


def test_idle_frame_keeps_no_array_of_the_caller_after_an_error():
    @mg.jit
    def f(x, i):
        return mg.sort(x)[i] * 2.0

    good, bad = mg.asarray([0, 1]), mg.asarray([0, 70_000])
    f(mg.arange(50_000, dtype=mg.float32), good)  # the trace keeps its arguments
    x = mg.arange(50_000, dtype=mg.float32)
    array = weakref.ref(x._data)
    with pytest.raises(mg.IndexingError):
        f(x, bad)
    index = weakref.ref(bad._data)
    del x, bad
    gc.collect()
    assert array() is None
    assert index() is None


@pytest.mark.slow
def test_pool_has_its_memory_back_after_an_interrupt(monkeypatch):
    from minigrad.compile.running.frame import Frame

    f = mg.jit(lambda x: (mg.sort(x) + 1.0)[::-1])
    f(mg.arange(50_000, dtype=mg.float32))
    x = mg.arange(50_000, dtype=mg.float32)
    pool = x.device.pool
    array = weakref.ref(x._data)
    gc.collect()
    lent = len(pool.lent)
    interrupted(Frame, "_run_steps", monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        f(x)
    gc.collect()
    assert len(pool.lent) == lent
    del x
    gc.collect()
    assert array() is None


def test_a_helping_thread_is_waited_for_when_the_caller_is_interrupted(monkeypatch):
    from threading import Event, current_thread, main_thread

    monkeypatch.setattr(threads.THREADS, "count", 2)
    begun, done = Event(), []

    def work(start, stop):
        if current_thread() is main_thread():
            assert begun.wait(10)
            raise KeyboardInterrupt
        begun.set()
        threads.sleep(0.05)
        done.append(start)

    with pytest.raises(KeyboardInterrupt):
        threads.in_blocks(work, 8, 1)
    assert len(done) == 1  # the block that it had begun with, and no other


# Notes, and modes ---------------------------------------------------------------------------------------------------


def test_a_step_that_is_stopped_says_how_far_it_came():
    parameters = [mg.asarray([1.0], requires_grad=True) for _ in range(3)]
    for p in parameters:
        p.grad = mg.asarray([1.0])
    parameters[2].grad = mg.asarray([np.inf])
    parameters[2].data[:] = np.inf
    optimizer = mg.optim.SGD(parameters, lr=0.5)
    with pytest.raises(mg.NanError) as error, mg.debug_nans():
        optimizer.step()
    assert "SGD.step() was stopped: 2 of 3 parameters updated" in error.value.__notes__
    assert [p.item() for p in parameters] == [0.5, 0.5, np.inf]


def test_a_program_that_is_stopped_while_it_writes_says_so(monkeypatch):
    from minigrad.compile.running.frame import Frame

    @mg.jit
    def f(x):
        x += 1.0

    x = mg.asarray([1.0, 2.0])
    f(x)
    interrupted(Frame, "_run_steps", monkeypatch)
    with pytest.raises(KeyboardInterrupt) as error:
        f(x)
    assert "wrote tensors of shapes (2,) in place" in error.value.__notes__[0]


def test_mode_is_restored_when_its_block_is_freed():
    mode = current_mode()
    block = mg.no_grad()
    block.__enter__()
    assert not mg.is_grad_enabled()
    del block
    assert current_mode() is mode


def test_a_block_that_is_dropped_late_changes_no_later_mode():
    mode = current_mode()
    block = mg.no_grad()
    block.__enter__()
    with mg.enable_grad(), mg.scope("later"):
        inside = current_mode()
        del block
        assert current_mode() is inside
    CURRENT.set(mode)


def test_outer_block_restores_the_mode_that_an_inner_one_left():
    mode = current_mode()
    inner = mg.no_grad()
    with mg.enable_grad():
        inner.__enter__()
    assert current_mode() is mode


def test_a_cell_that_ends_in_an_error_leaves_the_modes_as_they_were():
    mode, watched = current_mode(), context.Cells()
    watched.end(SimpleNamespace(success=False))  # of the cell that imported minigrad
    for success in (True, False):
        watched.begin()
        block = mg.no_grad()
        block.__enter__()
        watched.end(SimpleNamespace(success=success))
        assert mg.is_grad_enabled() is not success
        CURRENT.set(mode)


def test_the_hooks_are_registered_where_cells_run(monkeypatch):
    registered = []
    events = SimpleNamespace(register=lambda name, function: registered.append(name))
    monkeypatch.setattr(context, "notebook_shell", lambda: SimpleNamespace(events=events))
    context.watch_cells()
    assert registered == ["pre_run_cell", "post_run_cell"]


def test_writes_are_made_again_where_they_are_stopped_and_not_where_they_are_refused():
    calls = []

    def writes():
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        all_or_none(writes)
    assert len(calls) == 2

    def refused():
        calls.append(None)
        raise mg.ShapeError("no")

    with pytest.raises(mg.ShapeError):
        all_or_none(refused)
    assert len(calls) == 3


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that interrupt")
def test_signals_do_not_change_the_results_of_training():
    """Interrupts come from a timer, at any time like Ctrl-C, and not at chosen opcodes."""
    from tests.core.interrupting import probe

    w = mg.asarray([1.0, 2.0], requires_grad=True)
    optimizer = mg.optim.Adam([w], lr=0.0)
    f = mg.jit(lambda x: (w * x).sum())

    def train():  # it may also end: Python discards an exception that is raised in the callback of a weak reference
        end = monotonic() + 0.5
        while monotonic() < end:
            optimizer.zero_grad()
            f(mg.asarray([1.0, 3.0])).backward()
            with mg.no_grad(), mg.scope("step"):
                optimizer.step()

    def stop(number, frame):
        raise KeyboardInterrupt

    optimizer.zero_grad()
    f(mg.asarray([1.0, 3.0])).backward()  # the program is already compiled
    before, mode, fresh = signal.signal(signal.SIGALRM, stop), current_mode(), probe()
    stopped = 0
    try:
        for i in range(25):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002 + i * 3.7e-5)
                train()
            except KeyboardInterrupt:
                stopped += 1
            gc.collect() if i % 10 == 9 else None
            assert current_mode() is mode
            assert probe() == fresh
            assert f(mg.asarray([1.0, 3.0])).item() == 7.0
        assert stopped > 8
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
