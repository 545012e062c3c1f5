"""Graphs as answers: a dictionary from the name of each node to its operation and its inputs.

`{"a": ("multiply", "x", 2), "y": ("add", "a", "a")}` is the graph of `a = x * 2; y = a + a`.  The inputs are names of
nodes and numbers; a name without an entry, such as x, is given.  The names do not matter: two dictionaries with the
same operations and edges are the same graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from minigrad.core.node import Node, topological_order
from minigrad.support.table import counted

from .feedback import written

Graph = Mapping[str, tuple[Any, ...]]  # the name of a node -> its operation and its inputs

OPERATIONS = {
    "*": "multiply", "·": "multiply", "mul": "multiply", "times": "multiply", "+": "add", "plus": "add", "sum": "add",
    "-": "subtract", "−": "subtract", "sub": "subtract", "minus": "subtract", "/": "divide", "div": "divide",
}
FORM = '{"a": ("multiply", "x", 2), "y": ("add", "a", "x")}: for each node its operation and its inputs, in order'
ITSELF = (
    "a value cannot be computed from itself. When a program uses a name again, it makes a new value: give the second "
    "node another name"
)


def graph_of(result: Node, names: Mapping[Node, str]) -> dict[str, tuple[Any, ...]]:
    """The graph of a recorded node; nodes without a name are called by their operations and numbered.

    >>> x = mg.asarray(3.0, requires_grad=True)
    >>> node = (x * x + 2).node
    >>> graph_of(node, {x.node: "x", node: "y"})
    {'multiply 1': ('multiply', 'x', 'x'), 'y': ('add', 'multiply 1', 2)}
    """
    order = topological_order([result])
    called = {node: names.get(node) or f"{node.name} {i}" for i, node in enumerate(order)}
    return {
        called[node]: (node.name, *[called[each] if isinstance(each, Node) else each for each in node.inputs])
        for node in order if node.op is not None
    }


def sources_of(graph: Graph, name: str) -> list[str]:
    """The nodes of a graph among the inputs of a node, once for each use."""
    return [each for each in graph.get(name, ())[1:] if isinstance(each, str)]


def reached(graph: Graph, result: str) -> list[str]:
    """The nodes that a result is computed from, and the result: inputs first.  Raises `ValueError` for a circle.

    >>> reached({"a": ("multiply", "x", 2), "y": ("add", "a", "a")}, "y")
    ['x', 'a', 'y']
    """
    found: dict[str, None] = {}
    path: list[str] = []

    def visit(name: str) -> None:
        if name in path:
            raise ValueError(name)
        if name not in found:
            path.append(name)
            for source in sources_of(graph, name):
                visit(source)
            found[path.pop()] = None

    visit(result)
    return list(found)


def unlike(yours: Graph, right: Graph, result: str) -> str | None:
    """The first difference between two graphs, from the result on; None where they differ in names only.

    >>> unlike({"a": ("add", "x", 2), "y": ("add", "a", "x")}, {"b": ("add", "x", 2), "y": ("add", "b", "b")}, "y")
    'input 1 of y is not x'
    """
    pairs, back = {result: result}, {result: result}
    visited = [result]
    for name in visited:  # which grows meanwhile
        (op, *inputs), (other, *others) = yours[name], right[pairs[name]]
        if op != other:
            return f"the operation of {name} is not {op}"
        if len(inputs) != len(others):
            return f"{name} does not have {counted(len(inputs), 'input')}"
        for i, (one, two) in enumerate(zip(inputs, others)):
            if one in yours and two in right:
                if pairs.setdefault(one, two) != two or back.setdefault(two, one) != one:
                    return f"input {i} of {name} is not {one}"
                if one not in visited:
                    visited.append(one)
            elif one in yours or two in right or one != two:
                return f"input {i} of {name} is not {written(one).strip(chr(39))}"
    return None


def unfolded(graph: Graph, result: str) -> dict[str, tuple[Any, ...]]:
    """The graph in which each use of a value computes it anew: a tree.

    >>> list(unfolded({"a": ("multiply", "x", 2), "y": ("add", "a", "a")}, "y"))
    ['a', 'a again', 'y']
    """
    found: dict[str, tuple[Any, ...]] = {}

    def copy(name: Any) -> Any:
        if name not in graph:
            return name
        op, *inputs = graph[name]
        made = (op, *[copy(each) for each in inputs])
        own = name
        while own in found:
            own += " again"
        found[own] = made
        return own

    copy(result)
    return found


def folded(graph: Graph, result: str) -> dict[str, tuple[Any, ...]]:
    """The graph in which nodes with the same operation and inputs are one node."""
    found: dict[tuple[Any, ...], str] = {}
    names: dict[Any, str] = {}
    for name in reached(graph, result):
        if name in graph:
            key = (graph[name][0], *[names.get(each, each) for each in graph[name][1:]])
            names[name] = result if name == result else found.setdefault(key, name)
            if name == result:
                found[key] = result
    return {name: key for key, name in found.items()}


class Unreadable(Exception):
    """An answer that is not a graph: what is wrong, and a hint."""


def read_graph(answer: Any, given: Iterable[str], result: str) -> dict[str, tuple[Any, ...]]:
    """A student's dictionary as a graph; `Unreadable` where it is not one."""
    if not isinstance(answer, dict):
        raise Unreadable(f"your answer {written(answer)} is not a dictionary", FORM)
    known, graph = {*answer, *given}, {}
    for name, node in answer.items():
        if name in given:
            raise Unreadable(f"{name} is given: no operation makes it", "list the nodes that an operation makes")
        if not isinstance(node, tuple | list) or not node or not isinstance(node[0], str):
            raise Unreadable(f"{name}: {written(node)} is not an operation with its inputs", FORM)
        if len(node) == 1 and node[0] in known:
            raise Unreadable(f"{name} is another name for {node[0]}", f"a name is not a node: use {node[0]} itself")
        op = node[0].strip().removeprefix("mg.").lower()
        for each in node[1:]:
            _check_input(name, each, known)
        graph[name] = (OPERATIONS.get(op, op), *[each.strip() if isinstance(each, str) else each for each in node[1:]])
    if result not in graph:
        raise Unreadable(f"there is no node {result}", f"the node of the result is called {result}")
    try:
        for name in graph:
            reached(graph, name)
    except ValueError as error:
        raise Unreadable(f"{error} is computed from itself", ITSELF) from None
    return graph


def _check_input(name: str, each: Any, known: set[str]) -> None:
    """Raise `Unreadable` where an input of a node is neither the name of a node nor a number."""
    if isinstance(each, str) and each.strip() not in known:
        try:
            float(each)
        except ValueError:
            wrong = "a node is one operation: an expression needs a node for each operation, with a name of its own"
            hint = "is it spelled as in the dictionary?" if each.strip().isidentifier() else wrong
            raise Unreadable(f"{name}: there is no node {each}", hint) from None
        raise Unreadable(f"{name}: {each!r} is a text", "numbers without quotation marks")
    if not isinstance(each, str | int | float):
        wrong = "a node is one operation: give the inner operation an entry, and use the name of this entry here"
        inner = isinstance(each, tuple | list) and any(isinstance(part, str) for part in each)
        hint = wrong if inner else "names in quotation marks"
        raise Unreadable(f"{name}: {written(each)} is not a name or a number", hint)


def disorder(names: Sequence[str], graph: Graph) -> str | None:
    """What is wrong with an order of the nodes of a graph; None where each node comes once, after its inputs.

    >>> disorder(["y", "a"], {"a": ("multiply", "x", 2), "y": ("add", "a", "a")})
    'y stands before a, one of its inputs'
    """
    at = {name: i for i, name in enumerate(names)}
    for name in names:
        if name not in graph:
            given = any(name in node[1:] for node in graph.values())
            return f"{name} is given: no operation makes it" if given else f"there is no operation {name}"
        if names.count(name) > 1:
            return f"{name} is in the list more than once"
    for name in graph:
        if name not in at:
            return f"{name} is not in the list"
    for name in names:
        for source in sources_of(graph, name):
            if at.get(source, -1) > at[name]:
                return f"{name} stands before {source}, one of its inputs"
    return None
