"""Guards: they check, before each run, that everything that a traced function reads by name is unchanged.

A trace uses the values of names, attributes and list entries at the time of tracing.  A guard notes the values of one
place that the function can reach by name, and compares them before each run.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from itertools import count, repeat
from operator import is_, itemgetter, length_hint
from typing import Any

import numpy as np

from ...core.tensor import Tensor

SIMPLE = (int, float, complex, str, bytes, bool, type(None))
COMPARED = {*SIMPLE, types.MethodType, types.BuiltinMethodType}  # exact classes: a subclass may define any `==`
MISSING = object()
LARGE, MANY = 1 << 20, 20_000  # bytes and entries at one place: comparing so many takes about 100 microseconds
Reader = Callable[[Any], dict[Any, Any]]


class Guard:
    """One place that holds values: a closure cell, some globals, the attributes of an object, a list or a dict.

    `held` and `entries` are the values and their number at the last check: mostly the same objects are still there,
    which is quick to see.  In a `part` of a place only the noted entries count.  A place that is neither a list nor a
    dict has a `reader` that makes a dict of it.
    """

    __slots__ = ("entries", "held", "name", "part", "place", "reader", "values")

    def __init__(
        self, name: str, place: Any, values: dict[Any, Any], part: bool = False, reader: Reader | None = None
    ) -> None:
        self.name, self.place, self.values, self.part, self.reader = name, place, values, part, reader
        self.held, self.entries = self._look()

    def _look(self) -> tuple[list[Any], int | None]:
        now = self.current()
        partly = self.part or self.reader is not None or isinstance(self.place, types.CellType)
        return [now.get(key, MISSING) for key in self.values], None if partly else len(self.place)

    def holds(self) -> bool:
        """Whether nothing has changed."""
        place = self.place
        if self.reader is not None:
            now = self.reader(place)
            same = len(now) == len(self.values) and all(map(is_, map(now.get, self.values, repeat(MISSING)), self.held))
        elif place.__class__ is types.CellType:
            same = content(place) is self.held[0]
        elif self.entries is not None and len(place) != self.entries:
            same = False
        else:
            here = place if isinstance(place, list) else map(place.get, self.values, repeat(MISSING))
            same = all(map(is_, here, self.held))
        if same:
            return True
        seen = self._look()  # before the comparison, so that a change by another thread is found the next time
        if self.change() is not None:
            return False
        self.held, self.entries = seen
        return True

    def current(self) -> dict[Any, Any]:
        """The values that are there now."""
        place = self.place
        if self.reader is not None:
            return self.reader(place)
        if isinstance(place, types.CellType):
            return {"": content(place)}
        if isinstance(place, list):
            return dict(enumerate(place))
        if self.part:
            return {name: place.get(name, MISSING) for name in self.values}
        return place  # type: ignore[no-any-return]

    def change(self) -> str | None:
        """The first change since the guard was made, in words, or None."""
        values, now = self.values, self.current()
        if len(now) != len(values):
            new = next((key for key in now if key not in values), None)
            which = "" if new is None else f", {new!r} among them"
            return f"{self.name}: {len(values)} entries became {len(now)}{which}"
        for key, value in values.items():
            new = now.get(key, MISSING)
            if new is not value and not _same(new, value):
                was, found = _short(value), _short(new)
                found = found.replace("a ", "another ", 1) if found == was else found
                return f"{join(self.name, key)} was {was} and is {found}"
        return None


class OrderGuard(Guard):
    """The entries of a user's dict, and their order, because the function may iterate over it."""

    __slots__ = ()

    def holds(self) -> bool:
        place = self.place
        if len(place) == self.entries and place.__class__ is dict:  # in a subclass, a lookup could run the user's code
            if all(map(is_, place, self.values)) and all(map(is_, place.values(), self.held)):
                return True
        return (super().holds() and all(map(is_, self.place, self.values))) or self.change() is None

    def change(self) -> str | None:
        found = super().change()
        if found is None and list(self.place) != list(self.values):
            return f"{self.name}: its entries are in another order"
        return found


class FunctionGuard(Guard):
    """The code and the defaults of a function."""

    __slots__ = ()

    def __init__(self, name: str, function: Any) -> None:
        super().__init__(name, function, _parts_of_function(function), reader=_parts_of_function)

    def holds(self) -> bool:
        function, (code, defaults, named) = self.place, self.held
        if function.__code__ is code and function.__defaults__ is defaults and function.__kwdefaults__ is named:
            return True
        return super().holds()


def _parts_of_function(function: Any) -> dict[str, Any]:
    defaults, named = function.__defaults__, function.__kwdefaults__
    return {"__code__": function.__code__, "__defaults__": defaults, "__kwdefaults__": named}


class AttributeGuard(Guard):
    """The attributes of an object, a class or a module, or the globals, that the code can read.

    `settle` is called once all names that the code reads are known.  An attribute counts if the code reads its name, or
    if its value is of one of the `types`: minigrad reads all tensors that a module holds.  An attribute that is read
    and missing must stay missing.
    """

    __slots__ = ("absent", "get", "ignored", "keys", "loose", "names", "types")

    def __init__(
        self, name: str, place: Any, reader: Reader | None = None, ignored: tuple[str, ...] = (),
        types: tuple[type, ...] = (), names: frozenset[str] = frozenset(),
    ) -> None:
        self.absent: frozenset[str] = frozenset()
        self.keys: frozenset[Any] = frozenset()  # with `types`: all attributes, because new ones may count
        self.loose: tuple[Any, ...] = ()  # the attributes that count only if they get a value of these types
        self.get: Any = None
        self.ignored, self.types, self.names = ignored, types, names
        super().__init__(name, place, {}, part=True, reader=reader)

    @property
    def attributes(self) -> Any:
        """All attributes now."""
        return self.place if self.reader is None else self.reader(self.place)

    def follows(self, key: Any, value: Any) -> bool:
        """Whether an attribute counts because of its type."""
        if not self.types or key in self.ignored or _is_special(key):
            return False
        return issubclass(type(value), self.types)

    def settle(self, names: set[str], cache: dict[Any, frozenset[str]]) -> None:
        """Note the attributes that count when code reads these names and those of the guard."""
        now, ignored = dict(self.attributes), self.ignored
        read = names | self.names if self.names else names
        self.values = {k: v for k, v in now.items() if k not in ignored and (k in read or self.follows(k, v))}
        kind = self.names, tuple(self.values), tuple(ignored), len(names)
        absent = cache.get(kind)
        if absent is None:
            absent = cache[kind] = frozenset(read.difference(self.values, ignored))
        self.absent = absent
        self.get = itemgetter(*self.values) if len(self.values) > 1 else None
        self._note(now)

    def _note(self, now: dict[Any, Any]) -> None:
        self.held = [now.get(key, MISSING) for key in self.values]
        if self.types:
            self.keys = frozenset(now)
            others = self.keys.difference(self.values, self.ignored)
            self.loose = tuple([key for key in others if not _is_special(key)])

    @property
    def is_empty(self) -> bool:
        """Whether nothing here could change the trace."""
        return not (self.values or self.absent or self.types)

    def holds(self) -> bool:
        now = self.place if self.reader is None else self.reader(self.place)
        keys = now.keys()
        if keys == self.keys if self.types else keys.isdisjoint(self.absent):
            try:
                here = map(now.get, self.values, repeat(MISSING)) if self.get is None else self.get(now)
                if all(map(is_, here, self.held)) and not (self.loose and self._tightened(now)):
                    return True
            except KeyError:
                pass
        seen = dict(now)  # before the comparison, as above
        if self.change() is not None:
            return False
        self._note(seen)
        return True

    def _tightened(self, now: Any) -> bool:
        return any(issubclass(type(now.get(key)), self.types) for key in self.loose)

    def current(self) -> dict[Any, Any]:
        values, absent = self.values, self.absent
        return {k: v for k, v in dict(self.attributes).items() if k in values or k in absent or self.follows(k, v)}

    def change(self) -> str | None:
        values, now = self.values, self.current()
        new = next((key for key in now if key not in values), None)
        if new is not None:
            return f"{self.name}: {new!r} was missing and is {_short(now[new])}"
        return super().change()


def _is_special(key: Any) -> bool:
    return isinstance(key, str) and key.startswith("__") and key.endswith("__")


class ContentGuard:
    """The values in a user's object: `holds()` compares them, and `says()` names the change in words."""

    __slots__ = ("holds", "name", "says", "size")

    def __init__(self, name: str, holds: Callable[[], bool], says: Callable[[], str], size: int = 0) -> None:
        self.name, self.holds, self.says = name, holds, says
        self.size = size  # bytes that are compared

    def change(self) -> str | None:
        """The change, in words, or None."""
        return None if self.holds() else self.says()


def array_guard(name: str, array: Any) -> ContentGuard:
    """A guard on the values in a NumPy array, and its shape and dtype."""
    fixed, shape, dtype = _is_fixed(array), array.shape, array.dtype
    before: Any = None if fixed else _words(array).copy()

    def holds() -> bool:
        same = _is_fixed(array) if fixed else np.array_equal(_words(array), before)
        return same and array.dtype is dtype and array.shape == shape

    def says() -> str:
        for what, was, found in (("shape", shape, array.shape), ("dtype", dtype, array.dtype)):
            if was != found:
                return f"{name}.{what} was {was} and is {found}"
        return (
            f"the array {name} can be written (it was read-only)" if fixed else
            f"values in the array {name} have changed (as an argument it may change)"
        )

    return ContentGuard(name, holds, says, 0 if fixed else array.nbytes)


def buffer_guard(name: str, value: Any) -> ContentGuard:
    """A guard on the memory of an `array.array`, a `memoryview`, a `bytearray` ..."""
    before = _memory(value)
    says = f"the content of {name}, a {type(value).__name__}, has changed (as an argument it may change)"
    return ContentGuard(name, lambda: _memory(value) == before, lambda: says, len(before[-1]))


def alive_guard(name: str, reference: Any) -> ContentGuard:
    """A guard on whether the target of a weak reference exists."""
    gone = reference() is None
    return ContentGuard(name, lambda: (reference() is None) is gone, lambda: f"the target of {name} was deleted")


def state_guard(name: str, source: Any) -> Any:
    """A guard against drawing numbers from a generator that is not minigrad's, and against advancing an iterator.

    None if the position of the iterator cannot be read.
    """
    before, kind = _state(source), f"{type(source).__module__}.{type(source).__name__}".removeprefix("builtins.")
    steps = hasattr(source, "__next__")
    why = "its values differ between calls" if steps else "mg.random draws new numbers in each run"
    says = f"the state of {name}, a {kind}: {why}"
    return None if before is None else ContentGuard(name, lambda: _state(source) == before, lambda: says)


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


AnyGuard = Guard | ContentGuard


def burden(guards: Iterable[AnyGuard]) -> list[str]:
    """The places where so much is compared that each call takes noticeably longer, in words."""
    found = []
    for guard in guards:
        if isinstance(guard, ContentGuard):
            found += [f"{guard.name}, {guard.size / 1e6:.0f} MB"] if guard.size > LARGE else []
        elif len(guard.values) > MANY:
            found.append(f"{guard.name}, {len(guard.values):,} entries")
    return found


def changed(guards: Iterable[AnyGuard]) -> str | None:
    """The first change, in words, or None."""
    for guard in guards:
        if not guard.holds():
            return guard.change()
    return None


def _state(source: Any) -> Any:
    if hasattr(source, "__next__"):
        left = length_hint(source, -1)
        return repr(source) if isinstance(source, count) else None if left < 0 else left
    if hasattr(source, "bit_generator"):
        source = source.bit_generator
    if hasattr(source, "state"):
        return repr(source.state)
    return repr(source.get_state() if hasattr(source, "get_state") else source.getstate())


def content(cell: types.CellType) -> Any:
    """The value in a closure cell."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _same(new: Any, old: Any) -> bool:
    if type(new) is not type(old):
        return False
    if issubclass(type(new), (float, complex)):  # not `isinstance`: `__class__` may be computed, and raise
        return repr(new) == repr(old)  # nan equals nan, and 0.0 differs from -0.0
    if issubclass(type(new), np.generic):
        return new.tobytes() == old.tobytes()
    return type(new) in COMPARED and bool(new == old)


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
