"""What the kernels of a function read and write, counted while it runs in eager mode, and measured on this machine.

Bytes are counted, so they are the same everywhere; times are on a page of their own, which is not part of the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from minigrad.compile.look.record import seconds_of
from minigrad.compile.look.roofline import Machine, machine
from minigrad.compile.look.watching import watching
from minigrad.core.programs import eager_programs
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import ones
from minigrad.support.table import bytes_text, counted, time_text
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Block, Flipbook, Page

WIDE, ROW, LEFT = 660.0, 26.0, 84.0
SIZES = [10**power for power in range(8)]


class Pass(NamedTuple):
    """A kernel that ran: the bytes that it read and wrote, and its time in seconds."""

    name: str
    read: int
    written: int
    seconds: float

    @property
    def bytes(self) -> int:
        """The memory traffic."""
        return self.read + self.written


def passes(function: Callable[..., Any], *args: Any) -> list[Pass]:
    """The kernels that a function runs.  An array that is given twice is read once; numbers and views cost nothing.

    >>> [(each.name, each.read, each.written) for each in passes(lambda x: mg.tanh(x) * x, mg.ones(1000))]
    [('tanh', 4000, 4000), ('multiply', 8000, 4000)]
    """
    with watching(frames=False) as calls:
        function(*args)
    counted = [(each, each.count) for each in calls if each.moves]
    return [Pass(each.op.name, c.bytes_read, c.bytes_written, each.end - each.begin) for each, c in counted]


def quickest(function: Callable[..., Any], *args: Any, runs: int = 5) -> list[Pass]:
    """The same, each kernel with its shortest time of several runs."""
    several = [passes(function, *args) for _ in range(runs)]
    return [same[0]._replace(seconds=min(each.seconds for each in same)) for same in zip(*several)]


# ---- counted and measured --------------------------------------------------------------------------------------------


def costs(function: Callable[..., Any], *args: Any, runs: int = 7) -> Flipbook:
    """What each kernel of a function reads and writes, and how long it takes beside the best that this machine can do.

    >>> book = costs(lambda x: mg.tanh(x) * x, mg.ones(1000))
    >>> print(book)
    <2 kernels: 12 kB read, 8 kB written>
    >>> print(book.text())
    tanh: reads 4 kB, writes 4 kB
    multiply: reads 8 kB, writes 4 kB
    """
    found = quickest(function, *args, runs=runs)
    with eager_programs(False):
        whole = min([seconds_of(function, *args) for _ in range(runs)])
    read, written = sum(each.read for each in found), sum(each.written for each in found)
    title = f"{counted(len(found), 'kernel')}: {_bytes(read)} read, {_bytes(written)} written"
    says = f"{counted(len(found), 'kernel')}: {_bytes(read + written)} through memory."
    pages = [Page(_bytes_drawn(found), says, (), "bytes"), _time_page(found, whole, machine())]
    words = "\n".join(f"{each.name}: reads {_bytes(each.read)}, writes {_bytes(each.written)}" for each in found)
    return Flipbook(title, [pages], cover=0, unit="page", words=words)


def _bytes(size: float) -> str:
    return bytes_text(size) if size < 1e7 else f"{size / 1e6:.1f}".removesuffix(".0") + " MB"


def _bytes_drawn(found: Sequence[Pass]) -> Drawing:
    drawing = Drawing(WIDE, 52 + ROW * len(found))
    most = max([each.bytes for each in found], default=1) or 1
    scale = (WIDE - LEFT - 150) / most
    drawing.heading(LEFT, 12, "read")
    drawing.text(LEFT + 50, 12, "and written, to scale", fill="back", bold=True)
    for i, each in enumerate(found):
        y = 26 + ROW * i
        drawing.text(LEFT - 10, y + 15, each.name, anchor="end", bold=True, size=13)
        drawing.rect(LEFT, y, each.read * scale, ROW - 7, "there", "there", round=2, about=f"reads {each.read:,} bytes")
        drawing.rect(LEFT + each.read * scale, y, each.written * scale, ROW - 7, "back", "back", round=2,
                     about=f"writes {each.written:,} bytes")
        drawing.text(LEFT + each.bytes * scale + 10, y + 15, f"{_bytes(each.read)} + {_bytes(each.written)}", size=13)
    total = sum(each.bytes for each in found)
    drawing.text(LEFT, 44 + ROW * len(found), f"together {_bytes(total)}", bold=True, size=15)
    return drawing


def _time_page(found: Sequence[Pass], whole: float, limits: Machine) -> Page:
    drawing = Drawing(WIDE, 52 + ROW * len(found))
    best = [max(each.bytes / limits.bandwidth, limits.launch) for each in found]
    most = max([*[each.seconds for each in found], *best], default=1e-9)
    scale = (WIDE - LEFT - 150) / most
    drawing.heading(LEFT, 12, "measured")
    drawing.text(LEFT + 84, 12, "and below, thin: at best, by this machine's memory", fill="quiet", bold=True)
    for i, (each, least) in enumerate(zip(found, best)):
        y = 26 + ROW * i
        drawing.text(LEFT - 10, y + 15, each.name, anchor="end", bold=True, size=13)
        drawing.rect(LEFT, y, each.seconds * scale, 13, "now", "now", round=2)
        drawing.rect(LEFT, y + 14, least * scale, 5, "quiet", "quiet", round=1)
        speed = f"{time_text(each.seconds)}, {each.bytes / max(each.seconds, 1e-9) / 1e9:.1f} GB/s"
        drawing.text(LEFT + max(each.seconds, least) * scale + 10, y + 13, speed, size=13)
    kernels = sum(each.seconds for each in found)
    rows = [
        ["in all", time_text(whole)], ["in kernels", time_text(min(kernels, whole))],
        ["memory", f"{limits.bandwidth / 1e9:.3g} GB/s"],
        ["arithmetic", f"{limits.flops / 1e9:.3g} GFLOP/s"],
        ["operations per byte", f"{limits.flops / limits.bandwidth:.2g}"],
    ]
    block: Block = ("table", {"head": ["", "this machine"], "rows": rows})
    drawing.text(LEFT, 44 + ROW * len(found), f"together {time_text(whole)}", bold=True, size=15)
    return Page(drawing, f"On this machine: {time_text(whole)} in all.", (("", block),), "time")


# ---- sizes -----------------------------------------------------------------------------------------------------------


def sizes(function: Callable[[Tensor], Any], runs: int = 5) -> Flipbook:
    """One operation on arrays of 1 to 10 million numbers: the bytes that it moves, and the time that it takes here.

    >>> sizes(lambda x: x + 1, runs=1)
    <one operation on 1 to 10,000,000 numbers>
    """
    points = []
    for size in SIZES:
        x = ones(size)
        (one,) = quickest(function, x, runs=1)
        points.append((size, one.bytes, _repeated(function, x, runs)))
    limits = machine()
    moved = [(size, float(moved)) for size, moved, _ in points]
    times = [(size, seconds) for size, _, seconds in points]
    bound = [(size, moved / limits.bandwidth) for size, moved, _ in points]
    floor = [(size, min(seconds for _, seconds in times)) for size in SIZES]
    rows = [[f"{size:,}", _bytes(moved), time_text(seconds)] for size, moved, seconds in points]
    block: Block = ("table", {"head": ["numbers", "bytes", "time"], "rows": rows})
    thousand = times[3][1] / times[1][1]
    says = f"On this machine, 1,000 numbers take {thousand:.2g} times as long as 10 numbers."
    pages = [
        Page(_chart("bytes", {"moved": ("there", "", moved)}, bytes_text),
             "Ten times as many numbers, ten times as many bytes.", (), "bytes"),
        Page(_chart("time", {"measured": ("now", "", times), "dispatch": ("quiet", "5 4", floor),
                             "memory, at best": ("there", "5 4", bound)}, time_text), says, (("", block),), "time"),
    ]
    words = "\n".join(f"{size:,}: {_bytes(moved)} moved" for size, moved, _ in points)
    return Flipbook("one operation on 1 to 10,000,000 numbers", [pages], cover=0, unit="page", words=words)


def _repeated(function: Callable[[Tensor], Any], x: Tensor, runs: int) -> float:
    count = max(1, 20_000 // x.size)

    def several() -> None:
        for _ in range(count):
            function(x)

    several()
    with eager_programs(False):
        return min([seconds_of(several) / count for _ in range(runs)])


def _chart(title: str, curves: dict[str, Any], text: Callable[[float], str]) -> Drawing:
    drawing = Drawing(WIDE, 310)
    drawing.heading(70, 12, f"{title}, by the size of the array (both in steps of ten)")
    first = next(iter(curves.values()))[2]
    low = math.floor(math.log10(min(value for _, value in first)) - 0.5)
    high = math.ceil(math.log10(max(value for _, value in first)))
    left, top, wide, tall = 70.0, 24.0, WIDE - 200, 256.0
    drawing.rect(left, top, wide, tall, "tint", "line", round=0)

    def at(size: float, value: float) -> tuple[float, float]:
        up = (math.log10(value) - low) / (high - low)
        return left + wide * (0.04 + 0.92 * math.log10(size) / 7), top + tall * (1 - up) if up >= 0 else math.nan

    for size in SIZES:
        drawing.text(at(size, 10.0**low)[0], 296, f"{size:,}", anchor="middle", fill="quiet")
    for power in range(low, high + 1):
        y = at(1, 10.0**power)[1]
        drawing.path([(left, y), (left + wide, y)], "line", thick=0.6)
        drawing.text(left - 8, y + 4, text(10.0**power), anchor="end", fill="quiet")
    for i, (name, (colour, dashes, points)) in enumerate(curves.items()):
        places = [at(*point) for point in points]
        drawing.path(places, colour, thick=2.6, dashes=dashes)
        for place in places if not dashes else ():
            drawing.dot(*place, colour, 4.5)
        drawing.text(left + wide + 14, 44 + 20 * i, name, fill=colour, bold=True, size=13)
    return drawing


# ---- two programs ----------------------------------------------------------------------------------------------------


def changed(before: Sequence[Pass], after: Sequence[Pass]) -> tuple[list[bool], list[bool]]:
    """For each kernel of both, whether the other one does not have it."""
    one, two = ([f"{each.name} {each.bytes}" for each in kernels] for kernels in (before, after))
    flags = [True] * len(before), [True] * len(after)
    for i, j, size in SequenceMatcher(None, one, two, autojunk=False).get_matching_blocks():
        flags[0][i : i + size] = flags[1][j : j + size] = [False] * size
    return flags


def lanes(drawing: Drawing, y: float, ways: Sequence[tuple[str, Sequence[Pass]]], wide: float) -> None:
    """Two programs, one below the other: each kernel as wide as its bytes, coloured if the other has none like it."""
    scale = wide / max(sum(each.bytes for each in kernels) for _, kernels in ways)
    for (title, kernels), new in zip(ways, changed(*[kernels for _, kernels in ways])):
        drawing.heading(0, y + 12, title)
        x = 0.0
        for each, other in zip(kernels, new):
            colours = ("back", "back") if other else ("tint", "line")
            drawing.rect(x, y + 20, max(each.bytes * scale, 0.4), 34, *colours, thick=0.5, round=1,
                         about=f"{each.name}: {each.bytes:,} bytes")
            x += each.bytes * scale
        y += 74


def pairs(drawing: Drawing, y: float, wide: float, measures: Sequence[tuple[str, float, float, str]],
          words: tuple[str, str] = ("before", "after")) -> None:
    """Two bars for each measure: its name, before, after, and the unit."""
    for name, before, after, unit in measures:
        drawing.heading(0, y + 12, name)
        for i, (word, value) in enumerate(zip(words, (before, after))):
            length = (wide - 200) * value / max(before, after)
            drawing.text(60, y + 31 + 18 * i, word, anchor="end", fill="quiet")
            drawing.rect(70, y + 20 + 18 * i, length, 14, "now" if i else "back", "line", round=2)
            drawing.text(78 + length, y + 31 + 18 * i, f"{value:.3g}{unit}", bold=True)
        y += 60
