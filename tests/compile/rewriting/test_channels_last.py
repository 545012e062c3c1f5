"""Channels last: which nodes are computed in the other order, with the same values, and which are not."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise
from minigrad.compile.rewriting.channels_last import regrouped
from minigrad.compile.rewriting.layouts import on_stored
from minigrad.ops.view import inverse
from tests.compile.rewriting.recording import Recorded

ROUNDED = {"rtol": 1e-5, "atol": 1e-4}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


IMAGE, WEIGHT, BIAS = normal(2, 3, 8, 8), normal(8, 3, 3, 3, seed=1), normal(8, seed=2)


def counted(function, *arrays, without="result_layouts"):
    """How many nodes the pass moves, after the values have been compared."""
    recorded = Recorded(function, *arrays)
    after, log = optimise(recorded.graph, without)
    for value, result in zip(recorded.values(after), recorded.results):
        np.testing.assert_allclose(value, result.data, **ROUNDED, err_msg=str(after))
    return log.counts().get("channels last", 0)


def layer(x, w, b):
    return mg.relu(mg.conv2d(x, w, b, padding=1))


FUNCTIONS = {  # how many nodes of each are computed with the channels last
    "pooling": (lambda x, w, b: mg.max_pool2d(layer(x, w, b), 2) * 1.5, 5),
    "mean": (lambda x, w, b: mg.mean(layer(x, w, b), (2, 3)) - 1.0, 5),
    "kept dimensions": (lambda x, w, b: mg.tanh(mg.sum(layer(x, w, b), (0, 2), keepdims=True)) + 1.0, 6),
    "two layers": (lambda x, w, b: layer(layer(x, w, b), mg.concat([w, w, w[:, :2]], axis=1), b)[:, :, 1:], 8),
    "a shortcut": (lambda x, w, b: mg.exp(layer(x, w, b) + x[:, :1]) + 0.5, 6),
    "flattened": (lambda x, w, b: mg.reshape(layer(x, w, b), (2, -1)) + 1.0, 4),
    "permuted": (lambda x, w, b: mg.permute_dims(layer(x, w, b), (0, 2, 3, 1)) * 2.0 + 1.0, 4),
    "a row": (lambda x, w, b: layer(x, w, b)[0, :, 1] + 1.0, 4),
    "cumulative": (lambda x, w, b: mg.cumulative_sum(layer(x, w, b), 1) + 1.0, 4),
    "a result": (lambda x, w, b: mg.conv2d(x, w), 0),
    "few channels": (lambda x, w, b: mg.tanh(mg.conv2d(x, w[:4])) + 1.0, 0),
    "no convolution": (lambda x, w, b: mg.permute_dims(x, (0, 2, 3, 1)) + 1.0, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_stay_and_nodes_move(name):
    function, count = FUNCTIONS[name]
    assert counted(function, IMAGE, WEIGHT, BIAS) == count


def test_results_may_have_the_channels_last():
    moved = {name: counted(function, IMAGE, WEIGHT, BIAS, without=()) for name, (function, _) in FUNCTIONS.items()}
    more = {name: moved[name] - count for name, (_, count) in FUNCTIONS.items() if moved[name] != count}
    assert more == {"pooling": 1, "two layers": 1, "a shortcut": 1, "a result": 1,
                    "kept dimensions": 1}
    inputs = [mg.asarray(each) for each in (IMAGE, WEIGHT, BIAS)]
    f = mg.jit(lambda *xwb: mg.conv2d(*xwb, padding=1))
    y = f(*inputs)
    assert y._data.transpose(0, 2, 3, 1).flags.c_contiguous and not y._data.flags.c_contiguous
    np.testing.assert_allclose(y.numpy(), mg.conv2d(*inputs, padding=1).numpy(), **ROUNDED)


def test_a_product_that_the_caller_views_stays_in_order():
    f = mg.jit(mg.conv2d)  # its result is a view of the product
    inputs = [mg.asarray(each) for each in (IMAGE, WEIGHT)]
    assert "channels last" not in f.passes(*inputs).counts()
    np.testing.assert_allclose(f(*inputs).numpy(), mg.conv2d(*inputs).numpy(), **ROUNDED)


STORED = {  # how many nodes on an image with the channels last are computed in its order
    "arithmetic": (lambda x: mg.tanh(x) * 2.0 + x[:, :1], 3),
    "tiles": (lambda x: mg.max_pool2d(x, 2), 1),
    "a border": (lambda x: mg.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1))) + 1.0, 2),
    "a softmax": (lambda x: mg.softmax(x, 1), 6),
    "maxima of slices": (lambda x: mg.max_pool2d(x, 3, 2), 4),
    "windows": (lambda x: mg.avg_pool2d(x, 3, 2), 0),
}


@pytest.mark.parametrize("name", STORED)
def test_inputs_in_another_order_are_used_in_that_order(name):
    function, count = STORED[name]
    recorded = Recorded(function, IMAGE)
    after, log = optimise(on_stored(recorded.graph, [(0, 2, 3, 1)]))
    assert after.inputs[0].shape == (2, 8, 8, 3)
    recorded.tensors = [mg.asarray(IMAGE.transpose(0, 2, 3, 1))]
    (value,), (result,) = recorded.values(after), recorded.results
    np.testing.assert_allclose(value, result.data, **ROUNDED)
    assert log.counts().get("channels last", 0) == count


def test_gradients_of_both_inputs_become_products_of_windows():
    x, w = normal(2, 8, 8, 8), normal(8, 8, 3, 3, seed=1)
    f = mg.jit(mg.grad(lambda x, w, b: mg.sum(mg.tanh(layer(x, w, b)) ** 2), (0, 1, 2)))
    log = f.passes(*map(mg.asarray, (x, w, BIAS)))
    counts = log.counts()
    assert counts["windows as product"] == 1 and counts["slice of a convolution"] == 1
    assert "windows as parts" not in counts


def test_groups_of_dimensions():
    assert regrouped((2, 6, 1), (2, 1, 3, 2)) == [(1, (2, 1), 0), (1, (3, 2), 2), (1, (), 4)]
    assert regrouped((4, 6), (8, 3)) == [(2, (8, 3), 0)] and regrouped((0, 2), (2, 0)) is None
    assert inverse((2, 0, 1)) == (1, 2, 0)
