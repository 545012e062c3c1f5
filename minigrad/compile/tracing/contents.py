"""Reads objects and code for the walk over names: what a function can reach from the names that its instructions have.

The names of attributes and globals are in the instructions of code.  `getattr(x, "name")` reads the attribute like
`x.name`.  With a name that is not a constant, or with `vars`, `eval` and similar functions, the code may read any
attribute.  Objects have contents: the entries of containers, attributes, and the parts of functions.
"""

from __future__ import annotations

import dis
import functools
import io
import re
import sys
import types
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.tensor import Tensor
from ...core.tree import REGISTRY
from ...support.origin import is_foreign_class, is_ours
from .guards import MISSING, EntriesGuard, Guard, ListGuard, PartsGuard, own_dict
from .signature import slots_of

GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
BY_NAME = ("getattr", "hasattr", "setattr", "delattr")  # their second argument is the name of an attribute
FACTORIES = ("attrgetter", "methodcaller")
ANY_ATTRIBUTE = ("vars", "dir", "eval", "exec", "compile")
ANY_GLOBAL = ("globals", "eval", "exec")
ATTRIBUTES = ("__dict__", "__getattribute__", "__match_args__")  # attributes that give access to all others
IMPORTERS = ("import_module", "__import__", "modules")  # the last is that of `sys`


class Reads(NamedTuple):
    """What a code object, and the functions in it, can read."""

    names: frozenset[str]  # of attributes
    globals: frozenset[str]
    imports: frozenset[tuple[str, int]]  # modules, with the level of a relative import; "" if a name may be computed
    computed: frozenset[str]  # builtin functions that are called with a name that is not a constant
    anything: bool  # whether it reads attributes without their names


@lru_cache(maxsize=4096)
def reads(code: types.CodeType) -> Reads:
    """What code can read."""
    steps = list(dis.get_instructions(code))
    found = {step.argval for step in steps if step.opname in GLOBAL}
    others = {step.argval for step in steps if step.opname not in GLOBAL and step.argval.__class__ is str}
    names = others.intersection(code.co_names) | {name for name in code.co_names if name not in found}
    strings = _strings(code.co_consts)
    imports = {(s.argval, _level(steps, i)) for i, s in enumerate(steps) if s.opname == "IMPORT_NAME"}
    computed = {name for name in (*ANY_ATTRIBUTE, *ANY_GLOBAL) if name in found}
    for i, step in enumerate(steps):
        if step.opname in GLOBAL and step.argval in BY_NAME:
            name = _second_argument(steps, i)
            if name is None:
                computed.add(step.argval)
            else:
                names.add(name)
    if not {*found, *names}.isdisjoint(FACTORIES):
        names.update(part for string in strings for part in string.split("."))
        computed.update(set() if strings else {"getattr"})
    if not names.isdisjoint(("format", "format_map")):
        names.update(re.findall(r"\.(\w+)", " ".join(strings)))  # of the fields in "{0.name}"
    if not {*found, *names}.isdisjoint(IMPORTERS):
        imports.update((string, 0) for string in strings or ("",))
    matches = [step for step in steps if step.opname == "MATCH_CLASS"]
    if matches:
        names.update(strings)
    anything = not names.isdisjoint(ATTRIBUTES) or any(step.arg for step in matches)
    inner = [reads(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    return Reads(
        frozenset(names).union(*[each.names for each in inner]),
        frozenset(found).union(*[each.globals for each in inner]),
        frozenset(imports).union(*[each.imports for each in inner]),
        frozenset(computed).union(*[each.computed for each in inner]),
        anything or any(each.anything for each in inner),
    )


def all_codes(code: types.CodeType) -> list[types.CodeType]:
    """A code object, and those inside it."""
    return [code, *[c for part in code.co_consts if isinstance(part, types.CodeType) for c in all_codes(part)]]


def _strings(constants: Sequence[object]) -> set[str]:
    """The strings among constants, and in tuples of them."""
    found = {part for part in constants if isinstance(part, str)}
    return found.union(*[_strings(part) for part in constants if isinstance(part, tuple)])


def _level(steps: list[dis.Instruction], i: int) -> int:
    """The level of an import, which is pushed on the stack before the names."""
    level = next((s.argval for s in reversed(steps[:i]) if s.argval.__class__ is int), 0)
    return level if level.__class__ is int and level >= 0 else 0


def _second_argument(steps: list[dis.Instruction], at: int) -> str | None:
    """The second argument of the call of the function that is pushed at `at`, if it is a constant."""
    depths: list[int] = []  # of the stack above the function, before each instruction
    depth, first = 0, at + 1
    if steps[first].opname == "PUSH_NULL":
        first += 1
    for i in range(first, len(steps)):
        step = steps[i]
        effect = dis.stack_effect(step.opcode, step.arg, jump=False)
        if step.opname in ("PRECALL", "CALL") and depth + effect <= 0:
            return _constant(steps[first:i], depths, step.arg or 0)
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs or step.opname == "CALL_FUNCTION_EX":
            return None
        depths.append(depth)
        depth += effect
    return None


def _constant(steps: list[dis.Instruction], depths: list[int], arguments: int) -> str | None:
    """The second of the arguments that these instructions push, if it is a constant string."""
    place = len(steps) - 1  # of the instruction that ends the second argument
    if arguments == 3 and 2 in depths:
        place = len(depths) - 2 - depths[::-1].index(2)
    if arguments not in (2, 3) or place < 0 or depths[place] != 1 or steps[place].opname != "LOAD_CONST":
        return None
    name = steps[place].argval
    return name if isinstance(name, str) else None


# Objects --------------------------------------------------------------------------------------------------------------


OPAQUE = (Tensor, types.MethodType, io.IOBase, types.CodeType, np.generic, np.dtype)
# The objects of these hold only caches, unless their class names its `caches`: then the rest counts.
ROOMS = tuple(f"minigrad.{room}" for room in ("core", "devices", "ops", "autodiff", "compile", "eager"))
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
HELD = (Tensor, list, tuple, dict)  # attributes of a module that minigrad reads, whatever their names
WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
PLAIN = ("types", "argparse", "collections", "_thread")  # modules of Python whose objects hold users' values
PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (  # of objects that cannot change
    (types.MethodType, ("__func__", "__self__")),
    ((functools.partial, functools.partialmethod), ("func", "args", "keywords")),
    (property, ("fget", "fset", "fdel")),
    ((classmethod, staticmethod), ("__func__",)),
    (functools.cached_property, ("func",)),
    (np.flatiter, ("base",)),
)
CHANGED: tuple[tuple[Any, tuple[str, ...]], ...] = (  # parts that can change, and are not in a dict
    (functools.partial, ("func", "args", "keywords")), (defaultdict, ("default_factory",)), (BaseException, ("args",)),
)
WRAPPERS = (property, classmethod, staticmethod, functools.cached_property)


class Kind:
    """Which parts of a class's objects the walk follows.  The attributes in `read` count in any case."""

    def __init__(self, cls: type, read: Iterable[str] = ()) -> None:
        self.cls = cls
        library = [base for base in cls.__mro__ if is_ours(base.__module__)]
        caches = getattr(cls, "caches", ()) if library else ()
        names = [_names_in_module(base.__module__) for base in library]
        names += [_names_in_class(base) for base in cls.__mro__ if base.__module__ == "collections"]
        self.looked_into = hasattr(cls, "caches") or not str(cls.__module__).startswith(ROOMS)
        self.users = cls is object or not is_foreign_class(cls) or cls.__module__ in PLAIN
        self.types = (*HELD, *REGISTRY) if library else ()
        self.names: frozenset[str] = frozenset(read).union(*names)  # that the code of its bases reads
        self.ignored = tuple(name for name in caches if name != "_hooks")  # caches, except hooks, which are called
        self.slots = slots_of(cls)
        # whether its objects may get another class
        theirs = is_ours(cls.__module__) or is_foreign_class(cls)
        self.reassigned = not theirs and "__weakref__" in dir(cls)


def contents(name: str, value: Any, kind: type) -> Iterator[Guard]:
    """Guards for the parts of an object that can change, and for the entries of a container."""
    for classes, names in CHANGED:
        if issubclass(kind, classes):
            yield PartsGuard(name, value, *names)
    if issubclass(kind, list):
        yield ListGuard(name, value)
    elif issubclass(kind, dict):
        yield EntriesGuard(name, value)
    else:
        for classes, reader in READERS:
            if issubclass(kind, classes):
                yield EntriesGuard(name, value, reader)
                return


def reached_from(value: Any, kind: type) -> list[Any]:
    """The parts of a value that cannot change."""
    for classes, names in PARTS:
        if issubclass(kind, classes):
            return [getattr(value, name) for name in names]
    if kind.__module__ == "operator":  # an attrgetter, a methodcaller
        made, given = value.__reduce__()
        return [*getattr(made, "args", ()), *getattr(made, "keywords", {}).values(), *given]
    if issubclass(kind, tuple):
        return list(value)
    if issubclass(kind, weakref.ref):
        return [value()]
    if issubclass(kind, WEAK):
        return [value.data]
    if issubclass(kind, weakref.ProxyTypes):
        return [_attribute(_attribute(value, "__init__"), "__self__")]
    if issubclass(kind, OPAQUE):
        return []
    return [_attribute(value, name) for name in ("__wrapped__", "__self__") if _has(value, kind, name)]


def _has(value: Any, kind: type, name: str) -> bool:
    """Whether an object has an attribute, without calling a `__getattr__` of another package or the user."""
    return is_ours(kind.__module__) or name in (own_dict(value) or ()) or any(name in vars(b) for b in kind.__mro__)


def _attribute(value: Any, name: str) -> Any:
    """An attribute of another package's object, which may raise anything when it is read."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def functions_in(values: list[Any]) -> list[Any]:
    """The functions among values, and in lists, tuples and dicts among them: callbacks given to a package."""
    inner = [list(v.values()) if type(v) is dict else v for v in values if type(v) in (list, tuple, dict)]
    return [part for parts in (values, *inner) for part in parts if issubclass(type(part), FUNCTIONS)]


def _members(values: Any) -> dict[Any, Any]:
    return dict(zip(values, values))


def _counted(values: Any) -> dict[Any, Any]:
    return dict(enumerate(values))


def _objects(values: Any) -> dict[Any, Any]:
    sizes = {f"shape[{axis}]": size for axis, size in enumerate(values.shape)}
    return {**sizes, **dict(enumerate(_flat(values.ravel().tolist())))}


def _flat(values: Any) -> Iterator[Any]:
    """The objects in an array; the records of a structured array come as new tuples, which are taken apart."""
    for value in values:
        if type(value) is tuple:
            yield from _flat(value)
        else:
            yield value


def _in_context(variable: ContextVar[Any]) -> dict[str, Any]:
    try:
        return {"": variable.get()}
    except LookupError:
        return {"": MISSING}


READERS: tuple[tuple[Any, Callable[[Any], dict[Any, Any]]], ...] = (
    ((set, frozenset, type({}.keys())), _members), ((deque, type({}.values())), _counted), (np.ndarray, _objects),
    ((types.MappingProxyType, type({}.items())), dict), (ContextVar, _in_context),
    ((io.StringIO, io.BytesIO), lambda file: {"": None if file.closed else file.getvalue()}),
)


def is_plain_iterator(kind: type, value: Any) -> bool:
    """Whether an object is an iterator whose position cannot be read: a generator, `iter(...)`, `itertools.count()`."""
    steps = any("__next__" in vars(base) for base in kind.__mro__) and is_foreign_class(kind)
    return steps and not issubclass(kind, (io.IOBase, Tensor, *weakref.ProxyTypes)) and own_dict(value) is None


@lru_cache(maxsize=1024)
def _names_in_module(name: str) -> frozenset[str]:
    values = [v for v in vars(sys.modules.get(name, object)).values() if getattr(v, "__module__", None) == name]
    classes = [value for value in values if isinstance(value, type)]
    return _names_in([*values, *[part for cls in classes for part in vars(cls).values()]])


@lru_cache(maxsize=1024)
def _names_in_class(cls: type) -> frozenset[str]:
    return _names_in(list(vars(cls).values()))


def _names_in(parts: list[Any]) -> frozenset[str]:
    """The names that functions among these parts of a library contain: those of attributes, and more, harmless ones."""
    found: set[str] = set()
    while parts:
        part = parts.pop()
        kind = type(part)
        if kind is str:
            found.add(part)  # `getattr` may read it
        elif kind is types.CodeType:
            found.update(part.co_names)
            parts += part.co_consts
        elif kind is types.FunctionType:
            parts += part.__code__, vars(part).get("__wrapped__")
        elif issubclass(kind, WRAPPERS):
            parts += reached_from(part, kind)
    return frozenset(filter(str.isidentifier, found))
