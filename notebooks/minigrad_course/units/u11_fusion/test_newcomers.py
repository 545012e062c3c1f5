"""Answers of newcomers, and of people who know PyTorch, to unit 11: each gets feedback that helps."""

import re

import numpy as np
import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.compile.rewriting.equation import Equation
from minigrad.compile.running.program import Program
from minigrad_course.expressions import value
from minigrad_course.session import SESSION
from minigrad_course.unit import units
from minigrad_course.units.u11_fusion.demo import PAIRS, ROWS
from minigrad_course.units.u11_fusion.equations import (
    BREAK,
    HARD,
    LEGAL,
    PROGRAMS,
    SOLUTION,
    ZERO,
    both_sides,
    counterexample,
)
from minigrad_course.units.u11_fusion.graphs import evaluated, same_bits
from minigrad_course.units.u11_fusion.kernels import PLACES, SIDE
from minigrad_course.units.u11_fusion.league import greedy, league
from minigrad_course.views.descents import descent
from tests.course.running import ROOT, said_to, stored

TASKS = units()["11_fusion"].tasks
INF = float("inf")


# ---- numbers that break rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("letter", "given", "words"), [
    ("C", "1.0", "try numbers that are not ordinary"),
    ("A", "0.0", "both sides are 0.0"),
    ("A", "'holds'", "zero has a sign"),
    ("B", "0.1", "or does it hold?"),
    ("B", "'HOLDS '", "✓"),
    ("D", "float('nan')", "✓"),
    ("D", "'inf'", "✓"),
    ("D", "1e40", "✓"),  # too large for float32: inf, and no warning
    ("D", "'infinite'", 'infinity is float("inf")'),
    ("C", "mg.asarray(0.0)", "✓"),
    ("A", "[-0.0]", "neither a number nor"),
])
def test_feedback_on_numbers(letter, given, words):
    """The first student's equations: A is x + 0, B holds, C is x / x, D is x - x."""
    right = TASKS["breaks"]("").right()
    others = ", ".join(f'"{each}": {value!r}' for each, value in right.items() if each != letter)
    cell = f"inf = float('inf'); nan = float('nan')\nbreaks = {{{others}, \"{letter}\": {given}}}"
    assert words in said_to(cell, "breaks")


def test_numbers_in_another_form():
    assert "has another form" in said_to("breaks = [-0.0, 'holds', 0.0, 1.0]", "breaks")
    assert "not answered yet" in said_to("breaks = {'A': ..., 'B': 1.0, 'C': 2.0, 'D': 3.0}", "breaks")


def test_each_equation_breaks_or_holds_as_it_is_declared():
    for text in {**ZERO, **BREAK}:
        assert any(not same_bits(*both_sides(text, x)) for x in HARD), text
    for text in LEGAL:
        assert all(same_bits(*both_sides(text, x)) for x in HARD), text


# ---- rules for a gradient --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "words"), [
    ('["x + 0 -> x"]', "Got: -0.0, for x = -0.0"),
    ('["-(x - y) -> y - x"]', "changes a result"),
    ('["x - x -> 0"]', "for x = inf"),
    ('["x / y -> x * (1 / y)"]', "changes a result"),
    ('["exp(x) * exp(y) -> exp(x + y)"]', "changes a result"),
    ('["x * (y + z) -> x * y + x * z"]', "changes a result"),
    ('["(x * n) * m -> x * (n * m)"]', "changes a result"),
    ('["x * y -> y * x"]', "never come to an end"),
    ('["-x * y -> -(x * y)"]', "these fired"),
    ('["-(-x) -> x"]', "these fired: none"),
    ('["-x * y - > -(x * y)"]', "cannot be used"),
    ('["-x * y = -(x * y)"]', "'-x * y = -(x * y)' is not an equation"),
    ('["-x * y -> -(x * z)"]', "cannot be used"),
    ('["-x y -> -(x y)"]', "cannot be used"),
    ('["torch.exp(x) -> x"]', "cannot be used"),
    ('["sum(x, axis=a) -> x"]', "cannot be used"),
    ("[]", "these fired: none"),
    ('["-x * y -> -(x * y)"]', "still goes into a quotient (`divide`)"),
    ('["-x / y -> -(x / y)"]', "(1 time)\n  Hint: with your rules, a sign still goes into a product"),
    ('["-x / y -> x / -y"]', "still goes into a quotient"),
    ('["-(x * y) -> -x * y", "-(x / y) -> -x / y"]', "✓"),
    ('["-x / y * z -> -(x / y * z)"]', "✓"),
    ("lambda node: node", "has another form"),
    ('["-x * y -> -(x * y)", "-x / y -> -(x / y)"]', "✓"),
    ('("x * -y -> -(x * y)", "-a / b -> -(a / b)")', "✓"),
])
def test_feedback_on_rules(answer, words):
    assert words in said_to(f"my_rules = {answer}", "my_rules")


@pytest.mark.slow
@pytest.mark.parametrize("student", ["", "Ada", "Grace", "Barbara", "李"])
def test_rules_save_operations_for_every_student_and_one_rule_is_not_enough(student):
    task = TASKS["my_rules"](student)
    assert task.check(SOLUTION) and task.program in PROGRAMS
    for one in SOLUTION:
        with pytest.raises(course.feedback.Wrong, match="are possible"):
            task.check([one])


# ---- the pass that merges --------------------------------------------------------------------------------------------

INPUTS = "tuple([now.get(x, x) if hasattr(x, 'name') else repr(x) for x in node.inputs])"
START = "first, now = {}, {}\n    for node in nodes:\n        "
FIRST = "first.setdefault(key, node)\n    return now"


def keyed(key, place=f"node if node.op is None else {FIRST}"):
    """A pass that merges nodes with equal keys."""
    return f"{START}key = {key}\n        now[node] = {place}"


MERGES = {
    "by name": (keyed("node.name"), "is replaced by"),
    "a set": (keyed("node.name, frozenset(map(repr, node.inputs)), str(node.attrs)"), "merge"),
    "attrs as they are": (keyed("node.name, node.attrs"), "tuple(...) or str(...) of it can"),
    "a list of inputs": (keyed("node.name, list(node.inputs)"), "tuple(...) or str(...) of it can"),
    "the last one": (
        "last = {(n.name, tuple(n.inputs), str(n.attrs)): n for n in nodes}\n"
        "    return {n: last[n.name, tuple(n.inputs), str(n.attrs)] for n in nodes}", "a later one"),
    "returns the keys": (START + "first[node.name] = node\n    return first", "not a node of the graph"),
    "returns a list": ("return list(nodes)", "return a dictionary"),
    "returns nothing": ("{node: node for node in nodes}", "returned a NoneType, not a dictionary"),
    "only duplicates": (
        f"{START}if node.op is None: continue\n        key = node.name, {INPUTS}, str(node.attrs)\n"
        "        if key in first: now[node] = first[key]\n        else: first[key] = node\n    return now",
        "some nodes have no entry"),
    "pair by pair": (
        f"now, keys = {{}}, {{}}\n    for i, node in enumerate(nodes):\n        now[node] = node\n"
        f"        keys[node] = node.name, {INPUTS}, str(node.attrs)\n        for other in nodes[:i]:\n"
        "            if node.op is not None and keys[other] == keys[node]:\n                now[node] = now[other]\n"
        "                break\n    return now", "✓"),
    "right": (keyed(f"node.name, {INPUTS}, str(node.attrs), str(node.dtype)"), "✓"),
    "numbers are equal": (
        keyed("node.name, tuple([now.get(x, x) for x in node.inputs]), str(node.attrs)"), "0.0 == -0.0"),
    "no attrs": (keyed(f"node.name, {INPUTS}"), "attrs are missing"),
    "no name": (keyed(f"{INPUTS}, str(node.attrs)"), "the name is missing"),
    "with constants": (keyed(f"node.name, {INPUTS}, str(node.attrs)", FIRST), "constants have no inputs"),
    "inputs as they were": (
        keyed(f"node.name, {INPUTS.replace('now.get(x, x)', 'x')}, str(node.attrs)"), "twins of twins"),
    "numbers are equal, with constants": (
        keyed("node.name, tuple([now.get(x, x) for x in node.inputs]), str(node.attrs)", FIRST), "Use repr"),
    "names of the inputs": (
        keyed("node.name, tuple([getattr(x, 'name', repr(x)) for x in node.inputs]), str(node.attrs)"),
        "may both be called sum"),
    "the inputs as text": (keyed("node.name, str(node.inputs), str(node.attrs)"), "Put the input itself into the key"),
    "sorted texts": (
        keyed("node.name, tuple(sorted(map(str, node.inputs))), str(node.attrs)"), "Put the input itself into the key"),
    "name and attrs": (keyed("node.name, str(node.attrs)"), "the inputs are missing in the key"),
    "without end": ("while True: pass", "not done after"),
    "torch": ("return torch.fx.Graph(nodes)", "NameError"),
}


@pytest.mark.parametrize("which", MERGES)
def test_feedback_on_merging(which, monkeypatch):
    monkeypatch.setattr(TASKS["merge_same"], "seconds", 0.5 if which == "without end" else 10)
    body, words = MERGES[which]
    assert words in said_to(f"def merge_same(nodes):\n    {body}", "merge_same")


@pytest.mark.slow
def test_the_passes_compile_a_step_that_learns():
    """The bars of the student's passes are called "yours", and the fused step moves least."""
    rules = TASKS["my_rules"]("").given()["as_pass"](SOLUTION)
    given = TASKS["merge_same"]("").given()
    with (
        course.compiler_pass("simplify", rules) as first,
        course.compiler_pass("common", given["as_pass"](TASKS["merge_same"]("").right)) as second,
    ):
        picture = given["train"]()
    assert first.calls and second.calls
    assert picture.title.startswith("80 → 13 launches, 5.7 MB → 1.62 MB; 3")
    assert "simplify, yours" in picture.words and "common, yours" in picture.words
    assert [page.name for page in picture.pages[0]] == ["what it takes", "before", "after"]


def test_a_pass_that_merges_too_much_is_seen_in_training():
    """With shapes in place of inputs in the key, the step is cheaper, and the network reads hardly any digit."""
    task = TASKS["merge_same"]("")
    wrong = task.wrong(next(known for known in task.mistakes if known.name == "MergeSame_10"))
    with course.compiler_pass("common", task.given()["as_pass"](wrong)):
        title = task.given()["train"]().title
    assert title.startswith("80 → 11 launches, 5.7 MB → 888 kB") and title.endswith("; 33 of 360 digits read")


# ---- kernels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "words"), [
    ('[["exp_1"], ["sum_1"], ["divide_1"]]', "put sum_1 into the kernel of exp_1"),
    ('[["exp_1", "sum_1"], ["divide_1"]]', "What if both compute it?"),
    ('[["exp_1", "sum_1", "divide_1"]]', "the sum is known only after all of a"),
    ('[["exp_1", "divide_1"], ["sum_1"]]', "wait for each other"),
    ('[["exp_1", "sum_1"], ["exp_1", "divide_1"]]', "✓"),
    ('[["exp_1", "sum_1"], ["exp_1", "sum_1, combined", "divide_1"]]', "✓"),
    ('(("exp_1", "sum_1"), ("divide_1", "exp_1"))', "✓"),
    ('[["exp", "sum"], ["exp", "divide"]]', "the names are exp_1, sum_1, divide_1"),
    ('[["exp_1", "sum_1"]]', "no kernel computes divide_1"),
    ('["exp_1", "sum_1", "divide_1"]', "has another form"),
    ('"exp_1 sum_1"', "has another form"),
    ("2", "has another form"),
])
def test_feedback_on_kernels(answer, words):
    assert words in said_to(f"my_kernels = {answer}", "my_kernels")


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "Alan"])
def test_the_budget_cannot_be_met_without_computing_twice(student):
    task = TASKS["my_kernels"](student)
    assert task.check(task.right())
    own = [group.levels.keys() | group.partials.keys() for group in task.program.partition.groups]
    assert sum(task.members[task.first] in kernel for kernel in own) == 1  # the compiler computes it once


@pytest.mark.parametrize(("reason", "code"), [
    (reason, code) for reason, codes in PLACES.items() for code, _ in codes])
def test_the_compiler_gives_the_reasons_that_the_task_asks_for(reason, code):
    says = {"library": "is a library call", "elsewhere": "at other positions", "complete": "is ready only later",
            "rows": "rows of"}
    given = mg.ones((SIDE, SIDE)), mg.ones((SIDE, SIDE))
    program = Program(mg.trace(lambda x, w: evaluated(code, x=x, w=w), *given), backend="numpy")
    assert any(says[reason] in why for why in program.partition.reasons.values())
    assert len(program.partition.groups) == 2


@pytest.mark.parametrize(("answer", "words"), [
    ('{"A": "library", "B": "rows", "C": "elsewhere"}', "✓"),
    ('{"A": " Library", "B": "ROWS", "C": "elsewhere"}', "✓"),
    ('{"A": "library", "B": "complete", "C": "elsewhere"}', "1 of 3 is not right: B"),
    ('{"A": "rows", "B": "rows", "C": "rows"}', "how many numbers does each reduction take together?"),
    ('{"A": "matmul", "B": "rows", "C": "elsewhere"}', "has another form"),
    ('{"A": ["library"], "B": "rows", "C": "elsewhere"}', "has another form"),
    ('"library"', "has another form"),
])
def test_feedback_on_reasons(answer, words):
    assert words in said_to(f"why_not_fused = {answer}", "why_not_fused")


# ---- a fusion, and the league ----------------------------------------------------------------------------------------

GREEDY = """
def my_fusion(operations, possible):
    kernels = []
    for name in operations:
        for kernel in KERNELS:
            kernel.append(name)
            if possible(kernels):
                break
            kernel.pop()
        else:
            kernels.append([name])
    return RESULT
"""


@pytest.mark.parametrize(("kernels", "result", "words"), [
    ("reversed(kernels)", "kernels", "✓"),
    ("kernels", "kernels", "✓"),
    ("kernels", "[tuple(kernel) for kernel in kernels]", "✓"),
    ("[]", "kernels", "that is node by node"),
    ("kernels[-1:]", "kernels", "you try the newest kernel only"),
    ("kernels", "[operations]", "not everything fits into one kernel"),
    ("kernels", "kernels[:1]", "no kernel computes"),
    ("kernels", "kernels + kernels[:1]", "is computed twice"),
    ("kernels", "[['add_9']]", "'add_9' is not an operation of this program"),
    ("kernels", "None", "return a list of kernels"),
    ("kernels", "operations", "return a list of kernels"),
])
def test_feedback_on_a_fusion(kernels, result, words):
    assert words in said_to(GREEDY.replace("KERNELS", kernels).replace("RESULT", result), "my_fusion")


@pytest.mark.parametrize(("line", "words"), [
    ("if possible(kernel):", "possible takes all kernels"),
    ("if possible([name]):", "possible takes all kernels"),
])
def test_a_question_about_one_kernel_is_answered_with_the_form(line, words):
    cell = GREEDY.replace("KERNELS", "kernels").replace("RESULT", "kernels").replace("if possible(kernels):", line)
    assert words in said_to(cell, "my_fusion")


def test_a_name_that_is_not_taken_back_is_computed_twice():
    cell = GREEDY.replace("KERNELS", "kernels").replace("RESULT", "kernels").replace("kernel.pop()", "pass")
    assert "pop it where `possible` says no" in said_to(cell, "my_fusion")


def test_a_right_fusion_is_counted_beside_minigrads():
    said = said_to(GREEDY.replace("KERNELS", "reversed(kernels)").replace("RESULT", "kernels"), "my_fusion")
    assert "your 20 kernels compute the 36 operations of 8 programs. minigrad makes 20." in said


def test_a_program_may_write_into_its_argument():
    cell = "def one_kernel(x):\n    x *= mg.sin(x[::-1])\n    return x"
    assert "✓" in said_to(cell, "one_kernel")


def test_passes_of_a_student_compile_the_step_of_the_league():
    calls = []
    simplify = TASKS["my_rules"]("").given()["as_pass"](SOLUTION)
    found = league(greedy, simplify=lambda graph, note: calls.append(graph) or simplify(graph, note))
    assert calls and found.same


def test_the_league_compares_a_fusion_with_minigrad():
    found = league(greedy)
    plain, yours, own = found.rows
    assert found.same and yours.launches <= own.launches + 2 < plain.launches / 4 and yours.bytes < plain.bytes / 2
    assert "minigrad" in repr(found) and found.table().count("\n") == 3
    alone = league(lambda operations, possible: [[name] for name in operations])
    assert alone.same and "launches more than minigrad" in repr(alone)


# ---- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "words"), [
    ("mg.sin(x[::-1]) * x", "✓"),
    ("mg.sin(mg.flip(x, axis=0)) * x", "✓"),
    ("x * mg.sin(x[::-1, :])", "✓"),
    ("mg.sin(x[::-1]) * x,", "a comma at the end of `return`"),
    ("-mg.sin(x[::-1]) * x", "minus the right result"),
    ("2 * (mg.sin(x[::-1]) * x)", "2 times the right result"),
    ("mg.sin(x)[::-1] * x", "it takes 2 launches. Not fused: sin_1 and multiply_1"),
    ("mg.jit(lambda x: mg.sin(x)[::-1] * x)(x)", "it takes 2 launches"),
    ("mg.sin(x) * x", "is wrong"),
    ("mg.sin(x) * x[::-1]", "Which x has the view"),
    ("mg.sin(x[::-1]) * x[::-1]", "both parts have the same view of x"),
    ("mg.flip(mg.sin(x)) * x", "go along the first axis alone"),
    ("(mg.sin(x) * x[::-1])[::-1]", "✓"),
    ("print(mg.sin(x[::-1]) * x)", "the value after `return`"),
    ("x[::-1] * x", "the function itself is missing"),
    ("mg.sin(x)", "the views are missing"),
    ("mg.sin(x[::-1] * x)", "Take each view of x alone"),
    ("mg.asarray(np.sin(x.numpy()[::-1]) * x.numpy())", "cannot be recorded as a graph"),
    ("x.fliplr()", "Hint: mg.flip(x, 1)"),
])
def test_feedback_on_one_kernel(body, words):
    assert words in said_to(f"import numpy as np\ndef one_kernel(x):\n    return {body}", "one_kernel")


@pytest.mark.parametrize(("body", "words"), [
    ("(mg.exp(x) * v).sum(-1)", "✓"),
    ("mg.sum(mg.exp(x) * v, axis=1)", "✓"),
    ("mg.exp(x) @ v", "a library call is still there: the matrix product"),
    ("mg.matmul(mg.exp(x), v)", "a library call is still there: the matrix product"),
    ("mg.einsum('ij,j->i', mg.exp(x), v)", "a library call is still there: the matrix product"),
    ("(mg.exp(x) * v).sum(dim=1)", "Hint: axis="),
    ("(mg.exp(x) * v).sum(0)", "Number i is a sum over row i"),
    ("(mg.exp(x) * v).sum()", "adds each row"),
    ("mg.exp(x * v).sum(-1)", "the function is applied to x alone"),
    ("(mg.exp(x).T * v).sum(-1)", "rows and columns are exchanged"),
    ("(mg.exp(x) * v[:, None]).sum(0)", "rows and columns are exchanged"),
    ("(mg.exp(x) * v).mean(-1)", "a mean is the sum divided"),
    ("mg.stack([(mg.exp(row) * v).sum() for row in x])", "or a join"),
    ("print((mg.exp(x) * v).sum(-1))", "the value after `return`"),
    ("sum(mg.exp(x)[i] * v[i] for i in range(64))", "rows and columns are exchanged"),
    ("(mg.exp(x) * v).sum(-1) + 1", "number i of x @ v is the sum"),
])
def test_feedback_on_row_loops(body, words):
    assert words in said_to(f"def row_loops(x, v):\n    return {body}", "row_loops")


# ---- questions of the notebook ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "words"), [
    ('which_zero = "A"', "✓"),  # x + -0.0 -> x
    ('which_zero = " a "', "✓"),
    ('which_zero = "x + −0.0"', "✓"),
    ('which_zero = "x + -0.0 → x"', "✓"),
    ('which_zero = "B"', "-0.0 + 0.0"),
    ('which_zero = "x - -0.0"', "-0.0 + 0.0"),
    ('which_zero = "both"', "one of them changes a number"),
    ('which_zero = "neither"', "one of them may be used"),
    ("which_zero = 1", 'one of "A" and "B"'),
    ('bytes_left = "a third"', "✓"),
    ('bytes_left = "an eighth"', "does any program read"),
    ('bytes_left = "nearly all of them"', "these bytes are saved"),
    ("bytes_left = 80", 'one of "eighth"'),
    ("twins_left = 6", "their inputs differ"),
    ("twins_left = 7", "✓"),
    ('twins_left = "seven"', "✓"),
    ("merged_peak = 590", "✓"),  # of 384 · 384 numbers
    ("merged_peak = 0", "waits for its last reader"),
    ("merged_peak = -589", "it rises"),
    ("merged_peak = 589824", "right, but in bytes"),
    ("merged_peak = 147", "4 bytes"),
    ('merged_peak = "higher"', "a number, such as 0"),
    ("fused_megabytes = 8", "✓"),  # mg.sin(x) * x + mg.cos(x)
    ("fused_megabytes = 8.0", "✓"),
    ('fused_megabytes = "8 MB"', "the number alone: 8"),
    ("fused_megabytes = 8_000_000", "right, but in bytes"),
    ("fused_megabytes = 4", "The result is written too"),
    ("fused_megabytes = 40", "node by node"),
    ("fused_megabytes = 12", "each input is read once"),
    ("fused_megabytes = 20", "count the arrays at both ends"),
    ("fused_operations = 4", "✓"),
    ("fused_operations = 4e6", "how many million?"),
    ("fused_operations = 1", "every operation for each number"),
    ("fused_operations = 3", "nothing is left out"),
    ("fused_operations = 8", "that counts twice"),
    ("dragged_out = 16", "✓"),
    ('dragged_out = "16 kB"', "the number alone: 16"),
    ("dragged_out = 8", "goes through memory now"),
    ("dragged_out = 24", "three kernels"),
    ("by_columns = 3", "✓"),  # x / (x * x).sum(0) ** 0.5
    ("by_columns = 1", "goes over all rows"),
    ("by_columns = 2", "one more"),
    ("by_columns = 257", "one kernel finds the numbers of all 256"),
    ("softmax_passes = 2", "✓"),  # x / x.sum(-1, keepdims=True)
    ("softmax_passes = 3", "Which ones are inside"),
    ("softmax_passes = 1", "before the next loop"),
])
def test_questions_of_the_notebook(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_the_picture_of_kernels_begins_with_one_operation_in_each():
    view = TASKS["my_kernels"](SESSION.student).given()["view"]
    assert "3 launches instead of 3 one by one" in repr(view)
    better = view.move("sum_1", "kernel_0")
    assert "2 launches instead of 3 one by one, 1.05 MB" in repr(better)
    assert np.isclose(better.cost.program.bytes, 1_048_584)


def test_the_numbers_of_the_lecture_on_merging_are_those_of_the_demo():
    cell = next(each for each in stored(ROOT / "notebooks/11_fusion.ipynb").cells if each.id == "fusion-peak")
    names = {"mg": mg}
    exec(cell.source.partition("\n\nsize = ")[0], names)
    args = mg.ones((256, 256)), mg.ones((256, 256))
    peaks = [mg.jit(names[name]).cost(*args).eager_peak for name in ("twice", "once")]
    text = (ROOT / "lectures/11_fusion.md").read_text(encoding="utf-8")
    assert "Computed twice: {} kB. Merged: {:,} kB".format(*[-(-peak // 1000) for peak in peaks]) in text


@pytest.mark.parametrize("code", ROWS)
def test_loops_over_a_row_are_counted(code):
    text = descent(lambda x: value(code, None, {"x": x}), mg.ones((64, 32))).text()
    assert len(re.findall(r"for .*\br\d", text)) == ROWS[code]


@pytest.mark.parametrize(("holds", "breaks"), PAIRS)
def test_one_rule_of_a_pair_holds_and_the_other_breaks_at_the_number(holds, breaks):
    number = float(PAIRS[holds, breaks][0])
    rule = holds if "-0.0" in holds else holds.replace(".0", "", holds.count(".0"))
    assert counterexample(Equation(rule, "f")) is None
    assert not same_bits(*both_sides(breaks, number)) and same_bits(*both_sides(holds, number))
