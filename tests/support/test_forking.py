"""Forked processes, while other threads of the parent compile, trace, compute or load."""

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from minigrad.support.collector import no_collection
from minigrad.support.forking import new_lock

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # these tests fork on purpose
]

BUSY = """
import os, signal, sys, threading, time, warnings
import minigrad as mg
warnings.simplefilter("ignore")

loader = mg.data.DataLoader(mg.data.TensorDataset(mg.arange(32)), batch_size=4, workers=2)
used = threading.Event()

def compute(number):
    x = mg.ones(5, requires_grad=True)
    y = mg.jit(lambda x: mg.tanh(x * number + mg.random.normal(5)).sum())(x)
    y.backward()
    assert x.grad.shape == (5,)

def keep_busy():
    for number in range(10_000):
        compute(number)
        used.set()

threading.Thread(target=keep_busy, daemon=True).start()
assert len(list(loader)) == 8
used.wait()
for attempt in range(4):
    time.sleep(0.017 * attempt)
    child = os.fork()
    if not child:
        signal.alarm(60)
        compute(100_000 + attempt)
        assert len(list(loader)) == 8
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the child did not end by itself"
print("right")
os._exit(0)
"""


def test_a_process_that_is_forked_while_another_thread_compiles(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MINIGRAD_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", BUSY], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout == "right\n", done.stderr


def in_a_fork(work):
    """The result of some work in a forked process, a number from 0 to 255."""
    child = os.fork()
    if not child:
        signal.alarm(60)
        code = 255
        try:
            code = int(work())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def while_held(context, work):
    """The result of some work while another thread is inside a context manager."""
    inside, done = threading.Event(), threading.Event()

    def hold():
        with context:
            inside.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    try:
        return work()
    finally:
        done.set()
        holder.join()


def test_a_lock_that_another_thread_holds_is_free_in_the_child():
    lock = new_lock()
    assert while_held(lock, lambda: in_a_fork(lambda: lock.acquire(timeout=1))) == 1
    assert lock.acquire(blocking=False)
    lock.release()


def test_a_lock_of_the_thread_that_forks_is_still_its_own():
    lock = new_lock()

    def release():
        lock.release()
        return 7

    with lock:
        assert in_a_fork(release) == 7


def test_collector_runs_in_the_child_although_another_thread_paused_it():
    assert while_held(no_collection(), lambda: in_a_fork(gc.isenabled)) == 1
    with no_collection():
        assert in_a_fork(gc.isenabled) == 0
    assert gc.isenabled()
