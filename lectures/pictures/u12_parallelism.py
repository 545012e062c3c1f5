"""The pictures of unit 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from lectures.site.drawn import LARGE, SMALL, Box, Sketch
from minigrad_course.units.u12_parallelism.gantts import Jobs, Turn, length
from minigrad_course.units.u12_parallelism.jobs import GRAHAM, by_chain, taken

ORDER = "ABCDEFGHI"
DIAMOND = Jobs({"a": 2, "b": 3, "c": 5, "d": 4, "e": 2, "f": 4},
               {"a": [], "b": ["a"], "c": ["a"], "d": [], "e": ["b", "c"], "f": ["d"]})
LEVELS = Jobs({"a": 1, "b": 5, "c": 1, "d": 5}, {"a": [], "b": [], "c": ["a"], "d": ["c"]})


def _lanes(
    sketch: Sketch, jobs: Jobs, turns: Sequence[Turn], workers: int, top: float = 20.0, unit: float = 44.0,
    looks: Mapping[str, str] | None = None, left: float = 60.0, high: float = 44.0, end: str = "",
) -> None:
    """A lane for each worker, a bar for each job, and a line at the end."""
    for worker in range(workers):
        y = top + (worker + 0.5) * (high + 8)
        sketch.label(left - 14, y, str(worker + 1), anchor="end", fill="quiet")
        sketch.path([(left, y + high / 2 + 4), (780, y + high / 2 + 4)], "line", thick=1)
    for turn in turns:
        y = top + (turn.worker + 0.5) * (high + 8)
        look = (looks or {}).get(turn.job, "value")
        bar = sketch.bar(left + turn.begin * unit + 1, y, jobs.costs[turn.job] * unit - 2, look, height=high)
        sketch.label(bar.x, y, turn.job, bold=True)
    if end:
        x = left + length(jobs.costs, turns) * unit
        sketch.path([(x, top - 6), (x, top + workers * (high + 8))], "bad", thick=3)
        sketch.label(x + 8, top + 14, end, anchor="start", bold=True, fill="bad", size=LARGE)


# ---- the fourth worker -----------------------------------------------------------------------------------------------


def _workers(known: bool) -> Sketch:
    """Three workers need 12 minutes; four need a question mark."""
    sketch = Sketch(800, 250)
    for y, workers, words in ((60, 3, "12 minutes"), (180, 4, "15 minutes" if known else "?")):
        for i in range(workers):
            sketch.box(70 + 84 * i, y, str(i + 1), "gradient" if i == 3 else "value", width=66, height=60, size=LARGE)
        sketch.arrow((430, y), (500, y), colour="quiet")
        ink = "bad" if known and workers == 4 else "ink"
        sketch.label(530, y, words, anchor="start", size=LARGE, bold=True, fill=ink)
    return sketch


def cover() -> Sketch:
    """A fourth worker comes."""
    return _workers(False)


def three_workers() -> Sketch:
    """Who does what when."""
    sketch = Sketch(800, 190)
    _lanes(sketch, GRAHAM, taken(*GRAHAM, 3, ORDER), 3, looks={"I": "gradient"}, end="12")
    return sketch


def four_workers() -> Sketch:
    """I begins later."""
    sketch = Sketch(800, 240)
    _lanes(sketch, GRAHAM, taken(*GRAHAM, 4, ORDER), 4, looks={"I": "gradient", "H": "wrong"}, end="15")
    return sketch


def four_by_chain() -> Sketch:
    """In a better order."""
    sketch = Sketch(800, 240)
    _lanes(sketch, GRAHAM, taken(*GRAHAM, 4, by_chain(*GRAHAM)), 4, looks={"A": "leaf", "I": "leaf"}, end="12")
    return sketch


def nine_jobs() -> Sketch:
    """The jobs, and what they wait for."""
    sketch = Sketch(800, 250)
    boxes = {}
    for name, x, y in (("A", 90, 70), ("B", 240, 35), ("C", 370, 35), ("D", 90, 180), ("I", 620, 70),
                       ("E", 340, 180), ("F", 450, 180), ("G", 560, 180), ("H", 670, 180)):
        wide = 34.0 * GRAHAM.costs[name] if name == "I" else 90.0
        look = "gradient" if name == "I" else "value"
        boxes[name] = sketch.box(x, y, name, look, width=wide, under=f"{GRAHAM.costs[name]:g} min", height=62)
    sketch.arrow(boxes["A"], boxes["I"], bend=-14)
    sketch.arrow(boxes["D"], boxes["E"])
    for name in "FGH":
        sketch.arrow((136, 152), boxes[name].top, bend=14)
    return sketch


# ---- launching -------------------------------------------------------------------------------------------------------


def _launches(kernels: int, asks: bool, answer: str = "") -> Sketch:
    sketch = Sketch(800, 220)
    for y, name in ((56, "Python"), (150, "kernels")):
        sketch.label(106, y, name, anchor="end", bold=True)
    x = 130.0
    for _ in range(kernels if asks else 1):
        python = sketch.bar(x, 56, 70 if asks else 90, "plain", height=44)
        sketch.label(python.x, 56, "find" if asks else "start", size=SMALL)
        for j in range(1 if asks else kernels):
            bar = sketch.bar(python.right[0] + 36 * j, 150, 34, "value", height=44)
            if not j:
                sketch.arrow(python.right, bar.top, colour="quiet", thick=1.6)
        x += 108 if asks else 0
    if answer:
        sketch.label(770, 205, answer, anchor="end", bold=True, fill="back")
    return sketch


def one_by_one() -> Sketch:
    """Python finds and starts each kernel."""
    return _launches(6, True)


def as_one() -> Sketch:
    """Python starts the program once."""
    return _launches(6, False)


def _bars(rows: Sequence[tuple[str, float, str]], scale: float, known: int) -> Sketch:
    sketch = Sketch(800, 200)
    for i, (name, count, look) in enumerate(rows):
        y = 36 + 64 * i
        sketch.label(300, y, name, anchor="end", bold=True)
        if i >= known:
            sketch.label(326, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
            continue
        bar = sketch.bar(320, y, scale * count, look, height=40)
        sketch.label(bar.right[0] + 12, y, f"{count:g}", anchor="start", bold=True)
    return sketch


def _counts(known: int) -> Sketch:
    return _bars((("starts in eager mode", 159, "wrong"), ("kernels of the program", 21, "value"),
                  ("starts by Python", 3, "leaf")), 2.5, known)


def yours() -> Sketch:
    """How many times as fast two workers are as one, in a training step."""
    rows = ("one worker", 1, "value"), ("two, by levels", 1.27, "value"), ("two, by your list", 1.44, "leaf")
    return _bars(rows, 250, 3)


def counts() -> Sketch:
    """How often does Python start something?"""
    return _counts(1)


def counts_known() -> Sketch:
    """Once."""
    return _counts(3)


# ---- the critical path -----------------------------------------------------------------------------------------------

SPOTS = {"a": (110, 70), "b": (320, 35), "c": (320, 115), "e": (560, 70), "d": (110, 205), "f": (320, 205)}


def _diamond(critical: Sequence[str] = (), text: str = "?") -> Sketch:
    sketch = Sketch(800, 250)
    boxes: dict[str, Box] = {}
    for name, (x, y) in SPOTS.items():
        look = "gradient" if name in critical else "value"
        boxes[name] = sketch.box(x, y, f"{name} · {DIAMOND.costs[name]:g}", look, width=26.0 * DIAMOND.costs[name] + 50)
    for name, before in DIAMOND.after.items():
        for each in before:
            on = name in critical and each in critical
            sketch.arrow(boxes[each], boxes[name], colour="back" if on else "there", thick=5 if on else 2.4)
    sketch.number(720, 140, text, "back", LARGE)
    return sketch


def diamond() -> Sketch:
    """Six jobs, a thousand workers."""
    return _diamond()


def diamond_known() -> Sketch:
    """The longest chain."""
    return _diamond("ace", "9")


def bounds() -> Sketch:
    """Between the critical path, and the path and a share of the work."""
    sketch = Sketch(800, 220)
    for y, name, parts in (
        (40, "at least", (("critical path", 270, "gradient"),)), (105, "and", (("work / workers", 310, "value"),)),
        (170, "at most", (("work / workers", 310, "value"), ("critical path", 270, "gradient"))),
    ):
        sketch.label(150, y, name, anchor="end", bold=True)
        x = 170.0
        for words, wide, look in parts:
            bar = sketch.bar(x, y, wide, look, height=46)
            sketch.label(bar.x, y, words, bold=True)
            x += wide
    return sketch


def layers() -> Sketch:
    """Forward is a chain; backward has two products for each layer but the first, whose input has no gradient."""
    sketch = Sketch(800, 230)
    forward = [sketch.box(70 + 110 * i, 50, f"x · W{i + 1}", width=96) for i in range(3)]
    back = [sketch.box(730 - 130 * i, 120, f"∂x{3 - i}", "gradient", width=84) for i in range(2)]
    weights = [sketch.box(730 - 130 * i, 200, f"∂W{3 - i}", "gradient", width=84) for i in range(3)]
    loss = sketch.box(560, 50, "loss", "plain", width=90)
    for one, two in pairwise([*forward, loss]):
        sketch.arrow(one, two)
    sketch.arrow(loss, back[0], colour="back")
    for one, two in pairwise(back):
        sketch.arrow(one, two, colour="back")
    for i in range(1, 3):
        sketch.arrow(back[i - 1], weights[i], colour="back")
    sketch.arrow(loss, weights[0], colour="back", bend=20)
    return sketch


# ---- a scheduler -----------------------------------------------------------------------------------------------------


def walk() -> list[Sketch]:
    """The scheduler, moment by moment, on two workers."""
    turns = taken(*DIAMOND, 2, by_chain(*DIAMOND))
    stages = []
    for now in sorted({turn.begin for turn in turns}):
        sketch = Sketch(800, 180)
        shown = [turn for turn in turns if turn.begin <= now]
        new = {turn.job: "gradient" for turn in shown if turn.begin == now}
        _lanes(sketch, DIAMOND, shown, 2, looks=new, unit=56)
        x = 60 + now * 56
        sketch.path([(x, 8), (x, 130)], "now", thick=3, dashes="6 4")
        sketch.label(x, 154, f"now = {now:g}", anchor="start", bold=True, fill="now")
        stages.append(sketch)
    return stages


def by_levels() -> Sketch:
    """c waits for b, although it does not need it."""
    sketch = Sketch(800, 200)
    turns = [Turn("a", 0, 0), Turn("b", 1, 0), Turn("c", 0, 5), Turn("d", 0, 6)]
    _lanes(sketch, LEVELS, turns, 2, looks={"c": "wrong"}, unit=52, end="11")
    for x in (5, 6):
        sketch.path([(60 + 52 * x, 10), (60 + 52 * x, 130)], "quiet", thick=2, dashes="5 4")
    sketch.label(320, 166, "c waits for the level, not for b", bold=True, fill="bad")
    return sketch


def by_list() -> Sketch:
    """c begins as soon as a is done."""
    sketch = Sketch(800, 200)
    _lanes(sketch, LEVELS, taken(*LEVELS, 2, by_chain(*LEVELS)), 2, looks={"c": "leaf"}, unit=52, end="7")
    sketch.label(240, 166, "c waits for a alone", bold=True, fill="good")
    return sketch


# ---- another processor -----------------------------------------------------------------------------------------------


def _border(there: Sequence[int], words: str, good: bool = False) -> Sketch:
    """Three operations, some on the chip, and what crosses the link."""
    sketch = Sketch(800, 250)
    sketch.rect(20, 10, 760, 92, "tint", "line", round=10)
    sketch.rect(20, 148, 760, 92, "paper", "now", thick=2.4, round=10)
    sketch.label(44, 30, "here", anchor="start", size=SMALL, fill="quiet")
    sketch.label(44, 168, "the chip", anchor="start", size=SMALL, fill="now")
    boxes = [sketch.box(70, 66, "u, v", "leaf", width=80)]
    for i, name in enumerate(("u @ v", "tanh", "sum")):
        boxes.append(sketch.box(240 + 170 * i, 194 if i in there else 66, name, "value", width=110))
    boxes.append(sketch.box(730, 66, "y", "leaf", width=60))
    for i, (one, two) in enumerate(pairwise(boxes)):
        large, crosses = 0 < i < 3, one.y != two.y
        colour = "bad" if large and crosses else "back" if crosses else "there"
        sketch.arrow(one, two, "4 MB" if large else "small" if crosses else "", colour=colour, size=SMALL,
                     thick=5 if large else 2.4)
    if words:
        sketch.label(770, 125, words, anchor="end", bold=True, fill="good" if good else "bad")
    return sketch


def alone() -> list[Sketch]:
    """Each operation alone on the chip."""
    return [_border([i], "slower") for i in range(3)]


def all_three() -> Sketch:
    """All three: a question."""
    return _border([0, 1, 2], "?")


def all_three_known() -> Sketch:
    """What is large stays on the chip."""
    return _border([0, 1, 2], "faster", True)


def _moves(pairs: bool) -> Sketch:
    sketch = Sketch(800, 220)
    names = ["u @ v", "tanh", "sum"]
    for i, name in enumerate(names):
        x = 150 + 250 * i
        sketch.box(x, 170, name, "now", width=120)
        sketch.path([(20, 110), (780, 110)], "line", thick=2)
        first, last = i == 0, i == 2
        for dx, up, shown in ((-40, False, not pairs or first), (-16, False, first), (36, True, not pairs or last)):
            if shown:
                ends = ((x + dx, 60), (x + dx, 146))
                sketch.arrow(*(ends[::-1] if up else ends), colour="good" if pairs else "bad", thick=3)
        if not last and pairs:
            sketch.arrow((x + 62, 170), (x + 188, 170), colour="there")
    sketch.label(30, 30, "here", anchor="start", size=SMALL, fill="quiet")
    sketch.number(720, 32, "3" if pairs else "7", "good" if pairs else "bad", LARGE)
    return sketch


def moves() -> Sketch:
    """Each operation moves its inputs and its result."""
    return _moves(False)


def moves_fewer() -> Sketch:
    """The compiler removes what goes back and comes again."""
    return _moves(True)


def valley() -> Sketch:
    """A search that goes downhill stops in the first valley."""
    sketch = Sketch(800, 240)
    points = [(40, 40), (130, 130), (220, 175), (300, 160), (380, 110), (450, 120), (540, 200), (620, 222), (760, 60)]
    curve = []
    for (x0, y0), (x1, y1) in pairwise(points):
        shares = [t / 12 for t in range(12)]
        curve += [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * (3 * t**2 - 2 * t**3)) for t in shares]
    sketch.path([*curve, points[-1]], "there", thick=3)
    sketch.dot(226, 163, "bad", radius=11)
    sketch.dot(618, 209, "good", radius=11)
    sketch.label(226, 210, "the search", bold=True, fill="bad")
    sketch.label(690, 222, "you", bold=True, fill="good")
    sketch.label(380, 84, "two moves at once", size=SMALL)
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_launch() -> Sketch:
    """One start for many kernels."""
    sketch = Sketch(240, 200)
    start = sketch.box(120, 45, "1 start", "leaf", width=120)
    for i in range(4):
        bar = sketch.bar(26 + 48 * i, 140, 44, "value", height=44)
        sketch.arrow(start, bar.top, colour="quiet", thick=1.6)
    return sketch


def small_path() -> Sketch:
    """The longest chain."""
    sketch = Sketch(240, 200)
    boxes = [sketch.box(50 + 70 * i, 60, name, "gradient", width=52) for i, name in enumerate("ace")]
    for one, two in pairwise(boxes):
        sketch.arrow(one, two, colour="back", thick=4)
    sketch.arrow(sketch.box(50, 150, "d", width=52), sketch.box(120, 150, "f", width=52))
    return sketch


def small_order() -> Sketch:
    """A good order."""
    sketch = Sketch(240, 200)
    for y, parts in ((60, ((0, 60, "leaf"), (60, 130, "leaf"))), (130, ((0, 80, "value"), (80, 80, "value")))):
        for x, wide, look in parts:
            sketch.bar(24 + x, y, wide, look, height=44)
    return sketch


def small_border() -> Sketch:
    """Small tables cross the border."""
    sketch = Sketch(240, 200)
    sketch.rect(20, 90, 200, 96, "paper", "now", thick=2.4, round=10)
    one, two = sketch.box(74, 140, "@", "value", width=60), sketch.box(168, 140, "sum", "value", width=70)
    sketch.arrow(one, two, thick=5)
    sketch.arrow((74, 30), one, colour="good")
    sketch.arrow(two, (168, 30), colour="good")
    return sketch
