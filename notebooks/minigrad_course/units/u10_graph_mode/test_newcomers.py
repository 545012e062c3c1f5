"""Answers of real newcomers to unit 10, in addition to the declared mistakes: each gets feedback that helps."""

import linecache

import pytest

import minigrad as mg
import minigrad_course as course
from minigrad_course.feedback import Wrong
from minigrad_course.unit import units
from minigrad_course.units.u10_graph_mode.saved import Run, rate_of
from tests.course.running import said_to

DEEP = "import copy\n    noted = copy.deepcopy(values)\n    "
GUARDS = {
    "compares at once": ("noted = dict(values)\n    return noted == values", "return it without brackets"),
    "calls its function": (f"{DEEP}def holds():\n        return noted == values\n    return holds()", "return holds"),
    "forgets it": ("noted = dict(values)\n    def holds():\n        return noted == values", "returned None"),
    "asserts": (
        "noted = repr(values)\n    def holds():\n        assert repr(values) == noted\n        return True\n"
        "    return holds", "an assert of yours stops the program"),
    "a class": (
        "class Holds:\n        noted = repr(values)\n        def __call__(self):\n"
        "            return repr(values) == self.noted\n    return Holds()", "✓"),
    "as JSON": ("import json\n    noted = json.dumps(values)\n    return lambda: json.dumps(values) == noted", "✓"),
    "as text": ("noted = str(values)\n    return lambda: str(values) == noted", "✓"),
    "pickled": ("import pickle\n    noted = pickle.dumps(values)\n    return lambda: pickle.dumps(values) == noted",
                "✓"),
    "types in a list": (
        f"{DEEP}kinds = [type(v) for v in values.values()]\n"
        "    return lambda: noted == values and kinds == [type(v) for v in values.values()]", "✓"),
    "another name": ("noted = values\n    return lambda: noted == values", "the same dictionary"),
    "a copy": ("noted = values.copy()\n    return lambda: noted == values", "copy.deepcopy"),
    "its items": ("noted = list(values.items())\n    return lambda: list(values.items()) == noted", "copy.deepcopy"),
    "deep": (f"{DEEP}return lambda: noted == values", "compare the types too"),
    "a hash": ("noted = hash(tuple(values.items()))\n    return lambda: hash(tuple(values.items())) == noted",
               "a list has no hash"),
    "the first equal one": (
        "noted = dict(values)\n    def holds():\n        for n in noted:\n            if noted[n] == values[n]:\n"
        "                return True\n        return False\n    return holds", "inside the loop"),
    "over the old names": (
        f"{DEEP}return lambda: all(repr(noted[n]) == repr(values.get(n)) for n in noted)", "a new name is a change"),
    "over the new names": (
        f"{DEEP}return lambda: all(repr(noted.get(n)) == repr(values[n]) for n in values)", "a name that is gone"),
    "prints": ("noted = dict(values)\n    def holds():\n        print(noted == values)\n    return holds",
               "is there a `return`?"),
    "one name": ("rate = values['rate']\n    return lambda: values['rate'] == rate", "all must be equal"),
    "is": ("noted = dict(values)\n    return lambda: all(noted[n] is values[n] for n in noted)", "compare by =="),
    "with a parameter": (
        "noted = dict(values)\n    def holds(values):\n        return noted == values\n    return holds",
        "holds() has no parameters"),
    "notes again": (
        f"{DEEP}def holds():\n        nonlocal noted\n        same = noted == values\n"
        "        noted = copy.deepcopy(values)\n        return same\n    return holds", "note once"),
    "the other way round": (f"{DEEP}return lambda: noted != values", "True while nothing has changed"),
    "only names": ("noted = list(values)\n    return lambda: list(values) == noted", "or the names?"),
    "takes a name away": ("noted = dict(values)\n    return lambda: all(values[n] == noted[n] for n in noted)",
                          "copy.deepcopy"),
    "values without names": (
        "noted = sorted(map(repr, values.values()))\n"
        "    return lambda: sorted(map(repr, values.values())) == noted", "have changed places"),
    "a method": (f"{DEEP}return values.__eq__", "define it with `def holds():`"),
    "not written": ("pass", "not written yet"),
}


@pytest.mark.parametrize("which", GUARDS)
def test_feedback_on_guards(which):
    body, words = GUARDS[which]
    assert words in said_to(f"def guard(values):\n    {body}", "guard")


LOOPS = {
    "by a sum": ("while x < 10:\n        x = x + x\n    return x", "✓"),
    "in place": ("while x < 10.0:\n        x *= 2\n    return x", "✓"),
    "for ever": ("while True:\n        if x >= 10.0:\n            return x\n        x = x * 2", "✓"),
    "a number": ("while x.item() < 10.0:\n        x = x * 2\n    return x", "without .item()"),
    "as a float": ("x = float(x)\n    while x < 10.0:\n        x = x * 2\n    return x", "without .item()"),
    "calls itself": ("if x < 10.0:\n        return grow(x * 2)\n    return x", "not a function that calls itself"),
    "by logarithm": (
        "import math\n    n = max(math.ceil(math.log2(10 / float(x))), 0)\n    return x * 2**n", "must stay tensors"),
    "once": ("if x < 10.0:\n        x = x * 2\n    return x", "`while` in place of `if`"),
    "until": ("while x <= 10.0:\n        x = x * 2\n    return x", "10 itself is not doubled"),
    "counts": (
        "n = 0\n    while x < 10.0:\n        x = x * 2\n        n += 1\n    return n",
        "a line after it that returns x"),
    "too early": ("while x < 5:\n        x = x * 2\n    return x", "one turn too early"),
    "doubles first": ("x = x * 2\n    while x < 10.0:\n        x = x * 2\n    return x", "compare first"),
    "prints": ("while x < 10.0:\n        x = x * 2\n    print(x)", "a line after it that returns x"),
    "by a logarithm of tensors": ("return x * 2 ** mg.ceil(mg.log2(10 / x))", "its graph has no loop"),
    "returns in the loop": ("while x < 10.0:\n        x = x * 2\n        return x", "inside the loop"),
}


@pytest.mark.parametrize("which", LOOPS)
def test_feedback_on_loops(which):
    body, words = LOOPS[which]
    assert words in said_to(f"def grow(x):\n    {body}", "grow")


@pytest.mark.parametrize("decorators", ["@mg.script", "@mg.jit\n@mg.script"])
def test_a_loop_with_a_decorator_is_refused_with_a_hint(decorators):
    loop = "def grow(x):\n    while x < 10.0:\n        x = x * 2\n    return x"
    assert "without a decorator" in said_to(f"{decorators}\n{loop}", "grow")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("frozen_rate = 0.25", "✓"),  # from 16, traced with 0.75
        ("frozen_rate = '1/4'", "✓"),
        ("frozen_rate = 2", "that is eager mode"),
        ("frozen_rate = [4, 1, 0.25]", "one number is enough"),
        ("frozen_rate = [0.25, 0.25, 0.25]", "the last of the three"),
        ("frozen_rate = 4", "after one call"),
        ("frozen_rate = 16", "a rate of 0"),
        ("frozen_rate = '8'", "without the quotation marks"),
        ("frozen_rate = 'error'", "the graph runs"),
        ("frozen_rate = 7.5", "What does it do to w"),
        ("printed_order = ['one', 'two', 'three', 'four']", "that is eager mode"),
        ("printed_order = 'two, one, four, three'", "✓"),
        ("printed_order = ['Two', 'one', 'four', 'three']", "✓"),
        ("printed_order = ['two', 'four']", "with the recorded prints in it"),
        ("printed_order = ['two', 'four', 'one', 'three']", "nothing waits for the end"),
        ("printed_order = ['two', 'one', 'three', 'four']", "nearly"),
        ("printed_order = ['one', 'one']", "needed for the first time"),
        ("python_runs = [1, 3, 4]", "How many lines"),
        ("python_runs = 5", "that is eager mode"),
        ("python_runs = 3", "✓"),
        ("python_runs = 'three'", "✓"),
        ("python_runs = 2", "whole numbers"),
        ("python_runs = 4", "do other numbers need another graph?"),
        ("small_gradient = [0.07, 0.24]", "The graph has no `if`"),
        ("clip_nodes = (3, 0, 2, 0)", "✓"),
        ("clip_nodes = '3 0 2 0'", "✓"),
        ("clip_nodes = [3, 'none', 2, 'none']", "✓"),
        ("clip_nodes = {2: 3, 3: 0, 4: 2, 5: 0}", "✓"),
        ("clip_nodes = [['multiply', 'sum', 'sqrt'], [], ['divide', 'multiply'], []]", "✓"),
        ("clip_nodes = mg.asarray([3, 0, 2, 0])", "✓"),
        ("clip_nodes = [3, 1, 2, 0]", "Python chooses a line by the answer"),
        ("clip_nodes = [4, 1, 2, 0]", "a product, a sum and a root"),
        ("clip_nodes = [3, 0, 1, 0]", "divides, and then multiplies"),
        ("clip_nodes = [3, 0, 2, 1]", "only returns g"),
        ("clip_nodes = [1, 1, 1, 1]", "not for each line"),
        ("clip_nodes = [3, 0, 0, 0]", "which way does Python go?"),
        ("clip_nodes = [0, 2, 0, 3]", "line 2 first"),
        ("clip_nodes = [3, 0, 2]", "line 5, with its `return`, is the last"),
        ("clip_nodes = 5", "four numbers"),
        ("clip_nodes = 'many'", "numbers, such as [1, 0, 1, 0]"),
        ("small_gradient = [0.6, 0.8]", "the example's result"),
        ("small_gradient = 1.0", "two numbers"),
        ("small_gradient = [0.014, 0.048]", "Only the decision is old"),
        ("small_gradient = 'error'", "there is no error"),
        ("small_gradient = mg.asarray([0.28, 0.96])", "✓"),
        ("three_ways = 'right right error'", "✓"),
        ("three_ways = ['right', 'wrong', 'error']", "so it is for a short gradient"),
        ("three_ways = ['right', 'right', 'wrong']", "placeholders that have no values"),
        ("three_ways = ['wrong', 'right', 'error']", "keeps both branches"),
        ("three_ways = {'script': 'right'}", "that is the first part only"),
        ("three_ways = {'script': 'right', 'trace': 'right', 'annotation': 'error'}", "✓"),
        ("three_ways = ['correct', 'OK', 'crash']", "✓"),
        ("three_ways = 'R R E'", "one word for each"),
        ("first_call_costs = 'about 50'", "noted"),
        ("first_call_costs = '50 times'", "noted"),
        ("first_call_costs = 1000", "not among the choices"),
        ("python_runs = [1, 2, 3]", "one number"),
        ("clip_nodes = 'three, none, two, none'", "✓"),
        ("small_gradient = 'the same'", "The graph has no `if`"),
        ("divisions = {'trace': 5, 'script': 1}", "✓"),
        ("divisions = 'five and one'", "✓"),
        ("divisions = 'many'", "numbers, such as 2, 3"),
        ("divisions = [5, 1]", "✓"),  # of 20
        ("divisions = (5, 5)", "the body in it once"),
        ("divisions = 4, 1", "halved once more"),
        ("divisions = 5, 0", "a loop node has a body"),
        ("nan_maker = 'Divide'", "✓"),
        ("nan_maker = 'exp'", "not a nan"),
        ("nan_maker = 'sum'", "not a nan"),
        ("nan_maker = '/'", 'one of "exp"'),
        ("first_number = 2", "Has it a value?"),
        ("first_number = 7", "the second call"),
        ("second_call = '1, 2'", "without the quotation marks"),
        ("second_call = {1, 2}", "in brackets"),
        ("second_call = 4", "a list of numbers"),
        ("second_call = [1]", "only the first?"),
        ("second_call = [1, 2, 6, 7, 8]", "calls 2 and 8: the same shape"),
        ("second_call = [1, 2, 3, 6, 7]", "calls 2 and 3: the same shape"),
        ("second_call = [1, 2, 7]", "look at call 6"),
        ("second_call = [2, 6, 7]", "look at call 1"),
        ("second_call = [1, 2, 6]", "a guard compares it"),
        ("second_call = [1, 2, 6, 7, 7]", "Go call by call"),
        ("baked_branch = [float('nan'), 9, 9]", "the function and the graph both compute"),
        ("baked_branch = [9, 0, 0]", "✓"),
        ("baked_branch = [8, 8, 8]", "the branch in the graph"),
        ("baked_branch = 9", "three numbers"),
        ("baked_branch = 'x > 8'", "three numbers"),
        ("loop_difference = 12.0", "two numbers"),
        ("loop_difference = (12.0, 12.0)", "The trace has no loop"),
        ("loop_difference = (6, 3)", "The script stops too early"),
        ("why_loop = 'a'", "✓"),
        ("why_loop = 'because'", 'one of "A"'),
        ("only_graph = ('b', 'subtract_1')", "✓"),
        ("only_graph = ('B', 'exp')", "mg.jit(f, check=True)"),
        ("only_graph = ('C', 'multiply')", "it reads a global name"),
        ("only_graph = 'B'", "a letter, and the name of a node"),
    ],
)
def test_questions_of_graph_mode(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_an_x_of_the_other_branch_with_the_same_result_is_named_as_chance():
    tasks = map(units()["10_graph_mode"].tasks["baked_branch"], "abcdefghijklmnopqrstuvwxyz")
    task = next(
        task for task in tasks
        if "x * 2.0" in task.program.code and "x + 5.0" in task.program.code and task.measure == "sum" and not task.up)
    with pytest.raises(Wrong, match="both compute") as refused:
        task.check([5.0, 5.0, 5.0])
    assert "equal by chance" in refused.value.hint


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李"])
def test_the_calls_that_run_python_are_those_of_the_engine(student):
    task = units()["10_graph_mode"].tasks["second_call"](student)
    names = {"mg": mg}
    linecache.cache["<calls>"] = (len(task.code), None, task.code.splitlines(keepends=True), "<calls>")
    exec(compile(task.code, "<calls>", "exec"), names)
    found = []
    for number, call in enumerate(task.calls, 1):
        before = len(names["f"].traces)
        exec(str(call), names)
        found += [number] * (len(names["f"].traces) - before)
    assert found == task.right()


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李"])
def test_one_of_four_functions_is_wrong_in_graph_mode_only(student):
    task = units()["10_graph_mode"].tasks["only_graph"](student)
    wrong = []
    for letter in "ABCD":
        f = mg.jit(task.function(letter), check=True)
        f(mg.asarray([0.5, 1.0]))
        task.change(letter)
        try:
            f(mg.asarray([0.5, 1.0]))
        except mg.CheckError as error:
            wrong.append((letter, str(error).partition("Got: ")[2].partition(",")[0]))
    assert wrong == [task.right()]


# ---- the training ----------------------------------------------------------------------------------------------------

STEP = '''
import minigrad as mg
import minigrad_course as course

model = course.task("guard").network()
rate = 0.0

def step(images, labels):
    loss = mg.cross_entropy(model(images), labels)
    loss.backward()
    with mg.no_grad():
        for weight in model.parameters():
            weight -= rate * weight.grad
            weight.grad = None
    return loss

def set_rate(value):
    global rate
    rate = value
'''


def trained(guard):
    file, names = "/anywhere/ipykernel_1/1.py", {"__name__": "__main__"}
    linecache.cache[file] = (len(STEP), None, STEP.splitlines(keepends=True), file)
    exec(compile(STEP, file, "exec"), names)
    return course.task("guard").train(guard, names["step"], names["model"], names["set_rate"])


@pytest.mark.slow
def test_a_guard_saves_a_training_that_learns_nothing_without_it():
    def guard(values):
        noted = repr(values)
        return lambda: repr(values) == noted

    saved = trained(guard)
    assert saved.guarded.right == saved.eager.right > 300 and saved.blind.right < 100
    assert [number for number, _ in saved.guarded.traced] == [1, 2, 45]
    assert saved.guarded.traced[1][1] == "rate was 0.0 and is 0.5"
    assert "The same losses" in saved.picture.pages[0][0].say and f"{saved.blind.right} without a guard" in repr(saved)


@pytest.mark.slow
def test_a_wrong_guard_does_not_save_it_and_one_that_never_holds_traces_every_step():
    def aliased(values):
        noted = values
        return lambda: noted == values

    assert trained(aliased).guarded.right < 100
    never = trained(lambda values: lambda: False)
    assert never.guarded.right > 300 and len(never.guarded.traced) == len(never.guarded.losses)


def test_a_run_counts_the_digits_that_are_read():
    _, labels = mg.data.digits()[1].arrays
    assert Run([], [], labels).right == len(labels) and [rate_of(1), rate_of(2), rate_of(60)] == [0.0, 0.5, 0.1]
