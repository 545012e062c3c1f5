"""Unit 00: the questions of the notebook."""

from __future__ import annotations

import re
from typing import Any

from ...feedback import Wrong
from ...tasks import Question
from .about import UNIT


@UNIT.task
class Empty(Question):
    name = "empty"

    def read(self, answer: Any) -> Any:
        if isinstance(answer, bool):
            return "yes" if answer else "no"
        if not isinstance(answer, str):
            return answer
        said = answer.strip().lower().rstrip(".!")
        return {"y": "yes", "n": "no"}.get(said, said.partition(",")[0])


@UNIT.task
class Order(Question):
    name = "order"

    def read(self, answer: Any) -> Any:
        if isinstance(answer, set):
            raise Wrong(self.name, "braces, { }, keep no order", 'in brackets: ["y", ...]')
        names = list(answer) if isinstance(answer, list | tuple) else re.split(",|->", str(answer))
        if not all(isinstance(each, str) for each in names):
            hint = 'each name in quotation marks: ["y", "a"]. Without them, y is its number'
            raise Wrong(self.name, "these are not names", hint)
        names = [re.sub(r"[∂() ]|^d(?=[ya(])", "", each.lower()).replace("·", "*") for each in names]
        names = [re.sub(r"multiply|product|a\*\*2|a\^2|a²", "a*a", each) for each in names]
        if names == ["ya*aa"]:
            raise Wrong(self.name, "the names stand together", 'a comma after each: ["y", ...]')
        return names[:-1] if names[-1:] == ["x"] else names  # a click on x sends nothing
