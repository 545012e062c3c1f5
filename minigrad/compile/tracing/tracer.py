"""Tracing: an interpreter that records operations instead of computing them.

Each operation is recorded twice.  The *history*, which the backward pass follows, is the same as in eager mode.  The
*value graph* records how every value is computed, also those without a gradient and those that are overwritten later.
The data of a traced tensor is a `Pending`: it names the node of the value graph that will compute the array.

Nothing outside changes.  A tensor from outside that is read or written is *captured*: a tensor of the trace, the
*stand-in*, replaces it, with its data, gradient and views.  After a trace, its caller writes the changes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from sys import _getframe
from typing import Any
from weakref import ref

import numpy as np

from ...autodiff.reverse import HOOKS
from ...core import dtypes
from ...core.alias import Alias, detach, link
from ...core.clock import tick
from ...core.emit import EAGER, Interpreter, emit, recorded
from ...core.mode import Mode, current_mode, switch
from ...core.node import Leaf, Node, OuterResult, is_made
from ...core.primitive import NO_RULES, Attrs, P, Primitive
from ...core.state import Control, State, behind
from ...core.tensor import DEFAULT, NUMBERS, AbstractData, Tensor, wrap
from ...support.errors import TraceError
from ...support.source import LIBRARY, caller, show
from ..nodes.graph import Source, in_place_of, later
from ..nodes.view import View, through, whole
from .guards import ArrayGuard, Guard


class Pending(AbstractData):
    """The data of a traced tensor: the node that will compute its value.

    `base` and `view` say whose memory it would share, and how, if it is a view; `value` is the array once it is
    computed.  Until `seen` is called, the view may be its node, with the view or the node that it is one of.
    """

    __slots__ = ("base", "dtype", "node", "place", "shape", "trace", "value", "view", "waits_for")

    def __init__(self, trace: Tracer, node: Node, base: Pending | None = None, view: Any = None) -> None:
        self.trace, self.node, self.base, self.view = trace, node, base, view
        self.shape, self.dtype, self.value = node.shape, node.dtype, None
        # in graph mode: the operands, until the value is computed; and its place among the values recorded last
        self.waits_for: Sequence[Any] = ()
        self.place = -1

    def seen(self) -> View:
        """Where its elements lie in the memory of its base."""
        nodes: list[Node] = []
        view: Any = self.view or self.node
        while view.__class__ is tuple:
            node, view = view
            nodes.append(node)
        if view.__class__ is not View:
            view = whole(view)
        for node in reversed(nodes):
            view = through(node, view)
        self.view = view
        return view

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

    def held_by(self, tensor: Tensor) -> None:
        self.trace.holds(tensor)

    def copy(self, order: str = "C") -> Pending:
        """The same value in memory of its own."""
        made = Pending(self.trace, self.node)
        made.value, made.waits_for, made.place = self.value, self.waits_for, self.place
        return made

    def evaluated(self) -> Any:
        return self.trace.evaluated(self)


def in_range(trace: Tracer, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> list[Any]:
    """The operands, with Python integers replaced by what eager mode makes of them where they do not fit the dtype.

    A comparison is with an infinity instead, `where` wraps the integers round, and everything else refuses them, as
    it refuses negative powers of integers.
    """
    tensors = [v for v in values if v.__class__ is Pending]
    if op is P.put:
        return _assignable(values)
    dtype = attrs["dtype"] if op is P.full else tensors[-1].dtype if tensors else None
    if dtype is None or dtype.kind not in "iu":
        return values
    limits = dtypes.iinfo(dtype)
    numbers = [v for v in (*values, attrs.get("value")) if v.__class__ is int]
    beyond = [v for v in numbers if not (0 if op is P.pow else limits.min) <= v <= limits.max]
    if not beyond:
        return values
    if op.kind == "elementwise":
        like = [np.ones(np.minimum(v.shape, 1), v.dtype) if v.__class__ is Pending else v for v in values]
        result = EAGER.compute(op, like, attrs, DEFAULT.device)  # raises what it raises
        if result.dtype is dtype:
            return [int(np.array(v).astype(dtype)) if v.__class__ is int else v for v in values]
        if result.dtype is dtypes.bool:  # a float32 is finite for every integer of a tensor
            floats = {v: trace.recorded(P.astype, [v], {"dtype": dtypes.float32}, device) for v in tensors}
            return [floats[v] if v.__class__ is Pending else np.inf if v > 0 else -np.inf for v in values]
    raise OverflowError(f"Python integer {beyond[0]} out of bounds for {dtype}")


def _assignable(values: list[Any]) -> list[Any]:
    """The operands of an assignment; a number is converted to the dtype of a tensor of integers."""
    base, value, *indices = values
    if base.dtype.kind not in "iu" or value.__class__ not in NUMBERS:
        return values
    one = np.empty((1,), base.dtype)
    one[...] = value  # raises what it raises
    return [base, one.item(), *indices]


PLAIN = {"elementwise", "reduce", "contract", "view"}  # kinds: shapes, dtypes and attributes decide their results


class Captured:
    """A tensor from outside, its stand-in, and its first state."""

    __slots__ = ("first", "gradient_known", "had_gradient", "leaf", "stand_in", "tensor")

    def __init__(self, tensor: Tensor, stand_in: Tensor) -> None:
        self.tensor, self.stand_in, self.first = tensor, stand_in, stand_in._data
        self.leaf = stand_in.node if stand_in.tracked else None  # where its gradient arrives
        self.gradient_known = False  # whether the stand-in has the gradient that the tensor would have now
        self.had_gradient: bool | None = None  # whether there was one; None if it was replaced before it was read

    @property
    def is_view(self) -> bool:
        alias = self.tensor.alias
        return alias is not None and alias.base is not None

    @property
    def written(self) -> bool:
        """Whether the trace writes to its memory.  Writes to a view go to its base."""
        return not self.is_view and self.stand_in._data is not self.first


class Tracer(Interpreter, State, Control):
    """Records every operation as a node, and every change of state."""

    flow: Any = later("minigrad.compile.control.recorded")
    unseen: Any = later("minigrad.compile.tracing.unseen")
    what = "the function"  # in messages
    name = "jit"  # of the function, in pictures
    seals_generators = True
    began = -1  # the first place of the values that were recorded last: in a trace, no value has a place
    place_of: Any = None
    parts: Collection[int] = ()  # ids of views whose base the function does not use
    missed: Exception | None = None  # the first error of reading a value that is not computed
    hunter: Any = None  # the interpreter to run this with, if the function uses `debug_nans`
    ended = False

    def __init__(self) -> None:
        self.captured: dict[int, Captured] = {}  # by id of the tensor outside, which the entry keeps alive
        self.standing: dict[int, Captured] = {}  # the same by id of the stand-in
        self.arrays: dict[int, Tensor] = {}  # those that stand for arrays of NumPy
        self.models = {}
        self.sources: list[Source] = []
        self.effects: list[Node] = []
        self.drawn: dict[Any, int] = {}  # generator -> how many blocks have been drawn
        self.restarted: dict[Any, tuple[int, int]] = {}  # generator that was seeded -> its key and next block
        self.seen = self.last_mode = Mode()  # in which the last node was recorded, and what the node keeps of it
        self.expected: list[tuple[Node, Callable[[Any], None]]] = []  # integers that name rows, and their checks
        self.looked_into: list[Guard] = []  # of users' arrays whose values were read

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
        """The fast path: the inputs are numbers, and tensors of this trace on one device."""
        device, mask, bit = None, 0, 1
        step: list[Any] = [op]
        lifted, values, nodes, began, place_of = [], [], [], self.began, self.place_of
        for x in inputs:
            kind = x.__class__
            if kind is Tensor:
                data = x._data
                if data.__class__ is not Pending:
                    known = self.captured.get(id(x))
                    if known is None:
                        break
                    x = known.stand_in
                    data = x._data
                if data.trace is not self or (device is not None and x.device is not device):
                    break
                device = x.device
                place = data.place - began
                step.append(place if place >= 0 else place_of(data))
                values.append(data)
                nodes.append(data.node)
                if x.tracked:
                    mask += bit
            elif kind in NUMBERS:
                step.append(kind)
                values.append(x)
                nodes.append(x)
            else:
                break
            lifted.append(x)
            bit += bit
        else:
            device = attrs.get("device") or device
            result = None if device is None else self.foreseen(step, values, attrs)
            if result is not None:
                return self._in_one_pass(op, lifted, values, nodes, mask, attrs, device, result)
        return super().manifest(op, inputs, attrs)

    def _in_one_pass(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], nodes: list[Any], mask: int, attrs: Attrs,
        device: Any, result: Any,
    ) -> Tensor:
        """The rest of `manifest`.  Bit i of `mask` says that input i is tracked."""
        mode, is_view, node = current_mode(), op.kind == "view", Node.__new__(Node)
        node.op, node.inputs, node.attrs, node.plan, node.saved = op, tuple(nodes), attrs, NO_RULES, None
        (node.shape, node.dtype), node.device = result, device
        node.mode, node.serial = self.last_mode if mode is self.seen else self._mode(), tick()
        frame = _getframe(2)  # `caller(3)`, inlined
        code = frame.f_code
        while LIBRARY[code.co_filename] and frame.f_back is not None:
            frame = frame.f_back
            code = frame.f_code
        node.code, node.offset = code, frame.f_lasti
        data = self.pending(node, values) if is_view else Pending(self, node)
        out = wrap(data, device)
        if mode.record_all or (mask and mode.grad):
            history = out.node = recorded(op, inputs, values, mask if mode.grad else 0, attrs, data, device)
            history.value, out.tracked = ref(node), bool(history.plan.rules)
        self.appended(data, values, out)
        return link(out, inputs[0], (op, attrs)) if is_view else out

    def appended(self, data: Pending, values: list[Any], out: Tensor) -> None:
        """Called when an operation that was foreseen is recorded, with its result."""

    def holds(self, tensor: Tensor) -> None:
        """Called for a new tensor with data of this trace that no operation has made."""

    def foreseen(self, step: list[Any], values: Sequence[Any], attrs: Attrs) -> Any:
        """The shape and dtype of the result of a step: an operation, the places of its operands, classes of numbers.

        None for operations that are not plain, for casts, and for integers with numbers, which may not fit the dtype.
        """
        op = step[0]
        if op.kind not in PLAIN or op.effect is not None or "device" in attrs:
            return None
        if int in step and any(v.dtype.kind in "iu" for v in values if v.__class__ is Pending):
            return None
        try:
            return None if op.casting and op.casts(values).indices else op.infer(*values, **attrs)
        except Exception:  # the slow path explains the error
            return None

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int, attrs: dict[str, Any], device: Any
    ) -> Any:
        out = super().manifest_values(op, inputs, values, mask, attrs, device)
        for result in out if out.__class__ is tuple else (out,):
            if result.node is not None and result._data.__class__ is Pending:
                history, value = result.node, result._data.node
                history.value = ref(value)
                if history.op is P.project:  # one of several results
                    history.inputs[0].value = ref(value.inputs[0] if value.op is P.project else value)
        return out

    def compute(
        self, op: Primitive, values: list[Any], attrs: Attrs, device: Any
    ) -> Any:
        if op is P.call:  # a custom function: its operations are recorded
            return attrs["application"].compute(*values)
        values = in_range(self, op, values, attrs, device)
        return self.recorded(op, values, attrs, device)

    def recorded(
        self, op: Primitive, values: list[Any], attrs: Attrs, device: Any
    ) -> Any:
        """The pending result of an operation, or a tuple of them."""
        nodes = tuple([v.node if v.__class__ is Pending else v for v in values])
        return self.pending(self.noted(op, nodes, attrs, device), values)

    def pending(self, node: Node, values: Sequence[Any]) -> Any:
        """What a new node computes.  A view shares memory, unless the memory cannot be read in the new shape."""
        if node.dtype.__class__ is tuple:
            return tuple([self._part(node, i) for i in range(len(node.shape))])
        if node.op.kind != "view":  # type: ignore[union-attr]
            return Pending(self, node)
        source = values[0]
        if source.view is None:
            view: Any = node, source.node
        elif node.op is P.reshape or source.value is not None:  # else a loop of views and reads would keep all of them
            view = through(node, source.seen())
        else:
            view = node, source.view
        if view is None or 0 in node.shape:
            return Pending(self, node)
        return Pending(self, node, source.base or source, view)

    def _part(self, whole: Node, index: int) -> Pending:
        node = in_place_of(whole)
        node.op, node.inputs, node.attrs = P.project, (whole,), {"index": index}
        node.shape, node.dtype = whole.shape[index], whole.dtype[index]  # type: ignore[assignment]
        return Pending(self, node)

    def noted(
        self, op: Primitive, inputs: tuple[Any, ...], attrs: Attrs, device: Any, result: Any = None
    ) -> Node:
        """A new node of the value graph; its shape and dtype are `result` if that is known."""
        node = Node.__new__(Node)
        node.shape, node.dtype = result or op.infer(*inputs, **attrs)
        node.op, node.inputs, node.attrs, node.plan, node.saved = op, inputs, attrs, NO_RULES, None
        node.device, node.serial = device, tick()
        node.mode = self.last_mode if current_mode() is self.seen else self._mode()
        node.code, node.offset = caller(3)
        if op.effect is not None or (attrs and op.kind == "structural" and node.effect is not None):
            self.effects.append(node)
        return node

    def _mode(self) -> Mode:
        """The parts of the mode that a node keeps: its scope and composite, and the node whose gradient it computes."""
        mode, last = current_mode(), self.last_mode
        if mode is self.seen:
            return last
        self.seen = mode
        value = getattr(mode.origin, "value", None)
        origin = None if value is None else value()
        same = last.origin is origin and last.toward == mode.toward and last.composite is mode.composite
        if not same or last.scope != mode.scope:
            kept = {"composite": mode.composite, "toward": mode.toward}
            last = self.last_mode = Mode(scope=mode.scope, origin=origin, **kept)
        return last

    def node_of(self, tensor: Tensor) -> Node | None:
        """The node of a tensor's value, for the marks of composed functions; None if this trace has not used it."""
        if tensor._data.__class__ is not Pending and id(tensor) in self.captured:
            tensor = self.captured[id(tensor)].stand_in
        return getattr(tensor._data, "node", None)

    def source(self, kind: str, held: Any, shape: tuple[int, ...], dtype: Any, device: Any) -> Pending:
        """A value that comes from outside the graph."""
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
        if isinstance(tensor._data, AbstractData):
            return tensor
        known = self.captured.get(id(tensor))
        return (known or self.capture(tensor)).stand_in

    def capture(self, tensor: Tensor) -> Captured:
        """Make a stand-in for a tensor from outside."""
        alias = tensor.alias
        if alias is None or alias.base is None or id(tensor) in self.parts:
            stand_in = wrap(self.source("tensor", tensor, tensor.shape, tensor.dtype, tensor.device), tensor.device)
        else:
            stand_in = self._same_view(tensor, self.stand_in(alias.base), alias)
        if tensor.tracked:
            stand_in.node, stand_in.tracked = self.history_of(tensor, stand_in), True
        known = self.captured[id(tensor)] = self.standing[id(stand_in)] = Captured(tensor, stand_in)
        return known

    def history_of(self, tensor: Tensor, stand_in: Tensor) -> Node:
        """A leaf in the trace, where gradients of a tensor from outside arrive."""
        leaf = OuterResult(stand_in) if is_made(tensor.node) else Leaf(stand_in)
        leaf.code, leaf.offset = tensor.node.code, tensor.node.offset
        if tensor.node in HOOKS:
            HOOKS[leaf] = list(HOOKS[tensor.node])
        return leaf

    def _same_view(self, tensor: Tensor, base: Tensor, alias: Alias) -> Tensor:
        """The view of the stand-in of a base that stands for `tensor`, which may have been made under no_grad."""
        with switch(interpreter=self, grad=tensor.tracked):
            view = base
            for op, attrs in alias.chain:
                view = emit(op, view, **attrs)
            return view if alias.linked and view is not base else detach(view)

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        """A constant.  Each run starts with its original values, even if the function writes to it."""
        kind, held = ("constant", tensor._data) if source is None else ("array", source)
        return wrap(self.source(kind, held, tensor.shape, tensor.dtype, tensor.device), tensor.device)

    def outside(self, tensor: Tensor) -> Captured | None:
        """The entry of a tensor from outside or of a stand-in; None for tensors made in the trace."""
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
        if known.leaf.__class__ is OuterResult and known.tensor.node.op is not None:
            raise TraceError(
                f"a gradient has reached a tensor that was made outside, at {show(known.tensor.node.where)}",
                expect="inside a jitted function, backward() ends at leaves and at tensors made inside",
                hint="compute the tensor inside as well, or call backward() on the result outside; "
                "detach() what a next step keeps",
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

    # the end --------------------------------------------------------------------------------------------------------

    def evaluated(self, pending: Pending) -> Any:
        """The value of a pending tensor if it is a constant, else `pending`.

        If the constant was copied from a user's array, the trace depends on the values in the array.
        """
        node = pending.node
        if not isinstance(node, Source) or node.kind not in ("constant", "array"):
            return pending
        if node.kind == "array":
            self.looked_into.append(ArrayGuard("from which a tensor was made", node.held))
        return node.array()


def leaked(data: Pending) -> TraceError:
    """The error for using a traced tensor after its trace."""
    made = f", made at {show(data.where)}" if data.where else ""
    return TraceError(
        f"a tensor of a trace is used after that has ended{made}",
        hint="return it from the function instead of storing it",
    )
