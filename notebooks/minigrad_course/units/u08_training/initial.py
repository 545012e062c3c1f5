"""Unit 08: the scale of the first weights."""

from __future__ import annotations

import math
import random

from ...tasks import ValueTask, common
from .about import UNIT


@UNIT.task
class Scale(ValueTask):
    """Which spread of the weights keeps the spread of the activations, with relu?"""

    name = "scale"
    mistakes = common(
        without_relu=("that is right without relu, which drops half of the squares: the weights have to make up for it",
                      lambda self: math.sqrt(1 / self.inputs)),
        squared=("that is s². The spread is its root", lambda self: 2 / self.inputs),
        one_by_n=("that is 1 / n: the products have both signs, so their sum grows with √n. And relu drops half of the "
                  "squares", lambda self: 1 / self.inputs),
        halved=("relu halves: n · s² / 2 should be 1, so s² is 2 / n, not 1 / (2 n)",
                lambda self: math.sqrt(0.5 / self.inputs)),
        upside_down=("upside down: the more inputs, the smaller the weights", lambda self: math.sqrt(self.inputs / 2)),
        two_outside=("relu halves the *squares*: the factor 2 stands under the root, √(2 / n)",
                     lambda self: 2 / math.sqrt(self.inputs)),
    )

    def vary(self, draw: random.Random) -> None:
        self.inputs = draw.choice([128, 200, 288, 392, 512])

    def right(self) -> float:
        return math.sqrt(2 / self.inputs)
