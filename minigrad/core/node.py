"""A node: one recorded operation, from which its value can be computed again."""

from __future__ import annotations

import weakref
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..support.source import Where, caller, show
from .clock import tick
from .mode import current_mode
from .override import overridable
from .primitive import NO_RULES, Plan

if TYPE_CHECKING:
    from .dtypes import DType
    from .mode import Mode
    from .primitive import Primitive

_serial = attrgetter("serial")


class Node:
    """One recorded operation: the primitive, its inputs and attributes, and the line that called it.

    A node refers to no tensor, so there are no cycles: its inputs are nodes and Python numbers.  The values that its
    gradient rules need are saved as data: raw arrays, or abstract data inside vmap and jvp.  The backward pass deletes
    them; the rest of the node stays.
    """

    __slots__ = (
        "__weakref__", "attrs", "code", "device", "dtype", "inputs", "mode", "offset", "op", "plan", "saved", "serial",
        "shape", "value",
    )
    op: Primitive | None  # None in a leaf or a constant
    inputs: tuple[Any, ...]  # nodes and Python numbers
    attrs: dict[str, Any]
    plan: Plan  # the gradient rules of the inputs that gradients flow to
    saved: Any  # (inputs..., out), None where no rule reads it; or FREED, a checkpoint
    shape: tuple[int, ...]
    dtype: DType
    device: Any
    serial: int  # when it was recorded: sorting by it gives a topological order
    code: Any  # the code that called the operation, and the place in it
    offset: int
    mode: Mode
    value: Any  # in a trace: a weak reference to the node, in the graph of values, of what this one computes

    def __init__(
        self,
        op: Primitive,
        inputs: tuple[Any, ...],
        attrs: dict[str, Any],
        plan: Plan,
        saved: tuple[Any, ...] | None,
        data: Any,
        device: Any,
    ) -> None:
        self.op, self.inputs, self.attrs, self.plan, self.saved = op, inputs, attrs, plan, saved
        self.shape, self.dtype, self.device = data.shape, data.dtype, device
        self.serial, self.mode = tick(), current_mode()
        self.code, self.offset = caller(2)

    @property
    def where(self) -> Where | None:
        """The place in the caller's code that made this node, for `source.show`."""
        return None if self.code is None else (self.code, self.offset)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of its value, or of all its results, in bytes."""
        if isinstance(self.dtype, tuple):
            return sum(prod(shape) * dtype.itemsize for shape, dtype in zip(self.shape, self.dtype))
        return self.size * self.dtype.itemsize

    @property
    def sources(self) -> list[Node]:
        """The inputs that are nodes: not the Python numbers among them."""
        return [each for each in self.inputs if isinstance(each, Node)]

    @property
    def scope(self) -> tuple[str, ...]:
        """The modules and functions that were running when the node was made, outermost first."""
        return self.mode.scope

    @property
    def origin(self) -> Node | None:
        """The forward node whose gradient this node helps to compute; None in the forward pass."""
        return self.mode.origin

    @property
    def toward(self) -> int | None:
        """The number of the input of `origin` that this gradient goes to; None if that is not one input."""
        return self.mode.toward

    @property
    def composite(self) -> Any:
        """The call of a composed function, such as `softmax`, that recorded this node; None outside one."""
        return self.mode.composite

    @property
    def name(self) -> str:
        return "?" if self.op is None else self.op.name

    @property
    def is_view(self) -> bool:
        """Whether its operation makes another view of a value, and computes nothing."""
        return self.op is not None and self.op.kind == "view"

    @property
    def effect(self) -> str | None:
        """The effect of the operation beyond its result; "within" if only a branch or a body of it has one."""
        op = self.op
        if op is None or op.effect is not None or op.kind != "structural":
            return None if op is None else op.effect
        return "within" if any(getattr(held, "effects", ()) for held in self.attrs.values()) else None

    def __repr__(self) -> str:
        return f"<{self.name} {self.shape} {self.dtype}, made at {show(self.where)}>"


SMALL = 1 << 15  # bytes: values up to this size stay with their nodes, so that pictures can show them later
FREED = object()  # the value of `saved` after a backward pass


def _source(node: Any, data: Any, device: Any) -> None:
    """Set the attributes of a node without an operation."""
    node.op, node.inputs, node.attrs, node.plan, node.saved = None, (), {}, NO_RULES, None
    node.shape, node.dtype, node.device = data.shape, data.dtype, device
    node.serial, node.mode = tick(), current_mode()
    node.array = (lambda: data) if getattr(data, "nbytes", SMALL + 1) <= SMALL else weakref.ref(data)


class Leaf(Node):
    """The node of a tensor that requires a gradient and is not the result of an operation, such as a parameter.

    `array()` is the value that the tensor had first, if it is small or there is still a reference to it.
    """

    __slots__ = ("array", "tensor")
    array: Any

    def __init__(self, tensor: Any) -> None:
        _source(self, tensor._data, tensor.device)
        self.tensor = weakref.ref(tensor)
        self.code, self.offset = caller(2)

    @property
    def name(self) -> str:
        return "leaf"


class Constant(Node):
    """The node of an input without a gradient.  It keeps no large array alive.

    `tensor()` is the tensor if there is still a reference to it: one that a library function made for itself is gone.
    """

    __slots__ = ("array", "tensor")
    array: Any
    tensor: Any

    def __init__(self, tensor: Any) -> None:
        _source(self, tensor._data, tensor.device)
        self.tensor = weakref.ref(tensor)
        self.code, self.offset = None, 0

    @property
    def name(self) -> str:
        return "constant"


@overridable
def topological_order(roots: Any) -> list[Node]:
    """The roots and all nodes that they depend on, inputs first.

    Every node is recorded after its inputs, so sorting by serial number gives a topological order.
    """
    found = set(roots)
    stack = list(found)
    while stack:
        for node in stack.pop().inputs:
            if node not in found and isinstance(node, Node):
                found.add(node)
                stack.append(node)
    return sorted(found, key=_serial)


class OuterResult(Leaf):  # First reader: stop here.  The rest serves traces
    """The leaf of a trace that stands for a result of operations outside it: like that result, it may be written."""

    __slots__ = ()


def is_made(node: Any) -> bool:
    """Whether an operation made the value of a node, in this trace or outside it."""
    return node is not None and (node.op is not None or isinstance(node, OuterResult))


def spent_node(node: Node) -> Node:
    """A node like another one after a backward pass, but without its inputs."""
    spent = object.__new__(Node)
    for field in ("op", "attrs", "shape", "dtype", "device", "serial", "code", "offset", "mode"):
        setattr(spent, field, getattr(node, field))
    spent.inputs, spent.plan, spent.saved = (), NO_RULES, FREED
    return spent
