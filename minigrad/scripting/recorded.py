"""Blocks whose course a tensor decides that has no value yet: they become nodes, through `mg.cond` and its sisters.

Those take functions from tensors to tensors.  Here the variables of a block are brought into that form and back: what
is no tensor is kept beside, numbers become tensors where they have to, and a tensor that the block changes in place is
changed as a whole afterwards, so that whoever else holds it sees it.

What a variable turns out to be is known only when its block has been recorded.  If that is not what it was recorded
with, it is recorded `Again`, with what is known by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

from ..autodiff.control import cond
from ..compile.tracing.guards import changed
from ..compile.tracing.reachable import guards_of
from ..core.clock import tick
from ..core.mode import current_mode
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..ops.write import UNDECIDED, Links, assign
from ..support.errors import MinigradError, TraceError
from .blocks import Block
from .kinds import (
    WEAK,
    Kind,
    Like,
    Undefined,
    as_number,
    error_class,
    fits,
    is_number,
    kind_of,
    of_tensors,
    rebuilt,
    tensors_of,
    united,
)

ATTEMPTS = 8
EMPTY = CellType()
ORIGINS = Links()  # a tensor, and those that it may be the same as
UNCHANGEABLE = (int, float, complex, str, bytes, tuple, frozenset, type(None), Tensor, Undefined)


class Again(Exception):
    """A block has to be recorded once more, with what is known now."""


class Recorder:
    """What branches and loops have in common: running the user's code, of which only the tensors may change.

    After a block, a variable is the "same" tensor as before, or that, changed in place ("placed"), a "new" one, or an
    "other" that was there already.
    """

    def __init__(self, block: Block, functions: Sequence[Any], given: Sequence[Any]):
        self.block, self.functions, self.began = block, functions, tick()
        self.memory: list[dict[str, str]] = []  # of each run, what became of each variable
        self.others: dict[str, list[Tensor]] = {}  # the tensors from around that it may have become
        self.original = list(given)
        self.guards = guards_of(*functions)
        for line, what in block.refused:
            raise TraceError(
                f"{what} in {block}",
                expect=f"a graph changes tensors that are variables, and this is at {block.place(line)}",
                hint="give a variable the value in both cases, and assign it after that",
            )
        for name, value in zip(block.parameters, given):
            if name in block.changed and not isinstance(value, UNCHANGEABLE):
                raise TraceError(
                    f"`{name}`, a {type(value).__name__}, is changed in {block}",
                    hint="keep tensors in a tensor, x[i] = y; or loop over list(x), which writes the loop out",
                )
        self.given = self.copies(given)  # the originals will be written to

    def copies(self, values: Sequence[Any]) -> list[Any]:
        """The values that a block is given: of tensors that it may change, copies."""
        changing = [name in self.block.changed for name in self.block.parameters]
        return [
            v.copy() if c and v.__class__ is Tensor and not is_number(v) else v for v, c in zip(values, changing)
        ]

    def run(self, function: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
        """The outputs of one of the user's blocks."""
        try:
            result = function(*values)
        except (MinigradError, Again):
            raise
        except Exception as error:
            raise TraceError(
                f"{type(error).__name__} in {self.block}: {error}",
                expect="code that can be recorded whether it will be run or not",
                hint="mg.where, or check the values outside",
            ) from error
        change = changed(self.guards)
        if change is not None:
            raise TraceError(
                f"what is no tensor is changed in {self.block}: {change}",
                expect="a graph records the Python code once, whatever is decided when it runs",
                hint="return it, or make it a tensor; loop over list(x), which writes the loop out",
            )
        return outputs_of(result, self.block)

    def follow(self, given: Sequence[Any], first: Sequence[Any], values: Sequence[Any]) -> None:
        """Note what each variable is after a block: in the words above."""
        states = {}
        for name, value in zip(self.block.outputs, values):
            number = self.block.parameters.index(name) if name in self.block.parameters else None
            if number is not None and value is given[number] and value.__class__ is Tensor:
                states[name] = "same" if value._data is first[number] else "placed"
            else:
                found = [found for t in flatten(value)[0] for found in self._found(t, given)]
                states[name] = "other" if found else "new"
                self.others.setdefault(name, []).extend(found)
        for number, name in enumerate(self.block.parameters):
            copy = given[number]
            if name in self.block.changed and copy.__class__ is Tensor and copy._data is not first[number]:
                if states.get(name) != "placed":
                    raise TraceError(
                        f"`{name}` is changed in place and given another value in {self.block}",
                        hint=f"{name} = {name} + 1 in the place of {name} += 1",
                    )
                self.refuse_aliases(name, self.original[number], self.original)
        self.memory.append(states)

    def _found(self, tensor: Tensor, given: Sequence[Any]) -> list[Tensor]:
        """The tensors from outside whose memory this one may look at; none if it has been made in the block."""
        base = base_of(tensor)
        if is_number(base):
            return []
        found = [t for origin in ORIGINS.of(base) for t in self._found(origin, given)]
        interpreter, data = current_mode().interpreter, base._data
        standing = getattr(interpreter, "standing", {}).get(id(base))
        originals = [original for value, original in zip(given, self.original) if base is value]
        if originals:
            found += [original for original in originals if original.__class__ is Tensor]
        elif standing is not None:
            found.append(standing.tensor)
        elif getattr(data, "trace", None) is not interpreter and getattr(data, "born", 0) <= self.began:
            found.append(base)
        return found

    def after(self, number: int, value: Any, may_be_old: bool) -> Any:
        """The value of a variable after the block: where nobody can know whose memory it is, it may not be written to.

        `may_be_old` says that it may still be what it was before, although the block makes it another.
        """
        name = self.block.outputs[number]
        before = dict(zip(self.block.parameters, self.original)).get(name)
        states = {run[name] for run in self.memory}
        if states == {"same"}:
            return before
        if "placed" in states:
            if not states <= {"placed", "same"}:
                raise TraceError(
                    f"`{name}` is changed in place on one side of {self.block}, and given another value on the other",
                    hint=f"{name} = {name} + 1 in the place of {name} += 1",
                )
            if before.__class__ is Tensor:
                assign(before, value)
            return before
        others = list(self.others.get(name, ()))
        if may_be_old or "same" in states:
            others += [t for t in flatten(before)[0] if not is_number(t)]
        for tensor in flatten(value)[0] if others else ():
            UNDECIDED.add(tensor, tensor)
            for other in others:
                base = base_of(_inside(other))
                UNDECIDED.add(base, tensor)
                ORIGINS.add(tensor, base)
        return value

    def refuse_aliases(self, name: str, original: Tensor, given: Sequence[Any]) -> None:
        """Refuse that a block sees what it changes under another name too: there it would see the old value."""
        cells = [cell.cell_contents for f in self.functions for cell in f.__closure__ or () if cell != EMPTY]
        others = [v for n, v in zip(self.block.parameters, given) if n != name]
        captured = getattr(current_mode().interpreter, "captured", {})  # what a recorded block has read
        seen = [*flatten([*cells, *others])[0], *[entry.tensor for entry in captured.values()]]
        if any(_shared(original, tensor) for tensor in seen):
            raise self._seen_twice(name)

    def _seen_twice(self, name: str) -> TraceError:
        return TraceError(
            f"`{name}` is changed in {self.block}, which also sees it under another name",
            hint=f"{name} = {name}.copy() before, or change it after",
        )


def _shared(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors look at the same memory."""
    return base_of(one) is base_of(other)


def base_of(tensor: Tensor) -> Tensor:
    """The tensor whose memory this one looks at."""
    return tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base


def _inside(tensor: Tensor) -> Tensor:
    """What stands in for a tensor where it is recorded just now."""
    return current_mode().state.stand_in(tensor)


def outputs_of(result: Any, block: Block) -> list[Any]:
    """What a block has returned, as a list."""
    return [] if not block.outputs else [result] if len(block.outputs) == 1 else list(result)


def packed(values: Sequence[Any]) -> Any:
    """The same as a block returns it."""
    return None if not values else values[0] if len(values) == 1 else tuple(values)


class Choice(Recorder):
    """An `if` that a tensor decides."""

    def decided(self, test: Tensor, functions: Sequence[Any]) -> Any:
        """The values of the outputs."""
        self.plan: list[Any] | None = None
        for _ in range(ATTEMPTS):
            self.sides: list[list[Any]] = []
            self.memory = []
            sides = [lambda function=function: self._side(function) for function in functions]
            try:
                return packed(self._outputs(cond(test, *sides)))
            except Again:
                continue
        raise AssertionError("kinds of variables do not settle")

    def _side(self, function: Any) -> tuple[Tensor, ...]:
        """The tensors that one side leads to."""
        block, given = self.block, self.copies(self.given)
        first = [getattr(value, "_data", None) for value in given]
        values = self.run(function, given)
        self.follow(given, first, values)
        self.sides.append(values)
        if len(self.sides) == 1:
            return self._tensors(values, self.plan or [kind_of(v) for v in values])
        kinds = [[kind_of(v) for v in side] for side in self.sides]
        plan = [united(name, block, a, b) for name, a, b in zip(block.outputs, *kinds)]
        before, self.plan = self.plan or kinds[0], plan
        if [_tensors(kind) for kind in before] != [_tensors(kind) for kind in plan]:
            raise Again
        return self._tensors(values, plan)

    def _tensors(self, values: list[Any], plan: list[Any]) -> tuple[Tensor, ...]:
        return tuple([t for value, kind in zip(values, plan) for t in tensors_of(value, kind)])

    def _outputs(self, tensors: Sequence[Tensor]) -> list[Any]:
        left, outputs = iter(tensors), []
        for number, kind in enumerate(self.plan or ()):
            sides = [side[number] for side in self.sides]
            value = rebuilt(sides, kind, left)
            if all(map(is_number, sides)):
                outputs.append(as_number(value))
            else:
                outputs.append(self.after(number, value, False))
        return outputs


def _tensors(kind: Any) -> list[Like]:
    return kind.tensors if isinstance(kind, Kind) else []


class Carry(Recorder):
    """The variables of a loop that a tensor decides about, from turn to turn."""

    def __init__(self, block: Block, functions: Sequence[Any], given: Sequence[Any]):
        super().__init__(block, functions, given)
        self.start = self.given
        self.kinds = [of_tensors(kind_of(v)) for v in given]  # a number may change in the loop
        self.samples = self.start

    def loop(self, run: Callable[[tuple[Tensor, ...]], Sequence[Tensor]], turns: int = 0) -> Any:
        """The values after the loop, which `run` makes a node of, given the tensors to begin with.

        There will be `turns` turns at least.
        """
        self.turns = turns
        for _ in range(ATTEMPTS):
            self.memory = []
            start = [t for v, kind in zip(self.start, self.kinds) for t in tensors_of(v, kind)]
            try:
                return packed(self._outputs(run(tuple(start))))
            except Again:
                continue
        raise AssertionError("kinds of variables do not settle")

    def values(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The variables at the start of a turn."""
        left = iter(tensors)
        values = [rebuilt(pair, kind, left) for pair, kind in zip(zip(self.start, self.samples), self.kinds)]
        return [as_number(value) if is_number(begun) else value for value, begun in zip(values, self.start)]

    def turn(self, function: Callable[..., Any], tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The tensors after one turn."""
        given = self.copies(self.values(tensors))
        first = [getattr(value, "_data", None) for value in given]
        values = self.samples = self.run(function, given)
        again = [self._settled(*row) for row in zip(range(len(values)), self.block.outputs, values)]
        if any(again):
            raise Again
        self.follow(given, first, values)
        for name, original in zip(self.block.parameters, self.original):
            others = [t for found in self.others.values() for t in found]
            if self.memory[-1][name] == "placed" and any(_shared(original, t) for t in others):
                raise self._seen_twice(name)  # in the next turn a change of one would be one of the other too
        return tuple([t for v, kind in zip(values, self.kinds) for t in tensors_of(v, kind)])

    def _settled(self, number: int, name: str, value: Any) -> bool:
        """Whether a variable is of another kind than was thought; an error if it may not be."""
        kind, new, begun = self.kinds[number], kind_of(value), self.start[number]
        if isinstance(new, Undefined) or (isinstance(begun, Undefined) and name not in self.block.later):
            return False  # reading it afterwards is an error
        if isinstance(kind, Undefined):
            self.kinds[number] = of_tensors(new)
            return bool(new.parts)
        if new.structure != kind.structure:
            raise self._other_kind(name, kind, new)
        first = [None] * len(kind.parts) if isinstance(begun, Undefined) else flatten(begun, WEAK)[0]
        parts = [_settled_part(*three) for three in zip(kind.parts, new.parts, first)]
        if None in parts:
            raise self._other_kind(name, kind, new)
        self.kinds[number] = Kind(kind.structure, tuple(parts))
        return self.kinds[number] != kind

    def _other_kind(self, name: str, kind: Kind, new: Kind) -> MinigradError:
        hint = "only tensors and numbers can change in a loop that a tensor decides about"
        if kind.structure == new.structure:
            hint = "begin with what it becomes, or bring it back: .astype(...), .reshape(...)"
        return error_class(kind, new)(
            f"{self.block.called(name)} is of another kind after a turn of {self.block}",
            expect=f"what it is before: {kind}", actual=f"after a turn: {new}", hint=hint,
        )

    def _outputs(self, tensors: Sequence[Tensor]) -> list[Any]:
        outputs = self.values(tensors)
        for number, (name, kind) in enumerate(zip(self.block.outputs, self.kinds)):
            if isinstance(kind, Undefined):
                why = f"a tensor decides whether the `{self.block.word}` at line {self.block.line} gives it one at all"
                outputs[number] = Undefined(name, why)
            elif self.memory and not is_number(self.start[number]):
                outputs[number] = self.after(number, outputs[number], not self.turns)
        return outputs


def _settled_part(before: Like, after: Any, begun: Any) -> Like | None:
    """What a tensor of the carry is, that is `before` at the start of a turn and `after` at its end; None is wrong."""
    if before == after or fits(after, before):
        return before
    new = after if isinstance(after, Like) else of_tensors(kind_of(after)).parts[0]
    return new if isinstance(begun, WEAK) and fits(begun, new) else None
