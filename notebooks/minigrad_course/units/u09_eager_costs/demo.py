"""Unit 09: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Question
from .about import UNIT

ELEMENTWISE = 36  # primitives of minigrad that work element by element; a test counts them
VERSION = "2.13.0"  # of PyTorch, whose operators `python3 course bench operators` counted:
PYTORCH = {
    "operators": 2584, "names": 1348, "in place": 327, "out=": 544, "backward": 209, "kernels": 3723, "gradients": 687,
}


@UNIT.task
class ByArithmetic(Question):
    name = "by_arithmetic"

    def read(self, answer: Any) -> Any:
        return "erf" if "erf" in str(answer).lower() else answer  # also mg.erf, or its line of code
