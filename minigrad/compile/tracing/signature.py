"""The kind of arguments: the part of them that a trace depends on.  Tensors' values may differ between calls."""

from __future__ import annotations

import enum
import types
from collections import Counter
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from ...core.tensor import NUMBERS, Tensor, as_tensor
from ...support.errors import ConversionError
from ...support.origin import is_foreign_class

PART = "a part of a tensor"  # how the memory of such a view is described
LITERALS = (int, bool, str, bytes, type(None))


class Alike:
    """A value in the kind of an argument.  It equals another if also their parts, or their texts, are the same.

    `==` alone does not tell apart Decimal("1.0") and Decimal("1.00"), or two objects whose class does not compare the
    field that differs.
    """

    __slots__ = ("parts", "text", "value")

    def __init__(self, value: Any, role: str) -> None:
        self.value, cls = value, type(value)
        slots = slots_of(cls)
        if slots and cls.__eq__ is not object.__eq__ and not is_foreign_class(cls):
            held = {name: _held(v, role) for name, v in held_in_slots(slots, value).items()}
            self.parts: Any = tuple(held.items())
            self.text = f"{cls.__name__}({', '.join([f'{name}={in_words(kind)}' for name, kind in held.items()])})"
            return
        self.text = repr(value)
        if cls is frozenset:
            self.parts = frozenset([hashable(v, role) for v in value])
        elif cls is slice:
            self.parts = hashable((value.start, value.stop, value.step), role)
        else:
            self.parts = value, self.text

    def __eq__(self, other: Any) -> bool:
        return bool(self.parts == other.parts)

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return self.text


def _held(value: Any, role: str) -> Any:
    """The kind of a value in a slot; what the argument cannot be is compared by identity, and guards look into it."""
    try:
        return (type(value), id(value)) if is_object(value) else hashable(value, role)
    except ConversionError:
        return type(value), id(value)


def kind_of(value: Any, tensors: list[Tensor]) -> Any:
    """The kind of an argument, which a trace depends on; the tensors in it are appended to `tensors`."""
    if value.__class__ is Tensor:
        tensors.append(value)
        return Tensor
    if isinstance(value, np.ndarray):
        tensors.append(copied(value))
        return np.ndarray
    if isinstance(value, (list, tuple)):
        return type(value), tuple([kind_of(v, tensors) for v in value])
    if isinstance(value, dict):
        return type(value), tuple([(hashable(k), kind_of(v, tensors)) for k, v in value.items()])
    if is_object(value):
        return type(value), id(value)  # guards check what the object holds
    return hashable(value)


def copied(array: Any) -> Tensor:
    """A read-only tensor in place of an array, because writes to it would not reach the array."""
    tensor = as_tensor(array)
    if isinstance(tensor._data, np.ndarray):
        tensor._data.flags.writeable = False
    return tensor


def is_object(value: Any) -> bool:
    """Whether a value is compared by identity: a module, an optimizer."""
    return hasattr(value, "__dict__") and not isinstance(value, (type, types.FunctionType, enum.Enum))


def objects(value: Any) -> list[Any]:
    """The objects, functions and classes in containers of arguments."""
    if isinstance(value, (list, tuple, dict)):
        return [o for part in ((*value, *value.values()) if isinstance(value, dict) else value) for o in objects(part)]
    known = value.__class__ in (*NUMBERS, *LITERALS) or isinstance(value, (Tensor, np.ndarray, np.generic))
    return [] if known else [value]


def replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same containers with other tensors, in the order in which `kind_of` finds them."""
    if value.__class__ is Tensor or isinstance(value, np.ndarray):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        parts = [replaced(v, tensors) for v in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    if isinstance(value, dict):
        new = {} if value.__class__ is dict else copy(value)  # a defaultdict keeps its default
        new.update([(k, replaced(v, tensors)) for k, v in value.items()])
        return new
    return value


def changed_container(before: Any, now: Any, name: str = "") -> str | None:
    """Where a function has changed a list or dict among its arguments, in words; None if it has not.

    `replaced` made both `before` and `now`, and the function was called with `now`.
    """
    if not isinstance(now, (list, tuple, dict)):
        same = now is before or (now.__class__ is before.__class__ in NUMBERS and now == before)
        return None if same else f"the entry {name} of the arguments is replaced"
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
    """The kind of a value that is not a tensor: 1, 1.0 and True differ."""
    if value.__class__ in (float, complex):
        return type(value), repr(value)  # nan equals nan, and 0.0 differs from -0.0
    if isinstance(value, tuple):
        return type(value), tuple([hashable(v, role) for v in value])
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, Iterator):
        raise ConversionError(
            f"jit: a {type(value).__name__} cannot be {role}: its values differ between calls",
            hint="list(...) of it, or a tensor for each call",
        )
    if value.__class__ is Tensor or isinstance(value, np.ndarray):
        raise ConversionError(
            f"jit: a {type(value).__name__} cannot be {role}: its values may change without a new trace",
            hint="an argument that is not static, or a tuple of numbers",
        )
    if value.__class__ in LITERALS:
        return type(value), value
    try:
        alike = Alike(value, role)
        hash(alike)
    except TypeError:
        static = role != "an argument"
        raise ConversionError(
            f"jit: a {type(value).__name__} cannot be {role}: it cannot be compared with the one of the last call",
            expect="numbers, strings and tuples of them; anything else must be hashable" if static else
            "tensors, numbers, strings, and lists, tuples and dicts of them; anything else must be hashable",
            hint="a tuple in place of a list or a set, or let the function read it by name",
        ) from None
    return type(value), alike


def in_words(kind: Any) -> str:
    """A kind of argument, for a message."""
    if isinstance(kind, type):
        return f"a {kind.__name__}"
    cls, what = kind
    if what.__class__ is int and not issubclass(cls, int):
        return f"a {cls.__name__} object"
    if cls in (float, complex):
        return str(what)
    if issubclass(cls, dict):
        return "{" + ", ".join([f"{in_words(key)}: {in_words(part)}" for key, part in what]) + "}"
    if issubclass(cls, (list, tuple)):
        parts = ", ".join([in_words(part) for part in what])
        return f"[{parts}]" if issubclass(cls, list) else f"({parts})"
    return f"{cls.__name__}({what!r})" if issubclass(cls, np.generic) else repr(what)


def base_of_part(tensor: Tensor) -> Tensor | None:
    """The base of a view that lies in one piece of memory and has no part in a gradient of its base; otherwise None."""
    alias, flags = tensor.alias, getattr(tensor._data, "flags", None)
    if alias is None or alias.base is None or alias.base.tracked or flags is None or not flags.c_contiguous:
        return None
    return alias.base


def is_part(memory: Any) -> bool:
    """Whether the memory of an argument is described as a `PART`."""
    return memory.__class__ is tuple and memory[-1] == PART


def kinds_of_tensors(tensors: list[Tensor], exactly: bool = False) -> list[Any]:
    """Shape, dtype, device, gradient, and which tensors share memory, and how.

    A view in one piece that shares memory with no other tensor is just a `PART`, unless the kinds are wanted `exactly`:
    batch after batch of a tensor is of the same kind.
    """
    bases = [tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base for tensor in tensors]
    handles = Counter(map(id, bases))
    numbers: dict[int, int] = {}
    kinds = []
    for tensor, base in zip(tensors, bases):
        alias, data = tensor.alias, tensor._data
        memory: Any = numbers.setdefault(id(base), len(numbers))
        if alias is not None and base is not tensor:
            if not exactly and base_of_part(tensor) is not None and handles[id(base)] == 1:
                memory = memory, PART
            else:
                steps = tuple([(op.name, repr(attrs)) for op, attrs in alias.chain])
                memory = memory, base.shape, steps, alias.linked
        gradient = (2 if tensor.is_leaf else 1) if tensor.tracked else 0
        kinds.append((data.shape, data.dtype, tensor.device, gradient, memory))
    return kinds


def slots_of(kind: type) -> dict[str, Any]:
    """The descriptors of attributes that are not in a dict."""
    found = {n: d for cls in kind.__mro__[::-1] for n, d in vars(cls).items() if type(d) is types.MemberDescriptorType}
    return {name: descriptor for name, descriptor in found.items() if not name.endswith("__")}


def held_in_slots(slots: dict[str, Any], value: Any) -> dict[str, Any]:
    """The values of these attributes that are set."""
    held = {}
    for name, descriptor in slots.items():
        try:
            held[name] = descriptor.__get__(value)
        except (AttributeError, TypeError):  # not set, or the object's class is another one now
            pass
    return held
