"""Answers of newcomers, and of people who know PyTorch, to unit 14: each gets feedback that helps."""

import numpy as np
import pytest

import minigrad as mg
import minigrad_course as course
from lectures.pictures import u14_applications as pictures
from minigrad.core.primitive import P
from minigrad_course.unit import units
from minigrad_course.units.u14_applications import pieces
from minigrad_course.units.u14_applications.constellations import shared, uses
from minigrad_course.units.u14_applications.pieces import PIECES
from minigrad_course.units.u14_applications.programs import Application
from minigrad_course.units.u14_applications.report import STATIONS
from minigrad_course.units.u14_applications.runs import LAST, Run, taken
from tests.course.running import ROOT, said_to

TASKS = units()["14_applications"].tasks
START = "import numpy as np\n"


def piece(name):
    """A piece of the first student's variant, and the program for it."""
    task = TASKS[name]("")
    return task, task.application(task.right)


FIRST = {}  # the first training of each program


def expect(task, start, which, cases, monkeypatch):
    """The feedback has the words.  A right answer in other words is compared, and not trained once more."""
    body, words = cases[which]

    def first(program):
        if program.name not in FIRST:
            FIRST[program.name] = Run(program)
        return FIRST[program.name]

    if words == "✓":
        monkeypatch.setattr(pieces, "Run", first)
    assert words in said_to(f"{START}{start}\n    {body}", task)


# ---- digits: the first student smooths by 0.1 ------------------------------------------------------------------------

GRADIENTS = {
    "right": ("return (mg.softmax(scores, axis=-1) - (0.9 * targets + 0.01)) / len(scores)", "✓"),
    "by hand": (
        "e = mg.exp(scores - scores.max(-1, keepdims=True))\n"
        "    return (e / e.sum(-1, keepdims=True) - 0.9 * targets - 0.1 / 10) / scores.shape[0]", "✓"),
    "by autodiff": (
        "def loss(z):\n        t = 0.9 * targets + 0.01\n"
        "        return -(t * mg.log_softmax(z, axis=-1)).sum() / len(z)\n    return mg.grad(loss)(scores)", "✓"),
    "the loss itself": (
        "return -((0.9 * targets + 0.01) * mg.log_softmax(scores, axis=-1)).sum() / len(scores)", "not the gradient"),
    "no smoothing": ("return (mg.softmax(scores, axis=-1) - targets) / len(scores)", "the targets are not smoothed"),
    "the mean of all": ("return (mg.softmax(scores, axis=-1) - 0.9 * targets - 0.01) / scores.size",
                        "by the number of pictures only"),
    "the sign": ("return (0.9 * targets + 0.01 - mg.softmax(scores, axis=-1)) / len(scores)", "the sign"),
    "NumPy": ("return scores.numpy() - targets.numpy()", "a NumPy array or a plain number has no gradient"),
    "nothing": ("(mg.softmax(scores, axis=-1) - targets) / len(scores)", "the value after `return`"),
    "torch": ("return (mg.softmax(scores, dim=-1) - targets) / len(scores)", "Hint: axis="),
    "one number": ("return (mg.softmax(scores, axis=-1) - targets).mean()", "a number for each score"),
    "something else": ("return 0 * scores", "its probability, minus its smoothed target"),
    "brackets": ("return mg.softmax(scores, axis=-1) - (0.9 * targets + 0.01) / len(scores)", "in brackets"),
    "by ten": ("return (mg.softmax(scores, axis=-1) - (0.9 * targets + 0.01)) / 10", "the number of pictures"),
    "nine others": ("return (mg.softmax(scores, axis=-1) - 0.9 * targets - 0.1 / 9 * (1 - targets)) / len(scores)",
                    "All ten get a tenth"),
    "logarithms": ("return (mg.log_softmax(scores, axis=-1) - (0.9 * targets + 0.01)) / len(scores)",
                   "logarithms of the probabilities"),
    "a comma": ("return (mg.softmax(scores, axis=-1) - (0.9 * targets + 0.01)) / len(scores),", "makes a tuple"),
    "twice": ("return 2 * (mg.softmax(scores, axis=-1) - (0.9 * targets + 0.01)) / len(scores)",
              "2 times the right result"),
    "sigmoid": ("return (mg.sigmoid(scores) - (0.9 * targets + 0.01)) / len(scores)", "its probability"),
}


@pytest.mark.parametrize("which", GRADIENTS)
def test_feedback_on_gradients_of_scores(which, monkeypatch):
    expect("scores_grad", "def scores_grad(scores, targets):", which, GRADIENTS, monkeypatch)


# ---- names: the first student's window is 6 --------------------------------------------------------------------------

PLACES = "i, j = np.arange(12)[:, None], np.arange(12)\n    "
LOSS = "\n    return mg.cross_entropy(model(text[:, :-1], m).reshape(-1, 27), text[:, 1:].reshape(-1))"
LOSSES = {
    "right": (PLACES + "m = (j <= i) & (i - j < 6)" + LOSS, "✓"),
    "no mask": ("m = np.ones((12, 12))" + LOSS, "too good to be true"),
    "no window": ("m = np.tril(np.ones((12, 12)))" + LOSS, "the window is missing"),
    "triu": ("m = np.triu(np.ones((12, 12)))" + LOSS, "turned round"),
    "one more": (PLACES + "m = (j <= i) & (i - j <= 6)" + LOSS, "one too long"),
    "strictly before": (PLACES + "m = (j < i) & (i - j < 6)" + LOSS, "does not see itself"),
    "six before": (PLACES + "m = (j < i) & (i - j <= 6)" + LOSS, "sees itself and some places before it"),
    "only itself": (PLACES + "m = i == j" + LOSS, "sees itself and some places before it"),
    "no shift": (PLACES + "m = (j <= i) & (i - j < 6)" + LOSS.replace("1:]", ":-1]"), "not shifted"),
    "all letters": (PLACES + "m = (j <= i) & (i - j < 6)" + LOSS.replace(":-1]", ":]"), "stopped with"),
    "true where hidden": (PLACES + "m = (j > i) | (i - j >= 6)" + LOSS, "exchanged"),
    "without reshape": (
        PLACES + "m = (j <= i) & (i - j < 6)\n    return mg.cross_entropy(model(text[:, :-1], m), text[:, 1:])", "✓"),
    "the scores": (PLACES + "m = (j <= i)\n    return model(text[:, :-1], m)", "one number: a mean, or a sum"),
    "mask None": ("m = None" + LOSS, "stopped with"),
}


@pytest.mark.parametrize("which", LOSSES)
def test_feedback_on_losses_of_names(which, monkeypatch):
    expect("names_loss", "def names_loss(model, text):", which, LOSSES, monkeypatch)


# ---- the club --------------------------------------------------------------------------------------------------------

MATRIX = "A = np.eye(34)\n    for i, j in pairs: A[i, j] = A[j, i] = 1\n    d = A.sum(1)\n    "
SCORES = "\n    s = network(mg.asarray(A, dtype=mg.float32))\n    k = mg.asarray(known)\n    return "
KNOWN = "mg.cross_entropy(s[k], labels[k])"
CLUBS = {
    "right": (MATRIX + "A = A / np.sqrt(np.outer(d, d))" + SCORES + KNOWN, "✓"),
    "as matrices": (MATRIX + "A = np.diag(d ** -0.5) @ A @ np.diag(d ** -0.5)" + SCORES + KNOWN, "✓"),
    "leaks": (MATRIX + "A = A / np.sqrt(np.outer(d, d))" + SCORES + "mg.cross_entropy(s, labels)",
              "the labels of the others are read"),
    "no loops": (
        MATRIX.replace("np.eye(34)", "np.zeros((34, 34))") + "A = A / np.sqrt(np.outer(d, d))" + SCORES + KNOWN,
        "the diagonal is missing"),
    "one way": (MATRIX.replace("A[j, i] = ", "") + "A = A / np.sqrt(np.outer(d, d))" + SCORES + KNOWN,
                "both members hear from each other"),
    "the other way": (
        MATRIX.replace("A[i, j] = ", "") + "A = A / np.sqrt(np.outer(d, d))" + SCORES + KNOWN, "both ways"),
    "columns": (MATRIX + "A = A / d" + SCORES + KNOWN, "divide by √"),
    "two others": (MATRIX + "A = A / np.sqrt(np.outer(d, d))" + SCORES + "mg.cross_entropy(s[:2], labels[:2])",
                   "the known members"),
    "softmax": (MATRIX + "A = A / np.sqrt(np.outer(d, d))" + SCORES +
                "mg.cross_entropy(mg.softmax(s[k], axis=-1), labels[k])", "applies softmax itself"),
    "no division": (MATRIX + SCORES + KNOWN, "17 times as loud"),
    "rows": (MATRIX + "A = A / d[:, None]" + SCORES + KNOWN, "the ties of the sender too"),
    "without the root": (MATRIX + "A = A / np.outer(d, d)" + SCORES + KNOWN, "the square root"),
    "the pairs": ("return mg.cross_entropy(network(pairs), labels)", "stopped with"),
    "the scores": (MATRIX + SCORES + "s[k]", "one number: a mean, or a sum"),
}


@pytest.mark.parametrize("which", CLUBS)
def test_feedback_on_losses_of_the_club(which, monkeypatch):
    expect("club_loss", "def club_loss(network, pairs, labels, known):", which, CLUBS, monkeypatch)


# ---- the pole: the first student's discount is 0.96 ------------------------------------------------------------------

BACK = "r, a = np.zeros(stood.shape), 0\n    for t in reversed(range(len(stood))): r[t] = a = stood[t] + 0.96 * a\n    "
SUM = "\n    return -(log_chances * mg.asarray(w, dtype=mg.float32)).sum() / stood.sum()"
POLES = {
    "right": (BACK + "w = (r - r[stood > 0].mean()) * stood" + SUM, "✓"),
    "by where": (BACK + "w = np.where(stood > 0, r - (r * stood).sum() / stood.sum(), 0)" + SUM, "✓"),
    "the sign": (BACK + "w = (r - r[stood > 0].mean()) * stood" + SUM.replace("-(", "("), "fall as fast as they can"),
    "forwards": (BACK.replace("reversed(range(len(stood)))", "range(len(stood))") +
                 "w = (r - r[stood > 0].mean()) * stood" + SUM, "from the last step to the first"),
    "no baseline": (BACK + "w = r * stood" + SUM, "the baseline is missing"),
    "after a fall": (BACK + "w = r - r[stood > 0].mean()" + SUM, "steps after a fall have a weight"),
    "mean of all": (BACK + "w = (r - r.mean()) * stood" + SUM, "returns[stood > 0].mean()"),
    "no discount": (
        BACK.replace("0.96 * a", "a") + "w = (r - r[stood > 0].mean()) * stood" + SUM, "discount is missing"),
    "the total": ("r = stood.sum(0)\n    w = (r - r.mean()) * stood" + SUM, "the reward of the whole episode"),
    "mean": (BACK + "w = (r - r[stood > 0].mean()) * stood" + SUM.replace(".sum() / stood.sum()", ".mean()"),
             "not by all places"),
    "normalised": (BACK + "w = (r - r[stood > 0].mean()) / r[stood > 0].std() * stood" + SUM, "standard deviation"),
    "discounts all": (BACK.replace("stood[t] + 0.96 * a", "0.96 * (stood[t] + a)") +
                      "w = (r - r[stood > 0].mean()) * stood" + SUM, "not to the reward of this one"),
    "of each cart": (BACK + "w = (r - r.sum(0) / stood.sum(0)) * stood" + SUM, "one mean"),
    "half": (BACK.replace("0.96", "0.5") + "w = (r - r[stood > 0].mean()) * stood" + SUM,
             "from its last step to its first"),
    "rows": (BACK + "w = (r - r[stood > 0].mean()) * stood" + SUM.replace("stood.sum()", "len(stood)"),
             "played by all carts together"),
    "lost gradient": (BACK + "w = (r - r[stood > 0].mean()) * stood\n    log_chances = log_chances.detach()" + SUM,
                      "no no_grad() or detach()"),
    "NumPy": (BACK + "return -(log_chances.numpy() * r).sum()", "a NumPy array or a plain number has no gradient"),
}


@pytest.mark.parametrize("which", POLES)
def test_feedback_on_losses_of_the_pole(which, monkeypatch):
    expect("pole_loss", "def pole_loss(log_chances, stood):", which, POLES, monkeypatch)


# ---- the line and the report -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "words"), [
    ('"DECBFGAH"', "✓"),
    ('"d, e, c, b, f, g, a, h"', "✓"),
    ('["D", "E", "C", "B", "F", "G", "A", "H"]', "✓"),
    ('"EDCBFGAH"', "the check comes first"),
    ('"DECBGFAH"', "what is in it"),
    ('"DEBCFGAH"', "the graph contains the gradient"),
    ('"HAGFBCED"', "the check comes first"),
    ('"DECFBAGH"', "kernels are chosen in the graph"),
    ('"ABC"', "does not have each of the eight letters once"),
    ("12345678", "has another form"),
])
def test_feedback_on_the_order_of_rooms(answer, words):
    assert words in said_to(f"line_rooms = {answer}", "line_rooms")


@pytest.mark.parametrize(("answer", "words"), [
    ('["The programs run on one engine.", "They differ in data and in one piece.", "A floor is not a proof of it."]',
     "Only a person can judge"),
    ('"All four programs run on one engine."', "there are 1 texts"),
    ('["Good.", "They differ in data and in one piece.", "A floor is not a proof of it."]', "is not a sentence yet"),
    ('["They differ in data and pieces."] * 3', "two of the sentences are the same"),
    ("[1, 2, 3]", "has another form"),
])
def test_feedback_on_sentences(answer, words):
    assert words in said_to(f"sentences = {answer}", "sentences")


@pytest.mark.parametrize(("answer", "words"), [
    ('most_primitives = "Names"', "30 of 84 are needed together, 15 by all four"),
    ('most_primitives = "club"', "looks letters up"),
    ('most_primitives = "GPT"', "has another form"),
    ('fifth_program = "one or two"', "✓"),
    ('fifth_program = "none"', "one step of it is new"),
    ('fifth_program = "more than five"', "fewer"),
    ("fifth_program = 1", "has another form"),
    ("line_nodes = 5", "✓"),  # mg.sin(x @ w) * b - x.sum()
    ("line_nodes = 1", "each operation in it"),
    ("line_nodes = 8", "are leaves"),
    ("line_nodes = 6", "one fewer"),
    ("line_nodes = 4", "one more"),
    ("line_rules = 8", "✓"),
    ("line_rules = 5", "two inputs that need a gradient"),
    ("line_rules = 3", "the operations between them"),
    ("line_rules = 10", "a function has one input"),
    ("line_launches = 3", "✓"),
    ("line_launches = 1", "a call of a library"),
    ("line_launches = 5", "node by node"),
    ("line_launches = 4", "one fewer"),
    ('policy_curve = "It falls always"', "has another form"),
    ('policy_curve = "Nearly all"', "a fixed data set"),
    ('policy_curve = "about half"', "✓"),
])
def test_questions_of_the_notebook(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_rooms_are_folders_of_the_library():
    assert set(STATIONS) <= {path.name for path in (ROOT / "minigrad").rglob("*") if path.is_dir()}


# ---- the programs ----------------------------------------------------------------------------------------------------


def test_a_report_needs_a_training(monkeypatch):
    for name in LAST:
        monkeypatch.setitem(LAST, name, None)
    with pytest.raises(course.feedback.Misused, match="no training yet"):
        TASKS["sentences"]("").given()["report"]([])


@pytest.mark.slow
def test_a_report_has_scores_counts_and_sentences(tmp_path, monkeypatch, capsys):
    run = Run(piece("club_loss")[1])
    for name in LAST:
        monkeypatch.setitem(LAST, name, run)
    report = TASKS["sentences"]("").given()["report"](["All four are a < b.", "Two.", "Three."])
    report.save(str(tmp_path / "capstone.html"))
    text = (tmp_path / "capstone.html").read_text(encoding="utf-8")
    assert "All four are a &lt; b." in text and "of the other members</td>" in text and text.count("<svg") == 5
    assert repr(report) == "<report of you: 4 of 4 floors reached>" and " 84 " in report.table()
    monkeypatch.setitem(LAST, "club", None)
    assert "not trained" in TASKS["sentences"]("").given()["report"]([]).table()
    assert "The report is capstone.html." in capsys.readouterr().out


def test_a_piece_gets_no_data_of_the_test():
    """The labels that the piece of the club gets are real for the known members only."""
    _, program = piece("club_loss")
    _, labels, known = program.batch()
    assert (labels.numpy()[known] == program.labels[known]).all()
    assert (labels.numpy() != program.labels).sum() > 5


@pytest.mark.slow
def test_a_model_without_a_mask_is_too_good_in_training_and_bad_on_new_names():
    task = TASKS["names_loss"]("")
    run = Run(task.application(task.wrong(task.mistakes[0])))
    assert run.losses[-1] < 0.5 and run.score > 3.3 and not run.passed


def test_poles_fall_faster_with_the_wrong_sign():
    task = TASKS["pole_loss"]("")
    run = Run(task.application(task.wrong(task.mistakes[0])))
    assert run.score < 15 and not run.passed


def test_a_step_that_reads_numbers_cannot_be_recorded_but_trains():
    task = TASKS["club_loss"]("")

    def loss(network, pairs, labels, known):
        found = task.right(network, pairs, labels, known)
        return found if found.item() < 1e9 else found * 0

    program = task.application(loss)
    assert taken(program) is None and np.isfinite(program.step(*program.batch()).item())


@pytest.mark.slow
def test_the_pictures_of_the_lecture_show_what_the_steps_take():
    assert all(task.program.step is Application.step for task in PIECES)
    steps = {task.program.name: taken(task("").application(task("").right)) for task in PIECES}
    assert tuple((name, step.launches, step.fused) for name, step in steps.items()) == pictures.LAUNCHES
    found = uses({name: step.graph for name, step in steps.items()})
    assert (len(found), len(shared(found)), len(P)) == (pictures.NEEDED, pictures.SHARED, pictures.ALL)
    assert sorted(shared(found)) == sorted(pictures.NAMES)


def test_a_tensor_as_mask_is_the_same():
    _, program = piece("names_loss")
    text, mask = mg.asarray(program.others[:3, :-1]), np.tril(np.ones((12, 12)))
    with mg.no_grad():
        one, two = program.scores(text, mask), program.scores(text, mg.asarray(mask))
    assert np.array_equal(one.numpy(), two.numpy())
