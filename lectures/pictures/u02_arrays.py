"""The pictures of unit 02: windows of one buffer, calls, names and buffers, strides, versions, a convolution."""

from __future__ import annotations

import numpy as np

from lectures.drawn import LARGE, Sketch
from minigrad.data import digits

from .shared import draw_digits as draw_digits

CELL = 44.0


def _picture() -> np.ndarray:
    image = digits()[1].arrays[0][0].reshape(8, 8)
    return image / image.max()


def _windows(sketch: Sketch, x: float, y: float, side: float, gap: float) -> None:
    """The 36 windows of the first digit, each a small picture."""
    pixels = _picture()
    for i in range(6):
        for j in range(6):
            part = pixels[i : i + 3, j : j + 3]
            sketch.image(x + j * (3 * side + gap), y + i * (3 * side + gap), part, side)


def cover() -> Sketch:
    """A digit, all its windows, and the question."""
    sketch = Sketch(800, 240)
    sketch.image(60, 40, _picture(), 20)
    sketch.label(140, 222, "64 numbers", bold=True)
    _windows(sketch, 370, 10, 9, 6)
    sketch.label(466, 222, "324 numbers", bold=True)
    sketch.arrow((236, 110), (354, 110))
    sketch.label(690, 92, "copied:", bold=True)
    sketch.number(690, 140, "?", "back", LARGE)
    return sketch


def small_call() -> Sketch:
    """There and back."""
    sketch = Sketch(240, 200)
    above, below = sketch.box(120, 40, "Python", "plain", width=130), sketch.box(120, 160, "library", width=130)
    sketch.arrow((90, 64), (90, 136))
    sketch.arrow((150, 136), (150, 64))
    assert above and below
    return sketch


def small_names() -> Sketch:
    """Two names, one buffer."""
    sketch = Sketch(240, 200)
    buffer = sketch.cells(60, 120, [["1", "2", "3"]], size=44)
    for x, name in ((60, "a"), (180, "b")):
        sketch.arrow(sketch.box(x, 40, name, "leaf", width=60), buffer)
    return sketch


def small_strides() -> Sketch:
    """One row of numbers, read as a table."""
    sketch = Sketch(240, 200)
    sketch.cells(20, 20, [["0", "1", "2", "3", "4", "5"]], size=34)
    sketch.cells(70, 80, [["0", "3"], ["1", "4"], ["2", "5"]], "leaf", size=38)
    return sketch


def small_version() -> Sketch:
    """Kept at version 0, now at version 1."""
    sketch = Sketch(240, 200)
    sketch.box(120, 50, "kept: 0", "gradient", width=150)
    sketch.box(120, 140, "now: 1", "wrong", width=150)
    return sketch
