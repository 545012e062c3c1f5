"""The pictures of unit 06: paths and contributions, the order, the walk; the others are in `u06_kept`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Sketch

from .shared import GRADIENT
from .shared import added as added
from .shared import rule as rule
from .shared import wait as wait
from .u06_kept import (
    chains as chains,
)
from .u06_kept import (
    engine as engine,
)
from .u06_kept import (
    keep as keep,
)
from .u06_kept import (
    kept as kept,
)
from .u06_kept import (
    lost as lost,
)
from .u06_kept import (
    memory as memory,
)
from .u06_kept import (
    never as never,
)
from .u06_kept import (
    one_output as one_output,
)
from .u06_kept import (
    one_row as one_row,
)
from .u06_kept import (
    open_sum as open_sum,
)
from .u06_kept import (
    stale as stale,
)
from .u06_kept import (
    summed as summed,
)
from .u06_kept import (
    too_soon as too_soon,
)

NAN = (math.nan, math.nan)  # where a line breaks
SUMS = (50.0, 210.0, 370.0, 590.0, 750.0)  # where the values of the doublings stand


# ---- why backward --------------------------------------------------------------------------------------------------


def _doublings(sketch: Sketch, y: float, texts: Sequence[str], numbers: Sequence[str] = ()) -> None:
    """Values from x to y, each the double of the one before; `numbers` go back on the arrows."""
    colour = "back" if numbers else "there"
    boxes = [
        sketch.box(x, y, text, "leaf" if i == 0 and not numbers else "gradient" if numbers else "value", width=70)
        for i, (x, text) in enumerate(zip(SUMS, texts))
    ]
    for i, (one, two) in enumerate(pairwise(boxes)):
        if i == 2:
            sketch.label((one.x + two.x) / 2, y, "· · ·", size=LARGE, bold=True, fill="quiet")
            continue
        start, end = (two, one) if numbers else (one, two)
        for bend in (19, -19):
            sketch.arrow(start, end, numbers[i] if numbers else "", bend=bend, colour=colour, size=SMALL, at=0.45)


def cover() -> Sketch:
    """x, doubled again and again, to y."""
    sketch = Sketch(800, 170)
    _doublings(sketch, 50, ("x", "+", "+", "+", "y"))
    sketch.arrow((750, 90), (50, 90), "2³⁰ paths back", bend=26, colour="back", dashes="7 6")
    return sketch


def doublings() -> Sketch:
    """The graph of the thirty doublings."""
    sketch = Sketch(800, 130)
    _doublings(sketch, 44, ("x", "+", "+", "+", "y"))
    sketch.label(480, 112, "30 additions", size=SMALL, fill="quiet")
    return sketch


def paths() -> Sketch:
    """The graph is small; the tree of its paths doubles at every step."""
    sketch = Sketch(800, 290)
    _doublings(sketch, 30, ("x", "+", "+", "+", "y"))
    sketch.label(6, 88, "30 additions: 2 ways through each", anchor="start", size=SMALL, fill="quiet")
    top, high, wide = 108.0, 170.0, 62.0
    for level in range(9):
        lines = []
        for i in range(2**level):
            start = (20 + level * wide, top + high * (i + 0.5) / 2**level)
            for child in (2 * i, 2 * i + 1):
                lines += [start, (20 + (level + 1) * wide, top + high * (child + 0.5) / 2 ** (level + 1)), NAN]
        sketch.path(lines, "back", thick=max(2.6 - 0.3 * level, 0.5))
    sketch.label(596, top + high / 2 - 16, "512 paths after 9;", anchor="start", fill="back", bold=True)
    sketch.label(596, top + high / 2 + 16, "2³⁰ after 30", anchor="start", fill="back", bold=True)
    return sketch


def merged() -> Sketch:
    """What comes to a value is added, and goes on once."""
    sketch = Sketch(800, 150)
    _doublings(sketch, 50, ("2³⁰", "2²⁹", "2²⁸", "2", "1"), ("2²⁹", "2²⁸", "", "1"))
    sketch.label(400, 128, "30 additions × 2 contributions = 60", fill="back", bold=True)
    return sketch


def factored() -> Sketch:
    """Two paths walked one by one, and the same two added first."""
    sketch = Sketch(800, 250)
    for y, name in ((50, "a"), (150, "b")):
        x, middle, g = sketch.box(50, y, "x"), sketch.box(190, y, "", width=44), sketch.box(330, y, "y")
        sketch.arrow(g, middle, name, colour="back")
        sketch.arrow(middle, x, "p", colour="back")
    x, middle, g = sketch.box(490, 100, "x"), sketch.box(620, 100, "+", "gradient", width=44), sketch.box(750, 100, "y")
    sketch.arrow(g, middle, "a", bend=-26, colour="back")
    sketch.arrow(g, middle, "b", bend=26, colour="back")
    sketch.arrow(middle, x, "p", colour="back")
    sketch.label(190, 222, "p · a  +  p · b", size=LARGE, bold=True)
    sketch.label(410, 222, "=", size=LARGE, bold=True)
    sketch.label(620, 222, "p · (a + b)", size=LARGE, bold=True)
    return sketch


def fix() -> Sketch:
    """One of three outputs is fixed: numbers flow back from it to every value."""
    sketch = Sketch(800, 290)
    columns = [
        [(90 + 200 * i, 126 + 52 * (j - (count - 1) / 2)) for j in range(count)]
        for i, count in enumerate((5, 5, 4, 3))
    ]
    outputs, chosen = columns[3], columns[3][1]
    for one, two in pairwise(columns):
        for end in two:
            for start in one:
                if end in outputs and end != chosen:
                    sketch.path([start, end], "line", thick=1.2)
                else:
                    sketch.arrow(end, (start[0] + 16, start[1]), colour="back", thick=1.2)
    for x, y in chain.from_iterable(columns):
        fill, stroke = ("tint", "line") if (x, y) in outputs else ("there-fill", "there")
        sketch.dot(x, y, fill, 14, stroke)
    sketch.dot(*chosen, "back", 14, "back")
    sketch.label(chosen[0] + 26, chosen[1], "ℓ", anchor="start", size=LARGE, bold=True, fill="back")
    for x, text in ((90, "weights"), (690, "outputs")):
        sketch.label(x, 278, text, size=SMALL, fill="quiet")
    return sketch


def cost() -> list[Sketch]:
    """How often a network must run, to scale."""
    return [_cost(shown) for shown in range(4)]


def _cost(shown: int) -> Sketch:
    sketch = Sketch(800, 250)
    _funnel(sketch)
    rows = ("nudge each weight", 2411, "runs"), ("back from the loss", 1, "pass"), ("back from 10 scores", 10, "passes")
    for i, (name, count, unit) in enumerate(rows):
        y = 36 + 78 * i
        sketch.label(480, y, name, anchor="end", bold=True)
        if i < shown:
            bar = sketch.bar(496, y, max(170 * count / 2411, 1.6), "gradient" if i else "value", height=36)
            colour = "back" if i else "there"
            sketch.label(bar.right[0] + 12, y, f"{count:,} {unit}", anchor="start", bold=True, fill=colour)
        else:
            sketch.label(500, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def _funnel(sketch: Sketch) -> None:
    """2,410 weights, 10 scores, one loss."""
    sides = ((24, 6, 200), (126, 43, 126), (220, 99, 14))  # x, upper end, height
    for (x, top, high), (to, to_top, to_high) in pairwise(sides):
        for y, to_y in ((top, to_top), (top + high, to_top + to_high)):
            sketch.path([(x + 14, y), (to, to_y)], "line", thick=1.6)
    sketch.rect(24, 6, 14, 200, "leaf-fill", "good", thick=1.6, round=2)
    sketch.cells(126, 43, [[""]] * 10, size=14, high=12.6)
    sketch.rect(220, 99, 14, 14, "back-fill", "back", thick=1.6, round=2)
    for (x, _, _), count, name in zip(sides, ("2,410", "10", "1"), ("weights", "scores", "loss")):
        sketch.label(x + 7, 222, count, size=SMALL, bold=True)
        sketch.label(x + 7, 244, name, size=SMALL, fill="quiet")


# ---- the order -----------------------------------------------------------------------------------------------------


def _both(visits: Sequence[Sequence[str]], results: Sequence[str]) -> Sketch:
    """The program with the product on the left, and on the right; the numbers say when a node is visited."""
    sketch = Sketch(800, 280)
    for side, (code, sign) in enumerate((("y = a * a + a", -1), ("y = a + a * a", 1))):
        left = 410.0 * side
        places = {"x": (34, 140), "a": (140, 140), "a · a": (242, 140 + sign * 60), "y": (346, 140)}
        boxes = {
            name: sketch.box(left + x, y, name, "leaf" if name == "x" else "value", width=82 if " " in name else 58)
            for name, (x, y) in places.items()
        }
        twice = ("a", "a · a", 14), ("a", "a · a", -14)
        for source, user, bend in (("x", "a", 0), *twice, ("a · a", "y", 0), ("a", "y", sign * 8)):
            sketch.arrow(boxes[source], boxes[user], bend=bend)
        sketch.label(left + 190, 16, code, code=True)
        if not visits:
            continue
        for name, number in zip(("y", "a", "x", "a · a"), visits[side]):
            box, wrong = boxes[name], side == 1 and name in ("a", "x")
            sketch.number(box.x - box.width / 2 + 6, box.y - 27, number, "bad" if wrong else "back", SMALL)
        colour = "bad" if side else "good"
        sketch.label(left + 34, 250, results[side], anchor="start", bold=True, size=LARGE, fill=colour)
        (sketch.cross if side else sketch.tick)(left + 190, 250, 11)
    return sketch


def both() -> Sketch:
    """Two programs that compute the same number."""
    return _both((), ())


def visited() -> Sketch:
    """The order in which the impatient engine visits their nodes."""
    return _both((("1", "3", "4", "2"), ("1", "2", "3", "4")), ("∂x = 10", "∂x = 2"))


SENDS = {"y": (("a · a", "1"), ("a", "1")), "a · a": (("a", "2"), ("a", "2")), "a": (("x", "10"),), "x": ()}
RIGHT = ("y", "a · a", "a", "x")


def _line(sketch: Sketch, y: float, names: Sequence[str], width: float = 96.0) -> dict[str, Box]:
    return {name: sketch.box(84 + 200 * i, y, name, width=width) for i, name in enumerate(names)}


def _arcs(sketch: Sketch, boxes: dict[str, Box], senders: Sequence[str], numbers: bool = False) -> None:
    """Arcs over a line of values, from each sender to its inputs; one that goes left is wrong."""
    for sender in senders:
        for i, (to, text) in enumerate(SENDS[sender]):
            start, end = boxes[sender], boxes[to]
            right = end.x > start.x
            bend = 24 + 0.13 * abs(end.x - start.x) + (40 if (sender, i) == ("a · a", 1) else 0)
            apart = 14 if i else -14  # so that two arrows neither begin nor end in one point
            first, last = (start.x + 8 - apart, start.top[1] - 3), (end.x + apart, end.top[1] - 4)
            sketch.arrow(first, last, text if numbers else "", bend=bend if right else -bend,
                         colour="back" if right else "bad", size=SMALL, at=0.58, new=numbers)


def arcs() -> Sketch:
    """The same values in two orders.  In the right one every arrow goes to the right."""
    sketch = Sketch(780, 310)
    for y, names in ((118, ("y", "a", "a · a", "x")), (286, RIGHT)):
        boxes = _line(sketch, y, names)
        _arcs(sketch, boxes, names)
        (sketch.tick if names == RIGHT else sketch.cross)(756, y, 13)
    return sketch


def serials() -> Sketch:
    """Each node with its number, in the order in which they were made."""
    sketch = Sketch(780, 80)
    for i, name in enumerate(reversed(RIGHT)):
        made = ("1st", "2nd", "3rd", "4th")[i]
        box = sketch.box(80 + 200 * i, 40, name, width=110, height=60, under=f"made {made}")
        if i < 3:
            sketch.arrow(box, (80 + 200 * (i + 1) - 59, 40))
    return sketch


def deep() -> list[Sketch]:
    """A chain, and how deep calls may be nested, to scale."""
    return [_deep(False), _deep(True)]


def _deep(answered: bool) -> Sketch:
    sketch = Sketch(800, 190)
    operations, calls = (50, "operations in a chain", 10_000, True), (130, "calls inside calls", 1_000, answered)
    for y, name, count, known in (operations, calls):
        sketch.label(240, y, name, anchor="end", bold=True)
        if known:
            bar = sketch.bar(258, y, 440 * count / 10_000, "value" if count == 10_000 else "wrong", height=44)
            sketch.label(bar.right[0] + 12, y, f"{count:,}", anchor="start", bold=True)
        else:
            sketch.label(262, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


# ---- the walk ------------------------------------------------------------------------------------------------------


def walk() -> list[Sketch]:
    """The walk: the nodes in their order, the gradients below them, and what each node sends."""
    states = (("1", "", "", ""), ("1", "1", "1", ""), ("1", "1", "1+2+2", ""), ("1", "1", "5", "10"))
    return [_walk(i - 1, state) for i, state in enumerate(states)]


def _walk(at: int, gradients: Sequence[str]) -> Sketch:
    sketch = Sketch(780, 220)
    boxes = _line(sketch, 120, RIGHT, 150.0)
    for i, (name, gradient) in enumerate(zip(RIGHT, gradients)):
        text = f"{GRADIENT.get(name, '∂' + name)} = {gradient}" if gradient else ""
        sketch.box(boxes[name].x, 168, text, "gradient" if gradient else "empty", width=150)
        if i == at:
            sketch.rect(boxes[name].x - 83, 90, 166, 108, "none", "now", thick=4, round=10)
    if at >= 0:
        _arcs(sketch, boxes, RIGHT[at : at + 1], numbers=True)
    return sketch


def shared() -> Sketch:
    """A sum passes one tensor to both of its inputs."""
    sketch = Sketch(800, 200)
    p, q = sketch.box(180, 50, "∂p", "gradient", width=90), sketch.box(180, 150, "∂q", "gradient", width=90)
    cell = sketch.cells(470, 72, [["1"]], "value", size=60)
    sketch.arrow(p, cell)
    sketch.arrow(q, cell)
    sketch.label(560, 102, "one tensor", anchor="start", fill="quiet")
    return sketch


def changed() -> Sketch:
    """`+=` changes both; `add` makes a new tensor."""
    sketch = Sketch(800, 230)
    for left, code, cells in ((0, "+=", (("6", 72.0),)), (420, "add", (("6", 22.0), ("1", 122.0)))):
        p, q = (sketch.box(left + 60, y, name, "gradient", width=80) for y, name in ((52, "∂p"), (152, "∂q")))
        drawn = [sketch.cells(left + 210, y, [[text]], "value" if left else "wrong", size=60) for text, y in cells]
        sketch.arrow(p, drawn[0], colour="there")
        sketch.arrow(q, drawn[-1], colour="there" if left else "bad")
        sketch.label(left + 150, 212, code, code=True, bold=True)
        (sketch.tick if left else sketch.cross)(left + 320, 102, 14)
    return sketch
