"""Tracing: an interpreter that computes nothing and notes what would be computed.

Two records are made of each operation.  The *history*, which the gradient walk follows, is what eager mode records too.
The *value graph* is new: its nodes say what a value is computed from, whatever has a gradient, and is overwritten, or
not.  A traced tensor's data is a `Pending`, which stands for the array that a node of the value graph will give.

Nothing outside is touched.  A tensor from outside that is read or written is *captured*: a tensor of the trace stands
in for it, data, gradient and views.  Who runs the trace writes back what became of it; an exception drops it all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ...autodiff.reverse import HOOKS
from ...core import dtypes
from ...core.clock import tick
from ...core.emit import EAGER, Interpreter, emit
from ...core.mode import Mode, current_mode, switch
from ...core.node import Leaf, Node
from ...core.primitive import NO_RULES, P, Primitive
from ...core.state import Control, State, behind
from ...core.tensor import DEFAULT, NUMBERS, StandIn, Tensor, wrap
from ...core.view import Alias, detach
from ...support.errors import TraceError
from ...support.source import caller, show
from ..nodes.graph import Graph
from ..nodes.source import Source
from ..nodes.view import through, whole


class Pending(StandIn):
    """The data of a traced tensor: the node that will give its value.

    `base` is whose memory it would look at, as of a NumPy array: the clock that catches stale gradients asks for it.
    `view` says how, `value` is the array, once it has been computed.
    """

    __slots__ = ("base", "dtype", "node", "shape", "trace", "value", "view", "waits_for")

    def __init__(self, trace: Tracer, node: Node, base: Pending | None = None) -> None:
        self.trace, self.node, self.base = trace, node, base
        self.shape, self.dtype = node.shape, node.dtype
        self.value: Any = None
        self.waits_for: Sequence[Pending] = ()  # graph mode: the operands, until the value has been computed
        self.view = whole(node)

    @property
    def no_value(self) -> str:
        return "that is not computed yet" if not self.trace.ended else "of a trace"

    @property
    def way_out(self) -> str | None:  # type: ignore[override]
        return None if not self.trace.ended else "return it from the function instead of storing it"

    @property
    def where(self) -> Any:
        return self.node.where

    def missed(self, error: Exception) -> Exception:
        self.trace.missed = self.trace.missed or error
        return error

    def detached(self) -> Pending:
        return self

    def evaluated(self) -> Any:
        return self.trace.evaluated(self)


SAFE = 127  # integers from 0 to this fit every type of integers


def in_range(trace: Tracer, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> list[Any]:
    """The operands of an operation where Python integers fit the type that they are computed in.

    Where they don't, eager mode compares them all the same, wraps them round (`where`), or refuses, and so it is here.
    """
    tensors = [v for v in values if v.__class__ is Pending]
    if op is P.put:
        return _assignable(values)
    dtype = attrs["dtype"] if op is P.full else tensors[-1].dtype if tensors else None
    if dtype is None or dtype.kind not in "iu":
        return values
    limits = dtypes.iinfo(dtype)
    numbers = [v for v in (*values, attrs.get("value")) if v.__class__ is int]
    beyond = [v for v in numbers if not limits.min <= v <= limits.max]
    if not beyond:
        return values
    if op.kind == "elementwise":
        empty = [np.empty((0,), v.dtype) if v.__class__ is Pending else v for v in values]
        result = EAGER.compute(op, empty, attrs, DEFAULT.device)  # raises what it raises
        if result.dtype is dtype:
            return [int(np.array(v).astype(dtype)) if v.__class__ is int else v for v in values]
        if dtype.itemsize < 8 and all(abs(v) < 1 << 63 for v in beyond):
            as_wide = {"dtype": dtypes.int64}
            wide = {v: trace.recorded(P.astype, [v], as_wide, device) for v in tensors}
            return [wide.get(v, v) if v.__class__ is Pending else v for v in values]
    raise OverflowError(f"Python integer {beyond[0]} out of bounds for {dtype}")


def _assignable(values: list[Any]) -> list[Any]:
    """The operands of an assignment, a number being what it becomes in a tensor of integers."""
    base, value, *indices = values
    if base.dtype.kind not in "iu" or value.__class__ not in NUMBERS:
        return values
    one = np.empty((1,), base.dtype)
    one[...] = value  # raises what it raises
    return [base, one.item(), *indices]


_INFERRED: dict[Any, Any] = {}
MOST_INFERRED = 4096


def _inferred(op: Primitive, inputs: tuple[Any, ...]) -> Any:
    """The shape and dtype of a result without attributes: a loop records the same operations again and again."""
    key = op, *[(x.shape, x.dtype) if isinstance(x, Node) else x.__class__ for x in inputs]
    found = _INFERRED.get(key)
    if found is None:
        if len(_INFERRED) >= MOST_INFERRED:
            _INFERRED.clear()
        found = _INFERRED[key] = op.infer(*inputs)
    return found


class Captured:
    """A tensor from outside, what stands in for it, and what it was when it was captured."""

    __slots__ = ("first", "gradient_known", "had_gradient", "leaf", "stand_in", "tensor")

    def __init__(self, tensor: Tensor, stand_in: Tensor) -> None:
        self.tensor, self.stand_in, self.first = tensor, stand_in, stand_in._data
        self.leaf = stand_in.node if stand_in.tracked else None  # where a gradient for it arrives
        self.gradient_known = False  # whether the stand-in's gradient is what the tensor's would be now
        self.had_gradient: bool | None = None  # whether there was one, if anybody looked before it was replaced

    @property
    def is_view(self) -> bool:
        alias = self.tensor.alias
        return alias is not None and alias.base is not None

    @property
    def written(self) -> bool:
        """Whether its memory would have changed.  What a view shows is written through its base."""
        return not self.is_view and self.stand_in._data is not self.first


class Tracer(Interpreter, State, Control):
    """Records every operation as a node, and keeps all that outlives an operation to itself."""

    flow: Any = None  # `compile.control` sets this
    what = "the function"  # in messages
    seals_generators = True

    def __init__(self) -> None:
        self.captured: dict[int, Captured] = {}  # by id of the tensor outside, which the entry keeps alive
        self.standing: dict[int, Captured] = {}  # the same by id of the stand-in
        self.sources: list[Source] = []
        self.effects: list[Node] = []
        self.drawn: dict[Any, int] = {}  # generator -> how many blocks have been drawn
        self.restarted: dict[Any, tuple[int, int]] = {}  # generator that was seeded -> its key and next block
        self.missed: Exception | None = None  # the first error of asking for a value that is not there
        self.values: dict[Node, Node] = {}  # a node of the history -> the node of its value
        self.last_mode = Mode()  # that was given to a node
        self.expected: list[tuple[Node, Callable[[Any], None]]] = []  # integers that name rows, and what checks them
        self.hunter: Any = None  # the interpreter by which to run this, if `debug_nans` says so inside
        self.looked_into: list[tuple[Any, Any]] = []  # arrays of the user's, and copies of what was in them
        self.ended = False

    # recording ------------------------------------------------------------------------------------------------------

    def lift(self, tensor: Tensor) -> Tensor:
        data = tensor._data
        if data.__class__ is Pending:
            if data.trace is self:
                return tensor
            array = data.evaluated()
            if array is data:
                raise leaked(data)
            tensor._data = array
        return self.stand_in(tensor)

    def manifest(self, op: Primitive, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The same in one pass, where the inputs are numbers, and tensors of this trace on one device."""
        device, mask, bit = None, 0, 1
        lifted, values = [], []
        for x in inputs:
            if x.__class__ is Tensor:
                if x._data.__class__ is not Pending:
                    known = self.captured.get(id(x))
                    if known is None:
                        break
                    x = known.stand_in
                data = x._data
                if data.trace is not self or (device is not None and x.device is not device):
                    break
                device = x.device
                values.append(data)
                if x.tracked:
                    mask += bit
            elif x.__class__ in NUMBERS:
                values.append(x)
            else:
                break
            lifted.append(x)
            bit += bit
        else:
            plain = device is not None and op.kind != "view" and "device" not in attrs  # not a copy to another device
            if plain and not (op.casting and op.casts(values).indices):
                return self.manifest_values(op, lifted, values, mask, attrs, device)
        return super().manifest(op, inputs, attrs)

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int, attrs: dict[str, Any], device: Any
    ) -> Any:
        out = super().manifest_values(op, inputs, values, mask, attrs, device)
        for result in out if out.__class__ is tuple else (out,):
            if result.node is not None and result._data.__class__ is Pending:
                self.values[result.node] = result._data.node
        return out

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        if op is P.call:
            return attrs["application"].compute(*values)  # a function of the user's own is recorded as what it does
        if op is P.full or op is P.put or any(v.__class__ is int and not 0 <= v <= SAFE for v in values):
            values = in_range(self, op, values, attrs, device)
        return self.recorded(op, values, attrs, device)

    def recorded(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        """What stands for the result of an operation, or for each of its results."""
        node = self.noted(op, tuple([v.node if v.__class__ is Pending else v for v in values]), attrs, device)
        if node.shape and node.shape[0].__class__ is tuple:
            return tuple([self._part(node, i) for i in range(len(node.shape))])
        return Pending(self, node) if op.kind != "view" else self._view(node, values[0])

    def _view(self, node: Node, source: Pending) -> Pending:
        """What a view operation gives: the same memory, unless that cannot be read in the new shape."""
        seen = through(node, source.view)
        if seen is None:
            return Pending(self, node)
        view = Pending(self, node, source.base or source)
        view.view = seen
        return view

    def _part(self, whole: Node, index: int) -> Pending:
        return Pending(self, self.noted(P.project, (whole,), {"index": index}, whole.device))

    def noted(self, op: Primitive, inputs: tuple[Any, ...], attrs: dict[str, Any], device: Any) -> Node:
        """A node of the value graph."""
        node = Node.__new__(Node)
        node.shape, node.dtype = op.infer(*inputs, **attrs) if attrs else _inferred(op, inputs)
        node.op, node.inputs, node.attrs, node.plan, node.saved = op, inputs, attrs, NO_RULES, None
        node.device, node.mode, node.serial = device, self._mode(), tick()
        node.code, node.offset = caller(3)
        inside = op.kind == "structural" and any(getattr(a, "effects", ()) for a in attrs.values())
        if op.effect is not None or inside:
            self.effects.append(node)
        return node

    def _mode(self) -> Mode:
        """The part of the mode that a node keeps: its scope, its composite, and the node whose gradient it computes."""
        mode = current_mode()
        origin = None if mode.origin is None else self.values.get(mode.origin)
        last = self.last_mode
        if last.origin is not origin or last.composite is not mode.composite or last.scope != mode.scope:
            last = self.last_mode = Mode(scope=mode.scope, origin=origin, composite=mode.composite)
        return last

    def node_of(self, tensor: Tensor) -> Node | None:
        """The node of a tensor's value, for the marks of composed functions; None if this trace has not used it."""
        if tensor._data.__class__ is not Pending and id(tensor) in self.captured:
            tensor = self.captured[id(tensor)].stand_in
        return getattr(tensor._data, "node", None)

    def source(self, kind: str, held: Any, shape: tuple[int, ...], dtype: Any, device: Any) -> Pending:
        """A value that comes from outside of the graph."""
        node = Source(kind, held, shape, dtype, device, self._mode())
        self.sources.append(node)
        return Pending(self, node)

    def expect(self, indices: Tensor, check: Callable[[Any], None]) -> None:
        data = self.lift(behind(indices))._data
        if data.__class__ is Pending:
            self.expected.append((data.node, check))

    def hunting(self, hunter: Any) -> Any:
        self.hunter = hunter
        return nullcontext()

    # tensors from outside -------------------------------------------------------------------------------------------

    def stand_in(self, tensor: Tensor) -> Tensor:
        if tensor._data.__class__ is Pending or isinstance(tensor._data, StandIn):
            return tensor
        known = self.captured.get(id(tensor))
        return (known or self.capture(tensor)).stand_in

    def capture(self, tensor: Tensor) -> Captured:
        """Let a tensor of the trace stand in for one from outside."""
        alias = tensor.alias
        if alias is None or alias.base is None:
            stand_in = wrap(self.source("tensor", tensor, tensor.shape, tensor.dtype, tensor.device), tensor.device)
        else:
            stand_in = self._same_view(self.stand_in(alias.base), alias)
        if tensor.tracked:
            stand_in.node, stand_in.tracked = self.history_of(tensor, stand_in), 1
        known = self.captured[id(tensor)] = self.standing[id(stand_in)] = Captured(tensor, stand_in)
        return known

    def history_of(self, tensor: Tensor, stand_in: Tensor) -> Node:
        """Where gradients that flow to a tensor from outside arrive: here, at a leaf in its place."""
        leaf = Leaf(stand_in)
        leaf.code, leaf.offset = tensor.node.code, tensor.node.offset
        if tensor.node in HOOKS:
            HOOKS[leaf] = list(HOOKS[tensor.node])
        return leaf

    def _same_view(self, base: Tensor, alias: Alias) -> Tensor:
        """The view of a stand-in that `alias` is of the tensor which it stands in for."""
        with switch(interpreter=self, grad=True):
            view = base
            for op, attrs in alias.chain:
                view = emit(op, view, **attrs)
            return view if alias.linked and view is not base else detach(view)

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        """A constant: whatever becomes of it here, each run starts with what it was made from."""
        kind, held = ("constant", tensor._data) if source is None else ("array", source)
        return wrap(self.source(kind, held, tensor.shape, tensor.dtype, tensor.device), tensor.device)

    def outside(self, tensor: Tensor) -> Captured | None:
        """What is known of a tensor from outside, or of what stands in for it; None of those that were made here."""
        known = self.standing.get(id(tensor)) or self.captured.get(id(tensor))
        return self.capture(tensor) if known is None and tensor._data.__class__ is not Pending else known

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        known = self.outside(tensor)
        if known is None:
            return tensor._grad
        if not known.gradient_known:
            before = known.tensor._grad
            known.gradient_known, known.had_gradient = True, before is not None
            known.stand_in._grad = None if before is None else self.stand_in(before)
        return known.stand_in._grad

    def set_gradient(self, tensor: Tensor, gradient: Tensor | None) -> None:
        known = self.outside(tensor)
        if known is None:
            tensor._grad = gradient
            return
        if known.leaf is not None and known.tensor.node.op is not None:
            raise TraceError(
                f"a gradient has come to a tensor that was made outside, at {show(known.tensor.node.where)}",
                expect="inside, backward() ends at leaves: what they were made into outside is not part of this",
                hint="compute it inside as well, or call backward() on the result outside",
            )
        known.gradient_known = True
        known.stand_in._grad = gradient if gradient is None else self.lift(gradient)

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int] | None:
        if generator in self.restarted:
            key, block = self.restarted[generator]
            self.restarted[generator] = key, block + count
            return key, block
        drawn = self.drawn.get(generator, 0)
        self.drawn[generator] = drawn + count
        return generator, drawn

    def seeded(self, generator: Any, key: int, block: int) -> bool:
        self.restarted[generator] = key, block
        return True

    def on(self, other: Interpreter) -> Interpreter:
        return other

    # the end --------------------------------------------------------------------------------------------------------

    def evaluated(self, pending: Pending) -> Any:
        """The value of a pending tensor, if it can be had: else `pending` itself.

        That of a constant is known; if it was copied from an array of the user's, the trace depends on what is in that.
        """
        node = pending.node
        if not isinstance(node, Source) or node.kind not in ("constant", "array"):
            return pending
        if node.kind == "array":
            self.looked_into.append((node.held, node.held.copy()))
        return node.array()

    def graph(self, outputs: Iterable[Pending]) -> Graph:
        """What has been recorded, from all sources to these outputs."""
        return Graph(self.sources, [o.node for o in outputs], self.effects)


def leaked(data: Pending) -> TraceError:
    """The error of using a traced tensor after its trace."""
    made = f", made at {show(data.where)}" if data.where else ""
    return TraceError(
        f"a tensor of a trace is used after that has ended{made}",
        hint="return it from the function instead of storing it",
    )
