"""The pictures of unit 07: the bill, tangents, passes.  Those of the tape and of checkpoints are in `u07_kept.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import minigrad as mg
from lectures.site.drawn import LARGE, SMALL, Box, Sketch
from minigrad.viz.images import heat_map
from minigrad.viz.numbers import letters_of

from .u07_kept import a_step as a_step
from .u07_kept import checkpointed as checkpointed
from .u07_kept import cover as cover
from .u07_kept import in_parts as in_parts
from .u07_kept import in_parts_counted as in_parts_counted
from .u07_kept import kept_of_a_block as kept_of_a_block
from .u07_kept import one_part as one_part
from .u07_kept import one_part_answer as one_part_answer
from .u07_kept import planned as planned
from .u07_kept import shared as shared
from .u07_kept import shared_answer as shared_answer
from .u07_kept import small_parts as small_parts
from .u07_kept import small_shared as small_shared
from .u07_kept import the_bill as the_bill
from .u07_kept import triangle as triangle

# ---- tangents --------------------------------------------------------------------------------------------------------


def _pair(sketch: Sketch, x: float, y: float, value: str, tangent: str, name: str, look: str = "value") -> Box:
    """A value and its tangent below it, as one box."""
    sketch.label(x, y - 66, name, bold=True, fill="quiet")
    sketch.box(x, y - 24, value, look, width=120)
    sketch.box(x, y + 24, tangent, "now" if tangent != "?" else "empty", width=120)
    return Box(x, y, 120, 92)


def _moved(tangent: str) -> Sketch:
    sketch = Sketch(800, 190)
    x = _pair(sketch, 130, 110, "3", "2", "x", "leaf")
    y = _pair(sketch, 670, 110, "9", tangent, "x · x")
    operation = sketch.box(400, 110, "x · x", "plain", width=130, height=92)
    sketch.arrow(x, operation)
    sketch.arrow(operation, y)
    sketch.label(40, 86, "value", size=SMALL, fill="quiet")
    sketch.label(34, 134, "tangent", size=SMALL, fill="quiet")
    return sketch


def moved() -> Sketch:
    """x is 3 and moves at 2; how fast does its square move?"""
    return _moved("?")


def moved_answer() -> Sketch:
    """At 12."""
    sketch = _moved("12")
    sketch.label(400, 180, "slope 6, times 2", bold=True, fill="now")
    return sketch


def area() -> list[Sketch]:
    """A rectangle of a by b grows: two strips, and a corner that does not count."""
    stages = []
    for stage in range(4):
        sketch = Sketch(800, 270)
        left, floor, wide, high, da, db = 170.0, 230.0, 270.0, 140.0, 60.0, 44.0
        sketch.rect(left, floor - high, wide, high, "there-fill", "there", thick=2, round=0)
        sketch.label(left + wide / 2, floor - high / 2, "a · b", size=LARGE, bold=True)
        sketch.label(left + wide / 2, floor + 22, "a", bold=True)
        sketch.label(left - 22, floor - high / 2, "b", bold=True)
        if stage >= 1:
            sketch.rect(left + wide, floor - high, da, high, "paper", "now", thick=3, round=0)
            sketch.label(left + wide + da / 2, floor + 22, "da", bold=True, fill="now")
            sketch.label(560, floor - high / 2, "a strip: ?", size=LARGE, bold=True, anchor="start", fill="now")
        if stage >= 2:
            sketch.rect(left, floor - high - db, wide, db, "paper", "now", thick=3, round=0)
            sketch.label(left - 26, floor - high - db / 2, "db", bold=True, fill="now")
            sketch.label(560, floor - high - db / 2, "a strip: ?", size=LARGE, bold=True, anchor="start", fill="now")
        if stage == 3:
            sketch.rect(left + wide, floor - high - db, da, db, "tint", "line", thick=2, round=0, dashes="4 4")
            sketch.path([(left + wide + da, floor - high - db), (left + wide + da + 46, 22)], "line", thick=1.6)
            gone = "the corner: gone, for tiny steps"
            sketch.label(left + wide + da + 54, 20, gone, anchor="start", size=SMALL, fill="quiet")
        stages.append(sketch)
    return stages


def two_modes() -> list[Sketch]:
    """Forward mode goes along with the program; reverse mode goes forth, keeps, and comes back."""
    stages = []
    for stage in range(3):
        sketch = Sketch(800, 250)
        for y, mode in ((60, "forward mode"), (190, "reverse mode")):
            sketch.label(0, y, mode, anchor="start", bold=True, fill="now" if y < 100 else "back")
            boxes = [sketch.box(220 + 160 * i, y, name, "leaf" if not i else "value", width=90)
                     for i, name in enumerate(("x", "h", "p", "ℓ"))]
            for one, two in pairwise(boxes):
                sketch.arrow(one, two)
            if y > 100 and stage == 2:
                for one, two in pairwise(boxes[::-1]):
                    sketch.arrow((one.x - 8, y + 25), (two.x + 8, y + 25), bend=16, colour="back", new=True)
                for box in boxes[1:3]:
                    sketch.label(box.x, y - 38, "kept", size=SMALL, fill="back", bold=True)
            if y < 100 and stage >= 1:
                for one, two in pairwise(boxes):
                    sketch.arrow((one.x + 8, y - 25), (two.x - 8, y - 25), bend=16, colour="now", new=True)
                for box, name in zip(boxes, ("dx", "dh", "dp", "dℓ")):
                    sketch.label(box.x, y + 38, name, size=SMALL, fill="now", bold=True)
        stages.append(sketch)
    return stages


def _curves(answer: bool) -> Sketch:
    sketch = Sketch(800, 250)
    left, right, floor, top = 110.0, 740.0, 200.0, 36.0
    sketch.path([(left, top - 14), (left, floor), (right + 20, floor)], "quiet", thick=1.6)
    middle = (left + right) / 2
    sketch.path([(left, floor), (middle, top), (right, floor)], "back", thick=3, fill="back-fill")
    sketch.label(left - 10, top, "400 kB", anchor="end", size=SMALL, fill="quiet")
    sketch.label(left - 10, floor, "0", anchor="end", size=SMALL, fill="quiet")
    sketch.label(middle, 130, "reverse mode", bold=True, fill="back")
    if answer:
        sketch.path([(left, floor), (middle, floor)], "now", thick=6)
        sketch.label((left + middle) / 2, floor + 26, "forward mode: 0", bold=True, fill="now")
    else:
        sketch.label((left + middle) / 2, floor + 26, "forward mode: ?", bold=True, fill="now")
    sketch.label(right, floor + 26, "time", anchor="end", size=SMALL, fill="quiet")
    return sketch


def for_later() -> Sketch:
    """What reverse mode keeps over time; forward mode is a question mark."""
    return _curves(False)


def for_later_answer() -> Sketch:
    """Forward mode keeps nothing, and takes half the time."""
    return _curves(True)


# ---- passes ----------------------------------------------------------------------------------------------------------


def jacobian() -> list[Sketch]:
    """A matrix: forward mode finds a column, reverse mode a row."""
    stages = []
    for stage in range(3):
        sketch = Sketch(800, 270)
        lit = [[], [(i, 2) for i in range(4)], [(1, j) for j in range(6)]][stage]
        sketch.cells(250, 44, [[""] * 6] * 4, ("value", "now", "gradient")[stage], size=50, lit=lit)
        sketch.label(400, 20, "inputs", bold=True, fill="quiet")
        sketch.label(236, 144, "outputs", bold=True, fill="quiet", anchor="end")
        if stage == 1:
            sketch.label(570, 110, "mg.jvp:", anchor="start", bold=True, fill="now")
            sketch.label(570, 140, "a column", anchor="start", bold=True, fill="now")
            sketch.arrow((375, 264), (375, 248), colour="now")
        if stage == 2:
            sketch.label(570, 110, "backward:", anchor="start", bold=True, fill="back")
            sketch.label(570, 140, "a row", anchor="start", bold=True, fill="back")
        stages.append(sketch)
    return stages


def _shapes(known: bool) -> Sketch:
    sketch = Sketch(800, 280)
    sketch.label(230, 22, "2,410 weights → 1 loss", bold=True)
    sketch.rect(50, 120, 360, 16, "back-fill", "back", thick=2, round=0)
    sketch.label(640, 22, "1 angle → 576 numbers", bold=True)
    sketch.rect(632, 46, 16, 160, "paper", "now", thick=2, round=0)
    for x, forward, reverse in ((230, "2,410", "1"), (640, "1", "576")):
        for y, mode, count, colour in ((236, "forward", forward, "now"), (266, "reverse", reverse, "back")):
            sketch.label(x - 6, y, f"{mode}:", anchor="end", fill=colour, bold=True)
            fill = "good" if known and count == "1" else colour
            sketch.label(x + 6, y, (count if known else "?"), anchor="start", bold=True, fill=fill)
    return sketch


def shapes() -> Sketch:
    """A wide Jacobian and a tall one; how many passes each mode takes is a question mark."""
    return _shapes(False)


def shapes_known() -> Sketch:
    """Forward mode takes a pass for each input, reverse mode one for each output."""
    return _shapes(True)


def spots() -> Sketch:
    """A bright spot at three angles, and below each the tangent of the picture."""
    sketch = Sketch(800, 290)
    row = mg.linspace(-1.5, 1.5, 24)
    across, down = row.reshape(1, 24), row.reshape(24, 1)

    def spot(angle: mg.Tensor) -> mg.Tensor:
        dx, dy = across - mg.cos(angle), down - mg.sin(angle)
        return mg.exp(-6 * (dx * dx + dy * dy))

    for i, turn in enumerate((0.0, 0.8, 1.6)):
        value, change = mg.jvp(spot, (mg.asarray(2 * math.pi * turn / 3),), (mg.ones(()),))
        for y, numbers, name in ((6, value, "picture"), (152, change, "tangent")):
            array = np.asarray(numbers.numpy(), float)
            most = float(np.abs(array).max())
            heat_map(sketch, 210 + 200 * i, y, letters_of(array, most), 5.4, name)
    sketch.label(190, 70, "picture", anchor="end", bold=True)
    sketch.label(190, 216, "tangent", anchor="end", bold=True, fill="now")
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_pair() -> Sketch:
    """A value and its tangent."""
    sketch = Sketch(220, 200)
    for x, value, tangent in ((56, "3", "2"), (166, "9", "12")):
        sketch.box(x, 74, value, "leaf" if x < 100 else "value", width=64, height=48)
        sketch.box(x, 126, tangent, "now", width=64, height=48)
    sketch.arrow((92, 100), (130, 100), colour="now")
    return sketch


def small_shapes() -> Sketch:
    """A column and a row."""
    sketch = Sketch(220, 200)
    lit: Sequence[tuple[int, int]] = [(i, 1) for i in range(4)]
    sketch.cells(30, 20, [[""] * 4] * 4, "now", size=40, lit=lit)
    for j in (0, 2, 3):
        sketch.rect(30 + 40 * j, 100, 40, 40, "back-fill", "back", thick=1.5, round=0)
    return sketch
