"""Unit 04: the questions of the notebook."""

from __future__ import annotations

from itertools import permutations
from typing import Any, ClassVar

from ...boards import listing, runs
from ...feedback import Misused, written
from ...graphs import Graph, disorder
from ...tasks import Prediction, mistake
from .about import UNIT
from .graph_tasks import OrderTask


class Choice(Prediction):
    """Some of several things, in any order, as a list of texts; a text with commas is read too."""

    mistakes = ()
    among: ClassVar[tuple[str, ...]]

    def read(self, answer: Any) -> list[str]:
        chosen = answer.replace(" and ", ",").split(",") if isinstance(answer, str) else answer
        if not isinstance(chosen, list | tuple | set) or not all(isinstance(each, str) for each in chosen):
            raise Misused(self.name, f"your answer {written(answer)} is not a list of texts", f"like {self.example}")
        names = [each.strip(" .") for each in chosen]
        found = {each.lower() for each in names} - {"none", "nothing", ""}
        strange = [each for each in names if each.lower() in found - {known.lower() for known in self.among}]
        if strange:
            hint = f"some of {', '.join(self.among)}; [] for none"
            raise Misused(self.name, f"{strange[0]!r} is not one of them", hint)
        return [each for each in self.among if each.lower() in found]


@UNIT.task
class InTheGraph(Choice):
    """A program has a `def`, a `for` and an `if`. Which of the three are in its graph?"""

    name = "in_the_graph"
    outcome = "express"
    example = '["for", "if"]'
    among = ("def", "for", "if")

    def right(self) -> list[str]:
        return []

    def explained(self) -> str:
        return "none. The graph holds the operations that ran, and Python's own words are not operations."

    @mistake("Python went through the loop, and the library saw only the operations in it, one after the other")
    def loop(self) -> list[str]:
        return ["for"]

    @mistake("Python decided, and went one way. The library saw only the operations on this way")
    def branch(self) -> list[str]:
        return ["if"]

    @mistake("Python called the function, and the library saw only the operations in it")
    def function(self) -> list[str]:
        return ["def"]

    @mistake("Python reads them, and the library sees only the operations that Python reaches")
    def all_three(self) -> list[str]:
        return ["def", "for", "if"]

    @mistake("the function is gone, right. But who goes round the loop, and who decides: Python or the library?")
    def both(self) -> list[str]:
        return ["for", "if"]

    @mistake("right about the `if`. Python goes round the loop and calls the function too")
    def without_branch(self) -> list[str]:
        return ["def", "for"]

    @mistake("right about the loop. Python calls the function and decides the `if` too")
    def without_loop(self) -> list[str]:
        return ["def", "if"]


@UNIT.task
class Nodes(Prediction):
    """How many operations are in the graph of program(2.0)?"""

    name = "nodes"
    outcome = "express"
    example = "10"
    otherwise = "go through the program as Python does: which operation runs first, which next?"

    def right(self) -> int:
        return 5

    def explained(self) -> str:
        return "two in each of two rounds, and h * h. x and w are nodes too: values that no operation made."

    @mistake("those are the operations that are written. Two of them run twice, and one does not run")
    def as_written(self) -> int:
        return 4

    @mistake("the two operations in the loop run once for each round, and there are two rounds")
    def loop_once(self) -> int:
        return 3

    @mistake("one of the two branches runs. The other one leaves nothing")
    def both_branches(self) -> int:
        return 6

    @mistake("with x and w there are seven nodes. Only five of them are operations")
    def with_leaves(self) -> int:
        return 7

    @mistake("in each of the two rounds, two operations run. And the branch?")
    def rounds(self) -> int:
        return 2


@UNIT.task
class Arrows(Prediction):
    """`y = x`, then `y = y * y`, then `y = y + y`. How many arrows has the graph?"""

    name = "arrows"
    outcome = "names"
    example = "10"
    otherwise = "draw a box for each operation. Each has two inputs: where does each input come from?"

    def right(self) -> int:
        return 4

    def explained(self) -> str:
        return "two operations with two inputs each. y = x is not an operation: one more name for the same value."

    @mistake("each operation has two inputs. That both are the same value does not make one of them")
    def one_each(self) -> int:
        return 2

    @mistake("y = x computes nothing, so it has no node and no arrow: it gives the value a second name")
    def with_the_name(self) -> int:
        return 5

    @mistake("y = x computes nothing, so it has no arrow. And both operations have two inputs")
    def one_each_and_the_name(self) -> int:
        return 3

    @mistake("no arrow leads back. y * y makes a new value, and the name y moves on to it")
    def back_to_itself(self) -> int:
        return 6

    @mistake("two operations run, y * y and y + y. Each has two inputs, an arrow for each")
    def one(self) -> int:
        return 1


A_TO_E = ("B", "C", "D", "E")


@UNIT.task
class Same(Choice):
    """Which of the programs B, C, D and E have the same graph as A?"""

    name = "same"
    outcome = "equal"
    example = '["D", "E"]'
    among = A_TO_E
    otherwise = "for each program: which operations run, on which values? Names and lines do not count"

    def given(self) -> dict[str, Any]:
        return {"listing": listing}

    def right(self) -> list[str]:
        return ["B", "E"]

    def explained(self) -> str:
        return "B differs in names and lines, and E computes a value that y does not need. C and D differ in edges."

    @mistake("all five print the same number. But C computes w * x + b twice, and D has x on the left")
    def all_four(self) -> list[str]:
        return ["B", "C", "D", "E"]

    @mistake("C computes w * x + b twice: four operations come before the product, in A only two")
    def with_c(self) -> list[str]:
        return ["B", "C", "E"]

    @mistake("in D, x is the left input, and w the right one. The number is the same, the edges are not")
    def with_d(self) -> list[str]:
        return ["B", "D", "E"]

    @mistake("E computes one value more. Does y need it? The graph of y is what y is computed from")
    def only_b(self) -> list[str]:
        return ["B"]

    @mistake("a loop and a function leave only their operations. Which ones, in B?")
    def only_e(self) -> list[str]:
        return ["E"]

    @mistake("C computes w * x + b twice, and in D the inputs are swapped. Does y need what E computes in addition?")
    def without_e(self) -> list[str]:
        return ["B", "C", "D"]

    @mistake("in D the inputs are swapped. And E: does y need what E computes in addition?")
    def b_and_d(self) -> list[str]:
        return ["B", "D"]

    @mistake("C computes w * x + b twice. And E: does y need what E computes in addition?")
    def b_and_c(self) -> list[str]:
        return ["B", "C"]

    @mistake("names, functions and loops leave no trace: two of the four are the same")
    def none(self) -> list[str]:
        return []


@UNIT.task
class Graphs(Prediction):
    """f has one `if`. It runs for eleven values of x. How many different graphs do the runs leave?"""

    name = "graphs"
    outcome = "runs"
    example = "5"
    otherwise = "each run leaves a graph. When do two runs leave the same operations and arrows?"

    def given(self) -> dict[str, Any]:
        return {"runs": runs}

    def right(self) -> int:
        return 2

    def explained(self) -> str:
        return "one for each way through the `if`. The values differ in each run, and values are not part of a graph."

    @mistake("one program, but two ways through it. A run leaves the operations of the way that it took")
    def one(self) -> int:
        return 1

    @mistake("eleven graphs, but many of them are equal: x = 1 and x = 2 run the same operations")
    def each(self) -> int:
        return 11

    @mistake("0 is not greater than 0: x = 0 takes the second way, like the negative numbers")
    def zero_apart(self) -> int:
        return 3

    @mistake("five runs go through the `if`, but they leave equal graphs. How many ways are there?")
    def positive_runs(self) -> int:
        return 5

    @mistake("the five runs with x > 0 leave equal graphs. And the other six?")
    def other_runs(self) -> int:
        return 6


@UNIT.task
class KeptNodes(Prediction):
    """After 100 rounds: how many operations can be reached from `total`?"""

    name = "kept_nodes"
    outcome = "names"
    example = "10"
    otherwise = "three operations in each round. Begin at total, and go back along the arrows: where do you end?"

    def right(self) -> int:
        return 300

    def explained(self) -> str:
        return "all of them: each sum has the sum before it as an input, and the loss of its round."

    @mistake("the names h, loss and total move on. The nodes stay: the newest sum has the sum before it as an input")
    def last_round(self) -> int:
        return 3

    @mistake("the newest sum has two inputs, which have inputs themselves: follow the arrows to the end")
    def last_sum(self) -> int:
        return 1

    @mistake("these are the sums. Each of them also has a loss as an input, which is made by two operations")
    def sums(self) -> int:
        return 100

    @mistake("each loss is made by two operations, h and h * h. Count the sums, too")
    def losses(self) -> int:
        return 200

    @mistake("you count w and x too. They are nodes, but no operation made them")
    def with_leaves(self) -> int:
        return 302

    @mistake("the 0.0 at the start is a number, and no operation made it")
    def with_the_start(self) -> int:
        return 301

    @mistake("0.0 + loss is an operation too, so the first round has three like all the others")
    def without_the_first_sum(self) -> int:
        return 299

    @mistake("each round has one product w * x, one product h * h, and one sum")
    def one_sum(self) -> int:
        return 201


@UNIT.task
class AnOrder(OrderTask):
    """In which order do you click the boxes so that none turns red?"""

    name = "an_order"
    points = 0
    minutes = 2
    strict = False
    outcome = "order"
    example = '["a", "b", "y"]'
    otherwise = "a box turns red where one of its inputs has no value yet. Which boxes have all inputs at the start?"
    values: ClassVar[dict[str, float]] = {"x": 4.0}
    GRAPH: ClassVar[Graph] = {
        "a": ("multiply", "x", 2), "d": ("add", "x", 3), "c": ("multiply", "a", "d"), "b": ("subtract", "d", "x"),
        "y": ("multiply", "c", "b"),
    }

    def graph(self) -> Graph:
        return self.GRAPH

    def explained(self) -> str:
        right = sum(disorder(names, self.GRAPH) is None for names in permutations(self.GRAPH))
        return f"{right} orders of the five boxes are right, and 120 − {right} are not."

    @mistake("c needs a and d. Which of them has no value yet when you click c?")
    def path_first(self) -> list[str]:
        return ["a", "c", "d", "b", "y"]

    @mistake("that is the alphabet. Names are labels: which boxes do the arrows to b come from?")
    def alphabet(self) -> list[str]:
        return ["a", "b", "c", "d", "y"]
