"""The signature of a call: the kinds of its arguments, which a trace depends on, and the function that checks them.

Tensors' values may differ between calls.  Building a key, its look-up and a loop over guards take 5 µs; one function
that holds all comparisons takes 1 µs.  It can only confirm.  Where a comparison fails, or an argument has no short
comparison, the recording is looked up by its key, and the guards return what has changed.
"""

from __future__ import annotations

import enum
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from operator import is_
from typing import Any

import numpy as np

from ...core.mode import Mode
from ...core.tensor import NUMBERS, Tensor, as_tensor
from ...support.errors import ConversionError
from ...support.origin import is_foreign_class

PART = "a part of a tensor"  # how the memory of such a view is described
LITERALS = (int, bool, str, bytes, type(None))


class Alike:
    """A value in the kind of an argument.  It equals another if also their parts, or their texts, are the same.

    `==` alone does not distinguish Decimal("1.0") and Decimal("1.00"), or two objects whose class does not compare the
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


# The check of a recording ---------------------------------------------------------------------------------------------


Check = Callable[[Sequence[Any], dict[str, Any], Mode], "list[Tensor] | None"]
SHORT = 8  # entries that are compared one by one


class NoShortForm(Exception):
    """A part of a recording that has no short comparison."""


class CheckWriter:
    """Collects the comparisons, the values that they refer to, and the tensors among the arguments.

    The first comparisons are with the `key` of a recording: the kinds of its arguments.
    """

    def __init__(self, key: Any) -> None:
        self.values: dict[str, Any] = {"all": all, "map": map, "is_": is_, "id": id, "len": len, "repr": repr,
                                       "type": type, "tuple": tuple, "isinstance": isinstance, "copied": copied,
                                       "base_of_part": base_of_part}
        kinds, labels, tensors, grad, device = key
        self.tests = [f"mode.grad is {grad!r}", f"mode.device is {self.name(device)}"]
        self.tensors: list[str] = []
        self.owners: list[str] = []  # the tensors that own the memory of these
        self._arguments(kinds, labels, tensors)

    def name(self, value: Any) -> str:
        """A name for a value in the text of the function."""
        name = f"v{len(self.values)}"
        self.values[name] = value
        return name

    def function(self) -> Check:
        """The function: of the arguments and the mode, to the tensors among the arguments; None if one test fails."""
        tests = "\n        and ".join(self.tests)
        text = (
            "def check(args, kwargs, mode):\n    try:\n"
            f"        if ({tests}):\n            return [{', '.join(self.tensors)}]\n"
            "    except Exception:\n        pass  # an attribute or an entry is missing\n    return None\n"
        )
        exec(compile(text, "<check of a recording>", "exec"), self.values)
        return self.values.pop("check")  # type: ignore[no-any-return]  # popped: the function refers to `values`

    # arguments ------------------------------------------------------------------------------------------------------

    def _arguments(self, kinds: Sequence[Any], labels: Sequence[Any], tensors: Sequence[Any]) -> None:
        """Compare the kinds of the arguments, and those of the tensors among them."""
        names = tuple([label for label in labels if isinstance(label, str)])
        self.tests.append(f"len(args) == {len(labels) - len(names)}")
        self.tests.append(f"tuple(kwargs) == {names!r}" if names else "not kwargs")
        for label, kind in zip(labels, kinds):
            self._argument(f"kwargs[{label!r}]" if isinstance(label, str) else f"args[{label}]", kind)
        for name, kind in zip(self.tensors, tensors):
            self._tensor(name, kind)
        self._memory([memory for *_, memory in tensors])

    def _argument(self, value: str, kind: Any) -> None:
        if kind is Tensor or kind is np.ndarray:
            name = f"t{len(self.tensors)}"
            self.tensors.append(name)
            if kind is np.ndarray:
                self.tests.append(f"isinstance({value}, {self.name(kind)})")
                value = f"copied({value})"
            self.tests.append(f"({name} := {value}).__class__ is {self.name(Tensor)}")
            return
        cls, what = kind
        self.tests.append(f"type({value}) is {self.name(cls)}")
        if cls is dict:
            keys = [key for (_, key), _ in what]
            if any(type(key) is not str for key in keys):
                raise NoShortForm
            self.tests += [f"len({value}) == {len(keys)}", f"all(map(is_, {value}, {self.name(keys)}))"]
            for key, (_, part) in zip(keys, what):
                self._argument(f"{value}[{key!r}]", part)
        elif cls in (list, tuple) or hasattr(cls, "_make"):
            self.tests.append(f"len({value}) == {len(what)}")
            for number, part in enumerate(what):
                self._argument(f"{value}[{number}]", part)
        elif cls in LITERALS:
            self.tests.append(f"{value} == {what!r}")
        elif cls in (float, complex):
            self.tests.append(f"repr({value}) == {what!r}")
        elif type(what) is Alike:
            self.tests.append(f"{value} is {self.name(what.value)}")
        elif type(what) is int:
            self.tests.append(f"id({value}) == {what}")  # an object, which the recording keeps or watches
        else:
            raise NoShortForm

    def _tensor(self, name: str, kind: Any) -> None:
        shape, dtype, device, gradient, memory = kind
        if type(memory) is not int and not is_part(memory):
            raise NoShortForm
        self.tests += [
            f"({name}d := {name}._data).shape == {shape!r}", f"{name}d.dtype is {self.name(dtype)}",
            f"{name}.device is {self.name(device)}",
            f"({name}b := base_of_part({name})) is not None" if is_part(memory) else
            f"((a := {name}.alias) is None or a.base is None)",
            f"{name}.tracked" if gradient else f"not {name}.tracked",
        ]
        if gradient:
            self.tests.append(f"{name}.is_leaf is {gradient == 2}")

    def _memory(self, kinds: Sequence[Any]) -> None:
        """Compare which tensors are the same: no others share memory."""
        numbers = [kind[0] if is_part(kind) else kind for kind in kinds]
        self.owners = [f"{name}b" if is_part(kind) else name for name, kind in zip(self.tensors, kinds)]
        firsts = [owner for i, owner in enumerate(self.owners) if numbers[i] not in numbers[:i]]
        if len(firsts) > 1:
            ids = ", ".join([f"id({name})" for name in firsts])
            different = f"{firsts[0]} is not {firsts[1]}"
            self.tests.append(different if len(firsts) == 2 else f"len({{{ids}}}) == {len(firsts)}")
        for i, name in enumerate(self.tensors):
            first = self.tensors[list(numbers).index(numbers[i])]
            if first != name:
                self.tests.append(f"{name} is {first}")

    # guards ---------------------------------------------------------------------------------------------------------

    def same(self, guard: Any, entries: Sequence[str], every: str = "") -> list[str]:
        """Compare entries with those that the guard holds: one by one, or by a loop over `every` entry.

        `held` may become another list, so it is read from the guard.
        """
        held = f"{self.name(guard)}.held"
        if len(entries) > SHORT:
            return [f"all(map(is_, {every}, {held}))"]
        return [f"{entry} is {'h' if number else f'(h := {held})'}[{number}]" for number, entry in enumerate(entries)]

    def compared(self, guard: Any) -> list[str]:
        """Let the guard itself compare."""
        given = "".join([f"{name}, " for name in self.tensors])
        return [f"{self.name(guard)}.change(({given})) is None"]
