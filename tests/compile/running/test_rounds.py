"""Loops in machine code: the results of Python's loops, in every form of carried, stacked and fixed values."""

import signal
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.compile.running import rounds as running
from minigrad.compile.running.rounds import NativeLoop
from minigrad.core.primitive import P

X = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
ROWS = np.linspace(0.5, 1.5, 42).reshape(7, 2, 3)


@pytest.fixture
def runs(monkeypatch):
    """The numbers of rounds of the loops that ran in machine code."""
    found, real = [], NativeLoop.run

    def noted(self, *given):
        found.append(real(self, *given))
        return found[-1]

    monkeypatch.setattr(NativeLoop, "run", noted)
    return found


def alike(f, *arrays):
    """Compare a jitted function with eager mode, twice, because the second run uses the loop again."""
    jitted = mg.jit(f)
    for scale in (1.0, 0.5):
        given = [mg.asarray(a * scale) if a.dtype.kind == "f" else mg.asarray(a) for a in arrays]
        wanted = f(*given)
        found = jitted(*given)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for ours, theirs in pairs:
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(ours.numpy_copy(), theirs.numpy_copy(), rtol=1e-12, atol=1e-12)


def inner(x):
    return mg.fori_loop(0, 6, lambda j, t: t * 0.9 + j, x)


LOOPS = {
    "one carry": lambda x, rows: mg.fori_loop(0, 7, lambda i, s: mg.tanh(s) + i * 0.1, x),
    "exchanged carries": lambda x, rows: mg.scan(lambda c, r: ((c[1], c[0] * 0.5 + r), c[0]), (x, x), rows),
    "a carry that stays": lambda x, rows: mg.scan(lambda c, r: ((c[0], c[1] + r), c[1]), (x, x * 2), rows),
    "a carry that is one of the rows": lambda x, rows: mg.scan(lambda c, r: (r, c * r), x, rows),
    "a fixed value": lambda x, rows: mg.scan(lambda c, r: (c * x + r, x), x * 1.0, rows),
    "the same result twice": lambda x, rows: mg.scan(lambda c, r: ((n := c + r), (n, n * 2, n)), x, rows),
    "in reverse": lambda x, rows: mg.scan(lambda c, r: (c * 0.5 + r, c), x, rows, reverse=True),
    "without rows": lambda x, rows: mg.scan(lambda c, _: (c * 0.5, c), x, length=9),
    "sums in between": lambda x, rows: mg.scan(lambda c, r: (mg.softmax(c + r) - c.mean(), c.sum()), x, rows),
    "transposed rows": lambda x, rows: mg.scan(lambda c, r: (c + r.T, c), x, mg.permute_dims(rows, (0, 2, 1))),
    "a condition": lambda x, rows: mg.while_loop(lambda s: (s * s).sum() < 40.0, lambda s: s * 1.3 + 0.1, x),
    "a condition that never holds": lambda x, rows: mg.while_loop(lambda s: s.sum() > 1e9, lambda s: s + 1, x),
    "a condition and a bound": lambda x, rows: mg.while_loop(lambda s: s.sum() < 1e9, lambda s: s + 1, x, max_steps=5),
    "integers": lambda x, rows: mg.fori_loop(0, 9, lambda i, s: (s[0] + i, s[1] * 0.9 + s[0]), (0, x)),
    "products": lambda x, rows: mg.scan(lambda c, r: (mg.tanh(c @ r.T @ r + x), c.T @ r), x, rows),
    "a stack of products": lambda x, rows: mg.fori_loop(0, 5, lambda i, s: mg.tanh(s @ rows.mT @ rows) + x, rows),
    "a product with a vector": lambda x, rows: mg.scan(lambda c, r: (mg.tanh(r.T @ (r @ c)), c), x[0], rows),
    "rolled rows": lambda x, rows: mg.scan(lambda c, r: (mg.roll(c, 1, 1) + mg.roll(r, (1, -1), (0, 1)), c), x, rows),
    "joined rows": lambda x, rows: mg.scan(lambda c, r: (mg.concat([c[1:], r[:1] * 2.0]), c.sum()), x, rows),
    "an inner loop": lambda x, rows: mg.fori_loop(0, 5, lambda i, s: inner(s), x),
}


def of_tree(result):
    """The tensors of a result, as a tuple."""
    if isinstance(result, mg.Tensor):
        return (result,)
    return tuple(t for each in result for t in of_tree(each))


@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_python_loops(runs, name):
    alike(lambda x, rows: of_tree(LOOPS[name](x, rows)), X, ROWS)
    assert runs


@pytest.mark.parametrize("name", [n for n in LOOPS if n not in ("a condition", "a condition that never holds")])
def test_gradients_are_those_of_python_loops(runs, name):
    def total(x, rows):
        squares = sum((t.astype("float64") ** 2).sum() for t in of_tree(LOOPS[name](x, rows)))
        return squares + rows.sum()  # which some loops do not use

    alike(mg.grad(total, argnums=(0, 1)), X, ROWS)
    assert len(runs) >= 2, "the loop and its gradient"


@pytest.mark.slow
@given(rounds=st.integers(0, 12), shape=st.sampled_from([(), (1,), (3,), (0,), (2, 5)]), bound=st.integers(0, 12))
def test_any_number_of_rounds(rounds, shape, bound):
    x = np.linspace(0.1, 1.0, int(np.prod(shape))).reshape(shape)
    alike(lambda x: mg.fori_loop(0, rounds, lambda i, s: s * 0.5 + i, x), x)
    alike(lambda x: mg.while_loop(lambda s: s[0] < bound, lambda s: (s[0] + 1, s[1] + s[0]), (0, x))[1], x)


@pytest.mark.parametrize("name", LOOPS)
def test_rounds_in_many_calls_are_those_in_one(runs, name, monkeypatch):
    """A call may begin with an odd round, which reads the other copy of each carried value."""
    monkeypatch.setattr(running, "MOST_ROUNDS", 1)
    alike(lambda x, rows: of_tree(LOOPS[name](x, rows)), X, ROWS)
    assert runs


def test_inputs_and_results_are_not_changed_by_later_runs():
    f = mg.jit(lambda x, rows: mg.scan(lambda c, r: (c + r, c), x, rows))
    x, rows = mg.asarray(X), mg.asarray(ROWS)
    first = [t.numpy_copy() for t in f(x, rows)]
    kept = f(x, rows)
    f(x * 3, rows * 2)
    assert all(np.array_equal(t.numpy_copy(), before) for t, before in zip(kept, first))
    assert x.tolist() == X.tolist() and rows.tolist() == ROWS.tolist()


@pytest.mark.parametrize("reason", ["a library call", "random numbers", "NumPy's kernels", "a profile"])
def test_other_loops_run_in_python(runs, reason, monkeypatch):
    bodies = {
        "a library call": lambda i, s: mg.sort(s) * 0.5,
        "random numbers": lambda i, s: s + mg.random.uniform(s.shape),
    }
    body = bodies.get(reason, lambda i, s: s * 0.5 + i)
    if reason == "NumPy's kernels":
        monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    f = mg.jit(lambda x: mg.fori_loop(0, 6, body, x))
    with mg.profile() if reason == "a profile" else nullcontext():
        f(mg.asarray(X))
    assert not runs


@pytest.mark.slow
@pytest.mark.parametrize("body", [lambda s: s * 0.5, lambda s: mg.tanh(s @ s.T @ s)], ids=["kernels", "products"])
def test_an_endless_loop_can_be_interrupted(body):
    f = mg.jit(lambda x: mg.while_loop(lambda s: s.sum() < 1e9, body, x))
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        pytest.skip("there are no timers here")

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            f(mg.asarray(X))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert mg.jit(lambda x: mg.fori_loop(0, 9, lambda i, s: s + 1, x))(mg.zeros(2)).tolist() == [9.0, 9.0]


def test_threads_run_the_same_loop_at_the_same_time():
    f = mg.jit(lambda x: mg.fori_loop(0, 20_000, lambda i, s: s * 0.999 + x, x))
    inputs = [mg.asarray(X * (n + 1)) for n in range(4)]
    wanted, wrong = [f(x).tolist() for x in inputs], []

    def work(n):
        wrong.extend(n for _ in range(5) if f(inputs[n]).tolist() != wanted[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_loop_belongs_to_its_body():
    f = mg.jit(lambda x: mg.fori_loop(0, 50, lambda i, s: s * 0.5, x))
    f(mg.asarray(X))
    (node,) = [node for node in f.program(mg.asarray(X)).final.nodes if node.op is P.scan]
    assert [len(idle) for idle in node.attrs["body"].loops.values()] == [1]
