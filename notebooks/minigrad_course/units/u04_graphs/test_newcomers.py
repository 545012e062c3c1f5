"""Answers of real newcomers to unit 04, in addition to the declared mistakes: each gets feedback that helps."""

from itertools import permutations

import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.core.node import topological_order
from minigrad_course.unit import units
from tests.course.running import said_to

UNIT = units()["04_graphs"]
STUDENTS = ["", "Ada", "Grace", "李"]

# For the student without a name: x = -3, w = 2, `h = scaled(h) + x` twice, then `y = h - 4`.
A1, H1 = '"a": ("multiply", "w", "x")', '"b": ("add", "a", "x")'
A2, H2 = '"c": ("multiply", "w", "b")', '"d": ("add", "c", "x")'
GRAPHS = {
    "with other names": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ("subtract", "d", 4)}}', "✓"),
    "in another order": (f'{{"y": ("subtract", "d", 4), {H2}, {A2}, {H1}, {A1}}}', "✓"),
    "with signs": (
        '{"a": ("*", "w", "x"), "b": ("+", "a", "x"), "c": ("*", "w", "b"), "d": ("+", "c", "x"), "y": ("-", "d", 4)}',
        "✓"),
    "with mg. and lists": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ["mg.subtract", "d", 4.0]}}', "✓"),
    "h again and again": (
        '{"h": ("multiply", "w", "h"), "y": ("subtract", "h", 4)}', "cannot be computed from itself"),
    "one round": (f'{{{A1}, {H1}, "y": ("subtract", "b", 4)}}', "It goes round twice"),
    "the other branch": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ("multiply", "d", "d")}}', "which of the two branches"),
    "with spare": (
        f'{{{A1}, {H1}, {A2}, {H2}, "s": ("multiply", "d", 5), "y": ("subtract", "d", 4)}}', "no arrow leads"),
    "with h = x": (f'{{"h": ("x",), {A1}, {H1}, {A2}, {H2}, "y": ("subtract", "d", 4)}}', "a name is not a node"),
    "with leaves": (f'{{"x": -3.0, "w": 2.0, {A1}, {H1}, {A2}, {H2}, "y": ("subtract", "d", 4)}}', "x is given"),
    "an expression": ('{"a": ("add", "w * x", "x"), "y": ("subtract", "a", 4)}', "one operation:"),
    "a number as text": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ("subtract", "d", "4")}}', "numbers without quotation marks"),
    "swapped in one place": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ("subtract", 4, "d")}}', "the inputs are swapped"),
    "the result by another name": (f'{{{A1}, {H1}, {A2}, {H2}, "h": ("subtract", "d", 4)}}', "is called y"),
    "a misspelled node": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ("subtract", "dd", 4)}}', "is it spelled"),
    "without the number": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ("subtract", "d")}}', "a number is an input too"),
    "the values": (f'{{{A1}, {H1}, {A2}, {H2}, "y": -31}}', "is not an operation with its inputs"),
    "as a list": ('[("multiply", "w", "x")]', "is not a dictionary"),
    "the second round begins with x": (
        f'{{{A1}, {H1}, "c": ("multiply", "w", "x"), {H2}, "y": ("subtract", "d", 4)}}', "begins with the h"),
    "h before it moves on": (
        f'{{{A1}, {H1}, {A2}, "d": ("add", "c", "b"), "y": ("subtract", "d", 4)}}', "is not assigned again"),
    "a function as an operation": (
        '{"a": ("scaled", "x"), "b": ("add", "a", "x"), "y": ("subtract", "b", 4)}', "what runs inside"),
    "all products turned": (
        '{"a": ("multiply", "x", "w"), "b": ("add", "a", "x"), "c": ("multiply", "b", "w"), "d": ("add", "c", "x"), '
        '"y": ("subtract", "d", 4)}', "the inputs are swapped"),
    "one in another": (
        '{"y": ("subtract", ("add", ("multiply", "w", "x"), "x"), 4)}', "give the inner operation an entry"),
    "an operation that is not there": (f'{{{A1}, {H1}, {A2}, {H2}, "y": ("minus one", "d")}}', "is not an operation"),
}


@pytest.mark.parametrize("which", GRAPHS)
def test_feedback_on_graphs(which):
    answer, words = GRAPHS[which]
    assert words in said_to(f"typed_graph = {answer}", "typed_graph")


EMITS = {
    "in one line": (
        "return op.compute([getattr(x, 'data', x) for x in inputs]), [getattr(x, 'node', x) for x in inputs]", "✓"),
    "as a list": (
        "return [op.compute([getattr(x, 'data', x) for x in inputs]), [getattr(x, 'node', x) for x in inputs]]", "✓"),
    "edges in a tuple": (
        "t = [isinstance(x, mg.Tensor) for x in inputs]\n    return op.compute([x.data if i else x for x, i in "
        "zip(inputs, t)]), tuple(x.node if i else x for x, i in zip(inputs, t))", "✓"),
    "the inputs": ("return op.compute(inputs), inputs", "the value of a tensor x is x.data"),
    "data of a number": ("return op.compute([x.data for x in inputs]), [x.node for x in inputs]", "has no data"),
    "a set of edges": (
        "v = [getattr(x, 'data', x) for x in inputs]\n    return op.compute(v), "
        "list({getattr(x, 'node', x) for x in inputs})", "set"),
    "values apart": ("return op.compute(*[getattr(x, 'data', x) for x in inputs]), []", "one list"),
    "calls op": ("return op(*inputs), [x.node for x in inputs]", "op.compute(values)"),
    "no edges": ("return op.compute([getattr(x, 'data', x) for x in inputs]), []", "the edges are wrong"),
    "prints": ("print(op.compute([getattr(x, 'data', x) for x in inputs]))", "after `return`"),
    "only the tensors": (
        "t = [x for x in inputs if isinstance(x, mg.Tensor)]\n    return op.compute([x.data for x in t]), "
        "[x.node for x in t]", "a number is its own value"),
    "a tensor as the value": (
        "return mg.asarray(op.compute([getattr(x, 'data', x) for x in inputs])), "
        "[getattr(x, 'node', x) for x in inputs]", "return the value itself"),
    "does not compute": (
        "return [getattr(x, 'data', x) for x in inputs], [getattr(x, 'node', x) for x in inputs]", "computes the"),
    "computes with nodes": ("return op.compute([getattr(x, 'node', x) for x in inputs]), []", "compute got a node"),
    "numbers of tensors": ("return op.compute([float(x) for x in inputs]), []", "an array of any size"),
    "by item": ("return op.compute([x.item() for x in inputs]), []", "an array of any size"),
    "only floats are numbers": (
        "return op.compute([x if type(x) is float else x.data for x in inputs]), "
        "[x if type(x) is float else x.node for x in inputs]", "has no data"),
    "two inputs": ("a, b = inputs\n    return op.compute([getattr(a, 'data', a), getattr(b, 'data', b)]), "
                   "[getattr(a, 'node', a), getattr(b, 'node', b)]", "one input, two or more"),
    "a new tensor, said in words": (
        "return mg.asarray(op.compute([getattr(x, 'data', x) for x in inputs])), "
        "[getattr(x, 'node', x) for x in inputs]", "Got: a new tensor"),
    "values, said in words": (
        "return [getattr(x, 'data', x) for x in inputs], [getattr(x, 'node', x) for x in inputs]", "Got: a list, [2.0"),
    "as PyTorch": ("return op.compute([x.grad_fn for x in inputs]), inputs", "x.data"),
}


@pytest.mark.parametrize("which", EMITS)
def test_feedback_on_recorders(which):
    body, words = EMITS[which]
    assert words in said_to(f"def emit(op, inputs):\n    {body}", "emit")


HEAD = "from minigrad_course import inputs_of\nfrom minigrad.core.node import Node\n"
ORDERS = {
    "after all inputs": (
        "found = []\n    def visit(node):\n        if node in found: return\n        for each in inputs_of(node): "
        "visit(each)\n        found.append(node)\n    visit(result)\n    return found", "deeper than Python"),
    "with a stack": (
        "found, seen, stack = [], set(), [(result, False)]\n    while stack:\n        node, done = stack.pop()\n"
        "        if done: found.append(node)\n        elif node not in seen:\n            seen.add(node)\n"
        "            stack.append((node, True))\n            stack += [(n, False) for n in inputs_of(node)]\n"
        "    return found", "✓"),
    "counts what is missing": (
        "users, todo = {result: []}, [result]\n    for node in todo:\n        for each in set(inputs_of(node)):\n"
        "            if each not in users: users[each] = []; todo.append(each)\n            users[each].append(node)\n"
        "    wait = {n: len(set(inputs_of(n))) for n in users}\n    ready = [n for n in wait if not wait[n]]\n"
        "    for node in ready:\n        for user in users[node]:\n            wait[user] -= 1\n"
        "            if not wait[user]: ready.append(user)\n    return ready", "✓"),
    "without remembering": (
        "found = []\n    for each in inputs_of(result):\n        found += topological_order(each)\n"
        "    return found + [result]", "in the list more than once"),
    "from the result": (
        "found, todo = {result}, [result]\n    while todo:\n        for each in inputs_of(todo.pop()):\n"
        "            if each not in found: found.add(each); todo.append(each)\n"
        "    return sorted(found, key=lambda n: -n.serial)", "turn the list round"),
    "numbers too": (
        "found, todo = [result], [result]\n    for node in todo:\n        for each in getattr(node, 'inputs', ()):\n"
        "            if each not in found: found.append(each); todo.append(each)\n    return found[::-1]",
        "not the numbers"),
    "a set": (
        "found, todo = {result}, [result]\n    while todo:\n        for each in inputs_of(todo.pop()):\n"
        "            if each not in found: found.add(each); todo.append(each)\n    return found", "a set"),
    "sorts in place": ("return [result].sort()", "sorted() gives a new one"),
    "names": ("return [node.name for node in inputs_of(result)]", "not their names"),
    "one step": ("return inputs_of(result) + [result]", ""),
}


@pytest.mark.parametrize("which", ORDERS)
def test_feedback_on_orders(which):
    body, words = ORDERS[which]
    said = said_to(f"{HEAD}def topological_order(result):\n    {body}", "topological_order")
    assert words.lower() in said.lower() and ("✓" in said or "Hint" in said)


SAME = {
    "trees": (
        "if not isinstance(one, Node) or not isinstance(other, Node): return one == other\n    return one.name == "
        "other.name and len(one.inputs) == len(other.inputs) and all(map(same_graph, one.inputs, other.inputs))",
        "what is shared"),
    "the number of inputs": (
        "if not isinstance(one, Node) or not isinstance(other, Node): return one == other\n    return one.name == "
        "other.name and all(map(same_graph, one.inputs, other.inputs))", "what is shared"),
    "by ==": ("return one == other", "Two runs make different nodes"),
    "by names": ("return one.name == other.name", "go on with its inputs"),
    "without numbers": ("return one.name == other.name and all(map(same_graph, one.inputs, other.inputs))", "a number"),
    "nothing returned": ("if one.name != other.name: return False", "return True"),
    "one dictionary": (
        "m = {}\n    def go(a, b):\n        if not isinstance(a, Node): return a == b\n"
        "        if a in m: return m[a] is b\n        m[a] = b\n        return a.name == b.name and "
        "len(a.inputs) == len(b.inputs) and all(map(go, a.inputs, b.inputs))\n    return go(one, other)",
        "for each direction"),
    "numbered by serial": (
        "def listed(n):\n        found, todo = {n}, [n]\n        while todo:\n"
        "            for i in inputs_of(todo.pop()):\n                if i not in found: found.add(i); todo.append(i)\n"
        "        order = sorted(found, key=lambda n: n.serial)\n        at = {n: i for i, n in enumerate(order)}\n"
        "        return [(n.name, [at.get(i, i) for i in n.inputs]) for n in order]\n"
        "    return listed(one) == listed(other)", "in another order perhaps"),
    "in text": ("return str(one) == str(other)", "go on with its inputs"),
}


@pytest.mark.parametrize("which", SAME)
def test_feedback_on_equal_graphs(which):
    body, words = SAME[which]
    assert words in said_to(f"{HEAD}def same_graph(one, other):\n    {body}", "same_graph")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("in_the_graph = ['add', 'multiply']", "✓"), ("in_the_graph = []", "which kinds?"),
        ('in_the_graph = "multiply and add"', "✓"),
        ('in_the_graph = {"if"}', "Python decided"),
        ('in_the_graph = ["for", "if", "multiply", "add"]', "Python or the library"),
        ('in_the_graph = ["while"]', "is not one of them"),
        ("in_the_graph = 0", "is not a list of texts"),
        ("nodes = 7", "✓"),
        ("nodes = 4", "run in each round"),
        ("nodes = 8", "One of the two branches".lower()),
        ("arrows = 3", "does not make one of them"),
        ("arrows = 6", "✓"),
        ('same = ["B", "E"]', "✓"),
        ('same = ["e", "b"]', "✓"),
        ('same = "B, C, D, E"', "x on the left"),
        ("graphs = 3", "✓"),
        ("graphs = 2", "two `if`s make three ways"),
        ("kept_nodes = 3", "names h, loss and total move on"),
        ("graphs = 5", "leave equal graphs"),
        ("graphs = 6", "And the others?"),
        ("arrows = 4", "without the last line"),
        ("kept_nodes = 240", "✓"),
        ("kept_nodes = 239", "the first round has three"),
        ("kept_nodes = 241", "is a number"),
        ("kept_nodes = 161", "one sum"),
        ('same = ["A", "B", "E"]', "'A' is not one of them"),
        ('same = "BE"', "✓"), ('same = "all"', "all five print the same number"),
        ('in_the_graph = ["mul", "+"]', "✓"), ('in_the_graph = "multiply add"', "✓"),
        ('an_order = ["d", "b", "a", "c", "y"]', "begin with a"), ('an_order = "A -> D -> C -> B -> Y"', "✓"),
        ('moved = ("D", 0, "A")', "✓"),
        ('an_order = "a, d, c, b, y"', "✓"),
        ('an_order = "a d c b y"', "✓"),
        ('an_order = ["a", "b", "c", "d", "y"]', "that is the alphabet"),
        ('an_order = ["a", "c", "d", "b", "y"]', "which of them has no value yet"),
        ('an_order = ["x", "a", "b", "c", "d", "y"]', "x is given"),
        ('an_order = ["a", "b", "c", "y"]', "d is not in the list"),
        ('an_order = ["a", "d", "c", "b"]', "y is not in the list"),
        ('an_order = {"a", "b", "c", "d", "y"}', "keep no order"),
        ('an_order = ["y", "b", "c", "d", "a"]', "the other way round"),
        ("an_order = [1, 2]", "is not a list of names"),
        ('moved = ("d", 0, "a")', "✓"),
        ('moved = ["d", 0, "a"]', "✓"),
        ('moved = ("d", 1, "a")', "the other input of d"),
        ('moved = ("d", 2, "a")', "inputs count from 0"),
        ('moved = ("c", 0, "a")', "so has the picture"),
        ('moved = ("d", 0, "x")', "What does the program have in the line of d?"),
        ('moved = ("d", 0, "w")', "where the arrow begins now"),
        ('moved = ("x", 0, "a")', "box where the arrow ends"),
        ('moved = ("a", 0, "d")', "the other way round"),
        ("moved = 3", "has another form"),
    ],
)
def test_questions_of_graphs(answer, words):
    assert words.lower() in said_to(answer, answer.partition(" ")[0]).lower()


@pytest.mark.parametrize("student", STUDENTS)
def test_one_move_repairs_the_graph_and_its_value(student):
    task = UNIT.tasks["moved"](student)
    assert task.right()[2] != task.begins and task.y_of(task.broken) != task.y_of(task.graph)
    assert len(task.given()["board"].pages) == 10 * (7 + 1)


@pytest.mark.slow
def test_every_student_has_a_wrong_arrow_and_the_arrows_differ():
    variants = [UNIT.tasks["moved"](str(i)) for i in range(100)]
    assert all(abs(task.y_of(task.broken)) < 1000 for task in variants)
    assert len({(*task.right(), task.begins) for task in variants}) > 8
    boards = [task.given()["board"].pages[0][0].drawing for task in variants[:10]]
    assert max(board.width for board in boards) < 670  # all boxes fit beside the text, in a notebook


def test_all_right_orders_are_accepted():
    task = UNIT.tasks["an_order"]("")
    said = {names: said_to(f"an_order = {list(names)}", "an_order") for names in permutations("abcdy")}
    right = [names for names in said if "✓" in said[names]]
    begun = [names for names in said if "no box turns red" in said[names]]
    assert len(right) == 2 and len(right + begun) == 5 and "5 orders" in task.explained()


# ---- in the engine ---------------------------------------------------------------------------------------------------


def emit(op, inputs):
    values = [x.data if isinstance(x, mg.Tensor) else x for x in inputs]
    return op.compute(values), [x.node if isinstance(x, mg.Tensor) else x for x in inputs]


@pytest.mark.slow
def test_a_gpt_learns_with_the_students_recorder_and_order():
    order = UNIT.tasks["topological_order"]("").right
    with course.emitter(emit) as mine, course.node_order(order) as ordered:
        learned = course.train_names(steps=12)
    assert mine.calls > 12 * 100 and ordered.calls == 12
    assert learned.losses == course.train_names(steps=12).losses and learned.losses[-1] < learned.losses[0]
    assert "→" in repr(learned) and learned.picture.text().startswith("before: ")
    assert all(UNIT.tasks["same_graph"]("").right(node, learned.nodes[0]) for node in learned.nodes)


@pytest.mark.slow
def test_a_gpt_does_not_learn_in_a_wrong_order():
    with course.node_order(lambda result: topological_order.__wrapped__([result])[::-1]):
        losses = course.train_names(steps=12).losses
    assert losses[-1] > losses[0] - 0.2
