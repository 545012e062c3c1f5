"""Unit 05: the gradient functions that the student writes, for arrays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minigrad.core.dtypes import float64
from minigrad.ops.creation import asarray

from ...arrays import OF_ONE_INPUT, ArrayRule
from ...compare import plain
from ...tasks import ROUNDS, ValueTask, mistake
from .about import UNIT
from .network import train


@UNIT.task
class SigmoidGrad(ArrayRule):
    name = "sigmoid_grad"
    mistakes = tuple([known for known in ArrayRule.mistakes if known.name in OF_ONE_INPUT])

    def forward(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield asarray([2.0, -1.0], dtype=float64), asarray([0.5, 1 / (1 + np.exp(-1.0))], dtype=float64), asarray(
            [0.0, 1.0], dtype=float64)
        yield self.drawn(draw, (2, 3))


@UNIT.task
class BiasGradient(ValueTask):
    """One row is added to every row of a table. What is its gradient?"""

    name = "bias_gradient"

    def vary(self, draw: random.Random) -> None:
        self.g = [[draw.choice([2, 3, 5, 7]) for _ in range(3)], [draw.choice([10, 20, 40]) for _ in range(3)]]

    def right(self) -> list[int]:
        return [one + two for one, two in zip(*self.g)]


def summed(g: Any, shape: tuple[int, ...]) -> Any:
    """A gradient, summed where an array of this shape was repeated."""
    g = plain(g)
    while g.ndim > len(shape):
        g = g.sum(0)
    return g.sum(tuple([i for i, size in enumerate(shape) if size == 1]), keepdims=True)


@UNIT.task
class AddGrad(ArrayRule):
    name = "add_grad"

    def forward(self, a: Any, b: Any) -> Any:
        return a + b

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.drawn(draw, (2, 3), (2, 3))
        yield self.drawn(draw, (2, 3), (3,))
        yield self.drawn(draw, (2, 3), (2, 1))
        yield self.drawn(draw, (2, 3), ())
        yield self.drawn(draw, (3, 3), (3,))
        yield self.drawn(draw, (3, 3), (3, 1))

    @mistake
    def first_use(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        g = plain(g)
        return g, g if b.shape == g.shape else g[:, :1] if b.ndim == 2 else g[0] if b.ndim else g[0, 0]


@UNIT.task
class MatmulGrad(ArrayRule):
    name = "matmul_grad"

    vectors = False  # whether b is a vector: tried when the rule is right for matrices

    def forward(self, a: Any, b: Any) -> Any:
        return a @ b

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        said = super().check(answer, rounds)
        self.vectors = True
        super().check(answer, rounds)
        return said

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        if self.vectors:
            yield self.drawn(draw, (2, 3), (3,))
            return
        yield self.drawn(draw, (2, 3), (3, 4))
        yield self.drawn(draw, (1, 2), (2, 3))
        yield self.drawn(draw, (3, 3), (3, 3))


@UNIT.task
class MaximumGrad(ArrayRule):
    """`maximum_grad(g, out, a, b)` for the larger of two numbers, with the student's own share at a tie."""

    name = "maximum_grad"
    source = "by the rule of the task"

    def vary(self, draw: random.Random) -> None:
        self.share = draw.choice([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])

    def given(self) -> dict[str, Any]:
        return {"train": train}

    def forward(self, a: Any, b: Any) -> Any:
        return np.maximum(a, b)

    def shares(self, g: Any, a: Any, b: Any, share: float, other: float) -> Any:
        """The gradients, where a tie gives these shares."""
        g, a, b = map(plain, (g, a, b))
        return g * ((a > b) + share * (a == b)), g * ((b > a) + other * (a == b))

    def right(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, self.share, 1 - self.share)

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.drawn(draw, (6,), (6,))
        g, _, a, _ = self.drawn(draw, (4,), (4,))
        b = a + asarray([0.0, 1.0, -1.0, 0.0], dtype=float64)
        yield g, asarray(self.forward(plain(a), plain(b)), dtype=float64), a, b
