"""Unit 02: views that the student writes as shapes and strides."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from minigrad.compile.nodes.view import row_major
from minigrad.ops.view import inverse
from minigrad.viz.flipbook import Flipbook, Page

from ...compare import Difference
from ...feedback import Misused, Wrong, written
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
    parts = answer if isinstance(answer, tuple | list) and len(answer) == 3 else (None, None, None)
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

    def text(self) -> str:
        listed = "\n".join("  ".join(f"{number:2}" for number in row) for row in self.table())
        return (
            f"A buffer holds the numbers 0, 1, 2 … {HELD - 1}, so that each number is its own place. **Which shape, "
            f"which strides and which offset read this table?**\n\n```\n{listed}\n```\n\n"
            "`course.task(\"view_of\").draw(view_of)` draws what your answer reads."
        )

    def given(self) -> dict[str, Any]:
        return {"table": self.table(), "draw": lambda answer: drawn(answer, HELD)}

    def right(self) -> tuple[Sizes, Sizes, int]:
        return self.form

    def explained(self) -> str:
        (_, strides, offset) = self.form
        return f"the number at row i, column j is at {offset} + {strides[0]} · i + {strides[1]} · j."

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        parts = answer if isinstance(answer, tuple | list) and len(answer) == 3 else (None, None, None)
        shape, strides, offset = sizes(parts[0]), sizes(parts[1]), parts[2]
        if shape is None or strides is None or type(offset) is not int:
            hint = "three parts: ((rows, columns), (step down, step right), offset)"
            raise Wrong(self.name, f"your answer {written(answer)} has another form", hint)
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
    advice = {
        "assignment": "a tuple cannot be changed: make a list of it, list(shape), and change this; or make a new tuple",
        "can only concatenate": "one number in a tuple needs a comma: (size,). shape + (size,) appends it",
        "index out of range": "shapes have different lengths: for i in range(len(shape))",
        "has no attribute": "shape and strides are tuples of numbers, not arrays",
        "to unpack": "there may be any number of axes: go through them in a loop",
        "indices must be integers": "a tuple takes one index at a time: tuple(shape[axis] for axis in axes)",
    }

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
    wrong_programs = (
        (lambda self, shape, strides, axes: (self.order(shape, axes), row_major(self.order(shape, axes))),
         "the shape is right, but the strides are those of a new array. A view keeps the strides, in another order"),
        (lambda self, shape, strides, axes: (shape[::-1], strides[::-1]),
         "that always turns the order round. For three axes, axes = (2, 0, 1) says which comes where"),
        (lambda self, *args: self.right(*args[:2], inverse(args[2])),
         "that is the opposite order: new axis i is the old axis axes[i], not the other way round"),
        (lambda self, shape, strides, axes: (self.order(shape, axes), strides),
         "the strides are still in the old order. Each stride belongs to an axis, and moves with it"),
        (lambda self, shape, strides, axes: (shape, self.order(strides, axes)),
         "the shape is still in the old order. Each size belongs to an axis, and moves with it"),
        (lambda self, shape, strides, axes: (shape, strides),
         "nothing has changed. Both sizes and strides come in the order of axes"),
        (lambda self, *args: self.right(*args)[::-1], "the shape comes first, the strides second"),
        (lambda self, *args: tuple(zip(*self.right(*args))),
         "these are pairs, one for each axis. Return one tuple with all sizes, and one with all strides"),
    )

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
    wrong_programs = (
        (lambda self, shape, strides, target: (0,) * (len(target) - len(shape)) + strides,
         "right where axes are new. An axis of size 1 is repeated too: its stride becomes 0"),
        (lambda self, shape, strides, target: self.own(shape, strides) + (0,) * (len(target) - len(shape)),
         "the new axes come in front, so their zeros do too: shapes are aligned at their ends"),
        (lambda self, shape, strides, target: row_major(target),
         "these are the strides of a copy with all the repeated numbers. A stride of 0 reads the same number again"),
        (lambda self, *args: tuple([stride or 1 for stride in self.right(*args)]),
         "a stride of 1 goes on to the next number. To read the same number again, the stride is 0"),
        (lambda self, shape, strides, target: (0,) * len(target),
         "all strides are 0: then every place reads the same number. Where nothing is repeated, the stride stays. "
         "Compare shape and target from their ends"),
        (lambda self, *args: self.right(*args)[::-1],
         "these come from last to first: the stride of axis 0 comes first"),
        (lambda self, *args: (args[2], self.right(*args)), "only the strides: target is the shape already"),
        (lambda self, shape, strides, target: self.right(shape, row_major(shape), target),
         "the strides are computed anew from the shape. The array may be a view: keep the strides that are given"),
    )

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (3,), (1,), (4, 3)
        yield (4, 1), (1, 1), (4, 3)
        yield (), (), (2, 3)
        yield (2, 3), (1, 2), (5, 2, 3)
        yield (3, 1), (1, 1), (2, 3, 4)
        yield (2, 3), (3, 1), (2, 3)

    def own(self, shape: Sizes, strides: Sizes) -> Sizes:
        """The strides of the axes that the array has."""
        return tuple([0 if size == 1 else stride for size, stride in zip(shape, strides)])

    def right(self, shape: Sizes, strides: Sizes, target: Sizes) -> Sizes:
        return (0,) * (len(target) - len(shape)) + self.own(shape, strides)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        given = sizes(yours)
        if given is None:
            return "it returned None: is there a `return`?" if yours is None else f"it returned {written(yours)}"
        if len(given) != len(args[2]):
            wanted = f"{len(args[2])}, one for each axis of target"
            return Difference("the number of strides is wrong", wanted, str(len(given)))
        right = self.right(*args)
        return None if given == right else Difference("the strides are wrong", str(right), str(given))


def count(windows: Callable[[int, int, int], Any]) -> Callable[..., Any]:
    """A wrong `windowed` with another number of windows: a function of n, size and step."""
    return lambda self, shape, strides, axis, size, step: self.form(
        shape, strides, axis, size, step, windows(shape[axis], size, step))


def apart(steps: Callable[[int, int, int], tuple[int, int]]) -> Callable[..., Any]:
    """A wrong `windowed` with other strides of its two axes: a function of the stride, size and step."""
    return lambda self, shape, strides, axis, size, step: self.form(
        shape, strides, axis, size, step, (shape[axis] - size) // step + 1, *steps(strides[axis], size, step))


@UNIT.task
class Windowed(Stepped):
    name = "windowed"
    wrong_programs = (
        (count(lambda n, size, step: (n - size) // step),
         "the strides are right. Count the windows: 7 numbers have 5 windows of 3, beginning at 0, 1, 2, 3 and 4"),
        (count(lambda n, size, step: n // step),
         "the last windows reach beyond the end: 7 numbers have 5 windows of 3, and not 7"),
        (count(lambda n, size, step: n - size + 1),
         "that is right for step 1. With a step of 2 there are about half as many windows: (n - size) // step + 1"),
        (count(lambda n, size, step: n // size),
         "that is how many windows fit side by side. These windows overlap: the next one begins `step` further"),
        (count(lambda n, size, step: (n - size) / step + 1),
         "the number of windows is a whole number: // in place of /"),
        (apart(lambda stride, size, step: (stride, stride)),
         "right for step 1. The next window begins `step` numbers further: step times the stride of the axis"),
        (apart(lambda stride, size, step: (stride * step, stride * step)),
         "the numbers of a window are neighbours: inside of a window the stride is that of the axis, without step"),
        (apart(lambda stride, size, step: (step, stride)),
         "step and stride are multiplied: the step counts numbers along the axis, and each is a stride apart"),
        (apart(lambda stride, size, step: (stride * step, 1)),
         "inside of a window, numbers are as far apart as along the axis: its stride, which is not always 1"),
        (apart(lambda stride, size, step: (stride * size, stride)),
         "that steps from window to window by `size`: side by side. The next window begins `step` further"),
        (lambda self, shape, strides, axis, size, step: self.behind(axis, self.right(shape, strides, axis, size, step)),
         "the new axis belongs at the end, after all others, not directly behind the axis of the windows"),
        (lambda self, shape, strides, axis, *rest: self.exchanged(axis, self.right(shape, strides, axis, *rest)),
         "the two axes are exchanged: the number of windows stands at `axis`, the size of a window at the end"),
        (lambda self, shape, strides, axis, size, step: (
            ((shape[axis] - size) // step + 1, size), (strides[axis] * step, strides[axis])),
         "right for one axis. All other axes stay: only the size at `axis` changes, and one more comes at the end"),
        (lambda self, shape, strides, axis, size, step: self.right(shape, strides, axis, size, 1),
         "right for step 1. The number of windows and the stride from window to window depend on step"),
        (lambda self, *args: (self.right(*args)[0], row_major(self.right(*args)[0])),
         "the strides are those of a new array: this would be a copy. A view uses the strides that are given"),
        (lambda self, *args: self.right(*args)[::-1], "the shape comes first, the strides second"),
    )

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
        return self.form(shape, strides, axis, size, step, (shape[axis] - size) // step + 1)

    def form(
        self, shape: Sizes, strides: Sizes, axis: int, size: int, step: int, windows: Any, outer: int = 0,
        inner: int = 0,
    ) -> tuple[Sizes, Sizes]:
        """Shape and strides with this number of windows; `outer` and `inner` are strides other than the right ones."""
        outer, inner = outer or strides[axis] * step, inner or strides[axis]
        return ((*shape[:axis], windows, *shape[axis + 1 :], size),
                (*strides[:axis], outer, *strides[axis + 1 :], inner))

    def behind(self, axis: int, right: tuple[Sizes, Sizes]) -> Any:
        """The new axis behind the axis of the windows."""
        return tuple([(*each[: axis + 1], each[-1], *each[axis + 1 : -1]) for each in right])

    def exchanged(self, axis: int, right: tuple[Sizes, Sizes]) -> Any:
        """The two axes exchanged."""
        return tuple([(*each[:axis], each[-1], *each[axis + 1 : -1], each[axis]) for each in right])
