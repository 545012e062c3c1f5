"""Unit 00: the first fifteen minutes.  One example, its five contributions, and the first gradient rule."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..unit import GradientTask, Misconception, Prediction, Seed, Unit, ValueTask, mistake

UNIT = Unit(
    number=0,
    name="start",
    title="Start",
    question="x is 1, a = 2x, y = a² + a. Make x larger by 0.01: by how much does y rise?",
    minutes=15,
    outcomes={
        "meaning": "say what a gradient of 10 means: how many times faster than x the result y changes",
        "order": "say why a value may pass its gradient on only when all who used it have been heard",
        "rule": "write the gradient rule of an operation, and run it in the engine",
    },
    misconceptions=(
        Misconception(
            "backward may visit the nodes in any order, since in the end everything is added up",
            "https://github.com/karpathy/micrograd/issues: several threads ask why the order must be topological",
            "too_early",
        ),
        Misconception(
            "the gradient of a value that is used twice is that of its last use",
            "nn-zero-to-hero, building micrograd: the bug that is fixed when one variable is used several times",
            "too_early",
        ),
    ),
    seeds=(
        Seed("002: fix one output ℓ over ℝ", "rise"),
        Seed("002: the partial derivative ∂ℓ/∂y for each value y", "start-gradients"),
        Seed("002: going backward through the computation", "too_early"),
        Seed("001: a gradient function takes inputs, output, and the gradient of the output", "mul_grad"),
    ),
)


@UNIT.task
class Rise(Prediction):
    """x goes from 1 to 1.01. By how much does y = (2x)² + 2x rise? Write `rise = ` and your guess.

    A guess is all that is asked for; right or wrong, it is the one that you will remember.
    """

    name = "rise"
    outcome = "meaning"

    def right(self) -> float:
        return 0.1004

    def check(self, answer: Any, rounds: int = 1) -> str | None:
        if isinstance(answer, int | float) and 0.095 <= answer <= 0.105:
            return self.explained()
        return super().check(answer)

    def explained(self) -> str:
        return "y rises about ten times as far as x did: the gradient of y with respect to x is 10."

    @mistake("That is how far x goes. How far does a = 2x go then, and a² + a after it?")
    def as_far_as_x(self) -> float:
        return 0.01

    @mistake("That is how far a = 2x goes; y = a² + a goes further.")
    def as_far_as_a(self) -> float:
        return 0.02

    @mistake("That is the part that goes through a². The `+ a` has its part too.")
    def only_the_square(self) -> float:
        return 0.08

    @mistake("That is y itself, or nearly. The question is how far it goes from 6.")
    def y_itself(self) -> float:
        return 6.1004


@UNIT.task
class TooEarly(ValueTask):
    """What x shows when a's gradient is passed on too early.

    In your example, `a = 2 * x` and `y = a * a + a`, and the gradient of a arrives in three parts. Somebody is
    impatient and passes a's gradient on to x when only some of the parts have come.
    """

    name = "too_early"
    outcome = "order"
    points = 1

    def vary(self, draw: random.Random) -> None:
        self.x = draw.choice([1.0, 2.0, 3.0])
        self.heard = draw.choice([1, 2]) if self.student else 1

    @property
    def parts(self) -> list[float]:
        """What comes to a, in the order of the walk: from the sum, then twice from the product."""
        a = 2 * self.x
        return [1.0, a, a]

    def text(self) -> str:
        heard = "the first part only" if self.heard == 1 else "two of the three parts"
        return (
            f"**too_early** (1 point). x = {self.x:g}, so a = {2 * self.x:g}. The parts that come to a are "
            f"{', '.join(f'{part:g}' for part in self.parts)}, in this order. Somebody passes a's gradient on "
            f"when **{heard}** has come, and never again. What does x get? Write `too_early = ` and the number."
        )

    def right(self) -> float:
        return 2 * sum(self.parts[: self.heard])

    def explained(self) -> str:
        return f"x shows {self.right():g}; right would be {2 * sum(self.parts):g}. Order matters."

    @mistake("That is the right gradient of x, when all parts have been heard. What comes of passing on too early?")
    def all_of_them(self) -> float:
        return 2 * sum(self.parts)

    @mistake("That is what has come to a. On its way to x it passes a = 2x, and is multiplied there.")
    def not_multiplied(self) -> float:
        return sum(self.parts[: self.heard])


@UNIT.task
class MulGrad(GradientTask):
    """The gradient rule of a product: what `a * b` passes back to a, and what to b.

    `mul_grad(g, out, a, b)` is given the gradient g of the product, the product `out` itself, and its two inputs.
    """

    name = "mul_grad"
    outcome = "rule"
    points = 0  # it is the same for everybody; the next one is not
    point = (5.0, 3.0, -2.0)  # g, a, b to try first
    minutes = 4

    def forward(self, a: Any, b: Any) -> Any:
        return a * b

    def solution(self) -> Any:
        return lambda g, out, a, b: (g * b, g * a)

    def cases(self, draw: random.Random) -> Iterator[tuple[Any, ...]]:
        yield self.point[0], self.forward(*self.point[1:]), *self.point[1:]
        numbers = np.random.default_rng(draw.randrange(2**32))
        a, b, g = (np.round(numbers.uniform(-3, 3, (2, 3)), 2) for _ in range(3))
        yield g, self.forward(a, b), a, b

    @mistake("Swapped: each input got its own value. When a grows by a little, out grows by that times b.")
    def swapped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * a, g * b

    @mistake("g is forgotten: how fast out follows a is one half, how fast the end follows out is the other.")
    def forgotten_g(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        to_a, to_b = self.solution()(1.0, out, a, b)
        return to_a + 0 * g, to_b + 0 * g

    @mistake("Summed: two inputs have two gradients. Return them side by side: `return to_a, to_b`.")
    def summed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * b + g * a

    @mistake("g is added; it multiplies: so many times faster, and that so many times again.")
    def added(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g + b, g + a

    @mistake("out is the product, not its slope: when a grows by a little, by how much does out grow?")
    def of_the_result(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * out, g * out


@UNIT.task
class MixedGrad(MulGrad):
    """The gradient rule of an operation that nobody else has: your own `k · a · b + m · a`."""

    name = "mixed_grad"
    points = 2
    minutes = 4
    point = (2.0, 3.0, 5.0)

    def vary(self, draw: random.Random) -> None:
        self.k, self.m = draw.choice([2, 3, 4, 5]), draw.choice([6, 7, 8, 9])

    def text(self) -> str:
        return (
            f"**mixed_grad** (2 points). Your operation is `out = {self.k} * a * b + {self.m} * a`. Write "
            "`mixed_grad(g, out, a, b)`: what it passes back to a, and what to b."
        )

    def forward(self, a: Any, b: Any) -> Any:
        return self.k * a * b + self.m * a

    def solution(self) -> Any:
        return lambda g, out, a, b: (g * (self.k * b + self.m), g * self.k * a)

    @mistake("a is used twice, and only one of its two uses was heard: the other is `m · a`.")
    def one_use_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b, g * self.k * a

    @mistake("That is the rule of a · b. Yours has numbers of its own: read the task once more.")
    def of_the_plain_product(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * b, g * a
