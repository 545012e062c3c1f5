"""Answers of real newcomers to unit 09, in addition to the declared mistakes: each gets feedback that helps."""

from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.core.primitive import P
from minigrad_course import erf, exp, sqrt
from minigrad_course.unit import units
from minigrad_course.units.u09_eager_costs import gpt, train_gpt
from minigrad_course.units.u09_eager_costs.demo import ELEMENTWISE, PYTORCH
from minigrad_course.units.u09_eager_costs.in_registers import traffic
from minigrad_course.views.costs import passes
from tests.course.running import said_to

TASKS = units()["09_eager_costs"].tasks
HEAD = "import math\nimport numpy as np\nfrom math import pi\nfrom minigrad_course import erf, exp, sqrt, tanh, where\n"
PHI = "(1 + erf(a / sqrt(2))) / 2"
GELU = {
    "in one line": ("out[i] = x[i] * 0.5 * (1 + erf(x[i] / math.sqrt(2)))", "✓"),
    "with a rounded constant": ("out[i] = x[i] * (1 + erf(x[i] * 0.7071068)) / 2", "✓"),
    "by a power": ("out[i] = x[i] * (1 + erf(x[i] / 2 ** 0.5)) / 2", "✓"),
    "mg.gelu": ("out[i] = mg.gelu(x[i])", "mg. works on tensors"),
    "mg.erf": ("out[i] = x[i] * (1 + mg.erf(x[i] / sqrt(2))) / 2", "without mg."),
    "math.erf": ("out[i] = x[i] * (1 + math.erf(x[i] / sqrt(2))) / 2", "without math."),
    "np.tanh": ("out[i] = x[i] * (1 + np.tanh(x[i])) / 2", "NumPy works on whole arrays"),
    "returned": ("return x[i] * (1 + erf(x[i] / sqrt(2))) / 2", "A kernel returns nothing"),
    "assigned to the name": ("out = x[i] * (1 + erf(x[i] / sqrt(2))) / 2", "it writes nothing"),
    "the whole array": ("out[i] = x * (1 + erf(x / sqrt(2))) / 2", "read one number of it: x[i]"),
    "a slice": ("out[:] = x[i]", "once for each place"),
    "a loop": ("for k in range(len(x)):\n        out[k] = x[k]", "no loop"),
    "through memory": ("out[i] = erf(x[i] / sqrt(2))\n    out[i] = x[i] * (1 + out[i]) / 2", "stays in a register"),
    "written twice": (f"out[i] = 0\n    a = x[i]\n    out[i] = a * {PHI}", "moves 12 bytes for each number, and 8"),
    "added to": ("out[i] += x[i]", "stays in a register"),
    "if": ("if x[i] > 0:\n        out[i] = x[i]", "where(a > 0, b, c)"),
    "max": ("out[i] = max(x[i], 0)", "`max`"),
    "a neighbour": ("out[i] = x[i + 1]", "at i only"),
    "the first": ("out[i] = x[0]", "x[i]: the kernel runs once"),
    "into the input": ("x[i] = x[i] / 2", "out[i] = ... is what the kernel writes"),
    "without a sign": ("a = x[i]\n    out[i] = a(1 + erf(a)) / 2", "write the sign"),
    "a constant": ("out[i] = 5", "Look at the brackets"),
    "as printed in the lecture": ("a = x[i]\n    out[i] = a * (0.5 * erf(a * 0.707) + 0.5)", "0.707 is √½, rounded"),
    "torch's relu": ("a = x[i]\n    out[i] = a if a > 0 else 0", "of minigrad_course decides at every place"),
    "a power with ^": ("out[i] = x[i] * (1 + erf(x[i] / 2^0.5)) / 2", "two stars"),
    "a power of a value with ^": ("a = x[i]\n    out[i] = a * a^2", "two stars"),
    "a bracket is open": ("out[i] = x[i] * (1 + erf(x[i])", "brackets"),
    "dots": ("...", "not written yet"),
}


@pytest.mark.parametrize("which", GELU)
def test_feedback_on_kernels(which):
    body, words = GELU[which]
    assert words in said_to(f"{HEAD}def gelu(i, x, out):\n    {body}", "gelu")


def test_a_kernel_with_other_parameters_is_told_to_keep_those_of_the_stub():
    assert "keep them" in said_to("def gelu(x):\n    return x / 2", "gelu")


BACKWARD = {
    "all by the chain rule": (f"{PHI} + a / 2 * 2 / sqrt(pi) * exp(-(a / sqrt(2)) ** 2) / sqrt(2)", "✓"),
    "another order": (f"a * exp(-0.5 * a * a) / (2 * pi) ** 0.5 + {PHI}", "✓"),
    "one part": (PHI, "Φ depends on x too"),
    "minus all": (f"-({PHI} + a * exp(-a * a / 2) / sqrt(2 * pi))", "the sign"),
    "the other part": ("a * exp(-a * a / 2) / sqrt(2 * pi)", "x has the slope 1"),
    "the slope of erf alone": ("2 / sqrt(pi) * exp(-a * a)", "two parts"),
    "without 1/√2": (f"{PHI} + a * exp(-a * a / 2) / sqrt(pi)", "the chain rule"),
    "the square of a minus": (f"{PHI} + a * exp((-a) ** 2 / 2) / sqrt(2 * pi)", "inside the square"),
    "without a half": (f"{PHI} + a * exp(-a * a) / sqrt(2 * pi)", "exp(−x²/2)"),
    "minus": (f"{PHI} - a * exp(-a * a / 2) / sqrt(2 * pi)", "plus between the two parts"),
    "the slope of Φ alone": ("exp(-a * a / 2) / sqrt(2 * pi)", "the slope of Φ alone"),
    "π from memory": (f"{PHI} + a * exp(-a * a / 2) / sqrt(2 * 3.14)", "3.14 is rounded"),
    "of relu": ("a > 0", "two parts"),
}


@pytest.mark.parametrize("which", BACKWARD)
def test_feedback_on_gradients(which):
    slope, words = BACKWARD[which]
    body = f"a = x[i]\n    dx[i] = g[i] * ({slope})"
    assert words in said_to(f"{HEAD}def gelu_backward(i, g, x, dx):\n    {body}", "gelu_backward")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"a = x[i]\n    dx[i] = {PHI} + a * exp(-a * a / 2) / sqrt(2 * pi)", "g is missing"),
        ("dx[i] = g[i]", "passes g on unchanged"),
        ("dx[i] = g[i] * x[i]", "two parts"),
        ("dx[i] = g * x[i]", "read one number of it: g[i]"),
        ("g[i] = 1\n    dx[i] = g[i]", "it is an input"),
        (f"a = g[i]\n    dx[i] = x[i] * ({PHI} + a * exp(-a * a / 2) / sqrt(2 * pi))", "are exchanged"),
        (f"a = x[i]\n    dx[i] = g[i] + {PHI} + a * exp(-a * a / 2) / sqrt(2 * pi)", "you added g"),
        (f"a = x[i]\n    dx[i] = g[i] * a * {PHI}", "How fast does the output *change*"),
    ],
)
def test_feedback_on_gradients_of_another_form(body, words):
    assert words in said_to(f"{HEAD}def gelu_backward(i, g, x, dx):\n    {body}", "gelu_backward")


ROWS = {
    "the smallest subtracted": (
        "e = mg.exp(x - x.min(-1, keepdims=True))\n    return e / e.sum(-1, keepdims=True)", "subtract the largest"),
    "counted": ("e = mg.exp(x - x.max(-1, keepdims=True))\n    return e / e.sum(-1, keepdims=True)",
                "It takes 5 kernels, and mg.softmax takes 6."),
    "in NumPy": ("x = x.numpy()\n    e = np.exp(x - x.max(-1, keepdims=True))\n    return e / e.sum(-1, keepdims=True)",
                 "✓ softmax: right\n"),
    "the composite": ("return mg.softmax(x)", "the composite itself"),
    "the layer": ("return mg.nn.Softmax()(x)", "the composite itself"),
    "all in one": ("return mg.exp(x) / mg.exp(x).sum()", "each row should"),
    "all in one, shifted": ("e = mg.exp(x - x.max())\n    return e / e.sum()", "each row should"),
    "not shifted": ("return mg.exp(x) / mg.exp(x).sum(axis=1, keepdims=True)", "exp(1000) overflows"),
    "the largest of all": ("e = mg.exp(x - x.max())\n    return e / e.sum(axis=-1, keepdims=True)", "of each *row*"),
    "without the axis": ("return mg.exp(x) / mg.exp(x).sum(axis=-1)", "keepdims=True keeps it"),
    "torch's names": ("return mg.exp(x) / mg.exp(x).sum(dim=-1, keepdim=True)", "NumPy's names"),
    "torch's keepdim": ("return x - x.max(axis=-1, keepdim=True)", "with an s"),
    "columns": ("e = mg.exp(x - x.max(axis=0))\n    return e / e.sum(axis=0)", "these are the columns"),
    "nothing returned": ("x = mg.exp(x)", "is there a `return`?"),
    "by methods": ("e = (x - x.max(-1, keepdims=True)).exp()\n    return e / e.sum(-1, keepdims=True)", "✓"),
    "exp of one number": ("e = exp(x)\n    return e / e.sum(axis=-1, keepdims=True)", "For tables: mg.exp"),
    "row by row": ("return mg.stack([mg.exp(r - r.max()) / mg.exp(r - r.max()).sum() for r in x])", "✓"),
    "by logarithms": ("z = x - x.max(-1, keepdims=True)\n    s = mg.exp(z).sum(-1, keepdims=True)\n"
                      "    return mg.exp(z - mg.log(s))", "✓"),
}


@pytest.mark.parametrize("which", ROWS)
def test_feedback_on_softmax(which):
    body, words = ROWS[which]
    cell = f"import numpy as np\nfrom minigrad_course import exp\ndef softmax(x):\n    {body}"
    assert words in said_to(cell, "softmax")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return (x - m) / mg.sqrt(x.var(axis=-1, keepdims=True) + EPS) * weight + bias", "✓"),
        ("c = x - m\n    return c * (mg.mean(c * c, axis=-1, keepdims=True) + EPS) ** -0.5 * weight + bias", "✓"),
        ("return (x - m) / mg.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * weight + bias", "an ε of its own"),
        ("return (x - m) / (x.std(axis=-1, keepdims=True) + EPS) * weight + bias", "before the square root"),
        ("return mg.layer_norm(x, weight, bias, EPS)", "the composite itself"),
        ("return (x - x.mean(-1)) / 2", "keepdims=True keeps it"),
        ("return (x - m) / mg.sqrt(x.var(axis=-1, keepdims=True, unbiased=False) + EPS)", "NumPy's names"),
        ("return (x - m) / mg.sqrt((x - m) ** 2 + EPS) * weight + bias", "the mean of its squares"),
        ("return (x - m) / sqrt(x.var(axis=-1, keepdims=True) + EPS) * weight + bias", "For tables: mg.exp"),
        ("return (x - m) / mg.sqrt(((x - m) ** 2).mean() + EPS) * weight + bias", "each row has its own variance"),
        ("return (x - m) / mg.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight + bias", "not of x²"),
        ("return (x - m) / mg.sqrt(x.var(-1, keepdims=True) + ε) * weight + bias", "has for ε"),
        ("return (x - m) / mg.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias", "has for ε"),
    ],
)
def test_feedback_on_norms(body, words):
    lines = f"m = x.mean(axis=-1, keepdims=True)\n    {body}".replace("EPS", str(TASKS["norm"]("").epsilon))
    assert words in said_to(f"from minigrad_course import sqrt\ndef norm(x, weight, bias):\n    {lines}", "norm")


SIGMOID = "a = x[i]\n    s = 1 / (1 + exp(-B * a))\n    "


@pytest.mark.parametrize(
    ("task", "body", "words"),
    [
        ("swish", "out[i] = x[i] * (0.5 + 0.5 * tanh(B * x[i] / 2))", "✓"),
        ("swish", "out[i] = x[i] * (1 + exp(-B * x[i]))", "not multiplied"),
        ("swish", "out[i] = x[i] * (1 / 1 + exp(-B * x[i]))", "brackets missing"),
        ("swish", "out[i] = x[i] / (1 + exp(-b * x[i]))", "the number that your task has for b"),
        ("swish", "out[i] = x[i] * sigmoid(B * x[i])", "write it out"),
        ("swish", "out[i] = x[i] * σ(B * x[i])", "write it out"),
        ("swish_backward", f"{SIGMOID}dx[i] = g[i] * B * s * (1 - s)", "the slope of σ alone"),
        ("swish_backward", f"{SIGMOID}dx[i] = g[i] * (s + a * s * (1 - s))", "b is missing"),
        ("swish_backward", f"{SIGMOID}dx[i] = s + B * a * s * (1 - s)", "dx[i] = g[i] * slope"),
        ("swish_backward", f"{SIGMOID}y = a * s\n    dx[i] = g[i] * (B * y + s * (1 - B * y))", "✓"),
    ],
)
def test_feedback_on_swish(task, body, words):
    head = "i, x, out" if task == "swish" else "i, g, x, dx"
    lines = body.replace("B", str(TASKS[task]("").b))
    assert words in said_to(f"{HEAD}def {task}({head}):\n    {lines}", task)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        *[(f"gelu_bytes = {factor} * course.task('gelu_bytes').size", words) for factor, words in {
            2: "what one kernel needs", 10: "multiplies two arrays", 11: "✓", 12: "a number, not an array",
            3: "the last operation alone", 6: "also writes its result", 7: "x is read twice", 5: "what is written",
            9: "nearly", 15: "one array and a number", 11e6: "these are bytes",
        }.items()],
        ("gelu_bytes = '44 MB'", "the number alone: 44"),
        *[(f"in_place = {factor} * course.task('in_place').size", words) for factor, words in {
            3: "✓", 1: "that is one array", 2: "y is an array too", 4: "a result for y too",
            0: "read it and write it back",
        }.items()],
        ("small = 1.2", "✓"),
        ("small = 'once'", "✓"),
        ("small = 5", "still too much"),
        ("small = course.task('small').count // 10", "before the first byte"),
        ("in_softmax = 6", "✓"),
        ("in_softmax = 'six'", "✓"),
        ("in_softmax = 7", "no number is divided"),
        ("in_softmax = 5", "And then?"),
        ("in_softmax = 3", "two differences"),
        ("pairs = 36 ** 3", "✓"),
        ("pairs = '36 * 36 * 36'", "✓"),
        ("pairs = 1296", "chains of two"),
        ("pairs = 7140", "the order counts"),
        ("pytorch = 900", "✓"),
        ("pytorch = 300", "327"),
        ("pytorch = 90", "both variants"),
        ("one_in_memory = 16", "also reads x again"),
        ("one_in_memory = 12", "written and read again"),
        ("by_arithmetic = 'b = mg.erf(a)'", "✓"),
        ("by_arithmetic = 'x * d'", "Its name is on its left"),
        ("eager_bytes = '28.8 MB'", "the number alone: 28.8"),
        ("one_in_memory = 8", "Put one of them into memory"),
        ("by_arithmetic = 'ERF '", "✓"),
        ("by_arithmetic = 'multiply'", "fetch the operands"),
        ("eager_bytes = '28.8'", "without the quotation marks"),
        ("eager_bytes = 3", "one line for each operation"),
        ("kernels_needed = 6400", "without the gradients"),
    ],
)
def test_questions_of_eager_costs(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


# ---- the numbers of the unit are those of the library ----------------------------------------------------------------


def gelu(i, x, out):
    a = x[i]
    out[i] = a * (1 + erf(a / sqrt(2))) / 2


def gelu_backward(i, g, x, dx):
    a = x[i]
    dx[i] = g[i] * ((1 + erf(a / sqrt(2))) / 2 + a * exp(-a * a / 2) / sqrt(2 * np.pi))


def arrays(function, *args, size):
    """How many arrays of a size the kernels of a function read and write."""
    return sum(each.bytes for each in passes(function, *args)) / 4 / size


@pytest.mark.slow
def test_gelu_moves_11_arrays_and_with_its_gradient_35():
    x = mg.ones(1000, requires_grad=True)
    g = mg.ones(1000)

    def both():
        x.grad = None
        mg.gelu(x).backward(g)

    assert (arrays(mg.gelu, x, size=1000), arrays(both, size=1000)) == (11, 35)
    with course.operator("gelu", gelu, gelu_backward):
        assert (arrays(mg.gelu, x, size=1000), arrays(both, size=1000)) == (2, 5)
        assert course.kept_bytes(mg.gelu(x + 1)) == 4000  # x + 1 is computed: data do not count
    assert course.kept_bytes(mg.gelu(x + 1)) == 12000


@pytest.mark.parametrize("form", TASKS["eager_bytes"].FORMS, ids=lambda form: form[0])
def test_the_formulas_move_what_the_task_says(form):
    code, reads, writes = form
    function = eval(f"lambda x: {code.format(a=2, b=7)}", {"mg": mg})
    found = passes(function, mg.ones(1000))
    assert (sum(each.read for each in found), sum(each.written for each in found)) == (4000 * reads, 4000 * writes)


def test_the_other_numbers_of_the_unit():
    assert sum(op.kind == "elementwise" for op in P) == ELEMENTWISE
    assert len(passes(mg.softmax, mg.ones((2, 3)))) == 6
    assert min(sum(traffic(tuple(int(i != k) for i in range(4)))) for k in range(4)) == 20
    (double,) = passes(lambda x: x.__imul__(2), mg.ones(1000))
    assert (double.read, double.written) == (4000, 4000)
    task = TASKS["softmax_bytes"]("")
    x = mg.ones((100, 1000))

    def softmax(x):
        powers = mg.exp(x - x.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    assert arrays(softmax, x, size=x.size) == pytest.approx(task.reads + task.writes, rel=0.01)


@pytest.fixture
def quick(monkeypatch):
    """Times of a single run: the test does not look at them."""
    monkeypatch.setattr(gpt, "MEASURED", 1)


@pytest.mark.slow
def test_a_gpt_learns_by_the_two_kernels_and_moves_less(quick):
    from lectures.pictures.u09_eager_costs import STEP

    with course.operator("gelu", gelu, gelu_backward) as mine:
        trained = train_gpt(mine, steps=12)
    before, after = trained.before, trained.after
    counted = [
        (len(before.kernels), len(after.kernels)), (before.bytes / 1e6, after.bytes / 1e6),
        (before.kept / 1e6, after.kept / 1e6),
    ]
    assert [pair == pytest.approx(shown[2:], rel=0.01) for pair, shown in zip(counted, STEP)] == [True] * 3
    assert len(trained.losses) == 12 and trained.losses[-1] < trained.losses[0] - 0.5 and mine.calls > 0
    assert repr(trained).startswith("you: 782 → 756 kernels, 176 → 128 MB moved, 12.0 → 8.8 MB kept")
    assert trained.picture.to_svg().count("<rect") > 1500  # one for each kernel, before and after


def losses(backward, steps=25):
    """The mean loss of the last ten steps of a training."""
    with course.operator("gelu", gelu, backward), np.errstate(all="ignore"):
        run = gpt.Run()
        return np.mean([run.step(number) for number in range(steps)][-10:])


@pytest.mark.slow
def test_a_training_hardly_shows_that_a_part_of_the_gradient_is_missing_but_shows_a_missing_g():
    """The exercise says so: rules are checked by finite differences."""

    def one_part(i, g, x, dx):
        dx[i] = g[i] * (1 + erf(x[i] / sqrt(2))) / 2

    def without_g(i, g, x, dx):
        dx[i] = 0 * g[i] + (1 + erf(x[i] / sqrt(2))) / 2

    right = losses(gelu_backward)
    assert abs(losses(one_part) - right) < 0.05 and losses(without_g) > right + 0.3


def test_the_texts_have_the_numbers_of_the_library_and_of_pytorch():
    assert TASKS["pairs"].right_value == sum(op.kind == "elementwise" for op in P) ** 3
    lecture = Path(__file__).parents[4] / "lectures" / "09_eager_costs.md"
    assert f"minigrad has {len(P)} primitives" in lecture.read_text(encoding="utf-8")
    assert TASKS["pytorch"].right_value == PYTORCH["in place"] + PYTORCH["out="]
    assert f"{PYTORCH['in place']} in place and {PYTORCH['out=']} with" in TASKS["pytorch"].why
    assert f"{PYTORCH['operators']:,} operators" in TASKS["pytorch"]("").text()
