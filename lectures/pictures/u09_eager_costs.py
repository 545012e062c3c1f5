"""The pictures of unit 09."""

from __future__ import annotations

from lectures.drawn import Sketch


def cover() -> Sketch:
    """The question."""
    return Sketch(800, 250)
