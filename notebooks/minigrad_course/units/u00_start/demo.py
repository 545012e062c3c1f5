"""Unit 00: the questions of the notebook."""

from __future__ import annotations

import re
from typing import Any

from ...feedback import Wrong
from ...tasks import Prediction, Question, mistake
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

    @mistake("that is the new value of y. How much more is it than 6?")
    def new_value(self) -> float:
        return 6.1

    @mistake("that is a new y, one per cent larger. Is it one per cent? And by how much does y rise?")
    def new_value_in_proportion(self) -> float:
        return 6.06

    @mistake("y rises that many times as fast as x. But x rises by 0.01 only")
    def ratio(self) -> float:
        return 10

    @mistake("x rises by 0.01. And a = 2 * x? And y?")
    def same_as_x(self) -> float:
        return 0.01

    @mistake("a rises by 0.02. y uses a three times: a * a + a")
    def first_line_only(self) -> float:
        return 0.02

    @mistake("three times 0.01? y uses a three times, not x, and a rises by 0.02. And a * a is not a + a")
    def three_of_x(self) -> float:
        return 0.03

    @mistake("if one factor of a * a rises by 0.02, the product rises by 0.04. But both factors rise, and there is + a")
    def one_factor(self) -> float:
        return 0.04

    @mistake(
        "one per cent of 6? y is not proportional to x. Or 0.04 for a * a, and 0.02 for + a? In a * a both factors "
        "rise, and each adds 0.04"
    )
    def in_proportion(self) -> float:
        return 0.06

    @mistake("a * a rises by 0.08. And + a?")
    def product_only(self) -> float:
        return 0.08


@UNIT.task
class Numbers(Question):
    """Which numbers stood in the box ∂a, from the first to the last?"""

    name = "numbers"
    outcome = "contributions"
    example = "[1, 2]"
    otherwise = "click on the picture and press Home, then → again and again; look only at the box ∂a"
    hints = {
        "differences": "these are the contributions. The box shows their sum so far",
        "first_only": "y uses a three times in a * a + a, so there are three numbers",
        "without_the_last": "y uses a three times in a * a + a, so there are three numbers",
        "last_only": "that is the last number. Which numbers stood in the box before it?",
        "turned": "from the first to the last, please",
    }

    def read(self, answer: Any) -> Any:
        return [answer] if isinstance(answer, int | float) else answer

    def right(self) -> list[float]:
        return [1, 3, 5]

    def explained(self) -> str:
        return "1, then 3, then 5: y uses a three times, and the contributions are added. Twice 5 is the ten."

    @mistake("each number once: at some steps no contribution comes to ∂a, and the number stays")
    def at_each_press(self) -> list[float]:
        return [1, 1, 3, 3, 5]

    @mistake("each number once: at some steps no contribution comes to ∂a, and the number stays")
    def at_each_press_to_the_end(self) -> list[float]:
        return [1, 1, 3, 3, 5, 5]

    @mistake("that is for x = 1.01. Put 1.0 back into the first cell, run it and the picture's cell, and look again")
    def where_x_has_risen(self) -> list[float]:
        return [1, 3.02, 5.04]

    @mistake("there was no 0: the box was empty. The next question is about that")
    def zero_first(self) -> list[float]:
        return [0, 1, 3, 5]

    @mistake("those are all numbers of the text. Which numbers stood in the box ∂a?")
    def everything(self) -> list[float]:
        return [1, 2, 3, 2, 5]

    @mistake("there was another number between the two")
    def without_the_middle(self) -> list[float]:
        return [1, 5]

    @mistake("10 stands in the box ∂x")
    def with_x(self) -> list[float]:
        return [1, 3, 5, 10]

    @mistake("that is ∂x, at the end. Look at the box ∂a")
    def of_x(self) -> list[float]:
        return [10]

    @mistake("that is the blue box, the value of a. Look at the orange box beside it")
    def value_of_a(self) -> list[float]:
        return [2]


@UNIT.task
class Empty(Question):
    """∂a is empty before the first contribution comes. Would it be right to show a 0 there?"""

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
        return "an empty box says nothing yet. A 0 would say that y does not change when a rises, and that is wrong."

    @mistake("0 is an answer: it says that y does not change when a rises. Is that right?")
    def zero(self) -> str:
        return "yes"


@UNIT.task
class Early(Question):
    """When ∂a is sent on at once, what does ∂x show, and what would be right?"""

    name = "early"
    outcome = "order"
    example = "1, 2"
    otherwise = "press 'begin again', click ∂y, then ∂a, and look at ∂x in the table beside the picture"
    hints = {
        "turned": "the other way round: first the number that ∂x shows, then the right one",
        "all_like_the_last":
            "10 is right. But what does ∂x show? Press 'begin again', click ∂y, then ∂a, and nothing else",
    }

    def right(self) -> tuple[float, float]:
        return 2, 10

    def explained(self) -> str:
        return "only 1 of a's 5 had come, and twice 1 was sent on. The other 4 came too late."

    @mistake("these are the numbers of a, which was sent on too early. Where to? Look at ∂x")
    def numbers_of_a(self) -> tuple[float, float]:
        return 1, 5

    @mistake("∂x shows 2. 5 is the right number for a; the right number for x is on the next line")
    def right_of_a(self) -> tuple[float, float]:
        return 2, 5


@UNIT.task
class Order(Question):
    """In which order do you click the boxes so that none turns red?"""

    name = "order"
    outcome = "order"
    example = '["y", "a"]'
    otherwise = 'each of "y", "a * a" and "a" once, in an order in which no box turns red'
    hints = {
        "first_only": "y comes first. Which boxes did you click after it?",
        "without_the_last": "now a has all of its five. Which box sends something to x?",
        "turned": "only ∂y has a number at the beginning, its 1: no other box can be first",
    }

    def read(self, answer: Any) -> Any:
        if isinstance(answer, set):
            raise Wrong(self.name, "braces, { }, keep no order", 'in brackets: ["y", ...]')
        names = list(answer) if isinstance(answer, list | tuple) else str(answer).split(",")
        if not all(isinstance(each, str) for each in names):
            hint = 'each name in quotation marks: ["y", "a"]. Without them, y is its number'
            raise Wrong(self.name, "these are not names", hint)
        names = [re.sub("[∂() ]", "", each.lower()).replace("·", "*").replace("multiply", "a*a") for each in names]
        if names == ["ya*aa"]:
            raise Wrong(self.name, "the names stand together", 'a comma after each: ["y", ...]')
        return names[:-1] if names[-1:] == ["x"] else names  # a click on x sends nothing

    def right(self) -> list[str]:
        return ["y", "a*a", "a"]

    def explained(self) -> str:
        return "it is the only order: a waits for a * a, and a * a waits for y. Order matters."

    @mistake("a is sent on too early: only one of its five has come. Which box still has something for a?")
    def impatient(self) -> list[str]:
        return ["y", "a", "a*a"]

    @mistake("a is sent on too early, and a * a never: four of a's five are missing")
    def short(self) -> list[str]:
        return ["y", "a"]
