"""Guards: what a trace depends on, as data.  They are compared before each run.

A trace uses the values of names, attributes and list entries at the time of tracing.  A guard has the name of one place
that the function can reach, a way to read it, and what was there.  `change` compares that with what is there now, and
describes the difference.  `quick` writes the same comparison as text, for the check of a recording: usually the same
objects are still there, and comparing objects is quick.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from operator import eq, is_, itemgetter, length_hint
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from .signature import CheckWriter

SIMPLE = (int, float, complex, str, bytes, bool, type(None))
COMPARED = {*SIMPLE, types.MethodType, types.BuiltinMethodType}  # exact classes: a subclass may define any `==`
MISSING = object()
LARGE, MANY = 1 << 20, 20_000  # bytes and entries at one place, whose comparison takes about 100 microseconds
Tensors = Sequence[Tensor]
Values = dict[Any, Any]
Reader = Callable[[Any], Any]


def same(new: Any, old: Any) -> bool:
    """Whether two values are equal for a trace: 1, 1.0 and True differ."""
    if type(new) is not type(old):
        return False
    if issubclass(type(new), (float, complex)):  # not `isinstance`: `__class__` may be computed, and raise
        return repr(new) == repr(old)  # nan equals nan, and 0.0 differs from -0.0
    if issubclass(type(new), np.generic):
        return new.tobytes() == old.tobytes()
    return type(new) in COMPARED and bool(new == old)


class Guard:
    """One place, and what was there when the function was traced: `values`, by name.

    `held` are the objects that were there at the last comparison.
    """

    reader: Reader  # from the place to what is there
    outdated = False  # whether the text of `quick` fails although nothing has changed: it should be written again
    ordered = False  # whether the order of the entries counts, because the function may iterate over them
    same: Callable[[Any, Any], bool] = staticmethod(same)

    def __init__(self, name: str, place: Any, values: Values | None = None) -> None:
        self.name, self.place = name, place
        self.values: Values = self.read(()) if values is None else values
        self.held = list(self.values.values())

    def read(self, arguments: Tensors) -> Values:
        """What is there now, in a call with these tensors as arguments."""
        return self.reader(self.place)  # type: ignore[no-any-return]

    def quick(self, writer: CheckWriter) -> list[str]:
        """Tests, as text, that are true only if nothing has changed."""
        return writer.compared(self)

    def change(self, arguments: Tensors = ()) -> str | None:
        """The first change since the function was traced, in words, or None."""
        values, now = self.values, self.read(arguments)
        if len(now) != len(values):
            return self.says_count(now)
        seen = [now.get(key, MISSING) for key in values]
        if not all(map(is_, seen, self.held)):
            for key, value, new in zip(values, values.values(), seen):
                if new is not value and not self.same(new, value):
                    return self.says(key, value, new)
            self.held = seen
        if self.ordered and list(now) != list(values):
            return f"{self.name}: its entries are in a different order"
        return None

    def says(self, key: Any, was: Any, found: Any) -> str:
        """A change of one entry, in words."""
        before, now = _short(was), _short(found)
        now = now.replace("a ", "another ", 1) if now == before else now
        return f"{join(self.name, key)} was {before} and is {now}"

    def says_count(self, now: Values) -> str:
        """A change of the number of entries, in words."""
        new = next((key for key in now if key not in self.values), None)
        which = "" if new is None else f", {new!r} among them"
        return f"{self.name}: {len(self.values)} entries became {len(now)}{which}"

    def burden(self) -> str | None:
        """How much is compared, in words, if each call takes noticeably longer."""
        return f"{self.name}, {len(self.values):,} entries" if len(self.values) > MANY else None

    def undo(self) -> None:
        """Put back what was there when the function was traced, where Python code can store something."""


def changed(guards: Iterable[Guard], arguments: Tensors = ()) -> str | None:
    """The first change, in words, or None."""
    for guard in guards:
        change = guard.change(arguments)
        if change is not None:
            return change
    return None


def undo(guards: Iterable[Guard]) -> None:
    """Put everything back that has changed: a trace that was refused leaves no tensors of its own behind."""
    for guard in guards:
        if guard.change():
            guard.undo()


class CellGuard(Guard):
    """The value in a closure cell."""

    reader = staticmethod(lambda cell: {"": content(cell)})

    def undo(self) -> None:
        if self.values[""] is MISSING:
            del self.place.cell_contents
        else:
            self.place.cell_contents = self.values[""]

    def quick(self, writer: CheckWriter) -> list[str]:
        if self.held[0] is MISSING:
            return super().quick(writer)
        return writer.same(self, [f"{writer.name(self.place)}.cell_contents"])


class PartsGuard(Guard):
    """Parts of an object that are not in its dict: the code and the defaults of a function, what a class inherits."""

    def __init__(self, name: str, place: Any, *parts: str) -> None:
        self.parts = parts
        super().__init__(name, place)

    def read(self, arguments: Tensors) -> Values:
        return {part: getattr(self.place, part) for part in self.parts}

    def look_at(self, *parts: str) -> None:
        """Guard more parts."""
        if parts:
            self.__init__(self.name, self.place, *self.parts, *parts)  # type: ignore[misc]

    def quick(self, writer: CheckWriter) -> list[str]:
        return writer.same(self, [f"{writer.name(self.place)}.{part}" for part in self.values])


class ClassGuard(Guard):
    """The class, and the dict of attributes, of the object of a weak reference: a guard keeps no object alive."""

    reader = staticmethod(lambda reference: {"__class__": type(reference()), "__dict__": own_dict(reference())})

    def quick(self, writer: CheckWriter) -> list[str]:
        cls, attributes = self.held
        if attributes is not None and cls.__getattribute__ is not object.__getattribute__:
            return super().quick(writer)
        entries = [f"type(o := {writer.name(self.place)}())"]
        return writer.same(self, entries if attributes is None else [*entries, "o.__dict__"])


class ListGuard(Guard):
    """The entries of a list."""

    reader = staticmethod(lambda place: dict(enumerate(place)))

    def undo(self) -> None:
        self.place[:] = self.values.values()

    def quick(self, writer: CheckWriter) -> list[str]:
        place, count = writer.name(self.place), len(self.values)
        return [f"len({place}) == {count}", *writer.same(self, [f"{place}[{i}]" for i in range(count)], place)]


class EntriesGuard(Guard):
    """The entries of a user's dict, and their order; or those that `reader` finds in another container."""

    ordered = True

    def __init__(self, name: str, place: Any, reader: Reader = dict) -> None:
        self.reader = reader
        super().__init__(name, place)

    def quick(self, writer: CheckWriter) -> list[str]:
        if type(self.place) is not dict:  # in a subclass, a lookup could run the user's code
            return super().quick(writer)
        place, keys = writer.name(self.place), writer.name(tuple(self.values))
        entries = f"all(map(is_, {place}.values(), {writer.name(self)}.held))"
        return [f"len({place}) == {len(self.values)}", f"all(map(is_, {place}, {keys}))", entries]

    def undo(self) -> None:
        if self.reader is dict:
            self.place.clear()
            self.place.update(self.values)


class AttributeGuard(Guard):
    """The attributes of an object, a class or a module, or the globals, that the code can read.

    `settle` is called once all names that the code reads are known.  An attribute counts if the code reads its name, or
    if its value is of one of the `types`: minigrad reads all tensors that a module holds.  An attribute that is read
    and missing must stay missing.
    """

    def __init__(
        self, name: str, place: Any, reader: Reader | None = None, ignored: tuple[str, ...] = (),
        types: tuple[type, ...] = (), names: frozenset[str] = frozenset(),
    ) -> None:
        self.all_of, self.ignored, self.types, self.names = reader, ignored, types, names
        self.absent: frozenset[str] = frozenset()
        self.written: tuple[Any, ...] | None = None  # the names of all attributes when `quick` wrote its tests
        super().__init__(name, place, {})

    @property
    def attributes(self) -> Any:
        """All attributes now."""
        return self.place if self.all_of is None else self.all_of(self.place)

    def follows(self, key: Any, value: Any) -> bool:
        """Whether an attribute counts because of its type."""
        if not self.types or key in self.ignored or _is_special(key):
            return False
        return issubclass(type(value), self.types)

    def settle(self, names: Iterable[str], cache: dict[Any, frozenset[str]]) -> None:
        """Note the attributes that count when code reads these names and those of the guard."""
        ignored, read = self.ignored, self.names.union(names)
        now = dict(self.attributes)
        self.values = {k: v for k, v in now.items() if k not in ignored and (k in read or self.follows(k, v))}
        kind = self.names, tuple(self.values), ignored, len(read)
        absent = cache.get(kind)
        if absent is None:
            absent = cache[kind] = frozenset(read.difference(self.values, ignored))
        self.absent, self.held = absent, list(self.values.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing here could change the trace."""
        return not (self.values or self.absent or self.types)

    def read(self, arguments: Tensors) -> Values:
        values, absent = self.values, self.absent
        return {k: v for k, v in dict(self.attributes).items() if k in values or k in absent or self.follows(k, v)}

    def undo(self) -> None:
        if isinstance(self.place, dict):  # that of a class cannot be written
            for new in self.read(()).keys() - self.values:
                del self.place[new]
            self.place.update(self.values)

    def quick(self, writer: CheckWriter) -> list[str]:
        if self.all_of is not None:
            return super().quick(writer)
        place, tests = writer.name(self.place), list[str]()
        if self.types:  # all attributes, because new ones may count
            now = dict(self.place)
            loose = [k for k in now if k not in self.values and k not in self.ignored and not _is_special(k)]
            if any(self.follows(key, now[key]) for key in loose):
                return super().quick(writer)
            self.written = tuple(now)
            tests = [f"tuple({place}) == {writer.name(self.written)}"]
            tests += [f"type({place}[{key!r}]) is {writer.name(type(now[key]))}" for key in loose]
        elif self.absent:
            tests = [f"{place}.keys().isdisjoint({writer.name(self.absent)})"]
        every = f"{writer.name(itemgetter(*self.values))}({place})" if len(self.values) > 1 else ""
        return [*tests, *writer.same(self, [f"{place}[{key!r}]" for key in self.values], every)]

    @property
    def outdated(self) -> bool:  # type: ignore[override]
        return self.written is not None and self.written != tuple(self.place)

    def says_count(self, now: Values) -> str:
        new = next((key for key in now if key not in self.values), None)
        return super().says_count(now) if new is None else f"{self.name}: {new!r} was missing and is {_short(now[new])}"


def _is_special(key: Any) -> bool:
    return isinstance(key, str) and key.startswith("__") and key.endswith("__")


class ContentGuard(Guard):
    """What `reader` makes of an object, compared as a whole; `words` name a change."""

    same = staticmethod(eq)

    def __init__(self, name: str, place: Any, content: Reader, words: str) -> None:
        self.reader, self.words = lambda place: {"": content(place)}, words
        super().__init__(name, place)

    def says(self, key: Any, was: Any, found: Any) -> str:
        return self.words

    def burden(self) -> str | None:
        memory = self.values[""]
        return _megabytes(self.name, len(memory[-1]) if isinstance(memory, tuple) else 0)


class ArrayGuard(Guard):
    """The values in a NumPy array, and its shape and dtype."""

    def __init__(self, name: str, array: Any) -> None:
        self.fixed = _is_fixed(array)
        super().__init__(name, array)
        if not self.fixed:
            self.values["values"] = self.values["values"].copy()

    def read(self, arguments: Tensors) -> Values:
        array = self.place
        values = None if self.fixed and _is_fixed(array) else _words(array)
        return {"shape": array.shape, "dtype": array.dtype, "values": values}

    def same(self, new: Any, old: Any) -> bool:  # type: ignore[override]
        """Whether two shapes, dtypes or contents are equal."""
        if isinstance(new, np.ndarray):
            return isinstance(old, np.ndarray) and np.array_equal(new, old)
        return bool(new == old)

    def says(self, key: Any, was: Any, found: Any) -> str:
        if key != "values":
            return f"{self.name}.{key} was {was} and is {found}"
        if was is None:
            return f"the array {self.name} can be written (it was read-only)"
        return f"values in the array {self.name} have changed (as an argument it may change)"

    def burden(self) -> str | None:
        return _megabytes(self.name, 0 if self.fixed else self.place.nbytes)


def _megabytes(name: str, size: int) -> str | None:
    return f"{name}, {size / 1e6:.0f} MB" if size > LARGE else None


def buffer_guard(name: str, value: Any) -> Guard:
    """A guard on the memory of an `array.array`, a `memoryview`, a `bytearray` ..."""
    words = f"the content of {name}, a {type(value).__name__}, has changed (as an argument it may change)"
    return ContentGuard(name, value, _memory, words)


def alive_guard(name: str, reference: Any) -> Guard:
    """A guard on whether the target of a weak reference exists."""
    return ContentGuard(name, reference, lambda it: it() is None, f"the target of {name} was deleted")


def state_guard(name: str, source: Any) -> Guard | None:
    """A guard against drawing numbers from a generator that is not minigrad's, and against advancing an iterator.

    None if the position of the iterator cannot be read.
    """
    kind, steps = f"{type(source).__module__}.{type(source).__name__}", hasattr(source, "__next__")
    why = "its values differ between calls" if steps else "mg.random draws new numbers in each run"
    words = f"the state of {name}, a {kind.removeprefix('builtins.')}: {why}"
    return None if _state(source) is None else ContentGuard(name, source, _state, words)


def _is_fixed(array: Any) -> bool:
    """Whether no array can write to this memory: the array and all its bases are read-only."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)


def _words(array: Any) -> Any:
    """The memory of an array as wide integers, which are faster to compare."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint64 if flat.nbytes % 8 == 0 else np.uint8)


def _memory(value: Any) -> tuple[Any, ...]:
    """The content of an object's memory.  The view is released at once: while it exists, the object cannot grow."""
    try:
        with memoryview(value) as view:
            return view.format, view.shape, view.tobytes()
    except (ValueError, TypeError, BufferError):  # closed or released
        return (b"",)


def _state(source: Any) -> Any:
    if isinstance(source, np.flatiter):
        return source.index
    if hasattr(source, "__next__"):
        left = length_hint(source, -1)
        return repr(source) if isinstance(source, count) else None if left < 0 else left
    if hasattr(source, "bit_generator"):
        source = source.bit_generator
    if hasattr(source, "state"):
        return repr(source.state)
    return repr(source.get_state() if hasattr(source, "get_state") else source.getstate())


def own_dict(value: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes, if it has one of its own; no code of its class runs."""
    try:
        found, again = [object.__getattribute__(value, "__dict__") for _ in range(2)]
    except Exception:
        return None
    return found if found is again and isinstance(found, dict) else None


def content(cell: types.CellType) -> Any:
    """The value in a closure cell."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def join(name: str, key: Any) -> str:
    """The name of a part in a message: `model.layers`, `layers[2]`, `the global scale`."""
    if isinstance(key, int):
        return f"{name}[{key}]"
    return str(key or name) if name == "global" else f"{name}.{key}" if key else name


def _short(value: Any) -> str:
    if value is MISSING:
        return "missing"
    if issubclass(type(value), Tensor):
        return f"a tensor {value.shape}"
    return repr(value) if type(value) in SIMPLE or issubclass(type(value), np.generic) else f"a {type(value).__name__}"
