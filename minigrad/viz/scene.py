"""What a picture shows: boxes, the arrows between them, and the scopes they belong to.

A scene is made of nodes: the history of a tensor, or a graph.  Places and colours come later, from `layout` and `svg`.
"""

from __future__ import annotations

import linecache
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path as File
from typing import Any, NamedTuple

from ..core.mode import Branch
from ..core.node import Leaf, Node, OuterResult
from ..core.primitive import P
from ..support.source import HOME, Where, in_library, line_of, span_of
from ..support.table import counted
from .naming import Flow, expressions, nameless, operation_name
from .notation import unnumbered
from .numbers import Summary, shape_text

Path = tuple[str, ...]  # scopes, the outermost first
UNSAID = "application", "index"  # attributes of operations, which their titles say
AROUND = 2  # lines of code that are shown before and after the one that made a node


@dataclass(frozen=True)
class Box:
    """One thing in a picture.

    `kind` is "input", "parameter", "constant", "operation", "view", "gradient" or "group"; `count` says how many alike
    parts a group stands for, one after the other.
    """

    title: str
    kind: str
    lines: tuple[str, ...] = ()  # under the title
    scope: Path = ()
    nodes: tuple[Node, ...] = ()
    name: str = ""  # that the user's code has for its value; it is a part of the title
    result: bool = False  # whether it is what the picture is of
    count: int = 1
    about: tuple[str, ...] = ()  # more lines, for the side panel
    path: Path | None = None  # of a group: the scope that it stands for
    mirrors: int | None = None  # of a gradient: the number of the box whose value it is the gradient of
    shown: Node | None = None  # the node whose value stands in the box, if values are shown; of a group, its result
    cells: str = ""  # the heat map, see `numbers.cells_of`
    results: tuple[tuple[str, Node], ...] = ()  # of a group whose values are shown: their names, if there are several

    @property
    def called(self) -> str:
        """The title without the expression behind a name."""
        return self.title.partition(" = ")[0]


class Edge(NamedTuple):
    """What box `source` computes is input `slot` of box `target`."""

    source: int
    target: int
    slot: int


@dataclass(frozen=True)
class Scene:
    """Boxes in the order of their making, and the edges between them, by number."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]

    def in_scopes(self, scopes: Iterable[Path]) -> Scene:
        """The scene with each box in another scope."""
        return Scene(tuple([replace(box, scope=scope) for box, scope in zip(self.boxes, scopes)]), self.edges)

    @property
    def made(self) -> list[int]:
        """The numbers of the boxes of operations."""
        return [i for i, box in enumerate(self.boxes) if box.nodes[0].op is not None]


class Scopes:
    """Names of scopes.  The second `scan` in one scope is called `scan 2`."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[Path, bool]] = Counter()

    def inside(self, scope: Path, name: str, more: str = "", backward: bool = False, kind: type[str] = str) -> Path:
        """A new scope of this name in a scope, of the forward or of the backward pass; `more` follows the number."""
        key = (*scope, name), backward
        self.seen[key] += 1
        return (*scope, kind((name if self.seen[key] == 1 else f"{name} {self.seen[key]}") + more))


class Subject(NamedTuple):
    """What a picture is drawn of: nodes, the results among them, names of values, models, and a heading.

    `again` has pairs of nodes: what a round of a loop makes, and the carry of the next round that it becomes.  `values`
    and `gradients` are those that are shown.  With `phases`, the backward pass and the update have scopes.  `stored`
    has the nodes whose values become those of parameters, and the roles of these (see `models.Role`).
    """

    nodes: Sequence[Node]
    results: Sequence[Node]
    names: Mapping[Node, str]
    models: Sequence[Any] = ()
    title: str = ""
    again: Sequence[tuple[Node, Node]] = ()
    values: Mapping[Node, Summary] | None = None
    gradients: Mapping[Node, Summary] = {}
    phases: bool = False
    stored: Mapping[Node, Any] = {}


def scene_of(
    nodes: Sequence[Node], results: Iterable[Node] = (), names: Mapping[Node, str] = {},
    values: Mapping[Node, Summary] | None = None, held: Collection[str] = (),
) -> Scene:
    """The scene of some nodes, in the order in which they were made.

    A box is called as in the code, `b = a · a`: `names` are the user's names of values.  Known `values` are shown, or
    types where there are none.  If there are several devices, each box names its own.  The names of tensors that a
    model has are `held`.

    >>> x = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> y = x * 2
    >>> scene = scene_of(mg.core.node.topological_order([y.node]), names={x.node: "x"})
    >>> [box.title for box in scene.boxes], scene.edges
    (['x', 'x · 2'], (Edge(source=0, target=1, slot=0),))
    """
    places = {node: i for i, node in enumerate(nodes)}
    ends, numbers = set(results), dict[Node, str]()
    written = expressions(nodes, names, numbers)
    names = {**numbers, **names}
    scopes = _scopes(nodes, names, held)
    several = len({node.device for node in nodes}) > 1
    boxes, edges = [], []
    for i, node in enumerate(nodes):
        box = _box(node, names.get(node), written.get(node), node in ends, scopes[node])
        if values is not None:
            value = values.get(node)
            # Several results have no number of their own.
            line = type_of(node) * isinstance(node.dtype, tuple) if value is None else value.line()
            box = replace(box, lines=(line,), shown=node, cells=value.cells if value else "")
        if several:
            box = replace(box, lines=(*box.lines, f"on {node.device}"))
        boxes.append(box)
        edges += [Edge(places[s], i, slot) for slot, s in enumerate(node.inputs) if isinstance(s, Node) and s in places]
    return Scene(tuple(boxes), tuple(edges))


def _box(node: Node, name: str | None, expression: str | None, result: bool, scope: Path) -> Box:
    about = [f"{operation_name(node)}{' (copy)' * copies(node)}  {type_of(node)}"]
    about += [f"{key} = {value!r}" for key, value in node.attrs.items() if key not in UNSAID]
    title = " = ".join(filter(None, (name, expression))) or nameless(node)
    return Box(title, kind_of(node), (type_of(node),), scope, (node,), name or "", result, about=tuple(about))


def kind_of(node: Node) -> str:
    if is_parameter(node):
        return "parameter"
    if node.op is None:
        return "constant" if node.name in ("constant", "array") else "input"
    if node.origin is not None:
        return "gradient"
    if node.op is P.project or (node.is_view and not copies(node)):
        return "view"  # one of several results is not computed apart
    return "constant" if node.op.kind == "creation" else "operation"


def copies(node: Node) -> bool:
    """Whether a view must copy, as the compiler counts it: only a reshape of another view may have to.

    >>> x = mg.ones((2, 3), requires_grad=True)
    >>> copies(x.reshape(6).node), copies(x.T.reshape(6).node)
    (False, True)
    """
    if node.name != "reshape" or not node.inputs[0].is_view or not node.size:
        return False
    from ..compile.nodes.view import through, whole  # few pictures need the compiler

    def seen(node: Node) -> Any:
        return (node.is_view and through(node, seen(node.inputs[0]))) or whole(node)

    return seen(node).base is node


def is_parameter(node: Node) -> bool:
    """Whether a gradient is wanted for it: it is a leaf of a history, or what stands for one in a graph."""
    is_leaf = isinstance(node, Leaf) and not isinstance(node, OuterResult)
    return is_leaf or bool(getattr(getattr(node, "held", None), "tracked", 0))


def type_of(node: Node) -> str:
    """Shape and dtype, in the fewest words.

    >>> [type_of(mg.ones(shape, requires_grad=True).node) for shape in ((), 3, (3, 2))]
    ['scalar', '(3,)', '3 × 2']
    """
    if isinstance(node.dtype, tuple):
        return counted(len(node.dtype), "result")
    shape, dtype = shape_text(node), str(node.dtype)
    return shape if dtype == "float32" else f"{shape}  {dtype}"


def _scopes(nodes: Sequence[Node], names: Mapping[Node, str], held: Collection[str]) -> dict[Node, Path]:
    """The scope of each node: what a model has, or a constant without a name, lies in the layer that uses it."""
    scopes = {node: node.scope if node.op is not None else () for node in nodes}
    used: dict[Node, Path] = {}
    for node in nodes:
        for source in node.inputs:
            if source not in scopes or source.op is not None:
                continue
            name = names.get(source, "")
            if unnumbered(name) in held or not (name or kind_of(source) == "input"):
                layer = layer_around(node.scope)
                used[source] = common(used.get(source, layer), layer)
    return scopes | used


def layer_around(path: Path) -> Path:
    """The scope around the loops and branches of a path: that of a module, which has what is read in them.

    >>> layer_around(("LSTM", Flow("scan"), "gate"))
    ('LSTM',)
    """
    return tuple(takewhile(lambda name: not isinstance(name, Branch | Flow), path))


def common(*paths: Path) -> Path:
    """The scopes that all paths begin with.

    >>> common(("net", "up", "norm"), ("net", "down"))
    ('net',)
    """
    return tuple([same for same, *_ in takewhile(lambda names: len({*names}) == 1, zip(*paths))])


def excerpt(where: Where | None, around: int = AROUND) -> dict[str, Any] | None:
    """The line of an instruction of the user's code, with those around it; `span` is its expression in the line."""
    return None if where is None else excerpt_at(*line_of(where), where, around)


def inside(filename: str) -> str:
    """The path of a file inside minigrad; empty for another file, also for an example, which is a program of a user."""
    return filename[len(HOME) :].replace(os.sep, "/") if in_library(filename) and filename.startswith(HOME) else ""


def excerpt_at(filename: str, line: int, where: Where | None, around: int) -> dict[str, Any] | None:
    """A line of the user's code, with those around it; `span` is the expression of the instruction `where` in it."""
    first = max(1, line - around)
    text = [linecache.getline(filename, n).rstrip("\n") for n in range(first, line + around + 1)]
    while text and not text[-1].strip():
        text.pop()
    if not text:
        return None
    indent = min([len(each) - len(each.lstrip()) for each in text if each.strip()], default=0)
    here, span = text[min(line - first, len(text) - 1)], None
    position = None if where is None else span_of(where)
    if position is not None and position[0] == line:
        ends = position[2], position[3] if position[1] == line else len(here.encode())
        span = [len(here.encode()[:end].decode(errors="ignore")) - indent for end in ends]  # bytes -> characters
    # The cell of a notebook has a number for a name, and no time of its last change.
    file = File(filename).name if any(linecache.cache.get(filename, ())[1:2]) else ""
    return {
        "file": inside(filename) or file, "line": line, "first": first, "text": [each[indent:] for each in text],
        "span": span,
    }
