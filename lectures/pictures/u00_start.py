"""The pictures of unit 00: one number, five contributions, and the rule of a product."""

from __future__ import annotations

from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Sketch

from .shared import Diamond, draw_digits
from .shared import added as added
from .shared import rule as rule
from .shared import wait as wait

ONE = 54.0  # the length of 0.01 on a ruler


def cover() -> Diamond:
    """The program, and the question about it."""
    sketch = Diamond()
    sketch.forward()
    sketch.arrow((742, 184), (56, 184), "?", bend=46, colour="back", dashes="7 6", size=LARGE)
    return sketch


def program() -> Diamond:
    """The program with its values."""
    sketch = Diamond(values={"x": "1", "a": "2", "a · a": "4", "y": "6"})
    sketch.forward()
    return sketch


def _rulers(y_rise: int) -> Sketch:
    """x and y on rulers of one scale."""
    sketch = Sketch(760, 250)
    for name, y, start, rise, colour in (("x", 70, "1", 1, "good"), ("y", 190, "6", y_rise, "there")):
        sketch.label(40, y, name, size=LARGE, bold=True, fill=colour)
        sketch.path([(100, y + 30), (720, y + 30)], "line", thick=2)
        for i in range(12):
            tall = 12 if i % 10 == 0 else 7
            sketch.path([(110 + i * ONE, y + 30), (110 + i * ONE, y + 30 - tall)], "quiet", thick=1.5)
        sketch.label(110, y + 50, start, fill="quiet")
        if rise:
            sketch.arrow((110, y), (110 + rise * ONE, y), colour=colour, thick=6)
            sketch.label(122 + rise * ONE, y, f"+ {rise / 100:g}", bold=True, anchor="start", fill=colour)
        else:
            sketch.label(142, y, "?", size=LARGE + 8, bold=True, fill="back")
    return sketch


def nudge() -> Sketch:
    """x rises by 0.01; and y?"""
    return _rulers(0)


def tenfold() -> Sketch:
    """y rises ten times as far."""
    return _rulers(10)


def ask() -> Diamond:
    """The same question at each value; the answer is known for y."""
    sketch = Diamond({"x": "?", "a": "?", "a · a": "?", "y": "1"},
                     dict.fromkeys(("x", "a", "a · a"), "empty"))
    sketch.forward()
    return sketch


def accumulate() -> list[Diamond]:
    """The contributions come to a one after the other, and are added."""
    texts = ("", "1", "1 + 2 = 3", "3 + 2 = 5", "5")
    return [_arriving(number, text) for number, text in enumerate(texts)]


def _arriving(count: int, a: str) -> Diamond:
    known = {"y": "1", "a": a, "a · a": "1" if count else "", "x": "10" if count == 4 else ""}
    sketch = Diamond(known)
    sent = (("out", "1", 1), ("sum", "1", 1), ("left", "2", 2), ("right", "2", 3), ("twice", "2 · 5", 4))
    for name, text, when in sent:
        if when <= count:
            sketch.send(name, text, new=when == count)
    return sketch


def early() -> Diamond:
    """Only one contribution has come to a.  What if a sends now?"""
    sketch = Diamond({"y": "1", "a · a": "1", "a": "1", "x": "?"}, {"x": "empty"})
    sketch.send("sum", "1")
    sketch.send("out", "1")
    sketch.send("twice", dashes="7 6")
    return sketch


def too_early() -> Diamond:
    """a sent too early: x gets 2 instead of 10, and 4 comes to a too late."""
    sketch = Diamond({"y": "1", "a · a": "1", "a": "1", "x": "2"}, {"x": "wrong"})
    sketch.send("sum", "1")
    sketch.send("out", "1")
    for name in ("left", "right"):
        sketch.send(name, "2", colour="bad", dashes="7 6")
    sketch.send("twice", "2 · 1", colour="bad")
    sketch.label(430, 28, "too late", fill="bad", bold=True, anchor="end")
    return sketch


def order() -> Sketch:
    """The order in which values send, in time, and how many of its contributions each has then."""
    sketch = Sketch(760, 260)
    early = (("y", "1 of 1"), ("a", "1 of 3"), ("a · a", "1 of 1"))
    for y, sends, right in ((50, early, False), (170, (early[0], early[2], ("a", "3 of 3")), True)):
        boxes = []
        for i, (name, came) in enumerate(sends):
            look = "wrong" if came == "1 of 3" else "gradient"
            boxes.append(sketch.box(90 + i * 165, y, name, look, width=110, height=68, under=came))
        end = sketch.box(590, y, "x", "gradient" if right else "wrong", width=110, height=68)
        for one, two in pairwise([*boxes, end]):
            sketch.arrow(one, two, colour="quiet", thick=1.6)
        (sketch.tick if right else sketch.cross)(700, y, 14)
    sketch.arrow((40, 250), (720, 250), colour="quiet", thick=1.6)
    sketch.label(380, 234, "time", size=SMALL, fill="quiet")
    return sketch


def sum_rule() -> Sketch:
    """A sum as lengths: if a or b grows, out grows as much."""
    sketch = Sketch(760, 250)
    for y, grown in ((36, ""), (120, "a"), (204, "b")):
        more = 44 if grown == "a" else 0
        a, b = sketch.bar(40, y, 200, "leaf", height=50), sketch.bar(240 + more, y, 300, "value", height=50)
        if grown:
            sketch.bar(240 if grown == "a" else 540, y, 44, "gradient", height=50)
        for bar, name in ((a, "a"), (b, "b")):
            sketch.label(bar.x, y, name, bold=True)
        says = f"{grown} grows: times 1" if grown else "out = a + b"
        sketch.label(604, y, says, anchor="start", fill="back" if grown else "ink", bold=True)
    return sketch


def _area(grown: bool) -> Sketch:
    """A product as an area, a wide and b high."""
    sketch = Sketch(760, 290)
    left, top, unit, bit = 130.0, 42.0, 96.0, 28.0
    right, bottom = left + 3 * unit, top + 2 * unit
    sketch.cells(left, top, [["", "out = 6", ""], [""] * 3], size=unit)
    sketch.label(left + 1.5 * unit, top - 22, "a = 3", bold=True)
    sketch.label(left - 16, top + unit, "b = 2", bold=True, anchor="end")
    if not grown:
        sketch.label(right + 80, top + unit, "g = 5", anchor="start", bold=True, fill="back")
        return sketch
    sketch.rect(right, top, bit, 2 * unit, "back-fill", "back", thick=2, round=0)
    sketch.rect(left, bottom, 3 * unit, bit, "leaf-fill", "good", thick=2, round=0)
    for x, y, name, times, gradient, colour in (
        (right + bit + 16, top + unit, "a", 2, 10, "back"), (right + bit + 16, bottom + bit / 2, "b", 3, 15, "good"),
    ):
        says = f"{name} grows: times {times},  ∂{name} = 5 · {times} = {gradient}"
        sketch.label(x, y, says, anchor="start", fill=colour, bold=True)
    return sketch


def product() -> Sketch:
    """a · b as an area."""
    return _area(False)


def product_rule() -> Sketch:
    """How the area grows with each side."""
    return _area(True)


# ---- recap ---------------------------------------------------------------------------------------------------------


def begin() -> Sketch:
    """∂y = 1."""
    sketch = Sketch(220, 200)
    sketch.box(110, 72, "y", width=130, height=54, size=LARGE)
    sketch.box(110, 130, "1", "gradient", width=130, height=54, size=LARGE)
    return sketch


def rules() -> Sketch:
    """An operation turns g into one gradient for each input."""
    sketch = Sketch(220, 200)
    box = sketch.box(128, 100, "rule", "now", width=84, height=64, size=22)
    sketch.arrow((218, 100), box, colour="back")
    for y, text in ((36, "∂a"), (164, "∂b")):
        sketch.arrow(box, sketch.box(32, y, text, "gradient", width=62), colour="back")
    return sketch


def handwritten() -> Sketch:
    """Digits as the network sees them, 8 × 8 grey pixels each."""
    sketch = Sketch(760, 250)
    draw_digits(sketch, 8, 0, (3, 8), side=9.5, apart=(94, 86))
    return sketch
