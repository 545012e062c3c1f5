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
    name = "softmax"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield (np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]], np.float32),)
        yield (np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0], [0.0, 0.0, 2.0]], np.float32),)
        yield (np.array([[1000.0, 1001.0], [-1000.0, -1001.0]], np.float32),)
        yield (np.array([[1000.0, -1000.0]], np.float32),)

    def right(self, x: Any) -> Any:
        powers = np.exp(x - over(x, np.max))
        return powers / over(powers, np.sum)

    @mistake
    def max_of_all(self, x: Any) -> Any:
        powers = np.exp(x - x.max())
        return powers / over(powers, np.sum)

    @mistake
    def columns(self, x: Any) -> Any:
        powers = np.exp(x - over(x, np.max, 0))
        return powers / over(powers, np.sum, 0)


@UNIT.task
class SoftmaxBytes(Megabytes):
    """A table of the student's size: how many MB does softmax move in eager mode?"""

    name = "softmax_bytes"

    def vary(self, draw: random.Random) -> None:
        self.rows, self.columns = draw.choice([1000, 2000, 3000]), draw.choice([200, 500, 1000])
        self.count = self.rows * self.columns


@UNIT.task
class Norm(ComposedTask):
    """`norm(x, weight, bias)`: layer norm with the student's own epsilon."""

    name = "norm"
    advice = ComposedTask.advice | {"name 'ε'": EPSILON, "name 'eps": EPSILON}

    def vary(self, draw: random.Random) -> None:
        self.epsilon = draw.choice([0.1, 0.2, 0.3, 0.5])

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

    @mistake
    def summed(self, x: Any, weight: Any, bias: Any) -> Any:
        squares = np.square(x - over(x, np.mean))
        return (x - over(x, np.mean)) / np.sqrt(over(squares, np.sum) + self.epsilon) * weight + bias
