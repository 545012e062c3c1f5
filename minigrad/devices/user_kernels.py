"""Checks a user's kernel: its parameters when it is registered, its result when it is first called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..core.primitive import Primitive
from ..support.errors import DeviceError, MinigradError
from ..support.words import shown
from .library import Kernel

CHECKED = ("elementwise", "reduce", "view", "index", "contract")  # kinds with one array as result


def with_out(op: Primitive, function: Kernel) -> Kernel:
    """An elementwise kernel that takes `out=`, because it is called so where memory is used again."""
    parameters = _parameters(function)
    if op.kind != "elementwise" or parameters is None or "out" in parameters:
        return function
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return function

    @wraps(function)
    def kernel(*values: Any, out: Any = None, **attrs: Any) -> Any:
        result = function(*values, **attrs)
        if out is None:
            return result
        out[...] = result
        return out

    return kernel


def check_parameters(op: Primitive, function: Kernel) -> None:
    """Raise an error for a function that cannot be called with the inputs and attributes of the primitive.

    >>> from minigrad.core.primitive import P
    >>> check_parameters(P.tanh, lambda x, y: x)
    Traceback (most recent call last):
    minigrad.support.errors.DeviceError: <lambda> cannot be the kernel of tanh: its parameters do not fit
      Expected: (x)
      Got: (x, y)
    ...
    """
    parameters = _parameters(function)
    if parameters is None or op.kind not in CHECKED:
        return
    attrs = [p.name for p in inspect.signature(op.infer).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    attrs = [name for name in attrs if name not in op.inputs]
    try:
        inspect.Signature(list(parameters.values())).bind(*op.inputs, **dict.fromkeys(attrs))
    except TypeError:
        raise DeviceError(
            f"{_name(function)} cannot be the kernel of {op.name}: its parameters do not fit",
            expect=f"({', '.join([*op.inputs, *attrs])})", actual=f"({', '.join(map(str, parameters.values()))})",
        ) from None


def checked_once(op: Primitive, function: Kernel, accept: Callable[[str, Kernel, Kernel], None]) -> Kernel:
    """The kernel with a check of its result; `accept(name, checking, function)` removes the check after one call."""
    if op.kind not in CHECKED:
        return function

    @wraps(function)
    def checking(*values: Any, **attrs: Any) -> Any:
        result = function(*values, **attrs)
        _check_result(op, function, values, {k: v for k, v in attrs.items() if k != "out"}, result)
        accept(op.name, checking, function)
        return result

    return checking


def _check_result(op: Primitive, function: Kernel, values: Any, attrs: dict[str, Any], result: Any) -> None:
    try:
        shape, dtype = op.infer(*values, **attrs)
    except (MinigradError, TypeError, ValueError, AttributeError):
        return  # `infer` needs tensors here
    found = getattr(result, "shape", None), getattr(result, "dtype", None)
    if found != (shape, dtype):
        raise DeviceError(
            f"{op.name}: its kernel {_name(function)} returned the wrong result",
            expect=f"an array of shape {shape} and dtype {dtype}",
            actual=shown(result) if found[0] is None or found[1] is None else f"shape {found[0]} and dtype {found[1]}",
        )


def _parameters(function: Kernel) -> dict[str, inspect.Parameter] | None:
    """The parameters by name; None for a function written in C, such as NumPy's."""
    try:
        return dict(inspect.signature(function).parameters)
    except ValueError:
        return None


def _name(function: Kernel) -> str:
    return getattr(function, "__qualname__", type(function).__name__).rpartition("<locals>.")[2]
