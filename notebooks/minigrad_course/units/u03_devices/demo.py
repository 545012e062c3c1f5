"""Unit 03: the questions of the notebook."""

from __future__ import annotations

import random
from typing import Any

from ...feedback import Wrong
from ...graphs import OPERATIONS
from ...tasks import ROUNDS, Prediction, Question
from ...views.queues import COPY, LAUNCH, batches, ended, queue, scheduled  # noqa: F401  (COPY: in the texts)
from .about import UNIT
from .training import NEEDED


@UNIT.kind
class Guess(Prediction):
    """A prediction whose right answer is the same for all."""

    mistakes = ()

    def read(self, answer: Any) -> Any:
        if isinstance(self.right(), str):
            return str(answer).strip().upper() if len(self.right()) == 1 else str(answer).strip()
        given = answer.split(",") if isinstance(answer, str) else answer
        return given if not isinstance(given, list | tuple) else [
            OPERATIONS.get(each.strip(), each.strip()) if isinstance(each, str) else each for each in given]


@UNIT.task
class NewChip(Guess):
    name = "new_chip"
    right_value = len(NEEDED)
    why = f"{', '.join(NEEDED)}. Gradient rules are written in operations, so they run on every device."


RUNS = {  # lines with an array a on "cpu" and b on "cpu:1" -> why each runs
    "a + 1": "1 is a Python number. It lives on no device, and goes to the kernel with the array",
    'a + b.to("cpu")': 'b.to("cpu") is a copy on cpu, so both inputs are there',
    "b * b": "both inputs are on cpu:1, and cpu:1 has a kernel for `multiply`",
    "b * b.sum()": "b.sum() is an array on cpu:1, and b is there too",
    'a.to("cpu:1") * b': 'a.to("cpu:1") is a copy on cpu:1, so both inputs are there',
}
STOPS = {
    "a * b.sum()": "b.sum() is one number, but it is still an array on cpu:1",
    "a[0] - b": "a[0] is one number, but it is still an array on cpu",
    "b + a.max()": "a.max() is one number, but it is still an array on cpu",
}


@UNIT.task
class Mixed(Guess):
    name = "mixed"

    def vary(self, draw: random.Random) -> None:
        self.stop = draw.choice(list(STOPS))
        lines = [self.stop, *draw.sample(list(RUNS), 3)]
        self.lines = dict(zip("ABCD", draw.sample(lines, 4)))

    def given(self) -> dict[str, Any]:
        return {"lines": self.lines}

    @property
    def listed(self) -> str:
        """The lines with their letters."""
        return " · ".join(f"{letter} `{line}`" for letter, line in self.lines.items())

    @property
    def because(self) -> str:
        """Why the line stops."""
        return STOPS[self.stop]

    def read(self, answer: Any) -> Any:
        return str(answer).strip().upper()

    def right(self) -> str:
        return next(letter for letter, line in self.lines.items() if line == self.stop)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        try:
            return super().check(answer, rounds)
        except Wrong as wrong:
            wrong.hint = RUNS.get(self.lines.get(self.read(answer), ""), self.otherwise)
            raise


@UNIT.task
class Overlapped(Question):
    name = "overlapped"

    def given(self) -> dict[str, Any]:
        return {"queue": queue}

    def done(self, streams: int) -> float:
        """When the device is done with some streams."""
        return ended(scheduled(batches(streams, 100.0), LAUNCH))

    def right(self) -> float:
        return self.done(3)
