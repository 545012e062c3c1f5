"""Channels last: which nodes are computed in the other order, with the same values, and which are not."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise
from minigrad.compile.rewriting.channels_last import regrouped
from minigrad.ops.view import inverse
from tests.compile.rewriting.recording import Recorded

ROUNDED = {"rtol": 1e-5, "atol": 1e-4}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


IMAGE, WEIGHT, BIAS = normal(2, 3, 8, 8), normal(8, 3, 3, 3, seed=1), normal(8, seed=2)


def counted(function, *arrays):
    """How many nodes the pass moves, after the values have been compared."""
    recorded = Recorded(function, *arrays)
    after, log = optimise(recorded.graph, "result_layouts")
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
