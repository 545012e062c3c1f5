"""Graphs: the nodes from sources to outputs, as an object that prints.  Passes rewrite graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from importlib import import_module
from operator import attrgetter, is_
from types import MethodType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...core.clock import tick
from ...core.mode import Mode
from ...core.node import Node
from ...core.primitive import NO_RULES, P, Primitive
from ...devices.special import cast
from ...support.source import caller


class later:
    """A method that a higher room defines, or a guest: its module is imported when it is used.

    It is the function `name` of a module as a method, or a method of a class in it; without a name, the module itself
    as an attribute.

    >>> class Circle:
    ...     library = later("math")
    ...     said = later("builtins", "repr")
    >>> Circle().library.pi > 3, Circle().said() == Circle.said(1)
    (True, False)
    """

    def __init__(self, module: str, name: str = "") -> None:
        self.module, self.name = module, name

    def __get__(self, instance: Any, owner: type) -> Any:
        found = import_module(self.module)
        if not self.name:
            return found
        function = attrgetter(self.name)(found)
        return function if instance is None else MethodType(function, instance)


Starts = dict[Any, tuple[Any, int]]  # the key and first block of each generator of random numbers, in one run
T = TypeVar("T", bound="Titled")


class Titled:
    """A stage with a `title` that names its program; `gradient` is the same stage of the gradient's program.

    Both are empty unless a call kept values for its gradient and the gradient was computed.
    """

    title = ""
    gradient: Any = None

    def titled(self: T, title: str, gradient: T | None = None) -> T:
        """A copy with a title, to be printed together with its gradient."""
        new = copy(self)
        vars(new).update(title=title, gradient=gradient)
        return new

    def listing(self) -> str:
        """The text of this stage alone."""
        raise NotImplementedError

    def __str__(self) -> str:
        own = f"{self.title}:\n{self.listing()}" if self.title else self.listing()
        return own if self.gradient is None else f"{own}\n\n{self.gradient}"


class Source(Node):
    """A node whose value comes from outside: `held` is a tensor, an array or a number of an output, as `kind` says.

    A `lasting` value rarely differs between runs, so that programs keep what they compute from it alone.
    """

    __slots__ = ("held", "kind", "lasting")
    held: Any
    lasting: bool
    kind: str  # "tensor": of a call; "constant": this array; "array": a copy of it; "cotangent": of this output

    def __init__(self, kind: str, held: Any, shape: tuple[int, ...], dtype: Any, device: Any, mode: Mode) -> None:
        self.op, self.inputs, self.attrs, self.plan, self.saved = None, (), {}, NO_RULES, None
        self.shape, self.dtype, self.device, self.mode = shape, dtype, device, mode
        self.serial = tick()
        self.code, self.offset = caller(2)
        self.kind, self.held, self.lasting = kind, held, False

    @property
    def name(self) -> str:
        return self.kind

    def array(self) -> Any:
        """The array of a constant.  A user's array is copied now, because it may have changed."""
        if self.kind == "array":
            held = self.held if self.held.dtype == self.dtype else cast(np, self.held, self.dtype)
            return self.device.from_numpy(np.array(held, dtype=self.dtype, order="C"))
        return self.held


STORED = "stored"  # the kind of a source whose dimensions are in the order of memory
LOOK = "minigrad.compile.look"


class Check(NamedTuple):
    """A condition: the integers of a node are valid positions in a dimension of this size, for the node `reader`."""

    node: Node
    size: int
    reader: Node


class Graph(Titled):
    """Inputs, outputs, and all nodes between them.

    Every mode records nodes; a graph adds where they begin and end.  A graph never changes: a pass makes a new one.
    The `checks` must hold when it runs.
    """

    listing = later(f"{LOOK}.texts", "graph_listing")
    became: Any = later(f"{LOOK}.values", "became")
    cost: Any = later(f"{LOOK}.cost", "cost")
    values: Any = later(f"{LOOK}.values", "values")
    predicted: Any = later(f"{LOOK}.placement", "predicted")
    offloading: Any = later(f"{LOOK}.placement", "offloading")
    placed: Any = later(f"{LOOK}.placement", "placed")

    def __init__(
        self, inputs: Sequence[Node], outputs: Sequence[Node], effects: Sequence[Node] = (),
        checks: Sequence[Check] = (),
    ) -> None:
        self.inputs, self.outputs, self.effects = tuple(inputs), tuple(outputs), tuple(effects)
        self.checks = tuple({(check.node, check.size): check for check in reversed(checks)}.values())[::-1]
        checked = [check.node for check in self.checks]
        self.nodes = tuple(_between(set(self.inputs), (*self.outputs, *self.effects, *checked)))
        self.rebuilt_from: tuple[Graph, dict[Node, Node]] | None = None  # the graph before, and what its nodes became

    def __len__(self) -> int:
        return len(self.nodes)

    def uses(self) -> Counter[Node]:
        """How often each node is an input of another."""
        return Counter([i for node in self.nodes for i in node.inputs if isinstance(i, Node)])

    def names(self) -> dict[Node, str]:
        """A short name for each node: `matmul_1` is the first matrix product, `scan_1[0]` a result of a scan."""
        names: dict[Node, str] = {}
        seen: Counter[str] = Counter()
        for node in (*self.inputs, *self.nodes):
            whole, name = names.get(node.inputs[0]) if node.op is P.project else None, node.name
            if whole is None:
                seen[name] += 1
            names[node] = f"{name}_{seen[name]}" if whole is None else f"{whole}[{node.attrs['index']}]"
        return names

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} nodes, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """In a notebook, a picture.  `viz` is above all other rooms, so it is imported by name."""
        return import_module("minigrad.viz").shown(self)  # type: ignore[no-any-return]

    def rebuilt(
        self, replace: Callable[[Node, tuple[Any, ...]], Node], inputs: Sequence[Node] | None = None
    ) -> Graph:
        """The graph with `replace(node, inputs)` in place of each node, and on other `inputs` if they are given.

        The inputs of a node are replaced before the node.  If nothing changes, it is the same object.
        """
        begins = self.inputs if inputs is None else inputs
        new: dict[Any, Any] = dict(zip(self.inputs, begins))
        for node in self.nodes:
            new[node] = replace(node, tuple(map(new.get, node.inputs, node.inputs)))  # numbers stay
        ends = (*self.outputs, *self.effects, *[check.node for check in self.checks])
        if inputs is None and all(map(is_, map(new.get, ends), ends)):
            return self
        outputs, effects = [[new[node] for node in nodes] for nodes in (self.outputs, self.effects)]
        made = Graph(begins, outputs, effects, [check._replace(node=new[check.node]) for check in self.checks])
        made.rebuilt_from = self, new
        return made

    def checking(self, checks: Sequence[Check]) -> Graph:
        """The graph with more checks."""
        if not checks:
            return self
        made = Graph(self.inputs, self.outputs, self.effects, (*self.checks, *checks))
        made.rebuilt_from = self, {}
        return made

def _between(inputs: set[Node], roots: Sequence[Node]) -> list[Node]:
    """The nodes from the inputs to the roots, in the order in which they were made."""
    found = set(roots) - inputs
    stack = list(found)
    while stack:
        for node in stack.pop().inputs:
            if isinstance(node, Node) and node not in found and node not in inputs:
                found.add(node)
                stack.append(node)
    return sorted(found, key=attrgetter("serial"))


def remade(node: Node, inputs: tuple[Any, ...]) -> Node:
    """The same operation on other inputs of the same shapes; the node itself, if the inputs are the same."""
    if len(inputs) == len(node.inputs) and all(map(is_, inputs, node.inputs)):
        return node
    new = in_place_of(node)
    new.op, new.inputs, new.attrs, new.shape, new.dtype = node.op, inputs, node.attrs, node.shape, node.dtype
    return new


def node_like(op: Primitive, inputs: tuple[Any, ...], attrs: dict[str, Any], like: Node) -> Node:
    """A node to replace another one: it has the line, scope and origin of `like`."""
    new = in_place_of(like)
    new.op, new.inputs, new.attrs = op, inputs, attrs
    new.shape, new.dtype = op.infer(*inputs, **attrs)
    return new


def reapplied(node: Node, inputs: tuple[Any, ...], attrs: dict[str, Any] | None = None) -> Node:
    """The same operation on other inputs, of any shapes, and with other `attrs` if they are given."""
    assert node.op is not None
    return node_like(node.op, inputs, node.attrs if attrs is None else attrs, like=node)


class Replacing:
    """Makes nodes to replace another one: `made.reshape(x, shape=s)` has its line, scope and origin."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __getattr__(self, name: str) -> Callable[..., Node]:
        return lambda *inputs, **attrs: node_like(P[name], inputs, attrs, self.node)


def in_place_of(node: Node) -> Node:
    """A node without an operation yet, with the line, scope and origin of another."""
    new = Node.__new__(Node)
    new.plan, new.saved = NO_RULES, None
    new.device, new.mode, new.code, new.offset = node.device, node.mode, node.code, node.offset
    new.serial = tick()
    return new
