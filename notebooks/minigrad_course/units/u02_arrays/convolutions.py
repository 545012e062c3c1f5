"""A convolution of pictures: each picture, all its windows, and what some filters find in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page
from minigrad.viz.images import image, pictures_of

SIDE, GAP, TOP, KERNEL = 78.0, 15.0, 64.0, 26.0
BETWEEN = 2.6  # the windows of a picture


def convolution(pictures: Any, filters: Mapping[str, Any], found: Any) -> Flipbook:
    """Pictures (n, height, width), their windows of the filters' size, and `found` (n, rows, columns, filters).

    >>> picture, filter = np.eye(4).reshape(1, 4, 4), np.eye(3)
    >>> convolution(picture, {"strokes": filter}, np.ones((1, 2, 2, 1)))
    <1 picture of 16 numbers: 4 windows, 36 numbers read, 0 copied>
    """
    size = np.shape(next(iter(filters.values())))
    windows = np.lib.stride_tricks.sliding_window_view(pictures, size, axis=(1, 2))
    count, rows, columns = windows.shape[:3]
    lefts = [i * (SIDE + GAP) + 14 * (i > 0) + 28 * (i > 1) for i in range(2 + len(filters))]
    drawing = Drawing(lefts[-1] + SIDE, TOP + count * (SIDE + GAP))
    read, held = windows[0].size, pictures[0].size
    for left, (name, under) in zip(lefts, [("one buffer", f"{held} numbers"), (f"{rows * columns} windows",
                                           f"{read} read, 0 copied"), *[(name, "") for name in filters]]):
        drawing.heading(left, 14, name)
        drawing.text(left, 34, under, fill="quiet")
    for left, grey in zip(lefts[2:], pictures_of(np.array(list(filters.values()), "f"), len(filters))):
        image(drawing, left + SIDE - KERNEL - 2, 24, KERNEL, grey, "the kernel")
    for number, (picture, parts, maps) in enumerate(zip(pictures, windows, found)):
        y, small = TOP + number * (SIDE + GAP), SIDE / max(rows, columns)
        image(drawing, lefts[0], y, SIDE, _grey(picture, picture), "a picture")
        for i, j in np.ndindex(rows, columns):
            x, top = lefts[1] + j * (small + BETWEEN), y + i * (small + BETWEEN) - 6
            image(drawing, x, top, small, _grey(parts[i, j], picture), f"the window at {i}, {j}")
        for left, filter in zip(lefts[2:], np.moveaxis(maps, -1, 0)):
            image(drawing, left, y, SIDE, _grey(filter, maps), "what the filter finds")
    title = f"{count} picture{'s' * (count != 1)} of {held} numbers: {rows * columns} windows, {read} numbers read, "
    says = "Each number on the right is a window times a filter. White: the window looks like the filter."
    return Flipbook(f"{title}0 copied", [[Page(drawing, says)]])


def _grey(levels: Any, whole: Any) -> Any:
    """Numbers as bytes, from 0 (black) to the largest of the whole picture (white)."""
    return (255 * np.clip(levels / (float(np.max(whole)) or 1.0), 0, 1)).astype(np.uint8)
