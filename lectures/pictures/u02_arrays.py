"""The pictures of unit 02: windows of one buffer, calls, names and buffers, strides, versions, a convolution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lectures.site.drawn import LARGE, SMALL, Box, Sketch
from minigrad.data import digits

FRAMED = ((1, 2, "back"), (2, 3, "there"), (4, 1, "good"))  # windows of the first digit, and their colours
EDGES = np.array([[1, 0, -1]] * 3)


def _digit(number: int = 0) -> np.ndarray:
    image = digits()[1].arrays[0][number].reshape(8, 8)
    return np.asarray(image / image.max())


def _all_windows(sketch: Sketch, x: float, y: float, side: float, gap: float) -> None:
    """The 36 windows of the first digit, each a small picture."""
    pixels = _digit()
    for i in range(6):
        for j in range(6):
            part = pixels[i : i + 3, j : j + 3]
            sketch.image(x + j * (3 * side + gap), y + i * (3 * side + gap), part.tolist(), side)


# ---- the picture -----------------------------------------------------------------------------------------------------


def cover() -> Sketch:
    """A digit, all its windows, and the question."""
    sketch = Sketch(800, 240)
    sketch.image(60, 30, _digit().tolist(), 21)
    sketch.label(144, 222, "64 numbers", bold=True)
    _all_windows(sketch, 356, 6, 9, 6)
    sketch.label(452, 222, "324 numbers", bold=True)
    sketch.arrow((240, 110), (340, 110))
    sketch.label(690, 84, "copied:", bold=True)
    sketch.number(690, 134, "?", "back", LARGE)
    return sketch


def none_copied() -> Sketch:
    """Three windows as frames on the same 64 numbers."""
    sketch = Sketch(800, 240)
    side = 26
    sketch.image(60, 14, _digit().tolist(), side)
    for row, column, colour in FRAMED:
        sketch.rect(60 + column * side, 14 + row * side, 3 * side, 3 * side, "none", colour, thick=5)
    for place, (row, column, colour) in enumerate(FRAMED):
        y = 40 + 78 * place
        sketch.image(420, y - 30, _digit()[row : row + 3, column : column + 3].tolist(), 20)
        sketch.rect(420, y - 30, 60, 60, "none", colour, thick=4)
        sketch.arrow((60 + (column + 3) * side, 14 + (row + 1.5) * side), (410, y), colour=colour)
    sketch.number(640, 118, "0 copied", "good", LARGE)
    return sketch


# ---- the library -----------------------------------------------------------------------------------------------------

WAYS = (("Python loops", "0 calls", 3.3), ("row @ column", "4,096 calls", 4.1), ("row @ b", "64 calls", 2.0),
        ("a @ b", "1 call", 0.25))


def _ways(known: bool) -> Sketch:
    sketch = Sketch(800, 250)
    for i, (name, calls, decades) in enumerate(WAYS):
        y = 34 + 60 * i
        sketch.label(180, y, name, anchor="end", bold=True)
        if known:
            bar = sketch.bar(200, y, 96 * decades, "value" if i else "gradient", height=40)
            times = ("thousands of times", "tens of thousands", "a hundred times", "1")[i]
            sketch.label(bar.right[0] + 12, y, times, anchor="start", bold=True)
        else:
            sketch.label(200, y, calls, anchor="start", fill="quiet")
            sketch.label(420, y, "?", size=LARGE, bold=True, fill="back")
    return sketch


def four_ways() -> Sketch:
    """The same product, with fewer and fewer calls."""
    return _ways(False)


def four_ways_timed() -> Sketch:
    """The time of each way, on a logarithmic scale."""
    return _ways(True)


def blas() -> Sketch:
    """Blocks of two matrices, and eight products with one instruction."""
    sketch = Sketch(800, 250)
    for x in (40, 230):
        sketch.cells(x, 40, [[""] * 6] * 6, "leaf", size=26, lit=[(0, 0), (0, 1), (1, 0), (1, 1)])
    sketch.label(208, 118, "@", bold=True)
    sketch.label(212, 226, "blocks stay near the processor", size=SMALL, fill="quiet")
    for i, name in enumerate(("x", "y", "x · y")):
        look = "value" if i < 2 else "gradient"
        sketch.cells(470, 30 + 66 * i, [[""] * 8], look, size=34)
        sketch.label(456, 47 + 66 * i, name, anchor="end", bold=True)
    sketch.label(606, 226, "8 products, one instruction", size=SMALL, fill="quiet")
    return sketch


def _trip(stage: int) -> Sketch:
    """A call: down, work, and back; only the first parts are drawn."""
    sketch = Sketch(800, 210)
    for y, name in ((50, "Python"), (150, "library")):
        sketch.label(100, y, name, anchor="end", bold=True)
        sketch.path([(116, y + 26), (790, y + 26)], "line", thick=1.4)
    sketch.bar(120, 50, 90, "plain", height=48)
    sketch.label(165, 50, "a @ b", size=SMALL, bold=True)
    if stage > 0:
        sketch.arrow((214, 60), (240, 122), new=True)
        sketch.bar(240, 150, 330, "value", height=48)
        sketch.label(405, 150, "matmul", bold=True)
    if stage > 1:
        sketch.path([(216, 50), (596, 50)], "quiet", dashes="5 5", thick=2)
        sketch.label(405, 32, "waits", size=SMALL, fill="quiet")
    if stage > 2:
        sketch.arrow((574, 124), (600, 74), new=True)
        sketch.bar(600, 50, 150, "plain", height=48)
        sketch.label(675, 50, "next line", size=SMALL, bold=True)
    return sketch


def trip() -> list[Sketch]:
    """A call leaves the interpreter, the library computes, control returns."""
    return [_trip(stage) for stage in range(4)]


def _clock(answer: str) -> Sketch:
    sketch = Sketch(800, 190)
    for i in range(10):
        x = 40 + 62 * i
        sketch.bar(x, 50, 8, "gradient", height=44)
        sketch.bar(x + 9, 110, 52, "value", height=44)
    sketch.label(40, 14, "5 µs", size=SMALL, bold=True, fill="back", anchor="start")
    sketch.label(76, 152, "100 µs", size=SMALL, bold=True, fill="there")
    sketch.number(724, 80, answer, "back", LARGE)
    return sketch


def ten_calls() -> Sketch:
    """Ten calls; when is the last one done?"""
    return _clock("?")


def ten_calls_done() -> Sketch:
    """Ten times 5 and 100 µs."""
    return _clock("1050")


def _race(known: bool) -> Sketch:
    sketch = Sketch(800, 210)
    sketch.path([(430, 6), (430, 206)], "ink", thick=2)
    rows = (("1 number", -110, "3 times"), ("100 numbers", 60, "4 times"), ("10,000 numbers", 230, "100 times"))
    for i, (name, wide, text) in enumerate(rows):
        y = 56 + 56 * i
        sketch.label(190, y, name, anchor="end", bold=True)
        if not known:
            sketch.label(470, y, "?", size=LARGE, bold=True, fill="back")
            continue
        sketch.bar(min(430, 430 + wide), y, abs(wide), "gradient" if wide < 0 else "value", height=36)
        sketch.label(430 + wide + (12 if wide > 0 else -12), y, text, anchor="start" if wide > 0 else "end", bold=True)
    sketch.label(416, 14, "Python quicker", size=SMALL, anchor="end", fill="back", bold=True)
    sketch.label(444, 14, "library quicker", size=SMALL, anchor="start", fill="there", bold=True)
    return sketch


def race() -> Sketch:
    """Adding one, a hundred, ten thousand numbers: who is quicker?"""
    return _race(False)


def race_run() -> Sketch:
    """For one number Python is quicker, for many the library is."""
    return _race(True)


# ---- names -----------------------------------------------------------------------------------------------------------


def _buffer(
    sketch: Sketch, x: float, y: float, numbers: Sequence[str], version: int, changed: Sequence[int] = (),
) -> Box:
    """A row of numbers with its version; those that have changed are marked."""
    box = sketch.cells(x, y, [numbers], "plain", size=54, high=44)
    for i in changed:
        sketch.cells(x + 54 * i, y, [[numbers[i]]], "gradient", size=54, high=44)
    sketch.label(x + box.width + 12, y + 22, f"version {version}", size=SMALL, anchor="start", fill="quiet")
    return box


def _four(known: bool) -> Sketch:
    sketch = Sketch(800, 230)
    names = [sketch.box(100, 28 + 58 * i, name, "leaf", width=60) for i, name in enumerate("abcd")]
    if not known:
        for name in names:
            sketch.arrow(name, (320, name.y), dashes="6 5", colour="line")
            sketch.label(350, name.y, "?", size=LARGE, bold=True, fill="back")
        return sketch
    _buffer(sketch, 330, 60, ["1", "12", "13"], 1, (1, 2))
    _buffer(sketch, 330, 164, ["1", "2", "3"], 0)
    for name, end in zip(names, ((326, 72), (326, 82), (390, 108), (326, 186))):
        sketch.arrow(name, end)
    return sketch


def four_names() -> Sketch:
    """Four names: to which buffers do they refer?"""
    return _four(False)


def four_names_after() -> Sketch:
    """The second and third number of the shared buffer have changed."""
    return _four(True)


def _two_programs(known: bool) -> Sketch:
    sketch = Sketch(800, 200)
    for x, code in ((30, "b = b * 2"), (430, "b *= 2")):
        sketch.label(x + 150, 20, code, bold=True, code=True)
        a, b = (sketch.box(x + 40, y, name, "leaf", width=60) for y, name in ((76, "a"), (156, "b")))
        if not known:
            sketch.label(x + 200, 116, "?", size=LARGE, bold=True, fill="back")
            continue
        same = code == "b *= 2"
        first = _buffer(sketch, x + 130, 54, ["2", "4"] if same else ["1", "2"], int(same), (0, 1) if same else ())
        second = first if same else _buffer(sketch, x + 130, 134, ["2", "4"], 0)
        sketch.arrow(a, first)
        sketch.arrow(b, second)
    return sketch


def two_programs() -> Sketch:
    """Two lines that look alike."""
    return _two_programs(False)


def two_programs_after() -> Sketch:
    """One makes a new array, the other writes into the old one."""
    return _two_programs(True)


# ---- strides ---------------------------------------------------------------------------------------------------------


def _row(sketch: Sketch, y: float, lit: Sequence[int], count: int = 12, look: str = "value") -> None:
    texts = [[str(i) for i in range(count)]]
    sketch.cells(88, y, texts, look, size=52, high=42, lit=[(0, i) for i in lit])


def _table(sketch: Sketch, x: float, y: float, rows: Sequence[Sequence[int]], look: str = "value") -> Box:
    return sketch.cells(x, y, [[str(each) for each in row] for row in rows], look, size=46, high=38)


def address() -> Sketch:
    """A row of numbers in memory, read as a table of three rows."""
    sketch = Sketch(800, 270)
    _row(sketch, 10, [0, 4, 8])
    table = [[4 * i + j for j in range(4)] for i in range(3)]
    _table(sketch, 88, 112, table)
    sketch.arrow((114, 56), (318, 56), "4", bend=-26, colour="back")
    sketch.arrow((292, 118), (292, 164), colour="back")
    sketch.label(302, 140, "one row down: 4", anchor="start", size=SMALL, bold=True, fill="back")
    sketch.arrow((112, 244), (158, 244), colour="there")
    sketch.label(172, 246, "one column on: 1", anchor="start", size=SMALL, bold=True, fill="there")
    sketch.label(640, 160, "shape (3, 4)", bold=True)
    sketch.label(640, 194, "strides (4, 1)", bold=True)
    sketch.label(640, 228, "offset 0", bold=True)
    return sketch


def _turned(answer: str) -> Sketch:
    sketch = Sketch(800, 270)
    _row(sketch, 10, [0, 4, 8])
    _table(sketch, 120, 76, [[4 * j + i for j in range(3)] for i in range(4)], "leaf")
    sketch.label(190, 252, "a.T", bold=True, code=True)
    sketch.label(520, 120, "shape (4, 3)", bold=True)
    sketch.label(440, 170, "strides", bold=True)
    sketch.number(560, 170, answer, "back", LARGE)
    return sketch


def turned() -> Sketch:
    """The transposed table reads the same row of numbers. With which strides?"""
    return _turned("?")


def turned_answer() -> Sketch:
    """The strides have changed places."""
    return _turned("(1, 4)")


def _zero(answer: str) -> Sketch:
    sketch = Sketch(800, 220)
    one = sketch.cells(80, 80, [["1.0"]], "leaf", size=70, high=56)
    sketch.cells(300, 24, [["1.0"] * 5] * 4, "empty", size=56, high=42)
    for i in range(4):
        sketch.arrow((294, 45 + 42 * i), one, colour="line", tip=False)
    sketch.label(115, 164, "4 bytes", size=SMALL, fill="quiet")
    sketch.label(440, 206, "1000 × 1000 places", size=SMALL, fill="quiet")
    sketch.number(690, 106, answer, "back", LARGE)
    return sketch


def stride_zero() -> Sketch:
    """One number as a table of a million places: how many bytes?"""
    return _zero("? bytes")


def stride_zero_answer() -> Sketch:
    """Both strides are 0, and there is one number."""
    return _zero("4 bytes")


EXPRESSIONS = (("a.T", True), ("a.reshape(-1)", True), ("a.T.reshape(-1)", False), ("a[::2]", True),
               ("a[[0, 2, 1]]", False))
HOW = ("(1, 4)", "(1,)", "steps 4, 4, −7, 4 …", "(8, 1)", "rows 0, 2, 1")


def _copies(known: bool) -> Sketch:
    sketch = Sketch(800, 260)
    for i, ((code, view), how) in enumerate(zip(EXPRESSIONS, HOW)):
        y = 28 + 51 * i
        sketch.label(60, y, "ABCDE"[i], bold=True)
        sketch.label(110, y, code, anchor="start", code=True)
        if not known:
            sketch.label(560, y, "?", size=LARGE, bold=True, fill="back")
            continue
        sketch.box(470, y, "view" if view else "copy", "value" if view else "wrong", width=100, height=38)
        sketch.label(550, y, f"strides {how}" if view else how, anchor="start", size=SMALL, fill="quiet")
    return sketch


def copies() -> Sketch:
    """Five expressions: which of them must copy?"""
    return _copies(False)


def copies_answer() -> Sketch:
    """Two of them have no constant step."""
    return _copies(True)


# ---- versions --------------------------------------------------------------------------------------------------------


def _damage(stage: int) -> Sketch:
    """The product keeps the buffer; a write follows; the backward pass compares."""
    sketch = Sketch(800, 240)
    x = sketch.box(70, 50, "x", "leaf", width=64)
    late = stage > 0
    buffer = _buffer(sketch, 190, 28, ["3", "4"] if late else ["2", "3"], int(late), (0, 1) if late else ())
    sketch.arrow(x, buffer)
    product = sketch.box(245, 180, "w · x", "value", width=170, under="kept: version 0", height=66)
    sketch.arrow(product, buffer, dashes="6 5", colour="line")
    if stage == 1:
        sketch.label(560, 50, "x += 1", code=True, bold=True)
    if stage > 1:
        sketch.arrow((690, 180), product, "g", colour="back", new=True)
        sketch.label(470, 118, "0 is not 1", bold=True, fill="bad")
        sketch.cross(400, 180, 16)
    return sketch


def damage() -> list[Sketch]:
    """What the product kept is written over."""
    return [_damage(0), _damage(1)]


def damage_found() -> Sketch:
    """The backward pass finds another version, and stops."""
    return _damage(2)


TICKS = ((1, "x = …", "leaf", "line 1"), (2, "w · x", "value", "line 2"), (3, "x += 1", "gradient", "line 3"))


def _ticks(now: int) -> Sketch:
    """What has happened by a time; at last backward compares two times."""
    sketch = Sketch(800, 250)
    sketch.arrow((40, 130), (770, 130), colour="line")
    for time in range(1, 5):
        sketch.number(180 * time - 60, 130, str(time), "there" if time <= now else "line")
    for time, name, look, line in TICKS[:now]:
        sketch.box(180 * time - 60, 60, name, look, width=120, height=64, under=line)
    if now > 3:
        sketch.box(660, 60, "backward", "plain", width=130, height=64, under="3 is later than 2")
        sketch.arrow((480, 152), (300, 152), "written after it was kept", bend=-40, colour="bad", new=True)
    return sketch


def clock() -> list[Sketch]:
    """One clock for all buffers."""
    return [_ticks(now) for now in range(1, 5)]


def _loop(copied: bool) -> Sketch:
    sketch = Sketch(800, 240)
    buffer = sketch.cells(60, 98, [["5", "−6"]], "plain", size=54, high=44)
    for i, numbers in enumerate((["3", "4"], ["5", "−6"])):
        y = 50 + 130 * i
        product = sketch.box(480, y, f"loss {i + 1}", "value", width=120)
        if copied:
            own = sketch.cells(590, y - 22, [numbers], "leaf", size=54, high=44)
            sketch.arrow(product, own, dashes="6 5", colour="line")
        else:
            sketch.arrow(product, buffer, dashes="6 5", colour="bad" if i == 0 else "line")
    sketch.label(114, 168, "the buffer, version 2", size=SMALL, fill="quiet")
    return sketch


def one_buffer() -> Sketch:
    """Two losses keep the same buffer, which now holds the second batch."""
    return _loop(False)


def own_copies() -> Sketch:
    """Each loss keeps a copy of its own."""
    return _loop(True)


# ---- a convolution ---------------------------------------------------------------------------------------------------


def product() -> Sketch:
    """All windows as rows, times all filters as columns."""
    sketch = Sketch(800, 250)
    _all_windows(sketch, 20, 30, 8, 4)
    sketch.arrow((210, 110), (262, 110))
    sketch.cells(276, 20, [[""] * 9] * 9, "value", size=20)
    sketch.label(366, 222, "36 windows × 9", size=SMALL, bold=True)
    sketch.label(484, 110, "@", bold=True)
    sketch.cells(512, 20, [[""] * 4] * 9, "leaf", size=20)
    sketch.label(552, 222, "9 × 4 filters", size=SMALL, bold=True)
    sketch.label(622, 110, "=", bold=True)
    sketch.cells(654, 20, [[""] * 4] * 9, "gradient", size=20)
    sketch.label(700, 222, "36 × 4", size=SMALL, bold=True)
    return sketch


def found() -> Sketch:
    """Four digits, and where one filter finds a right edge."""
    sketch = Sketch(800, 250)
    sketch.label(60, 60, "digits", bold=True)
    sketch.label(60, 180, "right edges", size=SMALL, bold=True)
    for number in range(4):
        pixels, x = _digit(number), 150 + 165 * number
        parts = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3))
        maps = np.maximum((parts * EDGES).sum((2, 3)), 0)
        sketch.image(x, 8, pixels.tolist(), 13)
        sketch.image(x, 130, (maps / maps.max()).tolist(), 18)
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_call() -> Sketch:
    """There and back."""
    sketch = Sketch(240, 200)
    sketch.box(120, 40, "Python", "plain", width=130)
    sketch.box(120, 160, "library", width=130)
    sketch.arrow((90, 64), (90, 136))
    sketch.arrow((150, 136), (150, 64))
    return sketch


def small_names() -> Sketch:
    """Two names, one buffer."""
    sketch = Sketch(240, 200)
    buffer = sketch.cells(54, 130, [["1", "2", "3"]], "plain", size=44)
    for x, name in ((60, "a"), (180, "b")):
        sketch.arrow(sketch.box(x, 40, name, "leaf", width=60), buffer)
    return sketch


def small_strides() -> Sketch:
    """One row of numbers, read as a table."""
    sketch = Sketch(240, 200)
    sketch.cells(15, 16, [["0", "1", "2", "3", "4", "5"]], size=35)
    sketch.cells(80, 76, [["0", "3"], ["1", "4"], ["2", "5"]], "leaf", size=38)
    return sketch


def small_version() -> Sketch:
    """Kept at version 0, now at version 1."""
    sketch = Sketch(240, 200)
    sketch.box(120, 50, "kept: 0", "value", width=150)
    sketch.box(120, 146, "now: 1", "wrong", width=150)
    sketch.label(120, 98, "≠", size=LARGE, bold=True, fill="bad")
    return sketch


def yours() -> Sketch:
    """The three functions of the exercise, and the library that reads through them."""
    sketch = Sketch(800, 220)
    library = sketch.box(440, 110, "library", width=150, height=70)
    for i, name in enumerate(("transposed", "broadcasted", "windowed")):
        sketch.arrow(sketch.box(130, 40 + 70 * i, name, "now", width=190), library)
    sketch.image(570, 60, _digit(3).tolist(), 12)
    sketch.arrow((518, 110), (562, 110))
    sketch.arrow((674, 110), sketch.box(744, 110, "7", width=64, size=LARGE))
    return sketch
