"""The student's code in the real engine: it runs, right or wrong, and is removed after the block."""

import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.autodiff import reverse
from minigrad.core.mode import current_mode
from minigrad.core.node import topological_order
from minigrad.core.override import OVERRIDES
from minigrad_course.feedback import Misused
from minigrad_course.results import Progress
from minigrad_course.session import SESSION


def mul_grad(g, out, a, b):
    return g * b, g * a


def example():
    x = mg.asarray(1.0, requires_grad=True)
    a = 2 * x
    return x, a * a + a


def gradient():
    x, y = example()
    y.backward()
    return x.grad.item()


def test_a_dispatcher_chooses_the_kernels_of_all_operations():
    calls = []

    def dispatch(op, inputs, table):
        calls.append(op)
        devices = {x.device for x in inputs if isinstance(x, mg.Tensor)}
        if len(devices) > 1:
            raise ValueError(f"my words: {devices}")
        return table[devices.pop()][op]

    x = mg.asarray([0.5, 1.0], requires_grad=True)
    with course.dispatcher(dispatch) as mine:
        y = mg.tanh(x) * mg.asarray([1, 2])  # with a cast, which is an operation too
        y.sum().backward()
        with pytest.raises(ValueError, match="my words"):
            x + mg.ones(2, device="cpu:1")
        assert mg.ones(1 << 17).sum().item() == 1 << 17
    assert calls[:3] == ["tanh", "multiply", "astype"] and mine.calls == len(calls)
    assert x.grad.tolist() == pytest.approx([1 - math.tanh(0.5) ** 2, 2 - 2 * math.tanh(1.0) ** 2])
    mg.tanh(x)
    assert mine.calls == len(calls)


def test_a_dispatcher_that_chooses_another_kernel_is_obeyed_and_no_kernel_is_an_error():
    x = mg.asarray([0.5, -1.0])
    with course.dispatcher(lambda op, inputs, table: table["cpu"]["negative"]):
        assert mg.tanh(x).tolist() == [-0.5, 1.0]
    with course.dispatcher(lambda op, inputs, table: None), pytest.raises(Misused, match="returned None for tanh"):
        mg.tanh(x)


def test_a_rule_is_what_the_engine_uses_and_only_in_the_block():
    with course.rule("multiply", lambda g, out, a, b: (g * b * 10, g * a)) as mine:
        assert gradient() > 40
    assert mine.calls > 0 and gradient() == 10
    with course.rule("multiply", mul_grad) as mine:
        assert gradient() == 10
    assert repr(mine) == "<mul_grad in the engine, called 3 times>"


def test_a_rule_that_fails_leaves_the_engine_as_it_was():
    with pytest.raises(ZeroDivisionError), course.rule("multiply", lambda g, out, a, b: 1 / 0):
        gradient()
    assert gradient() == 10


def test_a_rule_of_one_value_for_two_inputs_is_refused():
    with pytest.raises(Misused, match=r"returned 2.0, but multiply has 2 inputs\n  Hint: return one"):
        with course.rule("multiply", lambda g, out, a, b: g * b):
            gradient()


def my_backward(result, gradients, passes_back):
    for node in reversed(topological_order([result])):
        if node in gradients:
            for source, value in passes_back(node, gradients[node]):
                gradients[source] = value if source not in gradients else gradients[source] + value


def test_a_walk_of_the_students_is_what_backward_and_the_pictures_use():
    with course.backward(my_backward) as mine:
        assert gradient() == 10
        assert mine.calls == 1
        x, y = example()
        steps = mg.viz.step(y).steps
        assert mg.gradients(y, x).item() == 10
    assert [step.total.short() for step in steps if step.target is x.node] == ["10"]
    assert mine.calls == 3 and gradient() == 10


def test_a_walk_that_loses_contributions_gives_wrong_gradients():
    def forgetful(result, gradients, passes_back):
        for node in reversed(topological_order([result])):
            gradients |= dict(passes_back(node, gradients[node]))

    with course.backward(forgetful):
        assert gradient() == 4
        steps = mg.viz.step(example()[1]).steps
    assert gradient() == 10
    assert [step.total.short() for step in steps] == ["1", "1", "1", "2", "4"]  # nothing is added, as one can see


def test_a_walk_that_reads_a_gradient_too_early_is_explained():
    def early(result, gradients, passes_back):
        gradients[topological_order([result])[0]]

    def mistaken(result, gradients, passes_back):
        {}["some other key"]

    with course.backward(early), pytest.raises(Misused, match="reads the gradient of leaf before any contribution"):
        gradient()
    with course.backward(mistaken), pytest.raises(KeyError, match="some other key"):
        gradient()


def test_a_walk_of_the_students_goes_through_the_operations_of_a_call_that_ran_as_one_program():
    layer, x = mg.nn.Linear(20, 300), mg.random.normal((512, 20))
    target = mg.arange(512) % 300
    for loss in (lambda: mg.cross_entropy(layer(x), target), lambda: mg.mean(mg.softmax(layer(x), axis=-1) ** 2)):
        with mg.eager_programs(True):
            value = loss()
        expected = mg.gradients(value, layer.weight, retain_graph=True)
        with course.backward(my_backward):
            assert np.allclose(mg.gradients(value, layer.weight), expected, atol=1e-7)


def test_the_picture_shows_what_was_put_in_and_when():
    """Of a walk that goes straight on, x is sent to before the product has sent to a."""
    with course.backward(course.impatient):
        x = mg.asarray(1.0, requires_grad=True)
        a = 2 * x
        y = a + a * a
        steps = [(step.kind, step.total.short()) for step in mg.viz.step(y).steps if step.target in (a.node, x.node)]
    assert steps == [("pass", "1"), ("pass", "2"), ("pass", "1"), ("sum", "3"), ("pass", "3"), ("sum", "5")]


def test_backward_of_the_student_frees_saved_values():
    with course.backward(my_backward):
        y = example()[1]
        y.backward()
        with pytest.raises(mg.GradError, match="a second time"):
            y.backward()


@pytest.mark.slow
def test_backward_of_the_student_runs_on_a_deep_graph():
    with course.backward(my_backward):
        x = mg.asarray(1.0, requires_grad=True)
        y = x
        for _ in range(10_000):
            y = y + 0.0
        y.backward()
    assert x.grad.item() == 1


def test_a_pass_of_the_students_is_one_of_the_compilers(numpy_kernels):
    seen = []

    def dead(graph, note):
        seen.append(len(graph))
        return graph

    with course.compiler_pass("dead", dead) as mine:
        assert mg.jit(lambda x: x * 1.0 + 0.0 * x)(mg.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert seen and mine.calls == len(seen)
    with pytest.raises(Misused, match="one of simplify, fold_views, common, dead"), course.compiler_pass("alive", dead):
        pass


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (lambda steps: [[0]], "every step exactly once"),
        (lambda steps: [[step.number for step in steps]], "which it waits for"),
        (lambda steps: [[step.number] for step in reversed(steps)], "which it waits for"),
    ],
)
def test_an_order_that_cannot_be_is_refused(order, says, numpy_kernels):
    with pytest.raises(Misused, match=says), course.scheduler(order):
        mg.jit(lambda x: (x @ x).sum())(mg.ones((2, 2)))


@pytest.mark.slow
def test_the_digits_are_learnt_with_the_students_rule(monkeypatch):
    monkeypatch.setattr(SESSION, "progress", Progress())
    SESSION.progress.student = "Ada"
    with course.rule("multiply", mul_grad) as mine:
        trained = course.train_digits(mine)
    assert trained.right > 0.93 * trained.shown
    assert repr(trained).startswith("Ada: with mul_grad, called ") and mine.calls > 100
    forms = trained._repr_mimebundle_()
    assert forms["text/plain"] == repr(trained) and "<image " in forms["image/svg+xml"]
    assert len(trained.losses) == 5 * 23 and trained.losses[-1] < 0.3 < trained.losses[0]
    begin, end = (int(n) for n in re.findall(r"(\d+) of 360 pictures are read", trained.picture.text()))
    assert begin < 60 and end == trained.right
    with course.rule("multiply", lambda g, out, a, b: (g * a, g * b)) as wrong:
        assert course.train_digits(wrong, epochs=2).right < trained.right


# ---- recording, and the order of nodes -------------------------------------------------------------------------------


def emit(op, inputs):
    values = [x.data if isinstance(x, mg.Tensor) else x for x in inputs]
    return op.compute(values), [x.node if isinstance(x, mg.Tensor) else x for x in inputs]


def turned(op, inputs):
    value, edges = emit(op, inputs)
    return value, edges[::-1]


def test_an_emit_of_the_students_computes_and_records_every_operation():
    with course.emitter(emit) as mine:
        assert gradient() == 10
        with mg.no_grad():
            assert (mg.ones(2) + 1).tolist() == [2.0, 2.0]
        parts = mg.split(mg.asarray([1.0, 2.0, 3.0], requires_grad=True), 3)
        assert [part.item() for part in parts] == [1.0, 2.0, 3.0]
    assert mine.calls >= 4 and gradient() == 10


def test_an_order_of_the_students_leads_the_backward_pass_and_the_pictures():
    def order(result):
        return topological_order([result])  # the engine's own, while the function runs

    with course.node_order(order) as mine:
        assert gradient() == 10
        assert mg.viz.graph(example()[1]).to_svg().count("<g class=\"mg-box") == 4
    assert mine.calls == 2

    with course.node_order(lambda result: order(result)[::-1]):
        x, y = example()
        y.backward()
    assert x.grad is None and gradient() == 10


def test_edges_that_are_turned_change_gradients_and_not_values():
    def gradient(function):
        with course.emitter(function):
            x, w = mg.asarray(3.0, requires_grad=True), mg.asarray(5.0, requires_grad=True)
            y = x - w
            y.backward()
        return y.item(), x.grad.item(), w.grad.item()

    assert gradient(emit) == (-2, 1, -1) and gradient(turned) == (-2, -1, 1)


@pytest.mark.parametrize("function", [lambda result: None, lambda result: [result.name]])
def test_an_order_that_is_not_a_list_of_nodes_is_refused(function):
    x = mg.asarray(3.0, requires_grad=True)
    with pytest.raises(Misused, match="return a list of nodes"), course.node_order(function):
        (x * x).backward()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda op, inputs: op.compute([2.0, 3.0]), "return value, edges"),
        (lambda op, inputs: (op.compute([2.0, 3.0]), []), "has 2 inputs, and its node got"),
        (lambda op, inputs: (op.compute([2.0, 3.0]), inputs), "the node of a tensor, or a number"),
        (lambda op, inputs: (op.compute(inputs), []), "the value of a tensor x is x.data"),
        (lambda op, inputs: (op.compute([2.0]), []), "compute got 1 value, and multiply has 2 inputs"),
        (lambda op, inputs: (op.compute([2.0, 3.0]), [1.0, inputs[0].node]), "in the order of the inputs"),
    ],
)
def test_an_emit_that_returns_something_else_is_refused(function, words):
    x = mg.asarray(3.0, requires_grad=True)
    with pytest.raises(Misused, match=words), course.emitter(function):
        _ = x * x


def failing_walk(*args, **options):
    raise SystemError("no backward pass today")


def in_a_thread(function):
    outcome = []
    thread = threading.Thread(target=lambda: outcome.append(function()))
    thread.start()
    thread.join(60)
    return outcome


def test_swap_replaces_a_function_for_all_its_callers_and_only_in_the_block():
    with course.swap(reverse.walk, failing_walk):
        for differentiate in (gradient, lambda: mg.grad(lambda x: x * x)(mg.asarray(1.0))):
            with pytest.raises(SystemError):
                differentiate()
    assert gradient() == 10


def test_swap_refuses_a_function_that_nothing_looks_up():
    with pytest.raises(Misused, match=r"gradient: this function cannot be replaced\n  Hint: declare it with @overrid"):
        course.swap(gradient, failing_walk)


@pytest.mark.parametrize(
    "block",
    [
        lambda: course.rule("multiply", lambda g, out, a, b: (g, g)),
        lambda: course.backward(lambda result, gradients, passes_back: None),
        lambda: course.swap(reverse.walk, failing_walk),
    ],
    ids=["rule", "backward", "swap"],
)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_override_is_for_one_thread_and_ends_with_an_exception(block, error):
    with pytest.raises(error), block():
        assert in_a_thread(gradient) == [10]
        raise error
    assert gradient() == 10 and not OVERRIDES.get() and current_mode().interpreter is None


def test_rules_in_two_threads_do_not_meet():
    def with_rule(factor):
        def work():
            with course.rule("multiply", lambda g, out, a, b: (g * b * factor, g * a * factor)):
                ready.wait(60)
                found = gradient()
                ready.wait(60)
                return found

        return work

    ready = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        assert [each.result(60) for each in [pool.submit(with_rule(f)) for f in (1, 3)]] == [10, 78]


def test_a_rule_of_the_students_is_used_in_graph_mode_and_for_calls_of_jitted_functions():
    square = mg.jit(lambda x: x * x)
    x = mg.asarray(3.0, requires_grad=True)
    square(x).backward()
    with course.rule("multiply", lambda g, out, a, b: (g * 10, g * 10)):
        x.grad = None
        square(x).backward()
        assert x.grad.item() == 20
        with mg.graph():
            x.grad = None
            (x * x).backward()
            assert x.grad.item() == 20


def test_a_rule_of_arrays_may_return_a_gradient_of_the_inputs_shape():
    """It is not summed a second time, and a gradient of the result's shape is still summed by the engine."""
    X, b = mg.ones((4, 3)), mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    for add_grad in (lambda g, out, x, y: (g, g.sum(0)), lambda g, out, x, y: (g, g), lambda g, out, x, y: (1.0, 1.0)):
        b.grad = None
        with course.rule("add", add_grad):
            (X + b).sum().backward()
        assert b.grad.tolist() == [4.0, 4.0, 4.0]


def test_a_rule_of_a_matrix_product_returns_gradients_of_the_inputs_shapes():
    x, w = mg.ones((4, 3)), mg.ones((3, 2), requires_grad=True)
    with course.rule("matmul", lambda g, out, a, b: (g @ b.T, a.T @ g)) as mine:
        (x @ w).sum().backward()
    assert w.grad.tolist() == [[4.0, 4.0]] * 3 and mine.calls == 1
    with course.rule("matmul", lambda g, out, a, b: (g @ b.T, g)), pytest.raises(
        Misused, match=r"is not a gradient of shape \(3, 2\)"
    ):
        (x @ w).sum().backward()


def test_a_rule_of_one_input_may_return_its_gradient_without_a_comma():
    for tanh_grad in (lambda g, out, x: g * 0.5, lambda g, out, x: (g * 0.5,)):
        x = mg.asarray(2.0, requires_grad=True)
        with course.rule("tanh", tanh_grad):
            mg.tanh(x).backward()
        assert x.grad.item() == 0.5


def test_a_forward_rule_runs_in_jvp_and_only_inside_of_its_block():
    def mul_jvp(a, b, da, db):
        return 10 * (da * b + a * db)

    def change():
        return mg.jvp(lambda x: 2 * x * x, (mg.asarray([1.0, 3.0]),), (mg.ones(2),))[1].tolist()

    with course.forward_rule("multiply", mul_jvp) as mine:
        assert change() == [220.0, 660.0] and mine.calls == 2
    assert change() == [4.0, 12.0]


def test_a_forward_rule_that_returns_another_shape_is_named():
    with course.forward_rule("multiply", lambda a, b, da, db: mg.ones(7)), pytest.raises(
        Misused, match=r"is not a tangent of shape \(2,\)"
    ):
        mg.jvp(lambda x: x * x, (mg.ones(2),), (mg.ones(2),))
