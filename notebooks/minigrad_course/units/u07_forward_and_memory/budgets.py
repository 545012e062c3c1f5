"""A training step before and after a change that saves memory: the bytes over time, the budget, and the losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from minigrad.support.table import bytes_text, bytes_unit
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Axes, Drawing
from minigrad.viz.flipbook import Flipbook, Page

WIDE, CHART, NAMES = 650.0, 200.0, 140.0


class Steps(NamedTuple):
    """Some training steps: the bytes that are kept over the first one, and the loss of each."""

    name: str
    kept: Sequence[int]
    losses: Sequence[float]


def within_budget(title: str, before: Steps, after: Steps, budget: int, gradients: str, differ: bool) -> Flipbook:
    """The bytes over the first step, before and after, with the budget; below, both losses.

    `gradients` says how the gradients compare, and `differ` whether this is bad news.

    >>> before, after = Steps("before", [0, 4000, 0], [2.0, 1.0]), Steps("after", [0, 2000, 0], [2.0, 1.0])
    >>> print(within_budget("a step", before, after, 3000, "all equal", False).text())
    a step
    before: at most 4 kB, loss 2.000 → 1.000
    after: at most 2 kB, loss 2.000 → 1.000
    budget 3 kB, all equal
    """
    drawing = Drawing(WIDE, 2 * CHART + 112)
    _kept(drawing, before, after, budget)
    drawing.text(Axes.LEFT, CHART + 48, gradients, size=15, bold=True, fill="bad" if differ else "good")
    points = {each.name: [(float(i), loss) for i, loss in enumerate(each.losses, 1)] for each in (before, after)}
    curves(drawing, (0, CHART + 76, WIDE - NAMES, CHART), points, "loss of each step")
    said = [f"{each.name}: at most {bytes_text(max(each.kept))}, loss {each.losses[0]:.3f} → {each.losses[-1]:.3f}"
            for each in (before, after)]
    words = "\n".join([title, *said, f"budget {bytes_text(budget)}, {gradients}"])
    return Flipbook(title, [[Page(drawing, f"{title}.")]], cover=0, words=words, unit="picture")


def _kept(drawing: Drawing, before: Steps, after: Steps, budget: int) -> None:
    """The bytes over time, and a line at the budget."""
    unit, name = bytes_unit(max(before.kept))
    drawing.heading(Axes.LEFT, 12, f"kept over one step, as the engine did it ({name})")
    most = max(*before.kept, *after.kept, budget) / unit
    axes = Axes(drawing, (0, 22, WIDE - NAMES, CHART), (0.0, 1.0), (0.0, 1.08 * most), named=False)
    for each, colour in ((before, "quiet"), (after, "there")):
        points = [(i / (len(each.kept) - 1), kept / unit) for i, kept in enumerate(each.kept)]
        axes.band([(x, 0.0, y) for x, y in points], colour, 0.16)
        axes.curve(points, colour)
        level = axes.at(0, max(each.kept) / unit)[1] + 4
        drawing.text(WIDE - NAMES + 8, level, f"{each.name}: {bytes_text(max(each.kept))}", fill=colour, bold=True)
    colour = "good" if max(after.kept) <= budget else "bad"
    drawing.path([axes.at(0, budget / unit), axes.at(1, budget / unit)], colour, thick=2, dashes="7 4")
    x, y = axes.at(0, budget / unit)
    drawing.text(x + 6, y - 6, f"budget: {bytes_text(budget)}", fill=colour, bold=True)
