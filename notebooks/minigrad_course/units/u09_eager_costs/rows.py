"""Unit 09: softmax and layer norm, composed from primitives."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arrays import ComposedTask
from ...compare import plain
from ...tasks import mistake
from .about import UNIT
from .exercise import Megabytes

EPSILON = "write the number that your task has for ε"


def over(x: Any, function: Any, axis: Any = -1) -> Any:
    """A reduction over an axis, which is kept."""
    return function(plain(x), axis=axis, keepdims=True)


@UNIT.task
class Softmax(ComposedTask):
    """`softmax(x)` for each row of a table, composed from primitives."""

    name = "softmax"
    points = 0
    composite = "softmax"
    outcome = "compose"
    minutes = 8
    otherwise = "for each row: subtract its largest number, exp, then divide by the row's sum. axis=-1, keepdims=True"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]], np.float32),)
        yield (np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0], [0.0, 0.0, 2.0]], np.float32),)
        yield (np.array([[1000.0, 1001.0], [-1000.0, -1001.0]], np.float32),)

    def right(self, x: Any) -> Any:
        powers = np.exp(x - over(x, np.max))
        return powers / over(powers, np.sum)

    @mistake("right for small numbers. exp(1000) overflows: subtract the largest number of the row before exp")
    def overflows(self, x: Any) -> Any:
        return np.exp(x) / over(np.exp(x), np.sum)

    @mistake("subtract the largest number of each *row*. With that of the whole table, exp of another row may be 0")
    def max_of_all(self, x: Any) -> Any:
        powers = np.exp(x - x.max())
        return powers / over(powers, np.sum)

    @mistake("these are the columns: axis 0. The last axis is axis=-1")
    def columns(self, x: Any) -> Any:
        powers = np.exp(x - over(x, np.max, 0))
        return powers / over(powers, np.sum, 0)

    @mistake("everything sums to 1, but each row should: .sum(axis=-1, keepdims=True)")
    def of_all(self, x: Any) -> Any:
        return np.exp(x) / np.exp(x).sum()

    @mistake("everything sums to 1, but each row should: .max and .sum with axis=-1, keepdims=True")
    def of_all_shifted(self, x: Any) -> Any:
        return np.exp(x - x.max()) / np.exp(x - x.max()).sum()

    @mistake("the division is missing: each row should sum to 1")
    def not_divided(self, x: Any) -> Any:
        return np.exp(x - over(x, np.max))

    @mistake("that is the logarithm of the softmax")
    def logarithm(self, x: Any) -> Any:
        return np.log(np.maximum(self.right(x), 1e-45))

    @mistake("exp is missing: x divided by the sum of x")
    def without_exp(self, x: Any) -> Any:
        return x / over(x, np.sum)

    @mistake("the largest number has to be subtracted in both exps: above and below the line")
    def subtracted_once(self, x: Any) -> Any:
        return np.exp(x - over(x, np.max)) / over(np.exp(x), np.sum)


@UNIT.task
class SoftmaxBytes(Megabytes):
    """A table of the student's size: how many MB does softmax move in eager mode?"""

    name = "softmax_bytes"
    outcome = "traffic"
    minutes = 5
    otherwise = "count how often an array as large as the table is read or written: one line for each operation"
    reads, writes = 5, 3
    hints = {"without_four": "that is one pass, or numbers in place of bytes: 4 bytes each, and five operations run"}

    def vary(self, draw: random.Random) -> None:
        self.rows, self.columns = draw.choice([1000, 2000, 3000]), draw.choice([200, 500, 1000])
        self.count = self.rows * self.columns

    def text(self) -> str:
        return (
            f"x is a table of {self.rows:,} rows and {self.columns:,} columns, 4 bytes a number. A softmax like "
            "yours runs five operations in eager mode: `largest = x.max(...)`, `shifted = x - largest`, "
            "`powers = mg.exp(shifted)`, `total = powers.sum(...)`, `powers / total`. (mg.softmax runs a sixth one, "
            "because it divides 1 by the total, and multiplies.) **How many MB do they read and write?** `largest` and "
            "`total` have one number for each row: so few that you can leave them out."
        )

    def explained(self) -> str:
        return "max 1, subtract 2, exp 2, sum 1, divide 2: 8 tables. A kernel that fuses a row reads 1 and writes 1."

    @mistake("max and sum read the table too, although they write only one number for each row")
    def without_reductions(self) -> float:
        return self.megabytes(6)

    @mistake("max and sum read a table, but write only one number for each row: 1 each, not 2")
    def reductions_write(self) -> float:
        return self.megabytes(10)


@UNIT.task
class Norm(ComposedTask):
    """`norm(x, weight, bias)`: layer norm with the student's own epsilon."""

    name = "norm"
    points = 2
    composite = "layer_norm"
    outcome = "compose"
    minutes = 10
    advice = ComposedTask.advice | {"name 'ε'": EPSILON, "name 'eps": EPSILON}
    otherwise = "x − mean of the row; the mean of its squares; divide by sqrt(that + ε); times weight, plus bias"

    def vary(self, draw: random.Random) -> None:
        self.epsilon = draw.choice([0.1, 0.2, 0.3, 0.5])

    def text(self) -> str:
        return (
            "`norm(x, weight, bias)` is layer norm. For each row of x: subtract the mean; divide by the square root of "
            "(the variance + ε); multiply by `weight` and add `bias`, which have one number for each column. The "
            f"variance is the mean of (x − mean)². **In your norm, ε = {self.epsilon:g}.**"
        )

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        weight, bias = np.array([2.0, 1.0, -1.0], np.float32), np.array([0.5, 0.0, 1.0], np.float32)
        yield np.array([[1.0, 2.0, 6.0], [0.0, 1.0, -1.0]], np.float32), weight, bias
        yield np.array([[1.0, 5.0, 2.0], [3.0, -1.0, 1.0], [0.0, 0.5, 2.0]], np.float32), weight, bias
        drawn = [[draw.uniform(-3, 3) for _ in range(3)] for _ in range(4)]
        yield np.round(np.array(drawn, np.float32), 1), weight, bias

    def computed(self, x: Any, weight: Any, bias: Any, epsilon: Any = None, axis: Any = -1, ddof: int = 0) -> Any:
        """Layer norm, also wrong ones."""
        epsilon = self.epsilon if epsilon is None else epsilon
        variance = np.var(x, axis=axis, keepdims=True, ddof=ddof)
        return (x - over(x, np.mean, axis)) / np.sqrt(variance + epsilon) * weight + bias

    def right(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, weight, bias)

    @mistake("ε is missing, or far too small: your task has an ε of its own")
    def without_epsilon(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, weight, bias, 0.0)

    @mistake("ε is added to the variance, before the square root")
    def outside_of_root(self, x: Any, weight: Any, bias: Any) -> Any:
        return (x - over(x, np.mean)) / (over(x, np.std) + self.epsilon) * weight + bias

    @mistake("the square root is missing: divide by sqrt(variance + ε)")
    def without_root(self, x: Any, weight: Any, bias: Any) -> Any:
        return (x - over(x, np.mean)) / (over(x, np.var) + self.epsilon) * weight + bias

    @mistake("your variance divides by n − 1. Here it is the mean of the squares: divide by n")
    def sample_variance(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, weight, bias, ddof=1)

    @mistake("these are the columns: axis 0. The last axis is axis=-1")
    def columns(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, weight, bias, axis=0)

    @mistake("that is the mean and the variance of the whole table. Each row has its own: axis=-1")
    def of_all(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, weight, bias, axis=None)

    @mistake("weight and bias are missing: multiply by weight, and add bias")
    def plain(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, 1.0, 0.0)

    @mistake("bias is missing")
    def without_bias(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, weight, 0.0)

    @mistake("weight is missing")
    def without_weight(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.computed(x, 1.0, bias)

    @mistake("first times weight, then plus bias: the bias is not multiplied")
    def bias_multiplied(self, x: Any, weight: Any, bias: Any) -> Any:
        return (self.computed(x, 1.0, 0.0) + bias) * weight

    @mistake("each row has its own variance: the mean of the squares needs axis=-1, keepdims=True")
    def variance_of_all(self, x: Any, weight: Any, bias: Any) -> Any:
        return (x - over(x, np.mean)) / np.sqrt(over(x, np.var).mean() + self.epsilon) * weight + bias

    @mistake("the variance is the mean of (x − mean)², not of x²")
    def squares_of_x(self, x: Any, weight: Any, bias: Any) -> Any:
        return (x - over(x, np.mean)) / np.sqrt(over(x * x, np.mean) + self.epsilon) * weight + bias

    @mistake("the mean is not subtracted: x − mean above the line too")
    def not_centred(self, x: Any, weight: Any, bias: Any) -> Any:
        return x / np.sqrt(over(x, np.var) + self.epsilon) * weight + bias

    @mistake("the variance is the *mean* of the squares, not their sum")
    def summed(self, x: Any, weight: Any, bias: Any) -> Any:
        squares = np.square(x - over(x, np.mean))
        return (x - over(x, np.mean)) / np.sqrt(over(squares, np.sum) + self.epsilon) * weight + bias
