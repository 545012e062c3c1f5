"""What a traced function has read besides its arguments: if any of it changes, the trace no longer holds.

A trace sees the values of names, attributes and list entries as they are while it is recorded.  They are noted here,
for everything that can be reached from the function by name, and looked at again before each run.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import is_, itemgetter
from typing import Any

import numpy as np

from ...core.tensor import Tensor

SIMPLE = (int, float, complex, str, bytes, bool, type(None))
COMPARED = {*SIMPLE, types.MethodType, types.BuiltinMethodType}  # of what only looks like these, `==` may be anything
MISSING = object()
LARGE, MANY = 1 << 20, 20_000  # bytes and entries at one place, from which comparing them takes some 100 microseconds
Reader = Callable[[Any], dict[Any, Any]]


class Guard:
    """One place where values are held: a closure cell, some globals, the attributes of an object, a list or a dict.

    `held` and `entries` are what is there as of the last look: mostly it is the very same again, quickly seen.  Of a
    `part` of a place only the entries noted matter, and of what is neither a list nor a dict what `reader` makes of it.
    """

    __slots__ = ("entries", "held", "ignored", "name", "part", "place", "reader", "values")

    def __init__(
        self, name: str, place: Any, values: dict[Any, Any], ignored: tuple[str, ...] = (), part: bool = False,
        reader: Reader | None = None,
    ) -> None:
        self.name, self.place, self.values, self.ignored = name, place, values, ignored
        self.part, self.reader = part, reader
        self.held, self.entries = self._look()

    def _look(self) -> tuple[list[Any], int | None]:
        now = self.current()
        partly = self.part or self.reader is not None or isinstance(self.place, types.CellType)
        return [now.get(key, MISSING) for key in self.values], None if partly else len(self.place)

    def holds(self) -> bool:
        """Whether nothing is different."""
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
        seen = self._look()  # before it is compared: whatever another thread does meanwhile is found the next time
        if self.change() is not None:
            return False
        self.held, self.entries = seen
        return True

    def current(self) -> dict[Any, Any]:
        """What is held there now."""
        place = self.place
        if self.reader is not None:
            return self.reader(place)
        if isinstance(place, types.CellType):
            return {"": content(place)}
        if isinstance(place, list):
            return dict(enumerate(place))
        if self.part:
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
                return f"{join(self.name, key)} was {_short(value)} and is {_short(new)}"
        return None


class OrderGuard(Guard):
    """The entries of a dict of the user's, which may be gone through in their order."""

    __slots__ = ()

    def holds(self) -> bool:
        place = self.place
        if len(place) == self.entries and place.__class__ is dict:  # to look a key up could run the user's code
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
    """Those attributes of an object, a class, a module, or those globals, that the code can read.

    It is made before all names are known that the code reads: `settle` is called when they are.  An attribute counts if
    its name is read, or if its value is of one of the `types`: minigrad looks at all tensors that a module holds.  What
    is not there, and is read, must not appear.
    """

    __slots__ = ("absent", "get", "keys", "loose", "names", "types")

    def __init__(
        self,
        name: str,
        place: Any,
        reader: Reader | None = None,
        ignored: tuple[str, ...] = (),
        types: tuple[type, ...] = (),
        names: frozenset[str] = frozenset(),
    ) -> None:
        self.absent: frozenset[str] = frozenset()
        self.keys: frozenset[Any] = frozenset()  # all that are there, where new ones may count by their type
        self.loose: tuple[Any, ...] = ()  # those that do not count, for as long as they are not of these types
        self.get: Any = None
        self.types, self.names = types, names
        super().__init__(name, place, {}, ignored, part=True, reader=reader)

    @property
    def attributes(self) -> Any:
        """All attributes that are there now."""
        return self.place if self.reader is None else self.reader(self.place)

    def follows(self, key: Any, value: Any) -> bool:
        """Whether an attribute counts because of what it is."""
        if not self.types or key in self.ignored or _is_special(key):
            return False
        return issubclass(type(value), self.types)

    def settle(self, names: set[str], cache: dict[Any, frozenset[str]]) -> None:
        """Look at the attributes that count when code reads these names, and those that the guard was made with."""
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
        """Whether there is nothing that could change."""
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
        seen = dict(now)  # before it is compared: whatever another thread does meanwhile is found the next time
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
    """The values in something of the user's: `holds()` says whether none is different, `says` what is, in words."""

    __slots__ = ("holds", "name", "says", "size")

    def __init__(self, name: str, holds: Callable[[], bool], says: str, size: int = 0) -> None:
        self.name, self.holds, self.says = name, holds, says
        self.size = size  # how many bytes are compared

    def change(self) -> str | None:
        """What is different, in words, or None."""
        return None if self.holds() else self.says


def array_guard(name: str, array: Any) -> ContentGuard:
    """That the values in a NumPy array are what they were."""
    if _is_fixed(array):
        return ContentGuard(name, lambda: _is_fixed(array), f"the array {name} can be written (it was read-only)")
    before = _words(array).copy()
    says = f"values in the array {name} have changed (as an argument it may change)"
    return ContentGuard(name, lambda: np.array_equal(_words(array), before), says, array.nbytes)


def buffer_guard(name: str, value: Any) -> ContentGuard:
    """That what lies in the memory of an `array.array`, a `memoryview`, a `bytearray` ... is what it was."""
    before = _memory(value)
    says = f"the content of {name}, a {type(value).__name__}, has changed (as an argument it may change)"
    return ContentGuard(name, lambda: _memory(value) == before, says, len(before[-1]))


def alive_guard(name: str, reference: Any) -> ContentGuard:
    """That what a weak reference points to is still there, or is not."""
    gone = reference() is None
    return ContentGuard(name, lambda: (reference() is None) is gone, f"what {name} refers to is gone")


def state_guard(name: str, source: Any) -> ContentGuard:
    """That no number has been drawn from a generator of random numbers that is none of ours."""
    before, kind = _state(source), f"{type(source).__module__}.{type(source).__name__}"
    says = f"the state of {name}, a {kind}: mg.random draws new numbers in each run"
    return ContentGuard(name, lambda: _state(source) == before, says)


def _is_fixed(array: Any) -> bool:
    """Whether no array can write to this memory: it, and all that it looks at, are read-only."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)


def _words(array: Any) -> Any:
    """The memory of an array, in words as wide as fit: of these the fewest have to be compared."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint64 if flat.nbytes % 8 == 0 else np.uint8)


def _memory(value: Any) -> tuple[Any, ...]:
    """What lies in an object's memory.  The view of it ends here: while there is one, the object cannot grow."""
    try:
        with memoryview(value) as view:
            return view.format, view.shape, view.tobytes()
    except (ValueError, TypeError, BufferError):  # one that was closed or released
        return (b"",)


AnyGuard = Guard | ContentGuard


def burden(guards: Iterable[AnyGuard]) -> list[str]:
    """The places at which so much is compared that each call takes longer for it, in words."""
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


def _state(source: Any) -> str:
    if hasattr(source, "bit_generator"):
        source = source.bit_generator
    return repr(source.state if hasattr(source, "state") else (source.get_state if hasattr(source, "get_state") else
                                                              source.getstate)())


def content(cell: types.CellType) -> Any:
    """What a closure cell holds."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _same(new: Any, old: Any) -> bool:
    if type(new) is not type(old):
        return False
    if issubclass(type(new), (float, complex)):  # an object may lie about its class, or raise when it is read
        return repr(new) == repr(old)  # nan is itself, and 0.0 is not -0.0
    if issubclass(type(new), np.generic):
        return new.tobytes() == old.tobytes()
    return type(new) in COMPARED and bool(new == old)


def join(name: str, key: Any) -> str:
    """How a part of something is called in a message: `model.layers`, `layers[2]`, `the global scale`."""
    if isinstance(key, int):
        return f"{name}[{key}]"
    return str(key or name) if name == "global" else f"{name}.{key}" if key else name


def _short(value: Any) -> str:
    if value is MISSING:
        return "missing"
    if issubclass(type(value), Tensor):
        return f"a tensor {value.shape}"
    return repr(value) if type(value) in SIMPLE or issubclass(type(value), np.generic) else f"a {type(value).__name__}"
