"""gelu as five operations: which values between them go to memory?"""

from __future__ import annotations

from collections.abc import Sequence

from ....support.table import counted
from ....viz.drawing import Drawing
from ....viz.flipbook import Flipbook, Knob, Page, settings_of

WIDE = 880.0
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
    drawing = Drawing(WIDE, 284)
    drawing.heading(0, 12, "memory")
    drawing.heading(0, 130, "processor")
    at = [130.0 + 160 * i for i in range(len(OPERATIONS))]
    starts = [0, *[i + 1 for i, stays in enumerate(setting) if not stays]]
    for start, end in zip(starts, [*[start - 1 for start in starts[1:]], len(at) - 1]):
        wide, high = at[end] - at[start] + 116, 96 if end > start else 56
        drawing.rect(at[start] - 58, 138, wide, high, "none", "good", thick=2, round=8)
        if start and end == len(at) - 1:
            _value(drawing, at[-1] + 22, "x", "input-fill")
            drawing.path([(at[-1] + 22, 52), (at[-1] + 22, 146)], "there", thick=3, arrow=True)
    for x, name in zip(at, OPERATIONS):
        drawing.rect(x - 46, 148, 92, 36, "paper", "there", thick=1.6, round=6)
        drawing.text(x, 171, name, anchor="middle", bold=True, size=14)
    _value(drawing, at[0] - 80, "x", "input-fill")
    drawing.path([(at[0] - 66, 52), (at[0] - 20, 146)], "there", thick=3, arrow=True)
    _value(drawing, at[-1] + 80, "y", "leaf-fill")
    drawing.path([(at[-1] + 30, 146), (at[-1] + 74, 54)], "back", thick=3, arrow=True)
    for i, (name, stays) in enumerate(zip(VALUES, setting)):
        middle = (at[i] + at[i + 1]) / 2
        if stays:
            drawing.path([(at[i] + 46, 166), (at[i + 1] - 48, 166)], "good", thick=3, arrow=True)
            _value(drawing, middle, name, "paper", 196, go=f"{i}:0", about=f"put {name} into memory")
        else:
            _value(drawing, middle, name, "there-fill", go=f"{i}:1", about=f"keep {name} in a register")
            drawing.path([(at[i] + 14, 146), (middle - 12, 54)], "back", thick=3, arrow=True)
            drawing.path([(middle + 12, 52), (at[i + 1] - 14, 146)], "there", thick=3, arrow=True)
    total, unit = sum(moved), (WIDE - 200) / 44
    x = 0.0
    for part in moved:
        drawing.rect(x, 256, part * unit - 2, 24, "good", "good", round=2, about=f"{part} MB")
        drawing.text(x + part * unit / 2 - 1, 273, str(part), anchor="middle", fill="paper", bold=True, size=13)
        x += part * unit
    text = f"{total} MB in {counted(len(moved), 'kernel')}"
    drawing.text(x + 10, 273, text, bold=True, size=15)
    listed = " + ".join(map(str, moved))
    says = f"A million numbers: {listed}{f' = {total}' if len(moved) > 1 else ''} MB are read and written."
    return Page(drawing, says)


def _value(
    drawing: Drawing, x: float, name: str, fill: str, y: float = 22.0, go: str = "", about: str = ""
) -> None:
    drawing.rect(x - 26, y, 52, 28, fill, "ink", round=4, thick=1.2, go=go, about=about)
    drawing.text(x, y + 19, name, anchor="middle", bold=True, size=15)
