"""Unit 06: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, mistake
from .about import UNIT


@UNIT.task
class Paths(Prediction):
    """Thirty times y = y + y: how many contributions does backward() compute?"""

    name = "paths"
    outcome = "why"
    example = "1000"
    otherwise = "there are 30 additions, each visited once. To how many inputs does an addition pass something back?"

    def right(self) -> int:
        return 60

    def explained(self) -> str:
        return "two for each addition: it waits for both contributions, adds them, and passes one number on."

    @mistake("that is the number of paths. But the contributions to a value are added, and one number is passed on")
    def every_path(self) -> int:
        return 2**30

    @mistake(
        "that is nearly the number of paths. But the contributions to a value are added, and one number is passed on"
    )
    def every_path_and_back(self) -> int:
        return 2**31

    @mistake("each of the 30 additions passes back to both of its inputs, which are the same value")
    def one_each(self) -> int:
        return 30

    @mistake("the backward pass begins with the seed. The seed is given: it is not a computed contribution")
    def with_seed(self) -> int:
        return 61

    @mistake("there are 31 values, but the 30 additions pass gradients back, each to both inputs")
    def values(self) -> int:
        return 31


@UNIT.task
class TwoWays(Prediction):
    """The impatient engine on y = a * a + a, and on y = a + a * a: what is ∂x?"""

    name = "two_ways"
    outcome = "order"
    example = "5, 5"
    otherwise = "it visits inputs from left to right. In a + a * a, what has come to a when a is visited?"
    hints = {
        "turned": "the other way round: in which of the two is a on the left, and visited before a * a?",
        "all_like_the_first": "a + a * a is the same number, but in another order: a is on the left, and visited first",
        "all_like_the_last":
            "in a * a + a the product is on the left: it is visited first, and a after all of its three contributions",
    }

    def right(self) -> tuple[float, float]:
        return 10, 2

    def explained(self) -> str:
        return "on the first it is right by luck: a * a is on the left. An engine must not depend on luck."

    @mistake("close: when a is visited too early, only the 1 of the sum has come, and x gets twice 1")
    def accumulates_later(self) -> tuple[float, float]:
        return 10, 5


@UNIT.task
class Kept(Prediction):
    """100 operations on 1,000 floats (4 kB each time): how many kB are kept for the backward pass?"""

    name = "kept"
    outcome = "kept"
    example = "[400, 400, 400]"
    otherwise = "one number for each: h + 1, tanh(h), relu(h). Which values does the gradient rule of each read?"

    def right(self) -> list[float]:
        return [0, 400, 100]

    def explained(self) -> str:
        return "the rule of a sum reads nothing, that of tanh its output; relu reads where h > 0: a byte for each."

    @mistake("a sum passes its gradient on unchanged. What would it need h for?")
    def everything(self) -> list[float]:
        return [400, 400, 400]

    @mistake("something is kept: tanh passes back g · (1 − out²). And relu?")
    def nothing(self) -> list[float]:
        return [0, 0, 0]

    @mistake("the first two are right. For relu, is h itself needed, or something that takes less room?")
    def floats_for_relu(self) -> list[float]:
        return [0, 400, 400]

    @mistake("a bit for each would be enough, but NumPy's truth values take a byte")
    def bits_for_relu(self) -> list[float]:
        return [0, 400, 12.5]

    @mistake("tanh passes back g · (1 − out²): the output is enough, so the input is not kept")
    def inputs_too(self) -> list[float]:
        return [0, 800, 400]

    @mistake("tanh passes back g · (1 − out²): the output is enough, so the input is not kept")
    def inputs_of_both(self) -> list[float]:
        return [0, 800, 800]

    @mistake("relu passes back g where h > 0 and 0 elsewhere: it must remember where")
    def nothing_for_relu(self) -> list[float]:
        return [0, 400, 0]

    @mistake("the backward pass needs the values one after the other, so all of them are kept, not only the last one")
    def one_operation_only(self) -> list[float]:
        return [0, 4, 1]


@UNIT.task
class Again(Prediction):
    """For which of the three can backward() be called a second time?"""

    name = "again"
    outcome = "kept"
    example = '["tanh"]'
    otherwise = 'a list of some of "add", "tanh" and "relu"'

    def read(self, answer: Any) -> Any:
        if isinstance(answer, str):
            answer = [answer]
        names = answer if isinstance(answer, list | tuple | set) else []
        return sorted(str(each).strip().lower() for each in names)

    def right(self) -> list[str]:
        return ["add"]

    def explained(self) -> str:
        return "the saved values are freed after the first backward pass; additions had saved nothing."

    @mistake("the saved values are freed after the first time, to give the memory back. Which one saved nothing?")
    def all_of_them(self) -> list[str]:
        return ["add", "relu", "tanh"]

    @mistake("relu had saved something too, if only a byte for each: it is freed after the first time")
    def add_and_relu(self) -> list[str]:
        return ["add", "relu"]

    @mistake("the values that tanh saved are freed after the first time. Which one saved nothing?")
    def tanh_only(self) -> list[str]:
        return ["tanh"]

    @mistake("both had saved something, which is freed after the first time. Which one saved nothing?")
    def those_that_saved(self) -> list[str]:
        return ["relu", "tanh"]

    @mistake("where nothing was saved, nothing is missing the second time")
    def none(self) -> list[str]:
        return []


@UNIT.task
class FromOnes(Prediction):
    """y = W @ x has two numbers. y.backward(mg.ones(2)): what is x.grad?"""

    name = "from_ones"
    outcome = "seeds"
    example = "[1, 2, 3]"
    otherwise = "with the seed [1, 0] x.grad is the first row of W, with [0, 1] the second. And with [1, 1]?"

    def right(self) -> list[float]:
        return [5, 7, 9]

    def explained(self) -> str:
        return "the rows of W, added: the gradient of y[0] + y[1]. A backward pass differentiates one number."

    @mistake("that has the shape of W. x.grad has the shape of x, three numbers")
    def jacobian(self) -> list[list[float]]:
        return [[1, 2, 3], [4, 5, 6]]

    @mistake("that is the first row, the gradient of y[0] alone. The seed has a 1 for y[1] too")
    def first(self) -> list[float]:
        return [1, 2, 3]

    @mistake("that is the second row, the gradient of y[1] alone. The seed has a 1 for y[0] too")
    def second(self) -> list[float]:
        return [4, 5, 6]

    @mistake("these are the values of y at x = [1, 1, 1]; x.grad has three numbers")
    def values(self) -> list[float]:
        return [6, 15]

    @mistake("x.grad was cleared before: the gradient from the seed [1, 0] is not in it")
    def not_cleared(self) -> list[float]:
        return [6, 9, 12]

    @mistake("added, not averaged")
    def mean(self) -> list[float]:
        return [2.5, 3.5, 4.5]


@UNIT.task
class Walks(Prediction):
    """2,410 weights, 10 scores, one loss: how many backward passes for the loss, and how many for all scores?"""

    name = "walks"
    outcome = "why"
    example = "3, 3"
    otherwise = "a backward pass fixes one number, and finds its derivative by every earlier value. How many are fixed?"
    hints = {
        "turned": "the other way round: first the loss, then the ten scores",
        "all_like_the_first": "a backward pass fixes one number. Each of the ten scores has to be fixed once",
        "all_like_the_last": "the loss is one number, however many scores it is computed from",
    }

    def right(self) -> tuple[int, int]:
        return 1, 10

    def explained(self) -> str:
        return "one for each fixed number, however many weights there are. Finite differences would take 2,411 runs."

    @mistake("a backward pass does not go to one weight: it passes all of them. The output has to be fixed")
    def one_per_weight(self) -> tuple[int, int]:
        return 2410, 24100

    @mistake("the number of weights does not count: a backward pass passes all. How many numbers are fixed?")
    def of_the_weights(self) -> tuple[int, int]:
        return 1, 2410
