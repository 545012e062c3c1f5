"""The pictures of unit 11: two zeros, passes, merging, kernels, borders, and the way down to machine code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Sketch

# ---- two zeros -------------------------------------------------------------------------------------------------------


def cover() -> Sketch:
    """Two operations; one of them may be cut out of the graph."""
    sketch = Sketch(800, 230)
    for y, operation in ((60, "+ 0.0"), (170, "− 0.0")):
        x, out = sketch.box(150, y, "x", "leaf"), sketch.box(650, y, "y", width=70)
        middle = sketch.box(400, y, operation, "plain", width=130, height=54, size=LARGE)
        sketch.arrow(x, middle)
        sketch.arrow(middle, out)
        sketch.arrow(x, out, "?", bend=-34 if y > 100 else 34, colour="back", dashes="6 6")
    return sketch


def _sums(answers: Sequence[tuple[str, str]]) -> Sketch:
    sketch = Sketch(800, 200)
    for y, operation, (answer, look) in zip((55, 145), ("+ 0.0", "− 0.0"), answers):
        x = sketch.box(170, y, "−0.0", "leaf", width=110, height=56, size=LARGE)
        middle = sketch.box(390, y, operation, "plain", width=130, height=56, size=LARGE)
        out = sketch.box(610, y, answer, look, width=110, height=56, size=LARGE)
        sketch.arrow(x, middle)
        sketch.arrow(middle, out)
        if look == "wrong":
            sketch.cross(710, y, 14)
        elif look == "leaf":
            sketch.tick(710, y, 14)
    return sketch


def sums() -> Sketch:
    """What comes out?"""
    return _sums((("?", "gradient"), ("?", "gradient")))


def sums_known() -> Sketch:
    """Adding zero changes a zero with a minus sign."""
    return _sums((("0.0", "wrong"), ("−0.0", "leaf")))


# ---- passes ----------------------------------------------------------------------------------------------------------


def _launches(rows: Sequence[tuple[str, int | None, str]]) -> Sketch:
    sketch = Sketch(800, 200)
    for i, (name, count, look) in enumerate(rows):
        y = 36 + 64 * i
        sketch.label(230, y, name, anchor="end", bold=True)
        if count is None:
            sketch.label(256, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
            continue
        bar = sketch.bar(250, y, 2.8 * count, look, height=40)
        sketch.label(bar.right[0] + 12, y, str(count), anchor="start", bold=True)
    return sketch


def counts() -> Sketch:
    """The launches of a training step, before and after the compiler."""
    return _launches((("as recorded", 158, "value"), ("after all passes", None, ""), ("fused", None, "")))


def counts_known() -> Sketch:
    """The passes add four, fusion takes nearly all away."""
    return _launches((("as recorded", 158, "value"), ("after all passes", 162, "wrong"), ("fused", 21, "leaf")))


def _chain(names: Sequence[str], marked: Sequence[int] = ()) -> Sketch:
    sketch = Sketch(800, 130)
    wide = [66.0 if len(name) < 3 else 92.0 for name in names]
    gap = (760 - sum(wide)) / max(1, len(names) - 1)
    x, boxes = 20.0, []
    for i, (name, width) in enumerate(zip(names, wide)):
        look = "gradient" if i in marked else "leaf" if i in (0, len(names) - 1) else "plain"
        boxes.append(sketch.box(x + width / 2, 65, name, look, width=width, height=52, size=LARGE))
        x += width + gap
    for one, two in pairwise(boxes):
        sketch.arrow(one, two)
    return sketch


def signs() -> list[Sketch]:
    """A minus sign moves out of a product, a quotient and a product, until it meets another one."""
    rows = ("−·/·−", "·−/·−", "·/−·−", "·/·−−")
    return [*[_chain(("g", *row, "∂h"), (1 + i, 5)) for i, row in enumerate(rows)], _chain(("g", *"·/·", "∂h"))]


EQUATIONS = (
    ("x + 0 → x", "−0.0"), ("x − 0 → x", ""), ("x · 1 → x", ""), ("x · 0 → 0", "inf, nan"), ("x − x → 0", "inf, nan"),
    ("(x + n) + m → x + (n + m)", "rounds twice"),
)  # and for which floats each one is wrong


def _equations(known: bool) -> Sketch:
    sketch = Sketch(800, 316)
    for x, name in ((480, "int"), (580, "float")):
        sketch.label(x, 20, name, bold=True, fill="quiet")
    for i, (equation, wrong) in enumerate(EQUATIONS):
        y = 66 + 46 * i
        sketch.label(400, y, equation, anchor="end", code=True)
        sketch.tick(480, y)
        if not known:
            sketch.label(580, y, "?", bold=True, fill="back")
        elif wrong:
            sketch.cross(580, y)
            sketch.label(610, y, wrong, anchor="start", bold=True, fill="bad")
        else:
            sketch.tick(580, y)
    return sketch


def equations() -> Sketch:
    """Equations that hold for whole numbers."""
    return _equations(False)


def equations_known() -> Sketch:
    """Two of them hold for floats too."""
    return _equations(True)


# ---- merging ---------------------------------------------------------------------------------------------------------


def _tree(rows: Sequence[Sequence[str]], note: str = "") -> Sketch:
    """x, then rows of boxes; a row of one box serves both sides."""
    sketch = Sketch(800, 200)
    before = [sketch.box(70, 100, "x", "leaf")]
    for column, row in enumerate(rows):
        ys = (50, 150) if len(row) == 2 else (100,)
        looks = "gradient" if len(row) == 1 and column < len(rows) - 1 else "plain"
        boxes = [sketch.box(240 + 190 * column, y, name, looks, width=110) for y, name in zip(ys, row)]
        for i, box in enumerate(boxes):
            for source in before if len(boxes) == 1 else [before[min(i, len(before) - 1)]]:
                sketch.arrow(source, box)
        if len(before) == 1 and len(boxes) == 1 and column == len(rows) - 1:
            sketch.arrow(before[0], boxes[0], bend=26)
        before = boxes
    sketch.label(740, 100, note, size=LARGE, bold=True, fill="back")
    return sketch


def twins() -> list[Sketch]:
    """Two equal products become one, and then the two sines are equal too."""
    return [_tree((("· 2", "· 2"), ("sin", "sin"), ("+",)), "5"), _tree((("· 2",), ("sin", "sin"), ("+",)), "4"),
            _tree((("· 2",), ("sin",), ("+",)), "3")]


def _lives(peaks: tuple[str, str]) -> Sketch:
    """For each of two programs, how long exp(x) is in memory, while products are computed."""
    sketch = Sketch(800, 240)
    rows = ((70, "computed twice", ((0, 1), (6, 1))), (180, "merged", ((0, 7),)))
    for (y, name, bars), peak in zip(rows, peaks):
        sketch.label(190, y, name, anchor="end", bold=True)
        for begin, length in bars:
            sketch.bar(205 + 62 * begin, y - 22, 62 * length, "gradient", height=36)
            sketch.label(205 + 62 * (begin + length / 2), y - 22, "exp(x)", size=SMALL, bold=True)
        for step in range(1, 6):
            sketch.bar(205 + 62 * step, y + 20, 62, "value", height=36)
            sketch.label(236 + 62 * step, y + 20, "@ w", size=SMALL)
        sketch.label(715, y, peak, size=LARGE, bold=True, fill="back")
    sketch.label(715, 18, "peak", size=SMALL, fill="quiet")
    return sketch


def lives() -> Sketch:
    """How long a value is kept."""
    return _lives(("?", "?"))


def lives_known() -> Sketch:
    """The merged value is kept from the beginning to the end."""
    return _lives(("787 kB", "1,049 kB"))


# ---- fusion ----------------------------------------------------------------------------------------------------------


def _trips(fused: bool, total: str) -> Sketch:
    """A chain of three operations, and its trips to memory."""
    sketch = Sketch(800, 250)
    sketch.rect(40, 190, 720, 44, "tint", "line", thick=2, round=7)
    sketch.label(400, 212, "memory", fill="quiet")
    places = (170.0, 400.0, 630.0)
    if fused:
        sketch.rect(90, 20, 620, 84, "paper", "good", thick=3, round=12)
    boxes = [sketch.box(x, 62, name, "plain", width=120) for x, name in zip(places, ("tanh", "· 2", "+ 1"))]
    for i, box in enumerate(boxes):
        if not fused or i == 0:
            sketch.arrow((box.x - 28, 190), (box.x - 28, 84), "" if fused else "4", colour="back")
        if not fused or i == 2:
            sketch.arrow((box.x + 28, 84), (box.x + 28, 190), "" if fused else "4", colour="back")
    if fused:
        for one, two in pairwise(boxes):
            sketch.arrow(one, two, colour="good")
    if total:
        sketch.number(400, 146, total, "back", LARGE)
    return sketch


def trips() -> Sketch:
    """Each operation reads its input and writes its result."""
    return _trips(False, "")


def one_kernel() -> Sketch:
    """One kernel reads once and writes once."""
    return _trips(True, "?")


def one_kernel_known() -> Sketch:
    """Eight megabytes."""
    return _trips(True, "8 MB")


def _saved(known: bool) -> Sketch:
    rows = (("launches", 3, 1, ""), ("bytes", 24, 8, " MB"), ("peak", 8, 4, " MB"), ("arithmetic", 3, 3, " M"))
    sketch = Sketch(800, 250)
    for i, (name, before, after, unit) in enumerate(rows):
        y = 30 + 62 * i
        sketch.label(180, y, name, anchor="end", bold=True)
        sketch.bar(200, y - 12, 480, "value", height=22)
        sketch.label(692, y - 12, f"{before}{unit}", anchor="start", size=SMALL)
        if known:
            bar = sketch.bar(200, y + 13, 480 * after / before, "wrong" if after == before else "leaf", height=22)
            sketch.label(bar.right[0] + 12, y + 13, f"{after}{unit}", anchor="start", size=SMALL, bold=True)
        else:
            sketch.label(206, y + 13, "?", anchor="start", bold=True, fill="back")
    return sketch


def saved() -> Sketch:
    """Four quantities, before and after fusion."""
    return _saved(False)


def saved_known() -> Sketch:
    """Three of them fall."""
    return _saved(True)


PLACED = (("tanh", 0, 0), ("· 2", 0, 1), ("sum", 0, 2), ("matmul", 1, 0), ("+ 1", 2, 0), ("exp", 2, 1))  # depth, row
DEPTHS = ((150.0, "depth 0", "good"), (410.0, "a library", "bad"), (650.0, "depth 2", "good"))


def _placed(count: int) -> Sketch:
    """The first nodes are in kernels; the next ones wait below."""
    sketch = Sketch(800, 330)
    for depth, (x, name, colour) in enumerate(DEPTHS):
        rows = [row for _, at, row in PLACED[:count] if at == depth]
        if rows:
            sketch.rect(x - 85, 10, 170, 26 + 62 * len(rows), "paper", colour, thick=3, round=12)
            sketch.label(x, 226, name, bold=True, fill=colour)
    for i, (name, depth, row) in enumerate(PLACED):
        if i < count:
            sketch.box(DEPTHS[depth][0], 54 + 62 * row, name, "value", width=110)
        else:
            sketch.box(100 + 120 * i, 292, name, "plain", width=110)
    if count > 4:
        sketch.arrow((236, 54), (324, 54), "waits", colour="quiet")
        sketch.arrow((496, 54), (564, 54), colour="quiet")
    return sketch


def place() -> list[Sketch]:
    """Node by node into kernels."""
    return [_placed(count) for count in range(len(PLACED) + 1)]


def circle() -> Sketch:
    """Two kernels that would wait for each other."""
    sketch = Sketch(800, 230)
    sketch.rect(60, 24, 300, 182, "paper", "bad", thick=3, round=12)
    sketch.rect(500, 64, 240, 102, "paper", "bad", thick=3, round=12)
    tanh, add = sketch.box(210, 68, "tanh", "plain", width=120), sketch.box(210, 162, "+ 1", "plain", width=120)
    product = sketch.box(620, 115, "· 2", "plain", width=120)
    sketch.arrow(tanh, product, bend=24, colour="bad", thick=4)
    sketch.arrow(product, add, bend=24, colour="bad", thick=4)
    sketch.label(430, 115, "waits", bold=True, fill="bad")
    return sketch


# ---- borders ---------------------------------------------------------------------------------------------------------


def _directions(kernels: tuple[str, str]) -> Sketch:
    """The largest number of a row, and of a column, while the loop goes through rows."""
    sketch = Sketch(800, 240)
    for x, number, by_row in ((90, kernels[0], True), (470, kernels[1], False)):
        for i in range(4):
            for j in range(5):
                lit = i == 1 if by_row else j == 2
                sketch.cells(x + 44 * j, 20 + 44 * i, [[""]], "gradient" if lit else "plain", size=44)
            sketch.arrow((x + 12, 42 + 44 * i), (x + 208, 42 + 44 * i), colour="quiet", thick=1.6)
        sketch.number(x + 268, 108, number, "back", LARGE)
        sketch.label(x + 110, 222, "largest of each row" if by_row else "largest of each column", bold=True)
    return sketch


def directions() -> Sketch:
    """How many kernels for each?"""
    return _directions(("1", "?"))


def directions_known() -> Sketch:
    """The column is known only after the last row."""
    return _directions(("1", "2"))


def _reason(sketch: Sketch, x: float, one: str, two: str, why: str, look: str = "plain") -> tuple[Box, Box]:
    above, below = sketch.box(x, 40, one, "plain", width=150), sketch.box(x, 160, two, look, width=150)
    sketch.arrow(above, below, colour="bad", thick=3)
    sketch.cross(x, 100, 12)
    sketch.label(x, 212, why, size=SMALL, bold=True, fill="bad")
    return above, below


def reasons() -> Sketch:
    """Four reasons for a border."""
    sketch = Sketch(800, 230)
    for x, one, two, why in (
        (100, "tanh(x)", "@ w", "a library"), (300, "tanh(x)", ".T + y", "other places"),
        (500, "a", "a / a.sum()", "not complete"), (700, "rows of 256", "rows of 128", "other rows"),
    ):
        _reason(sketch, x, one, two, why)
    return sketch


def _block(row: int) -> Sketch:
    """One block of queries of causal attention: its scores exist, all others do not."""
    sketch, side = Sketch(800, 270), 46
    for x, width, lit, name in (
        (60, 1, {(row, 0)}, "queries"), (250, 4, {(row, j) for j in range(row + 1)}, "scores, weights"),
        (650, 1, {(row, 0)}, "result"),
    ):
        sketch.cells(x, 50, [[""] * width] * 4, "value" if width > 1 else "leaf", size=side, lit=lit)
        sketch.label(x + width * side / 2, 254, name, bold=True)
    for x, name in ((180, "· keys"), (540, "· values")):
        sketch.label(x, 73 + side * row, name, size=SMALL)
    sketch.label(342, 24, "only this block is in memory", size=SMALL)
    return sketch


def blocks() -> list[Sketch]:
    """The blocks of queries, one after the other."""
    return [_block(row) for row in range(4)]


def _picked(better: bool) -> Sketch:
    """Every second number of tanh(x): picked after the function, or before."""
    sketch = Sketch(800, 220)
    sketch.cells(40, 85, [[""] * 6], "leaf", size=36, lit=[(0, 0), (0, 2), (0, 4)] if better else None)
    sketch.label(148, 150, "x", bold=True)
    if better:
        sketch.rect(380, 40, 380, 130, "paper", "good", thick=3, round=12)
        tanh, product = sketch.box(480, 104, "tanh", "plain", width=110), sketch.box(670, 104, "· y", "plain", width=90)
        sketch.arrow((260, 104), tanh, "[::2]", colour="back", at=0.4)
        sketch.arrow(tanh, product, colour="good")
        return sketch
    tanh, product = sketch.box(320, 104, "tanh", "plain", width=90), sketch.box(752, 104, "· y", "plain", width=60)
    memory = sketch.cells(410, 86, [[""] * 6], "gradient", size=36)
    sketch.arrow((258, 104), tanh)
    sketch.arrow(tanh, memory)
    sketch.label(518, 150, "in memory", bold=True, fill="back")
    sketch.arrow((628, 104), product, "[::2]", colour="back")
    return sketch


def picked() -> Sketch:
    """Two kernels: the second reads every other number."""
    return _picked(False)


def picked_better() -> Sketch:
    """One kernel, which reads every other number of x."""
    return _picked(True)


# ---- the way down ----------------------------------------------------------------------------------------------------


def levels() -> list[Sketch]:
    """Softmax at four levels."""
    names = ("graph", "kernel", "loops", "machine")
    texts = ("6 operations", "1 launch", "3 loops", "registers")
    sketches = []
    for shown in range(1, 5):
        sketch = Sketch(800, 180)
        boxes = [
            sketch.box(110 + 193 * i, 90, names[i], "now" if i == shown - 1 else "plain", width=160, height=84,
                       under=texts[i] if i < shown else "?")
            for i in range(4)
        ]
        for one, two in pairwise(boxes):
            sketch.arrow(one, two)
        sketches.append(sketch)
    return sketches


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_zero() -> Sketch:
    """Two zeros."""
    sketch = Sketch(240, 200)
    for y, text, look in ((60, "0.0", "leaf"), (140, "−0.0", "gradient")):
        sketch.box(120, y, text, look, width=130, height=60, size=LARGE)
    return sketch


def small_twins() -> Sketch:
    """Two become one."""
    sketch = Sketch(240, 200)
    one, two = sketch.box(60, 50, "x · 2", width=100), sketch.box(60, 150, "x · 2", width=100)
    both = sketch.box(184, 100, "x · 2", "gradient", width=100)
    sketch.arrow(one, both)
    sketch.arrow(two, both)
    return sketch


def small_kernel() -> Sketch:
    """In once, out once."""
    sketch = Sketch(240, 200)
    sketch.rect(30, 20, 180, 90, "paper", "good", thick=3, round=12)
    sketch.label(120, 65, "kernel", bold=True)
    sketch.rect(30, 160, 180, 32, "tint", "line", thick=2)
    sketch.arrow((80, 160), (80, 114), colour="back")
    sketch.arrow((160, 114), (160, 160), colour="back")
    return sketch


def small_view() -> Sketch:
    """The view first, then the function."""
    sketch = Sketch(240, 200)
    view, function = sketch.box(120, 45, "view", "leaf", width=130), sketch.box(120, 150, "tanh", "plain", width=130)
    sketch.arrow(view, function)
    return sketch


def ladder() -> Sketch:
    """The traffic of a training step, with the passes of the student, and fused."""
    sketch = Sketch(800, 250)
    rows = (("as recorded", 5.70, "value"), ("with your rules", 5.43, "gradient"), ("with your pass", 5.04, "gradient"),
            ("fused", 1.62, "leaf"))
    for i, (name, size, look) in enumerate(rows):
        y = 34 + 60 * i
        sketch.label(210, y, name, anchor="end", bold=True)
        bar = sketch.bar(230, y, 76 * size, look, height=36)
        sketch.label(bar.right[0] + 12, y, f"{size:.2f} MB", anchor="start", bold=True)
    return sketch
