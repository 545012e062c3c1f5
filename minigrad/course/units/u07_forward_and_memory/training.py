"""Unit 07: a GPT whose blocks run by the student's function, trained with a plan and without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from .... import optim, random
from ....core.mode import no_grad, record
from ....core.node import topological_order
from ....core.tensor import Tensor
from ....data import Alphabet, names
from ....examples.names_gpt import GPT, made_up, rows_of
from ....ops.creation import asarray
from ....support.table import bytes_text, bytes_unit
from ....viz.curves import curves
from ....viz.drawing import Axes, Drawing
from ....viz.flipbook import Flipbook, Page
from ....viz.lessons.tapes import Unit, read_tape
from ...kept import kept_over_time
from ...session import SESSION
from .memory import Run, planned
from .seams import Row

WIDTH, BATCH, STEPS, RATE = 32, 64, 20, 1e-2
WIDE, CHART = 880.0, 230.0


class PlannedGPT(GPT):
    """The GPT of the examples; `run(blocks, x, plan)` runs its blocks."""

    def __init__(self, letters: int, blocks: int, run: Run, plan: Sequence[int]) -> None:
        super().__init__(letters, WIDTH, 4, blocks, 0.1)
        self.run, self.plan = run, tuple(plan)

    def forward(self, letters: Tensor) -> Tensor:
        blocks = [partial(block, causal=True) for block in self.blocks]
        return self.head(self.norm(self.run(blocks, self.places(self.letters(letters)), self.plan)))  # type: ignore[no-any-return]


@cache
def alphabet() -> Alphabet:
    """The letters of the names."""
    return Alphabet(names()[0])


def gpt(blocks: int, run: Run = planned, plan: Sequence[int] = ()) -> PlannedGPT:
    """A GPT with equal weights and random numbers each time."""
    random.seed(0)
    return PlannedGPT(len(alphabet()), blocks, run, plan)


def batch(number: int) -> Tensor:
    """The numbers of the letters of 64 names."""
    start = BATCH * number
    return asarray(rows_of(names()[0][start : start + BATCH], alphabet()))


@cache
def row_of(blocks: int) -> Row:
    """The tape of one step: what comes before the blocks, the blocks, and the rest."""
    model, rows = gpt(blocks), batch(0)
    with record():
        loss = model.loss(rows)
    tape = read_tape(topological_order([loss.node]))
    units = [Unit("before", []), *[Unit(str(i), []) for i in range(blocks)], Unit("after", [])]
    for node in tape.needs:
        inside = [int(name[7:-1]) for name in node.scope if name.startswith("blocks[")]
        at = inside[0] + 1 if inside else blocks + 1 if units[1].nodes else 0
        units[at].nodes.append(node)
    return Row(replace(tape, units=units), blocks, before=1)


@dataclass(frozen=True)
class Side:
    """A training: the bytes that the engine kept over the first step, the gradients of this step, and the losses."""

    kept: list[int]
    gradients: list[Any]
    losses: list[float]
    names: list[str]

    @property
    def most(self) -> int:
        return max(self.kept)


def trained(blocks: int, run: Run, plan: Sequence[int], steps: int = STEPS) -> Side:
    """Train a GPT whose blocks run by `run(blocks, x, plan)`."""
    with record():  # so that masks of dropout are not taken for data
        kept = kept_over_time(gpt(blocks, run, plan).loss(batch(0)))
    model = gpt(blocks, run, plan)
    optimizer = optim.AdamW(model.parameters(), lr=RATE)
    losses, first = [], []
    for number in range(steps):
        optimizer.zero_grad()
        loss = model.loss(batch(number))
        loss.backward()
        first = first or [p.grad.numpy().copy() for p in model.parameters() if p.grad is not None]
        optimizer.step()
        losses.append(float(loss.item()))
    model.eval()
    with no_grad():
        return Side(kept, first, losses, made_up(model, alphabet(), 8, jit=False))


@dataclass(frozen=True, repr=False)
class WithinBudget:
    """Two trainings of a GPT, without checkpoints and with a plan."""

    author: str
    plan: list[int]
    budget: int
    plain: Side
    planned: Side

    @property
    def differing(self) -> int:
        """How many numbers of the gradients differ."""
        return sum(int((a != b).sum()) for a, b in zip(self.plain.gradients, self.planned.gradients))

    def __repr__(self) -> str:
        total = sum(g.size for g in self.planned.gradients)
        equal = "all equal" if not self.differing else f"{self.differing:,} differ"
        sign = "within" if self.planned.most <= self.budget else "OVER"
        return (f"{self.author}: {bytes_text(self.plain.most)} → {bytes_text(self.planned.most)}, {sign} the budget of "
                f"{bytes_text(self.budget)}; of {total:,} numbers of gradients {equal}")

    def text(self) -> str:
        """The result, the losses and some names that the GPT made up."""
        ends = [f"{side.losses[0]:.3f} → {side.losses[-1]:.3f}" for side in (self.plain, self.planned)]
        made = ", ".join(filter(None, self.planned.names))
        return f"{self!r}\nloss {ends[0]} without checkpoints, {ends[1]} with your plan\nnames that it makes up: {made}"

    def picture(self) -> Flipbook:
        """The bytes over the first step, before and after, and the two curves of the loss."""
        drawing = Drawing(WIDE, 2 * CHART + 112)
        self._bytes(drawing)
        points = {name: [(float(i), loss) for i, loss in enumerate(side.losses, 1)]
                  for name, side in (("no checkpoint", self.plain), ("your plan", self.planned))}
        curves(drawing, (0, CHART + 76, WIDE - 130, CHART), points, "loss of each step: one curve lies on the other")
        return Flipbook(repr(self), [[Page(drawing, f"{self!r}.")]], cover=0, words=self.text(), unit="picture")

    def _bytes(self, drawing: Drawing) -> None:
        unit, name = bytes_unit(self.plain.most)
        drawing.heading(Axes.LEFT, 12, f"kept over one step, as the engine did it ({name})")
        most = max(self.plain.most, self.planned.most, self.budget) / unit
        axes = Axes(drawing, (0, 22, WIDE - 130, CHART), (0.0, 1.0), (0.0, 1.08 * most), ticks="up")
        fits = self.planned.most <= self.budget
        for side, colour, named in ((self.plain, "quiet", "no checkpoint"), (self.planned, "there", "your plan")):
            step = 1 / (len(side.kept) - 1)
            points = [(i * step, kept / unit) for i, kept in enumerate(side.kept)]
            axes.band([(x, 0.0, y) for x, y in points], colour, 0.16)
            axes.curve(points, colour)
            at = side.most / unit
            drawing.text(WIDE - 122, axes.at(0, at)[1] + 4, f"{named}: {bytes_text(side.most)}", fill=colour, bold=True)
        level = self.budget / unit
        drawing.path([axes.at(0, level), axes.at(1, level)], "good" if fits else "bad", thick=2, dashes="7 4")
        x, y = axes.at(0, level)
        drawing.text(x + 6, y - 6, f"budget: {bytes_text(self.budget)}", fill="good" if fits else "bad", bold=True)
        total = sum(g.size for g in self.planned.gradients)
        said = (f"gradients: {total:,} numbers, all equal to the last bit" if not self.differing
                else f"gradients: {self.differing:,} of {total:,} numbers differ")
        drawing.text(Axes.LEFT, CHART + 48, said, size=15, bold=True, fill="bad" if self.differing else "good")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture()._repr_mimebundle_(), "text/plain": self.text()}


def compare_trainings(
    blocks: int, budget: int, run: Callable[..., Any], plan: Sequence[int], steps: int = STEPS
) -> WithinBudget:
    """Train the GPT without checkpoints and with a plan, from the same weights, on the same names."""
    plain = trained(blocks, planned, (), steps)
    return WithinBudget(SESSION.author, list(plan), budget, plain, trained(blocks, run, plan, steps))
