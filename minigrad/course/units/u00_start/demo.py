"""Unit 00: what the notebook asks."""

from __future__ import annotations

from typing import Any

from ...feedback import Wrong
from ...unit import Prediction, Question, mistake
from .about import UNIT


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
