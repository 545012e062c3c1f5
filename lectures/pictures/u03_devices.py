"""The pictures of unit 03: the table, two memories, the dispatcher, rules as programs, copies, queues."""

from __future__ import annotations

from collections.abc import Sequence

from lectures.site.drawn import LARGE, SMALL, Box, Point, Sketch
from minigrad.core.primitive import P
from minigrad.devices.cuda_kernels import CudaKernels
from minigrad_course.units.u03_devices.training import NEEDED
from minigrad_course.views.queues import BATCHES, LAUNCH, PYTHON, batches, ended, scheduled

from .shared import draw_digits

OPERATIONS, RULES = len(P), sum(len(op.rules) for op in P)
OWN = sum(name in {op.name for op in P} for name in vars(CudaKernels))  # kernels that differ on CUDA
ACROSS, TILE = 12, 17.0  # operations in a row of a column of the table, and their size


# ---- the table -------------------------------------------------------------------------------------------------------


def _column(sketch: Sketch, x: float, y: float, name: str, look: str, filled: int = OPERATIONS) -> None:
    """The column of a device: a small square for each operation, of which some have a kernel."""
    fills = {"value": ("there-fill", "there"), "leaf": ("leaf-fill", "good"), "now": ("back-fill", "back")}
    sketch.label(x + ACROSS * TILE / 2, y - 18, name, bold=True)
    for i in range(OPERATIONS):
        fill, line = fills[look] if i < filled else ("paper", "line")
        place = x + i % ACROSS * TILE, y + i // ACROSS * TILE
        sketch.rect(*place, TILE - 3, TILE - 3, fill, line, thick=1.4, round=2)


def cover() -> Sketch:
    """Two columns are full, and that of the new chip is empty."""
    sketch = Sketch(800, 190)
    for x, name, filled in ((20, "CPU", OPERATIONS), (300, "GPU", OPERATIONS), (580, "new chip", 0)):
        _column(sketch, x, 50, name, "value", filled)
    sketch.number(682, 100, "?", "back", LARGE)
    return sketch


def seven() -> Sketch:
    """The seven kernels that training needs."""
    sketch = Sketch(800, 190)
    _column(sketch, 20, 50, "new chip", "leaf", len(NEEDED))
    for i, name in enumerate(NEEDED):
        sketch.box(330 + i % 4 * 122, 66 + i // 4 * 62, name, "leaf", width=114, size=20)
    sketch.label(758, 128, "7", size=LARGE, bold=True, fill="good")
    return sketch


def _bars(counts: Sequence[tuple[str, Sequence[tuple[int, str]]]]) -> Sketch:
    """Numbers of functions, to scale."""
    sketch = Sketch(800, 60 * len(counts) + 40)
    sketch.label(270, 14, "kernels", anchor="start", fill="there", bold=True)
    sketch.label(390, 14, "gradients", anchor="start", fill="back", bold=True)
    for i, (name, parts) in enumerate(counts):
        x, y = 270.0, 66 + 60 * i
        sketch.label(256, y, name, anchor="end", bold=True)
        for count, look in parts:
            sketch.bar(x, y, count * 1.12, look, height=40)
            x += count * 1.12
        sketch.label(x + 12, y, str(sum(count for count, _ in parts)), anchor="start", bold=True)
    return sketch


def copies_of_numpy() -> Sketch:
    """Three devices, with a kernel for each operation and for each gradient, one with shared rules, one inherited."""
    return _bars((
        ("all separate", ((3 * OPERATIONS, "value"), (3 * RULES, "gradient"))),
        ("rules shared", ((3 * OPERATIONS, "value"), (RULES, "gradient"))),
        ("minigrad", ((OPERATIONS + OWN + len(NEEDED), "value"), (RULES, "gradient"))),
    ))


def inherited() -> Sketch:
    """The kernels of CUDA are those of NumPy with another library, except for some."""
    sketch = Sketch(800, 190)
    _column(sketch, 40, 50, "Kernels: numpy", "value")
    _column(sketch, 420, 50, "CudaKernels: cupy", "now", OWN)
    sketch.arrow((260, 100), (408, 100), "inherits")
    sketch.label(640, 76, f"{OWN} differ", anchor="start", bold=True, fill="back")
    sketch.label(640, 106, f"{OPERATIONS - OWN} do not", anchor="start", fill="quiet")
    return sketch


# ---- places ----------------------------------------------------------------------------------------------------------


def _memories(sketch: Sketch, names: Sequence[str] = ("cpu", "cpu:1"), high: float = 170.0) -> None:
    for x, name in zip((20, 460), names):
        sketch.rect(x, 20, 320, high, "paper", "line", thick=2, round=10)
        sketch.label(x + 16, 44, name, anchor="start", bold=True, fill="quiet")


def _array(sketch: Sketch, x: float, y: float, name: str, numbers: Sequence[str], look: str = "value") -> Box:
    if name:
        sketch.label(x - 14, y + 22, name, anchor="end", bold=True)
    return sketch.cells(x, y, [numbers], look, size=52, high=44)


def two_memories() -> Sketch:
    """An array in each of two memories, and a number in neither."""
    sketch = Sketch(800, 210)
    _memories(sketch)
    _array(sketch, 110, 90, "a", ["1", "1", "1"])
    _array(sketch, 550, 90, "b", ["2", "2", "2"], "leaf")
    sketch.number(400, 105, "3")
    return sketch


def moved() -> Sketch:
    """x.to, and the question where x is then."""
    sketch = Sketch(800, 210)
    _memories(sketch)
    x = _array(sketch, 110, 90, "x", ["1", "1", "1"])
    sketch.arrow(x, (540, 112), 'x.to("cpu:1")', size=SMALL)
    sketch.label(620, 112, "x ?", size=LARGE, bold=True, fill="back")
    return sketch


def not_moved() -> list[Sketch]:
    """The copy is there, without a name; then it has one."""
    stages = []
    for name in ("", "y"):
        sketch = Sketch(800, 210)
        _memories(sketch)
        x = _array(sketch, 110, 90, "x", ["1", "1", "1"])
        copy = _array(sketch, 600, 90, name, ["1", "1", "1"], "leaf" if name else "empty")
        sketch.arrow(x, copy, "copy", new=True)
        sketch.label(678, 160, 'y = x.to("cpu:1")' if name else "no name: lost", size=SMALL,
                     fill="good" if name else "bad", bold=True)
        stages.append(sketch)
    return stages


# ---- dispatch --------------------------------------------------------------------------------------------------------


def _dispatch(second: str) -> Sketch:
    """An addition of two arrays, and the column of the table that it gets its kernel from."""
    sketch = Sketch(800, 270)
    mixed = second != "cpu:1"
    one = sketch.box(80, 60, "x", "leaf", width=130, height=60, under="cpu:1")
    two = sketch.box(80, 150, "y", "value" if mixed else "leaf", width=130, height=60, under=second)
    look = sketch.box(310, 105, "add", "now", width=150, height=66, under="all on one device?")
    for each in (one, two):
        sketch.arrow(each, look)
    for j, device in enumerate(("cpu", "cpu:1", "cuda")):
        sketch.label(560 + 100 * j, 36, device, bold=True, size=SMALL)
        for i, name in enumerate(("add", "matmul", "tanh")):
            chosen = not mixed and (name, device) == ("add", "cpu:1")
            sketch.box(560 + 100 * j, 74 + 48 * i, name, "now" if chosen else "plain", width=92, height=40, size=SMALL)
    if mixed:
        sketch.arrow(look, (310, 200), colour="bad")
        sketch.label(310, 226, "DeviceError", bold=True, fill="bad")
    else:
        sketch.arrow(look, (508, 74), colour="now")
    return sketch


def dispatcher() -> list[Sketch]:
    """Both inputs on one device; then a mix."""
    return [_dispatch("cpu:1"), _dispatch("cpu")]


def four_lines() -> Sketch:
    """Four operations on arrays of two devices."""
    sketch = Sketch(800, 210)
    _memories(sketch, high=80)
    _array(sketch, 130, 42, "a", ["", "", ""])
    _array(sketch, 580, 42, "b", ["", "", ""], "leaf")
    for i, line in enumerate(("a + 1", 'a + b.to("cpu")', "a + b.sum()", "b * b")):
        x, y = 24 + 400 * (i % 2), 138 + 46 * (i // 2)
        sketch.label(x, y, "ABCD"[i], anchor="start", bold=True, fill="back")
        sketch.label(x + 34, y, line, anchor="start", code=True)
    return sketch


def c_stops() -> Sketch:
    """One number, but on another device."""
    sketch = Sketch(800, 200)
    _memories(sketch, high=150)
    a = _array(sketch, 130, 74, "a", ["", "", ""])
    total = sketch.box(620, 96, "b.sum()", "leaf")
    sketch.arrow(total, a, colour="bad", dashes="7 6")
    sketch.cross(400, 96, 16)
    return sketch


# ---- gradients -------------------------------------------------------------------------------------------------------


def _rule(kernels: Sequence[str]) -> Sketch:
    """The rule of tanh, and the kernels that it runs."""
    sketch = Sketch(800, 220)
    sketch.label(400, 30, "∂x = g · (1 − out · out)", size=LARGE, bold=True)
    start: Box | Point = (40, 130)
    for i, name in enumerate(kernels):
        box = sketch.box(200 + 200 * i, 130, name, "gradient" if name != "?" else "empty", width=140, height=60)
        sketch.arrow(start, box, colour="back")
        start = box
    sketch.arrow(start, (760, 130), colour="back")
    sketch.label(400, 196, "kernels of the device", size=SMALL, fill="quiet")
    return sketch


def rule_asked() -> Sketch:
    """Which kernels does the rule of tanh run?"""
    return _rule("???")


def rule_runs() -> Sketch:
    """The same kernels as in a forward pass."""
    return _rule(("multiply", "subtract", "multiply"))


# ---- what it costs ---------------------------------------------------------------------------------------------------

MILLISECOND = 190.0


def _ways(known: bool) -> Sketch:
    sketch = Sketch(800, 170)
    sketch.label(150, 40, "CPU", anchor="end", bold=True)
    add = sketch.bar(166, 40, MILLISECOND, "value", height=44)
    sketch.label(add.x, 40, "add", bold=True)
    sketch.label(add.right[0] + 12, 40, "1 ms", anchor="start", bold=True)
    sketch.label(150, 120, "with the chip", anchor="end", bold=True)
    if not known:
        sketch.number(196, 120, "?", "back", LARGE)
        return sketch
    x = 166.0
    for name, length in (("copy a", MILLISECOND), ("copy b", MILLISECOND), ("", MILLISECOND / 100),
                         ("copy out", MILLISECOND)):
        bar = sketch.bar(x, 120, length, "gradient" if name else "now", height=44)
        sketch.label(bar.x, 120, name, bold=True)
        x += length
    sketch.label(166 + 2 * MILLISECOND, 82, "add: 0.01 ms", size=SMALL, fill="quiet")
    sketch.label(x + 8, 120, "3 ms", anchor="start", bold=True, fill="back")
    return sketch


def by_chip() -> Sketch:
    """An addition on the CPU, and the way by a chip a hundred times as fast."""
    return _ways(False)


def three_copies() -> Sketch:
    """Three copies, and next to nothing for the addition."""
    return _ways(True)


# ---- queues ----------------------------------------------------------------------------------------------------------

LOOKS = ("value", "gradient", "leaf")


def clock() -> Sketch:
    """A launch and a kernel to scale, ten of each, and a clock."""
    sketch = Sketch(800, 190)
    for y, name, length, look in ((50, "one launch", 5, "now"), (112, "one kernel", 100, "value")):
        sketch.label(150, y, name, anchor="end", bold=True)
        bar = sketch.bar(166, y, length * 2, look, height=40)
        sketch.label(bar.right[0] + 14, y, f"{length} µs, 10 times", anchor="start")
    sketch.label(560, 80, "the clock:", bold=True)
    sketch.number(660, 80, "?", "back", LARGE)
    return sketch


def clock_answer() -> Sketch:
    """Python is done long before the device."""
    sketch = Sketch(800, 190)
    scale = 0.62
    for y, name in ((50, "Python"), (112, "device")):
        sketch.label(110, y, name, anchor="end", bold=True)
    for i in range(10):
        sketch.bar(126 + i * 5 * scale, 50, 5 * scale - 0.8, "now", height=40)
        sketch.bar(126 + (5 + i * 100) * scale, 112, 100 * scale - 2, "value", height=40)
    end = 126 + 50 * scale
    sketch.path([(end, 20), (end, 150)], "back", thick=3, dashes="6 5")
    sketch.label(end + 10, 46, "clock: 50 µs", anchor="start", bold=True, fill="back")
    sketch.label(126 + 1005 * scale, 160, "1,005 µs", anchor="end", bold=True, fill="there")
    return sketch


def _queue(streams: int) -> Sketch:
    """Three batches in one stream or several, to scale."""
    sketch = Sketch(800, 230)
    spans = scheduled(batches(streams, 200.0), LAUNCH)
    lanes = list(dict.fromkeys([PYTHON, *[span.work.engine for span in spans]]))
    scale = 0.52
    for i, name in enumerate(lanes):
        sketch.label(140, 30 + 46 * i, name, anchor="end", bold=True, size=SMALL)
    for number, span in enumerate(spans):
        sketch.bar(156 + (span.launched - LAUNCH) * scale, 30, LAUNCH * scale - 0.8, "now", height=36)
        y = 30 + 46 * lanes.index(span.work.engine)
        bar = sketch.bar(156 + span.begin * scale, y, span.work.time * scale - 1.5, LOOKS[number // BATCHES], height=36)
        sketch.label(bar.x, y, str(number // BATCHES + 1), bold=True, size=SMALL)
    done = f"{'one stream' if streams == 1 else f'{streams} streams'}: {ended(spans):,.0f} µs"
    sketch.label(156 + ended(spans) * scale, 212, done, anchor="end", bold=True, fill="back")
    return sketch


def streams() -> list[Sketch]:
    """One stream, two, three."""
    return [_queue(1), _queue(2), _queue(3)]


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_table() -> Sketch:
    """A table of kernels."""
    sketch = Sketch(240, 200)
    for i in range(4):
        for j in range(3):
            sketch.box(50 + 70 * j, 30 + 46 * i, "", "leaf" if j == 2 else "value", width=60, height=36)
    return sketch


def small_places() -> Sketch:
    """A copy from one memory to another."""
    sketch = Sketch(240, 200)
    one, two = sketch.box(56, 100, "x", width=80, height=70), sketch.box(190, 100, "y", "leaf", width=80, height=70)
    sketch.arrow(one, two)
    return sketch


def small_mix() -> Sketch:
    """Two devices in one operation."""
    sketch = Sketch(240, 200)
    add = sketch.box(160, 100, "add", "now", width=90, height=60)
    sketch.arrow(sketch.box(46, 40, "cpu", width=76), add)
    sketch.arrow(sketch.box(46, 160, "cuda", "leaf", width=76), add, colour="bad")
    sketch.cross(224, 60, 12)
    return sketch


def small_queue() -> Sketch:
    """Python launches, the device works."""
    sketch = Sketch(240, 200)
    for i in range(4):
        sketch.bar(20 + 12 * i, 60, 10, "now", height=40)
        sketch.bar(32 + 50 * i, 130, 48, "value", height=40)
    return sketch


def your_chip() -> Sketch:
    """The chip of the exercise, between the pictures and what is read in them."""
    sketch = Sketch(800, 230)
    draw_digits(sketch, 16, 72, (2, 2), side=5, apart=(46, 46))
    sketch.rect(190, 16, 480, 196, "leaf-fill", "good", thick=2, round=10)
    sketch.label(206, 40, "your chip", anchor="start", bold=True, fill="good")
    for i in range(7):
        sketch.box(262 + i % 4 * 114, 92 + i // 4 * 64, "?", "leaf", width=106)
    sketch.arrow((112, 116), (186, 116), colour="back")
    sketch.arrow((674, 116), sketch.box(758, 116, "7", width=54, size=LARGE), colour="back")
    return sketch
