"""Unit 08: the scale of the first weights."""

from __future__ import annotations

import math
import random

from ...tasks import ValueTask, mistake
from .about import UNIT


@UNIT.task
class Scale(ValueTask):
    """Which spread of the weights keeps the spread of the activations, with relu?"""

    name = "scale"
    points = 1
    minutes = 5
    outcome = "initialise"
    mistakes = ()
    example = "0.05"
    tolerance = 0.01
    otherwise = "n · s² · (share of the squares that relu keeps) should be 1. Solve for s"

    def vary(self, draw: random.Random) -> None:
        self.inputs = draw.choice([128, 200, 288, 392, 512])

    def text(self) -> str:
        return (
            f"A deep network has layers of **n = {self.inputs}** inputs, with relu after each. A sum of n products of "
            "weights (spread s) and activations has a mean square of n · s² times that of the activations; relu then "
            "sets the negative half to 0, so half of it is left. **Which s keeps the mean square the same in all "
            "layers?**"
        )

    def right(self) -> float:
        return math.sqrt(2 / self.inputs)

    def explained(self) -> str:
        return "√(2 / n). `mg.nn.init.kaiming_normal_` draws the weights so."

    @mistake("that is right without relu. relu drops half of the squares, so the weights have to make up for it")
    def without_relu(self) -> float:
        return math.sqrt(1 / self.inputs)

    @mistake("that is s². The spread is its root")
    def squared(self) -> float:
        return 2 / self.inputs

    @mistake("that is 1 / n: the products have both signs, so their sum grows with √n. And relu drops half of the "
             "squares")
    def one_by_n(self) -> float:
        return 1 / self.inputs

    @mistake("relu halves: n · s² / 2 should be 1, so s² is 2 / n, not 1 / (2 n)")
    def halved(self) -> float:
        return math.sqrt(0.5 / self.inputs)

    @mistake("upside down: the more inputs, the smaller the weights")
    def upside_down(self) -> float:
        return math.sqrt(self.inputs / 2)

    @mistake("relu halves the *squares*: the factor 2 stands under the root, √(2 / n)")
    def two_outside(self) -> float:
        return 2 / math.sqrt(self.inputs)
