"""What a trace leaves: where a call finds its tensors, guards on them, its results, and what must not be in these."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from operator import eq
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from ...autodiff.reverse import HOOKS
from ...core.alias import Step
from ...core.node import FREED, topological_order
from ...core.tensor import Tensor, wrap
from ...core.tree import is_container
from ...support.errors import TraceError
from ..tracing.guards import Guard, Tensors, Values
from ..tracing.signature import CheckWriter, NoShortForm, kinds_of_tensors
from ..tracing.tracer import Captured, Pending, Tracer


class Location(NamedTuple):
    """Where a call finds a tensor."""

    kind: str  # "argument", "base" (of an argument), "gradient" or "tensor"
    what: Any  # the number of the argument, the location whose gradient it is, or the tensor itself

    def find(self, arguments: Sequence[Tensor]) -> Tensor:
        if self.kind == "tensor":
            return self.what  # type: ignore[no-any-return]
        if self.kind == "argument":
            return arguments[self.what]
        if self.kind == "base":
            alias = arguments[self.what].alias
            return arguments[self.what] if alias is None or alias.base is None else alias.base
        return self.what.find(arguments)._grad  # type: ignore[no-any-return]


def found_at(places: Sequence[Location], arguments: Sequence[Tensor]) -> list[Tensor]:
    """The tensors at these places; `Location.find` for each, without a call for most of them."""
    return [
        arguments[what] if kind == "argument" else what if kind == "tensor" else Location(kind, what).find(arguments)
        for kind, what in places
    ]


class ViewsGuard(Guard):
    """Of what tensors the arguments are parts, and of which parts: for a function that also uses these tensors."""

    same = staticmethod(eq)

    def read(self, arguments: Tensors) -> Values:
        return {"": kinds_of_tensors(list(arguments), exactly=True)}

    def quick(self, writer: CheckWriter) -> list[str]:
        raise NoShortForm

    def says(self, key: Any, was: Any, found: Any) -> str:
        return "an argument is another part of a tensor, and the function writes to it or uses the tensor"


class ApartGuard(Guard):
    """No argument is a tensor whose id is in `place`, or a view of one: the function uses these by name."""

    def read(self, arguments: Tensors) -> Values:
        aliases = [tensor.alias for tensor in arguments if tensor.alias is not None]
        return {"": self.place.isdisjoint([*map(id, arguments), *[id(alias.base) for alias in aliases]])}

    def quick(self, writer: CheckWriter) -> list[str]:
        given = "".join([f"id({name}), " for name in writer.owners])
        return [f"{writer.name(self.place)}.isdisjoint(({given}))"] if self.place and given else []

    def says(self, key: Any, was: Any, found: Any) -> str:
        return "an argument is also used by name"


class TensorGuard(Guard):
    """The shape, dtype, device and history of a tensor that is used by name.  Its values may change."""

    same = staticmethod(eq)

    def __init__(self, tensor: Tensor) -> None:
        super().__init__("a tensor used by name", tensor)
        self.data = weakref.ref(tensor._data)  # its array at the last comparison

    def read(self, arguments: Tensors) -> Values:
        tensor, data = self.place, self.place._data
        return {"shape": data.shape, "dtype": data.dtype, "device": tensor.device, "leaf": tensor.is_leaf,
                "tracked": tensor.tracked}

    def quick(self, writer: CheckWriter) -> list[str]:
        tensor = writer.name(self.place)
        tracked = f"{'' if self.values['tracked'] else 'not '}{tensor}.tracked"
        return [f"{writer.name(self)}.data() is {tensor}._data", tracked]

    def change(self, arguments: Tensors = ()) -> str | None:
        data = self.place._data
        found = super().change(arguments)
        if found is None:
            self.data = weakref.ref(data)
        return found

    def says(self, key: Any, was: Any, found: Any) -> str:
        if key not in ("leaf", "tracked"):
            return f"the {key} of {self.name} was {was} and is {found}"
        tensor = self.place
        history = "is a leaf" if tensor.is_leaf else "has a history"
        needs = "requires a gradient and" if tensor.tracked else "requires no gradient:"
        return f"{self.name} {tensor._data.shape} {needs} {history}"


class GradientsGuard(Guard):
    """Whether there is a `.grad` where the function looked for one, and which of them share memory.

    `place` is a list of locations.  `tensors` are those that the function uses by name.
    """

    same = staticmethod(eq)

    def __init__(self, looked: list[Location], tensors: Tensors, there: Sequence[bool], sharing: Any) -> None:
        self.tensors = tensors
        super().__init__(".grad", looked, {**dict(enumerate(there)), "sharing": sharing})

    def read(self, arguments: Tensors) -> Values:
        gradients = [place.find(arguments)._grad for place in self.place]
        there = dict(enumerate([gradient is not None for gradient in gradients]))
        return {**there, "sharing": sharing_of(gradients, (*arguments, *self.tensors))}

    def quick(self, writer: CheckWriter) -> list[str]:
        there = [number for number in range(len(self.place)) if self.values[number]]
        others = len(writer.tensors) + len(self.tensors)
        apart = self.values["sharing"] == [(number, True) for number in range(others, others + len(there))]
        if not apart or not {place.kind for place in self.place} <= {"argument", "tensor"}:
            raise NoShortForm
        tests = []
        for number, (kind, what) in enumerate(self.place):
            name = writer.tensors[what] if kind == "argument" else writer.name(what)
            tests.append(f"(g{number} := {name}._grad) is {'not ' if self.values[number] else ''}None")
        tests += [f"((a := g{number}.alias) is None or a.base is None)" for number in there]
        ids = "".join([f"id(g{number}), " for number in there])
        if there:
            fixed = writer.name(frozenset(map(id, self.tensors)))
            tests += [f"len({{{ids}}}) == {len(there)}", f"{fixed}.isdisjoint(({ids}))"]
            tests += [f"id({name}) not in ({ids})" for name in writer.tensors]
        return tests

    def says(self, key: Any, was: Any, found: Any) -> str:
        if key == "sharing":
            return "gradients share memory in another way"
        return "a .grad was None and is not" if found else "a .grad was there and is None"


def sharing_of(gradients: Sequence[Tensor | None], others: Tensors) -> list[tuple[int, bool]]:
    """Which gradients are the same tensor, or share memory, or are one of the other tensors."""
    numbers = {id(tensor): i for i, tensor in enumerate(others)}
    found = []
    for gradient in gradients:
        if gradient is not None:
            viewed = None if gradient.alias is None else gradient.alias.base
            base = gradient if viewed is None else viewed
            found.append((numbers.setdefault(id(base), len(numbers)), base is gradient))
    return found


class HooksGuard(Guard):
    """The hooks on tensors from outside; `place` is a list of their locations."""

    same = staticmethod(eq)

    def read(self, arguments: Tensors) -> Values:
        nodes = [place.find(arguments).node for place in self.place]
        return dict(enumerate([[] if node is None else list(HOOKS.get(node, [])) for node in nodes]))

    def quick(self, writer: CheckWriter) -> list[str]:
        (compared,) = writer.compared(self)
        return [compared if any(self.values.values()) else f"(not {writer.name(HOOKS.data)} or {compared})"]

    def says(self, key: Any, was: Any, found: Any) -> str:
        return "a hook was registered on a tensor or removed from it"


# Results, histories that end, and hooks -------------------------------------------------------------------------------


class Result(NamedTuple):
    """A tensor that the function returns: a view, by `chain`, of output `number` or of the tensor at `place`.

    A result that is not `linked` was detached: it has no history.  A view that is not `tracked` has none either.  A
    result that stands for an `array` is returned as one.
    """

    number: int
    place: Location | None
    chain: tuple[Step, ...]
    linked: bool = True
    tracked: bool = True
    array: bool = False


def as_captured(entry: Captured) -> Tensor:
    """The stand-in in its first state."""
    tensor = wrap(entry.first, entry.tensor.device)
    tensor.node, tensor.tracked = entry.leaf, True
    return tensor


def without_spent_history(tensor: Tensor) -> Tensor:
    """The tensor; without its history if a backward pass has freed that."""
    if not tensor.tracked or not any(node.saved is FREED for node in topological_order([tensor.node])):
        return tensor
    return wrap(tensor._data, tensor.device)


def hooks_seen(tracer: Tracer) -> list[list[Any]]:
    """Take the hooks of the captured tensors out of the trace, which has run them; refuse new ones."""
    found = []
    for entry in tracer.captured.values():
        if entry.leaf is not None:
            inside, outside = HOOKS.pop(entry.leaf, []), HOOKS.get(entry.tensor.node, [])
            if inside != outside:
                raise TraceError(
                    f"jit: a hook is registered on a tensor from outside, of shape {entry.tensor.shape}, or removed",
                    expect="a hook stays on its tensor, and each call would add one",
                    hint="register it outside, or on a tensor that is made inside",
                )
            found.append(list(outside))
    return found


def refuse_hidden(result: Any, tracer: Tracer, inside: str = "", depth: int = 0) -> None:
    """Refuse results that hold tensors in objects that jit does not search."""
    if isinstance(result, Tensor):
        if inside and result._data.__class__ is Pending and result._data.trace is tracer:
            raise TraceError(
                f"jit: the function returns a {inside} that holds tensors, and jit does not look into it",
                expect="tensors, numbers, and tuples, lists, dicts and modules of them",
                hint="return the tensors, and build the object outside",
            )
    elif isinstance(result, (list, tuple, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            refuse_hidden(part, tracer, inside, depth)
    elif isinstance(result, (set, frozenset, deque)):
        for part in result:
            refuse_hidden(part, tracer, type(result).__name__, depth)
    elif depth < 3 and hasattr(result, "__dict__") and not isinstance(result, (type, ModuleType, FunctionType)):
        name = inside or ("" if is_container(result) else type(result).__name__)
        for part in vars(result).values():
            refuse_hidden(part, tracer, name, depth + 1)
