"""What can be reached by name from a function: whatever a trace may have read, and where it is held.

The walk follows globals, closure cells, defaults, attributes, containers, and the methods and class attributes whose
names the code reads.  It ends at the libraries: Python's own, NumPy, and ours.  What a function asks these for is not
seen: the time, the environment, files, and memory that tensors share by `copy=False`.
"""

from __future__ import annotations

import dis
import functools
import io
import random
import sys
import sysconfig
import types
import weakref
from collections import deque
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.errors import TraceError
from ..core.source import in_library
from ..core.tensor import Tensor
from .guards import SIMPLE, AnyGuard, Guard, OrderGuard, array_guard, content, join, state_guard

DEPTH = 100  # how many attributes and entries deep it is looked
OPAQUE = (Tensor, types.MethodType, Enum, io.IOBase, *SIMPLE)
ROOMS = tuple(f"minigrad.{room}" for room in ("core", "devices", "ops", "autodiff", "compile"))  # keep caches only
SERVICES = ("logging", "threading", "asyncio", "concurrent", "queue", "multiprocessing", "warnings", "abc", "typing")
SOURCES = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
PYTHON = sysconfig.get_path("stdlib")
NUMPY = np.__path__[0]


class Guards(list[AnyGuard]):
    """Guards that have to hold for as long as a trace does; `own` are for what the function itself may not change."""

    own: list[AnyGuard]


def guards_of(*roots: Any) -> Guards:
    """Guards for all that can be reached by name from functions and objects."""
    walk = Walk()
    for root in reversed(roots):
        walk.stack.append(("", root, 0, ()))
    walk.run()
    return walk.finish()


class Walk:
    """One walk: what is still to be visited, what has been found."""

    def __init__(self) -> None:
        self.guards = Guards()
        self.stack: list[tuple[str, Any, int, tuple[str, ...]]] = []  # name, value, depth, attributes on the way
        self.seen: set[int] = set()
        self.names: set[str] = set()  # what the code reads, of whatever
        self.waiting: dict[str, list[tuple[str, Any, int]]] = {}  # parts of classes and modules, not read yet
        self.rooms: list[tuple[str, Any]] = []  # classes and modules, and what they are called
        self.states: list[tuple[str, Any, tuple[str, ...]]] = []  # arrays, iterators, sources of random numbers

    def run(self) -> None:
        """Visit all that is reached."""
        while self.stack:
            name, value, depth, path = self.stack.pop()
            if id(value) in self.seen or depth > DEPTH:
                continue
            self.seen.add(id(value))
            if isinstance(value, (np.ndarray, *SOURCES)) or _is_plain_iterator(value):
                self.states.append((name, value, path))
            elif isinstance(value, types.ModuleType):
                foreign = _is_library(getattr(value, "__file__", None))
                self._room(value.__name__, value, vars(value), depth, foreign)
            else:
                self._visit(name, value, depth, path)

    def _visit(self, name: str, value: Any, depth: int, path: tuple[str, ...]) -> None:
        attributes = not isinstance(value, (list, dict, types.FunctionType)) and hasattr(value, "__dict__")
        for guard in _places(name, value):
            self.guards.append(guard)
            for key, held in guard.values.items():
                further = (*path, key) if attributes and isinstance(key, str) else path
                self.stack.append((join(guard.name, key), held, depth + 1, further))
        for part in _parts(value):
            self.stack.append((name, part, depth + 1, path))
        if isinstance(value, types.FunctionType) and not _is_library(value.__code__.co_filename):
            self._read(_names(value.__code__))
        elif isinstance(value, type):
            self._class(value, depth, by_name=True)
        elif not isinstance(value, (types.FunctionType, *OPAQUE)):
            self._class(type(value), depth, by_name=False)

    def _class(self, cls: type, depth: int, by_name: bool) -> None:
        """What an object finds in its class: the methods that are called, and attributes."""
        for base in cls.__mro__:
            file = getattr(sys.modules.get(base.__module__), "__file__", None)
            if base.__module__ == "builtins" or base.__module__.startswith("minigrad.") or _is_foreign(file):
                continue
            if not any(place is base for _, place in self.rooms):
                self._room(base.__name__, base, vars(base), depth, foreign=False)
            called = [n for n in vars(base) if n.startswith("__") and callable(vars(base)[n])]
            called += [n for n in vars(base) if any(n in vars(b) for b in cls.__mro__ if b is not base)]
            skipped = () if by_name else ("__init__", "__new__", "__init_subclass__", "__class__")
            self._read([n for n in called if n not in skipped])

    def _room(self, name: str, room: Any, entries: Any, depth: int, foreign: bool) -> None:
        """A class or a module: what of it is read is known once all code has been seen."""
        if not foreign:
            self.rooms.append((name, room))
        for key, value in list(entries.items()):
            if foreign and not isinstance(value, types.ModuleType) and not _draws(value):
                continue
            entry = (f"{name}.{key}", value, depth + 1)
            if key in self.names:
                self.stack.append((*entry, ()))
            else:
                self.waiting.setdefault(key, []).append(entry)

    def _read(self, names: Any) -> None:
        for name in names:
            if name not in self.names:
                self.names.add(name)
                self.stack += [(*entry, ()) for entry in self.waiting.pop(name, ())]

    def finish(self) -> Guards:
        """The guards, those of what depends on all that is read included."""
        for name, room in self.rooms:
            entries = vars(room)
            read = {key: entries[key] for key in entries if key in self.names}
            if read:
                self.guards.append(Guard(name, entries, read, part=True))
        self.guards.own = []
        for name, value, path in self.states:
            if not self.names.issuperset(path):
                continue
            if isinstance(value, SOURCES):
                self.guards.own.append(state_guard(name, value))
            elif not isinstance(value, np.ndarray):
                kind = type(value).__name__
                raise TraceError(
                    f"jit: the function reads {name}, a {kind}: what it gives differs from call to call",
                    expect="a trace runs the Python code once, and the program never again",
                    hint="take the next value outside, and pass it as an argument",
                )
            elif not value.dtype.hasobject:
                self.guards.append(array_guard(name, value))
        return self.guards


def _places(name: str, value: Any) -> Iterator[Guard]:
    """Where a value holds others."""
    if isinstance(value, types.FunctionType):
        if _is_library(value.__code__.co_filename):
            return
        yield Guard(name or value.__name__, value, _function(value), reader=_function)
        read = [n for n in _globals(value.__code__) if n in value.__globals__]
        yield Guard("global", value.__globals__, {n: value.__globals__[n] for n in read}, part=True)
        for free, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            yield Guard(free, cell, {"": content(cell)})
        if vars(value):
            yield Guard(name or value.__name__, vars(value), dict(vars(value)))
        return
    if isinstance(value, list):
        yield Guard(name, value, dict(enumerate(value)))
    elif isinstance(value, dict):
        yield OrderGuard(name, value, dict(value))
    elif isinstance(value, (set, frozenset)):
        yield Guard(name, value, _members(value), reader=_members)
    elif isinstance(value, (deque, bytearray)):
        yield Guard(name, value, _counted(value), reader=_counted)
    elif isinstance(value, types.MappingProxyType):
        yield Guard(name, value, dict(value), reader=dict)
    if isinstance(value, (type, *OPAQUE)) or type(value).__module__.startswith((*ROOMS, *SERVICES)):
        return
    if hasattr(value, "__dict__"):
        ignored = getattr(type(value), "caches", ())  # what a class keeps for speed only
        attributes = vars(value)
        known = {k: v for k, v in attributes.items() if k not in ignored}
        yield Guard(name or type(value).__name__, attributes, known, ignored)
    if any("__slots__" in vars(cls) for cls in type(value).__mro__[:-1]) and not _is_foreign_class(type(value)):
        yield Guard(name or type(value).__name__, value, _slots(value), reader=_slots)


def _parts(value: Any) -> list[Any]:
    """What is reached from a value that cannot change itself."""
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.BuiltinMethodType):
        owner = value.__self__
        return [] if owner is None or isinstance(owner, (types.ModuleType, type)) else [owner]
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, weakref.ref):
        return [value()]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, property):
        return [value.fget, value.fset]
    if isinstance(value, (classmethod, staticmethod)):
        return [value.__func__]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, type) or isinstance(value, OPAQUE):
        return []
    return [part for name in ("__wrapped__", "__self__") if (part := _attribute(value, name)) is not None]


def _attribute(value: Any, name: str) -> Any:
    """An attribute of something foreign, which may raise whatever it likes when it is asked: a lazy module does."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _function(function: Any) -> dict[str, Any]:
    defaults, named = function.__defaults__, function.__kwdefaults__
    return {"__code__": function.__code__, "__defaults__": defaults, "__kwdefaults__": named}


def _members(values: Any) -> dict[Any, Any]:
    return dict(zip(values, values))


def _counted(values: Any) -> dict[Any, Any]:
    return dict(enumerate(values))


def _slots(value: Any) -> dict[str, Any]:
    names = [n for cls in type(value).__mro__ for n in _listed(vars(cls).get("__slots__", ()))]
    held = [(n, getattr(value, n, None)) for n in names if n not in ("__weakref__", "__dict__")]
    return dict(held)


def _listed(slots: Any) -> Any:
    return (slots,) if isinstance(slots, str) else slots


def _is_plain_iterator(value: Any) -> bool:
    """Whether it is an iterator whose position cannot be seen: a generator, `iter(...)`, `itertools.count()`."""
    steps = hasattr(type(value), "__next__") and not hasattr(value, "__dict__")
    return steps and not isinstance(value, (io.IOBase, Tensor))


def _draws(value: Any) -> bool:
    return isinstance(getattr(value, "__self__", None), SOURCES)


def _is_library(filename: str | None) -> bool:
    return filename is not None and (in_library(filename) or _is_foreign(filename))


def _is_foreign(filename: str | None) -> bool:
    """Whether a file is Python's own, or NumPy's, where nothing changes that matters."""
    if filename is None or filename.startswith(NUMPY):
        return filename is not None
    return filename.startswith((PYTHON, "<frozen")) and "site-packages" not in filename


def _is_foreign_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return cls.__module__ == "builtins" or _is_foreign(getattr(module, "__file__", None))


@lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """All names that a function, and those in it, read of anything."""
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _names(part)]
    return (*code.co_names, *inner)


@lru_cache(maxsize=4096)
def _globals(code: types.CodeType) -> tuple[str, ...]:
    """The global names that a function reads, and those that the functions in it read."""
    names = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inner = [name for part in code.co_consts if isinstance(part, types.CodeType) for name in _globals(part)]
    return tuple(dict.fromkeys([*names, *inner]))
