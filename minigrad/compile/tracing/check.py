"""Writes one Python function that checks whether a call fits a recording.

To build a key, look it up and loop over guards takes 5 µs; one function that holds all comparisons takes 1 µs.  It is
only a quick way to say yes: where a comparison fails, or a value has no short comparison, the recording is searched by
its key, and the guards say what has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any

import numpy as np

from ...core.mode import Mode
from ...core.tensor import Tensor
from .guards import AnyGuard, AttributeGuard, FunctionGuard, Guard
from .signature import LITERALS, Alike, base_of_part, copied, is_part

Check = Callable[[Sequence[Any], dict[str, Any], Mode], "list[Tensor] | None"]
SHORT = 8  # entries that are compared one by one


class NoShortForm(Exception):
    """A part of the kind of a call that has no short comparison."""


class CheckWriter:
    """Collects the comparisons, the values that they refer to, and the tensors among the arguments."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {"all": all, "map": map, "is_": is_, "id": id, "len": len, "repr": repr,
                                       "type": type, "tuple": tuple, "isinstance": isinstance, "copied": copied,
                                       "base_of_part": base_of_part}
        self.tests: list[str] = []
        self.tensors: list[str] = []

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

    def arguments(self, kinds: Sequence[Any], labels: Sequence[Any], tensors: Sequence[Any]) -> None:
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
        firsts = [name_of_owner(f"t{i}", kinds[i]) for i, n in enumerate(numbers) if n not in numbers[:i]]
        if len(firsts) > 1:
            ids = ", ".join([f"id({name})" for name in firsts])
            different = f"{firsts[0]} is not {firsts[1]}"
            self.tests.append(different if len(firsts) == 2 else f"len({{{ids}}}) == {len(firsts)}")
        for i, name in enumerate(self.tensors):
            first = self.tensors[list(numbers).index(numbers[i])]
            if first != name:
                self.tests.append(f"{name} is {first}")

    # what is read by name -------------------------------------------------------------------------------------------

    def guard(self, guard: AnyGuard) -> None:
        """Compare the values of a guard.  `held` may become another list, so it is read from the guard."""
        kind = type(guard)
        if kind is FunctionGuard:
            self._function(guard)  # type: ignore[arg-type]
        elif kind is AttributeGuard and guard.reader is None:  # type: ignore[union-attr]
            self._attributes(guard)  # type: ignore[arg-type]
        elif kind is Guard and guard.reader is None and type(guard.place) is list:  # type: ignore[union-attr]
            self._list(guard)  # type: ignore[arg-type]
        else:
            self.tests.append(f"{self.name(guard.holds)}()")

    def _function(self, guard: FunctionGuard) -> None:
        function, held = self.name(guard.place), [self.name(value) for value in guard.held]
        for part, name in zip(("__code__", "__defaults__", "__kwdefaults__"), held):
            self.tests.append(f"{function}.{part} is {name}")

    def _list(self, guard: Guard) -> None:
        place, count = self.name(guard.place), len(guard.values)
        self.tests.append(f"len({place}) == {count}")
        self._same(guard, [f"{place}[{number}]" for number in range(count)], place)

    def _attributes(self, guard: AttributeGuard) -> None:
        if guard.get is None and len(guard.values) > SHORT:
            raise NoShortForm
        place = self.name(guard.place)
        if guard.types:
            keys = tuple(guard.attributes)
            if frozenset(keys) != guard.keys:
                raise NoShortForm
            self.tests.append(f"tuple({place}) == {self.name(keys)}")
            self.tests += [f"type({place}[{key!r}]) is {self.name(type(guard.place[key]))}" for key in guard.loose]
        elif guard.absent:
            self.tests.append(f"{place}.keys().isdisjoint({self.name(guard.absent)})")
        entries = [f"{place}[{key!r}]" for key in guard.values]
        self._same(guard, entries, f"{self.name(guard.get)}({place})")

    def _same(self, guard: Guard, entries: Sequence[str], every: str) -> None:
        """Compare entries with those that the guard holds: one by one, or by a loop over `every` entry."""
        held = f"{self.name(guard)}.held"
        if len(entries) > SHORT:
            self.tests.append(f"all(map(is_, {every}, {held}))")
        elif entries:
            self.tests.append(f"{entries[0]} is (h := {held})[0]")
            self.tests += [f"{entry} is h[{number}]" for number, entry in enumerate(entries[1:], start=1)]


def name_of_owner(name: str, memory: Any) -> str:
    """The name, in the text of a check, of the tensor that owns the memory of the tensor `name`."""
    return f"{name}b" if is_part(memory) else name


def check_of(key: Any, more: Iterable[str], values: dict[str, Any], guards: Iterable[AnyGuard]) -> Check | None:
    """The check for a kind of arguments, `more` tests of tensors and values by name, and guards; None without one."""
    kinds, labels, tensors, grad, device = key
    writer = CheckWriter()
    writer.values.update(values)
    writer.tests += [f"mode.grad is {grad!r}", f"mode.device is {writer.name(device)}"]
    try:
        writer.arguments(kinds, labels, tensors)
        writer.tests += more
        for guard in guards:
            writer.guard(guard)
    except NoShortForm:
        return None
    return writer.function()
