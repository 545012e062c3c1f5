"""The pictures of unit 15."""

from __future__ import annotations

from lectures.site.drawn import Sketch


def cover() -> Sketch:
    """2.5 between two numbers of the grid."""
    sketch = Sketch(800, 250)
    [half] = sketch.row(70, ["2.5"])
    low, high = sketch.row(180, ["2", "3"], "leaf")
    sketch.arrow(half, low, "?")
    sketch.arrow(half, high, "?", colour="quiet")
    return sketch
