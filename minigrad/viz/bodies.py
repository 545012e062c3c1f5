"""Graphs with their control flow written out: both branches of a `cond`, and the body of a loop once.

A graph has one node for a `cond` or a loop, and the graphs of the branches or of the body are attributes of that node.
Here the nodes of those graphs take its place, in scopes of their own, which a picture opens and closes like modules.
A few further nodes show where values come in and leave:

    carry     what a round is given by the round before it
    each      the element of an input in this round
    last      a result of a loop: the carry after the last round, or the number of rounds
    stack     a result of a loop: the results of all rounds
    cond      a result of a choice: that of the branch that is taken
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..compile.control.gradients import Loop
from ..compile.nodes.graph import Graph, in_place_of
from ..core.node import Node
from ..core.primitive import P, Primitive
from ..support.table import counted
from .naming import Flow, home_of, names_in_code
from .notation import unnumbered
from .scene import Path, Scopes

BRANCHES = {"then": "if true", "otherwise": "if false"}  # what the functions of a `cond` are called


def _joint(name: str, formula: str) -> Primitive:
    return Primitive(name, "structural", ("*inputs",), lambda *inputs: (inputs[0].shape, inputs[0].dtype), promotes=(),
                     formula=formula)


CARRY, EACH = _joint("carry", r"c_{i+1} \leftarrow f(c_i)"), _joint("each", "x_i")
LAST, STACK = _joint("last", "c_n"), _joint("stack", r"(y_0, \ldots, y_{n-1})")
CHOICE = _joint("cond", P.cond.formula)
Joint = tuple[Primitive, list[Any]]  # a result of a node with control flow: what it is, and what it reads


def kind_of(node: Node) -> str:
    """What the user called to make a node with control flow: a `fori_loop` may be a scan."""
    if node.op is P.cond:
        return "cond"
    what = getattr(node.attrs["body"], "what", "")  # after the passes, it is only a function
    return what.partition(":")[0] or node.name


def rounds_of(node: Node) -> str:
    """How many rounds a loop has, for its name; empty if the number is computed."""
    limit = node.attrs.get("limit")
    if limit is not None:
        return f", at most {counted(limit, 'round')}"
    known = node.op is P.scan and not node.attrs["counted"]
    return f", {counted(node.attrs['length'], 'round')}" if known else ""


def beneath(inner: Path, outer: Path) -> Path:
    """The scopes inside a branch or a body, whose nodes were recorded in the scopes around it.

    >>> beneath(("LSTM", "gate"), ("LSTM",))
    ('gate',)
    """
    return inner[len(outer) :] if inner[: len(outer)] == outer else inner


def moved(node: Node, scope: Path, backward: bool) -> Node:
    """The node, which nothing else uses yet, in another scope.

    In the backward pass, an operation that is computed again belongs to the gradient too.
    """
    origin = in_place_of(node) if backward else None
    if origin is not None:
        origin.inputs, origin.mode = (), node.mode.but(scope=scope, origin=None)
    node.mode = node.mode.but(scope=scope, origin=origin)
    return node


class Written:
    """The nodes of a graph, with its control flow written out: new nodes, but for the inputs.

    `again` has pairs of nodes: what a round makes, and the carry of the next round that it becomes.

    >>> graph = mg.trace(lambda x: mg.cond(x > 0, mg.exp, lambda x: x * 2, x), mg.asarray(1.0))
    >>> [(node.name, node.scope) for node in Written(graph).nodes]  # doctest: +NORMALIZE_WHITESPACE
    [('less', ()), ('exp', ('cond', 'if true')), ('multiply', ('cond', 'if false')), ('cond', ('cond',))]
    """

    def __init__(self, graph: Graph) -> None:
        self.inputs, self.nodes = list(graph.inputs), list[Node]()
        self.again: list[tuple[Node, Node]] = []
        self.carried: dict[Node, str] = {}  # the names that the user's code has for what comes in
        self.scopes = Scopes()
        if any(_opens(node) for node in graph.nodes):
            self.outputs = self.run(graph, graph.inputs)
            self.nodes = [*dict.fromkeys(self.nodes)]  # a constant may be in several of the graphs
        else:
            self.nodes, self.outputs = list(graph.nodes), list(graph.outputs)

    def run(self, graph: Graph, given: Sequence[Any], of: Opened | None = None) -> list[Any]:
        """The outputs of a graph, which may be one `of` a node with control flow, for these inputs."""
        new: dict[Any, Any] = dict(zip(graph.inputs, given))
        opened: dict[Node, tuple[Opened, list[Joint]]] = {}
        for node in graph.nodes:
            if node.op is P.project and node.inputs[0] in opened:
                inside, results = opened[node.inputs[0]]
                op, read = results[node.attrs["index"]]
                new[node] = self.joint(inside, op, read, node)
                continue
            inputs = [new[i] if isinstance(i, Node) else i for i in node.inputs]
            scope = home_of(node) if of is None else (*of.scope, *beneath(home_of(node), home_of(of.node)))
            if _opens(node):
                backward = node.origin is not None or (of is not None and of.backward)
                path = self.scopes.inside(scope, kind_of(node), rounds_of(node), backward, Flow)
                inside = Opened(node, path, backward)
                opened[node] = inside, (self._choice if node.op is P.cond else self._rounds)(inside, inputs)
            elif node.op is None:
                new[node] = self.add(node)  # a constant
            else:
                copied = made(node.op, inputs, node.attrs, node, node)
                copied.mode = node.mode.but(origin=new.get(node.origin))
                new[node] = self.add(copied if of is None else moved(copied, scope, of.backward))
        return [new[node] for node in graph.outputs]

    def add(self, new: Node) -> Node:
        """Append a node."""
        self.nodes.append(new)
        return new

    def joint(self, of: Opened, op: Primitive, inputs: Sequence[Any], like: Node) -> Node:
        """A node of the scope itself, with the shape of `like`."""
        return self.add(moved(made(op, inputs, {}, like, of.node), of.scope, of.backward))

    def _choice(self, of: Opened, inputs: Sequence[Any]) -> list[Joint]:
        """Write out both branches of a `cond`, side by side."""
        test, *given = inputs
        attrs = of.node.attrs
        results = [self.run(attrs[name].graph, given, of.inside(words)) for name, words in BRANCHES.items()]
        return [(CHOICE, [test, *each]) for each in zip(*results)]

    def _rounds(self, of: Opened, inputs: Sequence[Any]) -> list[Joint]:
        """Write out the body of a loop, and the condition of a `while_loop`, beside each other."""
        loop = Loop(of.node.attrs, inputs)
        fixed, begins, xs = loop.given(inputs)
        graph = loop.body.graph
        _, inner, rows = loop.given([*inputs[: loop.first], *graph.inputs])
        carry = [self.joint(of, CARRY, [begin], like) for begin, like in zip(begins, inner)]
        each = [self.joint(of, EACH, [x], like) for x, like in zip(xs, rows)]
        known = names_in_code(graph.nodes)
        named = zip([*carry, *each], [*inner, *rows])
        self.carried |= {joint: unnumbered(known[source]) for joint, source in named if source in known}
        ends = list(inputs[: loop.first])  # what decides which round is the last
        inside = of
        if loop.test is not None:
            ends, inside = self.run(loop.test.graph, [*fixed, *carry], of.inside("condition")), of.inside("body")
        results = self.run(graph, [*fixed, *carry, *each], inside)
        self.again += zip(results, carry)
        count = [(LAST, ends)] * (loop.test is not None)  # of the rounds
        stacked = [*results[loop.carries :], *carry]  # the carries are kept for the gradient
        return [*[(LAST, [end, *ends]) for end in results[: loop.carries]], *count, *[(STACK, [y]) for y in stacked]]


class Opened(NamedTuple):
    """A node with control flow, the scope of its graphs, and whether it belongs to the backward pass."""

    node: Node
    scope: Path
    backward: bool

    def inside(self, name: str) -> Opened:
        """The same, in a scope of its own in that scope."""
        return self._replace(scope=(*self.scope, Flow(name)))


def made(op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any], like: Node, place: Node) -> Node:
    """A node with the shape of one node, in place of another."""
    new = in_place_of(place)
    new.op, new.inputs, new.attrs, new.shape, new.dtype = op, tuple(inputs), attrs, like.shape, like.dtype
    return new


def _opens(node: Node) -> bool:
    return node.op in (P.cond, P.scan, P.while_loop)
