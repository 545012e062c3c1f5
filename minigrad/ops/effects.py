"""Effects: print values or stop in the debugger inside a computation, in every mode.

While a function is traced, Python's `print` gets recorded tensors only, and `breakpoint()` stops before there are
values.  These two functions are operations: they are recorded with a computation, and print or stop each time that it
runs, with its values.  They run in the order of the program.  None is removed because its result is unused, and two
equal ones are not merged.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.emit import emit
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor, as_tensor, default_device
from ..devices.effects import Stop
from ..support.errors import ConversionError
from ..support.source import in_library
from ..support.table import counted
from ..support.words import shown
from .declare import declare

__all__ = ["breakpoint", "print"]


def _batch(op: Primitive, inputs: Any, many: Any, size: int, attrs: dict[str, Any]) -> Tensor:
    """All examples of a batch at once."""
    return emit(op, *inputs, **(attrs | {"batch": (size, *attrs["batch"])}))  # type: ignore[no-any-return]


def _declare(name: str) -> None:
    declare(
        Primitive(
            name, "structural", ("*xs",), lambda *xs, **attrs: ((), dtypes.bool), promotes=(), batch=_batch, effect=name
        )
    )


_declare("print")
_declare("breakpoint")


def print(message: Any = "", /, *values: Any, **named: Any) -> None:
    """Print tensors, in every mode: recorded operations print each time that they run.

    The message is filled in like an f-string: `{}` and `{0}` are the values, `{loss:.3f}` is the value of `loss=`.  A
    message without fields is a label in front of the values.  Inside `vmap` all examples are printed at once.  A
    checkpoint does not print again when it computes again.

    >>> @mg.jit
    ... def loss_of(x):
    ...     loss = (x * x).sum()
    ...     mg.print("loss {loss:.2f} at {x}", loss=loss, x=x)
    ...     return loss
    >>> _ = loss_of(mg.ones(2)), loss_of(mg.zeros(2))
    loss 2.00 at [1., 1.]
    loss 0.00 at [0., 0.]
    >>> mg.print("x", mg.ones(2))
    x: [1., 1.]
    """
    if not isinstance(message, str):
        message, values = "", (message, *values)
    given = dict(enumerate(values)) | named
    if not _check_fields(message, given, len(values)) and given:
        listed = [f"{{{name}}}" if name.__class__ is int else f"{name}={{{name}}}" for name in given]
        message = (message and message + ": ") + ", ".join(listed)
    tensors = {name: value for name, value in given.items() if isinstance(value, Tensor)}
    others = {name: value for name, value in given.items() if name not in tensors}
    found, device = _in_one_place(tensors.values())
    emit(P.print, *found, message=message, names=tuple(tensors), others=others, batch=(), device=device)


def breakpoint(*tensors: Tensor, when: Any = None, **named: Tensor) -> None:
    """Stop in the debugger, in every mode: recorded operations stop each time that they run.

    The debugger is that of Python's `breakpoint()` (`sys.breakpointhook`).  It stops at this line, and has the tensors
    as variables with their values, by the names of your variables or by the keywords.  With `when`, a tensor of bools,
    it stops only if one of them is true.

    >>> import sys
    >>> def hook():
    ...     print(f"stopped where h is {sys._getframe(1).f_locals['h'].tolist()}")
    >>> before, sys.breakpointhook = sys.breakpointhook, hook
    >>> @mg.jit
    ... def f(x):
    ...     h = x * 2
    ...     mg.breakpoint(h, when=h.sum() > 5)
    ...     return h + 1
    >>> _ = f(mg.ones(2)), f(mg.ones(3))
    stopped where h is [2.0, 2.0, 2.0]
    >>> sys.breakpointhook = before
    """
    if when is not None and not isinstance(when, Tensor):
        if not isinstance(when, (bool, int, np.bool_)):
            raise ConversionError(f"breakpoint: when is True, False or a tensor, not {shown(when)}")
        if not when:
            return
        when = None
    frame = _users_frame()
    known = _named_in(frame, tensors) | named
    listed = [*([] if when is None else [_bools(when)]), *[as_tensor(t) for t in known.values()]]
    found, device = _in_one_place(listed)
    stop = Stop(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, frame.f_globals)
    emit(P.breakpoint, *found, stop=stop, names=tuple(known), conditional=when is not None, batch=(), device=device)


def _in_one_place(tensors: Iterable[Tensor]) -> tuple[list[Tensor], Any]:
    """The tensors on one device, and that device."""
    found = list(tensors)
    devices = {t.device for t in found}
    if len(devices) == 1:
        return found, devices.pop()
    device = default_device() if not devices else found[0].device
    return [t.to(device) for t in found], device


def _bools(when: Tensor) -> Tensor:
    if when.dtype.kind != "b":
        raise ConversionError(f"breakpoint: `when` is a bool, or a tensor of bools, not of {when.dtype}", hint="x > 0")
    return when


def _check_fields(message: str, given: dict[Any, Any], count: int) -> int:
    """The number of fields in a message; an error for a field without a value."""
    try:
        fields = [field for _, field, _, _ in string.Formatter().parse(message) if field is not None]
    except ValueError as error:
        hint = "{{ and }} are braces"
        raise ConversionError(f"print: {message!r} is not a valid format string: {error}", hint=hint) from None
    place = 0
    for field in fields:
        name: Any = field.partition(".")[0].partition("[")[0]
        if not name:
            name, place = place, place + 1
        elif name.isdecimal():
            name = int(name)
        if name not in given:
            what = counted(count, "value") + "".join([f", {n}=" for n in given if isinstance(n, str)])
            raise ConversionError(f"print: there is no value for the field {{{field}}}", actual=what,
                                  hint="mg.print('{x}', x=x), or mg.print('{}', x)")
    return len(fields)


# The names of a breakpoint's tensors ----------------------------------------------------------------------------------


def _users_frame() -> FrameType:
    frame: Any = sys._getframe(2)
    while in_library(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return frame  # type: ignore[no-any-return]


def _named_in(frame: FrameType, tensors: Iterable[Any]) -> dict[str, Any]:
    """The tensors by the names of the variables that hold them; `value_0` for a tensor without one."""
    variables = {id(value): name for name, value in reversed(frame.f_locals.items())}
    return {variables.get(id(t), f"value_{i}"): t for i, t in enumerate(tensors)}
