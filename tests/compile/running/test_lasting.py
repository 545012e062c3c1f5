"""What programs compute from lasting values alone: when it is computed again, and that results are never stale."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running import targets
from minigrad.ops.interop import NUMPY_TAKES_WISHES

pytestmark = pytest.mark.skipif(targets.HOST.on_backend(None).chunking.lanes == 0, reason="libraries compute products")
X = np.random.default_rng(0).normal(size=(4, 16)).astype("float32")
W = np.random.default_rng(1).normal(size=(256, 16)).astype("float32")


class Model:
    """A product with weights, and how often a program prepared them."""

    def __init__(self, weights):
        self.weights, self.x = weights, mg.asarray(X)
        self.f = mg.jit(lambda x: x @ self.weights.T)
        with mg.no_grad():
            self.f(self.x)
        self.prepared = 0
        program = next(iter(self.f.recordings.values()))[0].traced.program
        self.frame = program._idle[0]
        self.frame.early.append(self.note)

    def note(self, starts):
        self.prepared += 1

    def check(self, times):
        with mg.no_grad():
            found = self.f(self.x).numpy()
        np.testing.assert_allclose(found, X @ self.weights.numpy().T, rtol=1e-4, atol=1e-4)
        assert self.prepared == times


def test_it_is_kept_between_calls():
    model = Model(mg.asarray(W))
    for _ in range(3):
        model.check(times=0)
    model.x = mg.asarray(X)
    model.check(times=0)


def test_writes_to_the_weights_are_seen():
    model = Model(mg.asarray(W))
    model.weights[0] = 5.0
    model.check(times=1)
    model.weights *= 2
    model.check(times=2)
    model.weights[1:3].reshape((-1,))[0] = 7.0  # through a view
    model.check(times=3)
    model.check(times=3)
    mg.zeros(3)[0] = 1  # something else
    other = mg.zeros(3)
    other += 1
    model.check(times=3)


def test_writes_of_jitted_functions_and_optimizers_are_seen():
    model = Model(mg.asarray(W))

    @mg.jit
    def grow():
        model.weights.__iadd__(1.0)

    grow()
    model.check(times=1)
    w = model.weights
    w.requires_grad = True
    optimizer = mg.optim.SGD([w], lr=0.1)
    for times in (2, 3):
        (w * w).sum().backward()
        optimizer.step()
        w.requires_grad = False
        model.check(times)
        w.requires_grad = True


def test_other_weights_are_seen():
    model = Model(mg.asarray(W))
    model.weights = mg.asarray(W + 1)
    np.testing.assert_allclose(model.f(model.x).numpy(), X @ (W + 1).T, rtol=1e-4, atol=1e-4)


def test_other_memory_of_the_same_tensor_is_seen():
    model = Model(mg.asarray(W))
    model.weights._data = W + 1
    model.check(times=1)


def test_results_are_new_in_each_call():
    f, x = mg.jit(lambda x: (x @ W_T, W_T * 2)), mg.asarray(X)
    first, second = f(x)[1], f(x)[1]
    np.testing.assert_array_equal(second.numpy(), W_T.numpy() * 2)
    first += 1
    np.testing.assert_array_equal(f(x)[1].numpy(), W_T.numpy() * 2)


def test_memory_of_others_is_read_in_each_call():
    array = W.copy()
    model = Model(mg.asarray(array, copy=False))
    for times in (1, 2):
        array += 1
        model.check(times)


def test_memory_that_is_shared_later():
    model = Model(mg.asarray(W))
    array = np.from_dlpack(model.weights)
    if NUMPY_TAKES_WISHES:  # NumPy 2.0 cannot mark memory as read-only, and gets a copy
        np.add(model.weights._data, 1, out=model.weights._data)  # as PyTorch does, which ignores that it is read-only
        assert array[0, 0] == W[0, 0] + 1
        model.check(times=1)
    array = W.copy()
    received = Model(mg.from_dlpack(array, copy=False))
    array += 1
    received.check(times=1)


def test_results_do_not_depend_on_threads():
    model = Model(mg.asarray(W))
    inputs = [mg.asarray(X * n) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: model.f(x).numpy(), inputs * 4))
    for x, y in zip(inputs * 4, found):
        np.testing.assert_array_equal(y, model.f(x).numpy())


def test_a_failed_preparation_is_repeated():
    model = Model(mg.asarray(W))

    def fail(starts):
        raise KeyboardInterrupt

    model.frame.early.insert(0, fail)
    model.weights += 1
    with pytest.raises(KeyboardInterrupt):
        model.check(times=1)
    model.frame.early.remove(fail)
    model.check(times=1)


def test_positions_are_checked_before_they_are_used():
    positions, table = mg.asarray([0, 5]), mg.asarray(np.arange(4.0))
    f = mg.jit(lambda x: x @ (table[positions] * mg.ones((16, 2))))
    with pytest.raises(mg.IndexingError, match="index 5 is out of range"):
        f(mg.asarray(X))
    assert f.program(mg.asarray(X)).plan.early == 0


def test_saved_programs_keep_it_too(tmp_path):
    model = Model(mg.asarray(W))
    model.f.save(tmp_path / "f.program", model.x)
    program = mg.load_program(tmp_path / "f.program")
    for _ in range(2):
        np.testing.assert_allclose(program(model.x).numpy(), X @ W.T, rtol=1e-4, atol=1e-4)
    frame = program.program._idle[0]
    assert frame.early and frame.kept_at >= 0


def test_the_kept_memory_is_not_shared():
    f, x = mg.jit(lambda x: mg.tanh(mg.tanh(x @ W_T) @ W_2) @ W_T), mg.asarray(X)
    expected = np.tanh(np.tanh(X @ W_T.numpy()) @ W_2.numpy()) @ W_T.numpy()
    for _ in range(3):
        np.testing.assert_allclose(f(x).numpy(), expected, rtol=1e-4, atol=1e-4)
    plan = f.program(x).plan
    kept = {i for (number,) in plan.turns[: plan.early] for i in plan.uses(plan.steps[number])[1]}
    slots, others = [
        {b.number for i, b in enumerate(plan.buffers) if b.kind == "slot" and (i in kept) == inside}
        for inside in (True, False)
    ]
    assert plan.early >= 1 and slots and not slots & others


W_T, W_2 = mg.asarray(W.T.copy()), mg.asarray(np.random.default_rng(2).normal(size=(256, 16)).astype("float32"))
