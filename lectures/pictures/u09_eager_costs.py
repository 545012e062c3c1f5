"""The pictures of unit 09: trips to memory, three bounds, a fused kernel, operators that multiply, languages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Sketch
from minigrad.core.primitive import P
from minigrad_course.units.u09_eager_costs.demo import ELEMENTWISE, PYTORCH

OPERATIONS = ("× 0.707", "erf", "× 0.5", "+ 0.5", "× x")
TRIPS = (8, 8, 8, 8, 12)  # MB
AT = [88.0 + 150 * i for i in range(5)]


# ---- trips to memory -------------------------------------------------------------------------------------------------


def cover() -> Sketch:
    """4 MB go in, 4 MB come out: how many in between?"""
    sketch = Sketch(800, 240)
    for x, name, look in ((70, "x", "leaf"), (730, "gelu(x)", "value")):
        sketch.box(x, 60, name, look, width=130, height=66, under="4 MB")
    sketch.path([(20, 124), (780, 124)], "line", thick=2)
    sketch.label(400, 60, "? MB", size=44, bold=True, fill="back")
    for x, name in zip(AT, OPERATIONS):
        sketch.box(x + 12, 200, name, "plain", width=118)
        for shift, ends, colour in ((-20, (128, 174), "there"), (20, (174, 128), "back")):
            sketch.arrow((x + 12 + shift, ends[0]), (x + 12 + shift, ends[1]), colour=colour, thick=4)
    return sketch


def curve() -> Sketch:
    """gelu beside relu."""
    sketch = Sketch(800, 190)
    xs = [-3 + 0.1 * i for i in range(56)]

    def at(x: float, y: float) -> tuple[float, float]:
        return 400 + 90 * x, 150 - 50 * y

    for ends in ([at(-3.2, 0), at(3.2, 0)], [at(0, -0.5), at(0, 2.8)]):
        sketch.path(ends, "line", thick=1.6)
    sketch.path([at(x, max(x, 0.0)) for x in xs], "quiet", thick=2.4, dashes="8 6")
    sketch.path([at(x, x * (1 + math.erf(x / math.sqrt(2))) / 2) for x in xs], "there", thick=4.5)
    sketch.label(550, 130, "gelu", anchor="start", bold=True, fill="there")
    sketch.label(470, 60, "relu", anchor="end", size=SMALL, fill="quiet")
    return sketch


def _trips(known: bool) -> Sketch:
    sketch = Sketch(800, 290)
    sketch.label(0, 20, "memory", anchor="start", size=SMALL, fill="quiet")
    sketch.label(0, 262, "processor", anchor="start", size=SMALL, fill="quiet")
    for i, (x, name) in enumerate(zip(AT, OPERATIONS)):
        sketch.box(x, 210, name, "plain", width=118)
        before, after = "xabcd"[i], "abcdy"[i]
        if i == 0:
            sketch.box(x - 60, 60, before, "leaf", width=54)
        sketch.box(x + 75 - (i == 4) * 5, 60, after, "value" if i == 4 else "empty", width=54)
        sketch.arrow((x - 58, 86), (x - 18, 184), colour="there", thick=3)
        sketch.arrow((x + 18, 184), (x + 62, 86), colour="back", thick=3)
        if i == 4:
            sketch.box(x, 60, "x", "leaf", width=54)
            sketch.arrow((x, 86), (x, 184), colour="there", thick=3)
        if known:
            sketch.number(x, 136, str(TRIPS[i]), "good")
    if known:
        sketch.label(780, 264, "together 44 MB", anchor="end", bold=True, fill="good")
    return sketch


def trips() -> Sketch:
    """Each operation reads from memory and writes to memory."""
    return _trips(False)


def trips_counted() -> Sketch:
    """The megabytes of each operation."""
    return _trips(True)


def _in_place(numbers: Sequence[str]) -> Sketch:
    sketch = Sketch(800, 230)
    x = sketch.box(400, 50, "x", "leaf", width=150, height=60, under="4 MB")
    by = sketch.box(400, 190, "× 2", "plain", width=120)
    sketch.arrow(x, by, numbers[0], bend=60, colour="there", thick=4)
    sketch.arrow(by, x, numbers[1], bend=60, colour="back", thick=4)
    sketch.label(90, 50, "memory", size=SMALL, fill="quiet")
    sketch.label(90, 190, "processor", size=SMALL, fill="quiet")
    return sketch


def in_place() -> Sketch:
    """The result goes where the input was."""
    return _in_place(("?", "?"))


def in_place_counted() -> Sketch:
    """It is read and written all the same."""
    return _in_place(("4", "4"))


# ---- three bounds ----------------------------------------------------------------------------------------------------


def _dispatched(known: bool) -> Sketch:
    sketch = Sketch(800, 250)
    for y, name, share in ((60, "10 numbers", 4.0), (150, "1,000 numbers", 44.0)):
        sketch.label(190, y, name, anchor="end", bold=True)
        if known or share < 10:
            sketch.bar(210, y, 400, "plain", height=48)
            sketch.bar(610, y, share, "now", height=48)
            sketch.label(410, y, "find, check, make room", size=SMALL, fill="quiet")
        else:
            sketch.label(214, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    sketch.label(614, 18, "compute", size=SMALL, fill="now")
    sketch.label(210, 222, "time of x + 1", anchor="start", size=SMALL, fill="quiet")
    return sketch


def dispatched() -> Sketch:
    """Ten numbers: nearly all of the time is dispatch."""
    return _dispatched(False)


def dispatched_both() -> Sketch:
    """A hundred times as many numbers, nearly the same time."""
    return _dispatched(True)


def _at(x: float, y: float) -> tuple[float, float]:
    """A place of the roofline: operations for each byte, and billions of operations a second."""
    return 110 + 140 * (math.log10(x) + 1.3), 250 - 66 * math.log10(y)


def _roof(sketch: Sketch) -> None:
    speed, most = 20.0, 200.0
    corner = most / speed
    sketch.path([_at(0.05, speed * 0.05), _at(corner, most)], "there", thick=5)
    sketch.path([_at(corner, most), _at(300, most)], "back", thick=5)
    for line in ([(110.0, 250.0), (680.0, 250.0)], [(110.0, 250.0), (110.0, 70.0)]):
        sketch.path(line, "quiet", thick=1.6)
    sketch.label(395, 274, "operations for each byte", size=SMALL, fill="quiet")
    sketch.label(100, 60, "speed", size=SMALL, fill="quiet")


def roofline() -> list[Sketch]:
    """Memory bounds what computes little with each byte, arithmetic what computes much."""
    first, second = Sketch(800, 288), Sketch(800, 288)
    for sketch in (first, second):
        _roof(sketch)
        sketch.label(190, 130, "memory", bold=True, fill="there")
        sketch.label(590, 68, "arithmetic", bold=True, fill="back")
    for name, x, y, place in (("x + 1", 0.125, 2.5, "right"), ("gelu, fused", 4, 80, "right"),
                              ("X @ W", 120, 195, "below")):
        at = _at(x, y)
        second.dot(*at, "now", 9)
        if place == "right":
            second.label(at[0] + 18, at[1] + 12, name, anchor="start", bold=True)
        else:
            second.label(at[0] + 12, at[1] + 32, name, bold=True)
    return [first, second]


# ---- fused by hand ---------------------------------------------------------------------------------------------------


def one_pass() -> Sketch:
    """One kernel: a read, a write, and registers between them."""
    sketch = Sketch(800, 270)
    sketch.label(0, 20, "memory", anchor="start", size=SMALL, fill="quiet")
    x, y = sketch.box(60, 70, "x", "leaf", width=70), sketch.box(740, 70, "y", "value", width=70)
    sketch.rect(20, 150, 760, 100, "none", "good", thick=3, round=10)
    boxes = [sketch.box(at + 12, 200, name, "plain", width=112) for at, name in zip(AT, OPERATIONS)]
    for one, two in pairwise(boxes):
        sketch.arrow(one, two, colour="good")
    sketch.arrow(x, boxes[0], "4", colour="there", thick=4)
    sketch.arrow(boxes[-1], y, "4", colour="back", thick=4)
    sketch.label(400, 120, "8 MB in one kernel", bold=True, fill="good")
    return sketch


def _two_kernels(known: bool) -> Sketch:
    sketch = Sketch(800, 280)
    forward = sketch.box(250, 90, "gelu", "now", width=210, height=60)
    backward = sketch.box(250, 220, "gelu_backward", "now", width=210, height=60)
    x, g = sketch.box(50, 90, "x", "leaf", width=60), sketch.box(50, 220, "g", "gradient", width=60)
    sketch.arrow(x, forward)
    sketch.arrow(x, backward)
    sketch.arrow(g, backward, colour="back")
    sketch.arrow(forward, sketch.box(440, 90, "y", width=60))
    sketch.arrow(backward, sketch.box(440, 220, "∂x", "gradient", width=60), colour="back")
    sketch.label(650, 24, "arrays moved", size=SMALL, fill="quiet")
    for y, name, size, look in ((90, "15 operations", 35, "gradient"), (220, "2 kernels", 5, "now")):
        sketch.label(520, y - 34, name, anchor="start", bold=True)
        if known or size > 10:
            bar = sketch.bar(520, y, 6.2 * size, look, height=36)
            sketch.label(bar.right[0] + 10, y, str(size), anchor="start", bold=True)
        else:
            sketch.label(524, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def two_kernels() -> Sketch:
    """A kernel forward, and one backward."""
    return _two_kernels(False)


def two_kernels_counted() -> Sketch:
    """35 arrays as operations, 5 by two kernels."""
    return _two_kernels(True)


# What a training step of the course's GPT counts, before and after; a test counts again.
STEP = (("dispatch", "kernels", 782, 756), ("bandwidth", "MB moved", 176, 128), ("size", "MB kept", 12.0, 8.8))


def step() -> list[Sketch]:
    """Three savings in a training step of a GPT."""
    found = []
    for stage in (1, 2):
        sketch = Sketch(800, 285)
        for i, (name, unit, before, after) in enumerate(STEP):
            y = 40 + 92 * i
            sketch.label(190, y - 4, name, anchor="end", bold=True)
            sketch.label(190, y + 24, unit, anchor="end", size=SMALL, fill="quiet")
            for j, (value, look) in enumerate(((before, "gradient"), (after, "now"))[:stage]):
                bar = sketch.bar(210, y - 8 + 36 * j, 470 * value / before, look, height=30)
                sketch.label(bar.right[0] + 12, y - 8 + 36 * j, f"{value:g}", anchor="start", bold=True)
        found.append(sketch)
    return found


# ---- operators -------------------------------------------------------------------------------------------------------

SOFTMAX = ("max", "subtract", "exp", "sum", "divide", "multiply")


def _composite(known: bool) -> Sketch:
    sketch = Sketch(800, 230)
    sketch.label(400, 24, "softmax", bold=True)
    sketch.rect(16, 46, 768, 84, "none", "there", thick=3, round=10)
    if known:
        for i, name in enumerate(SOFTMAX):
            sketch.box(82 + 127 * i, 88, name, "plain", width=116)
    else:
        sketch.label(400, 88, "? operations", size=LARGE, bold=True, fill="back")
    sketch.box(150, 196, "primitive", "now", width=180)
    sketch.label(256, 196, "a kernel and a gradient", anchor="start", size=SMALL, fill="quiet")
    sketch.box(570, 196, "composite", width=180)
    sketch.label(676, 196, "a formula", anchor="start", size=SMALL, fill="quiet")
    return sketch


def composite() -> Sketch:
    """softmax has no kernel."""
    return _composite(False)


def composite_opened() -> Sketch:
    """softmax is six primitives."""
    return _composite(True)


def table() -> list[Sketch]:
    """Operations, times devices, times gradients: a square for each kernel to write."""
    found = []
    for devices, gradients in ((1, 1), (3, 1), (3, 2)):
        sketch = Sketch(800, 285)
        for layer in reversed(range(gradients)):
            for row in range(devices):
                for column in range(36):
                    x, y = 150 + 16.5 * column + 8 * layer, 70 + 62 * row + 22 * layer
                    look = ("back", "back-fill") if layer else ("there", "there-fill")
                    sketch.rect(x, y, 14, 18, look[1], look[0], thick=1.2, round=2)
        for row, name in enumerate(("CPU", "CUDA", "…")[:devices]):
            sketch.label(130, 80 + 62 * row, name, anchor="end", bold=True)
        sketch.label(150, 36, "36 operations", anchor="start", bold=True, fill="there")
        words = ("", "× 3 devices", "× 3 devices × 2, for gradients")[devices // 3 + gradients - 1]
        sketch.label(310, 36, words, anchor="start", bold=True, fill="back")
        sketch.label(780, 36, f"= {36 * devices * gradients}", anchor="end", size=LARGE, bold=True)
        found.append(sketch)
    return found


def _pairs(known: bool) -> Sketch:
    sketch = Sketch(800, 290)
    side = 270.0
    if known:
        sketch.rect(60, 10, side, side, "there-fill", "there", thick=1.5, round=0)
        for i in range(1, ELEMENTWISE):
            at = side * i / ELEMENTWISE
            sketch.path([(60 + at, 10), (60 + at, 10 + side)], "there", thick=0.6)
            sketch.path([(60, 10 + at), (60 + side, 10 + at)], "there", thick=0.6)
    else:
        sketch.arrow(sketch.box(110, 145, "first", "plain", width=120), sketch.box(290, 145, "second", width=130))
    sketch.label(420, 100, "36 operations,", anchor="start", bold=True)
    sketch.label(420, 132, "each after each", anchor="start", bold=True)
    sketch.label(420, 200, f"= {ELEMENTWISE**2:,}" if known else "= ?", anchor="start", size=44, bold=True, fill="back")
    return sketch


def pairs() -> Sketch:
    """One operation after another."""
    return _pairs(False)


def pairs_counted() -> Sketch:
    """A square for each chain of two."""
    return _pairs(True)


def _growth(known: bool) -> Sketch:
    sketch = Sketch(800, 270)
    rows = (("minigrad", len(P), "leaf"), ("PyTorch, 2020", 1364, "value"), ("PyTorch, 2021", 2055, "value"),
            ("PyTorch 2.13", PYTORCH["operators"], "value"))
    for i, (name, count, look) in enumerate(rows):
        y = 40 + 62 * i
        sketch.label(190, y, name, anchor="end", bold=True)
        if known or i < 3:
            bar = sketch.bar(210, y, 0.18 * count, look, height=40)
            sketch.label(bar.right[0] + 12, y, f"{count:,}", anchor="start", bold=True)
        else:
            sketch.label(214, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def growth() -> Sketch:
    """Operators that PyTorch declared, at three times."""
    return _growth(False)


def growth_counted() -> Sketch:
    """With the count of today's."""
    return _growth(True)


# ---- languages -------------------------------------------------------------------------------------------------------


def languages() -> Sketch:
    """A front-end records loops, back-ends print them."""
    sketch = Sketch(800, 270)
    front = sketch.box(100, 135, "Python", "leaf", width=150, height=66, under="front-end")
    loops = sketch.box(350, 135, "loops", "now", width=150, height=66, under="of minigrad")
    sketch.arrow(front, loops, "record", size=SMALL)
    for y, name, under in ((45, "C", "to read"), (135, "LLVM", "processors"), (225, "CUDA", "GPUs")):
        back = sketch.box(650, y, name, "value", width=180, height=66, under=under)
        sketch.arrow(loops, back, "print" if y == 135 else "", size=SMALL)
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_trip() -> Sketch:
    """Down to the processor, and up again."""
    sketch = Sketch(240, 200)
    sketch.path([(20, 70), (220, 70)], "line", thick=2)
    by = sketch.box(120, 160, "f", "plain", width=80)
    sketch.arrow(sketch.box(60, 36, "x", "leaf", width=60), by, colour="there", thick=4)
    sketch.arrow(by, sketch.box(180, 36, "y", width=60), colour="back", thick=4)
    return sketch


def small_roof() -> Sketch:
    """A slope and a flat roof."""
    sketch = Sketch(240, 200)
    sketch.path([(20, 170), (130, 60)], "there", thick=6)
    sketch.path([(130, 60), (225, 60)], "back", thick=6)
    sketch.dot(60, 132, "now", 9)
    return sketch


def small_fused() -> Sketch:
    """Operations in one frame."""
    sketch = Sketch(240, 200)
    sketch.rect(12, 70, 216, 80, "none", "good", thick=4, round=10)
    boxes = [sketch.box(x, 110, "", "plain", width=44) for x in (50, 120, 190)]
    for one, two in pairwise(boxes):
        sketch.arrow(one, two, colour="good")
    sketch.arrow((50, 20), (50, 84), colour="there", thick=4)
    sketch.arrow((190, 84), (190, 20), colour="back", thick=4)
    return sketch


def small_table() -> Sketch:
    """A table that grows in three directions."""
    sketch = Sketch(240, 200)
    for layer, colour in ((1, "back"), (0, "there")):
        for row in range(3):
            for column in range(6):
                sketch.rect(30 + 28 * column + 14 * layer, 40 + 42 * row + 14 * layer, 24, 26,
                            f"{colour}-fill", colour, thick=1.5, round=2)
    return sketch


def gpt() -> Sketch:
    """The GPT of the exercise: each layer runs the student's operator."""
    sketch = Sketch(800, 220)
    before = sketch.box(60, 90, "emm", "leaf", width=90)
    for x in (250, 500):
        sketch.rect(x - 100, 30, 200, 120, "tint", "line", thick=2, round=8)
        sketch.label(x, 56, "layer", size=SMALL, fill="quiet")
        layer = sketch.box(x, 104, "gelu", "now", width=120)
        sketch.arrow(before, layer)
        sketch.arrow((x, 196), (x, 130), colour="back")
        before = layer
    sketch.label(375, 204, "your two kernels", bold=True, fill="back")
    sketch.arrow(before, sketch.box(720, 90, "a", width=70, size=LARGE))
    return sketch
