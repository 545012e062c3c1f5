"""The pictures of unit 10: a frozen rate, two phases, the second call, three ways to a graph, guards, tools."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Point, Sketch

from .shared import draw_digits

# The losses of the exercise's network, in every fourth step of 60.
EAGER = (2.31, 2.20, 1.99, 1.75, 1.46, 1.17, 0.95, 0.82, 0.70, 0.60, 0.56, 0.51, 0.48, 0.46, 0.46)
FROZEN = (2.31, 2.33, 2.31, 2.30, 2.31, 2.32, 2.32, 2.31, 2.34, 2.32, 2.30, 2.31, 2.31, 2.32, 2.32)


# ---- the warm-up -----------------------------------------------------------------------------------------------------


def _losses(sketch: Sketch, at: Point, size: tuple[float, float], frozen: bool) -> None:
    """The loss in eager mode, and the frozen one, or a question mark."""
    (x, y), (wide, high) = at, size
    sketch.path([(x, y), (x, y + high), (x + wide, y + high)], "line", thick=1.6)

    def curve(losses: Sequence[float]) -> list[Point]:
        return [(x + wide * i / 14, y + high * (1 - loss / 2.6)) for i, loss in enumerate(losses)]

    sketch.path(curve(EAGER), "there", thick=4)
    sketch.label(x + wide + 10, curve(EAGER)[-1][1], "eager", anchor="start", fill="there", bold=True)
    if frozen:
        sketch.path(curve(FROZEN), "bad", thick=4)
        sketch.label(x + wide + 10, curve(FROZEN)[-1][1], "traced", anchor="start", fill="bad", bold=True)
    else:
        sketch.label(x + wide + 10, y + 0.12 * high, "traced ?", anchor="start", fill="back", bold=True, size=LARGE)
    sketch.label(x - 10, y + 8, "loss", anchor="end", fill="quiet", size=SMALL)


def _rates(sketch: Sketch, at: Point, size: tuple[float, float]) -> None:
    """The learning rate: nothing in step 1, then 0.5."""
    (x, y), (wide, high) = at, size
    first = x + wide / 15
    sketch.path([(x, y + high), (first, y + high), (first, y), (x + wide, y)], "now", thick=4)
    sketch.label(x - 10, y + high, "rate 0", anchor="end", bold=True, fill="now", size=SMALL)
    sketch.label(x + wide + 10, y, "0.5", anchor="start", bold=True, fill="now")


def cover() -> Sketch:
    """The rate, the loss in eager mode, and the question."""
    sketch = Sketch(800, 220)
    _rates(sketch, (110, 20), (500, 34))
    _losses(sketch, (110, 80), (500, 120), frozen=False)
    return sketch


def warm_up() -> Sketch:
    """Traced in step 1, run in all later steps."""
    sketch = Sketch(800, 190)
    code = sketch.box(120, 50, "step(w)", "plain", width=170, height=60, under="rate = 0.0")
    graph = sketch.box(400, 50, "a graph", "now", width=190, height=60, under="what is in it?")
    sketch.arrow(code, graph, "trace", colour="there")
    sketch.label(120, 100, "step 1", size=SMALL, fill="quiet")
    later = sketch.box(120, 148, "rate = 0.5", "leaf", width=170)
    runs = sketch.box(680, 100, "59 runs", "value", width=150, height=60, under="step 2 to 60")
    sketch.arrow(graph, runs)
    sketch.arrow(later, (400, 84), dashes="6 5", colour="quiet")
    sketch.label(310, 140, "?", size=LARGE, bold=True, fill="back")
    return sketch


def learns_nothing() -> Sketch:
    """The graph with its number, and both losses."""
    sketch = Sketch(800, 230)
    for x, name, look in ((60, "w", "leaf"), (210, "0.0 · w", "wrong")):
        sketch.box(x, 50, name, look, width=60 if name == "w" else 120)
    minus = sketch.box(150, 150, "w − 0.0 · w", "value", width=170)
    sketch.arrow((91, 50), (148, 50))
    sketch.arrow((60, 73), (minus.x - 40, minus.y - 24))
    sketch.arrow((210, 73), (minus.x + 36, minus.y - 24))
    _losses(sketch, (360, 24), (320, 180), frozen=True)
    return sketch


# ---- two phases ------------------------------------------------------------------------------------------------------

LINES = (("x · 2", "[2, 4]"), ("+ 1", "[3, 5]"), ("sum", "8"))


def two_modes() -> list[Sketch]:
    """Three lines in both modes, line by line, then a read."""
    return [_modes(done, read) for done, read in ((1, False), (2, False), (3, False), (3, True))]


def _modes(done: int, read: bool) -> Sketch:
    sketch = Sketch(800, 270)
    for y, name in ((64, "eager"), (204, "graph")):
        sketch.label(70, y, name, bold=True, size=LARGE)
        before: Box | None = None
        for i, (text, value) in enumerate(LINES):
            if i >= done:
                continue
            empty = name == "graph" and not read
            box = sketch.box(220 + 190 * i, y, text, "empty" if empty else "value", width=130, height=64,
                             under="no value" if empty else value)
            if before is not None:
                sketch.arrow(before, box)
            before = box
    said = "a read computes all" if read else ("manifest and compute", "manifest only")[1]
    sketch.label(400, 134, "manifest and compute", size=SMALL, fill="quiet")
    sketch.label(400, 256, said, size=SMALL, fill="good" if read else "quiet", bold=read)
    if read:
        sketch.number(716, 204, "8", "good", LARGE)
    return sketch


def _prints(answer: bool) -> Sketch:
    sketch = Sketch(800, 230)
    lines = ("y = x * 2", 'mg.print("computed")', 'print("recorded")', "y.sum().item()")
    for i, line in enumerate(lines):
        sketch.label(30, 34 + 54 * i, line, anchor="start", code=True, bold=True)
    if not answer:
        for y, text in ((88, "computed"), (142, "recorded")):
            sketch.box(560, y, text, "empty", width=170)
        sketch.label(700, 115, "?", size=LARGE, bold=True, fill="back")
        return sketch
    sketch.box(640, 142, "1  recorded", "value", width=190)
    sketch.box(640, 196, "2  computed", "leaf", width=190)
    sketch.arrow((340, 142), (540, 142))
    sketch.arrow((340, 88), (540, 190), dashes="6 5", colour="good")
    sketch.label(452, 112, "waits", fill="good", bold=True)
    return sketch


def prints() -> Sketch:
    """Four lines in graph mode."""
    return _prints(False)


def prints_answer() -> Sketch:
    """Python's print is first, the recorded print waits."""
    return _prints(True)


# ---- the second call -------------------------------------------------------------------------------------------------


def _calls(answer: bool) -> Sketch:
    sketch = Sketch(800, 200)
    for i, (argument, traces) in enumerate((("ones(3)", True), ("zeros(3)", False), ("ones(4)", True),
                                            ("ones(3)", False))):
        x = 110 + 193 * i
        call = sketch.box(x, 28, f"f({argument})", "plain", width=172)
        if not answer:
            sketch.arrow(call, (x, 110))
            sketch.label(x, 140, "?", size=LARGE, bold=True, fill="back")
            continue
        program = sketch.box(x, 172, "program", "leaf", width=150)
        if traces:
            python = sketch.box(x, 100, "Python", "now", width=150)
            sketch.arrow(call, python)
            sketch.arrow(python, program)
        else:
            sketch.arrow(call, program)
    return sketch


def calls() -> Sketch:
    """Which calls run Python?"""
    return _calls(False)


def calls_answer() -> Sketch:
    """The first call, and the call with a different shape."""
    return _calls(True)


# ---- baked in --------------------------------------------------------------------------------------------------------


def _arrow_of(sketch: Sketch, at: Point, length: float, colour: str, text: str) -> None:
    """A gradient as an arrow of its length, in the direction (4, 3)."""
    end = at[0] + 0.8 * length, at[1] - 0.6 * length
    sketch.arrow(at, end, colour=colour, thick=4)
    sketch.label(end[0] + 12, end[1] + 8, text, anchor="start", bold=True, fill=colour)


def clip() -> Sketch:
    """The example, the small gradient, and the question."""
    sketch = Sketch(800, 200)
    example = sketch.box(110, 50, "[3, 4]", "leaf", width=150, height=60, under="length 5")
    branch = sketch.box(350, 50, "length > 1", "plain", width=170)
    longer = sketch.box(620, 50, "g · 1 / length", "value", width=200)
    sketch.arrow(example, branch)
    sketch.arrow(branch, longer, "yes")
    sketch.label(620, 96, "the trace", size=SMALL, fill="quiet")
    small = sketch.box(110, 150, "[0.4, 0.3]", "leaf", width=150, height=60, under="length 0.5")
    sketch.arrow(small, (540, 150))
    sketch.label(580, 150, "?", size=LARGE, bold=True, fill="back")
    return sketch


def clip_answer() -> Sketch:
    """No branch in the graph: the short gradient becomes longer."""
    sketch = Sketch(800, 230)
    names = ("g", "g · g", "sum", "√", "1 / length", "g · 1 / length")
    boxes, x = [], 20.0
    for name in names:
        wide = 60.0 if len(name) < 4 else 36.0 + 10.5 * len(name)
        boxes.append(sketch.box(x + wide / 2, 40, name, "leaf" if name == "g" else "value", width=wide))
        x += wide + 36
    for one, two in pairwise(boxes):
        sketch.arrow(one, two)
    _arrow_of(sketch, (180, 206), 60, "good", "[0.4, 0.3]")
    _arrow_of(sketch, (460, 206), 120, "bad", "[0.8, 0.6]")
    sketch.arrow((330, 180), (430, 180), colour="line")
    return sketch


def _ways(results: Sequence[str]) -> Sketch:
    sketch = Sketch(800, 270)
    ways = (("trace", "one run", ("g · g", "√", "g · …")), ("script", "the source", ("if", "then", "else")),
            ("annotation", "each new call", ("guard", "g · g", "if ?")))
    looks = {"wrong": "bad", "right": "good", "error": "bad", "?": "back"}
    for i, ((name, reads, inside), result) in enumerate(zip(ways, results)):
        x = 134 + 266 * i
        sketch.box(x, 30, name, "now", width=180)
        sketch.label(x, 72, f"reads {reads}", size=SMALL, fill="quiet")
        for j, part in enumerate(inside):
            sketch.box(x + 80 * (j - 1), 130, part, "plain" if part in ("if", "guard") else "wrong" if "?" in part
                       else "value", width=72, size=SMALL)
        sketch.label(x, 220, result, size=LARGE, bold=True, fill=looks[result])
    return sketch


def ways() -> Sketch:
    """What each way reads."""
    return _ways("???")


def ways_answer() -> Sketch:
    """What each way makes of the short gradient."""
    return _ways(("wrong", "right", "error"))


def loop() -> Sketch:
    """The loop as it is written, and two graphs of it, to be counted."""
    sketch = Sketch(800, 290)
    x = sketch.box(80, 60, "x", "leaf", width=70)
    condition = sketch.box(290, 60, "x > 1 ?", "plain", width=140, height=60, size=LARGE)
    body = sketch.box(540, 60, "x / 2", width=130, height=60, size=LARGE)
    sketch.arrow(x, condition)
    sketch.arrow(condition, body, "yes", bend=24, colour="good")
    sketch.arrow(body, condition, bend=24, colour="now")
    sketch.arrow((290, 92), (290, 136), "no", colour="back", at=0.3)
    for y, name in ((190, "trace of 12"), (260, "script")):
        start = sketch.box(110, y, name, "now", width=170)
        sketch.arrow(start, (330, y))
        sketch.label(480, y, "how many  / 2 ?", size=LARGE, bold=True, fill="back")
    return sketch


def loop_answer() -> Sketch:
    """Four divisions, or one in a loop."""
    sketch = Sketch(800, 230)
    before = sketch.box(80, 50, "12", "leaf", width=70)
    for i, value in enumerate(("6", "3", "1.5", "0.75")):
        box = sketch.box(230 + 150 * i, 50, "/ 2", "value", width=84, height=60, under=value)
        sketch.arrow(before, box)
        before = box
    x = sketch.box(80, 172, "x", "leaf", width=70)
    sketch.rect(230, 116, 330, 104, "paper", "now", thick=2, round=8)
    condition, body = sketch.box(310, 172, "x > 1", "plain", width=110), sketch.box(470, 172, "/ 2", width=84)
    sketch.arrow(x, condition)
    sketch.arrow(condition, body, bend=16)
    sketch.arrow(body, condition, bend=16, colour="now")
    sketch.arrow((560, 172), (660, 172))
    sketch.label(395, 134, "while_loop", size=SMALL, fill="now", bold=True)
    return sketch


# ---- guards ----------------------------------------------------------------------------------------------------------


def guards() -> Sketch:
    """A call, the question of the guards, and two ways to go on."""
    sketch = Sketch(800, 250)
    call = sketch.box(80, 70, "a call", "plain", width=110)
    question = sketch.box(300, 70, "do the guards hold?", "now", width=230, height=60)
    program = sketch.box(680, 70, "program", "leaf", width=150)
    python = sketch.box(300, 200, "Python", "value", width=150)
    trace = sketch.box(530, 200, "new trace", "value", width=150)
    sketch.arrow(call, question)
    sketch.arrow(question, program, "yes", colour="good")
    sketch.arrow(question, python, "no", colour="back")
    sketch.arrow(python, trace)
    sketch.arrow(trace, program)
    sketch.label(140, 135, "rate was 0.0 and is 0.5", bold=True, fill="back")
    return sketch


# ---- tools -----------------------------------------------------------------------------------------------------------


def early_late() -> Sketch:
    """Time: first Python, then values."""
    sketch = Sketch(800, 240)
    phases = ((200, "Python runs", "plain", "print(h)", "no value yet"),
              (590, "the program runs", "leaf", "0.27", "no Python"))
    for x, name, look, shown, lacks in phases:
        sketch.bar(x - 180, 50, 360, look, height=70)
        sketch.label(x, 50, name, bold=True)
        sketch.box(x, 140, shown, "empty" if look == "plain" else "value", width=150)
        sketch.label(x, 184, lacks, fill="bad", bold=True)
    sketch.arrow((20, 220), (780, 220), colour="quiet")
    return sketch


def tools() -> Sketch:
    """Five tools in a row: where a node was made, its value, a print, the first nan, two modes side by side."""
    sketch = Sketch(800, 240)
    for i, name in enumerate(("line", "value", "print", "hunt", "check")):
        x = 80 + 160 * i
        sketch.label(x, 222, name, bold=True)
        if name == "check":
            for side, value in ((-42, "5"), (42, "1")):
                top = sketch.box(x + side, 40, "x", "leaf", width=54)
                sketch.arrow(top, sketch.box(x + side, 136, value, "wrong" if value == "1" else "value", width=54))
            sketch.label(x, 136, "≠", bold=True, fill="bad")
            continue
        top = sketch.box(x, 40, "x", "leaf", width=64)
        node = sketch.box(x, 136, {"hunt": "nan"}.get(name, "node"), "wrong" if name == "hunt" else "value", width=84)
        sketch.arrow(top, node)
        if name == "line":
            sketch.label(x, 180, "line 7", code=True, fill="there", size=SMALL)
        if name == "value":
            sketch.arrow((x, 162), (x, 176), colour="good")
            sketch.label(x, 190, "0.27", bold=True, fill="good")
        if name == "print":
            sketch.label(x, 180, "x is 3.", code=True, fill="there", size=SMALL)
        if name == "hunt":
            sketch.label(x, 180, "first", fill="bad", size=SMALL)
    return sketch


def _hunt(values: Sequence[str], guilty: int = -1) -> Sketch:
    sketch = Sketch(800, 190)
    before = sketch.box(80, 80, "x", "leaf", width=110, height=64, under="0.5   0")
    names = ("log", "x · log x", "sum")
    start = before
    for i, (name, value) in enumerate(zip(names, values)):
        look = "wrong" if i == guilty else "value"
        box = sketch.box(290 + 210 * i, 80, name, look, width=150, height=64, under=value)
        sketch.arrow(before, box)
        before = box
    sketch.arrow(start, (480, 116), bend=-46)
    return sketch


def hunt() -> Sketch:
    """Three operations, and a nan in the end."""
    return _hunt(("?", "?", "nan"))


def hunt_answer() -> Sketch:
    """The product makes the nan."""
    return _hunt(("−0.69   −∞", "−0.35   nan", "nan"), guilty=1)


# ---- frameworks ------------------------------------------------------------------------------------------------------


def history() -> Sketch:
    """Who was born with which mode, and when the other one came."""
    sketch = Sketch(800, 280)

    def x(year: float) -> float:
        return 30 + (year - 2015) * 80

    sketch.path([(x(2014.8), 236), (x(2023.8), 236)], "line", thick=2)
    for year in (2015, 2017, 2019, 2021, 2023):
        sketch.label(x(year), 260, str(year), size=SMALL, fill="quiet")
    entries = (
        (2015.8, 40, "TensorFlow 1", "graph", "now"), (2017.1, 180, "PyTorch", "eager", "value"),
        (2018.9, 110, "jax.jit", "trace", "now"), (2018.9, 180, "torch.jit", "trace, script", "now"),
        (2019.8, 40, "TensorFlow 2", "eager, tf.function", "value"),
        (2023.2, 180, "torch.compile", "annotation", "now"))
    for year, y, name, mode, look in entries:
        box = sketch.box(x(year), y, name, look, width=172 if len(name) > 9 else 124, height=58, under=mode)
        sketch.path([box.bottom, (x(year), 236)], "quiet", thick=1, dashes="3 4")
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_phases() -> Sketch:
    """First nodes, then values."""
    sketch = Sketch(240, 200)
    first = sketch.box(120, 48, "node", "empty", width=140)
    sketch.arrow(first, sketch.box(120, 150, "value", "value", width=140))
    return sketch


def small_baked() -> Sketch:
    """A name becomes a number."""
    sketch = Sketch(240, 200)
    first = sketch.box(120, 48, "rate", "leaf", width=140)
    sketch.arrow(first, sketch.box(120, 150, "0.0", "wrong", width=140))
    return sketch


def small_ways() -> Sketch:
    """A script reads, a trace runs."""
    sketch = Sketch(240, 200)
    sketch.box(120, 48, "script: if", "now", width=190)
    sketch.box(120, 150, "trace: no if", "wrong", width=190)
    return sketch


def small_guard() -> Sketch:
    """Equal: run.  Changed: trace."""
    sketch = Sketch(240, 200)
    question = sketch.box(120, 40, "changed?", "now", width=150)
    sketch.arrow(question, sketch.box(56, 156, "run", "leaf", width=96), "no", colour="good")
    sketch.arrow(question, sketch.box(184, 156, "trace", "value", width=96), "yes")
    return sketch


def digits_saved() -> Sketch:
    """The digits that two networks read, one without a guard."""
    sketch = Sketch(800, 220)
    draw_digits(sketch, 20, 40, (3, 3), side=5, apart=(50, 50))
    ways = (("no guard", "31 of 360", "bad"), ("your guard", "333 of 360", "good"))
    for i, (name, read, colour) in enumerate(ways):
        y = 66 + 96 * i
        box = sketch.box(350, y, name, "wrong" if not i else "now", width=180)
        sketch.arrow((180, 112), box)
        bar = sketch.bar(480, y, 0.62 * (31, 333)[i], "wrong" if not i else "leaf", height=40)
        sketch.label(bar.right[0] + 10, y, read, anchor="start", bold=True, fill=colour)
    return sketch
