"""The second half of the pictures of unit 06: what is kept, seeds, broken engines, and the recap."""

from __future__ import annotations

from collections.abc import Sequence

from lectures.site.drawn import LARGE, SMALL, Sketch

from .shared import draw_digits

# ---- what is kept --------------------------------------------------------------------------------------------------

KEPT = (("h + 1", "g", 0), ("tanh(h)", "g · (1 − out²)", 400), ("relu(h)", "g where h > 0", 100))  # name, rule, kB


def chains() -> Sketch:
    """Three chains of 100 operations."""
    sketch = Sketch(800, 250)
    for i, (name, _, _) in enumerate(KEPT):
        y = 42 + 82 * i
        boxes = [sketch.box(90 + 150 * j, y, name, width=112) for j in range(2)] + [sketch.box(560, y, name, width=112)]
        sketch.arrow((4, y), boxes[0])
        sketch.arrow(boxes[0], boxes[1])
        sketch.label(400, y, "· · ·  × 100", fill="quiet", bold=True)
        sketch.arrow(boxes[2], (680, y))
        sketch.label(700, y, "? kB", anchor="start", bold=True, fill="back")
    return sketch


def kept() -> Sketch:
    """What their rules read, and how many kB that is."""
    sketch = Sketch(800, 250)
    for i, (name, says, size) in enumerate(KEPT):
        y = 42 + 82 * i
        sketch.label(160, y - 8, name, bold=True, anchor="end")
        sketch.label(180, y + 26, f"rule: {says}", size=SMALL, fill="quiet", anchor="start")
        bar = sketch.bar(180, y - 8, max(440 * size / 400, 1.5), "gradient", height=38)
        sketch.label(bar.right[0] + 14, y - 8, f"{size} kB", anchor="start", bold=True, fill="back")
    return sketch


def memory() -> Sketch:
    """The bytes kept, over the time of a forward and a backward pass."""
    sketch = Sketch(800, 260)
    left, middle, right, floor, top = 110.0, 410.0, 740.0, 210.0, 40.0
    sketch.path([(left, floor), (middle, top), (right, floor)], "back", thick=3, fill="back-fill")
    sketch.path([(left, top - 20), (left, floor), (right + 30, floor)], "quiet", thick=1.6)
    sketch.path([(middle, top), (middle, floor)], "line", thick=1.6, dashes="5 5")
    sketch.label(left - 12, top, "bytes", anchor="end", fill="quiet")
    sketch.label(left - 12, floor, "0", anchor="end", fill="quiet")
    sketch.label((left + middle) / 2 + 40, 180, "forward: keep", bold=True)
    sketch.label((middle + right) / 2 - 40, 180, "backward: free", bold=True)
    sketch.label((left + right) / 2, floor + 28, "time", size=SMALL, fill="quiet")
    return sketch


# ---- several outputs -----------------------------------------------------------------------------------------------


def _product(seed: Sequence[str], result: Sequence[str], lit: Sequence[int]) -> Sketch:
    """A row times a matrix is a row: the shapes of vᵀJ."""
    sketch = Sketch(800, 230)
    size = 64.0
    sketch.cells(40, 80, [seed], "gradient", size=size)
    sketch.cells(280, 48, [["1", "2", "3"], ["4", "5", "6"]], size=size, lit=[(i, j) for i in lit for j in range(3)])
    sketch.cells(590, 80, [result], "gradient", size=size)
    for x, text in ((224, "×"), (530, "=")):
        sketch.label(x, 112, text, size=LARGE, bold=True)
    for x, text, shape in ((104, "vᵀ", "1 × 2"), (376, "J", "2 × 3"), (686, "∂x", "1 × 3")):
        sketch.label(x, 24, text, size=LARGE, bold=True, fill="quiet")
        sketch.label(x, 204, shape, fill="quiet")
    return sketch


def one_row() -> Sketch:
    """The seed 1, 0 picks the first row."""
    return _product(("1", "0"), ("1", "2", "3"), (0,))


def open_sum() -> Sketch:
    """A seed of ones; the result is not known yet."""
    return _product(("1", "1"), ("?", "?", "?"), (0, 1))


def summed() -> Sketch:
    """A seed of ones adds the rows."""
    return _product(("1", "1"), ("5", "7", "9"), (0, 1))


def never() -> Sketch:
    """The Jacobian of a layer: a thousand by a million numbers, which are never made."""
    sketch = Sketch(800, 250)
    sketch.rect(40, 118, 120, 6, "back-fill", "back", thick=2, round=0)
    sketch.rect(230, 40, 260, 160, "paper", "line", thick=2, round=0, dashes="8 6")
    sketch.rect(560, 118, 220, 6, "back-fill", "back", thick=2, round=0)
    sketch.label(195, 121, "×", size=LARGE, bold=True)
    sketch.label(525, 121, "=", size=LARGE, bold=True)
    sketch.label(360, 104, "J: 10⁹ numbers", bold=True, fill="quiet")
    sketch.label(360, 138, "never made", bold=True, fill="bad")
    for x, text in ((100, "1,000"), (360, "1,000 × 1,000,000"), (670, "1,000,000")):
        sketch.label(x, 230, text, fill="quiet")
    return sketch


# ---- broken engines, and the recap ---------------------------------------------------------------------------------


def lost() -> Sketch:
    """1 and 2 came, and the box shows 2."""
    sketch = Sketch(240, 200)
    box = sketch.box(70, 100, "2", "wrong", width=90, height=64, size=LARGE)
    for y, number in ((30, "1"), (170, "2")):
        sketch.arrow((230, y), box, number, colour="back", at=0.42)
    return sketch


def too_soon() -> Sketch:
    """The box has sent on, and something comes to it."""
    sketch = Sketch(240, 200)
    box = sketch.box(124, 100, "1", "gradient", width=80, height=64, size=LARGE)
    sketch.arrow((236, 40), box, "1", colour="back", at=0.42, size=SMALL)
    sketch.arrow((236, 176), box, "2", colour="bad", dashes="6 6", at=0.42, size=SMALL)
    sketch.arrow(box, (4, 100), colour="bad")
    return sketch


def stale() -> Sketch:
    """A rule needs the value 3, and 7 stands there now."""
    sketch = Sketch(240, 200)
    sketch.cells(20, 20, [["3"]], "plain", size=58)
    sketch.cells(150, 20, [["7"]], "wrong", size=58)
    sketch.arrow((84, 49), (142, 49), colour="bad")
    rule_ = sketch.box(120, 160, "rule", "now", width=100, height=58)
    sketch.arrow((178, 84), rule_, colour="bad", dashes="6 5")
    return sketch


def one_output() -> Sketch:
    """One output, all inputs."""
    sketch = Sketch(220, 200)
    for y in (28, 76, 124, 172):
        sketch.arrow((186, 100), (44, y), colour="back", thick=2)
        sketch.dot(28, y, "there-fill", 13, "there")
    sketch.dot(196, 100, "back", 16, "back")
    return sketch


def keep() -> Sketch:
    """An operation keeps what its rule reads."""
    sketch = Sketch(220, 200)
    operation = sketch.box(110, 34, "tanh", width=100, height=54)
    saved = sketch.box(40, 160, "rule", "now", width=74, height=54)
    out = sketch.cells(150, 134, [["out"]], "value", size=54)
    sketch.arrow(operation, out)
    sketch.arrow(out, saved, colour="back")
    return sketch


def engine() -> Sketch:
    """The loop of training, in which the walk is the student's."""
    sketch = Sketch(800, 250)
    draw_digits(sketch, 8, 22, (2, 2), side=7, apart=(62, 62))
    network = sketch.box(360, 76, "network", height=70, width=170)
    loss = sketch.box(650, 76, "loss", height=70, width=110)
    yours = sketch.box(505, 206, "your walk", "gradient", width=190, height=64, size=LARGE)
    sketch.arrow((136, 76), network)
    sketch.arrow(network, loss)
    sketch.arrow(loss, yours, colour="back")
    sketch.arrow(yours, network, colour="back")
    return sketch
