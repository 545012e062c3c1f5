"""What a picture shows: boxes, what flows between them, and whose part they are.

A scene is made of nodes, whoever recorded them: the history of a tensor, or a graph.  It knows nothing of places and
colours.
"""

from __future__ import annotations

import ast
import linecache
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..core.node import Constant, Leaf, Node
from ..support.source import line_of
from .numbers import Summary, short

SIGNS = {
    "add": "+", "subtract": "−", "multiply": "×", "divide": "÷", "power": "^", "equal": "=", "not_equal": "≠",
    "less": "<", "less_equal": "≤", "greater": ">", "greater_equal": "≥",
}


@dataclass(frozen=True)
class Box:
    """One thing in a picture.

    `kind` is "input", "parameter", "constant", "operation", "view", "gradient" or "group"; `count` says how many alike
    parts a group stands for, one after the other.
    """

    title: str
    kind: str
    lines: tuple[str, ...] = ()  # under the title
    scope: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    result: bool = False  # whether it is what the picture is of
    count: int = 1
    about: tuple[str, ...] = ()  # said when somebody points at it
    path: tuple[str, ...] | None = None  # of a group: the scope that it stands for
    mirrors: int | None = None  # of a gradient: the number of the box whose value it is the gradient of


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


def scene_of(
    nodes: Sequence[Node], results: Iterable[Node] = (), names: Mapping[Node, str] | None = None,
    values: Mapping[Node, Any] | None = None, gradients: Mapping[Node, Any] | None = None,
) -> Scene:
    """The scene of some nodes, which come in the order of their making.

    `names` says what the user calls their values; `values` and `gradients` are shown where they are known.

    >>> x = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> scene = scene_of(mg.core.node.topological_order([(x * 2).node]))
    >>> [box.title for box in scene.boxes], scene.edges
    (['parameter', 'multiply × 2'], (Edge(source=0, target=1, slot=0),))
    """
    places = {node: i for i, node in enumerate(nodes)}
    ends = set(results)
    scopes = _scopes(nodes)
    names = names or {}
    boxes, edges = [], []
    for i, node in enumerate(nodes):
        box = _box(node, names.get(node), node in ends, scopes[node])
        for what, known in (("value", values), ("gradient", gradients)):
            if known is not None and node in known:
                box = replace(box, lines=(*box.lines, _shown(what, known[node])))
        boxes.append(box)
        edges += [Edge(places[s], i, slot) for slot, s in enumerate(node.inputs) if isinstance(s, Node) and s in places]
    return Scene(tuple(boxes), tuple(edges))


def _box(node: Node, name: str | None, result: bool, scope: tuple[str, ...]) -> Box:
    about = [f"{node.name}  {type_of(node)}"]
    about += [f"{key} = {value!r}" for key, value in node.attrs.items()]
    if node.code is not None:
        about.append(_line(node.code, node.offset))
    title = name or ("parameter" if isinstance(node, Leaf) else node.name)
    if node.op is not None:
        title = _operation(node) if name is None else f"{_operation(node)} → {name}"
    return Box(title, _kind(node), (type_of(node),), scope, (node,), result, about=tuple(about))


@lru_cache(10_000)
def _line(code: Any, offset: int) -> str:
    """A line of code, without its file: that of a notebook's cell has another name each time."""
    filename, line = line_of((code, offset))
    return f"line {line}:  {linecache.getline(filename, line).strip()}"


def _operation(node: Node) -> str:
    """An operation, with the numbers that are among its inputs."""
    sign = SIGNS.get(node.name, "")
    numbers = [(i, short(x)) for i, x in enumerate(node.inputs) if isinstance(x, (bool, int, float))]
    if len(numbers) != 1 or len(node.inputs) != 2:
        return node.name
    ((place, number),) = numbers
    return " ".join([node.name, *((sign, number) if place else (number, sign))]).rstrip()


def _kind(node: Node) -> str:
    if _is_parameter(node):
        return "parameter"
    if isinstance(node, Constant) or (node.op is None and node.name in ("constant", "array")):
        return "constant"
    if node.op is None:
        return "input"
    if node.origin is not None:
        return "gradient"
    return "view" if node.op.kind == "view" else "operation"


def _is_parameter(node: Node) -> bool:
    """Whether a gradient is wanted for it: it is a leaf of a history, or what stands for one in a graph."""
    return isinstance(node, Leaf) or bool(getattr(getattr(node, "held", None), "tracked", 0))


def type_of(node: Node) -> str:
    """Shape and dtype, in the fewest words."""
    return _type(node.shape, node.dtype)


@lru_cache(10_000)
def _type(sizes: tuple[Any, ...], kind: Any) -> str:
    if sizes and isinstance(sizes[0], tuple):
        return f"{len(sizes)} results"
    shape = " × ".join(map(str, sizes)) if sizes else "scalar"
    dtype = str(kind)
    return shape if dtype == "float32" else f"{shape}  {dtype}"


def _shown(what: str, value: Any) -> str:
    summary = value if isinstance(value, Summary) else Summary.of(value)
    return ("" if what == "value" else "∂ ") + summary.short()


def _scopes(nodes: Sequence[Node]) -> dict[Node, tuple[str, ...]]:
    """Where each node belongs: a weight to the layer that uses it, and data to none."""
    scopes = {node: node.scope if node.op is not None else () for node in nodes}
    used: dict[Node, tuple[str, ...]] = {}
    for node in nodes:
        for source in node.inputs:
            if source in scopes and source.op is None and _is_parameter(source):
                used[source] = _common(used.get(source, node.scope), node.scope)
    return scopes | used


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return a[:same]




AROUND = 2  # lines of code that are shown before and after the one that made a node


def excerpt(node: Node) -> dict[str, Any] | None:
    """The line of the user's code that made a node, with those around it."""
    if node.where is None:
        return None
    filename, line = line_of(node.where)
    first = max(1, line - AROUND)
    text = [linecache.getline(filename, n).rstrip("\n") for n in range(first, line + AROUND + 1)]
    while text and not text[-1].strip():
        text.pop()
    file = Path(filename).name if Path(filename).exists() else ""  # the cell of a notebook has a number for a name
    return {"file": file, "line": line, "first": first, "text": text} if text else None


def names_in_code(nodes: Sequence[Node]) -> dict[Node, str]:
    """What the user's code calls the values: of `h = relu(x @ w)`, the last operation makes `h`.

    A name that several values would have is given to none of them: in a loop, nobody could tell which is meant.
    """
    last: dict[tuple[str, int], Node] = {}
    for node in nodes:
        if node.code is not None and node.origin is None:
            last[_place(node.code, node.offset)] = node
    named = {node: name for line, node in last.items() if (name := _assigned(*line))}
    for node in nodes:
        for slot, source in enumerate(node.inputs):
            if isinstance(source, Node) and source.op is None and source not in named and node.code is not None:
                operands = _operands(*_place(node.code, node.offset), node.name, len(node.inputs))
                if operands and operands[slot]:
                    named[source] = operands[slot]
    count = Counter(named.values())
    return {node: name for node, name in named.items() if count[name] == 1}


_place = lru_cache(10_000)(lambda code, offset: line_of((code, offset)))


def place_of(node: Node) -> tuple[str, int] | None:
    """The file and the line that made a node."""
    return None if node.code is None else _place(node.code, node.offset)


NO_TENSOR = {"graph", "step", "float", "int", "bool", "len", "item", "numpy", "tolist", "tuple"}


@lru_cache(10_000)
def _assigned(filename: str, line: int) -> str | None:
    """The variable that a line of code gives a tensor to, if the line says so by itself.

    What a class is called for is an object with tensors in it.
    """
    try:
        (statement,) = ast.parse(linecache.getline(filename, line).strip()).body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    calls = [each.func for each in ast.walk(value) if isinstance(each, ast.Call)]
    called = [getattr(each, "attr", getattr(each, "id", "")) for each in calls]
    other = (isinstance(value, ast.Call) and called[0][:1].isupper()) or NO_TENSOR.intersection(called)
    return target.id if isinstance(target, ast.Name) and not other else None


BINARY = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power",
    ast.MatMult: "matmul",
}


@lru_cache(10_000)
def _operands(filename: str, line: int, op: str, count: int) -> tuple[str, ...] | None:
    """What a line of code calls the inputs of an operation, if the operation stands there once."""
    try:
        tree = ast.parse(linecache.getline(filename, line).strip())
    except (SyntaxError, ValueError):
        return None
    found: list[list[ast.expr]] = []
    for each in ast.walk(tree):
        if isinstance(each, ast.BinOp) and BINARY.get(type(each.op)) == op:
            found.append([each.left, each.right])
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == op:
            found.append(each.args if len(each.args) == count else [each.func.value, *each.args])
    if len(found) != 1 or len(found[0]) != count:
        return None
    return tuple([each.id if isinstance(each, ast.Name) else "" for each in found[0]])
