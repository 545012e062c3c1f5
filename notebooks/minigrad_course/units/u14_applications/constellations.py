"""The graphs of several programs, and the primitives that they share, lit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from minigrad.compile.nodes.graph import Graph
from minigrad.core.node import Node
from minigrad.core.primitive import P
from minigrad.support.table import as_table, counted
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.svg import number

PANEL, BETWEEN, HIGH, TOP = 164.0, 11.0, 290.0, 44.0
COLUMNS, TILE, LINE = 7, 98.5, 20.0
MANY = 250  # nodes of a graph whose dots are small
LOOKS = {4: ("now", "paper"), 3: ("there", "there-fill"), 2: ("there", "paper"), 1: ("line", "paper"),
         0: ("line", "tint")}
Steps = Mapping[str, Graph]  # the name of each program, and the graph of its training step


def uses(steps: Steps) -> dict[str, list[int]]:
    """For each primitive that some step computes, how many nodes of each graph compute it; the most shared ones first.

    >>> graphs = {"a": mg.trace(lambda x: mg.tanh(x) + 1, mg.ones(2)), "b": mg.trace(lambda x: x + x, mg.ones(2))}
    >>> uses(graphs)
    {'add': [1, 1], 'tanh': [1, 0]}
    """
    counts = [Counter(node.op.name for node in graph.nodes if node.op is not None) for graph in steps.values()]
    found = {name: [each[name] for each in counts] for name in sorted(set().union(*counts))}
    return dict(sorted(found.items(), key=lambda item: (-sum(map(bool, item[1])), -sum(item[1]), item[0])))


def shared(found: Mapping[str, Sequence[int]]) -> list[str]:
    """The primitives that all steps compute."""
    return [name for name, counts in found.items() if all(counts)]


def constellations(steps: Steps) -> Flipbook:
    """The graphs side by side.  The nodes of shared primitives are lit; a click on a primitive lights its own.

    >>> x = mg.ones(2)
    >>> constellations({"a": mg.trace(lambda x: mg.tanh(x) + 1, x), "b": mg.trace(lambda x: x + x, x)})
    <2 of 84 primitives, 1 of them in all 2 graphs>
    """
    found = uses(steps)
    common = shared(found)
    base, places = _base(steps)
    totals = [sum(column) for column in zip(*found.values())]
    settings = ("in all of them", *found)
    pages = []
    for at, setting in enumerate(settings):
        lit = common if at == 0 else [setting]
        drawing = Drawing(len(steps) * (PANEL + BETWEEN) - BETWEEN, TOP + HIGH)
        drawing.pieces = [*base]
        _light(drawing, places, lit)
        _tiles(drawing, found, lit, at)
        sums = [sum(found[each][i] for each in lit) for i in range(len(steps))]
        counts = ", ".join(f"{name} {count} of {total}" for name, count, total in zip(steps, sums, totals))
        what = f"{counted(len(common), 'primitive')} of all graphs" if at == 0 else f"{setting}"
        pages.append([Page(drawing, f"{what}. Nodes that are lit: {counts}.")])
    title = f"{len(found)} of {len(P)} primitives, {len(common)} of them in all {len(steps)} graphs"
    rows = [(name, *map(str, counts)) for name, counts in found.items()]
    knob = Knob("lit", settings, choice=True)
    return Flipbook(title, pages, (knob,), words=as_table(("primitive", *steps), rows, left=1))


def _base(steps: Steps) -> tuple[list[str], dict[Node, tuple[float, float, float]]]:
    """The graphs without light; the place of each node, and the size of its light."""
    drawing = Drawing(0, 0)
    places: dict[Node, tuple[float, float, float]] = {}
    with drawing.piece():
        for i, (name, graph) in enumerate(steps.items()):
            x = i * (PANEL + BETWEEN)
            nodes = [node for node in graph.nodes if node.op is not None]
            drawing.heading(x, 14, name)
            drawing.text(x, 32, counted(len(nodes), "node"), fill="quiet")
            drawing.rect(x, TOP, PANEL, HIGH, "tint", "line")
            own = _placed(nodes, x)
            size = 2.0 if len(nodes) > MANY else 3.2
            places |= {node: (*place, size) for node, place in own.items()}
            edges = [(own[source], own[node]) for node in nodes for source in node.inputs
                     if isinstance(source, Node) and source in own]
            line = "".join(f"M{number(a)} {number(b)}L{number(c)} {number(d)}" for (a, b), (c, d) in edges)
            drawing.shape(line, stroke="line", thick=0.6)
            drawing.shape("".join(_dot(*place, 1.3) for place in own.values()), "quiet", 0.8)
    return drawing.pieces, places


def _placed(nodes: Sequence[Node], x: float) -> dict[Node, tuple[float, float]]:
    """Places for nodes: the further from the inputs, the lower."""
    depth: dict[Node, int] = {}
    layers = defaultdict(list)
    for node in nodes:
        depth[node] = 1 + max([depth[source] for source in node.inputs if source in depth], default=0)
        layers[depth[node]].append(node)
    found = {}
    down = (HIGH - 16) / max(layers, default=1)
    for level, layer in layers.items():
        apart = min(14.0, (PANEL - 14) / len(layer))
        for i, node in enumerate(layer):
            found[node] = x + PANEL / 2 + apart * (i - (len(layer) - 1) / 2), TOP + 4 + down * level
    return found


def _dot(x: float, y: float, radius: float) -> str:
    r, wide = number(radius), number(2 * radius)
    return f"M{number(x - radius)} {number(y)}a{r} {r} 0 1 0 {wide} 0a{r} {r} 0 1 0 -{wide} 0z"


def _light(drawing: Drawing, places: Mapping[Node, tuple[float, float, float]], lit: Sequence[str]) -> None:
    bright = set(lit)
    dots = [_dot(*place) for node, place in places.items() if node.op is not None and node.op.name in bright]
    drawing.shape("".join(dots), "now")


def _tiles(drawing: Drawing, found: Mapping[str, Sequence[int]], lit: Sequence[str], at: int) -> None:
    """All primitives of the library: those that are used can be chosen, the others are pale."""
    top = drawing.height + 30
    with drawing.piece():
        drawing.heading(0, top - 8, f"the {len(P)} primitives: a click lights the nodes of one")
        rest = [op.name for op in P if op.name not in found]
        for i, name in enumerate([*found, *rest]):
            x, y = TILE * (i % COLUMNS), top + LINE * (i // COLUMNS)
            many = sum(map(bool, found.get(name, ())))
            stroke, fill = LOOKS[min(many, 4)]
            on = name in lit
            about = f"{name}: used by {many}" if many else f"{name}: not used"
            go = f"0:{list(found).index(name) + 1}" if many else ""
            stroke, thick = ("now", 2.6) if on else (stroke, 1.4 if many else 0.7)
            drawing.rect(x, y, TILE - 4, LINE - 4, fill, stroke, thick=thick, about=about, go=go)
            drawing.text(x + 5, y + 12.5, name, size=10.5, room=TILE - 22, fill="ink" if many else "quiet", bold=on)
            if many:
                drawing.text(x + TILE - 9, y + 12.5, str(many), size=10.5, anchor="end", fill="ink" if on else "quiet")
    drawing.height = top + LINE * -(-len(P) // COLUMNS)
