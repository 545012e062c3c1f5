"""Writes one Python function that checks whether a call fits a recording.

To build a key, look it up and loop over guards takes 5 µs; one function that holds all comparisons takes 1 µs.  It is
only a quick way to say yes: where a comparison fails, or an argument has no short comparison, the recording is searched
by its key, and the guards say what has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np

from ...core.mode import Mode
from ...core.tensor import Tensor
from .signature import LITERALS, Alike, base_of_part, copied, is_part

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
