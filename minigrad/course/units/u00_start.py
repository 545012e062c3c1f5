"""Unit 00: one number, five contributions, and the rule of a product."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from ..feedback import Wrong, written
from ..unit import ROUNDS, GradientTask, Misconception, Prediction, Question, Seed, Unit, ValueTask, mistake

NO_DIVISION = "out / a is b, but not where a is 0. You have b itself: there is no need to divide"

UNIT = Unit(
    number=0,
    name="start",
    title="Start: one number, one picture",
    question="x becomes 1.01. By about how much does y = a * a + a rise, where a = 2 * x?",
    minutes=15,
    outcomes={
        "contributions": "tell where a gradient comes from: which contributions came, and that they are added",
        "order": "say in which order the values send on, and what goes wrong in another",
        "rule": "write the gradient rule of a product, and explain its three arguments",
    },
    misconceptions=(
        Misconception(
            "One per cent more x makes one per cent more y (here 0.06).",
            "D. De Bock, W. Van Dooren, D. Janssens, L. Verschaffel: Improper use of linear reasoning. Educational "
            "Studies in Mathematics 50 (2002), 311-334. https://doi.org/10.1023/A:1021205413749",
            "rise",
        ),
        Misconception(
            "A gradient that has not been computed yet is 0.",
            "A picture drawn before backward() showed zeros, and people asked what was missing: "
            "https://github.com/karpathy/nn-zero-to-hero/issues/40, "
            "https://github.com/karpathy/nn-zero-to-hero/pull/80",
            "empty",
        ),
        Misconception(
            "Each value can send on as soon as something has come to it.",
            "https://github.com/karpathy/micrograd/issues/68, https://github.com/karpathy/micrograd/issues/21",
            "early",
        ),
    ),
    seeds=(
        Seed("001: automatic differentiation through the chain rule", "numbers"),
        Seed("001: an automatic differentiation example", "order"),
        Seed("001: a gradient function takes the inputs, the output and the gradient of the output", "mul_grad"),
        Seed("002: compute ∂ℓ/∂y for each value y by going backward through the computation", "order"),
    ),
)


# Questions of the notebook --------------------------------------------------------------------------------------------


@UNIT.task
class Rise(Prediction):
    """x becomes 1.01. By about how much does y rise?"""

    name = "rise"
    outcome = "contributions"
    tolerance = 0.06
    example = "0.01"
    otherwise = "put 1.01 in place of 1.0 in the first cell, run it, see what y is then, and put 1.0 back"

    def right(self) -> float:
        return 0.1

    def explained(self) -> str:
        return "by 0.1: ten times as much as x."

    @mistake("that is what y is then. How much more is it than 6?")
    def new_value(self) -> float:
        return 6.1

    @mistake("that is a new y, larger by one per cent. Is it one per cent? And how much does y rise?")
    def new_value_in_proportion(self) -> float:
        return 6.06

    @mistake("that is how many times as fast as x it rises; x rises by 0.01 only")
    def ratio(self) -> float:
        return 10

    @mistake("that is by how much x rises. And a = 2 * x?")
    def same_as_x(self) -> float:
        return 0.01

    @mistake("that is by how much a rises. y is made of a three times over: a * a + a")
    def first_line_only(self) -> float:
        return 0.02

    @mistake("three times 0.01? It is a that is used three times, and a rises by 0.02; in a * a there is more to it")
    def three_of_x(self) -> float:
        return 0.03

    @mistake("in a * a, one a rises by 0.02 beside another of 2: that makes 0.04. But both rise, and there is + a")
    def one_factor(self) -> float:
        return 0.04

    @mistake(
        "one per cent of 6? y is not proportional to x. Or 0.04 for a * a, and 0.02 for + a? In a * a both factors "
        "rise, and each makes 0.04"
    )
    def in_proportion(self) -> float:
        return 0.06

    @mistake("that is the rise of a * a. And + a?")
    def product_only(self) -> float:
        return 0.08


@UNIT.task
class Numbers(Question):
    """What stood in the box ∂ a, from the first number to the last?"""

    name = "numbers"
    outcome = "contributions"
    example = "[1, 2]"
    otherwise = "click on the picture and press Home, then → again and again; look at nothing but the box ∂ a"

    def read(self, answer: Any) -> Any:
        return [answer] if isinstance(answer, int | float) else answer

    def right(self) -> list[float]:
        return [1, 3, 5]

    def explained(self) -> str:
        return "1, then 3, then 5: a is used three times, and what comes is added. Twice 5 is the ten."

    @mistake("each number once: at some presses nothing comes to ∂ a, and it stays as it is")
    def at_each_press(self) -> list[float]:
        return [1, 1, 3, 3, 5]

    @mistake("each number once: at some presses nothing comes to ∂ a, and it stays as it is")
    def at_each_press_to_the_end(self) -> list[float]:
        return [1, 1, 3, 3, 5, 5]

    @mistake("that is so where x is 1.01. Put 1.0 back into the first cell, run it and the picture's, and look again")
    def where_x_has_risen(self) -> list[float]:
        return [1, 3.02, 5.04]

    @mistake("there was no 0: the box was empty. That is what the next question is about")
    def zero_first(self) -> list[float]:
        return [0, 1, 3, 5]

    @mistake("that is what came. In the box stands what came before and what comes, added")
    def what_came(self) -> list[float]:
        return [1, 2, 2]

    @mistake("that is every number that was said. What stood in the box ∂ a itself?")
    def everything(self) -> list[float]:
        return [1, 2, 3, 2, 5]

    @mistake("a is used three times in a * a + a, so three numbers")
    def without_the_last(self) -> list[float]:
        return [1, 3]

    @mistake("there was another in between")
    def without_the_middle(self) -> list[float]:
        return [1, 5]

    @mistake("that is the last. What stood in the box before?")
    def last_only(self) -> list[float]:
        return [5]

    @mistake("10 stands in the box ∂ x")
    def with_x(self) -> list[float]:
        return [1, 3, 5, 10]

    @mistake("that is ∂ x, at the end. Look at the box ∂ a")
    def of_x(self) -> list[float]:
        return [10]

    @mistake("that is the blue box, the value of a. Look at the orange one beside it")
    def value_of_a(self) -> list[float]:
        return [2]

    @mistake("from the first to the last, please")
    def backwards(self) -> list[float]:
        return [5, 3, 1]


@UNIT.task
class Empty(Question):
    """∂ a is empty before anything has come to it. Would it be right to show a 0 there?"""

    name = "empty"
    outcome = "contributions"
    example = '"yes"'
    otherwise = 'write "yes" or "no", with the quotation marks'

    def read(self, answer: Any) -> Any:
        if isinstance(answer, bool):
            return "yes" if answer else "no"
        if not isinstance(answer, str):
            return answer
        said = answer.strip().lower().rstrip(".!")
        return {"y": "yes", "n": "no"}.get(said, said.partition(",")[0])

    def right(self) -> str:
        return "no"

    def explained(self) -> str:
        return "empty says nothing yet. A 0 would say that y stays as it is when a rises, and that is not so."

    @mistake("0 is an answer: it says that y stays as it is when a rises. Does it?")
    def zero(self) -> str:
        return "yes"


@UNIT.task
class Early(Question):
    """When ∂ a is sent on at once, what does ∂ x show, and what would be right?"""

    name = "early"
    outcome = "order"
    example = "1, 2"
    otherwise = "press 'begin again', click ∂ y, then ∂ a, and look at ∂ x in the table beside the picture"

    def right(self) -> tuple[float, float]:
        return 2, 10

    def explained(self) -> str:
        return "of a's five only one had come, and twice that was sent on. The other four came too late."

    @mistake("the other way round: first what it shows, then what is right")
    def turned(self) -> tuple[float, float]:
        return 10, 2

    @mistake("these are the numbers of a, which was sent too early. Where was it sent? Look at ∂ x")
    def those_of_a(self) -> tuple[float, float]:
        return 1, 5

    @mistake("2 is what it shows. 5 is what should have come to a; what should have come to x is on the next line")
    def right_of_a(self) -> tuple[float, float]:
        return 2, 5

    @mistake("10 is right. But what does it show? Press 'begin again', click ∂ y, then ∂ a, and nothing else")
    def nothing_wrong(self) -> tuple[float, float]:
        return 10, 10


@UNIT.task
class Order(Question):
    """In which order are the boxes sent on, so that nothing turns red?"""

    name = "order"
    outcome = "order"
    example = '["y", "a"]'
    otherwise = 'each of "y", "multiply" and "a" once, in an order in which nothing turns red'

    def read(self, answer: Any) -> Any:
        if isinstance(answer, set):
            raise Wrong(self.name, "braces, { }, keep no order", 'in brackets: ["y", ...]')
        names = list(answer) if isinstance(answer, list | tuple) else str(answer).split(",")
        if not all(isinstance(each, str) for each in names):
            hint = 'each name in quotation marks: ["y", "a"]. Without them, y is its number'
            raise Wrong(self.name, "these are not names", hint)
        names = [each.replace("∂", "").strip().lower() for each in names]
        if names == ["ymultiplya"]:
            raise Wrong(self.name, "the names stand together", 'a comma after each: ["y", ...]')
        return names[:-1] if names[-1:] == ["x"] else names  # clicking x sends nothing

    def right(self) -> list[str]:
        return ["y", "multiply", "a"]

    def explained(self) -> str:
        return "it is the only one: a waits for a * a, and a * a for y. Order matters."

    @mistake("y comes first. Which boxes did you click after it?")
    def beginning(self) -> list[str]:
        return ["y"]

    @mistake("a is sent too early: one of its five has come. Who still has something for it?")
    def impatient(self) -> list[str]:
        return ["y", "a", "multiply"]

    @mistake("a is sent too early, and a * a never: four of a's five are missing")
    def short(self) -> list[str]:
        return ["y", "a"]

    @mistake("now a has all of its five. Who sends to x?")
    def unfinished(self) -> list[str]:
        return ["y", "multiply"]

    @mistake("only ∂ y has something at the beginning, its 1: nothing else can be first")
    def forward(self) -> list[str]:
        return ["a", "multiply", "y"]


# The exercise ---------------------------------------------------------------------------------------------------------


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
