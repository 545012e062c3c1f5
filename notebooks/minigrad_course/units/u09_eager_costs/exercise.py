"""Unit 09: bytes to predict, and kernels to write: gelu, its gradient, and an activation of the student's own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ...tasks import ValueTask, common, digest, mistake
from .about import UNIT
from .kernel_tasks import BackwardTask, KernelTask
from .kernels import erf, exp, tanh  # noqa: F401  (tanh: in the texts)

ROOT_2, ROOT_PI = 2**0.5, np.pi**0.5


class Megabytes(ValueTask):
    """How many MB are read and written; `arrays` of one size count."""

    example = "12.5"
    tolerance = 0.01
    reads: int  # arrays
    writes: int
    count: int  # numbers in an array
    mistakes = common(
        only_written=lambda self: self.megabytes(self.writes),
        only_read=lambda self: self.megabytes(self.reads),
        without_four=lambda self: self.right() / 4,
        in_bytes=lambda self: self.right() * 1e6,
        float64=lambda self: self.right() * 2,
    )

    def megabytes(self, arrays: float) -> float:
        """The size of this number of arrays."""
        return round(arrays * 4 * self.count / 1e6, 6)

    def right(self) -> float:
        return self.megabytes(self.reads + self.writes)


@UNIT.task
class EagerBytes(Megabytes):
    """A formula and a size: how many MB does eager mode move?"""

    name = "eager_bytes"
    FORMS = (  # the code, the arrays that are read, and those that are written, one by each operation
        ("mg.tanh(x * {a}) * x + {b}", 5, 4),
        ("mg.exp(x + {a}) * x - {b}", 5, 4),
        ("(x + {a}) * mg.tanh(x) * {b}", 5, 4),
        ("mg.sqrt(x * x + {a}) - x * {b}", 6, 5),
    )

    def vary(self, draw: random.Random) -> None:
        form, self.reads, self.writes = draw.choice(self.FORMS)
        self.code = form.format(a=draw.choice([2, 3, 5]), b=draw.choice([4, 7, 9]))
        self.count = draw.choice([200_000, 300_000, 500_000, 600_000, 800_000])


@UNIT.task
class Gelu(KernelTask):
    name = "gelu"

    def formula(self, x: Any) -> Any:  # type: ignore[override]
        return x * (1 + erf(x / ROOT_2)) / 2


@UNIT.task
class GeluBackward(BackwardTask):
    name = "gelu_backward"

    def value(self, a: Any) -> Any:
        return a * (1 + erf(a / ROOT_2)) / 2

    def slope(self, a: Any) -> Any:
        return (1 + erf(a / ROOT_2)) / 2 + self.second(a)

    def second(self, a: Any) -> Any:
        """x times the slope of (1 + erf(x / √2)) / 2."""
        return a * exp(-a * a / 2) / (ROOT_2 * ROOT_PI)


@UNIT.task
class StepBytes(Megabytes):
    """How many MB do the two kernels move in one training step of a GPT?"""

    name = "step_bytes"

    def vary(self, draw: random.Random) -> None:
        self.layers, self.numbers = draw.choice([3, 4, 6, 7]), draw.choice([400_000, 1_000_000, 2_000_000])
        self.count = self.layers * self.numbers


class Swish:
    """x · sigmoid(b · x), with the student's own b, the same in both tasks."""

    student: str

    def vary(self, draw: random.Random) -> None:
        self.b = random.Random(digest("swish", self.student)).choice([0.6, 0.8, 1.4, 1.6, 1.8, 2.2, 2.5, 3.0])

    def sigmoid(self, a: Any, b: float | None = None) -> Any:
        """The sigmoid of b · x."""
        return 1 / (1 + exp(-(self.b if b is None else b) * a))

    def slope_of_sigmoid(self, a: Any) -> Any:
        """The slope of the sigmoid of b · x, at x."""
        s = self.sigmoid(a)
        return self.b * s * (1 - s)


@UNIT.task
class SwishKernel(Swish, KernelTask):
    """`swish(i, x, out)` writes x · sigmoid(b · x), with the student's own b."""

    name = "swish"

    def formula(self, x: Any) -> Any:  # type: ignore[override]
        return x * self.sigmoid(x)


@UNIT.task
class SwishBackward(Swish, BackwardTask):
    """`swish_backward(i, g, x, dx)` writes the gradient of x for swish."""

    name = "swish_backward"

    def value(self, a: Any) -> Any:
        return a * self.sigmoid(a)

    def slope(self, a: Any) -> Any:
        return self.sigmoid(a) + a * self.slope_of_sigmoid(a)

    @mistake
    def of_silu(self, g: Any, a: Any) -> Any:
        s = self.sigmoid(a, 1.0)
        return g * (s + a * s * (1 - s))


@UNIT.task
class KernelsNeeded(ValueTask):
    """A kernel for each chain of two operations, for each device, with its gradient: how many?"""

    name = "kernels_needed"

    def vary(self, draw: random.Random) -> None:
        self.operations, self.devices = draw.choice([20, 30, 40, 50]), draw.choice([3, 4, 5])

    def right(self) -> int:
        return 2 * self.devices * self.operations**2
