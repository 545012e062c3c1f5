"""What a traced function has read besides its arguments: if any of it changes, the trace no longer holds.

A trace sees the values of names, attributes and list entries as they are while it is recorded.  They are noted here,
for everything that can be reached from the function by name, and looked at again before each run.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from ..core.source import in_library
from ..core.tensor import Tensor

SIMPLE = (int, float, complex, str, bytes, bool, type(None))
DEPTH = 8  # how many attributes and entries deep it is looked
OPAQUE = (Tensor, np.ndarray, types.ModuleType, type, types.MethodType, *SIMPLE)
ROOMS = tuple(f"minigrad.{room}" for room in ("core", "devices", "ops", "autodiff", "compile"))  # keep caches only
MISSING = object()


class Guard:
    """One place where values are held: a closure cell, some globals, the attributes of an object, a list or a dict.

    `held` and `entries` are what is there as of the last look: mostly it is the very same again, quickly seen.
    """

    __slots__ = ("entries", "held", "ignored", "name", "place", "values")

    def __init__(self, name: str, place: Any, values: dict[Any, Any], ignored: tuple[str, ...] = ()) -> None:
        self.name, self.place, self.values, self.ignored = name, place, values, ignored
        self.held, self.entries = self._look()

    def _look(self) -> tuple[list[Any], int | None]:
        now = self.current()
        partly = self._is_global or isinstance(self.place, types.CellType)
        return [now.get(key, MISSING) for key in self.values], None if partly else len(self.place)

    @property
    def _is_global(self) -> bool:
        return self.name.startswith("global")

    def holds(self) -> bool:
        """Whether nothing is different."""
        place = self.place
        if place.__class__ is types.CellType:
            same = _content(place) is self.held[0]
        elif self.entries is not None and len(place) != self.entries:
            same = False
        else:
            now = place if isinstance(place, list) else map(place.get, self.values, repeat(MISSING))
            same = all(map(is_, now, self.held))
        if same:
            return True
        seen = self._look()  # before it is compared: whatever another thread does meanwhile is found the next time
        if self.change() is not None:
            return False
        self.held, self.entries = seen
        return True

    def current(self) -> dict[Any, Any]:
        """What is held there now."""
        place = self.place
        if isinstance(place, types.CellType):
            return {"": _content(place)}
        if isinstance(place, list):
            return dict(enumerate(place))
        if self._is_global:
            return {name: place.get(name, MISSING) for name in self.values}
        return {k: v for k, v in place.items() if k not in self.ignored} if self.ignored else place

    def change(self) -> str | None:
        """What is different from when the guard was made, in words, or None."""
        values, now = self.values, self.current()
        if len(now) != len(values):
            new = next((key for key in now if key not in values), None)
            which = "" if new is None else f", {new!r} among them"
            return f"{self.name}: {len(values)} entries became {len(now)}{which}"
        for key, value in values.items():
            new = now.get(key, MISSING)
            if new is not value and not _same(new, value):
                return f"{_join(self.name, key)} was {_short(value)} and is {_short(new)}"
        return None


def guards_of(*roots: Any) -> list[Guard]:
    """Guards for all that can be reached by name from functions and objects."""
    guards: list[Guard] = []
    seen: set[int] = set()
    stack: list[tuple[str, Any, int]] = [("", root, 0) for root in reversed(roots)]
    while stack:
        name, value, depth = stack.pop()
        if id(value) in seen or depth > DEPTH:
            continue
        seen.add(id(value))
        for guard in _places(name, value):
            guards.append(guard)
            stack += [(_join(guard.name, key), held, depth + 1) for key, held in guard.values.items()]
        stack += [(name, part, depth + 1) for part in _parts(value)]
    return guards


def changed(guards: list[Guard]) -> str | None:
    """The first change, in words, or None."""
    for guard in guards:
        if not guard.holds():
            return guard.change()
    return None


def _places(name: str, value: Any) -> Iterator[Guard]:
    if isinstance(value, types.FunctionType):
        if in_library(value.__code__.co_filename):
            return
        read = [n for n in _names(value.__code__) if n in value.__globals__]
        yield Guard("global", value.__globals__, {n: value.__globals__[n] for n in read})
        for free, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            yield Guard(free, cell, {"": _content(cell)})
    elif isinstance(value, list):
        yield Guard(name, value, dict(enumerate(value)))
    elif isinstance(value, dict):
        yield Guard(name, value, dict(value))
    elif isinstance(value, OPAQUE) or type(value).__module__.startswith(ROOMS):
        return
    elif hasattr(value, "__dict__"):
        ignored = getattr(value, "caches", ())  # what a class keeps for speed only
        attributes = vars(value)
        known = {k: v for k, v in attributes.items() if k not in ignored}
        yield Guard(name or type(value).__name__, attributes, known, ignored)


def _parts(value: Any) -> list[Any]:
    """What is reached from a value that cannot change itself."""
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, tuple):
        return list(value)
    wrapped = getattr(value, "__wrapped__", None)
    return [] if wrapped is None else [wrapped]


def _names(code: types.CodeType) -> list[str]:
    """The global names that a function reads, and those that the functions in it read."""
    names = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return names


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _same(new: Any, old: Any) -> bool:
    return type(new) is type(old) and (
        (isinstance(new, SIMPLE) and (new == old or (new != new and old != old)))
        or (isinstance(new, types.MethodType) and new == old)
    )


def _join(name: str, key: Any) -> str:
    """How a part of something is called in a message: `model.layers`, `layers[2]`, `the global scale`."""
    if isinstance(key, int):
        return f"{name}[{key}]"
    return str(key or name) if name == "global" else f"{name}.{key}" if key else name


def _short(value: Any) -> str:
    if value is MISSING:
        return "missing"
    if isinstance(value, Tensor):
        return f"a tensor {value.shape}"
    return repr(value) if isinstance(value, SIMPLE) else f"a {type(value).__name__}"
