"""The arguments of a traced function: what of them is part of a trace, and what may differ from call to call."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from ...core.tensor import NUMBERS, Tensor, as_tensor
from ...support.errors import ConversionError


def kind_of(value: Any, tensors: list[Tensor]) -> Any:
    """What a trace depends on in an argument; the tensors in it are added to `tensors`."""
    if value.__class__ is Tensor:
        tensors.append(value)
        return Tensor
    if isinstance(value, np.ndarray):
        tensors.append(_copied(value))
        return np.ndarray
    if isinstance(value, (list, tuple)):
        return type(value), tuple([kind_of(v, tensors) for v in value])
    if isinstance(value, dict):
        return type(value), tuple([(hashable(k), kind_of(v, tensors)) for k, v in value.items()])
    if is_object(value):
        return type(value), id(value)  # an object is what it is; guards look at what it holds
    return hashable(value)


def _copied(array: Any) -> Tensor:
    """A tensor in the place of an array.  What is written into it would not come to the array: it may not be."""
    tensor = as_tensor(array)
    if isinstance(tensor._data, np.ndarray):
        tensor._data.flags.writeable = False
    return tensor


def is_object(value: Any) -> bool:
    """Whether a value is told from others by what it is, not by what it equals: a module, an optimizer."""
    return hasattr(value, "__dict__") and not isinstance(value, (type, types.FunctionType, enum.Enum))


def objects(value: Any) -> list[Any]:
    """The objects and functions in containers of arguments."""
    if isinstance(value, (list, tuple, dict)):
        return [o for part in (value.values() if isinstance(value, dict) else value) for o in objects(part)]
    known = value.__class__ in NUMBERS or isinstance(value, (str, bytes, Tensor, np.ndarray, np.generic, type))
    return [] if known or value is None else [value]


def replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same containers with other tensors in place of those that `kind_of` found, in the same order."""
    if value.__class__ is Tensor or isinstance(value, np.ndarray):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        parts = [replaced(v, tensors) for v in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    if isinstance(value, dict):
        new = {} if value.__class__ is dict else copy(value)  # a defaultdict goes on having its default
        new.update([(k, replaced(v, tensors)) for k, v in value.items()])
        return new
    return value


def changed_container(before: Any, now: Any, name: str = "") -> str | None:
    """Where a function has changed a list or dict that it was given, in words; None if it has not.

    `before` and `now` were made alike by `replaced`, and the function was given `now`.
    """
    if not isinstance(now, (list, tuple, dict)):
        same = now is before or (now.__class__ is before.__class__ in NUMBERS and now == before)
        return None if same else f"what is at {name} in the arguments is replaced"
    if len(now) != len(before):
        return f"a {type(now).__name__} among the arguments had {len(before)} entries and has {len(now)}"
    if isinstance(now, dict) and list(now) != list(before):
        return f"a {type(now).__name__} among the arguments has other keys"
    for key in now if isinstance(now, dict) else range(len(now)):
        found = changed_container(before[key], now[key], f"{name}[{key!r}]")
        if found is not None:
            return found
    return None


def hashable(value: Any, role: str = "an argument") -> Any:
    """What tells a value that is no tensor from others: 1, 1.0 and True are not the same to a trace."""
    if value.__class__ in (float, complex):
        return type(value), repr(value)  # nan is itself, and 0.0 is not -0.0
    if isinstance(value, tuple):
        return type(value), tuple([hashable(v, role) for v in value])
    if isinstance(value, slice):
        return slice, hashable((value.start, value.stop, value.step), role)
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, Iterator):
        raise ConversionError(
            f"jit: a {type(value).__name__} cannot be {role}: what it gives differs from call to call",
            hint="list(...) of it, or a tensor for each call",
        )
    if value.__class__ is Tensor or isinstance(value, np.ndarray):
        raise ConversionError(
            f"jit: a {type(value).__name__} cannot be {role}: its values may change, and a trace would not know",
            hint="an argument that is not static, or a tuple of numbers",
        )
    try:
        hash(value)
    except TypeError:
        static = role != "an argument"
        raise ConversionError(
            f"jit: a {type(value).__name__} cannot be {role}: whether it is the same as before cannot be told",
            expect="numbers, strings and tuples of them; anything else has to be hashable" if static else
            "tensors, numbers, strings, and lists, tuples and dicts of them; anything else has to be hashable",
            hint="a tuple in place of a list or a set, or let the function find it by name instead",
        ) from None
    return type(value), value


def in_words(kind: Any) -> str:
    """A kind of argument, for a message."""
    if isinstance(kind, type):
        return f"a {kind.__name__}"
    cls, what = kind
    if what.__class__ is int and not issubclass(cls, int):
        return f"a certain {cls.__name__}"
    if cls in (float, complex):
        return str(what)
    if issubclass(cls, dict):
        return "{" + ", ".join([f"{in_words(key)}: {in_words(part)}" for key, part in what]) + "}"
    if issubclass(cls, (list, tuple)):
        parts = ", ".join([in_words(part) for part in what])
        return f"[{parts}]" if issubclass(cls, list) else f"({parts})"
    return f"{cls.__name__}({what!r})" if issubclass(cls, np.generic) else repr(what)


def kinds_of_tensors(tensors: list[Tensor]) -> list[Any]:
    """Shape, dtype, device, gradients, and which of them look at the same memory, and how."""
    numbers: dict[int, int] = {}
    kinds = []
    for tensor in tensors:
        alias, data = tensor.alias, tensor._data
        base = tensor if alias is None or alias.base is None else alias.base
        memory: Any = numbers.setdefault(id(base), len(numbers))
        if alias is not None and base is not tensor:
            steps = tuple([(op.name, repr(attrs)) for op, attrs in alias.chain])
            memory = memory, base.shape, steps, alias.linked
        gradient = (2 if tensor.is_leaf else 1) if tensor.tracked else 0
        kinds.append((data.shape, data.dtype, tensor.device, gradient, memory))
    return kinds
