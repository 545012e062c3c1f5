"""What holds what: the entries of containers, the attributes of objects, and what is followed of a class's objects."""

from __future__ import annotations

import functools
import io
import sys
import types
import weakref
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from ...core.tree import REGISTRY
from .guards import MISSING, SIMPLE, Guard, OrderGuard
from .origin import is_foreign_class, is_ours
from .reads import reads

OPAQUE = (Tensor, types.MethodType, Enum, io.IOBase, types.CodeType, np.generic, np.dtype, *SIMPLE)
ROOMS = tuple(f"minigrad.{room}" for room in ("core", "devices", "ops", "autodiff", "compile"))  # keep caches only
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
HELD = (Tensor, list, tuple, dict)  # what minigrad looks into, of the attributes of a module
PLAIN = ("types", "argparse", "collections", "_thread")  # Python's own classes that hold what they are given


class Kind:
    """What is followed of the objects of a class."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        library = [base for base in cls.__mro__ if is_ours(base.__module__)]
        caches = getattr(cls, "caches", ()) if library else ()
        names = [_names_in_module(base.__module__) for base in library]
        names += [_names_in_class(base) for base in cls.__mro__ if base.__module__ == "collections"]
        self.looked_into = not str(cls.__module__).startswith(ROOMS)
        self.users = cls is object or not is_foreign_class(cls) or cls.__module__ in PLAIN
        self.types = (*HELD, *REGISTRY) if library else ()
        self.names: frozenset[str] = frozenset().union(*names)  # those that the code of its bases reads
        self.ignored = tuple(name for name in caches if name != "_hooks")  # kept for speed only; hooks are called
        self.slots = _slots(cls)


def contents(name: str, value: Any, kind: type) -> Iterator[Guard]:
    """What a container holds, whatever its class adds to that."""
    if issubclass(kind, list):
        yield Guard(name, value, dict(enumerate(value)))
    elif issubclass(kind, dict):
        yield OrderGuard(name, value, dict(value))
    elif issubclass(kind, (set, frozenset)):
        yield Guard(name, value, _members(value), reader=_members)
    elif issubclass(kind, deque):
        yield Guard(name, value, _counted(value), reader=_counted)
    elif issubclass(kind, np.ndarray):
        yield Guard(name, value, _objects(value), reader=_objects)
    elif issubclass(kind, types.MappingProxyType):
        yield Guard(name, value, dict(value), reader=dict)
    elif issubclass(kind, ContextVar):
        yield Guard(name, value, _in_context(value), reader=_in_context)


def reached_from(value: Any, kind: type) -> list[Any]:
    """What is reached from a value that cannot change itself."""
    if issubclass(kind, types.MethodType):
        return [value.__func__, value.__self__]
    if issubclass(kind, tuple):
        return list(value)
    if issubclass(kind, weakref.ref):
        return [value()]
    if issubclass(kind, weakref.ProxyTypes):
        return [_attribute(_attribute(value, "__init__"), "__self__")]
    if issubclass(kind, (functools.partial, functools.partialmethod)):
        return [value.func, value.args, value.keywords]
    if issubclass(kind, property):
        return [value.fget, value.fset, value.fdel]
    if issubclass(kind, (classmethod, staticmethod)):
        return [value.__func__]
    if issubclass(kind, functools.cached_property):
        return [value.func]
    if issubclass(kind, OPAQUE):
        return []
    return [_attribute(value, name) for name in ("__wrapped__", "__self__") if _has(value, kind, name)]


def _has(value: Any, kind: type, name: str) -> bool:
    """Whether an object has an attribute, without calling a `__getattr__` of anyone but us."""
    return is_ours(kind.__module__) or name in (own_dict(value) or ()) or any(name in vars(b) for b in kind.__mro__)


def _attribute(value: Any, name: str) -> Any:
    """An attribute of something foreign, which may raise anything when it is read."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def own_dict(value: Any) -> dict[str, Any] | None:
    """The dict that holds an object's attributes, if there is one that stays; no code of its class is run for this."""
    try:
        found, again = [object.__getattribute__(value, "__dict__") for _ in range(2)]
    except Exception:
        return None
    return found if found is again and isinstance(found, dict) else None


def functions_in(values: list[Any]) -> list[Any]:
    """The functions among values, and in the lists, tuples and dicts among them: what a package was given to call."""
    inner = [list(v.values()) if type(v) is dict else v for v in values if type(v) in (list, tuple, dict)]
    return [part for parts in (values, *inner) for part in parts if issubclass(type(part), FUNCTIONS)]


def _members(values: Any) -> dict[Any, Any]:
    return dict(zip(values, values))


def _counted(values: Any) -> dict[Any, Any]:
    return dict(enumerate(values))


def _objects(values: Any) -> dict[Any, Any]:
    return dict(enumerate(_flat(values.ravel().tolist())))


def _flat(values: Any) -> Iterator[Any]:
    """The objects in an array, and in its records, which come as new tuples each time."""
    for value in values:
        if type(value) is tuple:
            yield from _flat(value)
        else:
            yield value


def _in_context(variable: ContextVar[Any]) -> dict[str, Any]:
    return {"": variable.get(MISSING)}


def _slots(kind: type) -> dict[str, Any]:
    """The descriptors of attributes that are not in a dict."""
    found = {n: d for cls in kind.__mro__[::-1] for n, d in vars(cls).items() if type(d) is types.MemberDescriptorType}
    return {name: descriptor for name, descriptor in found.items() if not name.endswith("__")}


def held_in_slots(slots: dict[str, Any], value: Any) -> dict[str, Any]:
    held = {}
    for name, descriptor in slots.items():
        try:
            held[name] = descriptor.__get__(value)
        except AttributeError:
            pass
    return held


def is_plain_iterator(kind: type, value: Any) -> bool:
    """Whether it is an iterator whose position cannot be seen: a generator, `iter(...)`, `itertools.count()`."""
    steps = any("__next__" in vars(base) for base in kind.__mro__) and is_foreign_class(kind)
    return steps and not issubclass(kind, (io.IOBase, Tensor, *weakref.ProxyTypes)) and own_dict(value) is None


@lru_cache(maxsize=1024)
def _names_in_module(name: str) -> frozenset[str]:
    values = list(vars(sys.modules[name]).values()) if name in sys.modules else []
    functions = [v for v in values if isinstance(v, types.FunctionType) and v.__module__ == name]
    classes = [v for v in values if isinstance(v, type) and v.__module__ == name]
    return frozenset().union(*[reads(f.__code__).names for f in functions], *[_names_in_class(c) for c in classes])


@lru_cache(maxsize=1024)
def _names_in_class(cls: type) -> frozenset[str]:
    parts = [part for value in vars(cls).values() for part in (value, *reached_from(value, type(value)))]
    return frozenset().union(*[reads(p.__code__).names for p in parts if isinstance(p, types.FunctionType)])
