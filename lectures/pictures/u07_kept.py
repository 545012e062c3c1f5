"""The second half of the pictures of unit 07: what the tape keeps, checkpoints, and plans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import minigrad as mg
from lectures.site.drawn import LARGE, SMALL, Sketch
from minigrad_course.counting import most_bytes

MB = 48.0  # the length of a megabyte

# ---- the bill --------------------------------------------------------------------------------------------------------


def _bill(known: bool) -> Sketch:
    sketch = Sketch(800, 190)
    sketch.label(0, 34, "weights of a GPT", anchor="start", bold=True)
    bar = sketch.bar(0, 66, 0.21 * MB, "leaf", height=34)
    sketch.label(bar.right[0] + 14, 66, "0.2 MB", anchor="start", bold=True)
    sketch.label(0, 120, "kept by one training step", anchor="start", bold=True)
    bar = sketch.bar(0, 152, 12.3 * MB, "gradient" if known else "empty", height=34)
    if known:
        sketch.label(bar.right[0] + 14, 152, "12.3 MB", anchor="start", bold=True, fill="back")
    else:
        sketch.label(bar.x, 152, "?", size=LARGE, bold=True, fill="back")
    return sketch


def cover() -> Sketch:
    """A thin bar for the weights, and a question mark for what is kept."""
    return _bill(False)


def the_bill() -> Sketch:
    """58 times as long."""
    return _bill(True)


def a_step() -> Sketch:
    """A training step of a GPT: forward through four blocks, and back; each block keeps something."""
    sketch = Sketch(800, 230)
    before = sketch.box(60, 50, "names", "leaf", width=96)
    for i in range(4):
        block = sketch.box(210 + 130 * i, 50, f"block {i}", width=100)
        sketch.arrow(before, block)
        sketch.arrow((block.x, 118), (block.x, 76), colour="back", dashes="6 5")
        for layer in range(3):
            sketch.rect(block.x - 42 + 4 * layer, 122 + 9 * layer, 76, 30, "back-fill", "back", thick=1.6, round=2)
        before = block
    sketch.arrow(before, sketch.box(740, 50, "loss", "gradient", width=84))
    sketch.label(400, 206, "kept for the backward pass: ? MB", bold=True, fill="back")
    return sketch


def kept_of_a_block() -> Sketch:
    """What one of the four blocks keeps, by its parts."""
    sketch = Sketch(800, 250)
    parts = (("two layers, GELU", 1180), ("attention", 848), ("norms", 602), ("dropout", 541))  # kB, of 3,171
    for i, (name, size) in enumerate(parts):
        y = 36 + 60 * i
        sketch.label(220, y, name, anchor="end", bold=True)
        bar = sketch.bar(238, y, 0.36 * size, "gradient", height=40)
        sketch.label(bar.right[0] + 12, y, f"{size:,} kB", anchor="start", bold=True, fill="back")
    return sketch


# ---- shared ----------------------------------------------------------------------------------------------------------


def _shared(known: bool) -> Sketch:
    sketch = Sketch(800, 250)
    p, h = sketch.box(60, 60, "x @ W", "plain", width=110), sketch.box(360, 60, "h", "value", under="64 kB", height=66)
    tanh, product = sketch.box(210, 60, "tanh", "plain", width=90), sketch.box(540, 60, "h · h", "plain", width=110)
    sketch.arrow(p, tanh)
    sketch.arrow(tanh, h)
    sketch.arrow(h, product, bend=14)
    sketch.arrow(h, product, bend=-14)
    sketch.arrow(product, sketch.box(720, 60, "y", width=60))
    one, two = sketch.box(210, 200, "its rule", "now", width=120), sketch.box(540, 200, "its rule", "now", width=120)
    sketch.arrow(h, one, dashes="6 5", colour="back")
    sketch.arrow(h, two, dashes="6 5", colour="back", bend=12)
    sketch.arrow(h, two, dashes="6 5", colour="back", bend=-12)
    sketch.label(376, 218, "kept: 64 kB" if known else "kept: ?", bold=True, fill="good" if known else "back")
    return sketch


def shared() -> Sketch:
    """Three arrows from one array to the rules that read it."""
    return _shared(False)


def shared_answer() -> Sketch:
    """The array is kept once."""
    return _shared(True)


# ---- checkpoints -----------------------------------------------------------------------------------------------------

LAYERS = 5  # of which the first three are in a checkpoint


def checkpointed() -> list[Sketch]:
    """Forward, a checkpoint keeps its input; backward, its inside is computed again, used, and freed."""
    says = ("forward: only the rest keeps", "backward through the rest", "the inside: forward again", "and backward")
    kept = ((3, 4), (), (0, 1, 2), ())
    stages = []
    for stage, (said, now) in enumerate(zip(says, kept)):
        sketch = Sketch(800, 250)
        entry = sketch.box(50, 100, "in", "leaf" if stage < 3 else "plain", width=70)
        before = entry
        for i in range(LAYERS):
            look = "gradient" if i in now else "empty" if i < 3 and stage < 2 else "plain"
            box = sketch.box(190 + 140 * i, 100, f"h{'₁₂₃₄₅'[i]}", look, width=84, height=60)
            sketch.arrow(before, box)
            if (stage == 1 and i >= 3) or (stage == 3 and i < 3):
                sketch.arrow((box.x + 36, 146), (box.x - 50, 146), colour="back", new=True)
            if stage == 2 and i < 3:
                sketch.arrow((box.x - 86, 56), (box.x + 20, 56), colour="now", new=True)
            before = box
        sketch.path([(134, 166), (134, 178), (526, 178), (526, 166)], "good", thick=3)
        sketch.label(330, 200, "mg.checkpoint", bold=True, fill="good", code=True)
        sketch.label(400, 236, said, bold=True)
        stages.append(sketch)
    return stages


def _over_time(points: Sequence[tuple[float, float]] | None) -> Sketch:
    sketch = Sketch(800, 260)
    left, right, floor, top = 110.0, 740.0, 210.0, 40.0
    middle = (left + right) / 2
    sketch.path([(left, top - 18), (left, floor), (right + 20, floor)], "quiet", thick=1.6)
    sketch.path([(left, floor), (middle, top), (right, floor)], "quiet", thick=2, dashes="6 5")
    sketch.path([(middle, top), (middle, floor)], "line", thick=1.6, dashes="5 5")
    sketch.label(left - 10, top, "400 kB", anchor="end", size=SMALL, fill="quiet")
    sketch.label(left - 10, floor, "0", anchor="end", size=SMALL, fill="quiet")
    sketch.label((left + middle) / 2, floor + 26, "forward", bold=True)
    sketch.label((middle + right) / 2, floor + 26, "backward", bold=True)
    if points is None:
        sketch.label(middle, 140, "?", size=LARGE, bold=True, fill="back")
    else:
        placed = [(left + (right - left) * x, floor - (floor - top) * y) for x, y in points]
        sketch.path(placed, "back", thick=4, fill="back-fill", opacity=0.6)
    return sketch


def one_part() -> Sketch:
    """The whole chain is in one checkpoint: what is kept over time?"""
    return _over_time(None)


def one_part_answer() -> Sketch:
    """Nothing at first; then everything at once."""
    return _over_time([(0.0, 0.0), (0.5, 0.0), (0.56, 1.0), (1.0, 0.0)])


@cache
def _arrays(parts: int) -> int:
    """The most arrays that a chain of 100 tanh keeps at once, in equal parts, counted by the engine."""

    def chain(h: mg.Tensor) -> mg.Tensor:
        for _ in range(100 // parts):
            h = mg.tanh(h)
        return h

    h = mg.ones(10, requires_grad=True)
    for _ in range(parts - 1):
        h = mg.checkpoint(chain)(h)
    return most_bytes(chain(h).sum()) // 40


def _bars(known: bool) -> Sketch:
    sketch = Sketch(800, 280)
    for i, parts in enumerate((1, 2, 5, 10, 20, 50)):
        y, most = 24 + 46 * i, _arrays(parts)
        sketch.label(120, y, "1 part" if parts == 1 else f"{parts} parts", anchor="end", bold=True)
        if known or parts <= 2:
            bar = sketch.bar(136, y, 5.6 * most, "leaf" if parts == 10 else "gradient", height=34)
            sketch.label(bar.right[0] + 12, y, str(most), anchor="start", bold=True, fill="back")
        else:
            sketch.label(140, y, "?", anchor="start", bold=True, fill="back")
    return sketch


def in_parts() -> Sketch:
    """A hundred arrays in one part, fifty in two, and with more parts question marks."""
    return _bars(False)


def in_parts_counted() -> Sketch:
    """The lowest is at ten parts; with fifty the inputs add up."""
    return _bars(True)


def triangle() -> Sketch:
    """Six layers in parts of 3, 2 and 1: at every time two arrays are kept, and the data."""
    sketch = Sketch(800, 280)
    for i in range(6):
        sketch.box(125 + 110 * i, 34, f"layer {i + 1}", "plain", width=92)
        if i in (3, 5):
            sketch.path([(70 + 110 * i, 6), (70 + 110 * i, 66)], "now", thick=4)
    steps = (("layer 6", 3, 5, 1), ("layers 4, 5", 3, 4, 2), ("layers 1, 2, 3", 1, 2, 2))
    for step, (name, one, two, inside) in enumerate(steps):
        x = 250 + 190 * step
        sketch.box(x, 140, "x", "plain", width=100, height=34)
        sketch.box(x, 178, "" if inside == 1 else f"h{'₀₁₂₃₄₅'[one]}", "gradient", width=100, height=34)
        if inside == 1:  # the input of a part that is still to come
            sketch.rect(x - 50, 161, 100, 34, "leaf-fill", "good", thick=2, round=7)
            sketch.label(x, 178, f"h{'₀₁₂₃₄₅'[one]}", bold=True)
        sketch.box(x, 216, f"h{'₀₁₂₃₄₅'[two]}", "gradient", width=100, height=34)
        sketch.label(x, 262, name, size=SMALL, bold=True)
    sketch.label(440, 96, "over the backward pass: →", size=SMALL, fill="quiet")
    for y, name, fill in ((140, "data", "quiet"), (178, "input that waits", "good"), (216, "in use", "back")):
        sketch.label(180, y, name, anchor="end", size=SMALL, fill=fill, bold=True)
    return sketch


# ---- the recap and the exercise --------------------------------------------------------------------------------------


def small_shared() -> Sketch:
    """One array, two rules."""
    sketch = Sketch(220, 200)
    h = sketch.cells(80, 20, [["h"]], "gradient", size=60)
    for x in (56, 164):
        sketch.arrow(h, sketch.box(x, 164, "rule", "now", width=76), dashes="6 5", colour="back")
    return sketch


def small_parts() -> Sketch:
    """A high triangle, and low teeth."""
    sketch = Sketch(220, 200)
    sketch.path([(14, 170), (110, 24), (206, 170)], "quiet", thick=2, dashes="6 5")
    teeth = [(14, 170), (90, 150), (110, 110), (138, 160), (146, 120), (168, 165), (176, 130), (206, 170)]
    sketch.path(teeth, "back", thick=4, fill="back-fill")
    return sketch


def planned() -> Sketch:
    """The blocks of a GPT with cuts between them, and what is kept under the line of the budget."""
    sketch = Sketch(800, 290)
    for i in range(8):
        covered = i < 6
        sketch.box(60 + 97 * i, 34, str(i), "empty" if covered else "gradient", width=72)
        if i in (2, 4, 6):
            sketch.path([(11.5 + 97 * i, 4), (11.5 + 97 * i, 64)], "now", thick=4)
    left, right, floor, top = 24.0, 780.0, 270.0, 90.0
    middle = (left + right) / 2
    sketch.path([(left, floor), (middle, top), (right, floor)], "quiet", thick=2, dashes="6 5")
    low = 0.27 * (floor - top)
    teeth = [(left, floor), (middle - 95, floor - 6), (middle, floor - low)]
    for i in range(4):
        x = middle + 95 * (i + 1)
        teeth += [(x - 6, floor - 3), (x, floor - low + 4)] if i < 3 else [(right, floor)]
    sketch.path(teeth, "back", thick=4, fill="back-fill")
    sketch.path([(left, floor - 62), (right, floor - 62)], "good", thick=3, dashes="9 6")
    sketch.label(right, floor - 78, "budget", anchor="end", bold=True, fill="good")
    return sketch
