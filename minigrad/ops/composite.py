"""Composed functions mark the nodes that they record, so that a call can be shown and exported as one operation.

Nothing is marked in eager mode, where a large call may run as a program (`core/programs.py`).  While an interpreter
records, such as a tracer, each call of a composed function is a `Composite`, and the nodes that it records
carry it.  The nodes are still the whole computation; the composite is a group around them that can be opened.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar
from weakref import ref

from ..arguments.public import explained
from ..core.mode import current_mode, switch
from ..core.node import Node
from ..core.override import override_of
from ..core.programs import in_programs
from ..core.tensor import Tensor
from ..core.tree import flatten

F = TypeVar("F", bound=Callable[..., Any])

PLAIN = frozenset((type(None), bool, int, float, str))  # arguments without tensors in them
COMPOSED: dict[str, Callable[..., Any]] = {}  # by name


def composed(function: F, run: Callable[..., Any] | None = None) -> F:
    """Declare a function that calls several operations: while an interpreter records, each call marks its nodes.

    In eager mode and in graph mode, `run(*args)` makes the call, if it is given.

    >>> graph = mg.trace(lambda x: mg.softmax(x, axis=0) * 2, mg.ones((2, 3)))
    >>> [node.composite and node.composite.name for node in graph.nodes][-3:]
    ['softmax', 'softmax', None]
    >>> softmax = graph.nodes[0].composite
    >>> softmax.attributes, softmax.inputs["x"] is graph.inputs[0], softmax.members() == graph.nodes[:-1]
    ({'axis': 0}, True, True)
    """
    vars(function)["run"] = run or function
    made: F = explained(function, marked=marked, run=run)
    COMPOSED[function.__name__] = made
    return made


def program(most: int | None = None) -> Callable[[F], F]:
    """Declare a composed function that runs as a program in eager mode: see `composed`, `in_programs`."""

    def declare(function: F) -> F:
        return composed(function, in_programs(function, most=most))

    return declare


class Composite:
    """A call of a composed function: the function's name, the arguments, and the nodes of inputs and outputs.

    Nodes hold their composite, so the composite holds nodes weakly.  It describes the nodes that the call recorded, not
    the nodes that a pass puts in their place.
    """

    __slots__ = ("_inputs", "_outputs", "attributes", "name", "outer")

    def __init__(self, name: str, attributes: dict[str, Any], outer: Composite | None) -> None:
        self.name, self.attributes, self.outer = name, attributes, outer
        self._inputs: dict[str, Any] = {}
        self._outputs: list[Any] = []

    def connect(self, inputs: dict[str, Node | None], outputs: list[Node | None]) -> None:
        """Set the nodes of the inputs and outputs, once the call has returned."""
        self._inputs = {name: node and ref(node) for name, node in inputs.items()}
        self._outputs = [node and ref(node) for node in outputs]

    def __repr__(self) -> str:
        return f"<a call of {self.name}>"

    @property
    def inputs(self) -> dict[str, Node | None]:
        """The nodes of the tensors among the arguments, by parameter; None for one that is gone."""
        return {name: node and node() for name, node in self._inputs.items()}

    @property
    def outputs(self) -> tuple[Node | None, ...]:
        """The nodes of the results; None for one that is gone."""
        return tuple([node and node() for node in self._outputs])

    @property
    def path(self) -> tuple[Composite, ...]:
        """The composites that are open around a node of this one, outermost first."""
        return (self,) if self.outer is None else (*self.outer.path, self)

    def members(self) -> tuple[Node, ...]:
        """The nodes that lead from the inputs to the outputs, in the order of their recording.

        There are none if a node on the way was not recorded by the call: then the inputs do not determine the outputs.
        """
        inputs, found = set(self.inputs.values()), set[Node]()
        stack = list(self.outputs)
        while stack:
            node = stack.pop()
            if node is not None and node.op is None and node.name in ("constant", "array") and node not in inputs:
                continue  # numbers that the call has made
            if node is None or node in inputs or node.op is None or self not in _path(node):
                return ()
            if node not in found:
                found.add(node)
                stack += {i for i in node.inputs if isinstance(i, Node)} - inputs
        return tuple(sorted(found, key=attrgetter("serial")))


def _path(node: Node) -> tuple[Composite, ...]:
    return () if node.composite is None else node.composite.path


def marked(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a composed function under an interpreter; if it records, the nodes carry the call as their composite.

    Inside an `overriding(gelu, mine)` block, the call is `mine(...)`.
    """
    replaced = override_of(function)
    if replaced is not None:
        return replaced(*args, **kwargs)
    mode = current_mode()
    node_of = getattr(mode.interpreter, "node_of", None)
    if node_of is None:  # vmap and jvp record other values than the function gets, and graph mode makes no marks
        return vars(function)["run"](*args, **kwargs)
    tensors, attributes = _separated(_by_parameter(function, args) | kwargs)
    composite = Composite(function.__name__, attributes, mode.composite)
    before = {name: node_of(tensor) for name, tensor in tensors.items()}
    with switch(composite=composite):
        results = function(*args, **kwargs)
    # A tensor from outside has a node only once the function has used it.
    composite.connect({name: before[name] or node_of(tensor) for name, tensor in tensors.items()},
                      [node_of(t) for t in ([results] if results.__class__ is Tensor else flatten(results)[0])])
    return results


def _by_parameter(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """The positional arguments by the names of their parameters; for `*xs` the names are `xs[0]`, `xs[1]`, ..."""
    code = function.__code__
    found = dict(zip(code.co_varnames[: code.co_argcount], args))
    if len(args) > len(found):
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        found |= {f"{rest}[{i}]": value for i, value in enumerate(args[len(found) :])}
    return found


def _separated(arguments: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors by name, and the other arguments; in a container, the names are `arrays[0]`, `arrays[1]`, ..."""
    tensors, others = {}, {}
    for name, value in arguments.items():
        if value.__class__ is Tensor:
            tensors[name] = value
        elif value.__class__ not in PLAIN and (inside := flatten(value)[0]):
            tensors |= {f"{name}[{i}]": tensor for i, tensor in enumerate(inside)}
        else:
            others[name] = value
    return tensors, others
