"""Answers of real newcomers to unit 01, in addition to the declared mistakes: each gets feedback that helps."""

import numpy as np
import pytest

from minigrad_course.unit import units
from minigrad_course.units.u01_why_frameworks import demo
from minigrad_course.units.u01_why_frameworks.by_hand import (
    ACTIVATIONS,
    LONG,
    OTHER,
    SIGMOID,
    TANH,
    changes,
    pair,
    train,
)
from minigrad_course.units.u01_why_frameworks.systems import PROGRAMS, runs, systems
from tests.course.running import said_to

HEAD = """import numpy as np
def {name}(x, t, W, b, V, c):
    z = x @ W + b
    h = {act}
    e = np.exp(h @ V + c)
    p = e / e.sum(1, keepdims=True)
    do = (p - t) / len(x)
"""
GRADIENTS = {
    "as in the lecture": ("dV, dc = h.T @ do, do.sum(0)\n    dz = (do @ V.T) * (1 - h**2)\n"
                          "    return x.T @ dz, dz.sum(0), dV, dc", "✓"),
    "with np.dot and np.sum": ("dz = np.dot(do, V.T) * (1 - np.square(h))\n    return np.dot(x.T, dz), "
                               "np.sum(dz, axis=0), np.dot(h.T, do), np.sum(do, axis=0)", "✓"),
    "as a list": ("dz = do @ V.T * (1 - h * h)\n    return [x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)]", "✓"),
    "without slope": ("dz = do @ V.T\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)", "slope of tanh is missing"),
    "by the input": ("dz = do @ V.T * (1 - z * z)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)",
                     "reads the output"),
    "1 - h": ("dz = do @ V.T * (1 - h)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)", "1 - h is not"),
    "tanh again": ("dz = do @ V.T * (1 - np.tanh(h) ** 2)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)",
                   "already the tanh"),
    "the wrong product": ("dz = do @ V * (1 - h * h)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)",
                          "Write the shapes"),
    "place by place": ("dz = do * V.T * (1 - h * h)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)",
                       "What needs `@`"),
    "not turned": ("dz = do @ V.T * (1 - h * h)\n    return x @ dz, dz.sum(0), h @ do, do.sum(0)", "Write the shapes"),
    "biases as tables": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz, h.T @ do, do", "add over the pictures"),
    "biases as numbers": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz.sum(), h.T @ do, do.sum()",
                          "its own gradient"),
    "biases by rows": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz.sum(1), h.T @ do, do.sum(1)",
                       "one number for each picture"),
    "biases as means": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz.mean(0), h.T @ do, do.mean(0)",
                        "sum over pictures"),
    "one bias as a table": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz, h.T @ do, do.sum(0)",
                            "add over the pictures"),
    "the second bias as a mean": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.mean(0)",
                                  "sum over pictures"),
    "a bias with two axes": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz.sum(0, keepdims=True), h.T @ do, "
                             "do.sum(0)", "without keepdims"),
    "W from dh": ("dh = do @ V.T\n    dz = dh * (1 - h * h)\n    return x.T @ dh, dz.sum(0), h.T @ do, do.sum(0)",
                  "x.T @ dz"),
    "b from dh": ("dh = do @ V.T\n    dz = dh * (1 - h * h)\n    return x.T @ dz, dh.sum(0), h.T @ do, do.sum(0)",
                  "To b comes dz"),
    "W turned": ("dz = do @ V.T * (1 - h * h)\n    return dz.T @ x, dz.sum(0), h.T @ do, do.sum(0)", "the shape of W"),
    "the first layer only": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, dz.sum(0)", "V and c have gradients"),
    "h * h": ("dz = do @ V.T * h * h\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)", "1 is missing"),
    "divides dh": ("dz = do @ V.T / len(x) * (1 - h * h)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)",
                   "dh comes from do"),
    "no biases": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz, h.T @ do", "biases have gradients too"),
    "in the order of the steps": ("dz = do @ V.T * (1 - h * h)\n    return h.T @ do, do.sum(0), x.T @ dz, dz.sum(0)",
                                  "first layer comes first"),
    "one gradient": ("dz = do @ V.T * (1 - h * h)\n    return x.T @ dz", "return dW, db, dV, dc"),
    "a dictionary": ("dz = do @ V.T * (1 - h * h)\n    return {'W': x.T @ dz}", "return dW, db, dV, dc"),
    "minus": ("dz = -do @ V.T * (1 - h * h)\n    return x.T @ dz, dz.sum(0), -h.T @ do, -do.sum(0)", "the sign"),
    "divides again": ("do = do / len(x)\n    dz = do @ V.T * (1 - h * h)\n"
                      "    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)", "Do not divide again"),
    "with W in place of V": ("dz = do @ W.T * (1 - h * h)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)",
                             "Write the shapes"),
    "a missing name": ("return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)", "compute it in a line above"),
    "updates": ("W -= 0.5 * x.T @ (do @ V.T * (1 - h * h))", "return dW, db, dV, dc"),
    "updates in the wrong shape": ("W -= 0.5 * x.T @ do", "or `.T`"),
    "a wrong sign": ("dz = do @ V.T * (h * h - 1)\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)",
                     "right: the gradient of V, the gradient of c"),
    "twice as large": ("dz = do @ V.T * (1 - h * h)\n    return 2 * x.T @ dz, 2 * dz.sum(0), h.T @ do, do.sum(0)",
                       "what is wrong is 2 times the right result"),
    "a weight is written": ("dz = do @ V.T * (1 - h * h)\n    W *= 0\n"
                            "    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)", "it writes into"),
    "only the last layer": ("return 0 * W, 0 * b, h.T @ do, do.sum(0)", "line by line"),
}


@pytest.mark.parametrize("which", GRADIENTS)
def test_feedback_on_gradients_by_hand(which):
    body, words = GRADIENTS[which]
    assert words in said_to(HEAD.format(name="mlp_grad", act="np.tanh(z)") + f"    {body}\n", "mlp_grad")


@pytest.mark.parametrize(
    ("act", "slope", "words"),
    [
        ("z / (1 + np.exp(-z))", "(lambda s: s * (1 + z * (1 - s)))(1 / (1 + np.exp(-z)))", "✓"),
        ("z / (1 + np.exp(-z))", "(1 - h * h)", "the forgotten line"),
        ("np.tanh(z)", "(lambda s: s * (1 + z * (1 - s)))(1 / (1 + np.exp(-z)))", "must change too"),
        ("np.tanh(z)", "(1 - h * h)", "two lines must change"),
        ("z / (1 + np.exp(-z))", "(lambda s: s * (1 + h * (1 - s)))(1 / (1 + np.exp(-h)))", "You gave it h"),
        ("z / (1 + np.exp(-z))", "h", "not times the activation"),
        ("z / (1 + np.exp(-z))", "1", "the slope is missing"),
        ("z / (1 + np.exp(-z))", "s", "compute it in a line above, as the task says"),
        ("z / (1 + np.exp(-z))", "h / z * (1 - h / z)", "the slope of the sigmoid"),
        ("z / (1 + np.exp(-z))", "h / z * (1 + h * (1 - h / z))", "One place has h"),
        ("z / (1 + np.exp(-z))", "(lambda s: s * (1 + z * (1 - s)))(1 / (1 + np.exp(-h)))", "s is a function of z"),
        ("z / (1 + np.exp(-z))", "h / z * (1 + z * (1 - h / z)) * (1 - h * h)", "two slopes"),
    ],
)
def test_feedback_on_another_activation(act, slope, words):
    body = f"    dz = do @ V.T * {slope}\n    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)\n"
    assert words in said_to(HEAD.format(name="swapped_grad", act=act) + body, "swapped_grad")


PARTS = {
    "a loop": ("total, n = 0, 0\n    for count, g in parts:\n        total, n = total + count * g, n + count\n"
               "    return total / n", "✓"),
    "np.average": ("return np.average([g for _, g in parts], axis=0, weights=[n for n, _ in parts])", "✓"),
    "np.mean": ("return np.mean([g for _, g in parts], axis=0)", "counts more than"),
    "a sum": ("return sum(g for n, g in parts)", "a sum of means is not a mean"),
    "not divided": ("return sum(n * g for n, g in parts)", "divide by the number of all pictures"),
    "divided by the parts": ("return sum(n * g for n, g in parts) / len(parts)", "not by the number of parts"),
    "swapped": ("return sum(n * g for g, n in parts) / sum(n for g, n in parts)", "the count is the first"),
    "by the last count": ("total = 0\n    for n, g in parts:\n        total += n * g\n    return total / n",
                          "the count of one part"),
    "divided by the counts": ("return sum(g / n for n, g in parts) / sum(n for n, g in parts)", "multiply by it"),
    "a mean of all numbers": ("return np.mean([g for n, g in parts])", "without axis=0"),
    "np.average without an axis": ("return np.average([g for n, g in parts], weights=[n for n, g in parts])", "axis=0"),
    "as in the demo": ("return parts.reduce(lambda a, b: a + b)", "a list of pairs"),
    "both sums": ("return sum(n * g for n, g in parts), sum(n for n, g in parts)", "return one gradient"),
    "returns in the loop": ("for n, g in parts:\n        return n * g / n", "inside the loop"),
    "pairs averaged": ("return np.average(parts, weights=[n for n, _ in parts])", "Average the gradients alone"),
    "three names": ("for i, n, g in parts:\n        pass\n    return g", "each part is a pair"),
}


@pytest.mark.parametrize("which", PARTS)
def test_feedback_on_gradients_of_parts(which):
    body, words = PARTS[which]
    assert words in said_to(f"import numpy as np\ndef whole_gradient(parts):\n    {body}", "whole_gradient")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('forgotten_line = "More"', "✓"),
        ('forgotten_line = "an error"', "What could Python complain about"),
        ("forgotten_line = 300", "has another form"),
        ("lines_to_change = 1", "right for tanh only"),
        ("lines_to_change = 2", "✓"),
        ("new_layer = 2", "The library has 5"), ("new_layer = 'ten'", "✓"),
        ('layers_row = ["Yes", "no", "no", "no", "no", "no"]', "✓"),
        ('layers_row = ["yes", "yes", "no", "no", "no", "no"]', "A function of yours has none"),
        ('layers_row = "yes"', "six words in brackets"),
        ('layers_row = [True, False, False, False, False, False]', "✓"),
        ('layers_row = "yes no no no no no"', "✓"),
        ('layers_row = [1, 0, 0, 0, 0, 1]', "program 6"),
        ('layers_row = ["yes", "no"]', "six words in brackets"),
        ('parallel_row = ["no", "no", "no", "no", "no", "yes"]', "the lecture's row"),
        ('layers_row = ["yes", "no", "no", "no", "no", "yes"]', "program 6"),
        ('layers_row = ["yes", "no", "yes", "yes", "no", "no"]', "program 3"),
        ('layers_row = ["y", "n", "n", "n", "n", "n"]', "✓"),
        ('layers_row = ["no", "no", "no", "no", "no", "yes"]', "program 1"),
        ('parallel_row = ["no", "no", "no", "no", "yes", "yes"]', "program 3"),
        ('parallel_row = ["no", "no", "yes", "no", "yes", "yes"]', "not several kinds of processors"),
        ("twice_in_chain = [5, 5]", "assigns `self.dW` at each use"), ("twice_in_chain = [5, 1]", "✓"),
        ("twice_in_chain = [1, 1]", "from each use"), ("twice_in_chain = [2, 1]", "Part 2 of 2"),
        ("line_counts = [5, 0, 5]", "`+` has two inputs"),
        ("line_counts = (5, 0, 6)", "✓"),
        ("line_counts = [5, 8, 6]", "a record would serve"),
        ("line_counts = [5, 0, 3]", "rules: go back from"),
        ("line_counts = [7, 0, 6]", "each operator and each function"),
        ("line_counts = 5", "A rule for each input"),
        ("line_counts = '5 and 0 and 6'", "✓"),
        ('components = {"A": "l", "B": "H", "C": "B", "D": "N"}', "✓"),
        ('components = {"A": "N", "B": "H", "C": "B", "D": "L"}', "nn.Linear owns weights"),
        ('components = {"A": "L", "B": "L", "C": "B", "D": "N"}', "names a processor"),
        ('components = "LHBN"', "✓"),
        ('components = {"a": "linear algebra", "b": "hardware", "c": "backpropagation", "d": "networks"}', "✓"),
        ('components = ["L", "L", "B", "N"]', "names a processor"),
        ('components = {"A": "L"}', "each letter once"),
        ('last_python = "numpy.tanh"', "one of"),
        ('last_python = "the kernel"', "✓"),
        ('last_python = "primitive"', "a record"),
        ('forgotten_line = "error"', "What could Python complain about"),
        ("lines_to_change = ['h', 'dz']", "one number"),
        ("petabyte = 560", "that is in hours"),
        ("petabyte = 2e6 / 3600", "that is in hours"),
        ("petabyte = 20", "not 100,000"),
        ("petabyte = 23148", "a thousand times too long"),
        ("petabyte = 23.1", "✓"),
        ("petabyte = 23", "✓"),
        ("petabyte = 24", "✓"),
        ("petabyte = 12", "for 1 PB"),
        ("petabyte = 2e6 / 86400", "✓"),
        ("stack_counts = 4", "four numbers"),
        ("stack_counts = [4, 4, 0, 6]", "x is data"),
        ("stack_counts = [4, 4, 4, 5]", "records nothing"),
        ("stack_counts = [4, 1, 0, 5]", "launches a kernel"),
        ("stack_counts = [2, 2, 0, 2]", "recorded by line 1"),
        ("stack_counts = [4, 4, 8, 5]", "records nothing"),
        ("stack_counts = [4, 4, 0, 2]", "rules: go back"),
        ("step_gain = 100 / 42.857", "✓"),
        ("step_gain = 0.43", "as a part of the old one"),
        ("step_gain = 0.57", "time that is saved"),
        ("step_gain = 12", "a share times a factor"),
        ("step_gain = 1 / (0.6 + 0.02)", "the Python part faster"),
        ("step_gain = 20", "takes as long as before"),
    ],
)
def test_questions_of_why_frameworks(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_six_programs_run_on_the_framework_and_the_other_rows_are_as_the_questions_say():
    class Chain:
        def __init__(self, *layers):
            self.layers = layers

        def forward(self, x):
            return np.ones((5, 10))

    class Parts:
        def __init__(self, parts):
            self.parts = parts

        def map(self, f):
            return Parts([f(part) for part in self.parts])

        def reduce(self, f):
            return f(f(*self.parts[:2]), self.parts[2])

    offered = systems(Chain, lambda *sizes: sizes, lambda: None, Parts)
    rows = [["yes" if runs(each, offers) else "no" for each in PROGRAMS.values()] for offers in offered.values()]
    tasks = units()["01_why_frameworks"].tasks
    assert rows == [tasks["layers_row"].right_value, tasks["parallel_row"].right_value, ["yes"] * 6]


def test_a_recorded_prediction_lights_its_place():
    picture = demo.LineCounts().stack
    assert "Predict a number" in picture().pages[0][0].say
    said_to("line_counts = [5, 4, 6]", "line_counts")
    assert "2 of 3" in picture().pages[0][0].say
    said_to("line_counts = [5, 0, 6]", "line_counts")
    assert "3 of 3" in picture().pages[0][0].say


@pytest.mark.parametrize("name", [*ACTIVATIONS, "sigmoid"])
def test_a_gradient_by_hand_trains_like_the_engine_and_a_forgotten_line_does_not(name):
    activation = {**ACTIVATIONS, "sigmoid": SIGMOID}[name]
    engine, hand = train(activation, steps=5), train(activation, pair(activation, activation), 5)
    assert hand.losses == pytest.approx(engine.losses, rel=1e-4) and hand.swapped.calls == 5
    assert train(activation, pair(activation, TANH), 5).losses[1:] != pytest.approx(engine.losses[1:], rel=1e-6)


@pytest.mark.slow
def test_the_same_forgotten_line_destroys_one_network_and_does_not_show_in_another():
    relu, sin = (train(ACTIVATIONS[name], pair(ACTIVATIONS[name], TANH), LONG).right for name in ("relu", "sin"))
    assert relu < 100 and sin > 340
    assert all(OTHER[OTHER[name]] == name for name in ACTIVATIONS) and set(OTHER) == set(ACTIVATIONS)


def test_changed_lines_are_counted():
    def old(x):
        return x * 2

    def new(x):
        return x * 3

    assert changes(old, new).endswith("1 line changed by hand.")
