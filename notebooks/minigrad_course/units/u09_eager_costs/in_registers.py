"""gelu as five operations: which values between them go to memory?"""

from __future__ import annotations

from collections.abc import Sequence

from minigrad.support.table import counted
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page, settings_of

WIDE = 490.0
OPERATIONS, VALUES = ("× 0.707", "erf", "× 0.5", "+ 0.5", "× x"), ("a", "b", "c", "d")
SETTINGS = ("in memory", "in a register")
MEGABYTES = 4  # of one array of a million float32 numbers


def registers() -> Flipbook:
    """gelu as five operations: choose for each value between them whether it goes to memory.

    >>> registers()
    <gelu: four values, in memory or in registers>
    """
    knobs = tuple([Knob(name, SETTINGS) for name in VALUES])
    pages = [[_registers(setting)] for setting in settings_of(knobs)]
    return Flipbook("gelu: four values, in memory or in registers", pages, knobs)


def traffic(in_register: Sequence[int]) -> list[int]:
    """The megabytes that each kernel moves: a value that goes to memory ends a kernel.

    >>> traffic((0, 0, 0, 0)), traffic((1, 1, 1, 1)), traffic((1, 0, 0, 0))
    ([8, 8, 8, 8, 12], [8], [8, 8, 8, 12])
    """
    last = len(OPERATIONS) - 1
    starts = [0, *[i + 1 for i, stays in enumerate(in_register) if not stays]]
    ends = [*[start - 1 for start in starts[1:]], last]
    # x is read by the first operation and by the last one; a kernel that has both reads it once.
    return [MEGABYTES * (2 + (start > 0 and end == last)) for start, end in zip(starts, ends)]


def _registers(setting: Sequence[int]) -> Page:
    moved = traffic(setting)
    drawing = Drawing(WIDE, 282)
    drawing.heading(0, 12, "memory")
    drawing.heading(0, 246, "read and written; a frame is a kernel")
    at = [74.0 + 86 * i for i in range(len(OPERATIONS))]
    starts = [0, *[i + 1 for i, stays in enumerate(setting) if not stays]]
    for start, end in zip(starts, [*[start - 1 for start in starts[1:]], len(at) - 1]):
        wide, high = at[end] - at[start] + 80, 92 if end > start else 52
        drawing.rect(at[start] - 40, 138, wide, high, "none", "good", thick=2, round=8)
        if start and end == len(at) - 1:
            _value(drawing, at[-1], "x", "input-fill")
            drawing.path([(at[-1], 52), (at[-1], 144)], "there", thick=3, arrow=True)
    for x, name in zip(at, OPERATIONS):
        drawing.rect(x - 34, 146, 68, 34, "paper", "there", thick=1.6, round=6)
        drawing.text(x, 168, name, anchor="middle", bold=True, size=12)
    _value(drawing, at[0] - 46, "x", "input-fill")
    drawing.path([(at[0] - 38, 52), (at[0] - 14, 144)], "there", thick=3, arrow=True)
    _value(drawing, at[-1] + 46, "y", "leaf-fill")
    drawing.path([(at[-1] + 18, 144), (at[-1] + 38, 54)], "back", thick=3, arrow=True)
    for i, (name, stays) in enumerate(zip(VALUES, setting)):
        middle = (at[i] + at[i + 1]) / 2
        if stays:
            drawing.path([(at[i] + 34, 163), (at[i + 1] - 36, 163)], "good", thick=3, arrow=True)
            _value(drawing, middle, name, "paper", 194, go=f"{i}:0", about=f"put {name} into memory")
        else:
            _value(drawing, middle, name, "there-fill", go=f"{i}:1", about=f"keep {name} in a register")
            drawing.path([(at[i] + 12, 144), (middle - 9, 54)], "back", thick=3, arrow=True)
            drawing.path([(middle + 9, 52), (at[i + 1] - 12, 144)], "there", thick=3, arrow=True)
    x, unit = 0.0, (WIDE - 172) / 44
    for part in moved:
        drawing.rect(x, 256, part * unit - 2, 24, "good", "good", round=2, about=f"{part} MB")
        drawing.text(x + part * unit / 2 - 1, 273, str(part), anchor="middle", fill="paper", bold=True, size=13)
        x += part * unit
    drawing.text(x + 8, 273, f"{sum(moved)} MB in {counted(len(moved), 'kernel')}", bold=True, size=15)
    listed = " + ".join(map(str, moved))
    total = f" = {sum(moved)}" if len(moved) > 1 else ""
    return Page(drawing, f"A million numbers: {listed}{total} MB are read and written.")


def _value(
    drawing: Drawing, x: float, name: str, fill: str, y: float = 22.0, go: str = "", about: str = ""
) -> None:
    drawing.rect(x - 18, y, 36, 28, fill, "ink", round=4, thick=1.2, go=go, about=about)
    drawing.text(x, y + 19, name, anchor="middle", bold=True, size=15)
