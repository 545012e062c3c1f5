"""`emit` applies a primitive: compute, wrap, record.

The interpreter of the current mode decides how: in `lift` and `compute`.  Eager mode
computes at once.  Others record, or add a batch dimension or a derivative.

Operations call `op.apply`, the quick form of `emit(op, ...)` (`quick.py`): it computes
the commonest cases of eager mode in the same way, and calls `emit` for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..support.errors import MinigradError
from .alias import alias_of, link
from .explain import common_device, explained, promoted
from .mode import current_mode
from .node import Constant, Node
from .primitive import Attrs, P, Primitive
from .tensor import NUMBERS, AbstractData, Tensor, as_tensor, wrap

LARGE = 1 << 16  # elements from which a device allocates memory and uses threads


def emit(op: Primitive, *inputs: Any, **attrs: Any) -> Any:
    """Apply a primitive to tensors and Python numbers, in the current mode.

    >>> emit(P.sum, mg.ones((2, 3)), axis=(0,), keepdims=False, dtype=None).tolist()
    [2.0, 2.0, 2.0]
    """
    return (current_mode().interpreter or EAGER).manifest(op, inputs, attrs)


class Interpreter:
    """Decides what a primitive does.  Most define only `lift` and `compute`.

    Eager mode is the interpreter None, with which quick forms run, or `Eager()`, with
    which every operation runs `manifest`.
    """

    runs_programs = False  # whether jitted functions run as compiled programs inside

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: Attrs) -> Any:
        """Apply `op`.  The course calls it "to manifest a node": to make it exist."""
        device = common_device(op, inputs, attrs)
        lifted = [x if x.__class__ in NUMBERS else self.lift(as_tensor(x, device))
                  for x in inputs]
        if op.casting:  # casts are nodes like any other: no kernel gets mixed types
            dtype, wrong = casts = op.casts(lifted)
            if wrong:
                dtype, wrong = promoted(op, inputs, lifted, casts)
            for i in wrong:
                lifted[i] = emit(P.astype, as_tensor(lifted[i], device), dtype=dtype)
        if op.kind == "view":
            alias_of(lifted[0])
        values, mask = [], 0
        for i, x in enumerate(lifted):
            values.append(x._data if x.__class__ is Tensor else x)
            if x.__class__ is Tensor and x.tracked:
                mask += 1 << i
        out = self.manifest_values(op, lifted, values, mask, attrs, device)
        return link(out, lifted[0], (op, attrs)) if op.kind == "view" else out

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int,
        attrs: Attrs, device: Any,
    ) -> Any:
        """The rest of `manifest`.  Bit i of `mask` says that input i is tracked."""
        try:
            data = self.compute(op, values, attrs, device)
        except MinigradError:
            raise
        except Exception as error:
            raise explained(op, inputs, attrs, error) from error
        mode = current_mode()
        if not mode.grad:
            mask = 0
        if data.__class__ is tuple:
            return several(op, inputs, values, mask, attrs, data, device)
        out = wrap(data, device)
        if mask or mode.record_all:
            out.node = recorded(op, inputs, values, mask, attrs, data, device)
            out.tracked = bool(out.node.plan.rules)
        return out

    def lift(self, tensor: Tensor) -> Tensor:
        """The tensor to use in place of an input, which may come from another mode."""
        return tensor

    def compute(
        self, op: Primitive, values: list[Any], attrs: Attrs, device: Any
    ) -> Any:
        """The data of the result: an array or abstract data."""
        raise NotImplementedError

    def on(self, other: Interpreter) -> Interpreter:
        """`other`, below those here that only pass operations on (see `passing.py`)."""
        return other


class Eager(Interpreter):
    """Computes the value now, with the device's kernel."""

    def lift(self, tensor: Tensor) -> Tensor:
        data = tensor._data
        if not isinstance(data, AbstractData) or data.evaluated() is data:
            return tensor
        lifted = wrap(data.evaluated(), tensor.device)  # graph mode recorded the tensor
        lifted.node, lifted.tracked = tensor.node, tensor.tracked
        lifted.alias = tensor.alias
        return lifted

    def compute(
        self, op: Primitive, values: list[Any], attrs: Attrs, device: Any
    ) -> Any:
        kernel, array = device.kernels[op.name], device.ndarray
        if op.kind == "elementwise":
            for v in values:
                if v.__class__ is array and v.size >= LARGE:
                    return device.elementwise(kernel, op, values, attrs)
        data = kernel(*values, **attrs)
        if data.__class__ is not array and data.__class__ is not tuple:
            data = device.asarray(data)  # NumPy makes scalars of 0-d results
        return data


EAGER = Eager()


def recorded(
    op: Primitive, inputs: Sequence[Any], values: Sequence[Any], mask: int,
    attrs: Attrs, data: Any, device: Any,
) -> Node:
    """The node of a result.  It saves the values that its gradient rules read."""
    if data.__class__ is not Results and data.dtype.kind != "f":
        mask = 0  # no gradient flows through integers
    plan = op.plan(mask, len(inputs))
    nodes = [x.node or constant(x) if x.__class__ is Tensor else x for x in inputs]
    saved = None
    if plan.keep is not None:
        kept = zip((*values, data), plan.keep)
        saved = tuple([value if keep else None for value, keep in kept])
    return Node(op, tuple(nodes), attrs, plan, saved, data, device)


def constant(tensor: Tensor) -> Node:
    """The node of an input without a node, made when it is first needed."""
    node = tensor.node = Constant(tensor)
    return node


class Results(tuple[Any, ...]):  # First reader: stop here
    """The data of several results: its shape is a tuple of shapes."""

    @property
    def shape(self) -> Any:
        return tuple([d.shape for d in self])

    @property
    def dtype(self) -> Any:
        return tuple([d.dtype for d in self])


def several(
    op: Primitive, inputs: Sequence[Any], values: Sequence[Any], mask: int,
    attrs: Attrs, results: tuple[Any, ...], device: Any,
) -> tuple[Tensor, ...]:
    """Wrap and record several results: one common node, and a projection for each."""
    outs = tuple([wrap(data, device) for data in results])
    if mask or current_mode().record_all:
        whole = recorded(op, inputs, values, mask, attrs, Results(results), device)
        for i, out in enumerate(outs):
            out.tracked = bool(whole.plan.rules) and out.dtype.kind == "f"
            out.node = part(whole, i, out)
    return outs


def part(node: Node, index: int, result: Tensor) -> Node:
    """The node of one of several results: a projection of their common node."""
    plan = P.project.plan(result.tracked, 1)
    attrs = {"index": index}
    return Node(P.project, (node,), attrs, plan, None, result._data, result.device)
