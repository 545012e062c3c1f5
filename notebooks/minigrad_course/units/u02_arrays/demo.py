"""Unit 02: the questions of the notebook."""

from __future__ import annotations

import random
from typing import Any

from ...feedback import Wrong
from ...forms import names_in
from ...predicting import Choice
from ...tasks import ROUNDS, Prediction, Question
from .about import UNIT


@UNIT.kind
class Guess(Prediction):
    """A prediction whose right answer is the same for all."""

    mistakes = ()


@UNIT.task
class LoopTimes(Choice, Prediction):
    name = "loop_times"

    def read(self, answer: Any) -> Any:
        return super().read(str(answer).replace(",", "").replace(".0", ""))


@UNIT.task
class TurnedStrides(Question):
    name = "turned_strides"
    mistakes = ()


COPIED = {  # what is read -> whether it must be copied, and why
    "a.T": (False, "`.T` only exchanges the strides"),
    "a.reshape(-1)": (False, "the numbers come in the order of memory: the step is 1"),
    "a[::2]": (False, "every second row is read: the stride of the rows is doubled"),
    "a[:, 1:3]": (False, "the view begins one number later, and the strides stay"),
    "a[1]": (False, "a row is read where it is: only the offset changes"),
    "a.T.reshape(-1)": (True, "the numbers come in the order 0, 4, 8, 1, 5 …: which one step leads through them?"),
    "a[[0, 2, 1]]": (True, "the rows 0, 2, 1 are read: which one step leads from each of them to the next?"),
    "a[:, 1:3].reshape(-1)": (True, "the numbers come in the order 1, 2, 5, 6 …: which one step leads through them?"),
    "a + 0": (True, "that is the result of an addition, and each result has memory of its own"),
}


@UNIT.task
class Copies(Guess):
    name = "copies"
    any_order = True

    def vary(self, draw: random.Random) -> None:
        copied, views = ([each for each, (must, _) in COPIED.items() if must is wanted] for wanted in (True, False))
        chosen = draw.sample(copied, 2) + draw.sample(views, 3)
        self.lines = dict(zip("ABCDE", draw.sample(chosen, 5)))

    def given(self) -> dict[str, Any]:
        return {"program": "\n".join(f"{letter} = {line}" for letter, line in self.lines.items())}

    @property
    def listed(self) -> str:
        """The lines with their letters."""
        return " · ".join(f"{letter} `{line}`" for letter, line in self.lines.items())

    @property
    def named(self) -> str:
        """The lines that copy."""
        return " and ".join(f"{letter}, {self.lines[letter]}" for letter in self.right())

    def right(self) -> list[str]:
        return [letter for letter, line in self.lines.items() if COPIED[line][0]]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        try:
            return super().check(answer, rounds)
        except Wrong as wrong:
            given = self.read(answer)
            if isinstance(given, list) and {*given} <= {*self.lines}:
                first = min({*given} ^ {*self.right()})
                wrong.hint = f"look at {first}: {COPIED[self.lines[first]][1]}"
            raise

    def read(self, answer: Any) -> Any:
        names = names_in(answer)
        return answer if names is None else sorted("".join(names).upper())  # "ABC" is an answer too
