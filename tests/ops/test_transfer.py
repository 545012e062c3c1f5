"""Offloading in eager mode: where operations run, where their results are, gradients, views, writes and errors."""

from collections import Counter

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import as_device
from minigrad.support.errors import DeviceError

rng = np.random.default_rng(0)
X, W = rng.normal(size=(5, 3)).astype("f"), rng.normal(size=(4, 3)).astype("f")


@pytest.fixture
def ran(monkeypatch):
    """How often each kernel of `cpu:1` has run; transfers to it are kernels of it, and transfers from it are not."""
    count, kernels = Counter(), as_device("cpu:1").kernels

    def counted(name, kernel):
        def run(*args, **kwargs):
            count[name] += 1
            return kernel(*args, **kwargs)

        return run

    for name, kernel in list(kernels.items()):
        monkeypatch.setitem(kernels, name, counted(name, kernel))
    return count


def tensors(*values):
    return [mg.asarray(value, requires_grad=True) for value in values]


def model(x, w):
    return mg.softmax(mg.tanh(x @ w.mT))


def test_operations_run_there_and_results_come_back(ran):
    x, w = tensors(X, W)
    with mg.offload("cpu:1"):
        y = model(x, w)
    assert y.device == x.device == "cpu"
    assert (y.detach().numpy() == model(x, w).detach().numpy()).all()
    assert ran["matmul"] == ran["tanh"] == ran["exp"] == 1
    assert y.node.device == "cpu" and y.node.inputs[0].device == "cpu:1"


def test_the_backward_pass_of_an_operation_runs_where_the_operation_ran(ran):
    x, w = tensors(X, W)
    with mg.offload("cpu:1"):
        h = mg.tanh(x @ w.mT)
    loss = (h * h).sum()
    ran.clear()
    loss.backward()
    assert ran["matmul"] == 2 and ran["multiply"] > 0
    here = mg.grad(lambda x, w: (mg.tanh(x @ w.mT) ** 2).sum(), argnums=(0, 1))(mg.asarray(X), mg.asarray(W))
    for leaf, g in zip((x, w), here):
        assert leaf.grad.device == "cpu"
        np.testing.assert_allclose(leaf.grad.numpy(), g.numpy(), rtol=1e-5)


def test_a_backward_pass_in_the_block_runs_there_and_leaves_gradients_here(ran):
    (x,) = tensors(X)
    loss = mg.sin(x).sum()
    with mg.offload("cpu:1"):
        loss.backward()
    assert ran["cos"] == 1 and x.grad.device == "cpu"
    np.testing.assert_allclose(x.grad.numpy(), np.cos(X), rtol=1e-6)


def test_tensors_that_are_there_stay_there():
    w = mg.asarray(W).to("cpu:1")
    with mg.offload("cpu:1"):
        assert (w * 2).device == "cpu:1"
        assert (mg.asarray(X) @ w.mT).device == "cpu"
        assert mg.asarray(X).to("cpu:2").device == "cpu:2"


def test_new_tensors_are_made_where_mg_device_says():
    mg.random.seed(0)
    expected = mg.random.normal((3,)).tolist()
    mg.random.seed(0)
    with mg.offload("cpu:1"):
        assert mg.zeros(2).device == "cpu"
        assert mg.random.normal((3,)).tolist() == expected
        with mg.device("cpu:1"):
            assert mg.zeros(2).device == "cpu:1"


def test_views_share_memory_and_writes_reach_them():
    x = mg.asarray(X)
    with mg.offload("cpu:1"):
        h = x * 2
        row = h[0]
        h[0, 0] = 7.0
        h[1:] += mg.ones(3)
        row[1] = 9.0
        twice = h + h
    expected = X * 2
    expected[0, 0], expected[0, 1] = 7, 9
    expected[1:] += 1
    assert (h.numpy() == expected).all() and (twice.numpy() == 2 * expected).all()
    h[0, 0] = 8.0
    with mg.offload("cpu:1"):
        assert (row * 1)[0].item() == 8.0


def test_a_write_with_a_history_has_the_same_gradient():
    def changed(x):
        h = x * 2
        h[0] = h[1] * h[2]
        return (h * h).sum()

    x = mg.asarray(X)
    there = mg.offload("cpu:1")(changed)
    assert (mg.grad(there)(x).numpy() == mg.grad(changed)(x).numpy()).all()


def test_an_optimizer_steps_in_the_block():
    def trained(block):
        w = mg.asarray(W, requires_grad=True)
        optimizer = mg.optim.Adam([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            with block:
                (mg.asarray(X) @ w.mT).sum().backward()
                optimizer.step()
        return w.detach()

    there, here = trained(mg.offload("cpu:1")), trained(mg.scope("here"))
    assert there.device == "cpu"
    np.testing.assert_allclose(there.numpy(), here.numpy(), rtol=1e-6)


def test_hooks_and_gradients_of_values_between_are_complete():
    (x,) = tensors(X)
    seen = []
    with mg.offload("cpu:1"):
        h = mg.exp(x)
        h.register_hook(lambda g: seen.append(g))
        y = (h * 3).sum() + (h * 4).sum()
    assert mg.gradients(y, h, retain_graph=True).tolist() == np.full(X.shape, 7.0).tolist()
    y.backward()
    assert seen[-1].device == "cpu" and seen[-1].tolist() == np.full(X.shape, 7.0).tolist()


def test_the_innermost_block_decides(ran):
    x = mg.asarray(X)
    with mg.offload("cpu:1"):
        with mg.offload("cpu"):
            mg.tanh(x)
        assert not ran
        with mg.offload("cpu:2"):
            assert mg.tanh(x).device == "cpu"
        assert not ran
        mg.vmap(mg.offload("cpu:2")(mg.tanh))(x)
        assert "tanh" not in ran
        mg.tanh(x)
    assert ran["tanh"] == 1


def test_it_decorates_functions(ran):
    @mg.offload("cpu:1")
    def f(x):
        """Doubles."""
        return x * 2

    assert f(mg.ones(2)).tolist() == [2.0, 2.0]
    assert ran["multiply"] == 1 and f.__doc__ == "Doubles."
    assert (mg.ones(2) * 2).device == "cpu" and ran["multiply"] == 1


@pytest.mark.parametrize(
    "f",
    [
        mg.vmap(mg.offload("cpu:1")(lambda x: mg.tanh(x) * x.sum())),
        mg.offload("cpu:1")(mg.vmap(lambda x: mg.tanh(x) * x.sum())),
        mg.grad(mg.offload("cpu:1")(lambda x: mg.tanh(x).sum())),
        mg.offload("cpu:1")(mg.grad(lambda x: mg.tanh(x).sum())),
        lambda x: mg.jvp(mg.offload("cpu:1")(mg.tanh), (x,), (x,))[1],
        mg.offload("cpu:1")(lambda x: mg.jvp(mg.tanh, (x,), (x,))[1]),
        mg.offload("cpu:1")(lambda x: mg.checkpoint(lambda x: mg.tanh(x) * 2)(x)),
        lambda x: mg.hessian(mg.offload("cpu:1")(lambda x: mg.tanh(x).sum()))(x[0]),
        mg.offload("cpu:1")(lambda x: mg.scan(lambda c, r: (c + mg.tanh(r), c), x[0], x)[1]),
        mg.offload("cpu:1")(lambda x: mg.cond(x.sum() > 99, mg.exp, mg.tanh, x)),
    ],
)
def test_it_works_under_every_transformation_in_eager_mode_and_in_programs(f, ran):
    x = mg.asarray(X)
    y = f(x)
    assert y.device == "cpu" and ran["tanh"] > 0
    with mg.offload("cpu"):
        expected = mg.jit(f, disable=True)(x)
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(mg.jit(f)(x).numpy(), y.numpy(), rtol=1e-5, atol=1e-6)


def test_operations_with_several_results_and_integers_come_back():
    x = mg.asarray(X)
    with mg.offload("cpu:1"):
        u, s, vh = mg.linalg.svd(x, full_matrices=False)
        first, values = x.argmax(axis=0), mg.topk(x, 2)
    assert {t.device.name for t in (u, s, vh, first, *values)} == {"cpu"}
    assert first.tolist() == X.argmax(0).tolist()


def test_custom_functions_run_there(ran):
    @mg.custom_vjp
    def double(x):
        return mg.tanh(x)

    @double.gradient
    def backward(kept, g):
        return (g * 2,)

    (x,) = tensors(X)
    with mg.offload("cpu:1"):
        y = double(x)
    assert ran["tanh"] == 1 and y.device == "cpu"
    y.sum().backward()
    assert x.grad.tolist() == np.full(X.shape, 2.0).tolist()


def test_casts_and_mixed_precision_run_there(ran):
    x = mg.asarray(X)
    with mg.offload("cpu:1"):
        assert (x + mg.asarray([1, 2, 3])).dtype is mg.float32
        with mg.train.autocast():
            y = x @ mg.asarray(W).mT
    assert y.dtype is mg.float16 and y.device == "cpu"
    assert ran["matmul"] == 1 and ran["astype"] >= 2


def test_a_jitted_function_runs_operation_by_operation_in_the_block(ran):
    f = mg.jit(lambda x: mg.tanh(x) * 2)
    with mg.offload("cpu:1"):
        f(mg.ones(3))
    assert ran["tanh"] == 1 and not f.recordings


def test_inputs_on_two_other_devices_are_an_error():
    with mg.offload("cpu:1"), pytest.raises(DeviceError, match="its inputs are on different devices, cpu and cpu:2"):
        mg.ones(2) + mg.ones(2).to("cpu:2")


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(DeviceError, match=r"there is no device named 'gpu'\n  Expected: 'cpu', 'cpu:1' or 'cuda'"):
        mg.offload("gpu")
    with pytest.raises(DeviceError, match="is a block, for `with`, and not a device"):
        mg.offload(mg.device("cpu:1"))


def test_errors_of_operations_are_those_of_the_operation():
    with mg.offload("cpu:1"), pytest.raises(mg.ShapeError, match=r"matmul.*\n"):
        mg.ones((2, 3)) @ mg.ones((2, 3))
    assert (mg.ones(2) * 2).node is None


def test_an_input_that_is_given_twice_moves_once(ran):
    with mg.offload("cpu:1"):
        x = mg.asarray(X)
        x @ x.mT
        ran.clear()
        x * x
    assert ran["to_device"] == 1
