"""Views of small graphs: drawn, computed in any order, with an arrow to move, and of many runs of a program."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from minigrad.core.mode import record
from minigrad.core.node import topological_order
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.layout import Arrangement, Layout, Rectangle
from minigrad.viz.naming import names_in_code
from minigrad.viz.notation import SIGNS
from minigrad.viz.numbers import short
from minigrad.viz.svg import path_of, text_width

from .graphs import Graph, graph_of, reached, sources_of

NAME, SMALL, HIGH, APART = 15.0, 13.0, 56.0, 48.0
LOOKS = {  # border, fill, text
    "given": ("good", "leaf-fill", "ink"), "plain": ("there", "there-fill", "ink"),
    "waiting": ("line", "tint", "quiet"), "wrong": ("bad", "paper", "bad"), "chosen": ("now", "paper", "ink"),
}
COMPUTE: dict[str, Callable[..., float]] = {
    "multiply": operator.mul, "add": operator.add, "subtract": operator.sub, "tanh": math.tanh,
    "maximum": max, "divide": lambda a, b: a / b if b else math.nan, "negative": operator.neg,
}


class Arrow(NamedTuple):
    """What node `source` computes is input number `slot` of node `target`."""

    source: str
    target: str
    slot: int


def arrows_of(graph: Graph, result: str) -> list[Arrow]:
    """The arrows of a graph, in the order of its nodes."""
    return [
        Arrow(each, name, slot)
        for name in reached(graph, result) for slot, each in enumerate(graph.get(name, ())[1:]) if isinstance(each, str)
    ]


def evaluated(graph: Graph, given: Mapping[str, float], result: str) -> dict[str, float]:
    """The values of the nodes that a result is computed from; an unknown operation has none."""
    values = dict(given)
    for name in reached(graph, result):
        if name in graph:
            op, *inputs = graph[name]
            operands = [values.get(each, math.nan) if isinstance(each, str) else each for each in inputs]
            try:
                values[name] = COMPUTE[op](*operands)
            except (KeyError, TypeError):
                values[name] = math.nan
    return values

TURNED = 'transform="matrix(0 1 1 0 0 0)"'  # what is drawn from the top down, from left to right


def expression(node: Sequence[Any]) -> str:
    """An operation and its inputs, as a program writes them: `a − b`, `tanh(a)`."""
    op, *inputs = node
    words = [each if isinstance(each, str) else short(each) for each in inputs]
    sign = SIGNS.get(op)
    return f" {sign} ".join(words) if sign and len(words) == 2 else f"{op}({', '.join(words)})"


def sideways(
    sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]], between: float, port: float
) -> Layout:
    """A layout from left to right.  Its routes lead from the top down: they are drawn in a piece that is `TURNED`."""
    layout = Arrangement([(high, wide) for wide, high in sizes], edges, [()] * len(sizes), (between, port))
    boxes = [Rectangle(y, x, high, wide) for x, y, wide, high in layout.boxes]
    return Layout(boxes, [], layout.routes, layout.height, layout.width)


class Board:
    """A graph whose boxes stay where they are, while looks, values and one arrow change."""

    def __init__(self, graph: Graph, result: str) -> None:
        self.graph, self.result = graph, result
        self.names = reached(graph, result)
        self.arrows = arrows_of(graph, result)
        at = {name: i for i, name in enumerate(self.names)}
        wide = [max(text_width(expression(graph[name]) if name in graph else name, SMALL), 40) + 24 for name in at]
        edges = [(at[each.source], at[each.target]) for each in self.arrows]
        layout = sideways([(width, HIGH) for width in wide], edges, APART, 26)
        self.places = dict(zip(self.names, layout.boxes))
        self.routes = layout.routes
        self.size = layout.width, layout.height

    def drawing(
        self, values: Mapping[str, str], looks: Mapping[str, str], graph: Graph | None = None,
        boxes: Mapping[str, str] | None = None, chosen: int | None = None,
    ) -> Drawing:
        """The graph, or another one with the same boxes, in which one arrow begins elsewhere.

        `boxes` says where a click on a box leads to.
        """
        drawing = Drawing(self.size[0], self.size[1] + 6)
        now = graph or self.graph
        for i, (arrow, route) in enumerate(zip(self.arrows, self.routes)):
            source = now[arrow.target][1 + arrow.slot]
            colour = "now" if i == chosen else "there"
            if source == arrow.source:
                with drawing.piece(TURNED):
                    drawing.shape(path_of(route), stroke=colour, thick=3.2 if i == chosen else 1.8)
            else:
                self._bent(drawing, source, route[-1][::-1], colour)
            y, x = route[-1]
            drawing.path([(x - 9, y), (x, y)], colour, arrow=True)
            if chosen is not None:  # a knob to choose the arrow by, with the number of the input
                ink = "ink" if i == chosen else "quiet"
                drawing.rect(x - 27, y - 8, 16, 16, "paper", colour, round=8, about=_input(arrow), go=f"0:{i}")
                drawing.text(x - 19, y + 4, str(arrow.slot), size=11, fill=ink, anchor="middle", bold=i == chosen)
        for name, place in self.places.items():
            border, fill, ink = LOOKS[looks.get(name, "plain" if name in now else "given")]
            go = (boxes or {}).get(name, "")
            drawing.rect(*place, fill, border, thick=2, round=8 if name in now else HIGH / 2, about=name, go=go)
            middle, lines = place.x + place.width / 2, [name]
            lines += [expression(now[name])] if name in now else []
            lines += [values[name]] if name in values else []
            for number, line in enumerate(lines):
                y = place.y + HIGH / 2 + 17 * (number - (len(lines) - 1) / 2) + 5
                size = NAME if not number or line == values.get(name) else SMALL
                drawing.text(middle, y, line, size=size, anchor="middle", bold=size == NAME, fill=ink)
        return drawing

    def _bent(self, drawing: Drawing, source: str, end: tuple[float, float], colour: str) -> None:
        """An arrow that begins elsewhere: over or under the other boxes."""
        place, (x, y) = self.places[source], end
        start = (place.x + place.width, place.y + HIGH / 2)
        ahead = max(40.0, abs(x - start[0]) / 2)
        way = f"C{start[0] + ahead:.1f} {start[1]:.1f} {x - ahead:.1f} {y:.1f} {x:.1f} {y:.1f}"
        drawing.shape(f"M{start[0]:.1f} {start[1]:.1f}{way}", stroke=colour, thick=3.2)


def draw(graph: Graph, result: str = "y") -> Flipbook:
    """A picture of a graph."""
    operations = [name for name in reached(graph, result) if name in graph]
    page = Page(Board(graph, result).drawing({}, {}), f"{len(operations)} operations: {', '.join(operations)}.")
    return Flipbook("the graph of your dictionary", [[page]])


def act_out(graph: Graph, given: Mapping[str, float], result: str) -> Flipbook:
    """A graph to compute by clicks, in any order: one page for each set of boxes that were clicked."""
    board, values = Board(graph, result), evaluated(graph, given, result)
    operations = [name for name in board.names if name in graph]
    pages = []
    for states in product((0, 1), repeat=len(operations)):
        clicked = {name for name, state in zip(operations, states) if state}
        done = _computed(graph, operations, clicked)
        go = {name: f"{i}:{1 - state}" for i, (name, state) in enumerate(zip(operations, states))}
        looks = {name: "plain" if name in done else "wrong" if name in clicked else "waiting" for name in operations}
        shown = {name: short(values[name]) for name in [*given, *done] if name in board.names}
        shown |= dict.fromkeys(clicked - done, "✗")
        drawing = board.drawing(shown, looks, boxes=go)
        pages.append([Page(drawing, _said(graph, operations, clicked, done), _ready(graph, operations, done))])
    knobs = tuple(Knob(name, ("waits", "clicked"), choice=True) for name in operations)
    title = f"{len(operations)} operations, to compute in an order of your own"
    return Flipbook(title, pages, knobs, words=board_text(graph))


def board_text(graph: Graph) -> str:
    """The nodes of a graph in words."""
    return "\n".join(f"{name} = {expression(node)}" for name, node in graph.items())


def _computed(graph: Graph, operations: Sequence[str], clicked: Collection[str]) -> set[str]:
    """The clicked operations whose inputs are computed."""
    done: set[str] = set()
    for name in operations:
        if name in clicked and all(source in done or source not in graph for source in sources_of(graph, name)):
            done.add(name)
    return done


def _missing(graph: Graph, name: str, done: Collection[str]) -> list[str]:
    return [each for each in dict.fromkeys(sources_of(graph, name)) if each in graph and each not in done]


def _said(graph: Graph, operations: Sequence[str], clicked: Collection[str], done: Collection[str]) -> str:
    early = [name for name in operations if name in clicked and name not in done]
    if early:
        return f"{early[0]} cannot be computed: {_missing(graph, early[0], done)[0]} has no value yet."
    if len(done) == len(operations):
        return "Every operation is computed, each after its inputs."
    return "Click an operation to compute it; a second click takes it back."


def _ready(graph: Graph, operations: Sequence[str], done: Collection[str]) -> tuple[tuple[str, tuple[str, Any]], ...]:
    ready = [name for name in operations if name not in done and not _missing(graph, name, done)]
    return (("all inputs are computed", ("text", ", ".join(ready) or "–")),)


def mover(graph: Graph, given: Mapping[str, float], result: str, wanted: float) -> Flipbook:
    """A graph in which one arrow can begin at another box: the value of the result, beside the wanted one."""
    board = Board(graph, result)
    pages = []
    for number, place in product(range(len(board.arrows)), range(len(board.names) + 1)):
        arrow = board.arrows[number]
        source = board.names[place - 1] if place else arrow.source
        moved = with_arrow(graph, arrow, source)
        go = {name: f"1:{i}" for i, name in enumerate(board.names, 1)}
        try:
            values = evaluated(moved, given, result)
            looks = {name: "waiting" for name in board.names if name not in values}
            said = f"{result} is {short(values[result])}. The program computes {short(wanted)}."
            shown = {name: short(values[name]) for name in board.names if name in values}
        except ValueError as error:
            said, shown = f"{error} would be computed from itself: no value can be.", {}
            looks = {str(error): "wrong"}
        looks[source] = "chosen"
        pages.append([Page(board.drawing(shown, looks, moved, go, number), said)])
    names = tuple(map(_input, board.arrows))
    knobs = Knob("arrow", names, choice=True), Knob("begins at", ("where it is", *board.names), choice=True)
    return Flipbook("a graph with one wrong arrow", pages, knobs, words=board_text(graph))


def _input(arrow: Arrow) -> str:
    return f"input {arrow.slot} of {arrow.target}"


def with_arrow(graph: Graph, arrow: Arrow, source: str) -> dict[str, tuple[Any, ...]]:
    """The graph in which an arrow begins at another node."""
    node = list(graph[arrow.target])
    node[1 + arrow.slot] = source
    return {**graph, arrow.target: tuple(node)}


def listing(program: Callable[..., Tensor], **values: float) -> str:
    """The operations of a program, with values called by their numbers: equal graphs have equal listings."""
    leaves = {name: asarray(value, requires_grad=True) for name, value in values.items()}
    with record():
        node: Any = program(*leaves.values()).node
    graph = graph_of(node, {each.node: name for name, each in leaves.items() if each.node} | {node: "y"})
    order = [name for name in reached(graph, "y") if name in graph]
    called = {name: f"v{i}" for i, name in enumerate(order, 1)} | {"y": "y"}
    lines = board_text({called[name]: tuple([called.get(each, each) for each in graph[name]]) for name in order})
    return lines.replace("\n", "; ")


def runs(function: Callable[[Tensor], Tensor], values: Sequence[float]) -> Flipbook:
    """The graphs that a function of one number leaves, one run for each value of x."""
    pages = []
    for value in values:
        with record():
            result = function(asarray(float(value), requires_grad=True))
        graph, result_name = _named(result)
        shown = {name: short(found) for name, found in evaluated(graph, {"x": value}, result_name).items()}
        said = f"x = {short(value)}: {len(graph)} operations, y = {short(float(result.item()))}."
        pages.append([Page(Board(graph, result_name).drawing(shown, {}), said)])
    knob = Knob("x", tuple(map(short, values)), len(values) - 1)
    words = "\n".join(page.say for (page,) in pages)
    return Flipbook("one program, one graph for each run", pages, (knob,), words=words)


def _named(result: Tensor) -> tuple[dict[str, tuple[Any, ...]], str]:
    """The graph of a tensor, with the names of the code, and the name of its result."""
    node: Any = result.node
    order = topological_order([node])
    names = names_in_code(order) | {each: "x" for each in order if each.op is None} | {node: "y"}
    return graph_of(node, names), "y"
