"""The pictures of unit 14: four programs, what they share, one line and its rooms, four pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Sketch

PROGRAMS = (("digits", "DNN", 110.0), ("names", "GPT", 300.0), ("club", "GNN", 500.0), ("pole", "deep RL", 690.0))
NEEDED, SHARED, ALL = 30, 15, 84


# ---- four programs ---------------------------------------------------------------------------------------------------


def _engine(numbers: Sequence[str], engine: str) -> Sketch:
    sketch = Sketch(800, 230)
    base = sketch.box(400, 185, engine, "plain", width=700, height=56, size=LARGE)
    for (name, kind, x), text in zip(PROGRAMS, numbers):
        box = sketch.box(x, 50, name, "value", width=140, height=60, under=kind)
        sketch.arrow(box, (x, base.y - 28), text, colour="back")
    return sketch


def cover() -> Sketch:
    """Four applications stand on one engine."""
    return _engine("????", f"{ALL} primitives")


def _digit(sketch: Sketch, x: float) -> None:
    rows = ("01110", "00010", "00110", "00010", "01110")
    sketch.image(x - 40, 30, [[float(each) for each in row] for row in rows], 16)


def _name(sketch: Sketch, x: float) -> None:
    sketch.cells(x - 80, 46, ["ann?"], "value", size=40)


def _club(sketch: Sketch, x: float) -> None:
    at = [(x - 60, 40), (x - 20, 80), (x - 55, 105), (x + 30, 50), (x + 65, 95)]
    for i, j in ((0, 1), (1, 2), (0, 2), (1, 3), (3, 4)):
        sketch.path([at[i], at[j]], "line", thick=2)
    for i, place in enumerate(at):
        sketch.dot(*place, "back" if i < 3 else "there", 11)


def _pole(sketch: Sketch, x: float) -> None:
    sketch.path([(x, 92), (x + 22, 22)], "now", thick=6)
    sketch.rect(x - 38, 92, 76, 24, "there-fill", "there", thick=2)
    for wheel in (-22, 22):
        sketch.dot(x + wheel, 120, "ink", 7)


def data() -> Sketch:
    """What the four programs get."""
    sketch = Sketch(800, 220)
    for (name, kind, x), draw in zip(PROGRAMS, (_digit, _name, _club, _pole)):
        draw(sketch, x)
        sketch.label(x, 160, name, bold=True)
        sketch.label(x, 190, kind, size=SMALL, fill="quiet")
    return sketch


def cycle() -> Sketch:
    """The three parts of a step; the second one differs."""
    sketch = Sketch(800, 190)
    clear, update = sketch.box(130, 70, "clear"), sketch.box(670, 70, "update")
    learn = sketch.box(400, 70, "learn", "gradient", width=150, height=60, size=LARGE)
    sketch.arrow(clear, learn)
    sketch.arrow(learn, update)
    sketch.arrow((670, 44), (130, 44), bend=-34, colour="quiet")
    for i, name in enumerate(("digits", "names", "club", "pole")):
        sketch.label(265 + 90 * i, 130, name, size=SMALL, fill="back", bold=True)
    return sketch


# ---- what they share -------------------------------------------------------------------------------------------------


def _squares(needed: int, shared: int, says: str) -> Sketch:
    sketch = Sketch(800, 200)
    for i in range(ALL):
        look = "now" if i < shared else "value" if i < needed else "plain"
        sketch.box(24 + 27 * (i % 28), 30 + 50 * (i // 28), "", look, width=22, height=36)
    sketch.label(400, 178, says, bold=True)
    return sketch


def squares() -> Sketch:
    """All primitives of the library."""
    return _squares(0, 0, f"{ALL} primitives")


def squares_needed() -> Sketch:
    """Those that the four training steps need."""
    return _squares(NEEDED, 0, f"{NEEDED} of {ALL} are needed")


def squares_shared() -> Sketch:
    """Those that each of them needs."""
    return _squares(NEEDED, SHARED, "15 are in all four graphs")


NAMES = ("multiply", "add", "subtract", "divide", "negative", "sqrt", "exp", "expm1",
         "matmul", "sum", "max", "where", "reshape", "permute_dims", "slice")


def names() -> Sketch:
    """The primitives that all four programs use."""
    sketch = Sketch(800, 220)
    for i, name in enumerate(NAMES):
        x, y = 104 + 197 * (i % 4), 36 + 50 * (i // 4)
        sketch.box(x, y, name, "gradient" if i < 8 else "value", width=184, height=40, size=SMALL)
    return sketch


LAUNCHES = (("digits", 81, 13), ("names", 430, 57), ("club", 84, 17), ("pole", 98, 14))


def _launches(known: bool) -> Sketch:
    sketch = Sketch(800, 220)
    for i, (name, before, after) in enumerate(LAUNCHES):
        y = 30 + 54 * i
        sketch.label(96, y, name, anchor="end", bold=True)
        bar = sketch.bar(110, y - 9, 1.3 * before, "value", height=16)
        sketch.label(bar.right[0] + 10, y - 9, str(before), anchor="start", size=SMALL)
        if known:
            bar = sketch.bar(110, y + 11, 1.3 * after, "leaf", height=16)
        sketch.label(bar.right[0] + 10 if known else 110, y + 11, str(after) if known else "?", anchor="start",
                     size=SMALL, bold=True, fill="good" if known else "back")
    return sketch


def launches() -> Sketch:
    """The launches of a step, one by one."""
    return _launches(False)


def launches_known() -> Sketch:
    """The launches of a step, one by one and fused."""
    return _launches(True)


# ---- one line --------------------------------------------------------------------------------------------------------

ROOMS = (("line", ""), ("ops", "check"), ("core", "node"), ("autodiff", "rule"), ("rewriting", "equation"),
         ("fusion", "kernel"), ("lowering", "loop"), ("codegen", "text"), ("running", "launch"))


def _rooms(lit: int) -> Sketch:
    sketch = Sketch(800, 230)
    boxes: list[Box] = []
    for i, (room, makes) in enumerate(ROOMS):
        row, column = divmod(i, 5)
        x = 80 + 160 * column if row == 0 else 720 - 160 * column
        look = "leaf" if i == 0 else "now" if i == lit else "value" if i < lit else "plain"
        boxes.append(sketch.box(x, 50 + 120 * row, room, look, width=132, height=60, under=makes, size=20))
    for i, (one, two) in enumerate(pairwise(boxes)):
        sketch.arrow(one, two, colour="there" if i < lit else "line")
    return sketch


def rooms() -> list[Sketch]:
    """The rooms of the library that a line goes through, one after the other."""
    return [_rooms(lit) for lit in (0, 2, 3, 5, 8)]


def _graph(numbers: Sequence[str]) -> Sketch:
    sketch = Sketch(800, 200)
    x, w = sketch.box(60, 55, "x", "leaf"), sketch.box(60, 150, "w", "leaf")
    product, tanh = sketch.box(280, 100, "@", "plain", width=80), sketch.box(460, 100, "tanh", "plain", width=110)
    twice, out = sketch.box(630, 100, "· 2", "plain", width=80), sketch.box(760, 100, "y", width=60)
    for (one, two), text in zip(((x, product), (w, product), (product, tanh), (tanh, twice), (twice, out)), numbers):
        sketch.arrow(two, one, text, colour="back") if text else sketch.arrow(one, two)
    return sketch


def line() -> Sketch:
    """The line as a graph."""
    return _graph([""] * 5)


def line_rules() -> Sketch:
    """The rules that run in its backward pass."""
    return _graph(["4", "3", "2", "1", "g"])


def two_launches() -> Sketch:
    """A call of a library, and a loop."""
    sketch = Sketch(800, 120)
    library = sketch.box(230, 60, "@", "plain", width=150, height=64, under="a library")
    loop = sketch.box(560, 60, "tanh · 2", "value", width=200, height=64, under="one loop")
    sketch.arrow((60, 60), library)
    sketch.arrow(library, loop)
    sketch.arrow(loop, (750, 60))
    return sketch


# ---- four pieces -----------------------------------------------------------------------------------------------------


def _chances(known: bool) -> Sketch:
    sketch = Sketch(800, 230)
    rows = (("3", 0.70, 0.92, "−0.22"), ("8", 0.25, 0.04, "0.21"), ("5", 0.05, 0.04, "0.01"))
    for x, head in ((270, "probability"), (520, "target"), (710, "∂ score")):
        sketch.label(x, 20, head, size=SMALL, fill="quiet")
    for i, (digit, chance, target, gradient) in enumerate(rows):
        y = 66 + 60 * i
        sketch.label(130, y, digit, size=LARGE, bold=True)
        sketch.bar(180, y, 180 * chance, "value", height=34)
        sketch.bar(430, y, 180 * target, "leaf", height=34)
        sketch.number(710, y, gradient if known else "?", "back")
    return sketch


def chances() -> Sketch:
    """The probabilities of three digits, and their targets."""
    return _chances(False)


def chances_known() -> Sketch:
    """The gradient is their difference."""
    return _chances(True)


def _mask(hidden: bool, says: Sequence[str] = ()) -> Sketch:
    sketch = Sketch(800, 270)
    letters = ".anna"
    lit = [(i, j) for i in range(5) for j in range(5) if not hidden or j <= i]
    sketch.cells(150, 50, [["" for _ in letters] for _ in letters], "value", size=40, lit=lit)
    for i, letter in enumerate(letters):
        sketch.label(170 + 40 * i, 30, letter, code=True)
        sketch.label(120, 70 + 40 * i, letter, code=True)
        sketch.label(400, 70 + 40 * i, f"→ {'anna.'[i]}", anchor="start", code=True)
    for i, text in enumerate(says):
        sketch.label(500, 90 + 60 * i, text, anchor="start", bold=True, fill="bad" if "7" in text else "ink")
    return sketch


def mask() -> Sketch:
    """Each place sees itself and earlier places."""
    return _mask(True)


def no_mask() -> Sketch:
    """Without a mask a place sees the letter that it should say."""
    return _mask(False, ("training: ?", "new names: ?"))


def no_mask_known() -> Sketch:
    """The loss of training is too good to be true."""
    return _mask(False, ("training: 0.1 nats", "new names: 7.5 nats"))


def _messages(own: bool) -> Sketch:
    sketch = Sketch(800, 230)
    middle = sketch.box(400, 115, "i", "now", width=70, height=70, size=LARGE)
    for x, y in ((170, 50), (170, 180), (630, 50), (630, 180)):
        friend = sketch.box(x, y, "j", "value", width=60)
        sketch.arrow(friend, middle, "√" if own else "", colour="there")
    if own:
        sketch.arrow((372, 80), (428, 80), bend=42, colour="back", thick=3)
        sketch.label(400, 14, "itself", size=SMALL, fill="back", bold=True)
    return sketch


def messages() -> list[Sketch]:
    """Messages of the neighbours; then also of the member itself, and divided."""
    return [_messages(False), _messages(True)]


def _returns(values: Sequence[str]) -> Sketch:
    sketch = Sketch(800, 210)
    xs = [180 + 130 * i for i in range(5)]
    for i, x in enumerate(xs):
        sketch.box(x, 50, "1" if i < 4 else "0", "leaf" if i < 4 else "wrong", width=80)
        if values[i]:
            sketch.box(x, 150, values[i], "gradient", width=92)
        if i < 4 and values[i] and values[i + 1]:
            sketch.arrow((xs[i + 1] - 48, 150), (x + 48, 150), colour="back")
    sketch.label(70, 50, "reward", size=SMALL, anchor="middle", fill="quiet")
    sketch.label(70, 150, "return", size=SMALL, anchor="middle", fill="quiet")
    sketch.label(xs[4], 92, "fallen", size=SMALL, fill="bad")
    return sketch


def returns() -> list[Sketch]:
    """The returns of four steps with a discount of a half, from the last step to the first."""
    found = ["", "", "", "", "0"]
    stages = [_returns(found)]
    for i, value in zip((3, 2, 1, 0), ("1", "1.5", "1.75", "1.88")):
        found[i] = value
        stages.append(_returns(found))
    return stages


LOSSES = (-0.021, -0.083, -0.062, -0.051, -0.105, -0.036, -0.121, -0.095, 0.015, -0.007, -0.047, -0.06, -0.008, -0.068,
          -0.052, -0.084, -0.014, -0.008, -0.057, -0.016)
UPRIGHT = (25, 26, 38, 39, 44, 69, 66, 62, 81, 85, 94, 112, 138, 145, 144, 148, 148, 148, 149, 143)


def _learning(known: bool) -> Sketch:
    sketch = Sketch(800, 230)
    for x, name in ((60, "steps upright"), (450, "loss")):
        sketch.path([(x, 30), (x, 190), (x + 300, 190)], "line", thick=2)
        sketch.label(x + 150, 212, name, bold=True)
    sketch.path([(60 + 15 * i, 190 - y) for i, y in enumerate(UPRIGHT)], "good", thick=4)
    if known:
        sketch.path([(450 + 15 * i, 80 - 700 * y) for i, y in enumerate(LOSSES)], "back", thick=4)
        sketch.path([(450, 80), (750, 80)], "quiet", thick=1, dashes="4 4")
        sketch.label(440, 80, "0", anchor="end", size=SMALL)
    else:
        sketch.label(600, 110, "?", size=44, bold=True, fill="back")
    return sketch


def learning() -> Sketch:
    """A policy becomes better. What does its loss do?"""
    return _learning(False)


def learning_known() -> Sketch:
    """The loss stays near zero."""
    return _learning(True)


def missing() -> Sketch:
    """Each program has a gap."""
    sketch = Sketch(800, 230)
    for (name, kind, x), gap in zip(PROGRAMS, ("∂ scores", "mask", "messages", "returns")):
        sketch.box(x, 60, name, "value", width=150, height=70, under=kind)
        sketch.box(x, 150, gap, "empty", width=150, height=56)
        sketch.label(x, 205, "?", size=LARGE, bold=True, fill="back")
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_engine() -> Sketch:
    """Four programs, one engine."""
    sketch = Sketch(200, 130)
    base = sketch.box(100, 100, "engine", "plain", width=180)
    for x in (30, 77, 123, 170):
        sketch.arrow(sketch.box(x, 28, "", width=34, height=34), (x, base.y - 22))
    return sketch


def small_line() -> Sketch:
    """A line becomes a loop."""
    sketch = Sketch(200, 130)
    sketch.arrow(sketch.box(50, 65, "y = …", "leaf", width=90), sketch.box(160, 65, "for", width=70))
    return sketch


def small_mask() -> Sketch:
    """The later places are hidden."""
    sketch = Sketch(200, 130)
    sketch.cells(45, 10, [[""] * 4] * 4, size=27, lit=[(i, j) for i in range(4) for j in range(i + 1)])
    return sketch


def small_score() -> Sketch:
    """A score, with its floor."""
    sketch = Sketch(200, 130)
    sketch.bar(20, 50, 150, "leaf", height=40)
    sketch.path([(130, 15), (130, 95)], "bad", thick=3, dashes="5 4")
    sketch.label(130, 112, "floor", size=SMALL, fill="bad")
    return sketch
