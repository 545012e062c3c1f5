"""Converts values to plain data for JSON, and back.

Files hold no code.  Containers, numbers, dtypes and a few others have a form as plain data.  Everything else is
refused, with its place.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.primitive import P, Primitive
from ...core.tree import flatten
from ...devices import Device, as_device
from ...support.errors import ConversionError

PLAIN = (bool, int, str, type(None))
MOST_DEVICES = 64  # of a kind


class ProgramError(ConversionError):
    """A function cannot be saved as a program, or a file holds no program that can run here.

    >>> import minigrad as mg
    >>> f = mg.jit(lambda x: mg.random.normal(x.shape) + x)
    >>> f.save("noise.program", mg.ones(3))
    Traceback (most recent call last):
    minigrad.compile.save.codec.ProgramError: save: the function draws random numbers...
    ...

    Hint: the message names the reason; values that change between calls must be arguments.
    """


class Slot(NamedTuple):
    """Where a tensor is in a container."""

    number: int


def encoded(value: Any, where: str = "it") -> Any:
    """A value as plain data; `where` names it in an error.

    >>> encoded((1, [2.5, slice(None, 3)], {"a": float("inf")}))
    {'tuple': [1, {'list': [2.5, {'slice': [None, 3, None]}]}, {'dict': [['a', {'float': 'inf'}]]}]}
    """
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, np.generic):
        return encoded(value.item(), where)
    if value.__class__ is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, Slot):
        return {"tensor": value.number}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, Primitive):
        return {"primitive": value.name}
    if isinstance(value, Device):
        return {"device": value.name}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, slice):
        return {"slice": [encoded(v, where) for v in (value.start, value.stop, value.step)]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [encoded(v, f"{where}.{f}") for f, v in zip(value._fields, value)]
        return {"named": type(value).__name__, "fields": list(value._fields), "values": parts}
    if value.__class__ in (tuple, list):
        return {value.__class__.__name__: [encoded(v, f"{where}[{i}]") for i, v in enumerate(value)]}
    if value.__class__ is dict:
        return {"dict": [[encoded(k), encoded(v, f"{where}[{k!r}]")] for k, v in value.items()]}
    raise ProgramError(
        f"save: {where} is a {type(value).__name__}, which cannot be part of a file",
        expect="tensors, numbers, strings, and lists, tuples and dicts of them",
    )


def decoded(data: Any) -> Any:
    """The value of plain data, with a `Slot` for each tensor.

    >>> decoded({"tuple": [1, {"dict": [["a", {"tensor": 0}]]}]})
    (1, {'a': Slot(number=0)})
    """
    if data.__class__ in PLAIN or data.__class__ is float:
        return data
    if data.__class__ is not dict or not data:
        raise unknown(data)
    kind, held = next(iter(data.items()))
    if kind == "named" and data.keys() == {"named", "fields", "values"}:
        return namedtuple(held, data["fields"])(*[decoded(v) for v in data["values"]])  # type: ignore[misc]
    if len(data) > 1 or kind not in DECODERS:
        raise unknown(data)
    return DECODERS[kind](held)


def _number(held: Any) -> Slot:
    if held.__class__ is not int or held < 0:
        raise unknown(held)
    return Slot(held)


def _device(name: Any) -> Device:
    """The device with this name.  New devices stay, so data may name only a few."""
    if name.__class__ is not str or int(name.partition(":")[2] or 0) >= MOST_DEVICES:
        raise unknown(name)
    return as_device(name)


DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tensor": _number,
    "dtype": lambda held: dtypes.ALL[held],
    "device": _device,
    "primitive": lambda held: P[held],
    "ellipsis": lambda held: Ellipsis,
    "slice": lambda held: slice(*[decoded(v) for v in held]),
    "tuple": lambda held: tuple([decoded(v) for v in held]),
    "list": lambda held: [decoded(v) for v in held],
    "dict": lambda held: {decoded(k): decoded(v) for k, v in held},
}


def unknown(data: Any) -> ProgramError:
    """The error for data that is not the form of any value."""
    text = repr(data)
    return ProgramError(f"load: {text[:60]}{'...' if len(text) > 60 else ''} is not a value")


def filled(tree: Any, tensors: list[Any]) -> Any:
    """A container with tensors in its slots."""
    found, rebuild = flatten(tree, (Slot,))
    return rebuild([tensors[slot.number] for slot in found])  # type: ignore[attr-defined]


def slots(tree: Any) -> list[int]:
    """The numbers of all slots in a container."""
    return [slot.number for slot in flatten(tree, (Slot,))[0]]  # type: ignore[attr-defined]
