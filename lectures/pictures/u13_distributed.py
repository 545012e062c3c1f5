"""The pictures of unit 13: rings of workers, chunks, bytes, overlap, slow workers, memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lectures.drawn import LARGE, SMALL, Box, Sketch


def _ring(sketch: Sketch, x: float, y: float, radius: float, many: int, size: float, named: bool = True) -> list[Box]:
    """Workers in a circle, with an arrow from each to the next."""
    places = [(x + radius * math.sin(2 * math.pi * i / many), y - radius * math.cos(2 * math.pi * i / many))
              for i in range(many)]
    if named:
        boxes = [sketch.box(*place, str(i), width=size, height=size) for i, place in enumerate(places)]
        for i, box in enumerate(boxes):
            sketch.arrow(box, boxes[(i + 1) % many], bend=-0.12 * radius, colour="back")
        return boxes
    for px, py in places:
        sketch.dot(px, py, "there", size)
    return []


def cover() -> Sketch:
    """Two rings, one of four workers and one of many."""
    sketch = Sketch(800, 220)
    _ring(sketch, 150, 110, 76, 4, 48)
    _ring(sketch, 500, 110, 96, 60, 4, named=False)
    sketch.label(150, 110, "4", size=LARGE, bold=True)
    sketch.label(500, 110, "1,000", size=LARGE, bold=True)
    sketch.number(320, 110, "1", "back", LARGE)
    sketch.number(700, 110, "?", "back", LARGE)
    sketch.label(320, 156, "sent by each", size=SMALL, fill="quiet")
    sketch.label(700, 156, "times as much", size=SMALL, fill="quiet")
    return sketch


def _petabyte(known: bool) -> Sketch:
    sketch = Sketch(800, 240)
    for y, name, length, said in ((70, "1 machine", 440, "11.6 days"), (170, "100,000 machines", 4, "10 seconds")):
        sketch.label(230, y, name, anchor="end", bold=True)
        if known:
            bar = sketch.bar(250, y, length, "wrong" if length > 9 else "leaf", height=40)
            sketch.label(bar.right[0] + 12, y, said, anchor="start", bold=True)
        else:
            sketch.label(256, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    sketch.label(400, 222, "to read 1 PB once, at 1 GB a second each", size=SMALL, fill="quiet")
    return sketch


def petabyte() -> Sketch:
    """A petabyte, by one machine and by many."""
    return _petabyte(False)


def petabyte_known() -> Sketch:
    """Days and seconds."""
    return _petabyte(True)


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_chunks() -> Sketch:
    """An array, cut into four."""
    sketch = Sketch(240, 200)
    for i in range(4):
        sketch.cells(16 + 54 * i, 76, [["", ""]], "value", size=23, high=46)
    return sketch


def small_ring() -> Sketch:
    """Four workers in a ring."""
    sketch = Sketch(240, 200)
    _ring(sketch, 120, 100, 68, 4, 44)
    return sketch


def small_mean() -> Sketch:
    """Four gradients, one mean."""
    sketch = Sketch(240, 200)
    mean = sketch.box(120, 150, "mean", "gradient", width=96)
    for i in range(4):
        sketch.arrow((30 + 60 * i, 40), mean, colour="back")
    return sketch


def _bars(sketch: Sketch, x: float, top: float, lengths: Sequence[float], high: float, apart: float) -> None:
    """Times of workers, of which the last one is slow."""
    longest = max(lengths)
    for i, length in enumerate(lengths):
        sketch.bar(x, top + i * apart, length, "wrong" if length == longest else "value", height=high)
    bottom = top + len(lengths) * apart - high / 2
    sketch.path([(x + longest, top - high), (x + longest, bottom)], "bad", thick=2.4, dashes="6 5")


def small_slowest() -> Sketch:
    """Three bars, and a long one."""
    sketch = Sketch(240, 200)
    _bars(sketch, 30, 40, (120, 116, 122, 176), 24, 38)
    return sketch
