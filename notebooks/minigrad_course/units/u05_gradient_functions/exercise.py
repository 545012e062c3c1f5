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
    """`sigmoid_grad(g, out, x)` returns the gradient of x, for `out = sigmoid(x)`."""

    name = "sigmoid_grad"
    points = 0
    minutes = 5
    outcome = "rule"
    mistakes = tuple([known for known in ArrayRule.mistakes if known.name in OF_ONE_INPUT])
    otherwise = "the slope of the sigmoid is out · (1 − out), and y changes g times as fast as out"
    hints = {
        "without_g": "g is missing: out · (1 − out) is how fast the output changes, and y changes g times as fast",
        "times_out": "one factor is missing. The slope is out · (1 − out): near 0 when the output is near 0 or 1",
        "value": "that is the output itself. The rule returns g times the slope, and the slope is out · (1 − out)",
        "rule_of_a_sum": "that passes g on unchanged. The sigmoid is flat for large x: multiply g by its slope",
    }

    def forward(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield asarray([2.0, -1.0], dtype=float64), asarray([0.5, 1 / (1 + np.exp(-1.0))], dtype=float64), asarray(
            [0.0, 1.0], dtype=float64)
        yield self.drawn(draw, (2, 3))

    @mistake("x has several numbers, and each has its own gradient: no sum, so that the gradient has the shape of x")
    def total(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * out * (1 - out)).sum()

    @mistake("that is the slope with x in the place of out: the formula uses the output, out · (1 − out)")
    def of_the_input(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * x * (1 - x))

    @mistake("that is the rule of tanh, 1 − out². The slope of the sigmoid is out · (1 − out)")
    def of_tanh(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * (1 - out * out))

    @mistake("that has the other sign: the sigmoid rises everywhere, so its slope is positive, out · (1 − out)")
    def other_sign(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * out * (out - 1))

    @mistake("the slope is out · (1 − out). In 1 − out alone the first factor is missing")
    def second_factor_only(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g * (1 - out))

    @mistake("out is already the sigmoid of x. You applied the sigmoid once more")
    def twice(self, g: Any, out: Any, x: Any) -> Any:
        again = self.forward(plain(out))
        return plain(g) * again * (1 - again)

    @mistake("g is the gradient of out: it is a factor. You added it")
    def added(self, g: Any, out: Any, x: Any) -> Any:
        return plain(g + out * (1 - out))


@UNIT.task
class BiasGradient(ValueTask):
    """One row is added to every row of a table. What is its gradient?"""

    name = "bias_gradient"
    points = 1
    minutes = 4
    outcome = "broadcasting"
    example = "[1, 2, 3]"
    otherwise = "each number of b is used once in every row: add what comes back from each use, column by column"
    hints = {"first_only": "∂b has the shape of b: one number for each column"}

    def vary(self, draw: random.Random) -> None:
        self.g = [[draw.choice([2, 3, 5, 7]) for _ in range(3)], [draw.choice([10, 20, 40]) for _ in range(3)]]

    def text(self) -> str:
        return (
            "X has 2 rows and 3 columns, b has 3 numbers, and `out = X + b` adds b to each row of X. The gradient of "
            f"out is `g = {self.g}`. **What is the gradient of b?** Three numbers, without running anything."
        )

    def right(self) -> list[int]:
        return [one + two for one, two in zip(*self.g)]

    def explained(self) -> str:
        return "each number of b was used in two rows, so its two contributions are added."

    @mistake("that is what comes back from the first row. b is used in the second row too")
    def first_row(self) -> list[int]:
        return self.g[0]

    @mistake("that is what comes back from the second row. b is used in the first row too")
    def second_row(self) -> list[int]:
        return self.g[1]

    @mistake("that is g itself, the gradient of X. b has three numbers, so its gradient has three numbers")
    def of_the_table(self) -> list[list[int]]:
        return self.g

    @mistake("these are the sums of the rows. A number of b is used in one column: add each column")
    def rows_summed(self) -> list[int]:
        return [sum(row) for row in self.g]

    @mistake("that is everything added to one number. b has three numbers: add each column")
    def all_summed(self) -> int:
        return sum(map(sum, self.g))

    @mistake("added, not averaged: both uses of a number of b change the result")
    def mean(self) -> list[float]:
        return [(one + two) / 2 for one, two in zip(*self.g)]

    @mistake("added, not multiplied: each use of b sends a contribution")
    def multiplied(self) -> list[int]:
        return [one * two for one, two in zip(*self.g)]

    @mistake("that would be the gradient if the gradient of out were 1 everywhere. Yours is g")
    def of_ones(self) -> list[int]:
        return [2, 2, 2]


def summed(g: Any, shape: tuple[int, ...]) -> Any:
    """A gradient, summed where an array of this shape was repeated."""
    g = plain(g)
    while g.ndim > len(shape):
        g = g.sum(0)
    return g.sum(tuple([i for i, size in enumerate(shape) if size == 1]), keepdims=True)


@UNIT.task
class AddGrad(ArrayRule):
    """`add_grad(g, out, a, b)` returns both gradients of `out = a + b`, where b may be repeated."""

    name = "add_grad"
    points = 0
    minutes = 12
    outcome = "broadcasting"
    otherwise = "∂b has the shape of b: add the places of g in which the same number of b was used"
    hints = {
        "without_g": "g is missing. The ones are right only where the gradient of out is 1 everywhere",
        "swapped": "swapped: the gradient of a comes first",
        "rule_of_a_sum": "right where b is not repeated. b was repeated here, so ∂b is a sum over the repeated places",
        "times_out": "that is the rule of another operation. A sum passes g on, summed where an input was repeated",
    }

    def forward(self, a: Any, b: Any) -> Any:
        return a + b

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.drawn(draw, (2, 3), (2, 3))
        yield self.drawn(draw, (2, 3), (3,))
        yield self.drawn(draw, (2, 3), (2, 1))
        yield self.drawn(draw, (2, 3), ())
        yield self.drawn(draw, (3, 3), (3,))
        yield self.drawn(draw, (3, 3), (3, 1))

    @mistake("right for rows, columns and equal shapes. b may also be one number, of shape (): add all of g")
    def no_number(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g).sum(0) if b.ndim == 0 else summed(g, b.shape)

    @mistake("you add all of g wherever b was repeated. Each number of b gets only the places where it was used")
    def all_where_repeated(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g) if b.shape == g.shape else plain(g).sum()

    @mistake("right for a row. A column (n, 1) is repeated to the right: sum over axis 1, and keep the axis")
    def rows_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g) if b.shape == g.shape else plain(g).sum(0)

    @mistake("you sum over axis 0 always. Where b has the shape of g, nothing was repeated, and nothing is summed")
    def always_rows(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g).sum(0)

    @mistake("g is missing: the slope of a sum is 1, and y changes g times as fast as out. So g goes back, not 1")
    def ones(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return 1.0, 1.0

    @mistake("that is the rule of a product. If a grows by 0.01, the sum grows by 0.01, whatever b is")
    def of_a_product(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g * b), plain(g * a)

    @mistake("that multiplies g by the inputs. If a grows by 0.01, the sum grows by 0.01: its slope is 1")
    def times_inputs(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g * a), plain(g * b)

    @mistake("you add all of g for both. a was not repeated, so its gradient is g; b gets sums of the repeated places")
    def all_of_it_for_both(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g).sum(), plain(g).sum()

    @mistake("you add all of g to one number. ∂b has the shape of b: add only the places where one number was used")
    def all_of_it(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), plain(g).sum()

    @mistake("right for rows and numbers. In a column (n, 1) the axis 1 was repeated: keepdims=True keeps the axis")
    def leading_axes_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g), summed(g, b.shape) if b.ndim < g.ndim else plain(g)

    @mistake("right but for the shape of a column: ∂b has the shape of b, (n, 1). keepdims=True keeps the axis")
    def axis_dropped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        found = summed(g, b.shape)
        return plain(g), found[:, 0] if b.ndim == 2 and b.shape[1] == 1 else found

    @mistake("you summed over the wrong axis: a row is repeated downwards, axis 0; a column to the right, axis 1")
    def other_axis(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        g = plain(g)
        axis = {(): (0, 1), (len(g[0]),): 1}.get(b.shape, 0)
        return g, g if b.shape == g.shape else g.sum(axis)

    @mistake("added, not averaged: every use of a number changes the result")
    def mean(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        found = summed(g, b.shape)
        return plain(g), found * found.size / g.size

    @mistake("one row of g is what comes back from one use. The same b was used in every row: add them")
    def first_use(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        g = plain(g)
        return g, g if b.shape == g.shape else g[:, :1] if b.ndim == 2 else g[0] if b.ndim else g[0, 0]


@UNIT.task
class MatmulGrad(ArrayRule):
    """`matmul_grad(g, out, a, b)` returns both gradients of `out = a @ b`."""

    name = "matmul_grad"
    points = 0
    minutes = 10
    outcome = "shapes"
    otherwise = "∂a has the shape of a. Which product of g and b, one of them transposed (.T), has that shape?"
    hints = {
        "swapped": "swapped: the gradient of a comes first, and has the shape of a",
        "without_g": "g is missing: ones stand in its place. Multiply by g as matrices, and look at the shapes",
        "value": "that is the product itself. Each gradient is a matrix product of g and the other input",
        "times_out": "that multiplies g by the output. ∂a is made of g and b, and ∂b of a and g",
        "rule_of_a_sum": "that is the rule of a sum. Here ∂a is a product of g and b, with the shape of a",
    }

    def forward(self, a: Any, b: Any) -> Any:
        return a @ b

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.drawn(draw, (2, 3), (3, 4))
        yield self.drawn(draw, (1, 2), (2, 3))
        yield self.drawn(draw, (3, 3), (3, 3))

    @mistake("both have the transposed shape. Turn each product round: (p @ q).T is q.T @ p.T")
    def transposed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b @ g.T), plain(g.T @ a)

    @mistake("∂a is right. ∂b has the transposed shape: which of the two factors has to be turned?")
    def second_transposed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(g @ b.T), plain(g.T @ a)

    @mistake("∂b is right. ∂a has the transposed shape: which of the two factors has to be turned?")
    def first_transposed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b @ g.T), plain(a.T @ g)

    @mistake("these are the inputs, swapped, without g. ∂a is a matrix product of g and b, with the shape of a")
    def inputs_swapped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b), plain(a)

    @mistake("these are the other inputs themselves. Each has to be multiplied by g so that the shapes come out")
    def plain_inputs(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return plain(b.T), plain(a.T)


@UNIT.task
class MaximumGrad(ArrayRule):
    """`maximum_grad(g, out, a, b)` for the larger of two numbers, with the student's own share at a tie."""

    name = "maximum_grad"
    points = 2
    minutes = 8
    outcome = "kink"
    source = "by the rule of the task"
    otherwise = "three cases, place by place: a is larger, b is larger, both are equal. `a > b` is 1 where it is true"
    hints = {
        "swapped": "swapped: the larger input gets g, because the output is this input",
        "without_g": "g is missing: 1 and 0 say which input the output follows, and y changes g times as fast",
        "rule_of_a_sum": "that passes g to both. Only the larger input changes the output",
        "value": "that is the larger number itself. The rule returns how much of g each input gets",
        "times_out": "that multiplies g by the output. The output changes as fast as the larger input: the slope is 1",
    }

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

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.drawn(draw, (6,), (6,))
        g, _, a, _ = self.drawn(draw, (4,), (4,))
        b = a + asarray([0.0, 1.0, -1.0, 0.0], dtype=float64)
        yield g, asarray(self.forward(plain(a), plain(b)), dtype=float64), a, b

    @mistake("right where a and b differ. At a tie you give all of g to a: `>=` is true there too")
    def tie_to_a(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, 1, 0)

    @mistake("right where a and b differ. At a tie you give all of g to b: `>=` or `else` covers the tie too")
    def tie_to_b(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, 0, 1)

    @mistake("right where a and b differ. At a tie both get all of g, which is g twice: share it as the task says")
    def tie_to_both(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, 1, 1)

    @mistake("right where a and b differ. At a tie neither gets anything: add a part for a == b")
    def tie_to_none(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, 0, 0)

    @mistake("in your rule the smaller input gets g. The output follows the larger one, so the larger one gets g")
    def smaller(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, b, a, 0, 0)

    @mistake("g is missing: 1 and 0 say which input the output follows. Multiply by g, and share g at a tie")
    def only_which(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(np.ones(a.shape), a, b, 0, 0)

    @mistake("right where a and b differ. At a tie you share equally. The shares of your rule are in the task")
    def tie_in_halves(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, 0.5, 0.5)

    @mistake("right where a and b differ. At a tie the two shares are swapped")
    def shares_swapped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, 1 - self.share, self.share)

    @mistake("right where a and b differ. At a tie both get the share of a: b gets the rest")
    def share_for_both(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.shares(g, a, b, self.share, self.share)

    @mistake("at a tie you add the share alone: it is a share of g, so multiply it by g")
    def share_without_g(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        tie = plain(a) == plain(b)
        one, two = self.shares(g, a, b, 0, 0)
        return one + self.share * tie, two + (1 - self.share) * tie
