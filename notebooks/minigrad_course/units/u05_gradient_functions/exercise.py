"""Unit 05: the gradient functions that the student writes, for arrays."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from minigrad.core.dtypes import float64
from minigrad.ops.creation import asarray

from ...arrays import OF_ONE_INPUT, ArrayRule
from ...compare import plain
from ...tasks import ValueTask, mistake
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

    @mistake
    def total(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * out * (1 - out)).sum()

    @mistake
    def of_the_input(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * x * (1 - x))

    @mistake
    def of_tanh(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * (1 - out * out))

    @mistake
    def other_sign(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * out * (out - 1))

    @mistake
    def second_factor_only(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * (1 - out))

    @mistake
    def twice(self, g: Any, out: Any, x: Any) -> Any:
        again = self.forward(plain(out))
        return plain(g) * again * (1 - again)

    @mistake
    def added(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g + out * (1 - out))


@UNIT.task
class BiasGradient(ValueTask):
    """One row is added to every row of a table. What is its gradient?"""

    name = "bias_gradient"

    def vary(self, draw: random.Random) -> None:
        self.g = [[draw.choice([2, 3, 5, 7]) for _ in range(3)], [draw.choice([10, 20, 40]) for _ in range(3)]]

    def right(self) -> list[int]:
        return [one + two for one, two in zip(*self.g)]

    slips = {
        "first_row": ("[one + two for one, two in zip(*self.g)]", "self.g[0]"),
        "second_row": ("[one + two for one, two in zip(*self.g)]", "self.g[1]"),
        "of_the_table": ("[one + two for one, two in zip(*self.g)]", "self.g"),
        "rows_summed": ("one + two for one, two in zip(*self.g)", "sum(row) for row in self.g"),
        "all_summed": ("[one + two for one, two in zip(*self.g)]", "sum(map(sum, self.g))"),
        "mean": ("one + two", "(one + two) / 2"),
        "multiplied": ("one +", "one *"),
    }


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
    def no_number(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g).sum(0) if b.ndim == 0 else summed(g, b.shape)

    @mistake
    def all_where_repeated(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g) if b.shape == g.shape else plain(g).sum()

    @mistake
    def rows_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g) if b.shape == g.shape else plain(g).sum(0)

    @mistake
    def always_rows(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g).sum(0)

    @mistake
    def ones(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return 1.0, 1.0

    @mistake
    def of_a_product(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g * b), plain(g * a)

    @mistake
    def times_inputs(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g * a), plain(g * b)

    @mistake
    def all_of_it_for_both(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g).sum(), plain(g).sum()

    @mistake
    def all_of_it(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g).sum()

    @mistake
    def leading_axes_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), summed(g, b.shape) if b.ndim < g.ndim else plain(g)

    @mistake
    def axis_dropped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        found = summed(g, b.shape)
        return plain(g), found[:, 0] if b.ndim == 2 and b.shape[1] == 1 else found

    @mistake
    def other_axis(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        g = plain(g)
        axis = {(): (0, 1), (len(g[0]),): 1}.get(b.shape, 0)
        return g, g if b.shape == g.shape else g.sum(axis)

    @mistake
    def mean(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        found = summed(g, b.shape)
        return plain(g), found * found.size / g.size

    @mistake
    def first_use(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        g = plain(g)
        return g, g if b.shape == g.shape else g[:, :1] if b.ndim == 2 else g[0] if b.ndim else g[0, 0]


@UNIT.task
class MatmulGrad(ArrayRule):
    name = "matmul_grad"

    def forward(self, a: Any, b: Any) -> Any:
        return a @ b

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.drawn(draw, (2, 3), (3, 4))
        yield self.drawn(draw, (1, 2), (2, 3))
        yield self.drawn(draw, (3, 3), (3, 3))

    @mistake
    def transposed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b @ g.T), plain(g.T @ a)

    @mistake
    def second_transposed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g @ b.T), plain(g.T @ a)

    @mistake
    def first_transposed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b @ g.T), plain(a.T @ g)

    @mistake
    def inputs_swapped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b), plain(a)

    @mistake
    def plain_inputs(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b.T), plain(a.T)


@UNIT.task
class MaximumGrad(ArrayRule):
    """`maximum_grad(g, out, a, b)` for the larger of two numbers, with the student's own share at a tie."""

    name = "maximum_grad"
    source = "by the rule of the task"

    def vary(self, draw: random.Random) -> None:
        self.share = draw.choice([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])

    def text(self) -> str:
        return (
            "`out = maximum(a, b)` is the larger of two, place by place. Write `maximum_grad(g, out, a, b)`. Where a "
            "and b are equal (a *tie*), the function has a kink, and no slope is right: the author of the rule "
            f"decides. You are the author: **at a tie, a gets {self.share:g} of g, and b gets {1 - self.share:g} of "
            "g.** a, b and g are arrays, so `if` does not work: it would be one decision for all places."
        )

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

    slips = {
        "tie_to_a": ("self.share, 1 - self.share", "1, 0"),
        "tie_to_b": ("self.share, 1 - self.share", "0, 1"),
        "tie_to_both": ("self.share, 1 - self.share", "1, 1"),
        "tie_to_none": ("self.share, 1 - self.share", "0, 0"),
        "smaller": ("a, b, self.share, 1 - self.share", "b, a, 0, 0"),
        "only_which": ("g, a, b, self.share, 1 - self.share", "np.ones(a.shape), a, b, 0, 0"),
        "tie_in_halves": ("self.share, 1 - self.share", "0.5, 0.5"),
        "shares_swapped": ("self.share, 1 -", "1 - self.share,"),
        "share_for_both": ("1 - ", ""),
    }

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.drawn(draw, (6,), (6,))
        g, _, a, _ = self.drawn(draw, (4,), (4,))
        b = a + asarray([0.0, 1.0, -1.0, 0.0], dtype=float64)
        yield g, asarray(self.forward(plain(a), plain(b)), dtype=float64), a, b

    @mistake
    def share_without_g(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        tie = plain(a) == plain(b)
        one, two = self.shares(g, a, b, 0, 0)
        return one + self.share * tie, two + (1 - self.share) * tie
