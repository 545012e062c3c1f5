"""The walk over names: finds everything that a function can read by name, and makes a guard for each place.

The walk starts at the function and follows globals, closure cells and defaults.  Of objects, classes and modules it
follows the attributes whose names occur in code that it has reached, and it visits the entries of containers.  It does
not enter modules, classes and functions of other packages.  Of another package's object it follows the attributes that
the user's code names, and the user's functions.

Code that computes the name of an attribute (`getattr(x, name)`, `vars(x)`, `eval`) can read every attribute of the
user's objects, so all of them count.
"""

from __future__ import annotations

import abc
import array
import copy
import ctypes
import dataclasses
import functools
import inspect
import mmap
import operator
import random
import sys
import threading
import types
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core.override import overridable
from ...core.tree import REGISTRY
from ...support.errors import TraceError
from ...support.origin import is_foreign_class, is_foreign_function, is_foreign_module, is_our_file, is_ours
from .contents import OPAQUE, Kind, Reads, all_codes, contents, functions_in, is_plain_iterator, reached_from, reads
from .guards import (
    SIMPLE,
    ArrayGuard,
    AttributeGuard,
    CellGuard,
    ClassGuard,
    ContentGuard,
    Guard,
    PartsGuard,
    alive_guard,
    buffer_guard,
    content,
    join,
    own_dict,
    state_guard,
)
from .signature import held_in_slots

BUFFERS = (array.array, bytearray, memoryview, mmap.mmap, ctypes.Array, ctypes.Structure, ctypes._SimpleCData)
SOURCES = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
COMPILED = (types.BuiltinMethodType, type(np.random.default_rng))  # functions not written in Python; Cython's
FOLLOWED = (types.ModuleType, types.FunctionType, *COMPILED, types.MethodType, type)  # in other packages
UNREPEATED = ("random", "_random", "secrets", "uuid", "time", "datetime", "posix", "nt")  # results differ between calls
ANYTHING = (getattr, vars, dir, eval, exec, globals)  # as values, for `map` for example, they can read anything
READERS = [dataclasses.asdict, dataclasses.astuple, dataclasses.replace]  # they read all attributes
READERS += [copy.copy, copy.deepcopy, inspect.getmembers]
NAMED = ("__name__", "__qualname__", "__doc__", "__annotations__", "__module__")  # of functions and classes
UNCALLED = ("__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__dir__", "__class__")


# Methods that Python calls without their names: those of operators, their mirrors, and others.
IMPLICIT = {name for name, value in vars(operator).items() if name.startswith("__") and callable(value)}
IMPLICIT |= {name.replace("__", "__r", 1) for name in IMPLICIT}
IMPLICIT |= {
    f"__{name}__" for name in
    "bool len hash iter next reversed missing getattr getattribute enter exit int float str repr format class_getitem "
    "instancecheck subclasscheck get".split()
}
FUNCTIONS, MODULES, CLASSES = Kind(object, ("__wrapped__",)), Kind(object, ("__getattr__",)), Kind(object, IMPLICIT)


class Guards(list[Guard]):
    """The guards of a trace; those in `own` also check that the function itself changed nothing."""

    own: list[Guard]
    codes: set[types.CodeType]  # the user's code that the walk has read
    suspect: bool  # whether the function can run code that the walk does not reach
    later: bool  # whether it imports modules that are not imported yet


@overridable
def guards_of(*roots: Any, more: Iterable[tuple[types.CodeType, dict[str, Any]]] = ()) -> Guards:
    """Guards for everything that functions, objects, and `more` code with its globals, can read by name."""
    walk = NameWalk()
    for root in reversed(roots):
        walk.stack.append(("", root))
    for code, names in more:
        walk.code(code, names)
    walk.run()
    return walk.finish()


class NameWalk:
    """One walk: the values that are left to visit, and the guards so far."""

    def __init__(self) -> None:
        self.guards = Guards()
        self.guards.own, self.guards.codes, self.guards.suspect, self.guards.later = [], set(), False, False
        self.stack: list[tuple[str, Any]] = []  # name, value
        self.seen: dict[int, Any] = {}  # by id, with the values, so that the ids stay theirs
        self.names: set[str] = set()  # of the attributes that the code reads
        self.waiting: dict[str, list[tuple[str, Any, bool]]] = {}  # attributes not read yet; whether the user's
        self.modules: list[tuple[str, dict[str, Any]]] = []  # other packages' modules: name, entries
        self.attributes: list[tuple[AttributeGuard, bool]] = []  # the guards of attributes; whether the user's
        self.globals: dict[int, AttributeGuard] = {}  # by the id of the dict, as that of `sys.modules`
        self.classes: dict[int, type] = {}  # by id, because a metaclass may define `==`
        self.kinds: dict[int, Kind] = {}
        self.named: list[PartsGuard] = []  # of the user's functions and classes
        self.computed = False  # whether the code computes names, so that it can read every attribute
        self.certain = True  # whether the values visited now are read by name

    def run(self) -> None:
        """Visit all values that can be reached."""
        while self.stack or (self.computed and self.waiting):
            if not self.stack:
                self._release_all()
                continue
            name, value = self.stack.pop()
            if id(value) not in self.seen:
                self.seen[id(value)] = value
                self._visit(name, value)

    def _release_all(self) -> None:
        """Visit all attributes of users' objects, after those that are read by name."""
        self.certain = False
        for entries in self.waiting.values():
            self.stack += [(name, value) for name, value, users in entries if users]
        self.waiting.clear()

    def finish(self) -> Guards:
        """The guards, settled with the names that the code reads."""
        for parts in self.named:
            self._name(parts)
            self.run()  # which may append to `named`
        cache: dict[Any, frozenset[str]] = {}
        known = {id(guard) for guard in self.globals.values()}
        for guard, users in self.attributes:
            if self.computed and users:
                guard.types = (object,)
            guard.settle(set() if id(guard) in known else self.names, cache)
        if self.guards.suspect:  # another package may draw from it
            drawn = state_guard("numpy.random", np.random.mtrand._rand)
            self.guards.own += [drawn] if drawn else []
        self.guards[:] = [g for g in self.guards if not (isinstance(g, AttributeGuard) and g.is_empty)]
        return self.guards

    def _name(self, parts: PartsGuard) -> None:
        """Guard what code reads of a function or a class that is not in its dict: its name, and derived classes."""
        name, place = parts.name, parts.place
        parts.look_at(*[part for part in NAMED if part in self.names and hasattr(place, part)])
        self._push((name, parts.values.get("__annotations__")))
        if "__subclasses__" in self.names and isinstance(place, type):
            words = f"a class was derived from {name}"
            self.guards.append(ContentGuard(name, place, lambda cls: [*map(id, type.__subclasses__(cls))], words))
            derived: list[type] = type.__subclasses__(place)
            self._push(*[(each.__name__, each) for each in derived])

    # one value ------------------------------------------------------------------------------------------------------

    def _visit(self, name: str, value: Any) -> None:
        kind = type(value)
        if issubclass(kind, types.FunctionType):
            self._function(name, value)
        elif issubclass(kind, types.ModuleType):
            self._module(value)
        elif issubclass(kind, type):
            self._class_itself(value)
        elif issubclass(kind, SOURCES) or is_plain_iterator(kind, value):
            self._changing(name, value)
        elif issubclass(kind, np.ndarray) and not value.dtype.hasobject:
            self.guards.append(ArrayGuard(name, value))
            self._described(name, value, kind)
        elif issubclass(kind, BUFFERS):
            self.guards.append(buffer_guard(name, value))
        elif issubclass(kind, types.MethodType) and isinstance(value.__self__, SOURCES):
            self._push((name, value.__self__))
        elif issubclass(kind, COMPILED):
            self._builtin(value)
        else:
            self._object(name, value, kind)

    def _push(self, *entries: tuple[str, Any]) -> None:
        self.stack += [entry for entry in entries if type(entry[1]) not in SIMPLE]

    def _add(self, guard: Guard) -> None:
        """Add a guard, and visit the values that it checks."""
        self.guards.append(guard)
        held = [(key, value) for key, value in guard.values.items() if type(value) not in SIMPLE]
        self._push(*[(join(guard.name, key), value) for key, value in held])

    def _changing(self, name: str, value: Any) -> None:
        """A generator or an iterator, which returns another value each time."""
        kind = f"{type(value).__module__}.{type(value).__name__}"
        guard = None if isinstance(value, random.SystemRandom) else state_guard(name, value)
        if guard is not None:
            self.guards.own.append(guard)
            self._push(*[(name, part) for part in reached_from(value, type(value))])
        elif self.certain:
            raise TraceError(
                f"jit: the function reads {name}, a {kind.removeprefix('builtins.')}: its values differ between calls",
                expect="a trace runs the Python code once; the program does not run it",
                hint="take the next value outside, and pass it as an argument",
            )

    # code -----------------------------------------------------------------------------------------------------------

    def _function(self, name: str, function: types.FunctionType) -> None:
        self.computed |= function in READERS
        cells = list(zip(function.__code__.co_freevars, function.__closure__ or ()))
        ours = is_our_file(function.__code__.co_filename)
        if ours or is_foreign_function(function):  # follow the user's functions that it may call
            self._doubt(function.__globals__.get("__name__"))
            held = [content(cell) for _, cell in cells]
            self._push(*[(name, vars(function).get(part)) for part in ("__wrapped__", "registry")])  # of singledispatch
            self._push(*[(name, part) for part in held if ours and callable(part)])
            self._push(*[(name, part) for part in functions_in(held)])
            return
        name = name or function.__name__
        self.named.append(PartsGuard(name, function, "__code__", "__defaults__", "__kwdefaults__"))
        self._add(self.named[-1])
        self.code(function.__code__, function.__globals__)
        for free, cell in cells:
            self._add(CellGuard(free, cell))
        if vars(function):
            self._hold(name, vars(function))

    def _builtin(self, function: Any) -> None:
        """A function, or a bound method, that is not written in Python."""
        owner = getattr(function, "__self__", None)
        self.computed |= any(function is reader for reader in ANYTHING)
        if not isinstance(owner, SOURCES):  # whose state is looked at
            self._doubt(function.__module__ or type(owner).__module__)
        if owner is not None and not isinstance(owner, (types.ModuleType, type)):
            self._push(("", owner))

    def code(self, code: types.CodeType, names: dict[str, Any]) -> None:
        """Follow the names that users' code reads, with these globals."""
        self.guards.codes.update(all_codes(code))
        found = reads(code)
        self._read(found.names)
        guard = self._names("global", names, found.globals)
        self._push(*[(name, names[name]) for name in found.globals if name in names])
        builtin = {name for name in found.computed if name not in names}
        if builtin or found.anything:
            self.computed = self.guards.suspect = True
        if not builtin.isdisjoint(("globals", "eval", "exec")):
            guard.types = (object,)
            self._push(*[(str(key), value) for key, value in names.items() if guard.follows(key, value)])
        self._imports(found, names)

    def _names(self, name: str, place: dict[str, Any], read: frozenset[str]) -> AttributeGuard:
        """The guard of the names in a dict, which code reads."""
        guard = self.globals.get(id(place))
        if guard is None:
            guard = self.globals[id(place)] = AttributeGuard(name, place)
            self.guards.append(guard)
            self.attributes.append((guard, False))
        guard.names |= read
        return guard

    def _imports(self, found: Reads, names: dict[str, Any]) -> None:
        """Follow the modules that code imports when it runs."""
        imports = sorted(found.imports)
        if ("", 0) in imports:
            imports += [(name, 0) for name in list(sys.modules) if not is_foreign_module(name) and not is_ours(name)]
        for name, level in imports:
            if level:
                package = str(names.get("__package__") or names.get("__name__") or "")
                name = ".".join([*package.split(".")[: len(package.split(".")) + 1 - level], *([name] if name else [])])
            parts = name.split(".")
            for path in {name, parts[0]} | {".".join(parts[:i]) for i in range(1, len(parts))} - {""}:
                if path not in sys.modules:
                    self.guards.later = self.guards.suspect = True
                elif not is_foreign_module(path) and not is_ours(path):
                    self._names("sys.modules", sys.modules, frozenset((path,)))
                self._push(("", sys.modules.get(path)))

    def _read(self, names: Iterable[str]) -> None:
        new = set(names) - self.names
        self.names |= new
        for name in new.intersection(self.waiting):
            self._push(*[(called, value) for called, value, _ in self.waiting.pop(name)])
        for called, entries in self.modules:
            self._follow(new, called, entries)

    def _doubt(self, module: Any) -> None:
        """Note that code of this module may be called, which may do things that the walk does not find."""
        if isinstance(module, str) and is_foreign_module(module):
            root = module.partition(".")[0]
            harmless = root in sys.stdlib_module_names and root not in UNREPEATED
            if not harmless and (root != "numpy" or module.startswith("numpy.random")):
                self.guards.suspect = True

    # what has attributes --------------------------------------------------------------------------------------------

    def _hold(self, name: str, place: Any, reader: Any = None, kind: Kind = FUNCTIONS) -> None:
        """Guard a place with attributes: visit those that the code reads; the others wait until it does."""
        guard = AttributeGuard(name, place, reader, kind.ignored, kind.types, kind.names)
        self.guards.append(guard)
        self.attributes.append((guard, kind.users))
        for key, value in dict(guard.attributes).items():
            if key not in kind.ignored:
                now = key in kind.names or guard.follows(key, value)
                self._wait(key, join(name, key), value, kind.users, now)

    def _wait(self, key: Any, called: str, value: Any, users: bool, now: bool = False) -> None:
        if type(value) not in SIMPLE:
            if now or key in self.names:
                self._push((called, value))
            else:
                self.waiting.setdefault(key, []).append((called, value, users))

    def _described(self, name: str, value: Any, kind: type) -> None:
        """The attributes of an object, and those of its class."""
        known = self.kinds.get(id(kind))
        if known is None:
            known = self.kinds[id(kind)] = Kind(kind)
            self._of_kind(name, known)
        if known.looked_into:
            self._attributes(name or kind.__name__, value, known)
            if known.reassigned:
                self.guards.append(ClassGuard(name or kind.__name__, weakref.ref(value)))

    def _object(self, name: str, value: Any, kind: type) -> None:
        """Any other object: its entries if it is a container, its attributes, and those of its class."""
        if not issubclass(kind, OPAQUE):
            self._described(name, value, kind)
        for guard in contents(name, value, kind):
            self._add(guard)
            self._push(*[(guard.name, key) for key in guard.values if type(key) not in SIMPLE])
        if issubclass(kind, weakref.ref):
            self.guards.append(alive_guard(name, value))
        parts = reached_from(value, kind)
        if kind.__module__ == "operator":
            self._read([read for part in parts if isinstance(part, str) for read in part.split(".")])
        self._push(*[(name, part) for part in parts])

    def _of_kind(self, name: str, kind: Kind) -> None:
        """Follow what all objects of a class have in common."""
        cls = kind.cls
        self._doubt(cls.__module__)
        if kind.looked_into and not is_foreign_class(cls):
            self._class(cls, by_name=False)
            opened = [REGISTRY[base][0] for base in cls.__mro__ if base in REGISTRY and not is_ours(base.__module__)]
            self._push(*[(name, parts) for parts in opened])

    def _attributes(self, name: str, value: Any, kind: Kind) -> None:
        if issubclass(kind.cls, threading.local):  # with other attributes in each thread
            self._hold(name, value, vars, kind)
        elif (attributes := own_dict(value)) is not None:
            self._hold(name, attributes, None, kind)
            if not kind.users:
                self._push(*[(name, function) for function in functions_in(list(attributes.values()))])
        if kind.slots:
            self._hold(name, value, functools.partial(held_in_slots, kind.slots), kind)

    def _class_itself(self, cls: type) -> None:
        """A class as a value: its attributes and methods, and those of its metaclass."""
        self._doubt(cls.__module__)
        self._class(cls, by_name=True)
        self._class(type(cls), by_name=False)

    def _class(self, cls: type, by_name: bool) -> None:
        """The attributes of a class, and its methods that can be called without their names."""
        for base in cls.__mro__:
            if is_foreign_class(base) or is_ours(base.__module__):
                continue
            if id(base) not in self.classes:
                self.classes[id(base)] = base
                self._hold(base.__name__, vars(base), None, CLASSES)
                self.named.append(PartsGuard(base.__name__, base, "__mro__"))
                self.guards.append(self.named[-1])
                if isinstance(base, abc.ABCMeta):
                    words = f"a class was registered with {base.__name__}, or with another class"
                    self.guards.append(ContentGuard(base.__name__, base, lambda _: abc.get_cache_token(), words))
            called = [n for n in vars(base) if n.startswith("__") and callable(vars(base)[n])]
            called += [n for n in vars(base) if any(n in vars(b) for b in cls.__mro__ if b is not base)]
            skipped = UNCALLED if by_name else ("__init__", "__new__", "__init_subclass__", *UNCALLED)
            self._read([n for n in called if n not in skipped])

    def _module(self, module: types.ModuleType) -> None:
        entries = vars(module)
        name = str(entries.get("__name__"))
        if not (is_foreign_module(name) or is_ours(name)):
            self._hold(name, entries, None, MODULES)
            return
        if not name.startswith("numpy"):
            self._doubt(name)
        self.modules.append((name, entries))
        self._follow(self.names, name, entries)

    def _follow(self, read: Iterable[str], name: str, entries: dict[str, Any]) -> None:
        """Visit what code reads of another package's module: functions, classes and modules."""
        found = [(f"{name}.{key}", entries[key]) for key in read if key in entries]
        self._push(*[entry for entry in found if issubclass(type(entry[1]), FOLLOWED)])
