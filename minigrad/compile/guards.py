"""What a traced function has read besides its arguments: if any of it changes, the trace no longer holds.

A trace sees the values of names, attributes and list entries as they are while it is recorded.  They are noted here,
for everything that can be reached from the function by name, and looked at again before each run.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from ..core.tensor import Tensor

SIMPLE = (int, float, complex, str, bytes, bool, type(None))
MISSING = object()
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
    ) -> None:  # fmt: skip
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
        return (super().holds() and all(map(is_, self.place, self.values))) or self.change() is None

    def change(self) -> str | None:
        found = super().change()
        if found is None and list(self.place) != list(self.values):
            return f"{self.name}: its entries are in another order"
        return found


class ContentGuard:
    """The values in something of the user's: `holds()` says whether none is different, `says` what is, in words."""

    __slots__ = ("holds", "name", "says")

    def __init__(self, name: str, holds: Callable[[], bool], says: str) -> None:
        self.name, self.holds, self.says = name, holds, says

    def change(self) -> str | None:
        """What is different, in words, or None."""
        return None if self.holds() else self.says


def array_guard(name: str, array: Any) -> ContentGuard:
    """That the values in a NumPy array are what they were."""
    before = _bytes(array).copy()
    says = f"values in the array {name} have changed (as an argument it may change)"
    return ContentGuard(name, lambda: np.array_equal(_bytes(array), before), says)


def state_guard(name: str, source: Any) -> ContentGuard:
    """That no number has been drawn from a generator of random numbers that is none of ours."""
    before, kind = _state(source), f"{type(source).__module__}.{type(source).__name__}"
    says = f"the state of {name}, a {kind}: mg.random draws new numbers in each run"
    return ContentGuard(name, lambda: _state(source) == before, says)


def _bytes(array: Any) -> Any:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


AnyGuard = Guard | ContentGuard


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
                                                              source.getstate)())  # fmt: skip


def content(cell: types.CellType) -> Any:
    """What a closure cell holds."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _same(new: Any, old: Any) -> bool:
    if type(new) is not type(old):
        return False
    if isinstance(new, (float, complex)):
        return repr(new) == repr(old)  # nan is itself, and 0.0 is not -0.0
    if isinstance(new, np.generic):
        return new.tobytes() == old.tobytes()
    return isinstance(new, (*SIMPLE, types.MethodType, types.BuiltinMethodType)) and bool(new == old)


def join(name: str, key: Any) -> str:
    """How a part of something is called in a message: `model.layers`, `layers[2]`, `the global scale`."""
    if isinstance(key, int):
        return f"{name}[{key}]"
    return str(key or name) if name == "global" else f"{name}.{key}" if key else name


def _short(value: Any) -> str:
    if value is MISSING:
        return "missing"
    if isinstance(value, Tensor):
        return f"a tensor {value.shape}"
    return repr(value) if isinstance(value, (*SIMPLE, np.generic)) else f"a {type(value).__name__}"
