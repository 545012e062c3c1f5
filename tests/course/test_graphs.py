"""Graphs as dictionaries: read, compared up to names, folded and unfolded; boards to compute on and to move arrows."""

import pytest

import minigrad as mg
from minigrad_course.boards import Arrow, act_out, draw, evaluated, expression, mover, with_arrow
from minigrad_course.feedback import Wrong, written
from minigrad_course.graphs import (
    ITSELF,
    Unreadable,
    disorder,
    folded,
    graph_of,
    reached,
    read_graph,
    unfolded,
    unlike,
)
from minigrad_course.units.u04_graphs.graph_tasks import ONE_NODE, SWAPPED, UNUSED, GraphTask, OrderTask

GRAPH = {"a": ("multiply", "x", 2), "b": ("subtract", "a", "x"), "y": ("multiply", "b", "b")}


def renamed(graph, **names):
    return {names.get(name, name): tuple([names.get(each, each) for each in node]) for name, node in graph.items()}


def test_names_and_the_order_of_entries_do_not_count():
    other = dict(reversed(renamed(GRAPH, a="p", b="q").items()))
    assert unlike(other, GRAPH, "y") is None and unlike(GRAPH, renamed(GRAPH, a="b", b="a"), "y") is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": ("add", "b", "b")}, "the operation of y is not add"),
        ({"y": ("multiply", "b")}, "y does not have 1 input"),
        ({"y": ("multiply", "b", "a")}, "input 1 of y is not a"),
        ({"a": ("multiply", "x", 3)}, "input 1 of a is not 3"),
        ({"b": ("subtract", "x", "a")}, "input 0 of b is not x"),
        ({"c": ("subtract", "a", "x"), "y": ("multiply", "b", "c")}, "input 1 of y is not c"),
    ],
)
def test_the_first_difference_is_named(change, says):
    assert unlike({**GRAPH, **change}, GRAPH, "y") == says


def test_two_nodes_are_not_one_in_either_direction():
    twice = unfolded(GRAPH, "y")
    assert len(twice) == 5 and unlike(twice, GRAPH, "y") and unlike(GRAPH, twice, "y")
    assert unlike(folded(twice, "y"), GRAPH, "y") is None and folded(GRAPH, "y") == GRAPH
    same = {"x1": ("multiply", "x", "w")}
    assert unlike({"y": ("add", "x", "w")}, {"y": ("add", "x", "x")}, "y") and folded(same, "x1") == same


def test_the_graph_of_a_program_is_that_of_its_dictionary():
    x = mg.asarray(3.0, requires_grad=True)
    a = x * 2
    b = a - x
    y = b * b
    assert graph_of(y.node, {x.node: "x", a.node: "a", b.node: "b", y.node: "y"}) == GRAPH
    assert evaluated(GRAPH, {"x": 3.0}, "y")["y"] == y.item()


@pytest.mark.parametrize(
    ("answer", "says", "hint"),
    [
        ([1], "is not a dictionary", "for each node"),
        ({"x": ("add", 1, 2)}, "x is given", "that an operation makes"),
        ({"y": "a * b"}, "is not an operation with its inputs", "for each node"),
        ({"y": ()}, "is not an operation with its inputs", "for each node"),
        ({"a": ("add", "x", "x")}, "there is no node y", "is called y"),
        ({"y": ("add", "b", "x")}, "y: there is no node b", "spelled"),
        ({"y": ("add", "x + 1", "x")}, "y: there is no node x + 1", "one operation"),
        ({"y": ("add", "2", "x")}, "y: '2' is a text", "without quotation marks"),
        ({"y": ("add", [1], "x")}, "y: [1] is not a name or a number", "in quotation marks"),
        ({"y": ("add", "a", 1), "a": ("add", "y", 1)}, "is computed from itself", ITSELF),
    ],
)
def test_an_answer_that_is_not_a_graph_is_explained(answer, says, hint):
    with pytest.raises(Unreadable) as refused:
        read_graph(answer, ["x"], "y")
    assert says in refused.value.args[0] and hint in refused.value.args[1]


def test_signs_and_short_names_of_operations_are_read():
    answer = {"a": ["*", " x ", 2], "b": ("mg.subtract", "a", "x"), "y": ("Times", "b", "b")}
    assert read_graph(answer, ["x"], "y") == GRAPH


class Example(GraphTask):
    """Write the graph."""

    name = "example_graph"

    def right(self):
        return GRAPH


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"y": ("multiply", "b")}, "one arrow for each use: both inputs of a * a are a, and the node lists a twice"),
        ({"b": ("subtract", "x", "a")}, SWAPPED),
        ({"c": ("subtract", "a", "x"), "y": ("multiply", "b", "c")}, ONE_NODE),
        ({"c": ("add", "a", "x")}, UNUSED),
        ({"y": ("add", "b", "b")}, GraphTask.otherwise),
    ],
)
def test_a_task_whose_answer_is_a_graph_derives_the_common_mistakes(change, hint):
    task = Example()
    assert task.check(renamed(GRAPH, a="c", b="d")) is None
    with pytest.raises(Wrong) as refused:
        task.check({**GRAPH, **change})
    assert refused.value.hint == hint


class Order(OrderTask):
    """Write an order."""

    name = "example_order"

    def graph(self):
        return {"a": ("add", "x", 1), "b": ("add", "x", 2), "y": ("add", "a", "b")}


def test_every_order_that_respects_the_arrows_is_right():
    task = Order()
    assert task.check(["a", "b", "y"]) is None and task.check("b, a, y") is None
    with pytest.raises(Wrong, match="b is not in the list"):
        task.check(["a", "y"])
    assert disorder(["a", "a", "b", "y"], task.graph()) == "a is in the list more than once"
    assert disorder(["x", "a", "b", "y"], task.graph()) == "x is given: no operation makes it"
    assert disorder(["q", "a", "b", "y"], task.graph()) == "there is no operation q"


# ---- boards ----------------------------------------------------------------------------------------------------------


def test_a_board_has_a_page_for_each_set_of_clicks():
    board = act_out(GRAPH, {"x": 3.0}, "y")
    says = [page.say for (page,) in board.pages]
    assert len(says) == 8 and says[0].startswith("Click an operation") and says[-1].startswith("Every operation")
    assert says[0b010] == "b cannot be computed: a has no value yet."
    assert "a · x" not in board.text() and "b = a − x" in board.text()
    drawn = board.pages[0b100][0].drawing.to_svg("a")
    assert drawn.count('data-go="') == 3 and 'data-go="0:0"' in drawn  # a click on a takes it back


def test_one_arrow_is_moved_and_the_value_of_the_result_follows():
    board = mover(GRAPH, {"x": 3.0}, "y", 9.0)
    assert len(board.pages) == 5 * 5
    says = {page.say for (page,) in board.pages}
    assert "y is 9. The program computes 9." in says and "a would be computed from itself: no value can be." in says
    moved = with_arrow(GRAPH, Arrow("x", "b", 1), "a")
    assert evaluated(moved, {"x": 3.0}, "y")["y"] == 0 and reached(moved, "y") == ["x", "a", "b", "y"]


def test_a_dictionary_is_drawn_and_said():
    assert draw(GRAPH).text() == "1. 3 operations: a, b, y."
    assert [expression(node) for node in GRAPH.values()] == ["x · 2", "a − x", "b · b"]
    assert expression(("tanh", "a")) == "tanh(a)" and evaluated({"y": ("what", "x")}, {"x": 1.0}, "y")["y"] != 0


def test_nodes_are_written_in_feedback():
    x = mg.asarray(3.0, requires_grad=True)
    assert written(x.node).startswith("<leaf () float32, made at")
