"""Writes: assignment and in-place arithmetic, with their effect on views and histories.

There are two kinds:

* Without a history (untracked tensors, or a parameter under `no_grad`) the buffer itself changes, and so do its views,
  as in NumPy.  The clock stores the time, so that a gradient that needs the old value raises an error.
* If gradients are on and the tensor or the value has a history, or if the tensor has a node (`mg.record()`), the tensor
  gets a new array and a `put` node, and its live views are computed again.  Saved values do not change, so gradients
  and replays stay right.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..core.alias import Step, alias_of
from ..core.clock import mark_shared, mark_written
from ..core.dtypes import check_fits, float32
from ..core.explain import common_device, described
from ..core.mode import current_mode
from ..core.node import is_made
from ..core.primitive import P, Primitive
from ..core.tensor import NUMBERS, AbstractData, Tensor, as_tensor, wrap
from ..support.errors import DtypeError, MinigradError, MutationError, ShapeError
from ..support.interrupts import all_or_none
from ..support.source import Where, show
from .masks import Selected


class Links:
    """Pairs of connected tensors, stored while both live."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[weakref.ref[Tensor], list[weakref.ref[Tensor]]]] = {}

    def add(self, tensor: Tensor, other: Tensor) -> None:
        key = id(tensor)

        def forget(_: Any) -> None:
            self.held.pop(key, None)

        entry = self.held.setdefault(key, (weakref.ref(tensor, forget), []))
        entry[1].append(weakref.ref(other))

    def of(self, tensor: object) -> list[Tensor]:
        """The tensors that are connected with a tensor."""
        known = self.held.get(id(tensor))
        return [] if known is None else [t for other in known[1] if (t := other()) is not None]


UNDECIDED = Links()  # pairs of tensors that may be the same, which a value decides that is not computed yet


def assign(
    tensor: Tensor, value: Any, chain: tuple[Step, ...] = (), indices: tuple[Any, ...] = (), raw: Any = None
) -> None:
    """`tensor[index] = value`.  The index is a chain of views, then integer arrays for the leading dimensions.

    `raw` is the same index for NumPy, if NumPy supports it: a faster way to write the buffer itself.
    """
    mode = current_mode()
    if mode.interpreter is not None:
        tensor = mode.state.stand_in(tensor)
        _refuse_stand_ins(tensor, (value, *indices))
    history = writable(tensor, value)
    data = tensor._data
    if data.dtype is not float32 and value.__class__ in NUMBERS:
        check_fits("assignment", value, value, data.dtype)
    if history is None:
        new = value._data if value.__class__ is Tensor else value
        try:
            if mode.interpreter is not None:
                mode.state.look_ahead(P.put, [data, new, *[i._data for i in indices]], {"chain": chain}, tensor.device)
            if value.__class__ is Tensor and new.dtype is not data.dtype:
                new = tensor.device.kernels["astype"](new, dtype=data.dtype)
            if raw is None or not tensor.device.hosted:
                common_device(P.put, (tensor, value, *indices), {})
                tensor.device.kernels["put"](data, new, *[i._data for i in indices], chain=chain, out=data)
            else:
                data[raw] = new
            _mark(tensor)
        except (ValueError, TypeError, OverflowError, IndexError) as error:
            P.put.infer(tensor, value, *indices, chain=chain)  # raises a clear error for the index or the shape
            raise _write_error(tensor, value, error) from error
        except MinigradError:
            raise
        except BaseException:  # the buffer may have been written
            _mark(tensor)
            raise
        return
    if tensor.dtype.kind != "f" and value.__class__ is Tensor and value.tracked and current_mode().grad:
        raise DtypeError(
            f"a value with a history would lose it in a tensor of {tensor.dtype}: only floats have gradients",
            hint="make the tensor of a float dtype, or assign value.detach()",
        )
    alias = alias_of(tensor)
    base = tensor if alias.base is None else alias.base
    _replace(base, P.put, (base, value, *indices), {"chain": (*alias.chain, *chain)})


def update(tensor: Tensor, op: Primitive, operand: Any) -> Tensor:
    """`tensor = op(tensor, operand)` in place: `tensor += operand`."""
    if operand.__class__ is not Tensor and operand.__class__ not in NUMBERS:
        operand = as_tensor(operand, tensor.device)
    mode = current_mode()
    if mode.interpreter is not None:
        if (places := tensor._data).__class__ is Selected:
            other = places.beside(operand)
            if other is None:
                return places.shape  # type: ignore[no-any-return]
            _check_fit(op, places.part, other)
            places.part = op.apply(places.safe(), other)
            return tensor
        stand_in = mode.state.stand_in(tensor)
        if stand_in is not tensor:
            update(stand_in, op, operand)
            return tensor
        _refuse_stand_ins(tensor, (operand,))
    if writable(tensor, operand) is None:
        data, device = tensor._data, tensor.device
        value = operand._data if operand.__class__ is Tensor else operand
        if operand.__class__ is Tensor:
            alike = operand.device is device and value.dtype is data.dtype and value.shape == data.shape
        elif data.dtype is float32:
            alike, value = True, device.weak.get(operand, operand)
        else:
            alike = data.dtype.kind == "f"
        if not alike:
            common_device(op, (tensor, operand), {})
            _check_fit(op, tensor, operand)
            if operand.__class__ is Tensor:
                value = device.kernels["astype"](value, dtype=data.dtype)
        try:
            if mode.interpreter is not None:
                mode.state.look_ahead(op, [data, value], {}, device)
            device.kernels[op.name](data, value, out=data)
            _mark(tensor)
        except (ValueError, TypeError, OverflowError) as error:
            raise _write_error(tensor, operand, error) from error
        except MinigradError:
            raise
        except BaseException:  # the buffer may have been written
            _mark(tensor)
            raise
        return tensor
    value = op.apply(tensor, operand)
    _check_fit(op, tensor, operand, value)
    alias = alias_of(tensor)
    if alias.chain:
        base = tensor if alias.base is None else alias.base
        _replace(base, P.put, (base, value), {"chain": alias.chain})
    else:
        adopt(tensor if alias.base is None else alias.base, value)
    return tensor


def _mark(tensor: Tensor) -> None:
    """Store that the line that called an operation has just written into the buffer, unless no gradient checks it."""
    if tensor.alias is None or tensor.alias.linked is not None:
        mark_written(tensor._data, depth=4)
    else:
        mark_shared(tensor._data)  # compiled functions read it again


def writable(tensor: Tensor, value: Any) -> Tensor | None:
    """None if the buffer itself may be written, the tensor that gets a new history, or an error."""
    mode = current_mode()
    if mode.interpreter is not None:
        mode.control.before_change(tensor)
        mode.state.before_write(tensor)
        _refuse_undecided(tensor)
    alias = tensor.alias
    tracked_value = value.tracked if value.__class__ is Tensor else False
    if alias is None and tensor.node is None and not tracked_value and tensor._data.__class__ is tensor.device.ndarray:
        return None  # the commonest case: no other tensor is involved
    if alias is not None and alias.linked is None and tensor._data.__class__ is tensor.device.ndarray:
        return None
    base = tensor if alias is None or alias.base is None else alias.base
    made = is_made(base.node)
    linked = alias is None or alias.linked
    leaf = tensor if tensor.tracked and not linked else base
    if mode.grad and leaf.tracked and not is_made(leaf.node) and (linked or leaf is tensor):
        raise MutationError(
            f"in-place change of a leaf that requires a gradient, made at {show(leaf.node.where)}",
            hint="`with mg.no_grad():` for an update of a parameter; x = x.copy() to change a copy",
        )
    if base.tracked and made and not (mode.grad and linked):
        how = "under no_grad" if linked else "through detach()"
        raise MutationError(
            f"the tensor made at {show(base.node.where)} has a history, which a write {how} would contradict",
            hint="write with gradients on, or write into x.copy()",
        )
    if not linked and tracked_value and mode.grad:
        raise MutationError(
            "a value with a history cannot be assigned through detach(), which has none",
            hint="assign to the tensor itself, or assign value.detach()",
        )
    if alias is not None and any(op is P.broadcast_to or op is P.windows for op, _ in alias.chain):
        raise MutationError(
            "this tensor is a broadcast view, or one of windows: several of its elements are the same memory",
            hint="write into x.copy()",
        )
    if tensor._data.__class__ is not tensor.device.ndarray:
        return base  # only recorded or batched: no buffer yet
    if not made and not (mode.grad and linked and (base.tracked or tracked_value)):
        if not tensor.device.is_writable(tensor._data):
            raise read_only()
        return None
    return base


def _refuse_undecided(tensor: Tensor) -> None:
    """Raise an error for a write to a tensor that may be the same as another: it is unknown whether both change."""
    base = tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base
    if UNDECIDED.of(base):
        raise MutationError(
            "in-place change of a tensor that may be the same as another: a value decides that is not computed yet",
            hint="x = x + 1 in place of x += 1, or x = x.copy() before the change",
        )


def _refuse_stand_ins(tensor: Tensor, written: tuple[Any, ...]) -> None:
    """Raise an error for writing a batched value, or a value with a tangent, into an array."""
    if tensor._data.__class__ is not tensor.device.ndarray:
        return
    for value in written:
        data = value._data if isinstance(value, Tensor) else None
        if isinstance(data, AbstractData) and isinstance(data.evaluated(), AbstractData):
            raise MutationError(
                f"a tensor from outside, of shape {tensor.shape}, cannot store a value {data.no_value}",
                hint="y = x.copy() in the function makes a tensor that can; return it instead",
            )


def _check_fit(op: Primitive, tensor: Tensor, operand: Any, value: Tensor | None = None) -> None:
    """Raise an error, before any change, if an in-place operation would change the shape or the dtype."""
    shape, dtype = op.infer(tensor, operand) if value is None else (value.shape, value.dtype)
    if value is None:
        dtype = op.common_dtype((tensor, operand))
    if dtype != tensor.dtype:
        raise DtypeError(
            f"in-place {op.name}: the result is {dtype}, which does not fit into a tensor of {tensor.dtype}",
            actual=described(op, (tensor, operand)),
            hint=f"x = mg.{op.name}(x, y) makes a new tensor",
        )
    if shape != tensor.shape:
        raise ShapeError(
            f"in-place {op.name}: the result has shape {shape}, which does not fit into shape {tensor.shape}",
            actual=described(op, (tensor, operand)),
            hint=f"x = mg.{op.name}(x, y) makes a new tensor",
        )


def _write_error(tensor: Tensor, value: Any, error: Exception) -> Exception:
    if isinstance(error, MinigradError):
        return error
    if "read-only" in str(error):
        return read_only()
    if isinstance(error, ValueError) and value.__class__ not in NUMBERS:
        shape = getattr(value, "shape", ())
        return ShapeError(f"a value of shape {shape} does not fit where it is assigned: {error}",
                          expect=f"a shape that broadcasts to that part of {tensor.shape}")
    return DtypeError(f"the value {value} does not fit into a tensor of {tensor.dtype}: {error}")


def read_only() -> MutationError:
    """The error for a write into read-only memory."""
    return MutationError("this tensor shares memory that is read-only", hint="write into x.copy()")


def _replace(base: Tensor, op: Primitive, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """Give the base a new value: `op` applied to its old value."""
    adopt(base, op.apply(_before(base), *inputs[1:], **attrs))


def _before(base: Tensor) -> Tensor:
    """A handle on the present value of a tensor, an input of the node that makes the next value."""
    old = wrap(base._data, base.device)
    old.node, old.tracked = base.node, base.tracked
    return old


def apart(tensor: Tensor) -> Tensor:
    """The tensor again, apart from all others: a write reaches none of them.

    A write to what has a history makes a new array.  Only other arrays are copied.
    """
    if tensor._data.__class__ is not tensor.device.ndarray or (tensor.tracked and not is_made(tensor.node)):
        return tensor.copy()
    own = _before(tensor)
    if not tensor.tracked:
        own._data = own._data.copy()
    return own


def adopt(base: Tensor, value: Tensor, where: Where | None = None) -> None:
    """Give the base the data and the history of `value`, and compute its live views from it again.

    A base may have neither a history nor a buffer, because the computation is only recorded.  Then its old value counts
    as overwritten, by the line `where` or that of the caller, and a leaf stays a leaf.
    """
    leaf = base.tracked and not is_made(base.node)
    if (leaf or not value.tracked) and hasattr(base._data, "base"):
        mark_written(base._data, where=where)
    now = base if leaf else value
    views = alias_of(base).views
    if not views and now.node is base.node and now.tracked == base.tracked:
        base._data = value._data
        return
    after = wrap(value._data, base.device)
    after.node, after.tracked = now.node, now.tracked
    derived = [(base, after, not leaf)]
    for reference in views:
        view = reference()
        if view is not None:
            now = after
            for op, attrs in view.alias.chain:
                now = op.apply(now, **attrs)
            derived.append((view, now, view.alias.linked and not leaf))

    def writes() -> None:
        for tensor, now, has_history in derived:
            tensor._data = now._data
            if has_history:
                tensor.node, tensor.tracked = now.node, now.tracked

    all_or_none(writes)
