"""What the layers of the engine do for each line of a program, and the picture of it."""

import minigrad as mg
from minigrad_course.units.u01_why_frameworks.layers import Counts, counted_lines, layers

LINES = ["y = mg.tanh(x @ W + b).sum()", "y.backward()", "optimizer.step()"]


def names():
    W, b = mg.ones((4, 3), requires_grad=True), mg.ones(3, requires_grad=True)
    return {"mg": mg, "x": mg.ones((5, 4)), "W": W, "b": b, "optimizer": mg.optim.SGD([W, b], lr=0.1)}


def test_lines_record_operations_call_rules_and_launch_kernels():
    forward, backward, step = counted_lines(LINES, names)
    assert (forward.recorded, forward.rules, forward.kernels) == (4, 0, 4)
    assert (backward.recorded, backward.rules, step.recorded, step.rules) == (0, 5, 0, 0)
    assert backward.kernels > backward.rules and step.kernels == 4 and all(each.calls > 10 for each in (backward, step))


def test_data_have_no_rule_and_without_weights_nothing_is_recorded():
    (line,) = counted_lines(["y = x @ x"], lambda: {"x": mg.ones((2, 2))})
    assert (line.recorded, line.rules, line.kernels) == (0, 0, 1)


def test_a_right_prediction_lights_its_place_and_a_wrong_one_hides_the_number():
    book = layers(["y = a * a"], [Counts(1, 0, 1, 9)], {(0, "recorded"): 1, (0, "rules"): 2}, hidden=True)
    assert book.pages[0][0].say == "1 of 2 predictions light their layer."
    assert "gradient rules called: ?" in book.text() and "operations recorded: 1" in book.text()
    assert "rules called: 0" in layers(["y"], [Counts(1, 0, 1, 9)], {(0, "rules"): 2}).text()


def test_dots_are_no_prediction_and_calls_can_be_left_out():
    book = layers(["y = a * a"], [Counts(1, 0, 1, 9)], {(0, "recorded"): ...}, calls=False)
    assert book.pages[0][0].say == "Predict a number to light its layer." and "Python" not in book.text()
