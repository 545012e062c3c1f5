"""The arguments of a traced function: what of them is part of a trace, and what may differ from call to call."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.errors import ConversionError
from ..core.tensor import Tensor, as_tensor


def kind_of(value: Any, tensors: list[Tensor]) -> Any:
    """What a trace depends on in an argument; the tensors in it are added to `tensors`."""
    if value.__class__ is Tensor:
        tensors.append(value)
        return "tensor"
    if isinstance(value, np.ndarray):
        tensors.append(as_tensor(value))
        return "array"
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple([kind_of(v, tensors) for v in value])
    if isinstance(value, dict):
        return "dict", tuple([(k, kind_of(v, tensors)) for k, v in value.items()])
    if is_object(value):
        return type(value).__name__, id(value)  # an object is what it is; guards look at what it holds
    return hashable(value)


def is_object(value: Any) -> bool:
    """Whether a value is told from others by what it is, not by what it equals: a module, an optimizer."""
    return hasattr(value, "__dict__") and not isinstance(value, (type, types.FunctionType))


def objects(value: Any) -> list[Any]:
    """The objects and functions in containers of arguments."""
    if isinstance(value, (list, tuple, dict)):
        return [o for part in (value.values() if isinstance(value, dict) else value) for o in objects(part)]
    return [value] if is_object(value) or isinstance(value, types.FunctionType) else []


def replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same containers with other tensors in place of those that `kind_of` found, in the same order."""
    if value.__class__ is Tensor or isinstance(value, np.ndarray):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        parts = [replaced(v, tensors) for v in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    if isinstance(value, dict):
        return {k: replaced(v, tensors) for k, v in value.items()}
    return value


def hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise ConversionError(
            f"jit: a {type(value).__name__} cannot be an argument: whether it is the same as before cannot be told",
            expect="tensors, numbers, strings, and lists, tuples and dicts of them; anything else has to be hashable",
            hint="a tuple in place of a set, or let the function find it by name instead",
        ) from None
    return type(value), value


def kinds_of_tensors(tensors: list[Tensor]) -> list[Any]:
    """Shape, dtype, device, gradients, and which of them look at the same memory, and how."""
    numbers: dict[int, int] = {}
    kinds = []
    for tensor in tensors:
        alias = tensor.alias
        base = tensor if alias is None or alias.base is None else alias.base
        memory: Any = numbers.setdefault(id(base), len(numbers))
        if alias is not None and base is not tensor:
            steps = tuple([(op.name, repr(attrs)) for op, attrs in alias.chain])
            memory = memory, base.shape, steps, alias.linked
        gradient = (2 if tensor.is_leaf else 1) if tensor.tracked else 0
        kinds.append((tensor.shape, tensor.dtype, tensor.device, gradient, memory))
    return kinds
