"""The GPT of the examples, which learns first names: a training step is counted, measured, and a training is run."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from minigrad import optim, random
from minigrad.core.mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.data import Alphabet, names
from minigrad.examples import names_gpt
from minigrad.ops.creation import asarray, zeros
from minigrad.ops.functional import gelu
from minigrad.support.table import counted, time_text
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

from ...counting import kept_bytes
from ...session import SESSION
from ...swapping import Swapped
from ...views.costs import Pass, lanes, pairs, passes
from .operators import composed_again

WIDE, HIDDEN, LAYERS, BATCH, SEED, STEPS, MEASURED = 660.0, 64, 2, 64, 0, 50, 8
NUMBERS = 4 * HIDDEN * BATCH * names_gpt.LENGTH  # that gelu gets in one layer


class Step(NamedTuple):
    """A training step: its kernels, the bytes that it keeps for backward, its seconds, and those of gelu in a layer."""

    kernels: list[Pass]
    kept: int
    seconds: float = 0.0
    of_gelu: float = 0.0

    @property
    def bytes(self) -> int:
        """The memory traffic of all kernels."""
        return sum(each.bytes for each in self.kernels)


class Run:
    """A model with an optimizer, on the first names."""

    def __init__(self) -> None:
        random.seed(SEED)
        self.names, _ = names()
        self.alphabet = Alphabet(self.names)
        self.model = names_gpt.GPT(len(self.alphabet), HIDDEN, heads=4, layers=LAYERS, dropout=0.0)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=5e-3, weight_decay=0.1)
        order = np.random.default_rng(SEED).permutation(len(self.names))
        self.inside = zeros((NUMBERS // HIDDEN, HIDDEN), requires_grad=True)
        self.rows = names_gpt.rows_of([self.names[i] for i in order], self.alphabet)

    def batch(self, number: int) -> Tensor:
        """A batch of names as rows of letters."""
        start = number * BATCH % (len(self.rows) - BATCH)
        return asarray(self.rows[start : start + BATCH])

    def step(self, number: int = 0) -> float:
        """One training step; returns its loss."""
        self.optimizer.zero_grad()
        loss = self.model.loss(self.batch(number))
        loss.backward()
        self.optimizer.step()
        return float(loss.item())

    def counted(self) -> Step:
        """A training step, counted."""
        return Step(passes(self.step), kept_bytes(self.model.loss(self.batch(0))))

    def timed(self) -> list[float]:
        """The seconds of a training step, and of gelu and its gradient in one layer."""
        times = []
        for run in (self.step, self._gelu):
            begin = perf_counter()
            run()
            times.append(perf_counter() - begin)
        return times

    def _gelu(self) -> None:
        """gelu and its gradient, on as many numbers as in one layer."""
        gelu(self.inside).backward(self.inside.detach())


class Trained:
    """A step before and after, the losses of a training, and names that the trained model made up."""

    def __init__(self, swapped: Swapped, before: Step, after: Step, losses: list[float], made_up: list[str]) -> None:
        self.swapped, self.author = swapped, SESSION.author
        self.before, self.after, self.losses, self.made_up = before, after, losses, made_up

    def __repr__(self) -> str:
        counts = " → ".join(f"{len(each.kernels)}" for each in (self.before, self.after))
        moved = " → ".join(f"{each.bytes / 1e6:.0f}" for each in (self.before, self.after))
        kept = " → ".join(f"{each.kept / 1e6:.1f}" for each in (self.before, self.after))
        return f"{self.author}: {counts} kernels, {moved} MB moved, {kept} MB kept in a training step of the GPT"

    @property
    def picture(self) -> Flipbook:
        """The step before and after, its time on this machine, and the training."""
        pages = [
            Page(_compared(self), f"{self!r}.", (), "bytes"),
            Page(_timed(self), f"The step takes {time_text(self.before.seconds)} before and "
                               f"{time_text(self.after.seconds)} after, on this machine.", (), "time"),
            Page(_learnt(self), f"Trained with {self.swapped.name}: {', '.join(self.made_up)}.", (), "training"),
        ]
        return Flipbook(repr(self), [pages], cover=0, unit="page", words=repr(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture._repr_mimebundle_(), "text/plain": repr(self)}


def train_gpt(swapped: Swapped, steps: int = STEPS) -> Trained:
    """Count a training step without and with the student's operator, then train with it, and make up names."""
    with np.errstate(all="ignore"):  # with a wrong gradient the numbers may overflow
        run = Run()
        losses = [run.step(number) for number in range(steps)]
        made_up = _made_up(run)
        before, after = Run(), Run()
        with composed_again("gelu"):
            counts = [before.counted()]
        counts.append(after.counted())
        times: list[list[list[float]]] = [[], []]
        for _ in range(MEASURED):  # in turns, because the machine may be busy
            with composed_again("gelu"):
                times[0].append(before.timed())
            times[1].append(after.timed())
    one, two = (Step(step.kernels, step.kept, *map(min, zip(*each))) for step, each in zip(counts, times))
    return Trained(swapped, one, two, losses, made_up)


def _made_up(run: Run, count: int = 12) -> list[str]:
    run.model.eval()
    with no_grad():
        found = names_gpt.made_up(run.model, run.alphabet, count, jit=False)
    return [name or "–" for name in found]


def _compared(run: Trained) -> Drawing:
    drawing = Drawing(WIDE, 330)
    says = "each kernel as wide as its bytes; in colour: gelu and its gradient"
    before, after = run.before, run.after
    lanes(drawing, 0, ((f"before: {says}", before.kernels), (f"after: {says}", after.kernels)), WIDE)
    pairs(drawing, 164, WIDE, (
        ("dispatch: kernels", len(before.kernels), len(after.kernels), ""),
        ("bandwidth: MB moved", before.bytes / 1e6, after.bytes / 1e6, " MB"),
        ("size: MB kept for backward", before.kept / 1e6, after.kept / 1e6, " MB"),
    ))
    return drawing


def _timed(run: Trained) -> Drawing:
    drawing = Drawing(WIDE, 330)
    before, after = run.before, run.after
    pairs(drawing, 10, WIDE, (
        ("gelu and its gradient in one layer", 1e3 * before.of_gelu, 1e3 * after.of_gelu, " ms"),
        (f"a whole training step with {LAYERS} such layers", 1e3 * before.seconds, 1e3 * after.seconds, " ms"),
    ))
    return drawing


def _learnt(run: Trained) -> Drawing:
    drawing = Drawing(WIDE, 330)
    losses = [(float(i), value) for i, value in enumerate(run.losses, 1)]
    curves(drawing, (0, 0, 400, 300), {"loss": losses}, "loss of each batch")
    drawing.heading(440, 12, f"{counted(len(run.made_up), 'name')} made up")
    for i, name in enumerate(run.made_up):
        drawing.text(440 + 112 * (i % 2), 44 + 40 * (i // 2), name.capitalize(), size=17, room=108)
    return drawing
