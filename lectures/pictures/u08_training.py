"""The pictures of unit 08: optimizers, modules, first weights, a step, damaged data, a training that is continued."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Sketch
from minigrad.data import digits
from minigrad_course.units.u08_training.resuming import STOP, parted, uninterrupted, without

from .shared import draw_digits

# ---- two weights -----------------------------------------------------------------------------------------------------


def _moves(rows: Sequence[tuple[str, str, float]]) -> Sketch:
    """For each weight its gradient, and an arrow as long as its step."""
    sketch = Sketch(800, 60 + 76 * len(rows))
    sketch.label(150, 22, "gradient", fill="quiet")
    sketch.label(520, 22, "first step", fill="quiet")
    for i, (gradient, said, length) in enumerate(rows):
        y = 84 + 76 * i
        sketch.box(150, y, gradient, "gradient", width=130)
        sketch.dot(300, y, "ink", 6)
        if length:
            sketch.arrow((310, y), (310 + length, y), said, at=0.55 if length > 90 else 1.6)
        else:
            sketch.label(330, y, said, anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def cover() -> Sketch:
    """Two gradients of very different size, and the first step of Adam."""
    return _moves((("1000", "?", 0), ("0.001", "?", 0)))


def by_descent() -> Sketch:
    """Plain descent: the steps are as different as the gradients."""
    sketch = _moves((("1000", "lr · 1000", 470), ("0.001", "", 0)))
    sketch.dot(306, 160, "there", 2)
    sketch.label(330, 160, "lr · 0.001: too short to see", anchor="start", fill="quiet")
    return sketch


def by_adam() -> Sketch:
    """Adam: both steps are lr."""
    return _moves((("1000", "lr", 300), ("0.001", "lr", 300)))


# ---- modules ---------------------------------------------------------------------------------------------------------


def _tree(numbers: bool) -> Sketch:
    sketch = Sketch(800, 250)
    root = sketch.box(400, 36, "Sequential", "plain", width=160)
    layers = ((150, "Linear(64, 32)", (("weight", "2048"), ("bias", "32"))), (400, "Tanh", ()),
              (650, "Linear(32, 10)", (("weight", "320"), ("bias", "10"))))
    for x, name, held in layers:
        layer = sketch.box(x, 124, name, width=170)
        sketch.arrow(root, layer, tip=False)
        for (what, size), at in zip(held, (x - 70, x + 70)):
            leaf = sketch.box(at, 212, size if numbers else what, "leaf", width=120)
            sketch.arrow(layer, leaf, tip=False)
    return sketch


def tree() -> Sketch:
    """A module holds modules, and these hold tensors."""
    return _tree(False)


def tree_counted() -> Sketch:
    """How many numbers each tensor holds."""
    return _tree(True)


# ---- first weights ---------------------------------------------------------------------------------------------------


def _layers(known: bool) -> Sketch:
    sketch = Sketch(800, 220)
    for i in range(11):
        x, high = 50 + 70 * i, 150 * 0.5**i
        sketch.label(x, 198, "x" if not i else str(i), size=SMALL, fill="quiet")
        if known or not i:
            sketch.rect(x - 20, 176 - high, 40, max(high, 1.5), "leaf-fill" if not i else "there-fill",
                        "good" if not i else "there", thick=1.5)
        else:
            sketch.rect(x - 20, 26, 40, 150, "paper", "line", dashes="4 4")
    sketch.label(50, 12, "1", bold=True)
    sketch.label(750, 100 if not known else 150, "?" if not known else "0.001", size=LARGE if not known else 22,
                 bold=True, fill="back")
    if known:
        sketch.label(120, 84, "0.5", bold=True)
        sketch.label(190, 122, "0.25", bold=True)
    return sketch


def layers() -> Sketch:
    """The input has spread 1; what does the tenth layer have?"""
    return _layers(False)


def layers_halved() -> Sketch:
    """Each layer halves the spread."""
    return _layers(True)


# ---- a step ----------------------------------------------------------------------------------------------------------


def phases() -> list[Sketch]:
    """The four phases of a step, one after the other."""
    return [_phases(count) for count in range(1, 5)]


def _phases(count: int) -> Sketch:
    sketch = Sketch(800, 250)
    names, places = ("batch", "loss", "gradients", "weights"), ((110, 70), (400, 70), (690, 70), (400, 200))
    looks = ("plain", "value", "gradient", "leaf")
    boxes = [sketch.box(x, y, name, look if i < count or i == 3 else "empty", width=150, height=54)
             for i, (name, (x, y), look) in enumerate(zip(names, places, looks))]
    batch, loss, gradients, weights = boxes
    if count > 1:
        sketch.arrow(batch, loss, "forward", new=count == 2)
        sketch.arrow(weights, loss, new=count == 2)
    if count > 2:
        sketch.arrow(loss, gradients, "backward", colour="back", new=count == 3)
    if count > 3:
        sketch.arrow(gradients, weights, "update", colour="good", new=True)
    return sketch


def _pots(first: str, second: str, w: str) -> Sketch:
    """Two steps: what comes in, what .grad holds, and the weight."""
    sketch = Sketch(800, 220)
    for x, number, held in ((190, "3", first), (520, "3", second)):
        pot = sketch.box(x, 130, held, "gradient" if held != "?" else "empty", width=150, height=56, under=".grad")
        sketch.arrow((x, 30), pot, number, colour="back")
    sketch.label(40, 130, "w = 1", bold=True)
    sketch.arrow((120, 190), (700, 190), "two updates", colour="good")
    sketch.number(748, 130, f"w = {w}" if w != "?" else "w ?", "good")
    return sketch


def pots() -> Sketch:
    """Gradients of 3 come twice into .grad, and nothing clears it."""
    return _pots("3", "?", "?")


def pots_filled() -> Sketch:
    """The second step uses 3 + 3."""
    return _pots("3", "3 + 3", "0.1")


# ---- optimizers ------------------------------------------------------------------------------------------------------


def _velocity(known: bool) -> Sketch:
    sketch = Sketch(800, 230)
    values, v = [], 0.0
    for _ in range(30):
        v = 0.9 * v + 1
        values.append(v)
    shown = values if known else values[:3]
    for i, value in enumerate(shown):
        x = 80 + 22 * i
        sketch.rect(x, 196 - 15 * value, 16, 15 * value, "there-fill", "there", thick=1.5, round=1)
    sketch.path([(70, 196), (760, 196)], "line", thick=1.6)
    sketch.label(88, 214, "1", size=SMALL, fill="quiet")
    sketch.label(80 + 22 * 29 + 8, 214, "30", size=SMALL, fill="quiet")
    if known:
        sketch.path([(70, 46), (760, 46)], "back", thick=2, dashes="6 5")
        sketch.label(52, 46, "10", bold=True, fill="back")
    else:
        sketch.label(420, 100, "v = 0.9 · v + 1", size=LARGE, bold=True)
        sketch.label(700, 46, "?", size=LARGE, bold=True, fill="back")
    return sketch


def velocity() -> Sketch:
    """The gradient is 1 in each step: the velocity grows."""
    return _velocity(False)


def velocity_known() -> Sketch:
    """It grows to 10."""
    return _velocity(True)


def adam_lines() -> Sketch:
    """What Adam keeps for a weight, and how its step is made."""
    sketch = Sketch(800, 250)
    g = sketch.box(70, 125, "g", "gradient", width=80)
    m = sketch.box(270, 60, "m", "value", width=160, height=58, under="mean of g")
    v = sketch.box(270, 190, "v", "value", width=160, height=58, under="mean of g²")
    one = sketch.box(480, 60, "m / (1 − β₁ᵗ)", "plain", width=180)
    two = sketch.box(480, 190, "v / (1 − β₂ᵗ)", "plain", width=180)
    step = sketch.box(710, 125, "m / (√v + ε)", "now", width=170)
    for start, end in ((g, m), (g, v), (m, one), (v, two), (one, step), (two, step)):
        sketch.arrow(start, end)
    sketch.label(270, 242, "kept", size=SMALL, fill="quiet")
    sketch.label(480, 242, "corrected: this step only", size=SMALL, fill="quiet")
    return sketch


def _eps(known: bool) -> Sketch:
    sketch = Sketch(800, 200)
    outside, inside = 1 / 2, 0.001 / math.sqrt(0.001**2 + 0.001)
    for i, (name, share) in enumerate((("√v + ε", outside), ("√(v + ε)", inside))):
        y = 76 + 72 * i
        sketch.box(120, y, name, "plain", width=150)
        if known:
            bar = sketch.bar(230, y, 900 * share, "value" if not i else "wrong", height=40)
            sketch.label(bar.right[0] + 12, y, f"{share:.2f} · lr", anchor="start", bold=True)
        else:
            sketch.label(240, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    sketch.label(400, 20, "g = 0.001, ε = 0.001", bold=True)
    return sketch


def eps() -> Sketch:
    """Two places for ε."""
    return _eps(False)


def eps_known() -> Sketch:
    """Inside the root ε is much larger."""
    return _eps(True)


# ---- data ------------------------------------------------------------------------------------------------------------

TEXTS = (("71.3", True), (" 71.3 ", True), ("1e3", True), ("n/a", False), ("nan", True), ("inf", True), ("", False))


def _floats(known: bool) -> Sketch:
    sketch = Sketch(800, 130)
    for i, (text, accepted) in enumerate(TEXTS):
        x = 62 + 113 * i
        sketch.box(x, 50, f"'{text}'", "plain", width=104)
        if not known:
            sketch.label(x, 104, "?", bold=True, fill="back")
        elif accepted:
            sketch.tick(x, 104)
        else:
            sketch.cross(x, 104)
    return sketch


def floats() -> Sketch:
    """Seven texts for float()."""
    return _floats(False)


def floats_known() -> Sketch:
    """Five are accepted, nan and inf too."""
    return _floats(True)


def table() -> Sketch:
    """A table with bad lines, and a loader that returns rows and a report."""
    sketch = Sketch(800, 250)
    rows = [["800", "0", "0.3"], ["1000", "", "0.3"], ["1250", "1.5", "0.3"], ["1600", "nan", "0.3"], ["2000", "4"]]
    for i, row in enumerate(rows):
        sketch.label(24, 41 + 42 * i, str(i + 2), size=SMALL, fill="quiet")
        sketch.cells(44, 20 + 42 * i, [row], "wrong" if i in (1, 3, 4) else "value", size=78, high=42)
    loader = sketch.box(400, 125, "loader", "now", width=120)
    sketch.arrow((284, 125), loader)
    good = sketch.cells(560, 20, [rows[0], rows[2]], "value", size=76, high=42)
    sketch.arrow(loader, (556, 70))
    sketch.arrow(loader, (556, 190), colour="bad")
    for i, text in enumerate(("3: empty", "5: nan", "6: two fields")):
        sketch.label(564, 156 + 32 * i, text, anchor="start", fill="bad", bold=True)
    sketch.label(good.x, 122, "rows", size=SMALL, fill="quiet")
    return sketch


def kinds() -> Sketch:
    """Structured and unstructured data become items by number."""
    sketch = Sketch(800, 240)
    sketch.cells(30, 20, [["", "", ""]] * 3, "value", size=40, high=26)
    sketch.label(200, 58, "table", anchor="start", bold=True)
    draw_digits(sketch, 30, 112, (1, 3), side=5, apart=(46, 0))
    sketch.label(200, 132, "pictures", anchor="start", bold=True)
    sketch.label(90, 200, "anna bo zoe", code=True)
    sketch.label(200, 200, "text", anchor="start", bold=True)
    dataset = sketch.box(440, 130, "dataset[i]", "plain", width=160)
    loader = sketch.box(650, 130, "batches", "now", width=130)
    for y in (58, 132, 200):
        sketch.arrow((310, y), dataset)
    sketch.arrow(dataset, loader)
    sketch.label(440, 178, "may raise any error", size=SMALL, fill="bad")
    return sketch


# ---- stop, and go on -------------------------------------------------------------------------------------------------


def _continued(part: str) -> Sketch:
    """The losses around the stop, with everything and without a part."""
    sketch = Sketch(800, 260)
    whole = uninterrupted().losses
    left, right, shown = STOP - 4, STOP + 8, whole[STOP - 5 : STOP + 8]
    others = without(part).losses[:8] if part else []
    low, high = min([*shown, *others]), max([*shown, *others])

    def at(step: int, loss: float) -> tuple[float, float]:
        return 60 + 620 * (step - left) / (right - left), 220 - 180 * (loss - low) / (high - low)

    middle = (at(STOP, 0)[0] + at(STOP + 1, 0)[0]) / 2
    sketch.path([(middle, 14), (middle, 244)], "quiet", dashes="5 5", thick=2)
    sketch.label(middle - 10, 18, "stop", anchor="end", size=SMALL, fill="quiet")
    points = [at(step, loss) for step, loss in enumerate(shown, left)]
    sketch.path(points, "there", thick=4)
    for point in points:
        sketch.dot(*point, "there", 5)
    if part:
        there = [at(step, loss) for step, loss in enumerate(others, STOP + 1)]
        sketch.path(there, "back", thick=4, dashes="8 5")
        for point in there:
            sketch.dot(*point, "back", 5)
        first = parted(others)
        assert first is not None
        sketch.number(there[first - STOP - 1][0], there[first - STOP - 1][1] + (34 if first > STOP + 1 else -30),
                      f"loss {first - STOP}", "back", SMALL)
    else:
        sketch.label(at(STOP + 4, 0)[0], 40, "first difference ?", bold=True, fill="back")
    sketch.label(700, 60, "never stopped", anchor="start", size=SMALL, fill="there") if not part else None
    return sketch


def stopped() -> Sketch:
    """A training is stopped; the optimizer is not in the file."""
    return _continued("")


def continued() -> Sketch:
    """Loss 1 is right, loss 2 is not."""
    return _continued("optimizer")


def states() -> Sketch:
    """Five things that change in a step, and what each keeps."""
    sketch = Sketch(800, 250)
    file = sketch.box(400, 210, "checkpoint", "now", width=200, height=54)
    for x, name, kept in ((90, "model", "weights"), (245, "optimizer", "means"), (400, "schedule", "the rate"),
                          (555, "loader", "the place"), (710, "random", "masks")):
        sketch.arrow(sketch.box(x, 70, name, "value", width=140, height=64, under=kept), file)
    return sketch


def _sorted(right: str) -> Sketch:
    sketch = Sketch(800, 210)
    images, labels = digits()[1].arrays
    for row, digit in enumerate((0, 1)):
        chosen = images[labels == digit][:6].reshape(-1, 8, 8)
        for i, image in enumerate(chosen):
            sketch.image(20 + 62 * i, 24 + 92 * row, (image / image.max()).tolist(), 6.5)
        sketch.label(400, 50 + 92 * row, "one batch", anchor="start", size=SMALL, fill="quiet")
    norm = sketch.box(600, 96, "batch − mean", "plain", width=160)
    sketch.arrow((486, 50), norm)
    sketch.arrow((486, 142), norm)
    sketch.arrow(norm, (734, 96))
    sketch.number(762, 96, right, "back")
    sketch.label(740, 150, "of 360", size=SMALL, fill="quiet")
    return sketch


def sorted_batches() -> Sketch:
    """Batches of one digit each, in training mode."""
    return _sorted("?")


def sorted_read() -> Sketch:
    """Few are read rightly."""
    return _sorted("43")


def file() -> Sketch:
    """A model, a file, another program, and the largest difference of their outputs."""
    sketch = Sketch(800, 220)
    model = sketch.box(90, 110, "model", width=120, height=56)
    path = sketch.box(375, 60, "model.onnx", "plain", width=150)
    program = sketch.box(600, 60, "onnxruntime", "now", width=170)
    difference = sketch.box(710, 160, "≈ 0 ?", "gradient", width=120)
    sketch.arrow(model, path, "export")
    sketch.arrow(path, program)
    sketch.arrow(program, difference)
    sketch.arrow(model, difference, bend=-22)
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_adam() -> Sketch:
    """Two equal steps."""
    sketch = Sketch(240, 200)
    for y, g in ((60, "1000"), (140, "0.001")):
        sketch.label(50, y, g, bold=True, fill="back")
        sketch.arrow((110, y), (220, y))
    return sketch


def small_step() -> Sketch:
    """The circle of four phases."""
    sketch = Sketch(240, 200)
    places = ((120, 30), (206, 100), (120, 170), (34, 100))
    boxes = [Box(x, y, 56, 40) for x, y in places]
    for one, two in pairwise([*boxes, boxes[0]]):
        sketch.arrow(one, two)
    for (x, y), name in zip(places, ("x", "ℓ", "∂", "w")):
        sketch.box(x, y, name, "leaf" if name == "w" else "gradient" if name == "∂" else "value", width=56, height=40)
    return sketch


def small_report() -> Sketch:
    """A row with a cross, and its number."""
    sketch = Sketch(240, 200)
    for i in range(4):
        sketch.cells(50, 24 + 38 * i, [["", "", ""]], "wrong" if i == 2 else "value", size=44, high=38)
    sketch.label(212, 119, "4!", bold=True, fill="bad", size=LARGE)
    return sketch


def small_states() -> Sketch:
    """Five arrows into a file."""
    sketch = Sketch(240, 200)
    box = sketch.box(120, 160, "file", "now", width=90)
    for x in (20, 70, 120, 170, 220):
        sketch.arrow((x, 30), box)
    return sketch


def yours() -> Sketch:
    """The parts of a trainer, all written by the student."""
    sketch = Sketch(800, 190)
    draw_digits(sketch, 10, 52, (2, 2), side=5, apart=(46, 46))
    before: Box | tuple[float, float] = (108, 98)
    for i, name in enumerate(("load", "step", "Adam", "save", "read", "export")):
        box = sketch.box(180 + 112 * i, 98, name, "now", width=90)
        sketch.arrow(before, box)
        before = box
    sketch.label(460, 166, "all written by you", bold=True, fill="back")
    return sketch
