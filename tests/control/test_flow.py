"""`cond`, `while_loop`, `fori_loop` and `scan` in eager mode: the values and gradients of Python's own branches and
loops, in every transformation, and errors with the same message in eager mode and while tracing."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from tests.numerical import check_gradients

X = np.array([0.5, -1.5, 0.75])
ROWS = np.array([[0.5, -0.25, 0.75], [0.25, 0.5, -0.5]])


# Values ---------------------------------------------------------------------------------------------------------------


def test_cond_runs_only_the_chosen_branch():
    ran = []

    def branch(name):
        return lambda *operands: (ran.append(name), operands)[1]

    x = mg.ones(2)
    assert mg.cond(x.sum() > 0, branch("yes"), branch("no"), x)[0].tolist() == [1, 1]
    mg.cond(x.sum() < 0, branch("yes"), branch("no"))
    mg.cond(np.bool_(True), branch("numpy"), branch("no"))
    assert ran == ["yes", "no", "numpy"]


def test_while_loop_ends_with_its_condition_or_at_max_steps():
    def double(limit, **options):
        return mg.while_loop(lambda x: x < limit, lambda x: x * 2, 1, **options).item()

    assert [double(1), double(2), double(100)] == [1, 2, 128]
    assert [double(100, max_steps=n) for n in (0, 1, 3, 50)] == [1, 2, 8, 128]


def test_fori_loop_counts_as_range_does():
    def collect(low, high):
        return mg.fori_loop(low, high, lambda i, s: s * 10 + i, 0).item()

    assert [collect(1, 4), collect(3, 3), collect(5, 2), collect(-2, 1)] == [123, 0, 0, -210]
    assert collect(mg.asarray(1), 4) == collect(np.int64(1), mg.asarray(4)) == 123


@pytest.mark.slow
def test_a_long_loop_needs_no_memory_for_its_numbers():
    tracemalloc.start()
    try:
        assert mg.fori_loop(0, 3_000, lambda i, s: s + i, 0).item() == 2999 * 1500
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
    nodes = mg.trace(lambda x: mg.fori_loop(0, 10**8, lambda i, s: s + i, x), mg.zeros(2)).nodes
    assert 10**8 not in [size for node in nodes for size in node.shape]


@settings(max_examples=20)
@given(st.integers(0, 5), st.booleans(), st.booleans())
def test_scan_equals_a_python_loop(length, reverse, with_xs):
    xs = np.arange(float(length * 2)).reshape(length, 2)
    def step(carry, x):
        return (carry * 0.5 + (1.0 if x is None else x), {"y": carry * 2})

    carry, ys = mg.scan(
        step, mg.ones(2, dtype="float64"), mg.asarray(xs) if with_xs else None, length=length, reverse=reverse
    )
    value, found = np.ones(2), [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        value, result = step(value, xs[i] if with_xs else None)
        found[i] = result["y"]
    np.testing.assert_allclose(carry.numpy_copy(), value)
    assert ys["y"].shape == (length, 2) and ys["y"].dtype == mg.float64
    if length:
        np.testing.assert_allclose(ys["y"].numpy_copy(), found)


def test_containers_and_other_objects_are_returned_unchanged():
    init = {"a": (mg.ones(2), "name", None), "b": [1, True]}
    carry, y = mg.scan(lambda c, x: (c, (x, None)), init, (mg.arange(3), mg.ones((3, 2))))
    assert carry["a"][1:] == ("name", None) and carry["b"][0].item() == 1
    assert [t.shape for t in y[0]] == [(3,), (3, 2)] and y[1] is None


def test_body_that_changes_the_type_of_the_carry_is_refused_even_for_zero_rounds():
    for length in (2, 0):
        with pytest.raises(mg.ShapeError, match=r"scan: the body changes tensor 0 of the carry"):
            mg.scan(lambda c, x: (mg.stack([c, c]), x), mg.ones(3), mg.ones(length))


def test_loops_of_zero_rounds_keep_shapes_and_dtypes():
    state = mg.random.default_generator.get_state() if hasattr(mg.random, "default_generator") else None
    carry, ys = mg.scan(lambda c, x: (c, (x[None] > 0, mg.random.uniform((2,)), c)), mg.ones(3), mg.ones((0, 4)))
    assert carry.tolist() == [1, 1, 1]
    assert [(t.shape, t.dtype) for t in ys] == [((0, 1, 4), mg.bool), ((0, 2), mg.float32), ((0, 3), mg.float32)]
    assert state is None or mg.random.default_generator.get_state() == state


def test_body_may_change_its_carry_in_place_without_changing_the_inputs():
    init, xs = mg.ones(2), mg.ones((3, 2))

    def step(h, x):
        h += x
        x *= 0
        return h, x

    assert mg.scan(step, init, xs)[0].tolist() == [4, 4]
    assert mg.while_loop(lambda h: h.sum() < 9, lambda h: h.__iadd__(1), init).tolist() == [5, 5]
    assert init.tolist() == [1, 1] and xs.sum().item() == 6


def test_random_numbers_differ_between_rounds():
    mg.random.seed(1)
    expected = [mg.random.uniform(2).tolist() for _ in range(3)]
    mg.random.seed(1)
    assert mg.scan(lambda c, _: (c, mg.random.uniform(2)), 0, length=3)[1].tolist() == expected


# Gradients and transformations ----------------------------------------------------------------------------------------


def choice(x, rows):
    return mg.cond(x.sum() > 5, lambda x: x * 2, lambda x: mg.sin(x) * rows[0], x)


def loop(x, rows):
    return mg.while_loop(lambda h: (h * h).sum() < 20, lambda h: h * 1.5 + rows.sum(0), x)


def recurrence(x, rows):
    return mg.scan(lambda h, row: (mg.tanh(h * row), h), x, rows, reverse=True)


def counted(x, rows):
    return mg.fori_loop(0, 3, lambda i, h: h * rows[1] + i, x)


CASES = [choice, loop, recurrence, counted]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_gradients_to_second_order(case):
    check_gradients(case, X, ROWS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_forward_mode_agrees_with_reverse_mode(case):
    x, rows, v = mg.asarray(X), mg.asarray(ROWS), mg.asarray(X[::-1].copy())
    def total(x):
        return sum([(t * t).sum() for t in mg.control.flow.Values(case(x, rows)).tensors])

    forwards = mg.jvp(total, (x,), (v,))[1].item()
    np.testing.assert_allclose(forwards, (mg.grad(total)(x) * v).sum().item())
    np.testing.assert_allclose(mg.hvp(total, (x,), (v,)).numpy_copy(), (mg.hessian(total)(x) @ v).numpy_copy())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_batched_control_flow_equals_a_loop_with_gradients(case):
    many = mg.asarray(np.array([X, X + 2, X - 1, X * 3]))
    rows = mg.asarray(ROWS)
    def first(x):
        return mg.control.flow.Values(case(x, rows)).tensors[-1]

    gradient = mg.grad(lambda x: (first(x) ** 2).sum())
    for function in (first, gradient):
        expected = np.stack([function(x).numpy_copy() for x in many])
        np.testing.assert_allclose(mg.vmap(function)(many).numpy_copy(), expected)
    def total(m):
        return (mg.vmap(first)(m) ** 2).sum()

    np.testing.assert_allclose(mg.grad(total)(many).numpy_copy(), np.stack([gradient(x).numpy_copy() for x in many]))


def test_examples_that_have_ended_wait_for_the_others():
    def f(n):
        return mg.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, 1))

    rounds, powers = mg.vmap(f)(mg.asarray([3, 0, 5]))
    assert rounds.tolist() == [3, 0, 5] and powers.tolist() == [8, 1, 32]
    nested = mg.vmap(mg.vmap(f))(mg.asarray([[1, 2], [0, 4]]))
    assert nested[1].tolist() == [[2, 4], [1, 16]]
    assert mg.vmap(lambda n: mg.fori_loop(0, n, lambda i, s: s + i, 0))(mg.asarray([1, 4])).tolist() == [0, 6]


def test_a_branch_that_only_some_examples_take_may_change_nothing_outside():
    def f(x):
        buffer = x * 0

        def change():
            buffer[...] = x
            return x

        return mg.cond(x > 0, change, lambda: buffer)

    with pytest.raises(mg.MutationError, match="differs between examples, and a branch changes") as raised:
        mg.vmap(f)(mg.asarray([1.0, -1.0]))
    assert "buffer[...] = x" in str(raised.value)
    outside = mg.zeros(2)
    with pytest.raises(mg.MutationError, match="differs between examples"):
        mg.vmap(lambda x: mg.cond(x > 0, lambda: outside.__setitem__(0, 1.0), lambda: None))(mg.asarray([1.0, -1.0]))
    assert outside.tolist() == [0, 0]


def test_a_branch_may_change_what_it_made():
    def branch(x):
        made = mg.zeros(2)
        made[0] = x
        return made

    result = mg.vmap(lambda x: mg.cond(x > 0, lambda: branch(x), lambda: mg.ones(2)))(mg.asarray([3.0, -1.0]))
    assert result.tolist() == [[3, 0], [1, 1]]


def test_cond_inside_a_checkpoint_and_checkpoint_inside_a_cond():
    x = mg.asarray(X, requires_grad=True)
    inside = mg.checkpoint(lambda x: mg.cond(x[0] > 0, lambda: mg.sin(x), lambda: x))(x)
    outside = mg.cond(x[0] > 0, mg.checkpoint(mg.sin), lambda x: x, x)
    for result in (inside, outside):
        np.testing.assert_allclose(mg.gradients(result.sum(), x).numpy_copy(), np.cos(X))


# Errors: the same in every mode -------------------------------------------------------------------------------------


def x():
    return mg.asarray(X)


MISTAKES = {
    "cond: the predicate is one bool, and this tensor has shape (3,)": lambda: mg.cond(x() > 0, abs, abs, x()),
    "cond: the predicate is a bool, and this tensor is float64": lambda: mg.cond(x()[0], abs, abs, x()),
    "cond: the predicate is a bool, not a float": lambda: mg.cond(1.0, abs, abs, x()),
    "cond: true_fun is a function, not an int": lambda: mg.cond(x()[0] > 0, 1, abs),
    "while_loop: cond_fun: the predicate is one bool": lambda: mg.while_loop(lambda v: v < 3, lambda v: v, x()),
    "while_loop: cond_fun: the predicate is a bool, and": lambda: mg.while_loop(lambda v: v.sum(), lambda v: v, x()),
    "while_loop: cond_fun: the predicate is a bool, not None":
        lambda: mg.while_loop(lambda v: None, lambda v: v, x()),
    "while_loop: body_fun is a function": lambda: mg.while_loop(lambda v: v, None, x()),
    "while_loop: max_steps is an integer, 0 or more, not -1":
        lambda: mg.while_loop(lambda v: v.sum() < 3, lambda v: v, x(), max_steps=-1),
    "while_loop: the body changes tensor 0 of the carry from float64 (3,) to float32 (3,)":
        lambda: mg.while_loop(lambda v: v.sum() < 3, lambda v: v.astype("float32"), x()),
    "while_loop: the body returns other containers": lambda: mg.while_loop(lambda v: v.sum() < 3, lambda v: [v], x()),
    "scan: the body changes tensor 1 of the carry from float64 (3,) to float64 ()":
        lambda: mg.scan(lambda c, _: ((c[0], c[1].sum()), None), (x(), x()), length=2),
    "scan: f(carry, x) returns a pair": lambda: mg.scan(lambda c, _: c, x(), length=2),
    "scan: xs and length give different numbers of rounds": lambda: mg.scan(lambda c, v: (c, v), 0.0, x(), length=2),
    "scan: xs and length give different numbers": lambda: mg.scan(lambda c, v: (c, v), 0.0, (x(), x()[1:])),
    "scan: without xs, length gives the number of rounds": lambda: mg.scan(lambda c, v: (c, v), 0.0),
    "scan: length is an integer, 0 or more, not -1": lambda: mg.scan(lambda c, v: (c, v), 0.0, length=-1),
    "scan: a tensor in xs has no dimension to loop over": lambda: mg.scan(lambda c, v: (c, v), 0.0, 3.0),
    "scan: f is a function": lambda: mg.scan(3, 0.0, x()),
    "fori_loop: upper is an int64, and 1180591620717411303424 does not fit":
        lambda: mg.fori_loop(0, 2**70, lambda i, c: c, 0),
    "fori_loop: lower is an integer": lambda: mg.fori_loop(0.5, 3, lambda i, c: c, 0),
    "fori_loop: upper is one integer, and this tensor has shape (2,)":
        lambda: mg.fori_loop(0, mg.asarray([1, 2]), lambda i, c: c, 0),
    "fori_loop: body_fun is a function": lambda: mg.fori_loop(0, 3, None, 0),
    "fori_loop: the body changes tensor 0 of the carry from int64 () to float32 ()":
        lambda: mg.fori_loop(0, 3, lambda i, c: c * 0.5, 0),
}


@pytest.mark.parametrize("mode", ["eager", "graph", "jit"])
@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_get_the_same_error_in_every_mode(message, mode):
    mistake = MISTAKES[message]
    with pytest.raises(mg.MinigradError) as raised:
        if mode == "graph":
            with mg.graph():
                mistake()
        else:
            (mg.jit(mistake) if mode == "jit" else mistake)()
    assert str(raised.value).startswith(message)
    assert "test_flow.py" in str(raised.value)


DIFFERENT = {
    "containers": (lambda v: (v, v), lambda v: v),
    "names": (lambda v: {"a": v}, lambda v: {"b": v}),
    "constants": (lambda v: (v, None), lambda v: (v, "text")),
    "shapes": (lambda v: v, lambda v: v.sum()),
    "dtypes": (lambda v: v, lambda v: v.astype("float32")),
}


@pytest.mark.parametrize("what", DIFFERENT)
@pytest.mark.parametrize("mode", ["vmap", "graph", "jit"])
def test_branches_that_return_different_types_are_refused_where_both_are_traced(what, mode):
    def f(v):
        return mg.cond(v.sum() > 0, *DIFFERENT[what], v)

    with pytest.raises((mg.ShapeError, mg.DtypeError), match="cond: the branches return different") as raised:
        if mode == "graph":
            with mg.graph():
                f(x())
        else:
            mg.jit(f)(x()) if mode == "jit" else mg.vmap(f)(mg.asarray(np.array([X, -X])))
    assert "the same as true_fun" in str(raised.value) and "false_fun: " in str(raised.value)


def test_results_that_differ_from_round_to_round_are_refused():
    turns = itertools.count()
    with pytest.raises(mg.ShapeError, match="from round to round"):
        mg.scan(lambda c, v: (c, v if next(turns) else (v, v)), 0.0, x())
