"""Offloading in programs and graph mode: shared transfers, values that stay there, and gradients there."""

from collections import Counter

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise

rng = np.random.default_rng(0)
X, W, V = [rng.normal(size=shape).astype("f") for shape in [(5, 3), (4, 3), (2, 4)]]


def there(function):
    return mg.offload("cpu:1")(function)


def optimised(f, *args):
    return optimise(mg.trace(f, *args))[0]


def transfers(graph):
    """The names of what is moved, and the devices it is moved to."""
    names = graph.names()
    moves = [node for node in graph.nodes if node.name == "to_device"]
    return Counter((names[move.inputs[0]], move.device.name) for move in moves)


def places(graph):
    """The devices of each operation."""
    found = {}
    for node in graph.nodes:
        if node.name != "to_device":
            found.setdefault(node.name, set()).add(node.device.name)
    return found


def test_a_value_is_moved_once_and_results_stay_where_they_are_used():
    def f(x, w):
        h = there(lambda: mg.tanh(x @ w.mT))()
        return there(lambda: mg.softmax(h) + x.sum())()

    graph = optimised(f, mg.asarray(X), mg.asarray(W))
    assert transfers(graph) == {("tensor_1", "cpu:1"): 1, ("permute_dims_1", "cpu:1"): 1, ("add_1", "cpu"): 1}
    assert places(graph)["exp"] == places(graph)["matmul"] == places(graph)["sum"] == {"cpu:1"}


def test_a_result_that_is_used_in_both_places_comes_back_once():
    def f(x):
        h = there(mg.exp)(x)
        return h.sum() + h.max() + there(lambda h: h * h)(h).sum()

    assert transfers(optimised(f, mg.asarray(X))) == {
        ("tensor_1", "cpu:1"): 1, ("exp_1", "cpu"): 1, ("multiply_1", "cpu"): 1,
    }


def test_views_of_results_stay_there():
    def f(x):
        with mg.offload("cpu:1"):
            h = mg.exp(x).reshape(-1)[2:12].reshape(5, 2).mT
            return mg.tanh(h)

    assert transfers(optimised(f, mg.asarray(X))) == {("tensor_1", "cpu:1"): 1, ("tanh_1", "cpu"): 1}


def test_a_chain_through_a_third_device_is_kept():
    def f(x):
        return mg.exp(x.to("cpu:1").to("cpu:2"))

    assert transfers(optimised(f, mg.asarray(X))) == {("tensor_1", "cpu:1"): 1, ("to_device_1", "cpu:2"): 1}


def test_a_sum_of_values_from_there_is_computed_there():
    def f(x, y):
        h, far = there(mg.exp)(x), x + y
        for _ in range(100):
            far = far + h
        return there(mg.tanh)(far)

    graph = optimised(f, mg.asarray(X), mg.asarray(X))
    assert Counter(n.device.name for n in graph.nodes if n.name == "add") == {"cpu": 1, "cpu:1": 100}
    assert transfers(graph) == {("tensor_1", "cpu:1"): 1, ("add_1", "cpu:1"): 1, ("tanh_1", "cpu"): 1}


def test_new_values_are_made_where_they_are_used():
    graph = optimised(there(lambda x: x @ mg.zeros((3, 2)).reshape(3, 2)), mg.asarray(X))
    assert sum(transfers(graph).values()) == 2 and places(graph)["full"] == {"cpu:1"}


def test_a_sum_that_nothing_there_is_used_in_is_moved_as_a_whole():
    graph = optimised(lambda x: there(mg.exp)(x + x.sum()), mg.asarray(X))
    assert transfers(graph) == {("add_1", "cpu:1"): 1, ("exp_1", "cpu"): 1}


def step(x, w, v):
    """A training step with one layer in another place; each gradient has several contributions."""
    h = there(lambda: mg.tanh(x @ w.mT))()
    with mg.offload("cpu:1"):
        h = h * h + h[:, ::-1]
    loss = mg.cross_entropy(h @ v.mT, mg.asarray([0, 1, 0, 1, 1]))
    loss.backward()
    return loss, w.grad, v.grad


def tensors():
    return [mg.asarray(X), *[mg.asarray(value, requires_grad=True) for value in (W, V)]]


def test_gradients_in_a_program_are_those_of_eager_mode_and_run_there():
    expected, found = step(*tensors()), mg.jit(step)(*tensors())
    for e, value in zip(expected, found):
        assert value.device == "cpu"
        np.testing.assert_allclose(value.detach().numpy(), e.detach().numpy(), rtol=1e-5, atol=1e-6)
    graph = mg.jit(step).program(*tensors()).optimised
    names = Counter(target for (_, target), count in transfers(graph).items() for _ in range(count))
    assert names == {"cpu:1": 4, "cpu": 2}  # x, w and two parts of h's gradient; h and the gradient of w
    assert Counter(n.device.name for n in graph.nodes if n.name == "add" and n.shape == (5, 4)) == {"cpu:1": 3}
    first = next(node for node in graph.nodes if node.name == "matmul")
    tanh = next(node for node in graph.nodes if node.name == "tanh")
    assert first.device == tanh.device == "cpu:1"
    assert Counter(n.device.name for n in graph.nodes if n.name == "matmul") == {"cpu": 3, "cpu:1": 2}


def test_a_differentiable_jitted_function_keeps_its_values_there():
    f = mg.jit(there(lambda x: mg.tanh(x).sum() * 2))
    x = mg.asarray(X, requires_grad=True)
    for _ in range(2):
        x.grad = None
        f(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 / np.cosh(X) ** 2, rtol=1e-5)


def test_graph_mode_gives_the_same():
    x = mg.asarray(X, requires_grad=True)
    with mg.graph():
        with mg.offload("cpu:1"):
            y = mg.tanh(x) * 2
        loss = (y * y).sum()
    loss.backward()
    expected = mg.grad(lambda x: ((mg.tanh(x) * 2) ** 2).sum())(mg.asarray(X))
    assert y.device == x.grad.device == "cpu"
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), rtol=1e-5)


def test_writes_in_a_program():
    def f(x):
        with mg.offload("cpu:1"):
            h = x * 2
            row = h[0]
            h[0, 0] = 7.0
            h += mg.exp(x)
            row *= 2
            return h * 1

    x = mg.asarray(X)
    np.testing.assert_allclose(mg.jit(f)(x).numpy(), f(x).numpy(), rtol=1e-6)
    assert (mg.jit(f)(x).numpy()[1:] == f(x).numpy()[1:]).any()


def test_captured_tensors_and_a_gradient_in_the_block():
    w = mg.asarray(W)
    f = there(lambda x: mg.grad(lambda w: mg.tanh(x @ w.mT).sum())(w))
    g = mg.jit(f)
    assert (g(mg.asarray(X)).numpy() - f(mg.asarray(X)).numpy()).max() < 1e-5
    w *= 2
    np.testing.assert_allclose(g(mg.asarray(X)).numpy(), f(mg.asarray(X)).numpy(), rtol=1e-4, atol=1e-6)


def test_loops_and_branches_run_their_bodies_there():
    def f(x):
        with mg.offload("cpu:1"), mg.train.autocast(enabled=False):
            total, rows = mg.scan(lambda c, r: (c + mg.tanh(r), c), x[0], x)
            return mg.cond(total.sum() > 0, lambda: mg.exp(rows), lambda: rows)

    x = mg.asarray(X)
    graph = mg.trace(f, x)
    bodies = [a.graph for n in graph.nodes for a in n.attrs.values() if hasattr(a, "graph")]
    assert {"cpu:1"} in [places(body).get("tanh") for body in bodies]
    assert {"cpu:1"} in [places(body).get("exp") for body in bodies]
    np.testing.assert_allclose(mg.jit(f)(x).numpy(), f(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize("outer", [mg.train.autocast, lambda: mg.offload("cpu:2")])
def test_a_block_in_another_block_keeps_both(outer):
    def f(x):
        with outer(), mg.offload("cpu:1"):
            return mg.scan(lambda c, r: (c, mg.tanh(r) @ r), x[0], x)[1]

    x = mg.asarray(X)
    graph = mg.trace(f, x)
    (body,) = {a.graph for n in graph.nodes for a in n.attrs.values() if hasattr(a, "graph")}
    assert places(body)["tanh"] == places(body)["matmul"] == {"cpu:1"}
    assert ("astype" in places(body)) == (outer is mg.train.autocast)


@pytest.mark.parametrize("block", [mg.train.autocast, lambda: mg.offload("cpu:1")])
def test_a_scripted_function_in_a_block_in_a_program(block):
    @mg.script
    def f(x):
        y = x * 0
        while y.sum() < 10:
            if x.sum() > 100:
                y = y - 1
            else:
                y = y + mg.tanh(x)
        return y

    def g(x):
        with block():
            return f(x)

    x = mg.asarray(np.arange(6.0).reshape(2, 3), dtype=mg.float32)
    assert mg.jit(g)(x).tolist() == g(x).tolist()


def test_a_nan_is_found_there():
    def f(x):
        with mg.debug_nans(), mg.offload("cpu:1"):
            return mg.log(x - 3)

    for run in (f, mg.jit(f)):
        with pytest.raises(mg.NanError, match=r"log.* made a nan"), np.errstate(all="ignore"):
            run(mg.ones(2))


def test_a_saved_program_keeps_its_devices(tmp_path):
    f = mg.jit(there(lambda x: mg.tanh(x @ x.mT)))
    f.save(tmp_path / "f.mg", mg.asarray(X))
    loaded = mg.load_program(tmp_path / "f.mg")
    assert loaded(mg.asarray(X)).tolist() == f(mg.asarray(X)).tolist()
    assert {buffer.device.name for buffer in loaded.program.plan.buffers} == {"cpu", "cpu:1"}
