"""Unit 04: the questions of the notebook."""

from __future__ import annotations

from itertools import permutations
from typing import Any, ClassVar

from ...boards import listing, runs
from ...feedback import Misused, Wrong, written
from ...forms import names_in
from ...graphs import OPERATIONS, Graph, disorder
from ...tasks import ROUNDS, Prediction
from .about import UNIT
from .graph_tasks import OrderTask


@UNIT.kind
class Several(Prediction):
    """Some of several things, in any order, as a list of texts; a text with commas is read too."""

    mistakes = ()
    among: ClassVar[tuple[str, ...]]

    def read(self, answer: Any) -> list[str]:
        names = names_in(answer)
        if names is None:
            raise Misused(self.name, f"your answer {written(answer)} is not a list of texts", f"like {self.example}")
        if len(names) == 1 and {*names[0].upper()} <= {*self.among}:
            names = [*names[0]]  # "BE"
        names = [*self.among] if names == ["all"] else [OPERATIONS.get(each, each).strip(".") for each in names]
        found = {each.lower() for each in names} - {"none", "nothing", ""}
        strange = [each for each in names if each.lower() in found - {known.lower() for known in self.among}]
        if strange:
            hint = f"some of {', '.join(self.among)}; [] for none"
            raise Misused(self.name, f"{strange[0]!r} is not one of them", hint)
        return [each for each in self.among if each.lower() in found]


@UNIT.task
class Same(Several):
    name = "same"

    def given(self) -> dict[str, Any]:
        return {"listing": listing}


@UNIT.task
class Graphs(Prediction):
    name = "graphs"

    def given(self) -> dict[str, Any]:
        return {"runs": runs}


@UNIT.task
class AnOrder(OrderTask):
    name = "an_order"
    strict = False
    GRAPH: ClassVar[Graph] = {
        "a": ("multiply", "x", 2), "d": ("add", "x", 3), "c": ("multiply", "a", "d"), "b": ("subtract", "d", "x"),
        "y": ("multiply", "c", "b"),
    }

    def graph(self) -> Graph:
        return self.GRAPH

    def read(self, answer: Any) -> list[str]:
        return [name.lower() for name in super().read(answer)]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        said = super().check(answer, rounds)
        if self.read(answer)[0] != "a":
            raise Wrong(self.name, "no box turns red, but it does not begin with a", "begin with a: which box then?")
        return said

    def right_orders(self) -> int:
        """How many orders are right."""
        return sum(disorder(names, self.GRAPH) is None for names in permutations(self.GRAPH))
