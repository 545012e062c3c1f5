"""The memory pool: memory is never reused while an array or a view still refers to it."""

import gc
import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import minigrad as mg
from minigrad.core.clock import buffer_of
from minigrad.devices import pool as pools
from minigrad.devices.pool import FINEST, Pool, size_class

FLOAT = np.dtype("float32")
SHAPE = (100, 100)


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_when_its_array_is_gone():
    pool = Pool()
    first = pool.take(SHAPE, FLOAT)
    place = address(first)
    assert address(pool.take((10,), FLOAT)) != place
    second = pool.take(SHAPE, FLOAT)
    assert address(second) != place, "the first is still there"
    del first
    again = pool.take((10_000,), np.dtype("int32"))
    assert address(again) == place, "the same bytes in a different shape and dtype"
    assert pool.idle == 40


def test_arrays_of_about_one_size_share_memory():
    """Otherwise a function that is called with 150 lengths would keep one piece of memory for each length."""
    pool = Pool()
    for length in range(100_000, 103_000, 20):
        array = pool.take((length,), FLOAT)
        array[:] = length
        assert array.shape == (length,) and array[-1] == length
        del array
    assert pool.idle < 3 * 103_000 * 4, "one piece for each of two classes"


@given(st.integers(1, 1 << 40))
def test_a_size_class_is_a_little_larger_at_most(size):
    chosen = size_class(size)
    assert size <= chosen <= size + size // FINEST and size_class(chosen) == chosen


ALIASES = {
    "the array": lambda a: a,
    "a view": lambda a: a[1:],
    "a view of a view": lambda a: a[1:][2:].T,
    "another dtype": lambda a: a.view(np.uint8),
    "a reshaped one": lambda a: a.reshape(-1),
    "a diagonal": lambda a: np.lib.stride_tricks.as_strided(a, (10,), (404,)),
    "a broadcast one": lambda a: np.broadcast_to(a[0], (5, 100)),
    "an element's view": lambda a: a[3, 4, ...],
    "a memoryview": lambda a: memoryview(a)[5:],
    "an array over a memoryview": lambda a: np.asarray(memoryview(a)),
    "an array over its bytes": lambda a: np.frombuffer(a, np.uint8),
    "a DLPack import": lambda a: np.from_dlpack(a),
    "a DLPack capsule": lambda a: a.__dlpack__(),
    "a subclass": lambda a: a.view(np.recarray),
    "an iterator": lambda a: a.flat,
    "a ctypes pointer": lambda a: a.ctypes.data_as(np.ctypeslib.ctypes.c_void_p),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ALIASES)
def test_memory_is_kept_while_any_view_refers_to_it(what):
    pool = Pool()
    array = pool.take(SHAPE, FLOAT)
    place = address(array)
    alias = ALIASES[what](array)
    del array
    gc.collect()
    others = [pool.take(SHAPE, FLOAT) for _ in range(3)]
    assert place not in [address(o) for o in others]
    del alias
    assert address(pool.take(SHAPE, FLOAT)) == place


def test_tensors_views_and_exports_keep_large_results():
    x = mg.ones(300_000)
    y = x + 1
    alias, exported = y[5:].numpy(), np.from_dlpack(y)
    place = address(y.data)
    del y
    more = [x * 3 for _ in range(3)]
    assert alias[0] == 2 and exported[0] == 2
    del alias
    more += [x * 3 for _ in range(3)]
    assert exported.min() == 2 and place not in [address(m.data) for m in more]


def test_a_backward_pass_keeps_what_it_needs():
    w = mg.full((200_000,), 0.5, requires_grad=True)
    h = w
    for _ in range(6):
        h = mg.tanh(h) * 1.5
    h.sum().backward()
    x = np.full(200_000, 0.5)
    gradient = np.ones_like(x)
    for _ in range(6):
        x = np.tanh(x)
        gradient *= 1.5 * (1 - x * x)
        x = x * 1.5
    np.testing.assert_allclose(w.grad.numpy(), gradient, rtol=1e-5)


def test_the_clock_sees_the_array_and_not_the_memory_below():
    array = Pool().take(SHAPE, FLOAT)
    assert buffer_of(array) is array
    assert buffer_of(array[1:][1:].reshape(-1)) is array


def test_pool_keeps_at_most_its_limit():
    pool = Pool(limit=100_000)
    held = [pool.take(SHAPE, FLOAT) for _ in range(4)]  # 40,000 bytes each
    assert pool.idle == 0
    del held
    assert 0 < pool.idle <= 100_000
    large = pool.take((100_000,), FLOAT)
    del large
    assert pool.idle <= 100_000
    small = pool.take((5,), FLOAT)
    del small
    assert pool.idle <= 100_000


def test_unused_sizes_make_room():
    pool = Pool(limit=100_000)
    old = [pool.take(SHAPE, FLOAT), pool.take(SHAPE, FLOAT)]
    del old
    new = pool.take((20_000,), FLOAT)
    place = address(new)
    del new
    assert pool.idle == size_class(80_000)
    assert address(pool.take((20_000,), FLOAT)) == place


def test_shrink_gives_back_only_idle_memory():
    pool = Pool()
    used, idle = pool.take(SHAPE, FLOAT), pool.take(SHAPE, FLOAT)
    used[...] = 7
    del idle
    assert pool.idle == size_class(40_000)
    pool.shrink()
    assert pool.idle == 0 and (used == 7).all()
    place = address(used)
    del used
    assert address(pool.take(SHAPE, FLOAT)) == place, "what was in use then comes back later"


def test_idle_memory_is_given_back_when_memory_runs_out(monkeypatch):
    pool = Pool()
    pool.take(SHAPE, FLOAT)
    assert pool.idle
    real = pools.Memory

    def full(size, dtype):
        if pool.idle:
            raise MemoryError
        return real(size, dtype)

    monkeypatch.setattr(pools, "Memory", full)
    assert pool.take((7, 7), FLOAT).shape == (7, 7)
    monkeypatch.setattr(pools, "Memory", lambda size, dtype: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        pool.take((8, 8), FLOAT)


def test_empty_and_0d_results():
    pool = Pool()
    assert pool.take((0, 3), FLOAT).shape == (0, 3)
    assert pool.take((), FLOAT).shape == ()


def test_threads_never_share_memory():
    pool = Pool()
    wrong = []

    def work(number):
        for _ in range(300):
            array = pool.take((50,), np.dtype("int64"))
            view = array[10:20]
            array[...] = number
            del array
            other = pool.take((50,), np.dtype("int64"))
            other[...] = -1
            if not (view == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.slow
def test_arrays_that_die_in_the_collector_while_the_pool_is_at_work():
    pool = Pool()

    class Cycle:
        pass

    before = gc.get_threshold()
    gc.set_threshold(1)  # the garbage collector runs at any moment
    try:
        for _ in range(200):
            cycle = Cycle()
            cycle.self, cycle.array = cycle, pool.take((30,), FLOAT)
            del cycle
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert not pool.lent
