"""Records a block that a tensor without a value decides: it becomes a node of `mg.cond`, `mg.while_loop` or `mg.scan`.

These take functions from tensors to tensors, so the variables of a block are converted to tensors and back.  Values
without tensors stay outside, and numbers become tensors where necessary.  A tensor that the block changes in place is
assigned as a whole after the block, so that other references see the change.

The kinds of the variables are only known after the block has been recorded.  If they differ from the kinds with which
it was recorded, it is recorded `Again` with the new kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import CellType
from typing import Any

from ..compile.tracing.guards import changed
from ..compile.tracing.reachable import guards_of
from ..control.flow import cond
from ..core.clock import tick
from ..core.delegating import recorder
from ..core.mode import current_mode
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..ops.write import UNDECIDED, Links, assign
from ..support.errors import MinigradError, TraceError
from ..support.words import a_type
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

ATTEMPTS = 8  # the most times that a block is recorded
EMPTY = CellType()
ORIGINS = Links()  # links a tensor to the tensors that it may be
UNCHANGEABLE = (int, float, complex, str, bytes, tuple, frozenset, type(None), Tensor, Undefined)


class Again(Exception):
    """The block must be recorded once more, with the kinds that are known now."""


class Recorder:
    """The base of branches and loops: runs the user's code, in which only tensors may change.

    After a block, a variable is the "same" tensor as before, the same tensor changed in place ("placed"), a "new"
    tensor, or an "other" tensor that existed before the block.
    """

    def __init__(self, block: Block, functions: Sequence[Any], given: Sequence[Any]):
        self.block, self.functions, self.began = block, functions, tick()
        self.memory: list[dict[str, str]] = []  # for each run, the state of each variable: one of the words above
        self.others: dict[str, list[Tensor]] = {}  # the older tensors that each variable may be
        self.original = list(given)
        self.guards = guards_of(*functions)
        for line, what in block.refused:
            raise TraceError(
                f"{what} in {block}",
                expect=f"only tensors that are local variables change in a graph; this is at {block.place(line)}",
                hint="give a local variable the value in both cases, and make this assignment after the block",
            )
        for name, value in zip(block.parameters, given):
            if name in block.changed and not isinstance(value, UNCHANGEABLE):
                raise TraceError(
                    f"`{name}`, {a_type(value)}, is changed in {block}",
                    hint="put the values into a tensor, x[i] = y; or loop over list(x), which unrolls the loop",
                )
        self.given = self.copies(given)  # the originals will be overwritten

    def until_settled(self, record: Callable[[], list[Any]]) -> Any:
        """The outputs, recorded until the kinds of the variables no longer change."""
        for _ in range(ATTEMPTS):
            self.memory = []
            with suppress(Again):
                return packed(record())
        raise AssertionError("kinds of variables do not settle")

    def copies(self, values: Sequence[Any]) -> list[Any]:
        """The arguments of a block: copies of the tensors that it may change, and the other values."""
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
                expect="code that can be recorded even if it will not run",
                hint="mg.where, or a check of the values outside the block",
            ) from error
        change = changed(self.guards)
        if change is not None:
            raise TraceError(
                f"a value that is not a tensor changes in {self.block}: {change}",
                expect="only tensors change: the Python code runs once, when it is recorded",
                hint="return the value, or make it a tensor; or loop over list(x), which unrolls the loop",
            )
        return outputs_of(result, self.block)

    def follow(self, given: Sequence[Any], first: Sequence[Any], values: Sequence[Any]) -> None:
        """Note the state of each variable after a block."""
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
                        f"`{name}` is changed in place and also assigned in {self.block}",
                        hint=f"{name} = {name} + 1 instead of {name} += 1",
                    )
                self.refuse_aliases(name, self.original[number], self.original)
        self.memory.append(states)

    def _found(self, tensor: Tensor, given: Sequence[Any]) -> list[Tensor]:
        """The tensors from outside whose memory this tensor may share; empty if it was made in the block."""
        base = base_of(tensor)
        if is_number(base):
            return []
        found = [t for origin in ORIGINS.of(base) for t in self._found(origin, given)]
        interpreter, data = recorder(), base._data
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
        """The value of a variable after the block; if it may share memory with several tensors, it becomes read-only.

        `may_be_old`: the variable may still have its old value, because the block may not run.
        """
        name = self.block.outputs[number]
        before = dict(zip(self.block.parameters, self.original)).get(name)
        states = {run[name] for run in self.memory}
        if states == {"same"}:
            return before
        if "placed" in states:
            if not states <= {"placed", "same"}:
                raise TraceError(
                    f"`{name}` is changed in place on one side of {self.block}, and assigned on the other",
                    hint=f"{name} = {name} + 1 instead of {name} += 1",
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
                base = base_of(current_mode().state.stand_in(other))
                UNDECIDED.add(base, tensor)
                ORIGINS.add(tensor, base)
        return value

    def refuse_aliases(self, name: str, original: Tensor, given: Sequence[Any]) -> None:
        """Refuse a block that also reads a changed tensor by another name: there it would have the old value."""
        cells = [cell.cell_contents for f in self.functions for cell in f.__closure__ or () if cell != EMPTY]
        others = [v for n, v in zip(self.block.parameters, given) if n != name]
        captured = getattr(recorder(), "captured", {})  # the tensors that a recorded block has read
        seen = [*flatten([*cells, *others])[0], *[entry.tensor for entry in captured.values()]]
        if any(_shared(original, tensor) for tensor in seen):
            raise self._seen_twice(name)

    def _seen_twice(self, name: str) -> TraceError:
        return TraceError(
            f"`{name}` is changed in {self.block}, which also reads it by another name",
            hint=f"{name} = {name}.copy() before, or change it after",
        )


def _shared(one: Tensor, other: Tensor) -> bool:
    return base_of(one) is base_of(other)


def base_of(tensor: Tensor) -> Tensor:
    """The tensor that owns the memory of this one."""
    return tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base


def outputs_of(result: Any, block: Block) -> list[Any]:
    """The values that a block has returned, as a list."""
    return [] if not block.outputs else [result] if len(block.outputs) == 1 else list(result)


def packed(values: Sequence[Any]) -> Any:
    """The values in the form in which a block returns them."""
    return None if not values else values[0] if len(values) == 1 else tuple(values)


class Choice(Recorder):
    """An `if` that a tensor decides."""

    def decided(self, test: Tensor, functions: Sequence[Any]) -> Any:
        """The values of the outputs."""
        self.plan: list[Any] | None = None

        def record() -> list[Any]:
            self.sides: list[list[Any]] = []
            sides = [lambda function=function: self._side(function) for function in functions]
            return self._outputs(cond(test, *sides))

        return self.until_settled(record)

    def _side(self, function: Any) -> tuple[Tensor, ...]:
        """The tensors of one side's outputs."""
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
    """A loop that a tensor decides: its variables are carried from turn to turn."""

    def __init__(self, block: Block, functions: Sequence[Any], given: Sequence[Any]):
        super().__init__(block, functions, given)
        self.start = self.given
        self.kinds = [of_tensors(kind_of(v)) for v in given]  # numbers may change in the loop
        self.samples = self.start

    def loop(self, run: Callable[[tuple[Tensor, ...]], Sequence[Tensor]], turns: int = 0) -> Any:
        """The values after the loop, which has at least `turns` turns; `run` records it, given the first tensors."""
        self.turns = turns

        def record() -> list[Any]:
            start = [t for v, kind in zip(self.start, self.kinds) for t in tensors_of(v, kind)]
            return self._outputs(run(tuple(start)))

        return self.until_settled(record)

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
                raise self._seen_twice(name)  # in the next turn, changing one would change the other as well
        return tuple([t for v, kind in zip(values, self.kinds) for t in tensors_of(v, kind)])

    def _settled(self, number: int, name: str, value: Any) -> bool:
        """Whether a variable has a new kind after a turn; raises an error if the kind may not change."""
        kind, new, begun = self.kinds[number], kind_of(value), self.start[number]
        if isinstance(new, Undefined) or (isinstance(begun, Undefined) and name not in self.block.later):
            return False  # later reads raise an error
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
        hint = "only tensors and numbers can change in a loop that a tensor decides"
        if kind.structure == new.structure:
            hint = "start with the later kind, or convert the value back: .astype(...), .reshape(...)"
        return error_class(kind, new)(
            f"{self.block.called(name)} has a different kind after a turn of {self.block}",
            expect=f"the kind before the loop: {kind}", actual=f"after a turn: {new}", hint=hint,
        )

    def _outputs(self, tensors: Sequence[Tensor]) -> list[Any]:
        outputs = self.values(tensors)
        for number, (name, kind) in enumerate(zip(self.block.outputs, self.kinds)):
            if isinstance(kind, Undefined):
                why = f"a tensor decides whether the `{self.block.word}` at line {self.block.line} gives it one"
                outputs[number] = Undefined(name, why)
            elif self.memory and not is_number(self.start[number]):
                outputs[number] = self.after(number, outputs[number], not self.turns)
        return outputs


def _settled_part(before: Like, after: Any, begun: Any) -> Like | None:
    """The kind of a carried tensor that is `before` at the start of a turn, `after` at its end; None is an error."""
    if before == after or fits(after, before):
        return before
    new = after if isinstance(after, Like) else of_tensors(kind_of(after)).parts[0]
    return new if isinstance(begun, WEAK) and fits(begun, new) else None
