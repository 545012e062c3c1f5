"""`emit` for eager mode, unrolled for the commonest cases.

Each function here makes the quick form of one primitive, which becomes `op.apply`.  A
quick form computes, wraps and records like `Interpreter` in `emit.py`, without loops
and look-ups.  It calls `emit` (`any_inputs` calls `manifest`) for other modes, casts,
large arrays, inputs on several devices and errors.  `tests/core/test_quick.py` compares
the quick form of every primitive with `emit`.  First reader: skip this file.

Of two tensors, only the size of the first is read, because that takes 20 ns: with a
large second one, the kernel computes in new memory and on one thread.

A key of `op.plans` has a bit for each tracked input, and above them a 1, which encodes
the number of inputs: 0b11 is one input, tracked; 0b100 | mask is two inputs.  These
plans are those of the declaration: quick forms do not see an `overriding(op, ...)`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import ref

from ..support.errors import TraceError
from ..support.source import LIBRARY
from .alias import Alias, alias_of, link, new_alias
from .clock import tick
from .dtypes import float32
from .emit import EAGER, LARGE, constant, emit
from .mode import Mode, current_mode
from .node import Node
from .primitive import Attrs, Plan, Primitive
from .tensor import NUMBERS, AbstractData, Tensor, new_tensor

_getframe = sys._getframe
_new_node = Node.__new__
NO_ATTRS: Attrs = {}


def quick(op: Primitive, attributes: bool = True) -> Callable[..., Any]:
    """The quick form of `emit(op, ...)`; without `attributes` it takes inputs only.

    >>> quick(mg.core.primitive.P.tanh)(mg.zeros(2)).tolist()
    [0.0, 0.0]
    """
    if op.kind == "view":
        return view(op)
    alone = len(op.inputs) == 1 and not op.inputs[0].startswith("*")
    if alone and op.kind in ("elementwise", "reduce", "index"):
        return one_input(op) if attributes else one_input_alone(op)
    return two_inputs(op) if len(op.inputs) == 2 and op.casting else any_inputs(op)


def one_input_alone(op: Primitive) -> Callable[[Any], Any]:
    """The quick form of an operation of one input, without attributes."""
    name, casting, elementwise = op.name, op.casting, op.kind == "elementwise"

    def apply(x: Any) -> Any:
        mode = current_mode()
        if mode.interpreter is not None or x.__class__ is not Tensor:
            return emit(op, x)
        a, device = x._data, x.device
        if (casting and a.dtype is not float32) or (elementwise and a.size >= LARGE):
            return emit(op, x)
        try:
            data = device.kernels[name](a)
        except Exception:
            data = None
        if data.__class__ is not a.__class__:
            if data is None:
                return emit(op, x)  # outside `except`: the error has one cause
            data = device.asarray(data)
        out = new_tensor(Tensor)
        out._data, out.device, out._grad, out.alias = data, device, None, None
        if x.tracked and mode.grad:
            plan = op.plans.get(0b11) or op.plan(1, 1)
            keep = plan.keep
            saved = keep and (a if keep[0] else None, data if keep[1] else None)
            out.node = _record(op, (x.node,), NO_ATTRS, plan, saved, data, mode, device)
            out.tracked = True if plan.rules else False
        elif mode.record_all:
            return emit(op, x)
        else:
            out.node, out.tracked = None, False
        return out

    return apply


def one_input(op: Primitive) -> Callable[..., Any]:
    """The quick form of an operation of one input, with attributes."""
    name, casting, elementwise = op.name, op.casting, op.kind == "elementwise"

    def apply(x: Any, **attrs: Any) -> Any:
        mode = current_mode()
        if mode.interpreter is not None or x.__class__ is not Tensor or mode.record_all:
            return emit(op, x, **attrs)
        a, device = x._data, x.device
        if (casting and a.dtype is not float32) or (elementwise and a.size >= LARGE):
            return emit(op, x, **attrs)
        try:
            data = device.kernels[name](a, **attrs)
        except Exception:
            data = None
        if data.__class__ is not a.__class__:
            if data is None:
                return emit(op, x, **attrs)
            data = device.asarray(data)
        out = new_tensor(Tensor)
        out._data, out.device, out._grad, out.alias = data, device, None, None
        if x.tracked and mode.grad:
            plan = op.plans.get(0b11) if data.dtype is float32 else None
            if plan is None:
                plan = op.plan(int(data.dtype.kind == "f"), 1)
            keep = plan.keep
            saved = keep and (a if keep[0] else None, data if keep[1] else None)
            out.node = _record(op, (x.node,), attrs, plan, saved, data, mode, device)
            out.tracked = True if plan.rules else False
        else:
            out.node, out.tracked = None, False
        return out

    return apply


def view(op: Primitive) -> Callable[..., Any]:
    """The quick form of a view, which shares memory with its input; inlines `link`."""
    name, copies = op.name, op.name == "reshape"

    def apply(x: Any, **attrs: Any) -> Any:
        mode = current_mode()
        if mode.interpreter is not None or x.__class__ is not Tensor or mode.record_all:
            return emit(op, x, **attrs)
        seen = x.alias or alias_of(x)
        a, device = x._data, x.device
        try:
            data = device.kernels[name](a, **attrs)
        except Exception:
            data = None
        if data is None:
            return emit(op, x, **attrs)
        out = new_tensor(Tensor)
        out._data, out.device, out._grad, out.alias = data, device, None, None
        if x.tracked and mode.grad:
            plan = op.plans.get(0b11) or op.plan(1, 1)
            keep = plan.keep
            saved = keep and (a if keep[0] else None, data if keep[1] else None)
            out.node = _record(op, (x.node,), attrs, plan, saved, data, mode, device)
            out.tracked = True if plan.rules else False
        else:
            out.node, out.tracked = None, False
        if copies and data.base is not a:
            return link(out, x, (op, attrs))
        alias = new_alias(Alias)
        base, views = seen.base, seen.views
        alias.base = x if base is None else base
        alias.chain, alias.linked = (*seen.chain, (op, attrs)), seen.linked
        alias.views = views
        out.alias = alias
        views.append(ref(out))
        if not len(views) & 15:
            views[:] = [view for view in views if view() is not None]
        return out

    return apply


def two_inputs(op: Primitive) -> Callable[[Any, Any], Any]:
    """The quick form of an operation of two operands; one may be a number."""
    name = op.name

    def apply(x: Any, y: Any) -> Any:
        mode = current_mode()
        interpreter = mode.interpreter
        if interpreter is not None:
            return interpreter.manifest(op, (x, y), NO_ATTRS)
        if x.__class__ is Tensor:
            a, device, mask = x._data, x.device, 1 if x.tracked else 0
            if a.dtype is not float32 or a.size >= LARGE:
                return emit(op, x, y)
            kind = a.__class__
            if y.__class__ is Tensor:
                b = y._data
                if b.dtype is not float32 or y.device is not device:
                    return emit(op, x, y)
                if y.tracked:
                    mask += 2
            elif y.__class__ in NUMBERS:
                b = device.weak[y]
            else:
                return emit(op, x, y)
        elif y.__class__ is Tensor and x.__class__ in NUMBERS:
            b, device, mask = y._data, y.device, 2 if y.tracked else 0
            if b.dtype is not float32 or b.size >= LARGE:
                return emit(op, x, y)
            kind = b.__class__
            a = device.weak[x]
        else:
            return emit(op, x, y)
        try:
            data = device.kernels[name](a, b)
        except Exception:
            data = None
        if data.__class__ is not kind:
            if data is None:
                return emit(op, x, y)
            data = device.asarray(data)
        out = new_tensor(Tensor)
        out._data, out.device, out._grad, out.alias = data, device, None, None
        if mask and mode.grad:
            plan = op.plans.get(mask | 0b100) or op.plan(mask, 2)
            keep = plan.keep
            saved = keep and (
                a if keep[0] else None,
                b if keep[1] else None,
                data if keep[2] else None,
            )
            nodes = (
                (x.node or constant(x)) if x.__class__ is Tensor else x,
                (y.node or constant(y)) if y.__class__ is Tensor else y,
            )
            out.node = _record(op, nodes, NO_ATTRS, plan, saved, data, mode, device)
            out.tracked = True if plan.rules else False
        elif mode.record_all:
            return emit(op, x, y)
        else:
            out.node, out.tracked = None, False
        return out

    return apply


def any_inputs(op: Primitive) -> Callable[..., Any]:
    """The quick form of other operations: `manifest` in one pass, without casts."""

    def apply(*inputs: Any, **attrs: Any) -> Any:
        interpreter = current_mode().interpreter
        if interpreter is not None:
            return interpreter.manifest(op, inputs, attrs)
        device, mask, bit = None, 0, 1
        values, kinds = [], []
        for x in inputs:
            if x.__class__ is Tensor:
                if device is None:
                    device = x.device
                elif x.device is not device:
                    break
                values.append(x._data)
                kinds.append(x._data.dtype)
                if x.tracked:
                    mask += bit
            elif x.__class__ in NUMBERS:
                values.append(x)
                kinds.append(x.__class__)
            else:
                break
            bit += bit
        else:
            plain = device is not None and "device" not in attrs  # not a transfer
            known = op.known_casts.get(tuple(kinds))
            if plain and not (op.casting and (known or op.casts(values)).indices):
                try:
                    go_on = EAGER.manifest_values
                    return go_on(op, inputs, values, mask, attrs, device)
                except TraceError:
                    if not any(isinstance(v, AbstractData) for v in values):
                        raise
        return EAGER.manifest(op, inputs, attrs)  # evaluates abstract data

    return apply


def _record(
    op: Primitive,
    inputs: tuple[Any, ...],
    attrs: Attrs,
    plan: Plan,
    saved: tuple[Any, ...] | None,
    data: Any,
    mode: Mode,
    device: Any,
) -> Node:
    """`Node(...)` and `caller()`, inlined."""
    node = _new_node(Node)
    node.op, node.inputs, node.attrs, node.plan = op, inputs, attrs, plan
    node.shape, node.dtype, node.device = data.shape, data.dtype, device
    node.saved, node.mode, node.serial = saved, mode, tick()
    frame = _getframe(2)  # above the quick form, mostly the caller's code
    code = frame.f_code
    while LIBRARY[code.co_filename] and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    node.code, node.offset = code, frame.f_lasti
    return node
