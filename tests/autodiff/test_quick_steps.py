"""`quick_steps` is `steps`, unrolled: both give the same gradients, free the same arrays and raise the same errors."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.autodiff.quick_steps import quick_steps
from minigrad.autodiff.reverse import exhaust, steps
from minigrad.core.node import FREED, topological_order
from minigrad.support.errors import MinigradError

RANDOM = np.random.default_rng(3)


def leaf(*shape, dtype="float32"):
    return mg.asarray(RANDOM.normal(size=shape).astype(dtype), requires_grad=True)


def chain():
    w, h = leaf(3), None
    for _ in range(10):
        h = mg.tanh((w if h is None else h) * 2) + 1
    return h.sum(), [w]


def layers():
    w, b, v = leaf(4, 8), leaf(8), leaf(8, 2)
    x = mg.asarray(RANDOM.normal(size=(5, 4)).astype("float32"))
    return mg.cross_entropy(mg.relu(x @ w + b) @ v, mg.asarray([0, 1, 0, 1, 1])), [w, b, v]


def shared():
    w, v = leaf(2, 3), leaf(3)
    h = w + v
    return (h * h + h.T.T - w[0] * v).sum(), [w, v]


def mixed_types():
    w, v = leaf(3), leaf(3, dtype="float16")
    return (w * v + v.astype("float64")).sum(), [w, v]


def several_results():
    w = leaf(3, 3)
    sign, logarithm = mg.linalg.slogdet(w @ w.T + mg.eye(3))
    return logarithm * 2 + sign, [w]


def checkpointed():
    w = leaf(4)
    return mg.checkpoint(lambda x: (x.tanh() * x).exp())(w).sum(), [w]


def hooked():
    w = leaf(3)
    h = w * 2
    h.register_hook(lambda g: g * 3)
    w.register_hook(lambda g: g + 1)
    return (h * w).sum(), [w]


GRAPHS = [chain, layers, shared, mixed_types, several_results, checkpointed, hooked]


def bits(found):
    return [(g.shape, g.dtype, g.numpy_copy().tobytes(), g.tracked) for g in found]


@pytest.mark.eager_only
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("graph", GRAPHS)
def test_quick_walk_gives_the_same_gradients(graph, recording, wanted):
    y, leaves = graph()
    nodes = topological_order([y.node])
    also = [] if wanted else nodes[len(nodes) // 2 :]
    targets = [leaves[0].node] if wanted else None
    found = []
    for walk, retain in ((steps, True), (quick_steps, True), (steps, False)):
        with mg.enable_grad() if recording else mg.no_grad():
            found.append(exhaust(walk([y.node], [mg.ones_like(y)], targets, retain, also)))
    assert list(found[0]) == list(found[1]) == list(found[2])
    assert bits(found[0].values()) == bits(found[1].values()) == bits(found[2].values())


@pytest.mark.eager_only
@pytest.mark.parametrize("graph", GRAPHS)
def test_quick_walk_frees_the_same_arrays(graph):
    freed = []
    for walk in (steps, quick_steps):
        y, _ = graph()
        with mg.no_grad():
            exhaust(walk([y.node], [mg.ones_like(y)], None, False, ()))
            with pytest.raises(MinigradError, match="backward a second time through"):
                exhaust(walk([y.node], [mg.ones_like(y)], None, False, ()))
        freed.append([node.saved is FREED for node in topological_order([y.node])])
    assert freed[0] == freed[1] and any(freed[0])


def changed_where_it_is_needed():
    w = leaf(3)
    y = (w * w).sum()
    with mg.no_grad():
        w += 1
    return y, w


def hook_of_another_shape():
    w = leaf(3)
    w.register_hook(lambda g: g.sum())
    return (w * 2).sum(), w


def hook_that_writes():
    w = leaf(3)
    w.register_hook(lambda g: g.__imul__(2))
    return (w * 2).sum(), w


@pytest.mark.eager_only
@pytest.mark.parametrize("case", [changed_where_it_is_needed, hook_of_another_shape, hook_that_writes])
def test_quick_walk_raises_the_same_errors(case):
    said = []
    for walk in (steps, quick_steps):
        y, _ = case()
        with mg.no_grad(), pytest.raises(MinigradError) as caught:
            exhaust(walk([y.node], [mg.ones_like(y)], None, False, ()))
        said.append((caught.type, str(caught.value).partition("  Line:")[0]))
    assert said[0] == said[1]


def test_quick_walk_gives_each_leaf_its_own_gradient_memory():
    w, v = leaf(3), leaf(3)
    (w + v).sum().backward()
    w.grad += 5
    assert v.grad.tolist() == [1, 1, 1]


def test_backward_uses_the_quick_walk_and_a_stepper_uses_steps(monkeypatch):
    taken = []
    for name in ("steps", "quick_steps"):
        original = getattr(mg.autodiff.reverse, name)
        monkeypatch.setattr(
            mg.autodiff.reverse, name, lambda *a, name=name, original=original: taken.append(name) or original(*a)
        )
    w = leaf(2)
    (w * w).sum().backward()
    y = (w * w).sum()
    list(mg.autodiff.walk([y.node], [mg.ones_like(y)]))
    assert taken == ["quick_steps", "steps"]
