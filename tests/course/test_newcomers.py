"""Answers of real newcomers, in addition to the declared mistakes: each must get feedback that helps.

Most answers come from first runs of the units in JupyterLab, or from numbered issues of other teaching engines.
"""

import pytest

import minigrad as mg
from minigrad import course
from minigrad.course import made_from
from minigrad.course.feedback import Feedback
from minigrad.course.results import Progress
from minigrad.course.session import SESSION
from minigrad.course.unit import units
from tests.course.running import Notebook


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(SESSION, "progress", Progress())


def said_to(source, task):
    """The feedback on a student's cell, whether it is printed or raised."""
    notebook = Notebook()
    notebook.names |= {"mg": mg, "course": course, "made_from": made_from}
    for cell in (source, f'course.check("{task}")'):
        notebook.run(cell)
    return notebook.said[-1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("rise = 0.1004", "✓"),
        ("rise = 0.1", "✓"),
        ("rise = 1/10", "✓"),
        ("rise = 0.5", "put 1.01 in place of 1.0"),
        ("rise = 0", "put 1.01 in place of 1.0"),
        ('rise = "a bit"', "put 1.01 in place of 1.0"),
        ("rise = None", "not answered yet"),
        ("numbers = [1, 3, 5]", "✓"),
        ("numbers = (1, 3, 5)", "✓"),
        ("numbers = 1, 3, 5", "✓"),
        ("numbers = 5", "that is the last"),
        ("numbers = [1, 2, 3]", "look only at the box"),
        ('empty = "No."', "✓"),
        ("empty = False", "✓"),
        ("empty = True", "0 is an answer"),
        ('empty = "maybe"', 'write "yes" or "no"'),
        ("early = [2, 10]", "✓"),
        ("early = (10, 2)", "the other way round"),
        ('order = ["y", "multiply", "a", "x"]', "✓"),
        ('order = ["∂ y", "∂ multiply", "∂ a"]', "✓"),
        ('order = "y, multiply, a"', "✓"),
        ("y = a = mg.ones(())\norder = [y, a]", "in quotation marks"),
        ('order = ["x", "a", "multiply", "y"]', 'each of "y", "multiply" and "a" once'),
        ('rise = "0.1"', "without the quotation marks"),
        ("rise = 0,1", "with a point, not a comma: 0.1"),
        ("rise = [0.1]", "one number, without brackets"),
        ("numbers = [1, 1, 3, 3, 5]", "each number once"),
        ("numbers = [1, 1, 3, 3, 5, 5]", "each number once"),
        ("numbers = [1, 1, 2, 3]", "your answer has 4 numbers"),
        ("numbers = [1, 3.02, 5.04]", "Put 1.0 back"),
        ('numbers = ["1", "3", "5"]', "without quotation marks"),
        ('numbers = "1, 3, 5"', "without the quotation marks"),
        ("numbers = {1, 3, 5}", "which keep the order"),
        ("empty = 0", 'write "yes" or "no"'),
        ('empty = "no, because nothing has come"', "✓"),
        ('early = "2, 10"', "without the quotation marks"),
        ('early = "2", "10"', "without quotation marks"),
        ('order = ["Y", "Multiply", "A"]', "✓"),
        ('order = ["y" "multiply" "a"]', "a comma after each"),
        ('order = {"y", "multiply", "a"}', "in brackets"),
        ("gradient_of_a = [-20]", "without brackets"),
    ],
)
def test_feedback_on_questions_of_the_start(answer, words):
    assert words in said_to(answer, answer.split("\n")[-1].partition(" ")[0])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return [g * b, g * a]", "✓"),
        ("to_a = g * b\n    to_b = g * a\n    return to_a, to_b", "✓"),
        ("return b * g, a * g", "✓"),
        ("return g * b g * a", "Python cannot read this line"),
        ("return (g * b), (g * a", "Python cannot read this line"),
        ("print(g * b, g * a)", "only the value after `return`"),
        ("g = g * b\n    return g, g * a", "the g that the first line has changed"),
        ("return g * out / a, g * out / b", "no need to divide"),
        ("return g * (a + b)", "you added the gradients"),
        ("return -10, 15", "right for one example only"),
        ("return b * g, b * g", "let a rise by 0.01"),
        ("return grad * b, grad * a", "spelled in the same way"),
        ("return gb, ga", "write the sign between"),
        ("return g(b), g(a)", "to multiply, write the sign"),
        ("return 5b, 3a", "write the sign between"),
        ("if a > 0:\n        return g * b, g * a", "is there a `return`?"),
        ("a = g * b\n    b = g * a\n    return a, b", "give your result another name"),
        ("return (g * b),\n    return (g * a)", "after the comma"),
        ("return int(g * b), int(g * a)", "that is rounded"),
        ("return round(g * b), round(g * a)", "that is rounded"),
        ("return str(g * b), str(g * a)", "numbers, not text"),
        ('return f"{g * b}, {g * a}"', "numbers, not text"),
        ('return {"a": g * b, "b": g * a}', "with a comma between"),
        ("import numpy as np\n    return np.array([g * b, g * a])", "with a comma between"),
        ("yield g * b\n    yield g * a", "not yield"),
    ],
)
def test_feedback_on_the_rule_of_a_product(body, words):
    assert words in said_to(f"def mul_grad(g, out, a, b):\n    {body}", "mul_grad")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return g * 3 * a, g * (3 * b + 6)", "swapped"),
        ("return g * (3 * b + 6 * a), g * 3 * a", "a itself does not stay"),
        ("return g * 3 * b + 6 * a, g * 3 * a", "no a"),
        ("return 3 * a * b + 6 * a", "that is out itself"),
        ("return g * (3 * b + 6)\n    return g * 3 * a", "Return the gradient of b too"),
        ("return g * 3 * b, g * 6, g * 3 * a", "added to one number"),
    ],
)
def test_feedback_on_the_students_own_rule(body, words):
    assert words in said_to(f"def mixed_grad(g, out, a, b):\n    {body}", "mixed_grad")


def test_feedback_on_a_function_by_another_name():
    said = said_to("def mul_gard(g, out, a, b):\n    return g * b, g * a", "mul_grad")
    assert "do you mean mul_gard?" in said
    assert 'course.check("rise")?' in said_to("rise = 0.1", "Rise")


def test_feedback_on_a_function_that_is_not_indented():
    assert "four spaces more" in said_to("def mul_grad(g, out, a, b):\nreturn g * b, g * a", "mul_grad")


ORDERS = {
    "visits depth first and puts down first (micrograd 96)": (
        """
    order = []
    def dfs(v):
        if v not in order:
            order.append(v)
            for child in made_from(v):
                dfs(child)
    dfs(result)
    return order""",
        "when it is first met",
    ),
    "puts down afterwards, and forgets to turn round": (
        """
    topo, visited = [], set()
    def build(v):
        if v not in visited:
            visited.add(v)
            for child in made_from(v):
                build(child)
            topo.append(v)
    build(result)
    return topo""",
        "turn the list round",
    ),
    "calls itself, and is right for all but the deep": (
        """
    topo, visited = [], set()
    def build(v):
        if v not in visited:
            visited.add(v)
            for child in made_from(v):
                build(child)
            topo.append(v)
    build(result)
    return topo[::-1]""",
        "in a loop",
    ),
    "puts a node down anew whenever it is met": (
        """
    order = []
    def visit(v):
        if v in order:
            order.remove(v)
        order.append(v)
        for child in made_from(v):
            visit(child)
    visit(result)
    return order""",
        "a is used twice, so its",
    ),
    "visits anew for each use": (
        """
    order = []
    def visit(v):
        for child in made_from(v):
            visit(child)
        order.append(v)
    visit(result)
    return order[::-1]""",
        "remember which nodes you have visited",
    ),
    "sorts nodes by nothing": ("\n    return sorted([result, *made_from(result)])", "key=lambda node: node.serial"),
    "adds to the set that it goes over": (
        """
    seen = {result}
    for v in seen:
        seen.update(made_from(v))
    return sorted(seen, key=lambda v: -v.serial)""",
        "collect in another place",
    ),
    "never takes anything away": (
        """
    todo = [result]
    while todo:
        for v in made_from(todo[-1]):
            if v not in todo:
                todo.append(v)
    return todo""",
        "does not end",
    ),
    "returns what sort returns": (
        """
    seen, stack = {result}, [result]
    while stack:
        for v in made_from(stack.pop()):
            if v not in seen:
                seen.add(v)
                stack.append(v)
    return list(seen).sort(key=lambda v: -v.serial)""",
        "give back None",
    ),
    "returns a set": (
        """
    seen, stack = {result}, [result]
    while stack:
        for v in made_from(stack.pop()):
            if v not in seen:
                seen.add(v)
                stack.append(v)
    return sorted(seen, key=lambda v: v.serial % 2)""",
        "A set has no order",
    ),
    "asks graphlib, and forgets to turn round": (
        """
    from graphlib import TopologicalSorter
    sorter, seen, stack = TopologicalSorter(), {result}, [result]
    while stack:
        v = stack.pop()
        sorter.add(v, *made_from(v))
        for child in made_from(v):
            if child not in seen:
                seen.add(child)
                stack.append(child)
    return list(sorter.static_order())""",
        "turn the list round",
    ),
    "returns nothing": ("\n    order = sorted({result}, key=lambda v: v.serial)", "not a list of nodes"),
    "returns names": ("\n    return [v.name for v in made_from(result)]", "not their names"),
    "returns tensors' order by number": (
        """
    seen, stack = {result}, [result]
    while stack:
        for v in made_from(stack.pop()):
            if v not in seen:
                seen.add(v)
                stack.append(v)
    return sorted(seen, key=lambda v: -v.serial)""",
        "✓",
    ),
}


@pytest.mark.parametrize("which", ORDERS)
def test_feedback_on_backward_orders(which):
    body, words = ORDERS[which]
    assert words in said_to(f"def backward_order(result):{body}", "backward_order")


SORTED = """
def backward_order(result):
    seen, stack = {result}, [result]
    while stack:
        for v in made_from(stack.pop()):
            if v not in seen:
                seen.add(v)
                stack.append(v)
    return sorted(seen, key=lambda v: -v.serial)

def walk_back(result, gradients, passes_back):
"""
WALKS = {
    "with get and 0": (
        """
    for node in backward_order(result):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 0) + value""",
        "✓",
    ),
    "+= on what is not there": (
        """
    for node in backward_order(result):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] += value""",
        "if source in gradients",
    ),
    "+= in place (OneFlow 9497)": (
        """
    for node in backward_order(result):
        for source, value in passes_back(node, gradients[node]):
            if source in gradients:
                gradients[source] += value
            else:
                gradients[source] = value""",
        "changes a tensor in place",
    ),
    "calls itself for every child (micrograd 21, 68)": (
        """
    def back(node):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 0) + value
        for source in made_from(node):
            back(source)
    back(result)""",
        "passes back twice",
    ),
    "walks every path (micrograd 81, 91)": (
        """
    def back(node, g):
        for source, value in passes_back(node, g):
            gradients[source] = gradients.get(source, 0) + value
            back(source, value)
    back(result, gradients[result])""",
        "2⁴⁰",
    ),
    "goes forward": (
        """
    for node in backward_order(result)[::-1]:
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 0) + value""",
        "begin at the result",
    ),
    "makes a dictionary of its own": (
        """
    found = dict(gradients)
    for node in backward_order(result):
        for source, value in passes_back(node, found[node]):
            found[source] = found.get(source, 0) + value
    return found""",
        "not the one that your function was given",
    ),
    "takes the seed for 1": (
        """
    gradients[result] = mg.ones(())
    for node in backward_order(result):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 0) + value""",
        "it is not always 1",
    ),
    "begins with a number": (
        """
    g = 1
    for node in backward_order(result):
        gradients[node] = g
        for source, g in passes_back(node, g):
            gradients[source] = gradients.get(source, 0) + g""",
        "not a plain number",
    ),
    "goes over the dictionary itself": (
        """
    for node in gradients:
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 0) + value""",
        "collect in another place",
    ),
    "clears gradients as in PyTorch": (
        """
    for node in backward_order(result):
        node.grad.zero_()""",
        "its gradient is gradients[node]",
    ),
    "calls backward": ("    result.backward(retain_graph=True)", "that is a node"),
    "multiplies by g again": (
        """
    for node in backward_order(result):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 0) + gradients[node] * value""",
        "multiplied by g already",
    ),
    "calls itself on what came": (
        """
    for source, value in passes_back(result, gradients[result]):
        gradients[source] = gradients.get(source, 0) + value
        walk_back(source, gradients, passes_back)""",
        "passes back twice",
    ),
    "counts each node's value once": (
        """
    for node in backward_order(result):
        for source, value in set(passes_back(node, gradients[node])):
            gradients[source] = value""",
        "should be added to it",
    ),
}


DEPTH_FIRST = """
def backward_order(result):
    order, todo, seen = [], [(result, False)], set()
    while todo:
        v, done = todo.pop()
        if done:
            order.append(v)
        elif v not in seen:
            seen.add(v)
            todo.append((v, True))
            todo += [(child, False) for child in made_from(v)]
    return order[::-1]

def walk_back(result, gradients, passes_back):
"""


@pytest.mark.parametrize("which", ["+= in place (OneFlow 9497)", "counts each node's value once"])
def test_feedback_on_walks_in_another_right_order(which):
    """A walk that overwrites gradients keeps the last contribution.  The last one depends on the order of the walk."""
    body, words = WALKS[which]
    assert words in said_to(DEPTH_FIRST + body.lstrip("\n"), "walk_back")


@pytest.mark.parametrize("which", WALKS)
def test_feedback_on_walks(which):
    body, words = WALKS[which]
    assert words in said_to(SORTED + body.lstrip("\n"), "walk_back")


JACOBIAN = "def jacobian(f, x):\n    y = f(x)\n    rows = []\n    for i in range(y.size):\n"
ROWS = {
    "goes back twice": (
        "        seed = mg.zeros(y.size)\n        seed[i] = 1\n        y.backward(seed)", "for the next row"),
    "lets gradients add up": (
        "        seed = mg.zeros(y.size)\n        seed[i] = 1\n        y.backward(seed, retain_graph=True)", "x.grad"),
    "goes back from an element": ("        x.grad = None\n        f(x)[i].backward()", "✓"),
    "goes back from all": ("        y.backward()", "a single number"),
}


JACOBIANS = {
    "asks minigrad for it": ("return mg.jacobian(f)(x)", "✓"),
    "seeds of the size of x": (
        "y = f(x)\n    return [y.backward(mg.ones(x.size), retain_graph=True) for i in range(3)]",
        "Expected: (2,)\n  Got: (3,)",
    ),
    "clears what is not there": ("x.grad.zero_()", "x.grad = None clears it"),
    "by differences": (
        "y, e = f(x), 1e-2\n    columns = []\n    for j in range(x.size):\n"
        "        d = mg.zeros(x.size)\n        d[j] = e\n"
        "        columns.append(((f(x + d) - f(x - d)) / (2 * e)).detach().numpy())\n"
        "    return [[float(c[i]) + 1e-3 for c in columns] for i in range(y.size)]", "nearly right"),
}


@pytest.mark.parametrize("which", JACOBIANS)
def test_feedback_on_unusual_jacobians(which):
    body, words = JACOBIANS[which]
    assert words in said_to(f"def jacobian(f, x):\n    {body}", "jacobian")


@pytest.mark.parametrize("which", ROWS)
def test_feedback_on_jacobians(which):
    body, words = ROWS[which]
    assert words in said_to(f"{JACOBIAN}{body}\n        rows.append(x.grad)\n    return rows", "jacobian")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('broken = ["lost", "order", "stale"]', "has another form"),
        ('broken = {"A": "lost", "B": "lost", "C": "lost"}', "2 of 3 are not right"),
        ('broken = {"A": ..., "B": "lost", "C": "stale"}', "not answered yet"),
        ("paths = 2 ** 30", "passed on"),
        ("paths = 1e9", "there are 30 additions"),
        ("two_ways = 10, 10", "in another order"),
        ("kept = [0, 400, 100]", "✓"),
        ("kept = [0, 400, 400]", "takes less room"),
        ('again = "add"', "✓"),
        ('again = ["h + 1"]', 'a list of some of "add"'),
        ("from_ones = mg.asarray([5.0, 7.0, 9.0])", "✓"),
        ("walks = 1", "How many are fixed"),
        ("weighted = (-1, -2, 0)", "✓"),
        ('weighted = "[-1, -2, 0]"', "without the quotation marks"),
        ('walks = "1, 10"', "without the quotation marks"),
        ("walks = 10, 1", "the other way round"),
        ("walks = 1, 2410", "does not count"),
        ("from_ones = [6, 9, 12]", "was cleared before"),
        ('again = ["tanh"]', "that tanh saved"),
        ('again = ["add", "relu"]', "a byte for each"),
        ('again = ["relu", "tanh"]', "both had saved"),
        ("kept = [0, 400, 12.5]", "take a byte"),
        ("kept = [0, 800, 800]", "so the input is not kept"),
        ('paths = "60"', "without the quotation marks"),
    ],
)
def test_feedback_on_questions_of_reverse_mode(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_the_broken_engines_do_what_their_bugs_are_called():
    task = course.task("broken")
    found = {}
    for letter in "ABC":
        x = mg.asarray(task.x, requires_grad=True)
        w = mg.asarray(task.w, requires_grad=True)
        a = 2 * x
        b = a * w
        y = a + b * b
        with course.backward(task.engine(letter)):
            steps = mg.viz.step(y).steps
        added = any(step.kind == "sum" for step in steps)
        agree = all(step.check is None or step.check.agrees for step in steps)
        sent = next(i for i, step in enumerate(steps) if step.node is a.node)
        late = any(step.target is a.node for step in steps[sent:])
        found[letter] = "lost" if not added else "order" if late else "stale" if not agree else "sound"
    course.check("broken", found)


def test_feedback_shows_nothing_of_the_checker():
    """Feedback never contains names or lines of the checker."""
    with pytest.raises(Feedback) as refused:
        course.check("walk_back", lambda result, gradients, passes_back: 1 / 0)
    assert "minigrad/" not in str(refused.value) and "walk_tasks" not in str(refused.value)


def test_a_wrong_walk_in_a_picture_is_answered_in_words():
    x = mg.asarray(1.0, requires_grad=True)
    y = x * x

    def forward(result, gradients, passes_back):
        passes_back(*made_from(result)[:1], gradients[made_from(result)[0]])

    with pytest.raises(Feedback, match="before any contribution has come"), course.backward(forward):
        mg.viz.step(y)


@pytest.mark.parametrize("wrong", [lambda g, out, a, b: (g * a, g * b), lambda g, out, a, b: (b, a)])
def test_a_wrong_rule_reads_no_digits(wrong):
    """A wrong rule must not train as well as the right one."""
    with course.rule("multiply", wrong) as mine:
        trained = course.train_digits(mine, 2)
    assert trained.right < 0.3 * trained.shown


def test_the_first_answer_that_is_reported_is_the_first(tmp_path):
    SESSION.progress.path = tmp_path / "course-progress.json"
    said_to("weighted = [1, 1, 1]", "weighted")
    said_to("weighted = [-1, -2, 0]", "weighted")
    assert SESSION.progress.tasks["weighted"]["first"] == "[1, 1, 1]"


def test_progress_counts_answers_from_before_begin(tmp_path, monkeypatch):
    (tmp_path / "course-progress.json").touch()
    monkeypatch.chdir(tmp_path)
    said_to("numbers = [1, 3, 5]", "numbers")
    assert "✓ numbers" in str(course.progress()) and "0 of 0" not in str(course.progress())


FOUR_RULES = {
    "the slope by the exponential": ("sigmoid_grad(g, out, x)", "return g * mg.exp(-x) / (1 + mg.exp(-x)) ** 2", "✓"),
    "in brackets": ("sigmoid_grad(g, out, x)", "return (g * out * (1 - out),)", "✓"),
    "with PyTorch's names": ("sigmoid_grad(g, out, x)", "return g * torch.sigmoid(x)", "NameError"),
    "multiplied without a sign": ("sigmoid_grad(g, out, x)", "return g * out(1 - out)", "write the sign"),
    "summed": ("sigmoid_grad(g, out, x)", "return (g * out * (1 - out)).sum()", "no sum"),
    "the slope of the input": ("sigmoid_grad(g, out, x)", "return g * x * (1 - x)", "uses the output"),
    "the value": ("sigmoid_grad(g, out, x)", "return g * out", "one factor is missing"),
    "sums a row, and a column without its axis": (
        "add_grad(g, out, a, b)",
        "if b.shape == g.shape:\n        return g, g\n    if b.ndim == 2:\n        return g, g.sum(1)\n"
        "    return g, g.sum(0) if b.ndim else g.sum()", "keepdims=True",
    ),
    "compares lengths": (
        "add_grad(g, out, a, b)",
        "if b.ndim == 1:\n        return g, g.sum(0)\n    if b.ndim == 0:\n        return g, g.sum()\n    return g, g",
        "In a column",
    ),
    "by reshaping": (
        "add_grad(g, out, a, b)",
        "if b.shape == g.shape:\n        return g, g\n    if b.ndim == 2:\n        return g, g.sum(1, keepdims=True)\n"
        "    return g, g.sum(0) if b.ndim else g.sum()", "✓",
    ),
    "one gradient": ("add_grad(g, out, a, b)", "return g", "Return the gradient of b too"),
    "torch's sum_to_size": ("add_grad(g, out, a, b)", "return g, g.sum_to_size(b.shape)", "sum_to_size"),
    "torch's dim": ("add_grad(g, out, a, b)", "return g, g.sum(dim=0)", "g.sum(axis=0)"),
    "torch's keepdim": ("add_grad(g, out, a, b)", "return g, g.sum(0, keepdim=True)", "with an s"),
    "reshapes": ("add_grad(g, out, a, b)", "return g, g.reshape(b.shape)", "reshape adds nothing"),
    "ones": ("add_grad(g, out, a, b)", "return 1, 1", "g is missing"),
    "a product": ("add_grad(g, out, a, b)", "return g * b, g * a", "the rule of a product"),
    "torch's t": ("matmul_grad(g, out, a, b)", "return g @ b.t(), a.t() @ g", ".T, without brackets"),
    "the inputs": ("matmul_grad(g, out, a, b)", "return b, a", "without g"),
    "which": ("maximum_grad(g, out, a, b)", "return a > b, b > a", "g is missing"),
    "place by place": ("matmul_grad(g, out, a, b)", "return g * b.T, a.T * g", "The matrix product is `@`"),
    "the wrong side": ("matmul_grad(g, out, a, b)", "return b.T @ g, g @ a.T", "write down the shapes"),
    "not turned": ("matmul_grad(g, out, a, b)", "return g @ b, a @ g", "write down the shapes"),
    "turned twice": ("matmul_grad(g, out, a, b)", "return b @ g.T, g.T @ a", "transposed shape"),
    "with mg.matmul": ("matmul_grad(g, out, a, b)", "return mg.matmul(g, b.T), mg.matmul(a.T, g)", "✓"),
    "if": ("maximum_grad(g, out, a, b)", "if a > b:\n        return g, 0 * g\n    return 0 * g, g", "decide once"),
    "both at a tie": ("maximum_grad(g, out, a, b)", "return g * (a >= b), g * (b >= a)", "both get all of g"),
    "by the output": ("maximum_grad(g, out, a, b)", "return g * (out == a), g * (out == b)", "both get all of g"),
    "in halves": (
        "maximum_grad(g, out, a, b)", "t = 0.5 * (a == b)\n    return g * ((a > b) + t), g * ((b > a) + t)", "equally"),
    "smaller": ("maximum_grad(g, out, a, b)", "return g * (a < b), g * (b < a)", "the smaller input gets g"),
    "with where": (
        "maximum_grad(g, out, a, b)",
        "s = mg.where(a > b, 1.0, mg.where(a == b, SHARE, 0.0))\n    return g * s, g * (1 - s)", "✓",
    ),
}


@pytest.mark.parametrize("which", FOUR_RULES)
def test_feedback_on_rules_of_arrays(which):
    head, body, words = FOUR_RULES[which]
    share = units()["05_gradient_functions"].tasks["maximum_grad"]("").share
    assert words in said_to(f"def {head}:\n    {body.replace('SHARE', str(share))}", head.partition("(")[0])


CHECKS = {
    "from one side": (
        "h, y = 1e-6, f(x)\n    r = rule(g, y, x)\n    big = 0\n    for i in range(len(x)):\n        z = x.copy()\n"
        "        z[i] += h\n        big = max(big, abs(r[i] - ((f(z) - y) * g).sum() / h))\n    return big", "✓"),
    "far from one side": (
        "h, y = 0.1, f(x)\n    r = rule(g, y, x)\n    big = 0\n    for i in range(len(x)):\n        z = x.copy()\n"
        "        z[i] += h\n        big = max(big, abs(r[i] - ((f(z) - y) * g).sum() / h))\n    return big",
        "h = 1e-5"),
    "leaves its nudges": (
        "big = 0\n    for i in range(len(x)):\n        y = f(x)\n        x[i] += 1e-6\n"
        "        big = max(big, abs(rule(g, y, x)[i] - ((f(x) - y) * g).sum() / 1e-6))\n    return big",
        "nudge a copy"),
    "all together": (
        "h = 1e-6\n    n = (f(x + h) - f(x - h)) * g / (2 * h)\n    return abs(rule(g, f(x), x) - n).max()",
        "nudge x[i] alone"),
    "goes over the numbers": ("for i in x:\n        x.copy()[i] += 1", "for i in range(len(x))"),
    "returns the slopes": ("return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5", "one number"),
    "number by number": (
        "h, big = 1e-5, 0\n    for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += h\n"
        "        d[i] -= h\n        n = (f(u)[i] - f(d)[i]) * g[i] / (2 * h)\n"
        "        big = max(big, abs(rule(g, f(x), x)[i] - n))\n    return big", "a single number"),
    "says whether": ("return True", "not whether it is small"),
    "returns after the first": (
        "for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += 1e-5\n        d[i] -= 1e-5\n"
        "        return abs(rule(g, f(x), x)[i] - np.sum((f(u) - f(d)) * g) / 2e-5)", "inside of the loop"),
    "without brackets": (
        "h, big = 1e-5, 0\n    for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += h\n"
        "        d[i] -= h\n        big = max(big, abs(rule(g, f(x), x)[i] - np.sum((f(u) - f(d)) * g) / 2 * h))\n"
        "    return big", "with brackets"),
    "forgets g": (
        "h, big = 1e-5, 0\n    for i in range(len(x)):\n        u, d = x.copy(), x.copy()\n        u[i] += h\n"
        "        d[i] -= h\n        big = max(big, abs(rule(g, f(x), x)[i] - np.sum(f(u) - f(d)) / (2 * h)))\n"
        "    return big", "multiply the change of f by g"),
    "another order": ("return rule(x, f(x), g)[0]", "h = 1e-5"),
}


@pytest.mark.parametrize("which", CHECKS)
def test_feedback_on_gradient_checks(which):
    body, words = CHECKS[which]
    assert words in said_to(f"import numpy as np\ndef gradcheck(f, rule, x, g):\n    {body}", "gradcheck")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("same_function = 1", "never sees the function"),
        ("same_function = 0.0", "✓"),
        ("from_output = 0.64", "And g?"),
        ("from_output = 1.28", "✓"),
        ("flat = 0.00987", "✓"),
        ("flat = 0.01", "✓"),
        ("flat = 0.995", "that is the output"),
        ("chained = 3.64", "not added"),
        ("chained = 3 * (1 - 0.6 ** 2)", "✓"),
        ("bias = [1, 1, 1]", "each use sends a 1"),
        ("bias = 12", "everything in one number"),
        ("bias = mg.asarray([4.0, 4.0, 4.0])", "✓"),
        ('by_shapes = "X.T@g"', "✓"),
        ('by_shapes = "g @ X"', "do not go together"),
        ('by_shapes = "X"', ".T turns"),
        ("at_the_kink = 0", "(0.1 − 0) / 0.2"),
        ("at_the_kink = 1/2", "✓"),
        ("step = 1e-15", "16 digits"),
        ("step = 0.00001", "✓"),
        ("bias_gradient = 5", "column by column"),
        ('wrong_rule = "A"', "has another form"),
        ('wrong_rule = ("F", 1.0)', "has another form"),
    ],
)
def test_questions_of_gradient_functions(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


def test_a_letter_of_a_right_rule_is_not_the_wrong_rule():
    task = units()["05_gradient_functions"].tasks["wrong_rule"]("")
    right, largest = task.right()
    other = next(letter for letter in "ABCDE" if letter != right)
    assert "should be near 0" in said_to(f'wrong_rule = ("{other}", 0.5)', "wrong_rule")
    assert "is not its largest difference" in said_to(f'wrong_rule = ("{right}", {largest + 1})', "wrong_rule")
    assert "✓" in said_to(f'wrong_rule = ["{right.lower()}", {largest}]', "wrong_rule")


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李"])
def test_one_of_five_rules_is_wrong_and_four_are_right(student):
    """Also the amount that the wrong rule is off by is large enough to be seen."""
    tasks = units()["05_gradient_functions"].tasks
    task, check = tasks["wrong_rule"](student), tasks["gradcheck"]("")
    off = {each: check.right(task.forward(each), task.rule(each), task.x, task.gradient(each)) for each in "ABCDE"}
    assert off.pop(task.right()[0]) > 0.05 and max(off.values()) < 1e-6


def test_a_network_learns_by_the_four_rules_and_not_by_a_wrong_one():
    tasks = units()["05_gradient_functions"].tasks
    train = tasks["maximum_grad"]("").given()["train"]

    def matmul_grad(g, out, a, b):
        return g @ b.T, a.T @ g

    def summed(g, out, a, b):
        return g, g.sum(0)

    with course.rule("matmul", matmul_grad) as mine, course.rule("add", summed):
        assert train().right > 300 and mine.calls > 0
    with course.rule("sigmoid", lambda g, out, x: out * (1 - out)):
        assert train().right < 100
