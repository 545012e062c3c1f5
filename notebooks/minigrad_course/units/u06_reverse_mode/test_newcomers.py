"""Answers of real newcomers to unit 06: from first runs, and from numbered issues of other teaching engines."""

import pytest

import minigrad as mg
import minigrad_course as course
from minigrad_course import made_from
from minigrad_course.feedback import Feedback
from tests.course.running import said_to

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
    "keeps the first": (
        """
    for node in backward_order(result):
        for source, value in passes_back(node, gradients[node]):
            gradients.setdefault(source, value)""",
        "the second is lost",
    ),
    "begins with 1": (
        """
    for node in backward_order(result):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 1) + value""",
        "and not 1",
    ),
    "takes gradients out": (
        """
    for node in backward_order(result):
        for source, value in passes_back(node, gradients.pop(node)):
            gradients[source] = gradients.get(source, 0) + value""",
        "every node needs its gradient in the end",
    ),
    "pairs turned round": (
        """
    for node in backward_order(result):
        for value, source in passes_back(node, gradients[node]):
            gradients[source] = gradients.get(source, 0) + value""",
        "the node comes first in each pair",
    ),
    "g before the node": (
        """
    for node in backward_order(result):
        passes_back(gradients[node], node)""",
        "the node comes first",
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


@pytest.mark.parametrize("clip", ["0, {}", "-1e9, {}", "-{}, 1e9"])
def test_a_clip_from_one_side_is_wrong(clip):
    task = course.task("clipped_walk")._of
    body = f"""
    for node in backward_order(result):
        g = gradients[node]
        if node.name == "{task.op}":
            g = mg.clip(g, {clip.format(task.most)})
        for source, value in passes_back(node, g):
            gradients[source] = gradients.get(source, 0) + value"""
    assert "✗" in said_to(SORTED.replace("walk_back", "clipped_walk") + body.lstrip("\n"), "clipped_walk")


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
    "always place 0": (
        "        x.grad = None\n        seed = mg.zeros(y.size)\n        seed[0] = 1\n"
        "        y.backward(seed, retain_graph=True)", "1 at place i"),
    "returns at once": (
        "        x.grad = None\n        seed = mg.zeros(y.size)\n        seed[i] = 1\n"
        "        y.backward(seed, retain_graph=True)\n        return [x.grad]", "Is `return` inside the loop"),
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
        ('broken = ["lost", "order", "stale"]', "2 of 3 are not right"),
        ('broken = ["order", "lost", "stale"]', "✓"),
        ('broken = "lost"', "has another form"),
        ('broken = {"A": "lost", "B": "lost", "C": "lost"}', "2 of 3 are not right"),
        ('broken = {"A": ..., "B": "lost", "C": "stale"}', "not answered yet"),
        ("paths = 2 ** 40", "passed on"),
        ("paths = 1e9", "there are 40 additions"),
        ("two_ways = 21, 21", "in another order"),
        ("kept = [0, 320, 80]", "✓"),
        ("kept = [0, 320, 320]", "takes less room"),
        ('again = "A, B"', "✓"),  # A `h + h` · B `-h` · C `h * h` · D `1 / h`
        ('again = ["A"]', "1 of yours is right, 0 too many, 1 missing"),
        ('again = "A, B, C"', "h was kept"),
        ("from_ones = mg.asarray([6.0, 8.0, 10.0])", "✓"),
        ("walks = 1", "How many are fixed"),
        ("weighted = (-1, -2, 0)", "✓"),
        ('weighted = "[-1, -2, 0]"', "without the quotation marks"),
        ('walks = "1, 10"', "without the quotation marks"),
        ("walks = 20, 1", "then the 20 scores"),
        ("walks = 3501, 20", "how many runs"),
        ("kept = [0, 640, 80]", "so the input is not kept"),
        ("kept = [0, 320000, 80000]", "these are bytes"),
        ("walks = 1, 3500", "does not count"),
        ("from_ones = [7, 10, 13]", "was cleared before"),
        ("kept = [0, 320, 10]", "take a byte"),
        ("kept = [0, 640, 640]", "so the input is not kept"),
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


def test_a_wrong_walk_in_a_picture_is_answered_in_words():
    x = mg.asarray(1.0, requires_grad=True)
    y = x * x

    def forward(result, gradients, passes_back):
        passes_back(*made_from(result)[:1], gradients[made_from(result)[0]])

    with pytest.raises(Feedback, match="before any contribution has come"), course.backward(forward):
        mg.viz.step(y)
