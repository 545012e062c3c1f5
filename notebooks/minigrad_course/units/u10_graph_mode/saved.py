"""Unit 10: one training three times: in eager mode, with a guard that never looks, and with the student's guard."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minigrad import nn
from minigrad.compile.jitted import Jitted, RetraceWarning
from minigrad.data import digits
from minigrad.ops.creation import asarray
from minigrad.support.table import counted
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Chart
from minigrad.viz.flipbook import Flipbook, Page
from minigrad.viz.images import pictures_of

from ...digits import read_by, tanh_network
from ...session import SESSION
from ...swapping import Swapped
from ...views.readings import BETWEEN, COLUMNS, half_by_half
from .student_guards import guard

STEPS, BATCH = 60, 256
WARM_UP, RATE, LATER, LATE = 1, 0.5, 0.1, 45  # steps of rate 0; the rate then; the rate from step `LATE` on
TILE, SHOWN, CHART, FEW = 13.0, 7, 190.0, 6  # of walls, wrong readings, curves; the most traces that are named


def rate_of(step: int) -> float:
    """The learning rate of a step, counted from 1: a warm-up of one step, then 0.5, in the end 0.1."""
    return 0.0 if step <= WARM_UP else RATE if step < LATE else LATER


class Run:
    """A training: the loss of each step, the steps that were traced and why, and what was read in the end."""

    def __init__(self, losses: list[float], traced: list[tuple[int, str]], read: Any) -> None:
        self.losses, self.traced, self.read = losses, traced, read

    @property
    def right(self) -> int:
        """How many digits of the test set are read correctly."""
        return int((self.read == digits()[1].arrays[1]).sum())


def run(step: Callable[..., Any], model: nn.Module, set_rate: Callable[[float], Any]) -> Run:
    """Train: call `step(images, labels)` for each batch, after `set_rate(rate)`."""
    images, labels = digits()[0].arrays
    model.load_state_dict(tanh_network().state_dict())
    losses: list[float] = []
    traced: list[tuple[int, str]] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)  # a guard that is never true: the picture shows it
        for number in range(1, STEPS + 1):
            set_rate(rate_of(number))
            start = (number - 1) * BATCH % (len(images) - BATCH)
            part = slice(start, start + BATCH)  # of the arrays: a slice of a tensor would be a view, another kind each
            loss = step(asarray(images[part].reshape(BATCH, 64)), asarray(labels[part]))
            losses.append(float(loss.item()))
            why = list(getattr(step, "traces", ()))[len(traced) :]
            traced += [(number, reason) for reason in why]
        return Run(losses, traced, read_by(model))


def train(
    guard_of: Callable[..., Any], step: Callable[..., Any], model: nn.Module, set_rate: Callable[[float], Any]
) -> Saved:
    """Train three times: `step` as it is, jitted with a guard that is always true, and with a student's guard."""
    eager = run(step, model, set_rate)
    with guard(lambda values: lambda: True):
        blind = run(Jitted(step), model, set_rate)
    with guard(guard_of) as mine:
        guarded = run(Jitted(step), model, set_rate)
    return Saved(SESSION.author, mine, eager, blind, guarded)


@dataclass(frozen=True, repr=False)
class Saved:
    """The three trainings."""

    author: str
    swapped: Swapped
    eager: Run
    blind: Run
    guarded: Run

    def __repr__(self) -> str:
        return (
            f"{self.author}: {self.guarded.right} of {len(self.eager.read)} digits read with {self.swapped.name} and "
            f"{counted(len(self.guarded.traced), 'trace')}, {self.blind.right} without a guard, "
            f"{self.eager.right} in eager mode"
        )

    @cached_property
    def picture(self) -> Flipbook:
        """The losses, the rate and the traces; below, the digits that each network reads wrongly."""
        same = np.allclose(self.guarded.losses, self.eager.losses, rtol=1e-3, atol=1e-4)
        says = "The same losses as in eager mode." if same else "The losses differ from those of eager mode."
        words = "\n".join([f"step {number}: {why}" for number, why in self.guarded.traced[:9]])
        marks = {
            str(i): (f"trace {i + 1}", [("step", str(number)), ("reason", why)])
            for i, (number, why) in enumerate(self.guarded.traced)
        }
        return Flipbook(repr(self), [[Page(_drawn(self), says)]], cover=0, marks=marks, words=words)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture._repr_mimebundle_(), "text/plain": repr(self)}


def _drawn(saved: Saved) -> Chart:
    drawing = Chart(2 * COLUMNS * TILE + BETWEEN, 0)
    wide = drawing.width - 120  # the names of the curves are on the right
    steps = range(1, STEPS + 1)
    losses = {name: [(float(i), value) for i, value in zip(steps, each.losses)] for name, each in (
        ("eager", saved.eager), ("no guard", saved.blind), ("your guard", saved.guarded))}
    chart = curves(drawing, (0, 0, wide, CHART), losses, "loss of each step")
    rates = {"rate": [(float(i), rate_of(i)) for i in steps]}
    curves(drawing, (0, CHART + 10, wide, 84), rates, "learning rate")
    few = len(saved.guarded.traced) < FEW
    for i, (number, why) in enumerate(saved.guarded.traced):
        x, y = chart.at(number, saved.eager.losses[-1])[0], CHART - 60 - (18 * i if few else 0)
        drawing.path([(x, 20), (x, CHART + 74)], "now", dashes="3 3", thick=1.2)
        drawing.bar(x - 5.5, y - 5.5, 11, 11, "update", str(i), about=f"trace in step {number}: {why}")
        if few:
            place, anchor = (x + 9, "start") if x < wide / 2 else (x - 9, "end")
            drawing.text(place, y + 3.5, f"trace {i + 1}: {why}", anchor=anchor)
    images, labels = digits()[1].arrays
    halves = [("Without a guard", labels, saved.blind.read), ("With your guard", labels, saved.guarded.read)]
    half_by_half(drawing, CHART + 130, pictures_of(images.reshape(-1, 8, 8), len(labels)), halves, TILE, SHOWN, SHOWN)
    return drawing
