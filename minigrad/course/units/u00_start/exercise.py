"""Unit 00: the rule of a product."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from ...feedback import Wrong, written
from ...unit import ROUNDS, GradientTask, ValueTask, mistake
from .about import UNIT

NO_DIVISION = "out / a is b, but not where a is 0. You have b itself: there is no need to divide"


@UNIT.task
class ByHand(ValueTask):
    """How many times as fast as a does y rise?"""

    name = "gradient_of_a"
    minutes = 2
    outcome = "rule"
    example = "7"
    otherwise = "let a be larger by 0.01: what is a * b then? By how much has it changed, and y?"

    def vary(self, draw: random.Random) -> None:
        while True:  # until no wrong way gives the right number, or that of another wrong way
            self.g, self.a, self.b = draw.randint(2, 6), draw.randint(2, 7), -draw.randint(2, 7)
            answers = [self.right(), *[known.program(self) for known in self.mistakes]]
            if len(set(answers)) == len(answers):
                return

    def text(self) -> str:
        g, a, b = self.g, self.a, self.b
        return (
            f"`out = a * b`, with a = {a} and b = {b}, so out is {a * b}. Its gradient g = {g} has come: y rises {g} "
            f"times as fast as out does. **How many times as fast as a does y rise?** Think of a = {a}.01: by how "
            "much does out change, and y?"
        )

    def right(self) -> int:
        return self.g * self.b

    def explained(self) -> str:
        return f"a rises by 0.01, out by {self.b} · 0.01, and y by {self.g} · {self.b} · 0.01."

    @mistake("that is how fast the product changes. And y changes g times as fast as the product")
    def without_g(self) -> int:
        return self.b

    @mistake("that is for b. If a rises, the product changes b times as fast")
    def of_b(self) -> int:
        return self.g * self.a

    @mistake("mind the sign: b is negative, so when a rises, the product falls")
    def without_sign(self) -> int:
        return -self.g * self.b

    @mistake("mind the sign, and g")
    def without_sign_and_g(self) -> int:
        return -self.b

    @mistake("if a rises, the product changes b times as fast, and y g times as fast as that")
    def the_input(self) -> int:
        return self.a

    @mistake("that is g times the product itself. By how much does the product change?")
    def value(self) -> int:
        return self.g * self.a * self.b

    @mistake("that is the product itself. By how much does it change when a rises by 0.01?")
    def product(self) -> int:
        return self.a * self.b

    @mistake("that is how fast y rises as out does. And out, as a does?")
    def passed_on(self) -> int:
        return self.g

    @mistake("the two are not added: b times as fast, and g times as fast as that")
    def added(self) -> int:
        return self.g + self.b

    @mistake("that is by how much y changes. How many times as fast as a does it change?")
    def change(self) -> float:
        return self.g * self.b / 100

    @mistake("that would be a and b rising together. Here it is a alone")
    def both(self) -> int:
        return self.g * (self.a + self.b)


@UNIT.task
class MulGrad(GradientTask):
    """`mul_grad(g, out, a, b)` returns the gradient of a and that of b, for `out = a * b`."""

    name = "mul_grad"
    points = 0  # it is the same for everybody; the next one is not
    minutes = 4
    outcome = "rule"
    otherwise = "let a rise by 0.01: by how much does a * b rise, and by how much y, which rises g times as fast?"

    def forward(self, a: Any, b: Any) -> Any:
        return a * b

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield 5.0, -6.0, 3.0, -2.0
        yield 2.0, -12.0, -4.0, 3.0  # no branch on a sign is right for both
        for _ in range(3):
            g, a, b = [draw.choice((-1, 1)) * draw.uniform(1, 9) for _ in range(3)]
            yield g, a * b, a, b

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        said = super().check(answer, rounds)
        try:
            answer(2.0, 0.0, 0.0, 3.0)
        except ZeroDivisionError:
            raise Wrong(self.name, "it divides by 0 where a is 0", NO_DIVISION) from None
        return said

    def judge(self, yours: Any, args: tuple[Any, ...]) -> str | None:
        one = yours is not None and not isinstance(yours, tuple | list) and self._form(yours) is None
        return f"it returned {written(yours)}, and not two gradients" if one else super().judge(yours, args)

    @mistake("swapped: when a rises, the product changes b times as fast, so b belongs to the gradient of a")
    def swapped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * a, g * b

    @mistake("g is forgotten: this is how fast the product changes, and y changes g times as fast")
    def without_g(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return b, a

    @mistake("swapped, and g is forgotten: in the gradient of a are g and b")
    def swapped_without_g(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return a, b

    @mistake("you added the two. Each factor has a gradient of its own: return both, with a comma between them")
    def summed(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * b + g * a

    @mistake("both are the sum. What a does belongs to the gradient of a alone, and so for b")
    def summed_twice(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * (a + b), g * (a + b)

    @mistake("that is the gradient of a. Return that of b too, after a comma")
    def first_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * b

    @mistake("that is the gradient of b. Return that of a before it, with a comma between")
    def second_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * a

    @mistake("that is the product itself, and not its slope: how does it *change*, when a rises and b does not?")
    def product(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return a * b

    @mistake("a function gives back only what stands after `return`: to print it, or to assign it, is not enough")
    def nothing_returned(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        _ = g * b, g * a

    @mistake("that is the product, g times. How does the product *change*, when a rises and b does not?")
    def times_out(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * out, g * out

    @mistake("added where it must be multiplied: b times as fast, and g times as fast as that")
    def g_added(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g + b, g + a

    @mistake("that is the rule of a sum, which passes g on as it is. In a product, the other factor comes in")
    def rule_of_a_sum(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g, g

    @mistake("the second line uses a g that the first has changed: compute both before you give g another value")
    def g_overwritten(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        g = g * b
        return g, g * a

    @mistake("the second line uses an a that the first has changed: give what you compute another name")
    def a_overwritten(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        a = g * b
        return a, g * a

    @mistake("that is one gradient, in a bracket. After the comma comes that of b, in the same line")
    def first_only_and_a_comma(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return (g * b,)

    @mistake("that is rounded: a gradient is any number. Return it as it is")
    def rounded(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return round(g * b), round(g * a)

    @mistake("that is rounded: a gradient is any number. Return it as it is")
    def cut(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return int(g * b), int(g * a)

    @mistake("this fits 5, 3 and −2 only. Use the names g, a and b: they stand for whatever comes")
    def numbers_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return -10, 15

    @mistake(NO_DIVISION)
    def divided(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * out / a, g * out / b


@UNIT.task
class MixedGrad(GradientTask):
    """The gradient rule of an operation that is yours alone: `out = k * a * b + m * a`."""

    name = "mixed_grad"
    points = 2
    minutes = 4
    outcome = "rule"
    otherwise = "let a rise by 0.01, in each of its two uses: by how much does out rise? Then b, which is used once"

    def vary(self, draw: random.Random) -> None:
        self.k, self.m = draw.choice([2, 3, 4, 5]), draw.choice([6, 7, 8, 9])

    def text(self) -> str:
        m = f"+ {self.m}" if self.m > 0 else f"- {-self.m}"
        return (
            f"Your operation is `out = {self.k} * a * b {m} * a`. Write `mixed_grad(g, out, a, b)`, which returns the "
            "gradient of a and that of b. (a is used twice.)"
        )

    def forward(self, a: Any, b: Any) -> Any:
        return self.k * a * b + self.m * a

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield 2.0, self.forward(3.0, -4.0), 3.0, -4.0  # to be worked out by hand
        for _ in range(3):
            g, a, b = [draw.choice((-1, 1)) * draw.uniform(1, 9) for _ in range(3)]
            yield g, self.forward(a, b), a, b

    @mistake("a is used twice, and what comes from its two uses is added: the other use is that by itself")
    def one_use_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b, g * self.k * a

    @mistake("a is used twice: what comes from its use in the product is missing")
    def the_other_use_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.m, g * self.k * a

    @mistake("that is the rule of a * b. Yours has numbers of its own")
    def of_the_plain_product(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * b, g * a

    @mistake("what comes from the two uses of a is added, not multiplied")
    def multiplied(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b * self.m, g * self.k * a

    @mistake("g is forgotten, or not everywhere: it multiplies all that comes to a, and all that comes to b")
    def without_g(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return self.k * b + self.m, self.k * a

    @mistake("g multiplies everything that comes to a, the single number too: mind the brackets")
    def brackets(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b + self.m, g * self.k * a

    @mistake("b does not stand in the second part of out: nothing comes to b from there")
    def both_parts_to_both(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * (self.k * b + self.m), g * (self.k * a + self.m)

    @mistake("swapped: the gradient of a is returned first, then that of b")
    def swapped(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * a, g * (self.k * b + self.m)

    @mistake("the second part rises as many times as fast as a as its number says: a itself does not stay")
    def keeps_a(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * (self.k * b + self.m * a), g * self.k * a

    @mistake("the second part rises as many times as fast as a as its number says, and g times that: no a")
    def keeps_a_outside(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b + self.m * a, g * self.k * a

    @mistake("that is out itself. What is asked is how many times as fast as a y rises, and as fast as b")
    def value(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return out

    @mistake("that is the gradient of a. Return that of b too, after a comma in the same line")
    def first_only(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * (self.k * b + self.m)

    @mistake("two gradients: what comes to a from its two uses is added to one number")
    def three(self, g: Any, out: Any, a: Any, b: Any) -> Any:
        return g * self.k * b, g * self.m, g * self.k * a
