"""The museum as a part of the course: its question, its outcome, and where its pictures are listed."""

from __future__ import annotations

from ..unit import Annex

MUSEUM = Annex(
    number=99,
    name="museum",
    title="The museum of misconceptions",
    question="Fifteen pictures, each drawn from a wrong belief. Can you repair them?",
    minutes=75,
    outcomes={"repair": "find the place where a picture of a program contradicts itself, and repair it"},
    prerequisites=("00_start",),
)
