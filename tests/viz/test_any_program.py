"""The views of a reader's own program: every recorded tensor can be drawn and stepped through, with all its numbers."""

import warnings
from collections import Counter

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from minigrad.core.programs import opened_order
from minigrad.examples import EXAMPLES
from minigrad.viz.repeats import with_rounds
from minigrad.viz.scene import scene_of
from tests.composed import COMPOSED
from tests.composed_nn import plain  # noqa: F401 - adds its samples
from tests.nn.test_every_layer import LAYERS, built, listed
from tests.samples import SAMPLES
from tests.viz.ten_programs import numbers

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def a_jitted_result():
    return mg.jit(lambda x: (x * x).sum())(numbers(2))


@program
def two_jitted_results():
    a, b = mg.jit(lambda x: (x * x, x + 1))(numbers(2))
    return (a * b).sum()


@program
def a_jitted_model_in_a_larger_program():
    model = mg.jit(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
    return (model(mg.ones((3, 4))) ** 2).mean()


@program
def a_jitted_scan():
    def f(x):
        return mg.scan(lambda c, v: (mg.tanh(c + v), c * 2), mg.zeros(2), x, reverse=True)

    last, each = mg.jit(f)(numbers(5, 2))
    return last.sum() + each.sum()


@program
def a_jitted_branch():
    return mg.jit(lambda x: mg.cond(x.sum() > 0, lambda x: x * x, lambda x: -x, x))(numbers(3)).sum()


@program
def a_jitted_loop():
    loop = mg.jit(lambda x: mg.while_loop(lambda c: c.sum() < 50, lambda c: c * c + 1, x, max_steps=9))
    return loop(numbers(3)).sum()


@program
def loops_without_rounds():
    def f(x):
        once = mg.while_loop(lambda c: c.sum() < -1e9, lambda c: c * 2, x, max_steps=3)
        return mg.scan(lambda c, v: (c + v, c * v), once.sum(), mg.zeros((0,)))

    last, each = mg.jit(f)(numbers(3))
    return last + each.sum()


@program
def a_gradient_of_a_jitted_loop():
    x = numbers(3)
    y = mg.jit(lambda x: mg.while_loop(lambda c: c.sum() < 50, lambda c: c * c + 1, x, max_steps=9).sum())(x)
    return mg.gradients(y, x, create_graph=True).sum()


@program
def jitted_dropout_in_a_loop():
    mg.random.seed(3)
    return mg.jit(lambda x: mg.fori_loop(0, 4, lambda i, c: mg.dropout(c * 1.5, 0.5), x))(numbers(8)).sum()


@program
def a_long_jitted_loop():
    return mg.jit(lambda x: mg.fori_loop(0, 5000, lambda i, c: c * 0.999, x))(numbers(3)).sum()


@program
def a_gradient_of_a_jitted_function():
    x = numbers(3)
    y = mg.jit(lambda x: (x**3).sum())(x)
    return (mg.gradients(y, x, create_graph=True) ** 2).sum()


@program
def an_eager_scan():
    last, each = mg.scan(lambda c, v: (mg.tanh(c + v), c * 2), mg.zeros(2), mg.ones((4, 2)) * numbers(2))
    return last.sum() + each.sum()


@program
def a_checkpoint():
    return mg.checkpoint(lambda x: mg.tanh(x) * x)(numbers(8)).sum()


@program
def a_custom_gradient():
    @mg.custom_vjp
    def cube(x):
        return x**3

    @cube.gradient
    def _(kept, g):
        return (g * 3 * kept[0] ** 2,)

    return cube(numbers(2)).sum()


@program
def several_results():
    values, places = mg.topk(numbers(5), 2)
    q, r = mg.linalg.qr(numbers(3, 3))
    return (values * places).sum() + q.sum() + r[0, 0]


@program
def local_tensors_that_are_gone():
    weights, table = numbers(34, 2), mg.asarray(np.eye(34, dtype=np.float32)[:, :20])
    return (mg.segment_sum(weights * 2 + table[:, :2], mg.arange(34) % 3, 3) ** 2).sum()


@program
def a_loop_of_physics():
    x, v, k = numbers(2), mg.zeros(2), mg.asarray(2.0, requires_grad=True)
    for _ in range(12):
        v = v - 0.1 * k * x
        x = x + 0.1 * v
    return (x * x).sum()


@program
def writes_through_views():
    y = numbers(4) * 1
    y[1:3] *= 2
    z = y.reshape((2, 2))
    z += 1
    return (y * z.reshape(4)).sum()


@program
def no_elements():
    return (numbers(0, 3) * 2).sum()


@program
def infinities_and_nan():
    return mg.log(mg.asarray([0.0, -1.0, 2.0], requires_grad=True)).sum()


@program
def a_thousand_operations():
    x = numbers(2)
    for i in range(500):
        x = mg.tanh(x) if i % 7 == 3 else x * 1.01 + 0.1
    return x.sum()


def seen(result, whole=True):
    """Go through the views of a tensor; whether its boxes have their numbers is in the stepper's recording."""
    mg.viz.graph(result)._repr_mimebundle_()
    mg.viz.graph(result, backward=True, values=True)._repr_mimebundle_()
    stepper = mg.viz.step(result)
    words, recording = stepper.text() + stepper.to_svg(), stepper.recording
    stepper.data()
    assert not recording.missing
    single = [node for node in recording.nodes if not isinstance(node.dtype, tuple)]
    assert [node.name for node in single if node not in recording.values] == []
    assert "project" not in words and " 1 results" not in words
    if whole and all(not value.nans for value in recording.values.values()):
        assert not any(step.value.nans for step in recording.steps)
    return stepper


@pytest.mark.parametrize("name", PROGRAMS)
def test_views_of_a_program(name, recwarn):
    with np.errstate(all="ignore"):
        result = PROGRAMS[name]()
    recwarn.clear()
    seen(result)
    assert [str(each.message) for each in recwarn] == []  # a look at a program repeats none of its warnings


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_end_with_the_gradients_of_backward(name):
    with np.errstate(all="ignore"):
        result = PROGRAMS[name]()
        stepper = mg.viz.step(result)
        result.backward()
    leaves = [node for node in stepper.recording.nodes if node.name == "leaf" and node.tensor() is not None]
    for leaf in leaves:
        total, wanted = stepper.totals[leaf], leaf.tensor().grad.numpy_copy()
        expected = float(wanted.min()), float(wanted.max())
        assert (total.least, total.most) == pytest.approx(expected, rel=1e-5, abs=1e-6, nan_ok=True)


def test_a_jitted_function_opens_into_its_operations():
    def layer(x):
        return mg.tanh(x * 2).sum()

    stepper = mg.viz.step(mg.jit(layer)(numbers(3)))
    assert [node.name for node in stepper.recording.nodes] == ["leaf", "multiply", "tanh", "sum"]
    assert {node.scope for node in stepper.recording.nodes[1:]} == {("layer",)}


def test_a_jitted_loop_opens_into_its_rounds():
    stepper = mg.viz.step(a_jitted_scan())
    scopes = [node.scope[-1] for node in stepper.recording.nodes if node.name == "tanh"]
    assert scopes == [f"round [{i}]" for i in range(5)]


def test_a_jitted_loop_lies_in_its_layer_and_two_loops_are_two_boxes():
    def twice(x):
        once = mg.fori_loop(0, 3, lambda i, c: mg.tanh(c), x)
        return mg.fori_loop(0, 2, lambda i, c: mg.sin(c), once * 2)

    stepper = mg.viz.step(mg.jit(twice)(numbers(3)).sum())
    scopes = {node.name: node.scope for node in stepper.recording.nodes}
    assert scopes["tanh"] == ("twice", "fori_loop", "round [2]")
    assert scopes["sin"] == ("twice", "fori_loop 2", "round [1]")
    model = mg.jit(nn.Sequential(nn.LSTM(5, 4)))
    stepper = mg.viz.step((model(mg.ones((3, 2, 5)))[0] ** 2).sum())
    scopes = {node.name: node.scope for node in stepper.recording.nodes}
    assert scopes["tanh"] == ("Sequential", "0", "scan", "round [2]")
    assert scopes["concat"] == ("Sequential", "0", "scan")


def test_two_calls_of_a_jitted_function_are_two_boxes():
    layer = mg.jit(mg.tanh)
    stepper = mg.viz.step(layer(layer(numbers(3)) * 2).sum())
    assert [node.scope for node in stepper.recording.nodes if node.name == "tanh"] == [("tanh",), ("tanh 2",)]


def test_rounds_of_a_layer_contain_what_is_made_of_each_round():
    result = (nn.LSTM(5, 4)(mg.ones((7, 2, 5)))[0] ** 2).sum()
    scene = with_rounds(scene_of(opened_order([result.node])))
    for name, count in (("reshape", 7), ("project", 7)):
        inside = [box.scope for box in scene.boxes if box.nodes[0].name == name and len(box.scope) > 1]
        assert len(inside) == len(set(inside)) == count
    two_layers = (nn.LSTM(5, 4, num_layers=2)(mg.ones((7, 2, 5)))[0] ** 2).sum()
    scene = with_rounds(scene_of(opened_order([two_layers.node])))
    sizes = Counter(box.scope for box in scene.boxes if box.scope[1:])
    assert len(sizes) == 14 and len(set(sizes.values())) == 1  # the loops of both layers are made in one line


@pytest.mark.parametrize("jit", [mg.jit, None], ids=["jit", "eager"])
def test_a_branch_that_ran_is_in_a_frame_with_what_was_asked_and_the_answer(jit):
    def f(x):
        s = x.sum()
        return mg.cond(s > 0, lambda x: x * x, lambda x: -x, x)

    run = jit(f) if jit else f
    for x, answer, operation in ((numbers(3), "true", "multiply"), (-numbers(3), "false", "negative")):
        x = mg.asarray(abs(x.detach()) if answer == "true" else -abs(x.detach()), requires_grad=True)
        stepper = mg.viz.step((run(x * 2) + 1).sum())
        boxes = [box for box in stepper.parts[0].scene.boxes if box.scope[-1:] == (f"s > 0 was {answer}",)]
        (node,) = [node for box in boxes for node in box.nodes]
        assert node.name == operation
        assert f">s &gt; 0 was {answer}<" in stepper.to_svg()


def test_branches_without_a_known_question_or_with_a_bool():
    x = mg.asarray(2.0, requires_grad=True)
    space = {"mg": mg, "x": x}
    exec("y = mg.cond(x > 0, lambda x: x * x, lambda x: x, x)", space)
    assert ">cond was true" in mg.viz.step(space["y"]).to_svg()
    y = mg.cond(*[x > 3, lambda x: x * x, lambda x: x * 3, x])
    assert ">cond was false" in mg.viz.step(y).to_svg()
    assert ">cond was" not in mg.viz.step(mg.cond(True, lambda x: x * x, lambda x: x, x)).to_svg()
    both = mg.asarray([1.0, -1.0], requires_grad=True)
    both = mg.vmap(lambda x: mg.cond(x > 0, lambda x: x * x, lambda x: -x, x))(both)
    assert ">cond was" not in mg.viz.step(both.sum()).to_svg()


def test_a_round_is_one_box_though_what_is_made_of_it_later_is_like_what_it_makes():
    def rounds(h, c):  # h becomes a row for the product, and a row of the result
        for _ in range(4):
            c = c * 0.9 + mg.tanh((h.reshape(1, 3) @ w).reshape(3))
            h = mg.sigmoid(c)
            yield h

    w = mg.ones((3, 3), requires_grad=True)
    result = mg.stack([*rounds(mg.ones(3, requires_grad=True), mg.ones(3, requires_grad=True))])
    frames = {box.scope for box in mg.viz.step((result * result).sum()).scenes[-1].boxes if box.scope}
    assert len(frames) == 4, frames


def test_a_loop_of_many_rounds_stays_one_box():
    stepper = mg.viz.step(a_long_jitted_loop())
    assert len(stepper.recording.nodes) < 12


@pytest.mark.slow
def test_looking_changes_nothing():
    x = numbers(3)
    y = mg.jit(lambda x: mg.tanh(x).sum())(x)
    before = y.node, y.node.op, y.node.inputs
    seen(y)
    assert (y.node, y.node.op, y.node.inputs) == before
    y.backward()
    np.testing.assert_allclose(x.grad.numpy_copy(), 1 - np.tanh(x.numpy_copy()) ** 2, rtol=1e-6)


def test_hooks_of_jitted_results_and_of_what_follows_are_called():
    x = numbers(3)
    y = mg.jit(mg.tanh)(x)
    z = y * 2
    for each in (y, z):
        each.register_hook(lambda g: g * 10)
    steps = mg.viz.step(z.sum())
    z.sum().backward()
    (leaf,) = [node for node in steps.recording.nodes if node.name == "leaf"]
    total, wanted = steps.totals[leaf], x.grad.numpy_copy()
    assert (total.least, total.most) == pytest.approx((wanted.min(), wanted.max()), rel=1e-5)


def test_large_values_that_are_gone_are_said_to_be():
    def f():
        x = mg.asarray(np.ones(100_000, np.float32), requires_grad=True)
        return (x + mg.ones(100_000)).sum()

    stepper = mg.viz.step(f())
    assert "was deleted" in stepper.recording.missing


@pytest.mark.slow
def test_histories_of_too_many_operations_are_refused_with_advice():
    x = numbers(2)
    for _ in range(25_500):
        x = x * 1.0001 + 0.1
    for view, most in ((mg.viz.step, "20,000"), (mg.viz.graph, "50,000")):
        words = f"51,002 operations are too many for a picture\n  Expected: at most {most}\n  Hint: fewer layers"
        with pytest.raises(mg.MinigradError, match=words):
            view(x.sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_views_of_a_layer(name):
    layer, arrays, _, options = built(name)
    inputs = [mg.asarray(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    seen(sum((mg.sin(out) * out).sum() for out in listed(layer(*inputs, **options)) if out.dtype.kind == "f"))


def differentiable(results):
    found = [r for r in (results if isinstance(results, (tuple, list)) else [results]) if getattr(r, "tracked", 0)]
    return sum((r.sum() for r in found[1:]), found[0].sum()) if found else None


@pytest.mark.parametrize("name", sorted(COMPOSED))
def test_views_of_a_composed_function(name):
    for sample in COMPOSED[name][:3]:
        inputs = [mg.asarray(a, requires_grad=a.dtype.kind == "f") for a in sample.arrays]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = differentiable(sample.call(mg, *inputs))
            if result is not None:
                seen(result, whole=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(op.name for op in P if op.name in SAMPLES and op.rules))
def test_views_of_a_primitive(name):
    for sample in SAMPLES[name][:3]:
        inputs = [
            mg.asarray(x, requires_grad=x.dtype.kind == "f") if isinstance(x, np.ndarray) else x for x in sample.inputs
        ]
        with np.errstate(all="ignore"):
            result = differentiable(emit(P[name], *inputs, **sample.attrs))
            if result is not None:
                seen(result, whole=False)


class Stop(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_views_of_an_example(name, monkeypatch):
    """The first loss of the example, before its backward pass."""

    def stop(tensor, *args, **kwargs):
        raise Stop(tensor)

    monkeypatch.setattr(mg.Tensor, "backward", stop)
    with pytest.raises(Stop) as stopped:
        mg.examples.run(name, quick=True)
    seen(stopped.value.args[0])
