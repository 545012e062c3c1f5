"""Unit 02: views that the student writes as shapes and strides."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from minigrad.compile.nodes.view import row_major
from minigrad.viz.flipbook import Flipbook, Page

from ...compare import Difference
from ...feedback import Misused, Wrong, written
from ...forms import parts_of
from ...tasks import ROUNDS, FunctionTask, ValueTask
from .about import UNIT
from .strides import read_by, says, strided
from .striding import Sizes, sizes, views
from .training import train

HELD = 12
FORMS = (  # of views of 0 … 11 as 3 × 4 numbers: shape, strides, offset
    ((2, 3), (1, 4), 1), ((3, 2), (1, 4), 4), ((2, 2), (2, 4), 4), ((2, 2), (8, 2), 1), ((3, 3), (4, 1), 1),
    ((2, 3), (2, 4), 1), ((3, 2), (1, 8), 1), ((4, 2), (1, 8), 0), ((2, 4), (4, 1), 4), ((3, 2), (4, 2), 1),
)
SHAPE_AND_STRIDES = ("the shape is", "the strides are")


def drawn(answer: Any, held: int) -> Flipbook:
    """What an answer (shape, strides, offset) reads from a buffer that holds 0, 1, 2 …"""
    parts = parts_of(answer, 3)
    shape, strides, offset = sizes(parts[0]), sizes(parts[1]), parts[2]
    if shape is None or strides is None or not isinstance(offset, int) or len(shape) != len(strides) or not shape:
        hint = "three parts, with commas: ((rows, columns), (step down, step right), offset)"
        raise Misused("the picture", f"{written(answer)} has another form", hint)
    form = shape[-2:], strides[-2:], offset, held
    return Flipbook(f"a view of shape {shape}, strides {strides}, offset {offset}",
                    [[Page(strided(*form), says(*form))]])


@UNIT.task
class ViewOf(ValueTask):
    """A table of numbers in a buffer: the shape, strides and offset that read it."""

    name = "view_of"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        self.form = draw.choice([form for form in FORMS if form[2] and form[1] != row_major((3, 4))])

    def table(self) -> list[list[int]]:
        """The numbers to be read."""
        (rows, columns), _, _ = self.form
        read = read_by(*self.form)
        return [read[row * columns : (row + 1) * columns] for row in range(rows)]

    def listed(self) -> str:
        """The list in the text."""
        return "\n".join("  ".join(f"{number:2}" for number in row) for row in self.table())

    def given(self) -> dict[str, Any]:
        return {"table": self.table(), "draw": lambda answer: drawn(answer, HELD)}

    def right(self) -> tuple[Sizes, Sizes, int]:
        return self.form

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        parts = parts_of(answer, 3)
        shape, strides, offset = sizes(parts[0]), sizes(parts[1]), parts[2]
        if shape is None or strides is None or type(offset) is not int:
            hint = "three parts: ((rows, columns), (step down, step right), offset)"
            raise self.misformed(answer, hint)
        wanted = self.form
        if (shape, strides, offset) == wanted:
            return self.explained()
        raise Wrong(self.name, f"your answer {written((shape, strides, offset))} reads another table",
                    self._why(shape, strides, offset))

    def _why(self, shape: Sizes, strides: Sizes, offset: int) -> str:
        own, steps, _ = self.form
        if shape == own[::-1] and own[0] != own[1]:
            return "the shape is turned: rows come first, columns second"
        if shape != own:
            return f"the table has {own[0]} rows and {own[1]} columns"
        if strides in (tuple([4 * step for step in steps]), tuple([8 * step for step in steps])):
            return "that is in bytes, as NumPy writes them. Here a stride counts numbers"
        if strides == steps[::-1]:
            return "the strides are turned: first the step to the row below, then the step to the right"
        if strides != steps and strides == row_major(own):
            return "these are the strides of a new array of this shape. This table skips numbers of the buffer"
        if strides != steps:
            wrong = "down" if strides[:1] != steps[:1] else "to the right"
            return f"the step {wrong} is not right: subtract a number from the next one {wrong}"
        return "the offset is the place of the first number of the table"


class Stepped(FunctionTask):
    """A function that returns the shape and the strides of a view."""

    points = 0

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if yours is None:
            return "it returned None: is there a `return`?"
        pair = isinstance(yours, tuple | list) and len(yours) == 2
        if not pair or any(isinstance(each, int | str) for each in yours):
            return f"it returned {written(yours)}, not the shape and the strides"
        if not all(isinstance(each, tuple | list) for each in yours):
            return f"it returned two of the type {type(yours[0]).__name__}, not two tuples: put tuple() around each"
        for what, own, wanted in zip(SHAPE_AND_STRIDES, yours, self.right(*args)):
            if sizes(own) != wanted:
                return Difference(f"{what} wrong", str(wanted), str(tuple(own)))
        return None


@UNIT.task
class Transposed(Stepped):
    name = "transposed"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (3, 4), (4, 1), (1, 0)
        yield (2, 3, 4), (12, 4, 1), (2, 0, 1)
        yield (2, 3, 4), (12, 4, 1), (0, 2, 1)
        yield (3, 4), (1, 3), (1, 0)
        yield (5,), (2,), (0,)

    def order(self, sizes: Sizes, axes: Sizes) -> Sizes:
        """Sizes or strides in another order."""
        return tuple([sizes[axis] for axis in axes])

    def right(self, shape: Sizes, strides: Sizes, axes: Sizes) -> tuple[Sizes, Sizes]:
        return self.order(shape, axes), self.order(strides, axes)


@UNIT.task
class Broadcasted(FunctionTask):
    name = "broadcasted"
    advice = Stepped.advice | {
        "index out of range": "shape can be shorter than target: count from the end, or begin with 0 for new axes"
    }

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (3,), (1,), (4, 3)
        yield (4, 1), (1, 1), (4, 3)
        yield (), (), (2, 3)
        yield (2, 3), (1, 2), (5, 2, 3)
        yield (3, 1), (1, 1), (2, 3, 4)
        yield (3, 1), (2, 2), (3, 3)
        yield (2, 3), (3, 1), (2, 3)

    def right(self, shape: Sizes, strides: Sizes, target: Sizes) -> Sizes:
        own = tuple([0 if size == 1 else stride for size, stride in zip(shape, strides)])
        return (0,) * (len(target) - len(shape)) + own

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        given = sizes(yours)
        if given is None:
            return "it returned None: is there a `return`?" if yours is None else f"it returned {written(yours)}"
        if len(given) != len(args[2]):
            wanted = f"{len(args[2])}, one for each axis of target"
            return Difference("the number of strides is wrong", wanted, str(len(given)))
        right = self.right(*args)
        return None if given == right else Difference("the strides are wrong", str(right), str(given))


@UNIT.task
class Windowed(Stepped):
    name = "windowed"

    def given(self) -> dict[str, Any]:
        return {"views": views, "train": train}

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (7,), (1,), 0, 3, 1
        yield (6,), (1,), 0, 2, 2
        yield (8, 8), (8, 1), 0, 3, 1
        yield (8, 8), (8, 1), 1, 3, 1
        yield (4, 6), (1, 4), 1, 2, 2
        yield (8,), (2,), 0, 3, 2

    def right(self, shape: Sizes, strides: Sizes, axis: int, size: int, step: int) -> tuple[Sizes, Sizes]:
        n, stride = shape[axis], strides[axis]
        windows, outer, inner = (n - size) // step + 1, stride * step, stride
        return ((*shape[:axis], windows, *shape[axis + 1 :], size),
                (*strides[:axis], outer, *strides[axis + 1 :], inner))
