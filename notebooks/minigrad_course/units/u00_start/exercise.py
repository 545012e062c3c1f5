"""Unit 00: the gradient rule of a product."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from minigrad.ops.creation import ones
from minigrad.support.table import counted

from ...counting import launches
from ...tasks import ROUNDS, ByHandTask, GradientTask
from .about import UNIT


class MulGrad(GradientTask):
    name = "mul_grad"

    def forward(self, a: Any, b: Any) -> Any:
        return a * b

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield 5.0, -6.0, 3.0, -2.0
        yield 2.0, -12.0, -4.0, 3.0  # no branch on a sign is right for both
        yield from drawn(self, draw)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        said = super().check(answer, rounds)
        with suppress(Exception):  # a rule of plain numbers only: the next cell shows its error
            many = launches(answer, *map(ones, [()] * 4))
            return f"{said} In the engine it launches {counted(many, 'kernel')}, and minigrad's own rule 2."
        return said


def drawn(task: GradientTask, draw: random.Random) -> Iterable[tuple[Any, ...]]:
    """Four cases of a rule of two numbers; a factor of 0 is the last."""
    for _ in range(3):
        g, a, b = [draw.choice((-1, 1)) * draw.uniform(1, 9) for _ in range(3)]
        yield g, task.forward(a, b), a, b
    yield 2.0, task.forward(0.0, 3.0), 0.0, 3.0


@UNIT.task
class ByHand(ByHandTask):
    """How many times as fast as a does y rise?"""

    name = "gradient_of_a"
    rule = MulGrad

    def vary(self, draw: random.Random) -> None:
        while True:  # until no wrong way gives the right number, or the number of another wrong way
            self.args = self.g, self.a, self.b = draw.randint(2, 6), draw.randint(2, 7), -draw.randint(2, 7)
            if self.distinct():
                return


UNIT.task(MulGrad)


@UNIT.task
class MixedGrad(GradientTask):
    """The gradient rule of an operation that is yours alone: `out = k * a * b + m * a`."""

    name = "mixed_grad"

    def vary(self, draw: random.Random) -> None:
        self.k, self.m = draw.choice([2, 3, 4, 5]), draw.choice([6, 7, 8, 9])

    def forward(self, a: Any, b: Any) -> Any:
        return self.k * a * b + self.m * a

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield 2.0, self.forward(3.0, -4.0), 3.0, -4.0  # to be worked out by hand
        yield from drawn(self, draw)
