"""The pictures of unit 01."""

from __future__ import annotations

from lectures.drawn import Sketch


def cover() -> Sketch:
    """..."""
    sketch = Sketch(800, 250)
    sketch.arrow(sketch.box(200, 125, "x", "leaf"), sketch.box(600, 125, "y"), "?")
    return sketch
