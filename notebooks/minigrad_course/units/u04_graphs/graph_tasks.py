"""Tasks whose answer is a graph, or an order of the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, ClassVar

from ...boards import act_out, draw
from ...feedback import Wrong, written
from ...forms import names_in
from ...graphs import FORM, Graph, Unreadable, disorder, folded, reached, read_graph, unfolded, unlike
from ...tasks import ROUNDS, ValueTask, common
from .about import UNIT

UNUSED = UNIT.words["unused"]
ONE_NODE = UNIT.words["one_node"]
SWAPPED = UNIT.words["swapped"]


def _without_numbers(graph: Graph) -> dict[str, tuple[Any, ...]]:
    return {name: (op, *[each for each in inputs if isinstance(each, str)]) for name, (op, *inputs) in graph.items()}


def _swapped(graph: Graph) -> dict[str, tuple[Any, ...]]:
    return {name: (op, *inputs[::-1]) for name, (op, *inputs) in graph.items()}


def _partly_swapped(graph: dict[str, tuple[Any, ...]]) -> Iterator[Graph]:
    """The graph with the inputs of some of its nodes swapped, in every combination."""
    for turns in product((1, -1), repeat=min(len(graph), 8)):
        yield graph | {name: (graph[name][0], *graph[name][1:][::turn]) for name, turn in zip(graph, turns)}


def _used_once(graph: Graph) -> dict[str, tuple[Any, ...]]:
    return {name: (op, *dict.fromkeys(inputs)) for name, (op, *inputs) in graph.items()}


def _changed(change: Callable[[Graph, str], Graph]) -> Callable[[Any], Any]:
    """A mistake in the right graph; None where it changes nothing."""

    def program(task: Any) -> Any:
        wrong = change(task.right(), task.result)
        same = wrong.keys() == task.right().keys() and unlike(wrong, task.right(), task.result) is None
        return None if same else wrong

    return program


class GraphTask(ValueTask):
    """A graph to write as a dictionary.  Names of nodes are free, apart from the result and what is given."""

    result: ClassVar[str] = "y"
    given_names: ClassVar[tuple[str, ...]] = ("x",)
    operations: ClassVar[tuple[str, ...]] = ()  # that the answer may use; empty: any
    example = FORM.partition("}:")[0] + "}"
    otherwise = "go through the program line by line, as Python does: which operation runs next, and on which values?"
    mistakes = common(
        each_use_anew=_changed(unfolded),
        used_once=_changed(lambda graph, result: _used_once(graph)),
        swapped=_changed(lambda graph, result: _swapped(graph)),
        without_numbers=_changed(lambda graph, result: _without_numbers(graph)),
        unused=_changed(lambda graph, result: {**graph, "unused": ("add", result, 1)}),
    )

    def given(self) -> dict[str, Any]:
        return {"draw": lambda answer: draw(self.read(answer), self.result)}

    def read(self, answer: Any) -> dict[str, tuple[Any, ...]]:
        try:
            graph = read_graph(answer, self.given_names, self.result)
        except Unreadable as error:
            raise Wrong(self.name, *error.args) from None
        for name, (op, *_) in graph.items():
            if self.operations and op not in self.operations:
                hint = f"one of {', '.join(self.operations)}. A function of the program is not one: what runs inside?"
                raise Wrong(self.name, f"{name}: {op} is not an operation", hint)
        return graph

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        graph, right = self.read(answer), self.right()
        problem = unlike(graph, right, self.result)
        spare = [name for name in graph if name not in reached(graph, self.result)]
        if problem is None and not spare:
            return self.explained()
        if problem is None:
            raise Wrong(self.name, f"{self.result} is not computed from {spare[0]}", UNUSED)
        raise Wrong(self.name, problem, self._hint(graph))

    def _hint(self, graph: dict[str, tuple[Any, ...]]) -> str | None:
        wrongs = [(known, self.wrong(known)) for known in self.mistakes]
        for known, wrong in wrongs:
            if wrong is not None and unlike(graph, wrong, self.result) is None:
                return self.words(known)
        if unlike(folded(graph, self.result), folded(self.right(), self.result), self.result) is None:
            return ONE_NODE
        if any(unlike(each, self.right(), self.result) is None for each in _partly_swapped(graph)):
            return SWAPPED
        return self.otherwise


class OrderTask(ValueTask):
    """An order of the nodes of a graph, as a list of names, in which every node comes after its inputs.

    Every such order is right.
    """

    mistakes = common(
        turned=lambda self: self.right()[::-1],
        without_the_last=lambda self: self.right()[:-1],
    )
    example = '["a", "b"]'
    values: ClassVar[dict[str, float]] = {}  # of what is given, for the board

    def given(self) -> dict[str, Any]:
        return {"board": act_out(self.graph(), self.values, list(self.graph())[-1])}

    def graph(self) -> Graph:
        """The graph whose nodes are to be put in order; its own order is a right one, with the result last."""
        raise NotImplementedError

    def right(self) -> list[str]:
        return list(self.graph())

    def read(self, answer: Any) -> list[str]:
        names = names_in(answer)
        if isinstance(answer, set):
            raise Wrong(self.name, "braces, { }, keep no order", f"in brackets: {self.example}")
        if names is None:
            raise Wrong(self.name, f"your answer {written(answer)} is not a list of names", f"like {self.example}")
        return names

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        names = self.read(answer)
        problem = disorder(names, self.graph())
        if problem is None:
            return self.explained()
        hint = next((self.words(known) for known in self.mistakes if self.wrong(known) == names), self.otherwise)
        raise Wrong(self.name, problem, hint)
