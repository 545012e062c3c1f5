"""The pictures of unit 01: a forgotten line, three kinds of systems, the layers of a line, what size gains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Sketch

from .shared import draw_digits

FORWARD = (("x", 60.0, "leaf"), ("z", 230.0, "value"), ("h", 400.0, "value"), ("p", 570.0, "value"))
BLUE, ORANGE = "there", "back"


# ---- one line --------------------------------------------------------------------------------------------------------


def _network(activation: str, slope: str, new: bool, wrong: bool) -> Sketch:
    """The forward pass above, the backward pass below; the two places that belong together are marked."""
    sketch = Sketch(800, 250)
    above = [sketch.box(x, 62, name, "now" if name == "h" and new else look, width=76) for name, x, look in FORWARD]
    below = [sketch.box(x, 192, f"∂{name}", "wrong" if wrong and name in "zx" else "gradient", width=76)
             for name, x, _ in (("W", 60.0, ""), *FORWARD[1:])]
    for one, two in pairwise(above):
        sketch.arrow(one, two)
    for one, two in pairwise(below):
        sketch.arrow(two, one, colour="bad" if wrong and two.x < 420 else "back")
    sketch.label(315, 22, activation, bold=True, fill="now" if new else "there")
    sketch.label(315, 236, slope, bold=True, fill="bad" if wrong else "back")
    sketch.label(700, 62, "forward", fill="there")
    sketch.label(700, 192, "backward", fill="back")
    return sketch


def cover() -> Sketch:
    """A new activation, an old slope, and digits."""
    sketch = Sketch(800, 230)
    for y, code, look in ((60, "h = sigmoid(z)", "now"), (160, "∂z = ∂h · (1 − h²)", "gradient")):
        sketch.box(210, y, code, look, width=300, height=56)
    sketch.label(210, 18, "changed", size=SMALL, fill="now")
    sketch.label(210, 206, "forgotten", size=SMALL, fill="back")
    draw_digits(sketch, 480, 48, (2, 3), side=7, apart=(64, 66))
    sketch.arrow((368, 110), (468, 110), colour="quiet")
    sketch.label(740, 110, "?", size=60, bold=True, fill="back")
    return sketch


def right() -> Sketch:
    """tanh forward, the slope of tanh backward."""
    return _network("tanh", "1 − h²", False, False)


def forgotten() -> Sketch:
    """sigmoid forward, the slope of tanh backward."""
    return _network("sigmoid", "1 − h² ?", True, True)


def _read(rows: Sequence[tuple[str, int | None, str]], head: str) -> Sketch:
    """How many of 360 digits are read, as bars to scale."""
    sketch = Sketch(800, 200)
    sketch.label(240, 22, head, anchor="start", fill="quiet", size=SMALL)
    for i, (name, many, look) in enumerate(rows):
        y = 74 + 76 * i
        sketch.label(224, y, name, anchor="end", bold=True)
        if many is None:
            sketch.label(244, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
        else:
            bar = sketch.bar(240, y, many * 1.3, look, height=44)
            sketch.label(bar.right[0] + 12, y, str(many), anchor="start", bold=True, size=LARGE)
    return sketch


def asked() -> Sketch:
    """With the right gradient 281 digits are read."""
    return _read((("right", 281, "leaf"), ("one line forgotten", None, "wrong")), "digits read, after 60 steps")


def ahead() -> list[Sketch]:
    """After 60 steps the wrong gradient is ahead, after 200 it is not."""
    return [
        _read((("right", 281, "leaf"), ("one line forgotten", 302, "wrong")), "digits read, after 60 steps"),
        _read((("right", 332, "leaf"), ("one line forgotten", 276, "wrong")), "digits read, after 200 steps"),
    ]


def apart() -> Sketch:
    """The program as bars: two lines change, far from each other."""
    sketch = Sketch(800, 250)
    lengths = (150, 190, 220, 300, 250, 180, 300, 180, 170)
    for i, length in enumerate(lengths):
        y, look = 22 + 25 * i + (8 if i > 3 else 0), {1: "now", 6: "wrong"}.get(i, "plain")
        sketch.bar(250, y, length, look, height=17)
    sketch.label(232, 47, "changed", anchor="end", bold=True, fill="now")
    sketch.label(232, 180, "forgotten", anchor="end", bold=True, fill="bad")
    sketch.arrow((580, 47), (580, 180), colour="quiet", bend=30, tip=False, dashes="6 5")
    sketch.label(630, 114, "no link", anchor="start", bold=True)
    return sketch


def declared() -> Sketch:
    """One word is replaced, and the slope comes with it."""
    sketch = Sketch(800, 170)
    for y, name, slope, look in ((50, "tanh", "1 − out²", "plain"), (126, "sigmoid", "out · (1 − out)", "now")):
        operation = sketch.box(240, y, name, look, width=150)
        sketch.arrow(operation, sketch.box(540, y, slope, "gradient", width=230), dashes="6 5", colour="back")
    sketch.cross(240, 50, 34)
    return sketch


# ---- three kinds of systems ------------------------------------------------------------------------------------------


def factors() -> Sketch:
    """A network, a fast processor, many machines."""
    sketch = Sketch(800, 250)
    for x, name in ((130, "algorithms"), (400, "hardware"), (670, "data")):
        sketch.label(x, 232, name, bold=True)
    for i, many in enumerate((3, 4, 2)):
        for j in range(many):
            x, y = 60 + 70 * i, 105 + 50 * (j - (many - 1) / 2)
            if i < 2:
                for k in range((4, 2)[i]):
                    sketch.path([(x, y), (x + 70, 105 + 50 * (k - ((4, 2)[i] - 1) / 2))], "line", thick=1.4)
            sketch.dot(x, y, "there", 10)
    for i, (name, long) in enumerate((("CPU", 2), ("GPU", 60), ("TPU", 150))):
        sketch.label(330, 50 + 54 * i, name, anchor="end", bold=True)
        sketch.bar(342, 50 + 54 * i, long, "leaf", height=30)
    sketch.label(440, 50, "10–100 ×", anchor="middle", size=SMALL, fill="quiet")
    for i in range(60):
        sketch.rect(590 + 16 * (i % 10), 30 + 28 * (i // 10), 12, 22, "back-fill", "back", thick=1)
    return sketch


def _four(answer: bool) -> Sketch:
    """A layer of a library, and its functions for two processors."""
    sketch = Sketch(800, 220)
    layer = sketch.box(120, 110, "new layer", "now", width=160)
    names = (("forward", 60), ("backward", 160))
    for x, where in ((420, "CPU"), (640, "GPU")):
        sketch.label(x, 16, where, bold=True)
        for name, y in names:
            sketch.box(x, y + 10, name if answer else "?", ("value" if name == "forward" else "gradient"), width=160)
    sketch.arrow(layer, (330, 110))
    return sketch


def new_layer() -> Sketch:
    """How many functions?"""
    return _four(False)


def new_layer_four() -> Sketch:
    """Four."""
    return _four(True)


def map_reduce() -> Sketch:
    """Parts on machines: map, then reduce."""
    sketch = Sketch(800, 240)
    end = sketch.box(700, 105, "+", "value", width=70, size=LARGE)
    for i, wide in enumerate((150, 90, 60, 40)):
        y = 30 + 50 * i
        part = sketch.box(120, y, "", "leaf", width=wide, height=36)
        f = sketch.box(400, y, "f", "now", width=64, height=38)
        sketch.arrow(part, f)
        sketch.arrow(f, end)
    sketch.label(400, 224, "map", bold=True)
    sketch.label(700, 224, "reduce", bold=True)
    return sketch


COLUMNS = ("networks", "gradients", "data", "life-cycle", "processors", "machines")
ROWS = (("layers", "Caffe", "~~××~×", "✓×××××"), ("data-parallel", "Spark", "×××××✓", "××✓××✓"),
        ("frameworks", "PyTorch", "✓✓✓✓✓~", "✓✓✓✓✓✓"))


def _table(which: int) -> Sketch:
    """The table of the lecture, or that of our programs."""
    sketch = Sketch(800, 240)
    for j, name in enumerate(COLUMNS):
        sketch.label(236 + 100 * j, 22, name, size=SMALL, bold=True)
    for i, row in enumerate(ROWS):
        y = 74 + 66 * i
        sketch.label(6, y - 10, row[0], anchor="start", bold=True)
        sketch.label(6, y + 14, row[1], anchor="start", size=SMALL, fill="quiet")
        for j, mark in enumerate(row[which]):
            x, claim = 236 + 100 * j, row[2][j]
            differs = which == 3 and (mark == "✓") != (claim == "✓")
            stroke, thick = ("now", 4.0) if differs else ("line", 1.4)
            sketch.rect(x - 44, y - 28, 88, 56, "paper", stroke, thick=thick, round=4)
            if mark == "✓":
                sketch.tick(x, y, 12)
            elif mark == "×":
                sketch.cross(x, y, 11)
            else:
                sketch.label(x, y, "~", size=LARGE, bold=True, fill="quiet")
    return sketch


def published() -> Sketch:
    """The table as it was published."""
    return _table(2)


def tested() -> Sketch:
    """What the small programs say; framed where it differs."""
    return _table(3)


def _twice(broken: bool) -> Sketch:
    sketch = Sketch(800, 230)
    boxes = [sketch.box(x, 60, name, look, width=92) for x, name, look in (
        (60, "x", "leaf"), (230, "@ W", "now"), (400, "tanh", "plain"), (570, "@ W", "now"), (740, "tanh", "plain"))]
    for one, two in pairwise(boxes):
        sketch.arrow(one, two)
    memory = sketch.box(400, 176, "∂W", "wrong" if broken else "gradient", width=110, height=56)
    sketch.arrow(boxes[1], memory, colour="back")
    sketch.arrow(boxes[3], memory, colour="bad" if broken else "back", dashes="6 5" if broken else "")
    if broken:
        sketch.cross(486, 118, 15)
        sketch.label(580, 176, "overwritten", bold=True, fill="bad")
    else:
        sketch.label(480, 176, "?", size=LARGE, bold=True, fill="back")
    return sketch


def twice() -> Sketch:
    """The same weights are used two times."""
    return _twice(False)


def twice_lost() -> Sketch:
    """One contribution is lost."""
    return _twice(True)


# ---- what a framework consists of ------------------------------------------------------------------------------------


def components() -> Sketch:
    """Four components, in one language."""
    sketch = Sketch(800, 230)
    sketch.rect(20, 14, 760, 206, "tint", "line", round=10)
    sketch.label(400, 198, "Python", bold=True)
    places = ((210, 60, "linear algebra", "x @ W", "value"), (590, 60, "hardware", 'x.to("cuda")', "leaf"),
              (210, 136, "backpropagation", "loss.backward()", "gradient"), (590, 136, "networks", "nn.Linear", "now"))
    for x, y, name, code, look in places:
        sketch.box(x, y, name, look, width=330, height=64, under=code)
    return sketch


LAYERS = (("front end", "back"), ("execution engine", "there"), ("hardware runtime", "good"))


def _layers(numbers: Sequence[str]) -> Sketch:
    """Three layers, and what line by line happens in them."""
    sketch = Sketch(800, 260)
    for i, (name, colour) in enumerate(LAYERS):
        y = 56 + 76 * i
        sketch.rect(6, y - 30, 226, 60, "tint", "line", round=4)
        sketch.rect(6, y - 30, 8, 60, colour, colour, round=2)
        sketch.label(24, y, name, anchor="start", bold=True)
    for j, line in enumerate(("y = …", "y.backward()", "step()")):
        x = 342 + 186 * j
        sketch.box(x, 56, line, "plain", width=168, height=56)
        for i, (number, what) in enumerate(((numbers[2 * j], ("recorded", "rules", "recorded")[j]),
                                            (numbers[2 * j + 1], "kernels"))):
            look = "empty" if number == "?" else ("gradient" if what == "rules" else "value")
            sketch.box(x, 132 + 76 * i, number, look, width=168, height=60, under=what, size=24)
    return sketch


def stack() -> Sketch:
    """What does each layer do?"""
    return _layers("??????")


def stack_counted() -> list[Sketch]:
    """Counted while the lines run."""
    return [_layers(("4", "4", "?", "?", "?", "?")), _layers(("4", "4", "5", "8", "?", "?")),
            _layers(("4", "4", "5", "8", "0", "4"))]


def languages() -> Sketch:
    """Python above, C below; a call goes down and comes back."""
    sketch = Sketch(800, 220)
    for y, name, look in ((56, "Python", "there"), (164, "C, C++, CUDA", "good")):
        sketch.rect(10, y - 40, 780, 80, "tint", "line", round=6)
        sketch.label(28, y, name, anchor="start", bold=True, fill=look)
    for i, name in enumerate(("matmul", "add", "tanh")):
        x = 330 + 160 * i
        sketch.box(x, 164, name, "leaf", width=110)
        sketch.arrow((x - 26, 60), (x - 26, 140))
        sketch.arrow((x + 26, 140), (x + 26, 60), colour="quiet")
    return sketch


# ---- size ------------------------------------------------------------------------------------------------------------


def _petabyte(answer: str) -> Sketch:
    sketch = Sketch(800, 200)
    disk = sketch.box(130, 100, "1 PB", "leaf", width=150, height=90, under="a million GB", size=LARGE)
    sketch.arrow(disk, sketch.box(430, 100, "one machine", "value", width=190), "1 GB/s")
    sketch.label(660, 100, answer, size=LARGE, bold=True, fill="back")
    return sketch


def petabyte() -> Sketch:
    """One machine reads a petabyte."""
    return _petabyte("? days")


def petabyte_days() -> list[Sketch]:
    """Twelve days; with many machines ten seconds."""
    many = Sketch(800, 200)
    disk = many.box(130, 100, "1 PB", "leaf", width=150, height=90, under="a million GB", size=LARGE)
    for i in range(40):
        many.rect(330 + 20 * (i % 10), 40 + 32 * (i // 10), 15, 25, "there-fill", "there", thick=1)
    many.arrow(disk, (322, 100))
    many.label(430, 186, "100,000 machines", bold=True)
    many.label(660, 100, "10 s", size=LARGE, bold=True, fill="back")
    return [_petabyte("12 days"), many]


def _step(gain: bool) -> Sketch:
    sketch = Sketch(800, 200)
    rows = ((60, 60.0, "before"), (140, 0.6 if gain else None, "with the chip"))
    for y, products, name in rows:
        sketch.label(200, y, name, anchor="end", bold=True)
        if products is None:
            sketch.label(222, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
            continue
        first = sketch.bar(216, y, products * 5, "leaf", height=46)
        rest = sketch.bar(first.right[0], y, 200, "gradient", height=46)
        if products > 1:
            sketch.label(first.x, y, "products: 60 ms", bold=True)
        sketch.label(rest.x, y, "rest: 40 ms", bold=True)
    return sketch


def amdahl() -> Sketch:
    """Products take 60 of 100 ms; a chip computes them a hundred times as fast."""
    return _step(False)


def amdahl_gain() -> Sketch:
    """The rest remains."""
    return _step(True)


def _workers(answer: bool) -> Sketch:
    """Four workers with parts of different sizes."""
    sketch = Sketch(800, 240)
    for i, many in enumerate((1000, 300, 100, 37)):
        y = 32 + 54 * i
        part = sketch.bar(20, y, many * 0.26, "leaf", height=36)
        sketch.label(part.right[0] + 10, y, f"{many:,}", anchor="start", size=SMALL, fill="quiet")
        g = sketch.box(430, y, f"g{'₁₂₃₄'[i]}", "gradient", width=70, height=40)
        sketch.arrow((354, y), g)
        weight = f"{many:,}" if answer else ""
        sketch.arrow(g, (640, 113), weight, colour="back", thick=1.5 + (4.0 * many / 1000 if answer else 0), size=SMALL,
                     at=0.2)
    sketch.box(700, 113, "∂W" if answer else "∂W ?", "gradient", width=110, height=56)
    return sketch


def workers() -> Sketch:
    """How are four gradients combined?"""
    return _workers(False)


def workers_weighted() -> Sketch:
    """Each counts as often as it has pictures."""
    return _workers(True)


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_lines() -> Sketch:
    """Two lines without a link."""
    sketch = Sketch(240, 200)
    sketch.box(120, 50, "h = …", "now", width=150)
    sketch.box(120, 150, "∂z = …", "wrong", width=150)
    sketch.path([(120, 76), (120, 124)], "quiet", dashes="5 5")
    return sketch


def small_systems() -> Sketch:
    """Three rows of marks."""
    sketch = Sketch(240, 200)
    for i, row in enumerate(("✓××", "××✓", "✓✓✓")):
        for j, mark in enumerate(row):
            (sketch.tick if mark == "✓" else sketch.cross)(60 + 60 * j, 40 + 60 * i, 13)
    return sketch


def small_layers() -> Sketch:
    """Three layers."""
    sketch = Sketch(240, 200)
    before: Box | None = None
    for i, (name, look) in enumerate((("Python", "gradient"), ("engine", "value"), ("kernels", "leaf"))):
        box = sketch.box(120, 36 + 64 * i, name, look, width=150)
        if before is not None:
            sketch.arrow(before, box)
        before = box
    return sketch


def small_rest() -> Sketch:
    """The rest stays."""
    sketch = Sketch(240, 200)
    sketch.bar(20, 60, 120, "leaf", height=46)
    sketch.bar(140, 60, 80, "gradient", height=46)
    sketch.bar(20, 140, 6, "leaf", height=46)
    sketch.bar(26, 140, 80, "gradient", height=46)
    return sketch


def your_turn() -> Sketch:
    """The backward pass of the exercise is the student's."""
    sketch = Sketch(800, 220)
    draw_digits(sketch, 10, 62, (2, 2), side=5, apart=(46, 46))
    before: Box | tuple[float, float] = (108, 108)
    for i, name in enumerate(("@ W", "+ b", "tanh", "@ V", "+ c")):
        box = sketch.box(180 + 108 * i, 108, name, "value", width=78)
        sketch.arrow(before, box)
        sketch.arrow((box.x, 190), (box.x, 134), colour="back")
        before = box
    sketch.label(396, 206, "five steps back, by hand", bold=True, fill="back")
    sketch.arrow(before, sketch.box(756, 108, "7", width=54, size=LARGE))
    return sketch
