"""Blocks in a row, with seams to cut: a click begins or ends a checkpoint, and the bytes over time follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from minigrad.core.node import Node
from minigrad.support.table import bytes_text, bytes_unit
from minigrad.viz.drawing import Axes, Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page, settings_of
from minigrad.viz.kept import Moment, Tape, peak, play

WIDTH, BARS, CHART = 650.0, 110.0, 190.0
TOP = 34.0  # of the row of blocks
CURVE = TOP + BARS + 116  # the top of the chart


@dataclass(frozen=True)
class Row:
    """A tape whose parts are `count` blocks, with `before` parts that no plan covers in front of them."""

    tape: Tape
    count: int
    before: int = 0

    def history(self, plan: Sequence[int]) -> list[Moment]:
        """The tape over time, where the first blocks are in checkpoints of these sizes."""
        ends = list(accumulate(plan, initial=self.before))
        return play(self.tape, [range(a, b) for a, b in pairwise(ends)])

    def peak(self, plan: Sequence[int]) -> int:
        """The most bytes that are kept at once."""
        return peak(self.history(plan))


def plan_of(cuts: Sequence[int]) -> list[int]:
    """The sizes of the checkpoints between cuts: a 1 for each seam that is cut.  The last stretch has no checkpoint.

    >>> plan_of([0, 1, 1, 0])
    [2, 1]
    """
    ends = [0, *[i for i, cut in enumerate(cuts, 1) if cut]]
    return [b - a for a, b in pairwise(ends)]


def seams(row: Row, budget: int, title: str, block: str = "block") -> Flipbook:
    """The blocks, a seam between each two to cut or to join, and the bytes over time beside the budget."""
    knobs = tuple(Knob(f"seam {i}", ("joined", "cut"), drawn=True) for i in range(1, row.count))
    picture = _Seams(row, budget, block)
    pages = [[picture.page(cuts)] for cuts in settings_of(knobs)]
    words = f"{title}: {bytes_text(row.peak(()))} without checkpoints, and the budget is {bytes_text(budget)}"
    return Flipbook(title, pages, knobs, cover=0, unit="plan", words=words)


class _Seams:
    def __init__(self, row: Row, budget: int, block: str) -> None:
        self.row, self.budget, self.block = row, budget, block
        self.plain = row.history(())
        self.most = max(peak(self.plain), budget)
        self.wide = WIDTH / row.count
        self.needs = [frozenset().union(*[row.tape.needs[n] for n in unit.nodes]) for unit in row.tape.units]
        self.full = [self._bytes(needs) for needs in self.needs]

    def _bytes(self, arrays: frozenset[Node]) -> int:
        return sum(self.row.tape.size[made] for made in arrays)

    def page(self, cuts: Sequence[int]) -> Page:
        plan = plan_of(cuts)
        history = self.row.history(plan)
        most, again = peak(history), sum(plan)
        good = most <= self.budget
        drawing = Drawing(WIDTH, CURVE + CHART + 8)
        drawing.heading(0, 12, "Click a seam to cut or to join it")
        self._blocks(drawing, plan, history[len(self.row.tape.units)])
        self._seams(drawing, cuts)
        self._curve(drawing, history)
        sign = "✓ within the budget" if good else "✗ over the budget"
        drawing.text(WIDTH, 12, f"{sign}: {bytes_text(most)} of {bytes_text(self.budget)}", size=14, bold=True,
                     fill="good" if good else "bad", anchor="end")
        rows = [["plan", str(plan)], ["most at once", bytes_text(most)], ["budget", bytes_text(self.budget)],
                [f"{self.block}s computed again", str(again)]]
        return Page(drawing, f"plan = {plan}: {bytes_text(most)} at most. {sign}.", (
            ("this plan", ("table", {"rows": rows})),
            ("how to read it", ("text", "filled: kept when the forward pass is done; dashed: computed again later")),
        ))

    def _blocks(self, drawing: Drawing, plan: Sequence[int], done: Moment) -> None:
        """A bar for each block: what its rules need, and of this what is kept when the forward pass is done."""
        before, highest, floor = self.row.before, max(self.full), TOP + BARS
        ends = list(accumulate(plan, initial=0))
        for i in range(self.row.count):
            x, inner, whole = i * self.wide + 7, self.wide - 14, self.full[before + i]
            high = 0.94 * BARS * whole / highest
            covered = i < ends[-1]
            about = f"{self.block} {i}: {bytes_text(whole)}"
            fill, stroke, dashes = ("paper", "quiet", "4 3") if covered else ("there-fill", "there", "")
            drawing.rect(x, floor - high, inner, high, fill, stroke, dashes=dashes, round=2, thick=1.6, about=about)
            drawing.text(x + inner / 2, floor + 17, str(i), anchor="middle", bold=True)
            size = bytes_text(whole) if whole else "only data"
            drawing.text(x + inner / 2, floor - max(high, 34) + 18, size, anchor="middle", fill="quiet", room=inner)
        for start, end in pairwise(ends):
            self._checkpoint(drawing, start, end)
        if ends[-1] < self.row.count:
            middle = (ends[-1] + self.row.count) / 2 * self.wide
            drawing.text(middle, floor + 46, "no checkpoint", anchor="middle", fill="quiet")

    def _checkpoint(self, drawing: Drawing, start: int, end: int) -> None:
        left, right, y = start * self.wide + 7, end * self.wide - 7, TOP + BARS + 26
        drawing.path([(left, y), (left, y + 7), (right, y + 7), (right, y)], "good", thick=2)
        name = "checkpoint" if right - left > 76 else "✓"
        drawing.text((left + right) / 2, y + 22, name, anchor="middle", fill="good")
        number = self.row.before + start
        sources = self.row.history([*([1] * start), end - start])  # what enters it does not depend on the others
        kept = sources[number + end - start].bytes - sources[number].bytes
        if kept:
            high = max(0.94 * BARS * kept / max(self.full), 3.0)
            about = f"kept: its input, {bytes_text(kept)}"
            drawing.rect(left, TOP + BARS - high, self.wide - 14, high, "there", "there", round=1, about=about)

    def _seams(self, drawing: Drawing, cuts: Sequence[int]) -> None:
        for i, cut in enumerate(cuts):
            x = (i + 1) * self.wide
            drawing.path([(x, TOP - 6), (x, TOP + BARS + 6)], "now" if cut else "line", thick=3 if cut else 1.4,
                         dashes="" if cut else "3 5")
            does = "cut, click to join" if cut else "joined, click to cut"
            about = f"seam between {self.block} {i} and {i + 1}: {does}"
            drawing.rect(x - 8, TOP - 10, 16, BARS + 36, "now" if cut else "paper", "none", opacity=0.01, about=about,
                         go=f"{i}:{1 - cut}")
            drawing.dot(x, TOP + BARS + 14, "now" if cut else "paper", 7, "now" if cut else "quiet")

    def _curve(self, drawing: Drawing, history: Sequence[Moment]) -> None:
        """The bytes over time, with and without checkpoints, and the budget."""
        unit, name = bytes_unit(self.most)
        drawing.heading(0, CURVE - 14, f"kept over time ({name})")
        for at, side in ((0.25, "forward pass"), (0.75, "backward pass")):
            drawing.text(Axes.LEFT + at * (WIDTH - Axes.LEFT), CURVE + CHART - 3, side, fill="quiet", anchor="middle")
        drawing.text(WIDTH, CURVE - 14, "dashed: without checkpoints", fill="quiet", anchor="end")
        axes = Axes(drawing, (0, CURVE, WIDTH, CHART), (0.0, 2.0), (0.0, 1.08 * self.most / unit), named=False)
        plain, points = ([(x, y / unit) for x, y in self._over_time(each)] for each in (self.plain, history))
        axes.band([(x, 0.0, y) for x, y in points], "there", 0.16)
        axes.curve(plain, "quiet", dashes="5 3")
        axes.curve(points, "there")
        level, colour = self.budget / unit, "good" if peak(history) <= self.budget else "bad"
        drawing.path([axes.at(0, level), axes.at(2, level)], colour, thick=2)
        x, y = axes.at(2, level)
        drawing.text(x - 4, y - 5, f"budget {bytes_text(self.budget)}", fill=colour, anchor="end", bold=True)
        drawing.dot(*axes.at(*max(points, key=lambda point: point[1])), colour, 5)

    def _over_time(self, history: Sequence[Moment]) -> list[tuple[float, int]]:
        """The bytes of each moment: the forward pass takes as much room as the backward pass."""
        done = len(self.row.tape.units)
        back = len(history) - 1 - done
        return [(i / done if i <= done else 1 + (i - done) / back, moment.bytes) for i, moment in enumerate(history)]
