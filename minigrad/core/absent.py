"""The errors for names that minigrad lacks, with hints for those that other libraries have."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from inspect import getattr_static
from typing import Any, NoReturn

from ..support.errors import MissingImportError, MissingNameError
from ..support.synonyms import absent_names, hint_for, nearest, synonyms
from .guests import FINDER, place_of

# Where a name is looked for that another room lacks.
ROOMS = ("minigrad", *[f"minigrad.{room}" for room in (
    "nn", "optim", "random", "linalg", "nn.init", "optim.lr_scheduler", "data", "io", "train",
)])


def missing(room: str, name: str) -> NoReturn:
    """Raise the error for a name that a room of minigrad lacks: this is the `__getattr__` of the rooms."""
    if name.startswith("_"):  # Python and other programs look for such names, which no user misspells
        raise AttributeError(f"module {room!r} has no attribute {name!r}", name=name)
    raise _missing(f"{room} has no {name!r}", name, _hint(room, name))


def _hint(room: str, name: str) -> str | None:
    hint = hint_for(room, name)
    if hint is None and _is_module(room, name):  # `from minigrad import course` looks for a name first
        return f"import {room}.{name}"
    if hint is None:
        others = [each for each in ROOMS if name in _public(each)]
        near = nearest(name, [*_public(room), *[each.name for each in synonyms() if each.place == room]])
        words = _called(others[0], name) if others else near and (hint_for(room, near) or _called(room, near))
        hint = words and f"did you mean {words}?"
    return hint


class _LastFinder:
    """The last finder for imports: it finds guests, and raises the error, with a hint, for what a room lacks."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        found = FINDER.find_spec(name)
        room, _, part = name.rpartition(".")
        if found is None and room in ROOMS and not part.startswith("_") and not _is_module(room, part):
            raise MissingImportError(f"{room} has no {part!r}", hint=_hint(room, part))
        return found


sys.meta_path.append(_LastFinder())


def _is_module(room: str, name: str) -> bool:
    path = getattr(sys.modules[room], "__path__", [])
    return PathFinder.find_spec(f"{room}.{name}", path) is not None or place_of(f"{room}.{name}") is not None


def _public(room: str) -> list[str]:
    """The public names of a room."""
    module = import_module(room)
    return [each for each in getattr(module, "__all__", dir(module)) if each[0] != "_"]


def _called(room: str, name: str) -> str:
    return f"mg{room.removeprefix('minigrad')}.{name}"


def _missing(message: str, name: str, hint: str | None) -> MissingNameError:
    error = MissingNameError(message, hint=hint)
    error.name = name  # with a name, Python adds no suggestion of its own
    return error


class Absent:
    """A name that only objects of other libraries have.  Nothing is slower than without it, as with `__getattr__`."""

    def __init__(self, place: str, name: str, hint: str | None = None) -> None:
        self.place, self.name, self.hint = place, name, hint

    def lacks(self, caller: Any) -> bool:
        """Whether `dir` leaves the name out for the code of a frame."""
        return True

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        what = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        raise _missing(f"{what} has no attribute {self.name!r}", self.name,
                       hint_for(self.place, self.name) or self.hint)


class _Names:
    """A base class that holds names of other libraries, which `dir` leaves out."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        caller = sys._getframe(1)
        found = {each: getattr_static(self, each) for each in super().__dir__()}
        return [each for each, value in found.items() if not (hasattr(value, "lacks") and value.lacks(caller))]


class TensorNames(_Names):
    """The names that tensors of other libraries have."""

    __slots__ = ()


class ModuleNames(_Names):
    """The names that modules of PyTorch have."""


def hint_at_functions(room: dict[str, Any], names: Iterable[str]) -> None:
    """Give methods that tensors lack a hint: `x.acos()` at the function, and `x.exp_()` at a write in place."""
    for name in names:
        if getattr(room[name], "__code__", hint_at_functions.__code__).co_varnames[0] == "x":
            for method, hint in ((name, f"mg.{name}(x)"), (f"{name}_", f"x[...] = mg.{name}(x)")):
                if method not in vars(TensorNames):
                    setattr(TensorNames, method, Absent("x", method, hint))


for _place, _name in absent_names():
    setattr({"x": TensorNames, "model": ModuleNames}[_place], _name, Absent(_place, _name))
