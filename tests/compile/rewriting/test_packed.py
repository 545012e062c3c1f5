"""Lasting weights: which products read them in panels, and that the values stay the same."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running import targets

RULE = "lasting weights in panels"
pytestmark = pytest.mark.skipif(targets.HOST.on_backend(None).chunking.lanes == 0, reason="libraries compute products")


def tensor(*shape, dtype=mg.float32):
    return mg.asarray(np.random.default_rng(sum(shape)).normal(size=shape), dtype=dtype)


def count(f, *args, rule=RULE):
    f(*args)
    return f.passes(*args).counts().get(rule, 0)


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
@pytest.mark.parametrize("rows", [(1,), (7,), (64,), (2, 5), (3, 1, 4)])
@pytest.mark.parametrize("columns", [128, 192, 256])
def test_products_with_weights(rows, columns, dtype):
    w, x = tensor(columns, 37, dtype=dtype), tensor(*rows, 37, dtype=dtype)
    f = mg.jit(lambda x: mg.relu(x @ w.T + 1))
    assert count(f, x) == 1
    exact = np.maximum(x.numpy().astype("f8") @ w.numpy().astype("f8").T + 1, 0)
    for _ in range(2):
        np.testing.assert_allclose(f(x).numpy(), exact, rtol=1e-5, atol=1e-5 if dtype is mg.float32 else 1e-12)


def test_weights_that_are_not_transposed():
    w, x = tensor(9, 256), tensor(4, 9)
    f = mg.jit(lambda x: x @ (w * 2))
    assert count(f, x) == 1
    np.testing.assert_allclose(f(x).numpy(), x.numpy() @ (w.numpy() * 2), rtol=1e-5, atol=1e-5)


def test_long_sums_and_other_products_beside_them():
    w, v, x = tensor(128, 3000), tensor(5, 128), tensor(8, 3000)
    f = mg.jit(lambda x: (x @ w.T) @ v.T)
    assert count(f, x) == 1
    exact = (x.numpy().astype("f8") @ w.numpy().T) @ v.numpy().T
    np.testing.assert_allclose(f(x).numpy(), exact, rtol=1e-4, atol=1e-2)


def test_convolutions_and_arithmetic_after_a_product_keep_their_order():
    model = mg.nn.Sequential(mg.nn.Conv2d(3, 16, 3), mg.nn.BatchNorm2d(16), mg.nn.ReLU(), mg.nn.MaxPool2d(2))
    x = tensor(4, 3, 10, 10)
    model(x)  # moves the running statistics
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
    f = mg.jit(model)
    for change in (0.0, 0.5):
        model[1].bias += change
        assert count(f, x) == 0
        np.testing.assert_allclose(f(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-5)


def test_other_products_stay_with_the_library():
    w, x = tensor(256, 16), tensor(4, 16)
    assert count(mg.jit(lambda x, w: x @ w.T), x, w) == 0  # an argument may differ in each call
    assert count(mg.jit(lambda x: x @ w.T), tensor(513, 16)) == 0  # many rows
    narrow, stack = tensor(130, 16), tensor(3, 16, 256)
    assert count(mg.jit(lambda x: x @ narrow.T), x) == 0
    assert count(mg.jit(lambda x: x @ stack), x) == 0

    def step(x):
        w[0, 0] = 1
        return x @ w.T

    assert count(mg.jit(step), x) == 0  # it writes to the weights
    w.requires_grad = True
    assert count(mg.jit(lambda x: (x @ w.T).sum()), x) == 0  # training changes them
    with mg.no_grad():
        assert count(mg.jit(lambda x: (x @ w.T).sum()), x) == 1
