"""How a network reads pictures before and after its training: the curve of the loss, and the pictures read wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad.viz.curves import Points, curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page
from minigrad.viz.images import gallery, image, pictures_of
from minigrad.viz.svg import number

COLUMNS, TILE = 30, 15.0  # of the wall of all pictures
SHOWN, ROW, SIDE = 16, 8, 50.0  # how many wrong readings are shown large, how many in a row, and their size
HALF, BETWEEN, CHART = COLUMNS * TILE, 40.0, 150.0
NARROW, APART = 12, 15.0  # the columns of a wall beside others, and the room between two


def reading(
    title: str, losses: Points, images: Any, labels: Any, before: Any, after: Any
) -> Flipbook:
    """The losses of a training, and for each picture its label and what was read in it before and after.

    >>> digits = np.eye(8).reshape(1, 8, 8)
    >>> book = reading("a training", [(1, 2.3), (2, 0.1)], digits, [7], [1], [7])
    >>> print(book.text())
    loss 2.3 → 0.1
    Before the training, 0 of 1 pictures are read correctly; wrong: 7 read as 1
    After the training, 1 of 1 pictures are read correctly
    """
    pictures = pictures_of(images, len(labels))
    seen = {"Before the training": before, "After the training": after}
    halves = [(name, np.asarray(labels), np.asarray(read)) for name, read in seen.items()]
    says = [_in_words(*half) for half in halves]
    first, last = (f"{value:.3g}" for value in (losses[0][1], losses[-1][1]))
    both = _drawn(losses, pictures, halves)
    pages = [Page(both, f"{says[0]}. {says[1]}.", (), "before and after")]
    for half, said, name in zip(halves, says, ("before", "after")):
        pages.append(Page(_drawn(losses, pictures, [half]), f"{said}.", (), name))
    words = "\n".join([f"loss {first} → {last}", *[_in_words(*half, wrong=True) for half in halves]])
    return Flipbook(title, [pages], cover=0, unit="picture", words=words)


def side_by_side(title: str, images: Any, labels: Any, seen: Mapping[str, Any]) -> Flipbook:
    """What several networks read in the same pictures: a wall for each, in which wrong readings have a frame.

    >>> book = side_by_side("two networks", np.eye(8).reshape(1, 8, 8), [7], {"the first": [7], "the second": [1]})
    >>> print(book.text())
    the first: 1 of 1
    the second: 0 of 1
    """
    pictures, said = pictures_of(images, len(labels)), []
    drawing = Drawing(len(seen) * (NARROW * TILE + APART) - APART, 62)
    for i, (name, read) in enumerate(seen.items()):
        x, wrong = i * (NARROW * TILE + APART), np.asarray(read) != np.asarray(labels)
        count = f"{(~wrong).sum()} of {len(labels)}"
        said.append(f"{name}: {count}")
        drawing.heading(x, 14, count)
        for j, line in enumerate(name.split(", ")):
            drawing.text(x, 34 + 16 * j, line, size=12)
        high = wall(drawing, x, 62, pictures, wrong.tolist(), NARROW, TILE)
    drawing.height += high
    return Flipbook(title, [[Page(drawing, "Framed pictures are read wrongly.")]], words="\n".join(said))


def _in_words(name: str, labels: Any, read: Any, wrong: bool = False) -> str:
    right = int((labels == read).sum())
    said = f"{name}, {right} of {len(labels)} pictures are read correctly"
    mistakes = [f"{label} read as {other}" for label, other in zip(labels, read) if label != other][:SHOWN]
    return f"{said}; wrong: {', '.join(mistakes)}" if wrong and mistakes else said


def _drawn(losses: Points, pictures: Any, halves: list[tuple[str, Any, Any]]) -> Drawing:
    """The curve, and below it for each half all pictures, and then some of the wrong readings."""
    drawing = Drawing(len(halves) * (HALF + BETWEEN) - BETWEEN, 0)
    curves(drawing, (0, 0, drawing.width, CHART), {"loss": losses}, "loss of each batch")
    half_by_half(drawing, CHART + 24, pictures, halves)
    return drawing


def half_by_half(
    drawing: Drawing, top: float, pictures: Any, halves: Sequence[tuple[str, Any, Any]],
    tile: float = TILE, row: int = ROW, shown: int = SHOWN,
) -> None:
    """For each half all pictures, and below them the first that are read wrongly.  A half: a name, labels, readings."""
    for i, (name, labels, read) in enumerate(halves):
        x, y = i * (COLUMNS * tile + BETWEEN), top
        wrong = labels != read
        drawing.heading(x, y, f"{name}: {(~wrong).sum()} of {len(labels)} are right")
        drawing.text(x + COLUMNS * tile, y, "framed: wrong" if wrong.any() else "", fill="quiet", anchor="end")
        y += 8 + wall(drawing, x, y + 8, pictures, wrong.tolist(), COLUMNS, tile) + 10
        at = np.flatnonzero(wrong)[:shown]
        captions = [f"{labels[i]} as {read[i]}" for i in at]
        y += gallery(drawing, x, y, pictures[at], captions, row, SIDE)
        more = int(wrong.sum()) - len(at)
        if more > 0:
            drawing.text(x, y + 8, f"and {more} more", fill="quiet")
        drawing.height = max(drawing.height, y + 12)


class Reader(NamedTuple):
    """A network by the name of its training: the loss of each batch, and what it read before and after."""

    name: str
    losses: Sequence[float]
    before: Any
    after: Any


def readers(title: str, images: Any, labels: Any, trained: Sequence[Reader]) -> Flipbook:
    """The curves of several trainings, and a page for each with the pictures that were read wrongly.

    >>> one, two = Reader("one", [2.3, 0.5], [1], [7]), Reader("two", [2.3, 1.5], [1], [1])
    >>> print(readers("two trainings", np.eye(8).reshape(1, 8, 8), [7], [one, two]).text())
    one: 0 of 1, then 1; two: 0 of 1, then 0
    """
    pictures, labels = pictures_of(images, len(labels)), np.asarray(labels)
    chart = Drawing(640.0, 260.0)  # so wide that the legend is seen beside the words
    points = {each.name: [(float(i), loss) for i, loss in enumerate(each.losses, 1)] for each in trained}
    curves(chart, (0, 0, chart.width - 200.0, chart.height), points, "loss of each batch")
    counts = {each.name: [int((labels == np.asarray(read)).sum()) for read in each[2:]] for each in trained}
    said = "; ".join(f"{name}: {first} of {len(labels)}, then {last}" for name, (first, last) in counts.items())
    pages = [Page(chart, f"Pictures that are read rightly: {said}.", (), "curves")]
    for each in trained:
        drawing = Drawing(2 * HALF + BETWEEN, 0)
        halves = [("before", labels, np.asarray(each.before)), ("after", labels, np.asarray(each.after))]
        half_by_half(drawing, 14, pictures, halves)
        pages.append(Page(drawing, f"{each.name}: {counts[each.name][1]} of {len(labels)}.", (), each.name))
    return Flipbook(title, [pages], cover=0, unit="picture", words=said)


def wall(
    drawing: Drawing, x: float, y: float, pictures: Any, framed: Sequence[bool], columns: int, side: float
) -> float:
    """Draw many small pictures side by side as one image, with a frame around some of them; returns the height."""
    count, rows, wide = pictures.shape
    lines = -(-count // columns)
    levels: Any = np.zeros((lines * (rows + 1), columns * (wide + 1)), np.uint8)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (rows + 1), (i % columns) * (wide + 1)
        levels[top : top + rows, left : left + wide] = picture
    with drawing.piece():
        image(drawing, x, y, columns * side, levels, f"{count} pictures, {sum(framed)} of them with a frame")
        places = [(x + (i % columns) * side, y + (i // columns) * side) for i, each in enumerate(framed) if each]
        edge = number(side - 1.6)
        outline = "".join(f"M{number(a)} {number(b)}h{edge}v{edge}h-{edge}z" for a, b in places)
        drawing.shape(outline, stroke="now")
    return lines * side
