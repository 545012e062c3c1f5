"""Unit 03: the questions of the notebook."""

from __future__ import annotations

from typing import Any

import minigrad as mg

from ...forms import names_in
from ...graphs import OPERATIONS
from ...predicting import Lettered
from ...tasks import Prediction, Question
from ...views.queues import COPY, LAUNCH, batches, ended, queue, scheduled  # noqa: F401  (COPY: in the texts)
from .about import UNIT
from .training import NEEDED


@UNIT.kind
class Guess(Prediction):
    """A prediction whose right answer is the same for all."""

    mistakes = ()

    def read(self, answer: Any) -> Any:
        names = [] if isinstance(answer, set) else names_in(answer)
        return [OPERATIONS.get(name.lower(), name.lower()) for name in names] if names else answer


@UNIT.task
class NewChip(Guess):
    name = "new_chip"
    right_value = len(NEEDED)
    why = f"{', '.join(NEEDED)}. Gradient rules are written in operations, so they run on every device."


@UNIT.task
class Mixed(Lettered, Prediction):
    name, shown, wanted = "mixed", 4, 1

    def given(self) -> dict[str, Any]:
        return {"lines": self.lines}

    def is_so(self, line: str) -> bool:
        try:
            eval(line, {"a": mg.ones(3), "b": mg.ones(3, device="cpu:1")})
        except mg.DeviceError:
            return True
        return False


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
