"""The student's code in the real engine: it is what runs, wrong or right, and is gone afterwards."""

import pytest

import minigrad as mg
from minigrad import course
from minigrad.core.node import topological_order
from minigrad.course.feedback import Misused
from minigrad.course.results import Progress
from minigrad.course.session import SESSION


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
    with pytest.raises(Misused, match="multiply has 2 inputs: a gradient for each"):
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


def test_a_walk_that_asks_too_early_is_told_what_for():
    def early(result, gradients, passes_back):
        gradients[topological_order([result])[0]]

    def mistaken(result, gradients, passes_back):
        {}["some other key"]

    with course.backward(early), pytest.raises(Misused, match="asks for the gradient of leaf before anything has come"):
        gradient()
    with course.backward(mistaken), pytest.raises(KeyError, match="some other key"):
        gradient()


def test_the_picture_shows_what_was_put_in_and_when():
    """Of a walk that goes straight on, x is sent to before the product has sent to a."""
    with course.backward(course.impatient):
        x = mg.asarray(1.0, requires_grad=True)
        a = 2 * x
        y = a + a * a
        steps = [(step.kind, step.total.short()) for step in mg.viz.step(y).steps if step.target in (a.node, x.node)]
    assert steps == [("pass", "1"), ("pass", "2"), ("pass", "1"), ("sum", "3"), ("pass", "3"), ("sum", "5")]


def test_what_was_kept_is_let_go_after_a_walk_of_the_students():
    with course.backward(my_backward):
        y = example()[1]
        y.backward()
        with pytest.raises(mg.GradError, match="a second time"):
            y.backward()


def test_it_is_the_students_walk_for_a_deep_graph():
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


def test_the_digits_are_learnt_with_the_students_rule(monkeypatch):
    monkeypatch.setattr(SESSION, "progress", Progress())
    SESSION.progress.student = "Ada"
    with course.rule("multiply", mul_grad) as mine:
        trained = course.train_digits(mine)
    assert trained.right > 0.93 * trained.shown
    assert repr(trained).startswith("Ada: with mul_grad, called ") and mine.calls > 100
    with course.rule("multiply", lambda g, out, a, b: (g * a, g * b)) as wrong:
        assert course.train_digits(wrong, epochs=2).right < trained.right


def test_a_function_is_swapped_in_its_own_room_too():
    from minigrad import autodiff
    from minigrad.autodiff import reverse
    from minigrad.course.swapping import swap

    before = autodiff.walk

    def walk(*args, **options):
        raise SystemError("nobody home")

    with swap(reverse.walk, walk), pytest.raises(SystemError):
        mg.grad(lambda x: x * x)(mg.asarray(1.0))
    assert autodiff.walk is before
