"""Unit 04: the questions of the notebook."""

from __future__ import annotations

from itertools import permutations
from typing import Any, ClassVar

from ...boards import listing, runs
from ...feedback import Misused, written
from ...graphs import Graph, disorder
from ...tasks import Prediction
from .about import UNIT
from .graph_tasks import OrderTask


@UNIT.kind
class Several(Prediction):
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

    def right_orders(self) -> int:
        """How many orders are right."""
        return sum(disorder(names, self.GRAPH) is None for names in permutations(self.GRAPH))
