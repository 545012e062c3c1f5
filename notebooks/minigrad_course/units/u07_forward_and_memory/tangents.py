"""A picture that is computed from one angle, and the tangents of all of its numbers, from one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.autodiff.forward import jvp
from minigrad.ops.creation import asarray, ones
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.images import heat_map
from minigrad.viz.numbers import letters_of

SIDE, TILE, ANGLES = 24, 12.0, 24
HALF, BETWEEN = SIDE * TILE, 60.0


def moving(picture: Callable[..., Any], title: str = "a picture and its tangent") -> Flipbook:
    """A picture for each angle of a circle, its tangent by one pass of forward mode, and the difference it predicts.

    >>> flat = lambda angle: mg.zeros((24, 24)) + angle
    >>> moving(flat)
    <a picture and its tangent: 24 angles, one pass of forward mode for each>
    """
    knob = Knob("angle", tuple(f"{360 * i // ANGLES}°" for i in range(ANGLES)), 3)
    pages = [[_page(picture, 2 * math.pi * i / ANGLES)] for i in range(ANGLES)]
    about = f"{title}: {ANGLES} angles, one pass of forward mode for each"
    return Flipbook(about, pages, (knob,), cover=0, unit="angle", words=about)


def _page(picture: Callable[..., Any], angle: float) -> Page:
    value, change = jvp(picture, (asarray(angle),), (ones(()),))
    step = 0.01
    later, before = (np.asarray(picture(asarray(angle + side)).numpy(), float) for side in (step, -step))
    measured = (later - before) / (2 * step)
    error = float(np.abs(change.numpy() - measured).max() / (np.abs(measured).max() or 1.0))
    agrees = error < 0.02
    drawing = Drawing(2 * HALF + BETWEEN, HALF + 40)
    for x, numbers, name in ((0.0, value, "the picture"), (HALF + BETWEEN, change, "its tangent")):
        array = np.asarray(numbers.numpy(), float)
        most = float(np.abs(array).max())
        drawing.heading(x, 12, name)
        heat_map(drawing, x, 24, letters_of(array, most), TILE, name)
    drawing.text(HALF + BETWEEN, HALF + 38, "blue: the number grows, orange: it shrinks", fill="quiet")
    says = "576 derivatives from one pass. " + (
        "Finite differences agree." if agrees else f"✗ Finite differences do not agree: {100 * error:.0f} % off.")
    drawing.text(0, HALF + 38, "finite differences agree" if agrees else "finite differences do not agree",
                 fill="good" if agrees else "bad", bold=True)
    return Page(drawing, says)
