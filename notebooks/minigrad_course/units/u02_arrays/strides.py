"""Views by strides: a buffer as one row of numbers, and the table that a shape, strides and an offset read from it."""

from __future__ import annotations

from itertools import product

from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page, settings_of

Sizes = tuple[int, ...]
CELL = 34.0
STEPS, OFFSETS, HELD = tuple(range(5)), tuple(range(4)), 14  # of the bench: strides, offsets, numbers in the buffer


def read_by(shape: Sizes, strides: Sizes, offset: int = 0) -> list[int]:
    """The elements of a buffer that a view reads, row by row: offset + i · stride, for each axis.

    >>> read_by((2, 3), (3, 1)), read_by((3, 2), (1, 3), 1)
    ([0, 1, 2, 3, 4, 5], [1, 4, 2, 5, 3, 6])
    """
    places = product(*[range(size) for size in shape])
    return [offset + sum(i * stride for i, stride in zip(place, strides)) for place in places]


def strided(shape: Sizes, strides: Sizes, offset: int, held: int) -> Drawing:
    """A buffer that holds 0, 1, 2 …, and below it the table that a view reads."""
    rows, columns = (1, *shape)[-2:] if shape else (1, 1)
    drawing = Drawing(max(held, columns + 8) * CELL + 4, 128 + rows * CELL)
    read = read_by(shape, strides, offset)
    drawing.text(0, 12, "the buffer", bold=True)
    for i in range(held):
        times = read.count(i)
        drawing.rect(i * CELL, 20, CELL, CELL - 4, "there-fill" if times else "tint", "there" if times else "line",
                     thick=2 if times else 1, round=1)
        drawing.text((i + 0.5) * CELL, 40, str(i), anchor="middle", bold=bool(times), fill="ink" if times else "quiet")
        if times > 1:
            drawing.text((i + 0.5) * CELL, 64, f"{times} ×", anchor="middle", size=10, fill="back", bold=True)
    drawing.text(0, 100, "the view", bold=True)
    for at, index in enumerate(read[: rows * columns]):
        row, column = divmod(at, columns)
        outside = not 0 <= index < held
        drawing.rect(column * CELL, 108 + row * CELL, CELL, CELL, "paper" if outside else "there-fill",
                     "bad" if outside else "there", thick=1.6, round=1)
        drawing.text((column + 0.5) * CELL, 130 + row * CELL, "✗" if outside else str(index), anchor="middle",
                     bold=True, fill="bad" if outside else "ink")
    text = f"shape {shape}, strides {strides}, offset {offset}"
    drawing.text((columns + 0.6) * CELL, 124, text, size=13)
    if len(shape) == 2:
        drawing.text((columns + 0.6) * CELL, 144, f"one row down: {strides[0]} further in the buffer", fill="quiet")
        drawing.text((columns + 0.6) * CELL, 162, f"one column on: {strides[1]} further", fill="quiet")
    return drawing


def says(shape: Sizes, strides: Sizes, offset: int, held: int) -> str:
    """What a view reads, in a sentence."""
    read = read_by(shape, strides, offset)
    if not all(0 <= index < held for index in read):
        return f"It reads beyond the buffer, at element {max(read) if max(read) >= held else min(read)}."
    return f"{len(read)} numbers are read, {len(set(read))} different ones. Nothing is copied."


def bench() -> Flipbook:
    """A view of 3 × 3 numbers, whose strides and offset are set by sliders.

    >>> bench()
    <views of a buffer by strides>
    """
    knobs = (Knob("step to the next row", tuple(map(str, STEPS)), 3),
             Knob("step to the next column", tuple(map(str, STEPS)), 1),
             Knob("offset", tuple(map(str, OFFSETS)), 0))
    pages = []
    for row, column, offset in settings_of(knobs):
        form = (3, 3), (STEPS[row], STEPS[column]), OFFSETS[offset], HELD
        pages.append([Page(strided(*form), says(*form))])
    return Flipbook("views of a buffer by strides", pages, knobs=knobs)
