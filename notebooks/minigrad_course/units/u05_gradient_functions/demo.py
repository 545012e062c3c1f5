"""Unit 05: the questions of the notebook."""

from __future__ import annotations

from ...predicting import Formula
from ...tasks import Prediction
from .about import UNIT


@UNIT.task
class ByShapes(Formula, Prediction):
    name = "by_shapes"
    shapes = {"X": (4, 3), "g": (4, 2), "W": (3, 2)}
