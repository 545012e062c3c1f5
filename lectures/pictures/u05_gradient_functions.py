"""The pictures of unit 05: kinks, one rule, the relay, broadcasting, shapes, measured slopes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Point, Sketch

from .shared import draw_digits
from .shared import rule as rule


class Plot:
    """A part of a sketch with two axes through the origin `at`; a unit of x and y is `wide` and `high` long."""

    def __init__(self, sketch: Sketch, at: Point, wide: float, high: float) -> None:
        self.sketch, self.origin, self.wide, self.high = sketch, at, wide, high

    def at(self, x: float, y: float) -> Point:
        return self.origin[0] + x * self.wide, self.origin[1] - y * self.high

    def axes(self, x: float, up: float, down: float = 0.0) -> None:
        """Lines from -x to x and from -down to up."""
        for ends in ([(-x, 0.0), (x, 0.0)], [(0.0, -down), (0.0, up)]):
            self.sketch.path([self.at(*end) for end in ends], "line", thick=1.6)

    def curve(self, f: Callable[[float], float], ends: Point, colour: str = "there", thick: float = 4.0) -> None:
        points = [ends[0] + (ends[1] - ends[0]) * i / 60 for i in range(61)]
        self.sketch.path([self.at(x, f(x)) for x in points], colour, thick=thick)


def relu(x: float) -> float:
    return max(x, 0.0)


# ---- the line --------------------------------------------------------------------------------------------------------


def _line(sketch: Sketch, y: float, answer: str = "") -> None:
    """relu(x), minus relu(-x), is x."""
    parts: Sequence[tuple[float, Callable[[float], float], str]] = (
        (130, relu, "relu(x)"), (400, lambda x: relu(-x), "relu(−x)"), (670, lambda x: x, "x"))
    for x, f, name in parts:
        plot = Plot(sketch, (x, y), 50, 50)
        plot.axes(1.9, 1.7, 1.0)
        plot.curve(f, (-1.0 if name == "x" else -1.6, 1.6))
        sketch.label(x, y + 74, name, bold=True)
        sketch.dot(x, y, "back", 7)
    sketch.label(265, y - 20, "−", size=LARGE, bold=True)
    sketch.label(535, y - 20, "=", size=LARGE, bold=True)
    sketch.number(720, y + 22, answer or "?", "back", LARGE)


def cover() -> Sketch:
    """Two lines with a kink make a straight one."""
    sketch = Sketch(800, 190)
    _line(sketch, 100)
    return sketch


def _graph(numbers: Sequence[str]) -> Sketch:
    """y and its four operations, with what each passes back."""
    sketch = Sketch(800, 250)
    x, minus = sketch.box(740, 130, "x = 0", "leaf", width=100), sketch.box(560, 200, "−x", width=80)
    one, two = sketch.box(390, 60, "relu", width=100), sketch.box(390, 200, "relu", width=100)
    y = sketch.box(190, 130, "−", width=60)
    ending = sketch.box(60, 130, "y", "gradient", width=60)
    ways = ((ending, y), (y, one), (y, two), (one, x), (two, minus), (minus, x))
    for (start, end), number, kink in zip(ways, numbers, (False, False, False, True, True, False)):
        sketch.arrow(start, end, number, colour="bad" if kink and number == "0" else "back")
    return sketch


def operations() -> Sketch:
    """The backward pass meets four operations."""
    return _graph(("1", "1", "−1", "?", "?", ""))


def zeros() -> Sketch:
    """What each rule returns at x = 0."""
    sketch = _graph(("1", "1", "−1", "0", "0", "0"))
    sketch.label(390, 16, "the rule of relu at 0: 0", size=SMALL, fill="bad")
    return sketch


# ---- one rule --------------------------------------------------------------------------------------------------------


def _tanh(passed: str) -> Sketch:
    sketch = Sketch(800, 250)
    plot = Plot(sketch, (190, 130), 75, 85)
    plot.axes(2.2, 1.2, 1.2)
    plot.curve(math.tanh, (-2.2, 2.2))
    x, slope = 0.693, 0.64
    sketch.path([plot.at(x - 0.8, 0.6 - 0.8 * slope), plot.at(x + 0.8, 0.6 + 0.8 * slope)], "now", thick=3)
    sketch.path([plot.at(0, 0.6), plot.at(x, 0.6)], "quiet", dashes="4 4")
    sketch.dot(*plot.at(x, 0.6), "now", 7)
    sketch.label(*plot.at(-0.42, 0.6), "0.6", bold=True)
    operation = sketch.box(590, 125, "tanh", "plain", width=110)
    inner, out = sketch.box(430, 125, "x", "leaf"), sketch.box(750, 125, "0.6", width=76)
    sketch.arrow(inner, operation, bend=22)
    sketch.arrow(operation, out, bend=22)
    sketch.arrow(out, operation, "2", bend=22, colour="back")
    sketch.arrow(operation, inner, passed, bend=22, colour="back")
    sketch.label(590, 222, "slope = 1 − out²", bold=True, fill="now")
    return sketch


def from_output() -> Sketch:
    """tanh returned 0.6; what does its rule return?"""
    return _tanh("?")


def from_output_answer() -> Sketch:
    """2 times 0.64."""
    return _tanh("1.28")


def _relay(numbers: Sequence[str]) -> Sketch:
    sketch = Sketch(800, 190)
    places = (("x", 60, "leaf"), ("3 · x", 250, "plain"), ("tanh", 480, "plain"), ("y = 0.6", 720, "value"))
    boxes = [sketch.box(x, 90, name, look, width=110 if x > 60 else 70) for name, x, look in places]
    for i, (one, two) in enumerate(pairwise(boxes)):
        sketch.arrow(one, two, bend=34)
        if numbers[i]:
            sketch.arrow(two, one, numbers[i], bend=34, colour="back", new=numbers[i] != "?")
    sketch.label(250, 170, "slope 3", size=SMALL, fill="quiet")
    sketch.label(480, 170, "slope 1 − 0.6²", size=SMALL, fill="quiet")
    return sketch


def relay() -> Sketch:
    """Two operations, one after the other."""
    return _relay(("?", "?", "1"))


def relay_answer() -> list[Sketch]:
    """Each rule passes on what the next one gets."""
    return [_relay(("", "", "1")), _relay(("", "0.64", "1")), _relay(("1.92", "0.64", "1"))]


# ---- broadcasting ----------------------------------------------------------------------------------------------------


def copies() -> Sketch:
    """One row is added to each of four rows."""
    sketch = Sketch(800, 250)
    row = sketch.cells(60, 100, [["b₀", "b₁", "b₂"]], "leaf", size=56, high=44)
    table = [["b₀", "b₁", "b₂"]] * 4
    sketch.cells(370, 34, table, "value", size=56, high=44)
    for i in range(4):
        sketch.arrow(row, (364, 56 + 44 * i))
    sketch.label(454, 234, "used 4 times", size=SMALL, fill="quiet")
    total = sketch.box(700, 122, "sum", "value", width=90)
    sketch.arrow((544, 122), total)
    sketch.label(144, 170, "∂b = ?", bold=True, fill="back")
    return sketch


def columns_added() -> Sketch:
    """Each column of the gradient is added."""
    sketch = Sketch(800, 270)
    ones = [["1", "1", "1"]] * 4
    table = sketch.cells(420, 20, ones, "gradient", size=56, high=40)
    row = sketch.cells(420, 216, [["4", "4", "4"]], "gradient", size=56, high=44)
    for j in range(3):
        x = 448 + 56 * j
        sketch.arrow((x, 182), (x, 214), colour="back", new=True)
    sketch.label(330, table.y, "g", size=LARGE, bold=True, fill="back")
    sketch.label(330, row.y, "∂b", size=LARGE, bold=True, fill="back")
    sketch.label(620, 198, "add each column", anchor="start", fill="quiet", size=SMALL)
    return sketch


def repeated() -> Sketch:
    """A row is repeated downwards, a column to the right, a number everywhere."""
    sketch = Sketch(800, 250)
    ways = ((40, "row (3,)", lambda i, j: i == 0), (310, "column (2, 1)", lambda i, j: j == 0),
            (580, "number ()", lambda i, j: i == j == 0))
    for left, name, first in ways:
        for i in range(2):
            for j in range(3):
                sketch.cells(left + 60 * j, 50 + 60 * i, [["b"]], "leaf" if first(i, j) else "empty", size=60)
        sketch.label(left + 90, 22, name, bold=True)
    for j in range(3):
        sketch.arrow((70 + 60 * j, 176), (70 + 60 * j, 206), colour="there")
    for i in range(2):
        sketch.arrow((496, 80 + 60 * i), (530, 80 + 60 * i), colour="there")
    sketch.arrow((766, 176), (792, 202), colour="there")
    for x, text in ((130, "sum over axis 0"), (400, "sum over axis 1"), (670, "sum over both")):
        sketch.label(x, 232, text, bold=True, fill="back")
    return sketch


# ---- shapes ----------------------------------------------------------------------------------------------------------

CELL = 26.0


def _matrix(sketch: Sketch, x: float, y: float, rows: int, columns: int, name: str, look: str) -> Box:
    """A matrix around (x, y), with its name above it and its shape below."""
    high, wide = rows * CELL, columns * CELL
    box = sketch.cells(x - wide / 2, y - high / 2, [[""] * columns] * rows, look, size=CELL)
    sketch.label(x, y - high / 2 - 16, name, bold=True)
    sketch.label(x, y + high / 2 + 18, f"({rows}, {columns})", size=SMALL, fill="quiet")
    return box


def product() -> Sketch:
    """A product of matrices, and the question which product is the gradient of W."""
    sketch = Sketch(800, 190)
    for x, rows, columns, name, look in (
        (60, 4, 3, "X", "value"), (180, 3, 2, "W", "leaf"), (300, 4, 2, "out", "value"), (400, 4, 2, "g", "gradient"),
        (560, 3, 2, "∂W", "gradient"),
    ):
        _matrix(sketch, x, 96, rows, columns, name, look)
    for x, sign in ((126, "@"), (244, "="), (626, "=")):
        sketch.label(x, 96, sign, bold=True)
    sketch.label(716, 96, "? @ ?", size=LARGE, bold=True, fill="back")
    return sketch


def product_answer() -> Sketch:
    """X turned, times g."""
    sketch = Sketch(800, 200)
    _matrix(sketch, 160, 100, 3, 2, "∂W", "gradient")
    sketch.label(230, 100, "=", bold=True)
    _matrix(sketch, 330, 100, 3, 4, "X.T", "value")
    sketch.label(430, 100, "@", bold=True)
    _matrix(sketch, 510, 100, 4, 2, "g", "gradient")
    sketch.label(600, 84, "4 meets 4", anchor="start", fill="good", bold=True)
    sketch.label(600, 116, "3 and 2 remain", anchor="start", fill="good", bold=True)
    return sketch


# ---- measured slopes -------------------------------------------------------------------------------------------------


def nudge() -> Sketch:
    """A slope, measured from a step to each side."""
    sketch = Sketch(800, 250)
    plot = Plot(sketch, (330, 190), 90, 110)
    plot.sketch.path([plot.at(-2.4, 0), plot.at(2.4, 0)], "line", thick=1.6)

    def f(x: float) -> float:
        return 0.75 + 0.7 * math.tanh(x)

    plot.curve(f, (-2.3, 2.3))
    for x, name in ((-0.9, "x − h"), (0.0, "x"), (0.9, "x + h")):
        sketch.path([plot.at(x, 0), plot.at(x, f(x))], "quiet", dashes="4 4")
        sketch.label(plot.at(x, 0)[0], 214, name, bold=True)
    low, high = plot.at(-0.9, f(-0.9)), plot.at(0.9, f(0.9))
    sketch.path([low, high, (high[0], low[1]), low], "back", thick=3)
    for point in (low, high):
        sketch.dot(*point, "back", 7)
    sketch.label(high[0] + 14, (low[1] + high[1]) / 2, "rise", anchor="start", bold=True, fill="back")
    sketch.label(570, 120, "rise / 2h", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def _kink(chord: bool) -> Sketch:
    sketch = Sketch(800, 230)
    plot = Plot(sketch, (330, 170), 130, 95)
    plot.axes(1.6, 1.5)
    plot.curve(relu, (-1.5, 1.5))
    for x, name in ((-1.0, "−0.1"), (0.0, "0"), (1.0, "0.1")):
        sketch.label(plot.at(x, 0)[0], 196, name, bold=True)
        sketch.dot(*plot.at(x, relu(x)), "back", 7)
    if chord:
        sketch.path([plot.at(-1, 0), plot.at(1, 1)], "back", thick=3)
        sketch.label(560, 90, "0.1 / 0.2 = 0.5", anchor="start", size=LARGE, bold=True, fill="back")
    else:
        sketch.label(600, 90, "slope ?", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def kink() -> Sketch:
    """relu around its kink."""
    return _kink(False)


def kink_half() -> Sketch:
    """The measured slope at the kink is between the two."""
    return _kink(True)


def _steps(known: bool) -> Sketch:
    sketch = Sketch(800, 230)
    for i, (power, digits) in enumerate((("0.1", 3), ("0.00001", 11), ("0.000000000000001", 1))):
        y = 40 + 66 * i
        sketch.label(300, y, f"h = {power}", anchor="end", bold=True)
        if known:
            bar = sketch.bar(320, y, 26 * digits, "leaf" if digits == 11 else "wrong", height=40)
            right = "1 digit right" if digits == 1 else f"{digits} digits right"
            sketch.label(bar.right[0] + 12, y, right, anchor="start", bold=True)
        else:
            sketch.label(324, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def steps() -> Sketch:
    """Three steps, from wide to tiny."""
    return _steps(False)


def steps_known() -> Sketch:
    """How many digits of the slope are right."""
    return _steps(True)


def product_rule() -> list[Sketch]:
    """The rule of a product: each input gets g times the other one."""
    sketches = []
    for shown in range(3):
        sketch = Sketch(800, 260)
        x, y = sketch.box(110, 40, "x = 3", "leaf", width=110), sketch.box(110, 210, "y = 4", "leaf", width=110)
        product, out = sketch.box(430, 125, "x · y", width=120), sketch.box(700, 125, "12", width=90)
        for one, two in ((x, product), (y, product), (product, out)):
            sketch.arrow(one, two, bend=14)
        sketch.arrow(out, product, "g = 2", bend=14, colour="back", new=not shown)
        if shown:
            sketch.arrow(product, x, "g · y = 8", bend=14, colour="back", new=shown == 1)
        if shown > 1:
            sketch.arrow(product, y, "g · x = 6", bend=14, colour="back", new=True)
        sketches.append(sketch)
    return sketches


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_rule() -> Sketch:
    """In, out and g go in."""
    sketch = Sketch(240, 200)
    function = sketch.box(120, 140, "rule", "now", width=100)
    for x, name, look in ((40, "in", "leaf"), (120, "out", "value"), (200, "g", "gradient")):
        sketch.arrow(sketch.box(x, 40, name, look, width=64), function)
    return sketch


def small_sum() -> Sketch:
    """A column of contributions, added."""
    sketch = Sketch(240, 200)
    sketch.cells(90, 10, [["1"], ["1"], ["1"]], "gradient", size=60, high=36)
    sketch.arrow((120, 122), (120, 148), colour="back")
    sketch.cells(90, 152, [["3"]], "gradient", size=60, high=40)
    return sketch


def small_shapes() -> Sketch:
    """Two matrices that fit."""
    sketch = Sketch(240, 200)
    _matrix(sketch, 76, 90, 3, 4, "", "value")
    _matrix(sketch, 190, 90, 4, 2, "", "gradient")
    sketch.label(145, 90, "@", bold=True)
    return sketch


def small_nudge() -> Sketch:
    """A chord of a curve."""
    sketch = Sketch(240, 200)
    plot = Plot(sketch, (120, 110), 45, 70)
    plot.curve(math.tanh, (-2.2, 2.2))
    ends = [plot.at(x, math.tanh(x)) for x in (-0.8, 0.8)]
    sketch.path(ends, "back", thick=3)
    for end in ends:
        sketch.dot(*end, "back", 7)
    return sketch


def network() -> Sketch:
    """The network of the exercise: each operation runs the student's rule."""
    sketch = Sketch(800, 220)
    draw_digits(sketch, 10, 62, (2, 2), side=5, apart=(46, 46))
    before: Box | Point = (108, 108)
    for i, name in enumerate(("@", "+", "max", "@", "+", "σ")):
        box = sketch.box(170 + 92 * i, 108, name, "now", width=66)
        sketch.arrow(before, box)
        sketch.arrow((box.x, 188), (box.x, 134), colour="back")
        before = box
    sketch.label(400, 204, "your four rules", bold=True, fill="back")
    sketch.arrow(before, sketch.box(756, 108, "7", width=54, size=LARGE))
    return sketch
