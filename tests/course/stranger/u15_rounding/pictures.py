"""The pictures of unit 15."""

from __future__ import annotations

from lectures.site.drawn import Sketch


def cover() -> Sketch:
    """2.5 between two numbers of the grid."""
    sketch = Sketch(800, 250)
    low, high = sketch.box(200, 180, "2", "leaf"), sketch.box(600, 180, "3", "leaf")
    half = sketch.box(400, 70, "2.5")
    sketch.arrow(half, low, "?")
    sketch.arrow(half, high, "?", colour="quiet")
    return sketch
