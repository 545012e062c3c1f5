"""The composed functions: values against NumPy in float64, gradients to second order, extreme inputs, errors."""

import math

import numpy as np
import pytest

import minigrad as mg
from tests.numerical import check_gradients

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 5)) * 2
ROW = np.array([-3.0, -0.5, 0.25, 4.0])
erf = np.vectorize(math.erf)


def np_softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def np_layer_norm(x, weight=1.0, bias=0.0, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def np_cross_entropy(x, targets):
    return -np.log(np.take_along_axis(np_softmax(x), targets[..., None], -1))[..., 0]


def np_attention(q, k, v, allowed=True):
    scores = np.where(allowed, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    return np_softmax(scores) @ v


FUNCTIONS = {
    "softmax": (mg.softmax, np_softmax, [X]),
    "softmax along axis 0": (lambda x: mg.softmax(x, axis=0), lambda x: np_softmax(x, 0), [X]),
    "log_softmax": (mg.log_softmax, lambda x: np.log(np_softmax(x)), [X]),
    "logsumexp": (mg.logsumexp, lambda x: np.log(np.exp(x).sum(-1)), [X]),
    "logsumexp, keepdims": (
        lambda x: mg.logsumexp(x, axis=0, keepdims=True), lambda x: np.log(np.exp(x).sum(0, keepdims=True)), [X]),
    "relu": (mg.relu, lambda x: np.maximum(x, 0), [ROW]),
    "leaky_relu": (mg.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), [ROW]),
    "elu": (lambda x: mg.elu(x, 1.5), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x)), [ROW]),
    "sigmoid": (mg.sigmoid, lambda x: 1 / (1 + np.exp(-x)), [ROW]),
    "silu": (mg.silu, lambda x: x / (1 + np.exp(-x)), [ROW]),
    "gelu": (mg.gelu, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, [ROW]),
    "gelu by tanh": (
        lambda x: mg.gelu(x, approximate="tanh"),
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2, [ROW]),
    "softplus": (mg.softplus, lambda x: np.log1p(np.exp(x)), [ROW]),
    "softplus at 0": (mg.softplus, lambda x: np.log1p(np.exp(x)), [np.zeros(2)]),
    "layer_norm": (mg.layer_norm, np_layer_norm, [X]),
    "layer_norm with weight and bias": (mg.layer_norm, np_layer_norm, [X, rng.normal(size=5), rng.normal(size=5)]),
    "linear": (mg.linear, lambda x, w, b: x @ w.T + b, [X, rng.normal(size=(4, 5)), rng.normal(size=4)]),
    "linear of one example": (mg.linear, lambda x, w: x @ w.T, [X[0], rng.normal(size=(4, 5))]),
    "linear of a batch of sequences": (
        mg.linear, lambda x, w, b: x @ w.T + b,
        [rng.normal(size=(2, 3, 5)), rng.normal(size=(4, 5)), rng.normal(size=4)]),
    "embedding": (mg.embedding, lambda w, i: w[i], [X, np.array([[0, 2], [2, 1]])]),
    "cross_entropy": (mg.cross_entropy, lambda x, t: np_cross_entropy(x, t).mean(), [X, np.array([0, 4, 2])]),
    "cross_entropy, sum": (
        lambda x, t: mg.cross_entropy(x, t, reduction="sum"), lambda x, t: np_cross_entropy(x, t).sum(),
        [X, np.array([0, 4, 2])]),
    "cross_entropy of sequences": (
        lambda x, t: mg.cross_entropy(x, t, reduction="none"), np_cross_entropy,
        [rng.normal(size=(2, 3, 5)), rng.integers(0, 5, (2, 3))]),
    "cross_entropy of one example": (mg.cross_entropy, np_cross_entropy, [X[0], np.array(3)]),
    "nll_loss": (mg.nll_loss, lambda x, t: -x[np.arange(3), t].mean(), [X, np.array([0, 4, 2])]),
    "mse_loss": (mg.mse_loss, lambda x, y: ((x - y) ** 2).mean(), [X, X[::-1].copy()]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_numpys_and_gradients_the_central_differences_to_second_order(name):
    function, reference, inputs = FUNCTIONS[name]
    result = function(*map(mg.asarray, inputs))
    np.testing.assert_allclose(result.numpy_copy(), reference(*inputs), rtol=1e-12, atol=1e-14)
    assert result.dtype == mg.float64 and result.shape == np.shape(reference(*inputs))
    check_gradients(function, *inputs)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes_float32_and_float16_are_kept(name):
    function, reference, inputs = FUNCTIONS[name]
    for dtype, tolerance in (("float32", 1e-5), ("float16", 3e-2)):
        cast = [a.astype(dtype) if a.dtype.kind == "f" else a for a in inputs]
        tensors = [mg.asarray(a, requires_grad=a.dtype.kind == "f") for a in cast]
        result = function(*tensors)
        result.sum().backward()
        assert result.dtype == dtype
        assert all(t.grad is None or t.grad.dtype == dtype for t in tensors)
        wide = reference(*[a.astype(np.float64) if a.dtype.kind == "f" else a for a in cast])
        np.testing.assert_allclose(result.numpy_copy(), wide, rtol=tolerance, atol=tolerance)


EXTREMES = np.array([-1e30, -1e4, -100.0, 0.0, 100.0, 1e4, 1e30], np.float32)


@pytest.mark.parametrize(
    ("function", "limits"),
    [
        (mg.relu, [0, 0, 0, 0, 100, 1e4, 1e30]),
        (mg.leaky_relu, [-1e28, -1e2, -1, 0, 100, 1e4, 1e30]),
        (mg.elu, [-1, -1, -1, 0, 100, 1e4, 1e30]),
        (mg.sigmoid, [0, 0, 0, 0.5, 1, 1, 1]),
        (mg.silu, [0, 0, 0, 0, 100, 1e4, 1e30]),
        (mg.softplus, [0, 0, 0, math.log(2), 100, 1e4, 1e30]),
        (mg.gelu, [0, 0, 0, 0, 100, 1e4, 1e30]),
        (mg.softmax, [0, 0, 0, 0, 0, 0, 1]),
    ],
)
def test_extreme_inputs_give_limits_and_finite_gradients(function, limits):
    x = mg.asarray(EXTREMES, requires_grad=True)
    y = function(x)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy_copy(), np.array(limits, np.float32), rtol=1e-6, atol=1e-30)
    assert np.isfinite(x.grad.numpy_copy()).all()


def test_softplus_keeps_its_precision_in_both_tails():
    x = np.array([-80.0, -20.0, 20.0], np.float32)
    exact = np.log1p(np.exp(x.astype(np.float64)))
    np.testing.assert_allclose(mg.softplus(mg.asarray(x)).numpy_copy(), exact, rtol=1e-6)


def test_minus_infinity_is_a_probability_of_zero():
    x = mg.asarray([[0.0, -math.inf, 0.0]], requires_grad=True)
    p = mg.softmax(x)
    (p * mg.asarray([1.0, 2.0, 3.0])).sum().backward()
    assert p.tolist() == [[0.5, 0.0, 0.5]]
    assert x.grad.tolist() == [[-0.5, 0.0, 0.5]]
    assert mg.logsumexp(x).item() == pytest.approx(math.log(2))


def test_logsumexp_of_infinities_is_infinite_and_not_nan():
    assert mg.logsumexp(mg.asarray([-math.inf, -math.inf])).item() == -math.inf
    assert mg.logsumexp(mg.asarray([1.0, math.inf])).item() == math.inf


@pytest.mark.parametrize(
    "function", [mg.relu, mg.leaky_relu, mg.elu, mg.sigmoid, mg.silu, mg.gelu, mg.softplus, mg.softmax, mg.layer_norm]
)
def test_a_nan_stays_a_nan(function):
    assert math.isnan(function(mg.asarray([math.nan, 1.0])).tolist()[0])


@pytest.mark.parametrize(("function", "slope"), [(mg.relu, 0.0), (mg.leaky_relu, 0.01), (mg.elu, 1.0)])
def test_the_gradient_at_the_kink(function, slope):
    x = mg.asarray([0.0], requires_grad=True)
    function(x).sum().backward()
    assert x.grad.item() == pytest.approx(slope)


def test_relu_keeps_nothing_but_a_mask():
    x = mg.asarray([-1.0, 2.0], requires_grad=True)
    kept = [a for a in mg.relu(x).node.saved if a is not None]
    assert [a.dtype for a in kept] == [np.dtype(bool)]


def test_relu_of_integers_gives_integers():
    assert mg.relu(mg.asarray([-1, 2])).tolist() == [0, 2]
    assert mg.relu(mg.asarray([-1, 2])).dtype == mg.int64


def test_layer_norm_of_half_precision_fits_where_its_squares_do_not():
    x = np.array([0.0, 600.0, 1200.0, 1800.0], np.float16)
    weight = mg.ones(4, dtype=mg.float16)
    normed = mg.layer_norm(mg.asarray(x), weight, mg.zeros(4, dtype=mg.float16))
    assert normed.dtype == mg.float16
    np.testing.assert_allclose(normed.numpy(), np_layer_norm(x.astype(np.float64)), rtol=2e-3)


def test_layer_norm_of_equal_numbers_is_finite():
    x = mg.full((2, 4), 3.0, requires_grad=True)
    y = mg.layer_norm(x)
    (y * mg.asarray([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert y.tolist() == [[0.0] * 4] * 2
    assert np.isfinite(x.grad.numpy_copy()).all()


def test_softmax_sends_no_gradient_to_the_maximum_that_it_subtracts():
    x = mg.asarray(X, requires_grad=True)
    y = mg.softmax(x)
    np.testing.assert_array_equal(mg.replay(y).numpy_copy(), y.numpy_copy())
    steps = {step.node.name for step in mg.autodiff.walk([y.node], [mg.ones_like(y)])}
    assert "max" not in steps


def test_functions_support_all_transformations():
    rows = mg.asarray(X)
    np.testing.assert_allclose(mg.vmap(mg.softmax)(rows).numpy_copy(), np_softmax(X), rtol=1e-12)
    direction = rng.normal(size=X.shape)
    _, change = mg.jvp(mg.softmax, (rows,), (mg.asarray(direction),))
    p = np_softmax(X)
    expected = p * (direction - (p * direction).sum(-1, keepdims=True))
    np.testing.assert_allclose(change.numpy_copy(), expected, rtol=1e-10)


def test_mg_one_hot():
    assert mg.one_hot(mg.asarray([[2], [0]]), 3).tolist() == [[[0, 0, 1]], [[1, 0, 0]]]
    assert mg.one_hot(mg.asarray([1], dtype=mg.int8), 2, dtype=mg.bool).tolist() == [[False, True]]


# Dropout ------------------------------------------------------------------------------------------------------------


def test_dropout_zeros_a_share_scales_the_rest_and_passes_gradients_where_it_keeps():
    mg.random.seed(0)
    x = mg.ones(10_000, requires_grad=True)
    y = mg.dropout(x, p=0.25)
    y.sum().backward()
    kept = y.numpy_copy() != 0
    assert abs(kept.mean() - 0.75) < 0.02
    np.testing.assert_allclose(y.numpy_copy()[kept], 1 / 0.75, rtol=1e-6)
    np.testing.assert_array_equal(x.grad.numpy_copy(), y.numpy_copy())


def test_dropout_draws_anew_each_time_and_the_same_for_a_seed():
    x = mg.ones(100)
    mg.random.seed(1)
    first, second = mg.dropout(x).tolist(), mg.dropout(x).tolist()
    mg.random.seed(1)
    assert mg.dropout(x).tolist() == first != second


def test_dropout_of_everything_and_of_nothing():
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    assert mg.dropout(x, p=0.0).tolist() == mg.dropout(x, p=0.9, training=False).tolist() == [1.0, 2.0]
    y = mg.dropout(x, p=1.0)
    y.sum().backward()
    assert y.tolist() == x.grad.tolist() == [0.0, 0.0]


def test_dropout2d_drops_whole_channels():
    mg.random.seed(0)
    y = mg.dropout2d(mg.ones((1000, 2, 2, 3)), p=0.25).numpy_copy().reshape(2000, 6)
    assert (y == y[:, :1]).all() and abs((y[:, 0] != 0).mean() - 0.75) < 0.03
    np.testing.assert_allclose(y.max(), 1 / 0.75, rtol=1e-6)


# Attention ----------------------------------------------------------------------------------------------------------

Q, K, V = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 6))
MASK = np.array([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "allowed"),
    [({}, True), ({"causal": True}, np.tri(3, 5, dtype=bool)), ({"mask": MASK}, MASK),
     ({"mask": MASK, "causal": True}, MASK & np.tri(3, 5, dtype=bool))],
)
def test_attention(options, allowed):
    if "mask" in options:
        options = options | {"mask": mg.asarray(MASK)}

    def attend(q, k, v):
        return mg.scaled_dot_product_attention(q, k, v, **options)

    result = attend(mg.asarray(Q), mg.asarray(K), mg.asarray(V)).numpy_copy()
    with np.errstate(invalid="ignore"):
        expected = np_attention(Q, K, V, allowed)
    blind = ~np.broadcast_to(allowed, (3, 5)).any(-1)
    expected[:, blind] = 0
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)
    check_gradients(attend, Q, K, V)


def test_attention_with_scores_added_and_another_scale():
    added = rng.normal(size=(3, 5))
    result = mg.scaled_dot_product_attention(
        mg.asarray(Q), mg.asarray(K), mg.asarray(V), mask=mg.asarray(added), scale=0.1)
    expected = np_softmax(Q @ np.swapaxes(K, -1, -2) * 0.1 + added) @ V
    np.testing.assert_allclose(result.numpy_copy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_query_that_may_look_at_nothing_gets_zeros_and_a_finite_gradient(dtype):
    q = mg.asarray(Q.astype(dtype) * 10, requires_grad=True)
    mask = mg.asarray(np.array([[False] * 5, [True] * 5, [True] * 5]))
    out = mg.scaled_dot_product_attention(q, mg.asarray(K.astype(dtype)), mg.asarray(V.astype(dtype)), mask=mask)
    out.sum().backward()
    assert not out.numpy_copy()[:, 0].any()
    assert np.isfinite(out.numpy_copy()).all() and np.isfinite(q.grad.numpy_copy()).all()


# Errors -------------------------------------------------------------------------------------------------------------

INTEGERS = mg.asarray([1, 2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mg.cross_entropy(mg.asarray(X), mg.asarray([0, 7, 1])), IndexError,
         r"cross_entropy: target 7 is out of range, logits have shape \(3, 5\)\n  Expected: integers from 0 to 4"),
        (lambda: mg.cross_entropy(mg.asarray(X), mg.asarray([0, -100, 1])), IndexError, "target -100 is out of range"),
        (lambda: mg.cross_entropy(mg.asarray(X), mg.asarray([0.0, 1.0, 1.0])), TypeError,
         r"targets are integers, not float32\n  Hint: targets.astype\(mg.int64\)"),
        (lambda: mg.cross_entropy(mg.asarray(X), mg.asarray([0, 1])), ValueError,
         r"logits of shape \(3, 5\) do not fit targets of shape \(2,\)\n  Expected: targets of shape \(3,\)"),
        (lambda: mg.cross_entropy(mg.ones((2, 5, 3)), mg.asarray(np.zeros((2, 3), int))), ValueError,
         r"mg.moveaxis\(logits, 1, -1\) brings the classes from dimension 1 to the end"),
        (lambda: mg.cross_entropy(INTEGERS, mg.asarray(1)), TypeError, "cross_entropy is for floats.* int64"),
        (lambda: mg.cross_entropy(mg.asarray(X), mg.asarray([0, 1, 2]), reduction="max"), ValueError,
         "reduction is 'mean', 'sum' or 'none', not 'max'"),
        (lambda: mg.nll_loss(mg.asarray(X), mg.asarray([0, 5, 1])), IndexError, "nll_loss: target 5 is out of range"),
        (lambda: mg.mse_loss(mg.ones((3, 1)), mg.ones(3)), ValueError, r"shape \(3, 1\) and the target \(3,\)"),
        (lambda: mg.embedding(mg.asarray(X), mg.asarray([[0], [3]])), IndexError,
         r"embedding: index 3 is out of range, the table has shape \(3, 5\)\n  Expected: integers from 0 to 2"),
        (lambda: mg.embedding(mg.asarray(X), mg.asarray([-1])), IndexError, "embedding: index -1 is out of range"),
        (lambda: mg.embedding(mg.asarray(X), mg.asarray([0.5])), TypeError, "indices are integers, not float32"),
        (lambda: mg.one_hot(mg.asarray([0, 3]), 3), IndexError, "one_hot: index 3 is out of range, with 3"),
        (lambda: mg.linear(mg.ones((2, 3)), mg.ones((3, 4))), ValueError,
         r"linear: an input of shape \(2, 3\) does not fit a weight of shape \(3, 4\)"),
        (lambda: mg.layer_norm(mg.ones((2, 3)), mg.ones(2)), ValueError,
         r"layer_norm: an input of shape \(2, 3\) has 3 channels in dimension 1, and a parameter has shape \(2,\)"),
        (lambda: mg.dropout(mg.ones(3), p=1.5), ValueError, "a probability is between 0 and 1, not 1.5"),
        (lambda: mg.gelu(mg.ones(3), approximate="erf"), ValueError, "approximate is 'none' or 'tanh', not 'erf'"),
        (lambda: mg.softmax(mg.ones(3), axis=1), IndexError, "softmax: axis 1 does not exist in a tensor of"),
        (lambda: mg.softmax(INTEGERS), TypeError, r"softmax is for floats, and this tensor is int64"),
        (lambda: mg.scaled_dot_product_attention(mg.ones((2, 3)), mg.ones((2, 4)), mg.ones((2, 4))), ValueError,
         r"scaled_dot_product_attention: shapes q \(2, 3\), k \(2, 4\) do not go together"),
        (lambda: mg.scaled_dot_product_attention(mg.ones((2, 3)), mg.ones((2, 3)), mg.ones((4, 4))), ValueError,
         r"q \(2, 3\), k \(2, 3\), v \(4, 4\) do not go together"),
        (lambda: mg.attention_weights(mg.ones(3), mg.ones((2, 3))), ValueError, r"attention_weights: shapes q \(3,\)"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, error, message):
    with pytest.raises(mg.MinigradError, match=message) as raised:
        call()
    assert isinstance(raised.value, error)


def test_attention_weights_are_those_of_attention():
    rng = np.random.default_rng(0)
    q, k, v = (mg.asarray(rng.normal(size=(2, 3, 4))) for _ in range(3))
    mask = mg.asarray(rng.random((2, 3, 3)) < 0.6)
    weights = mg.attention_weights(q, k, mask, causal=True)
    np.testing.assert_allclose(
        (weights @ v).numpy_copy(), mg.scaled_dot_product_attention(q, k, v, mask, causal=True).numpy_copy(), rtol=1e-12
    )
    sums = weights.sum(axis=-1).numpy_copy()
    assert ((abs(sums - 1) < 1e-12) | (sums == 0)).all()
