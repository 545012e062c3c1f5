"""Unit 07: the questions of the notebook."""

from __future__ import annotations

from typing import Any

from ...tasks import Prediction, Question
from .about import UNIT
from .tangents import moving
from .wrong import by_formula


@UNIT.task
class WeightPasses(Prediction):
    name = "weight_passes"
    mistakes = by_formula(
        ("1", "that is reverse mode. A pass of forward mode moves the weights in one direction, and gives one number"),
        ("2411", "finite differences need one more run, to compare with. Forward mode does not"),
        ("4820", "a pass computes the values and the tangents together: it counts once for each weight"),
    )


@UNIT.task
class SpotPasses(Prediction):
    name = "spot_passes"
    right_value = (1, 576)
    mistakes = by_formula(
        ("1 24", "24 is one side of the picture. It has 24 · 24 numbers"),
        ("24 24", "24 is a side of the picture. Count its numbers, which are outputs. How many inputs are there?"),
        ("24 1", "the other way round; and 24 is one side of the picture: it has 24 · 24 numbers, the outputs"),
    )

    def given(self) -> dict[str, Any]:
        return {"moving": moving}


@UNIT.task
class Slider(Question):
    name = "slider"
    mistakes = by_formula(
        ("4", "it is below 4 MB, but 98 % is computed again. Do fewer checkpoints do it?"),
        ("2", "after the forward pass less than 4 MB are kept. But at most? Read on in the sentence"),
        ("1", "one checkpoint keeps 6.37 MB at most"),
        ("0", "without a checkpoint 12.3 MB are kept"),
        *[(more, "it is below 4 MB, but nearly everything is computed again. Do fewer checkpoints do it?")
          for more in "56789"],
    )
