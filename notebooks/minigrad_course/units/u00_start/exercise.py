"""Unit 00: the gradient rule of a product."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from ...compare import Difference
from ...feedback import Wrong, written
from ...tasks import ROUNDS, ByHandTask, GradientTask, mistake
from .about import UNIT

NO_DIVISION = "out / a is b, but not where a is 0. You have b itself: there is no need to divide"


class MulGrad(GradientTask):
    """`mul_grad(g, out, a, b)` returns the gradient of a and the gradient of b, for `out = a * b`."""

    name = "mul_grad"
    points = 0  # it is the same for all students; the next one is not
    minutes = 4
    outcome = "rule"
    otherwise = "let a rise by 0.01: by how much does a * b rise, and by how much y, which rises g times as fast?"
    hints = {
        "swapped": "swapped: when a rises, the product changes b times as fast, so b belongs to the gradient of a",
        "without_g": "g is missing: this is how fast the product changes, and y changes g times as fast",
        "swapped_without_g": "swapped, and g is missing: g and b are in the gradient of a",
        "value": "that is the product itself, not its slope: how does it *change* when a rises and b does not?",
        "times_out": "that is g times the product. How does the product *change* when a rises and b does not?",
        "rule_of_a_sum": "that is the rule of a sum, which passes g on unchanged. A product needs the other factor",
    }

    def forward(self, a: Any, b: Any) -> Any:
        return a * b

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield 5.0, -6.0, 3.0, -2.0
        yield 2.0, -12.0, -4.0, 3.0  # no branch on a sign is right for both
        yield from drawn(self, draw)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        said = super().check(answer, rounds)
        try:
            answer(2.0, 0.0, 0.0, 3.0)
        except ZeroDivisionError:
            raise Wrong(self.name, "it divides by 0 where a is 0", NO_DIVISION) from None
        return said

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        one = yours is not None and not isinstance(yours, tuple | list) and self._form(yours) is None
        return f"it returned {written(yours)}, not two gradients" if one else super().judge(yours, args)

    @mistake(NO_DIVISION)
    def divided(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * out / a, g * out / b


def drawn(task: GradientTask, draw: random.Random) -> Iterable[tuple[Any, ...]]:
    """Three cases of a rule of two numbers."""
    for _ in range(3):
        g, a, b = [draw.choice((-1, 1)) * draw.uniform(1, 9) for _ in range(3)]
        yield g, task.forward(a, b), a, b


@UNIT.task
class ByHand(ByHandTask):
    """How many times as fast as a does y rise?"""

    name = "gradient_of_a"
    minutes = 2
    outcome = "rule"
    rule = MulGrad
    example = "7"
    otherwise = "let a be larger by 0.01: what is a * b then? By how much has it changed, and y?"
    hints = {
        "without_g": "that is how fast the product changes. And y changes g times as fast as the product",
        "swapped": "that is for b. If a rises, the product changes b times as fast",
        "without_sign": "mind the sign: b is negative, so the product falls when a rises",
        "swapped_without_g": "if a rises, the product changes b times as fast, and y g times as fast as the product",
        "times_out": "that is g times the product itself. By how much does the product change?",
        "value": "that is the product itself. By how much does it change when a rises by 0.01?",
        "rule_of_a_sum": "that is how fast y grows with out. How fast does out grow with a?",
        "g_added": "the two are not added: b times as fast, and then g times as fast",
        "summed": "that would be a and b rising together. Here only a rises",
    }

    def vary(self, draw: random.Random) -> None:
        while True:  # until no wrong way gives the right number, or the number of another wrong way
            self.args = self.g, self.a, self.b = draw.randint(2, 6), draw.randint(2, 7), -draw.randint(2, 7)
            if self.distinct():
                return

    def text(self) -> str:
        g, a, b = self.args
        return (
            f"`out = a * b`, with a = {a} and b = {b}, so out is {a * b}. Its gradient is g = {g}: y rises {g} "
            f"times as fast as out. **How many times as fast as a does y rise?** Think of a = {a}.01: by how "
            "much does out change, and y?"
        )

    def explained(self) -> str:
        return f"a rises by 0.01, out by {self.b} · 0.01, and y by {self.g} · {self.b} · 0.01."

    @mistake("mind the sign, and g")
    def without_sign_and_g(self) -> int:
        return -self.b

    @mistake("that is by how much y changes. How many times as fast as a does it change?")
    def change(self) -> float:
        return self.g * self.b / 100


UNIT.task(MulGrad)


@UNIT.task
class MixedGrad(GradientTask):
    """The gradient rule of an operation that is yours alone: `out = k * a * b + m * a`."""

    name = "mixed_grad"
    points = 2
    minutes = 4
    outcome = "rule"
    otherwise = "let a rise by 0.01, in each of its two uses: by how much does out rise? Then b, which is used once"
    hints = {
        "without_g": "g is missing, or not everywhere: it multiplies the whole gradient of a, and that of b",
        "value": "that is out itself. The question is how many times as fast as a y rises, and how many times as b",
    }

    def vary(self, draw: random.Random) -> None:
        self.k, self.m = draw.choice([2, 3, 4, 5]), draw.choice([6, 7, 8, 9])

    def text(self) -> str:
        return (
            f"Your operation is `out = {self.k} * a * b + {self.m} * a`. Write `mixed_grad(g, out, a, b)`, which "
            "returns the gradient of a and the gradient of b. (a is used twice.)"
        )

    def forward(self, a: Any, b: Any) -> Any:
        return self.k * a * b + self.m * a

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield 2.0, self.forward(3.0, -4.0), 3.0, -4.0  # to be worked out by hand
        yield from drawn(self, draw)

    @mistake("a is used twice, and its two contributions are added: what does the single a contribute?")
    def one_use_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b, g * self.k * a

    @mistake("a is used twice: the contribution of its use in the product is missing")
    def the_other_use_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.m, g * self.k * a

    @mistake("that is the rule of a * b. Your operation has numbers of its own")
    def of_the_plain_product(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * b, g * a

    @mistake("the contributions of the two uses of a are added, not multiplied")
    def multiplied(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b * self.m, g * self.k * a

    @mistake("g multiplies the whole gradient of a, the single number too: mind the brackets")
    def brackets(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b + self.m, g * self.k * a

    @mistake("b is not in the second part of out: that part contributes nothing to b")
    def both_parts_to_both(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * (self.k * b + self.m), g * (self.k * a + self.m)

    @mistake("the slope of the second part is its number: a itself does not stay")
    def keeps_a(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * (self.k * b + self.m * a), g * self.k * a

    @mistake("the slope of the second part is its number, times g: no a")
    def keeps_a_outside(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b + self.m * a, g * self.k * a

    @mistake("two gradients: the two contributions to a are added to one number")
    def three(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b, g * self.m, g * self.k * a
