"""The pictures of unit 04: what a program leaves, names, recording, equal graphs, branches, orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from lectures.site.drawn import LARGE, SMALL, Box, Sketch


class Spot(NamedTuple):
    """Where a node of a graph stands, and how it looks."""

    x: float
    y: float
    text: str
    look: str = "value"


Edge = tuple[str, str, float]  # from a node, to a node, and how far it is bent


def _graph(
    sketch: Sketch, spots: Mapping[str, Spot], edges: Sequence[Edge], *, colour: str = "there", width: float = 0.0,
    new: Sequence[Edge] = (),
) -> dict[str, Box]:
    """A graph; the arrows among `new` are thick."""
    boxes = {name: sketch.box(s.x, s.y, s.text, s.look, width=width) for name, s in spots.items()}
    for source, target, bend in edges:
        now, thick = ("now", 4.0) if (source, target, bend) in new else (colour, 2.4)
        sketch.arrow(boxes[source], boxes[target], bend=bend, colour=now, thick=thick)
    return boxes


def _code(
    sketch: Sketch, x: float, y: float, lines: Sequence[str], lit: Sequence[int] = (), size: float = SMALL
) -> None:
    """Lines of code; the lit ones stand on a coloured ground."""
    step = 25.0 if size < 20 else 1.5 * size
    for i, line in enumerate(lines):
        if i in lit:
            sketch.rect(x - 8, y + step * (i - 0.5), 250, step, "tint", "now", thick=2)
        sketch.label(x, y + step * i, line, anchor="start", size=size, code=True)


# ---- a program -------------------------------------------------------------------------------------------------------

CODE = (
    "def scaled(h):", "    return w * h", "h = x", "for i in range(2):", "    h = scaled(h) + x", "if h.item() > 0:",
    "    y = h * h", "else:", "    y = h - 1",
)
SPOTS = {
    "w": Spot(340, 44, "w", "leaf"), "x": Spot(340, 216, "x", "leaf"), "p": Spot(428, 104, "w · x"),
    "h1": Spot(500, 190, "+ x"), "q": Spot(572, 104, "w · h"), "h2": Spot(650, 190, "+ x"),
    "y": Spot(750, 130, "h · h"),
}
EDGES: tuple[Edge, ...] = (
    ("w", "p", 0), ("x", "p", 0), ("p", "h1", 0), ("x", "h1", 0), ("w", "q", 0), ("h1", "q", 0), ("q", "h2", 0),
    ("x", "h2", -34), ("h2", "y", 12), ("h2", "y", -12),
)
WORDS = ("def", "for", "if")


def _words(sketch: Sketch, x: float, y: float, look: str = "plain") -> list[Box]:
    return [sketch.box(x, y + 62 * i, word, look, width=90) for i, word in enumerate(WORDS)]


def cover() -> Sketch:
    """Three words of Python, and a graph: which of them are in it?"""
    sketch = Sketch(800, 200)
    words = _words(sketch, 90, 38)
    spots = {name: Spot(s.x, 14 + 0.75 * s.y, s.text, s.look) for name, s in SPOTS.items()}
    _graph(sketch, spots, EDGES)
    for word in words:
        sketch.arrow(word, (250, 100), colour="back", dashes="5 5", tip=False)
    sketch.number(258, 100, "?", "back", LARGE)
    return sketch


def program() -> Sketch:
    """A program with a function, a loop and a branch, and an empty place for its graph."""
    sketch = Sketch(800, 250)
    _code(sketch, 16, 24, CODE)
    sketch.rect(300, 6, 492, 234, "paper", "line", thick=2, dashes="6 5", round=8)
    sketch.label(546, 123, "?", size=64, bold=True, fill="back")
    return sketch


# The lines that run, and how many boxes there are then.
STEPS = (((2,), 2), ((3, 4), 2), ((1,), 3), ((4,), 4), ((1,), 5), ((4,), 6), ((5,), 6), ((6,), 7))


def leaves() -> list[Sketch]:
    """Line by line: what each line leaves in the graph."""
    stages = []
    before: tuple[str, ...] = ()
    for lit, count in STEPS:
        there = tuple(SPOTS)[:count]
        sketch = Sketch(800, 250)
        _code(sketch, 16, 24, CODE, lit)
        spots = {name: SPOTS[name]._replace(look="now") if name not in before and name not in "wx" else SPOTS[name]
                 for name in there}
        edges = [edge for edge in EDGES if edge[0] in there and edge[1] in there]
        _graph(sketch, spots, edges, new=[edge for edge in edges if edge[1] not in before])
        before = there
        stages.append(sketch)
    return stages


# ---- names -----------------------------------------------------------------------------------------------------------


def name_moves() -> Sketch:
    """Three lines with one name, and three values."""
    sketch = Sketch(800, 200)
    _code(sketch, 30, 60, ("y = x", "y = y * y", "y = y + y"), size=24)
    for i, text in enumerate(("x", "· ", "+")):
        sketch.box(380 + 170 * i, 100, text.strip(), "value" if i else "leaf", width=80)
    sketch.label(465, 100, "?", size=LARGE, bold=True, fill="back")
    sketch.label(635, 100, "?", size=LARGE, bold=True, fill="back")
    return sketch


def name_moved() -> list[Sketch]:
    """The name moves on from value to value, and each operation has two arrows."""
    stages = []
    for count in (1, 2, 3):
        sketch = Sketch(800, 220)
        _code(sketch, 30, 70, ("y = x", "y = y * y", "y = y + y"), [count - 1], size=22)
        texts = (("x", "leaf"), ("·", "value"), ("+", "value"))
        boxes = [sketch.box(400 + 160 * i, 110, text, look, width=80) for i, (text, look) in enumerate(texts[:count])]
        for one, two in pairwise(boxes):
            for bend in (14, -14):
                sketch.arrow(one, two, bend=bend, new=two is boxes[-1])
        for i in range(count):
            last = i == count - 1
            sketch.label(400 + 160 * i, 34, "y", size=LARGE, bold=True, fill="now" if last else "line")
            sketch.path([(400 + 160 * i, 52), (400 + 160 * i, 84)], "now" if last else "line", thick=2, dashes="4 4")
        stages.append(sketch)
    return stages


def _total(sketch: Sketch, kept: bool) -> None:
    xs = (112, 362, 690)
    sums = []
    for i, x in enumerate(xs):
        look = "value" if kept or i == 2 else "empty"
        colour = "there" if kept or i == 2 else "line"
        h, loss = sketch.box(x - 66, 40, "w · x", look, width=84), sketch.box(x + 60, 40, "h · h", look, width=84)
        add = sketch.box(x + 60, 150, "+", look, width=70)
        for bend in (10, -10):
            sketch.arrow(h, loss, bend=bend, colour=colour)
        sketch.arrow(loss, add, colour=colour)
        if sums:
            gap = i == 2
            sketch.arrow(sums[-1], add, colour="there" if kept else "line", dashes="5 5" if gap else "")
        sums.append(add)
    sketch.label(522, 40, "· · ·", bold=True, fill="quiet", size=LARGE)
    sketch.label(750, 210, "total", bold=True, fill="now")
    sketch.path([(750, 198), (750, 176)], "now", thick=2, dashes="4 4")


def total() -> Sketch:
    """A hundred rounds, each of three operations; the names belong to the last round."""
    sketch = Sketch(800, 230)
    _total(sketch, False)
    sketch.label(330, 210, "round 1 … round 100", fill="quiet")
    return sketch


def total_kept() -> Sketch:
    """All rounds can be reached from the last sum."""
    sketch = Sketch(800, 230)
    _total(sketch, True)
    sketch.label(330, 210, "100 × 3 = 300 operations", bold=True, fill="bad")
    return sketch


# ---- recording -------------------------------------------------------------------------------------------------------


def three_steps() -> list[Sketch]:
    """Compute, wrap, record: what happens at w * x."""
    stages = []
    for count in (1, 2, 3):
        sketch = Sketch(800, 270)
        sketch.label(90, 40, "w * x", size=LARGE, bold=True, code=True)
        kernel = sketch.box(300, 40, "3 · 2", "plain", width=120)
        sketch.arrow((150, 40), kernel, new=count == 1)
        sketch.label(300, 88, "1 compute", bold=True, fill="there")
        value = sketch.box(470, 40, "6", "value", width=70)
        sketch.arrow(kernel, value, new=count == 1)
        if count > 1:
            sketch.rect(420, 4, 370, 74, "none", "now", thick=3, round=10)
            sketch.label(720, 40, "Tensor", bold=True, fill="now")
            sketch.label(660, 102, "2 wrap", bold=True, fill="now")
        if count > 2:
            node = sketch.box(560, 200, "multiply", "value", width=150)
            sketch.arrow((590, 80), node, colour="now")
            for x, name in ((120, "node of w"), (310, "node of x")):
                sketch.arrow(sketch.box(x, 200, name, "leaf", width=150), node, bend=-26 if x < 200 else 0, new=True)
            sketch.label(560, 250, "3 record", bold=True, fill="there")
        stages.append(sketch)
    return stages


def holds() -> Sketch:
    """A tensor refers to its node, a node to the nodes of its inputs; no node refers to a tensor."""
    sketch = Sketch(800, 230)
    nodes = [sketch.box(120 + 270 * i, 170, text, look, width=150) for i, (text, look) in enumerate(
        (("leaf", "leaf"), ("multiply", "value"), ("tanh", "value")))]
    tensors = [sketch.box(120 + 270 * i, 50, text, "now", width=150) for i, text in enumerate(("x  2", "h  6", "y  1"))]
    for one, two in pairwise(nodes):
        sketch.arrow(two, one, colour="there")
    for tensor, node in zip(tensors, nodes):
        sketch.arrow(tensor, node, colour="now")
    sketch.label(255, 50, "tensors", fill="quiet")
    sketch.label(255, 206, "input", fill="quiet", size=SMALL)
    sketch.label(525, 206, "input", fill="quiet", size=SMALL)
    return sketch


def card() -> Sketch:
    """The node of w * x, filled in."""
    sketch = Sketch(800, 150)
    sketch.rect(300, 8, 300, 134, "there-fill", "there", thick=2, round=8)
    for i, (name, value) in enumerate((("op", "multiply"), ("inputs", "1, 2"), ("serial", "3"), ("shape", "()"))):
        sketch.label(400, 30 + 30 * i, name, anchor="end", fill="quiet")
        sketch.label(420, 30 + 30 * i, value, anchor="start", bold=True)
    node = Box(450, 75, 300, 134)
    for y, name in ((40, "w  1"), (110, "x  2")):
        sketch.arrow(sketch.box(110, y, name, "leaf", width=110), node)
    return sketch


# ---- equal graphs ----------------------------------------------------------------------------------------------------

SPELLINGS = (
    ("h = w * x + b", "y = h * h"),
    ("for f in [affine]:", "    x = f(x)", "y = x * x"),
    ("y = (w * x + b) *", "    (w * x + b)"),
)
SHARED = {
    "m": Spot(0, 50, "·"), "a": Spot(80, 50, "+"), "y": Spot(170, 50, "·"),
}
SHARED_EDGES: tuple[Edge, ...] = (("m", "a", 0), ("a", "y", 12), ("a", "y", -12))


def _placed(spots: Mapping[str, Spot], x: float, y: float) -> dict[str, Spot]:
    return {name: s._replace(x=s.x + x, y=s.y + y) for name, s in spots.items()}


def spellings() -> Sketch:
    """Three programs for one formula."""
    sketch = Sketch(800, 220)
    for i, lines in enumerate(SPELLINGS):
        x = 14 + 268 * i
        sketch.rect(x, 8, 250, 110, "tint", "line", thick=1.6, round=8)
        for row, line in enumerate(lines):
            sketch.label(x + 14, 36 + 28 * row, line, anchor="start", size=SMALL, code=True)
        sketch.label(x + 125, 160, "?", size=LARGE, bold=True, fill="back")
        sketch.label(x + 125, 200, "ABC"[i], bold=True)
    return sketch


def spelled() -> Sketch:
    """The first two leave one graph, the third another one."""
    sketch = Sketch(800, 220)
    for i in (0, 1):
        _graph(sketch, _placed(SHARED, 60 + 268 * i, 70), SHARED_EDGES)
        sketch.label(140 + 268 * i, 200, "AB"[i], bold=True)
    sketch.label(284, 120, "=", size=LARGE, bold=True, fill="good")
    sketch.label(548, 120, "≠", size=LARGE, bold=True, fill="bad")
    twice = {"m": Spot(600, 60, "·"), "a": Spot(680, 60, "+"), "n": Spot(600, 160, "·"), "c": Spot(680, 160, "+"),
             "y": Spot(765, 110, "·")}
    _graph(sketch, twice, (("m", "a", 0), ("n", "c", 0), ("a", "y", 0), ("c", "y", 0)))
    sketch.label(680, 206, "C", bold=True)
    return sketch


def pairs() -> list[Sketch]:
    """Two graphs are compared node by node: what corresponds to what."""
    stages = []
    for count in (1, 2, 3):
        sketch = Sketch(800, 240)
        left = {"y": Spot(120, 44, "·"), "h": Spot(120, 190, "· 2")}
        right = {"y": Spot(640, 44, "·"), "p": Spot(560, 190, "· 2"), "q": Spot(720, 190, "· 2")}
        one = _graph(sketch, left, (("h", "y", 14), ("h", "y", -14)))
        two = _graph(sketch, right, (("p", "y", 0), ("q", "y", 0)))
        sketch.path([one["y"].right, two["y"].left], "good", thick=3, dashes="7 6")
        if count > 1:
            sketch.path([one["h"].right, two["p"].left], "good", thick=3, dashes="7 6")
        if count > 2:
            sketch.path([one["h"].right, (400, 232), (680, 232), (720, 214)], "bad", thick=3, dashes="7 6")
            sketch.cross(400, 222, 12)
        stages.append(sketch)
    return stages


# ---- branches --------------------------------------------------------------------------------------------------------


def branch() -> Sketch:
    """A function with an if, and eleven values of x."""
    sketch = Sketch(800, 190)
    _code(sketch, 20, 40, ("if x.item() > 0:", "    return x * x + x", "return x * -1"), size=20)
    sketch.cells(330, 30, [[str(x).replace("-", "−") for x in range(-5, 6)]], "leaf", size=40, high=40)
    for i in range(11):
        sketch.arrow((350 + 40 * i, 76), (350 + 40 * i, 112))
        sketch.label(350 + 40 * i, 136, "?", bold=True, fill="back")
    return sketch


def branches() -> Sketch:
    """Two graphs: six runs leave one, five the other."""
    sketch = Sketch(800, 230)
    sketch.cells(40, 16, [[str(x).replace("-", "−") for x in range(-5, 1)]], "leaf", size=44, high=40)
    sketch.cells(470, 16, [[str(x) for x in range(1, 6)]], "leaf", size=44, high=40)
    sketch.arrow((172, 62), (172, 112))
    sketch.arrow((580, 62), (580, 112))
    _graph(sketch, {"x": Spot(110, 160, "x", "leaf"), "y": Spot(240, 160, "· −1")}, (("x", "y", 0),))
    _graph(sketch, {"x": Spot(480, 160, "x", "leaf"), "m": Spot(600, 160, "·"), "y": Spot(730, 160, "+")},
           (("x", "m", 12), ("x", "m", -12), ("m", "y", 0), ("x", "y", -40)))
    return sketch


# ---- orders ----------------------------------------------------------------------------------------------------------

BOARD = {
    "x": Spot(60, 125, "x", "leaf"), "a": Spot(220, 60, "a"), "d": Spot(220, 190, "d"), "c": Spot(420, 60, "c"),
    "b": Spot(420, 190, "b"), "y": Spot(620, 125, "y"),
}
BOARD_EDGES: tuple[Edge, ...] = (
    ("x", "a", 0), ("x", "d", 0), ("a", "c", 0), ("d", "c", 0), ("d", "b", 0), ("x", "b", 44), ("c", "y", 0),
    ("b", "y", 0),
)


def board() -> Sketch:
    """Five operations without line numbers."""
    sketch = Sketch(700, 270)
    _graph(sketch, BOARD, BOARD_EDGES)
    return sketch


def ordered() -> list[Sketch]:
    """One order: each box is computed after its inputs."""
    order = ("d", "b", "a", "c", "y")
    stages = []
    for count in range(1, 6):
        sketch = Sketch(700, 270)
        looks = {name: spot if name in (*order[:count], "x") else spot._replace(look="plain")
                 for name, spot in BOARD.items()}
        boxes = _graph(sketch, looks, BOARD_EDGES)
        for number, name in enumerate(order[:count], 1):
            sketch.number(boxes[name].x + 30, boxes[name].y - 30, str(number), "now")
        stages.append(sketch)
    return stages


def too_early() -> Sketch:
    """A box is computed before one of its inputs."""
    sketch = Sketch(700, 270)
    spots = {**BOARD, "d": BOARD["d"]._replace(look="empty"), "c": BOARD["c"]._replace(look="wrong"),
             "b": BOARD["b"]._replace(look="plain"), "y": BOARD["y"]._replace(look="plain")}
    boxes = _graph(sketch, spots, BOARD_EDGES)
    sketch.number(boxes["a"].x + 30, boxes["a"].y - 30, "1", "now")
    sketch.number(boxes["c"].x + 30, boxes["c"].y - 30, "2", "bad")
    sketch.cross(320, 125, 12)
    return sketch


def numbers() -> Sketch:
    """Nodes are numbered when they are recorded: every arrow leads to a higher number."""
    sketch = Sketch(800, 150)
    boxes = [sketch.box(70 + 130 * i, 90, str(i + 1), "leaf" if not i else "value", width=64, size=LARGE)
             for i in range(6)]
    for one, two, bend in ((0, 1, 0), (0, 2, 34), (1, 3, 40), (2, 3, 0), (2, 4, -34), (3, 5, 36), (4, 5, 0)):
        sketch.arrow(boxes[one], boxes[two], bend=bend)
    return sketch


# Losses of the exercise's GPT, in a right order and in the order in which nodes are first met; `course.train_names()`.
AT = (1, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100)
RIGHT = (3.81, 2.47, 2.06, 1.96, 1.74, 1.76, 1.87, 1.64, 1.67, 1.68, 1.53, 1.6, 1.72, 1.53, 1.52)
SPOILED = (3.81, 2.82, 4.95, 12.26, 31.06, 103.28, 247.73, 893.21, 2482.71, 5790.53, 11652.1, 23403.88, 45590.97,
           68616.95, 115594.75)


def _losses(spoiled: bool) -> Sketch:
    """The loss of a GPT over a hundred steps, on a scale of powers of ten."""
    sketch = Sketch(800, 250)
    left, floor, wide, decade = 110.0, 190.0, 4.3, 30.0

    def at(step: float, loss: float) -> tuple[float, float]:
        return left + wide * step, floor - decade * math.log10(loss)

    for power, name in ((0, "1"), (2, "100"), (4, "10,000")):
        y = floor - decade * power
        sketch.path([(left, y), (left + 100 * wide, y)], "line", thick=1.2)
        sketch.label(left - 12, y, name, anchor="end", size=SMALL, fill="quiet")
    sketch.label(left + 50 * wide, 226, "100 steps", size=SMALL, fill="quiet")
    sketch.label(left - 12, 10, "loss", anchor="end", fill="quiet")
    sketch.path([at(*each) for each in zip(AT, RIGHT)], "good", thick=5)
    sketch.label(560, floor - 8, "right order", anchor="start", bold=True, fill="good")
    sketch.label(560, floor + 22, "morlaa, varun", anchor="start", size=SMALL, fill="quiet")
    if spoiled:
        sketch.path([at(*each) for each in zip(AT, SPOILED)], "bad", thick=5)
        sketch.label(560, 44, "as first met", anchor="start", bold=True, fill="bad")
    else:
        sketch.label(560, 44, "as first met: ?", anchor="start", bold=True, fill="bad")
    return sketch


def matters() -> Sketch:
    """A GPT learns in a right order. And in a wrong one?"""
    return _losses(False)


def mattered() -> Sketch:
    """In a wrong order the loss grows to a hundred thousand."""
    return _losses(True)


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_words() -> Sketch:
    """Three words, crossed out."""
    sketch = Sketch(240, 200)
    for box in _words(sketch, 120, 38):
        sketch.path([(box.x - 50, box.y + 12), (box.x + 50, box.y - 12)], "bad", thick=4)
    return sketch


def small_uses() -> Sketch:
    """Two arrows from one box to the next."""
    sketch = Sketch(240, 200)
    one, two = sketch.box(50, 100, "a", width=70), sketch.box(190, 100, "a · a", width=84)
    for bend in (16, -16):
        sketch.arrow(one, two, bend=bend)
    return sketch


def small_runs() -> Sketch:
    """One program, two graphs."""
    sketch = Sketch(240, 200)
    code = sketch.box(60, 100, "if", "plain", width=80)
    for y in (46, 154):
        sketch.arrow(code, sketch.box(190, y, "graph", width=90))
    return sketch


def small_order() -> Sketch:
    """Three numbered boxes in a row."""
    sketch = Sketch(240, 200)
    boxes = [sketch.box(44 + 76 * i, 100, str(i + 1), width=54) for i in range(3)]
    for one, two in pairwise(boxes):
        sketch.arrow(one, two)
    sketch.arrow(boxes[0], boxes[2], bend=44)
    return sketch


def engine() -> Sketch:
    """A GPT between the student's two functions: names come out."""
    sketch = Sketch(800, 220)
    emit = sketch.box(150, 60, "emit", "now", width=150, under="yours", height=66)
    order = sketch.box(150, 166, "order", "now", width=150, under="yours", height=66)
    gpt = sketch.box(420, 113, "GPT", "value", width=160, height=120, size=LARGE)
    sketch.arrow(emit, gpt)
    sketch.arrow(order, gpt, colour="back")
    for y, name in ((50, "marina"), (113, "?"), (176, "?")):
        sketch.arrow(gpt, sketch.box(700, y, name, "leaf", width=130))
    return sketch
