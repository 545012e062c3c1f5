"""Attention in blocks: the same numbers as a float64 reference, little memory, the same for any number of threads."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running.plan import Blocked


def reference(q, k, v, g, causal):
    """The result of attention in float64, and the gradients of q, k and v for the gradient g of the result."""
    q, k, v, g = [x.astype(np.float64) for x in (q, k, v, g)]
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.arange(q.shape[-2])[:, None] < np.arange(k.shape[-2]), -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    of_weights = g @ v.swapaxes(-1, -2)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True)) * scale
    turned = [x.swapaxes(-1, -2) for x in (of_scores, weights)]
    return weights @ v, of_scores @ k, turned[0] @ q, turned[1] @ g


def arrays(queries, keys, dtype="f4"):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in (queries, keys, keys, queries)]


def with_gradient(causal):
    def function(q, k, v, g):
        attention = lambda q, k, v: mg.scaled_dot_product_attention(q, k, v, causal=causal)  # noqa: E731
        out, pull = mg.vjp(attention, q, k, v)
        return out, *pull(g)

    return function


def blocked(function, *given):
    return [step for step in mg.jit(function).program(*given).plan.steps if isinstance(step, Blocked)]


CASES = [
    ((2, 2, 300, 8), (2, 2, 300, 8)),
    ((260, 16), (260, 16)),
    ((3, 400, 4), (3, 300, 4)),  # more queries than keys
    ((3, 300, 4), (3, 400, 4)),
    ((1, 2, 300, 8), (2, 1, 300, 8)),  # the stacks broadcast
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), CASES)
def test_results_and_gradients(queries, keys, causal):
    given = arrays(queries, keys)
    if queries[0] == 1:  # only the result: its gradient has a different shape than the queries
        function, given = (lambda q, k, v: [mg.scaled_dot_product_attention(q, k, v, causal=causal)]), given[:3]
        expected = reference(*given, given[0], causal)[:1]
    else:
        function, expected = with_gradient(causal), reference(*given, causal)
    tensors = [mg.asarray(each) for each in given]
    assert blocked(function, *tensors)
    for ours, theirs in zip(mg.jit(function)(*tensors), expected):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=2e-6 * abs(theirs).max())


def softmax_gradient(weights, of_weights):
    """The gradient of the scores, for that of their softmax."""
    return weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))


def early(q, k, v, x):
    """A kernel of the level of the gradient's block reads a product of this block."""
    weights = mg.softmax(q @ k.mT)
    g = weights @ v * 2
    return mg.tanh(weights.mT @ g), softmax_gradient(weights, g @ v.mT) @ k


def shared(q, k, v, x):
    """The gradients of two attentions with the same values."""
    attention = mg.scaled_dot_product_attention

    def loss(q, k, v):
        first = attention(q, k, v, causal=True)
        return ((attention(first, k, v) + attention(q, first, v, causal=True)) ** 2).sum()

    return mg.grad(loss, (0, 1, 2))(q, k, v)


def overwritten_before(q, k, v, x):
    """The block is so late that an operand of its first product is overwritten by then."""
    scores = q @ k.mT
    q *= 0.5
    return mg.softmax(scores + mg.tanh(mg.tanh(x @ x) @ x).sum() * mg.arange(300)) @ v


def overwritten_between(q, k, v, x):
    """The gradient would multiply the scores again, from a changed operand."""
    weights = mg.softmax(q @ k.mT)
    q *= 0.5
    g = weights @ v * 2
    return weights.mT @ g, softmax_gradient(weights, g @ v.mT) @ v


def overwritten_number(q, k, v, x):
    """The gradient would compute the weights again, from a changed number."""
    weights = mg.softmax(q @ k.mT * x[0, 0])
    x *= 0.5
    g = weights @ v * 2
    return weights.mT @ g, softmax_gradient(weights, g @ v.mT) @ v


def close(function, given):
    """Compare a program with eager mode, also what it writes into its inputs."""
    runs = []
    for run in (mg.jit(function), function):
        tensors = [mg.asarray(each) for each in given]
        found = run(*tensors)
        runs.append([*(found if isinstance(found, (tuple, list)) else [found]), *tensors])
    for ours, theirs in zip(*runs):
        wanted = theirs.numpy()
        np.testing.assert_allclose(ours.numpy(), wanted, rtol=0, atol=4e-6 * abs(wanted).max())


@pytest.mark.parametrize(
    "function", [early, shared, overwritten_before, overwritten_between, overwritten_number], ids=lambda f: f.__name__
)
def test_values_are_complete_where_other_steps_read_them(function):
    *given, _ = arrays((2, 300, 8), (2, 300, 8))
    close(function, [*given, given[0][0, :4, :4]])


def random_program(seed):
    """A function with softmaxes of products, their gradients, other products with them, and writes in place."""
    draw = np.random.default_rng(seed)
    steps = [(int(draw.integers(6)), draw.integers(100, size=3)) for _ in range(draw.integers(4, 10))]

    def function(*inputs):
        values, weights = list(inputs), []
        for kind, picks in steps:
            x, y, z = [values[pick % len(values)] for pick in picks]
            if kind == 0 or not weights:
                weights.append(mg.softmax(x @ y.mT / 3.0))
            w = weights[picks[0] % len(weights)]
            if kind in (1, 2):
                values.append((w if kind == 1 else w.mT) @ y)
            elif kind == 3:
                values.append(mg.tanh(x + y * 0.5))
            elif kind == 4:
                weights.append(softmax_gradient(w, mg.tanh(y @ z.mT)))
            elif kind == 5:
                written = inputs[picks[1] % len(inputs)]
                written *= 0.5
        return values[-1], values[-2], w @ values[0]

    return function


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 9, 21, 28, 35, 41, 43, 46])
def test_random_programs(seed):
    close(random_program(seed), arrays((2, 300, 8), (2, 300, 8))[:3])


@pytest.mark.parametrize("causal", [False, True])
def test_float64(causal):
    given = arrays((2, 300, 8), (2, 300, 8), "f8")
    for ours, theirs in zip(mg.jit(with_gradient(causal))(*map(mg.asarray, given)), reference(*given, causal)):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=4e-15 * abs(theirs).max())


@pytest.mark.parametrize("causal", [False, True])
def test_the_number_of_threads_does_not_change_the_results(causal):
    given = [mg.asarray(each) for each in arrays((2, 2, 300, 8), (2, 2, 300, 8))]
    before, results = mg.devices.num_threads(), []
    try:
        for count in (1, 2, 3):
            mg.devices.set_num_threads(count)
            results.append([each.numpy().tobytes() for each in mg.jit(with_gradient(causal))(*given)])
    finally:
        mg.devices.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_memory_grows_with_the_length_only():
    def peak(length):
        given = [mg.asarray(each) for each in arrays((4, length, 8), (4, length, 8))]
        loss = lambda q, k, v: (mg.scaled_dot_product_attention(q, k, v, causal=True) ** 2).sum()  # noqa: E731
        return mg.jit(mg.grad(loss, (0, 1, 2))).cost(*given[:3]).memory.total

    assert peak(2048) < 2.2 * peak(1024) < 4 * 4 * 1024 * 1024


def test_a_run_with_other_inputs_and_the_numpy_backend(monkeypatch):
    given = arrays((2, 300, 8), (2, 300, 8))
    f = mg.jit(with_gradient(True))
    f(*map(mg.asarray, given))
    other = [2 * each for each in given]
    expected = reference(*other, True)
    monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    for function in (f, mg.jit(with_gradient(True))):
        for ours, theirs in zip(function(*map(mg.asarray, other)), expected):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=4e-6 * abs(theirs).max())


def test_a_saved_program_has_plain_steps(tmp_path):
    given = [mg.asarray(each) for each in arrays((2, 300, 8), (2, 300, 8))[:3]]
    f = mg.jit(lambda q, k, v: mg.scaled_dot_product_attention(q, k, v, causal=True))
    f.save(tmp_path / "attention.mgp", *given)
    loaded = mg.load_program(tmp_path / "attention.mgp")
    np.testing.assert_allclose(loaded(*given).numpy(), f(*given).numpy(), atol=1e-6)
