"""Trainings that were stopped and continued, beside one that was not: the curves, and the first steps as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Page

WIDE, HIGH, SHOWN = 640.0, 370.0, 3  # the size of the chart, and how many steps the table has


class Steps(NamedTuple):
    """Some steps of a training: the losses, and the first labels of each batch."""

    losses: list[float]
    labels: list[list[int]]


def continuation(whole: Steps, continued: Mapping[str, Steps], stop: int, said: str) -> Page:
    """The curve of a training, and those of trainings that were continued from its step `stop`."""
    drawing = Drawing(WIDE, HIGH)
    series = {"never stopped": [(float(i), loss) for i, loss in enumerate(whole.losses, 1)]}
    for name, steps in continued.items():
        series[name] = [(float(i), loss) for i, loss in enumerate(steps.losses, stop + 1)]
    chart = curves(drawing, (0, 0, WIDE - 120, HIGH), series, "loss of each batch")
    middle = chart.at(stop + 0.5, 1.0)[0]
    drawing.path([(middle, 24), (middle, HIGH - 14)], "quiet", dashes="3 3")
    rows = {"head": ["step", "", "loss", "first labels"], "rows": first_steps(whole, continued, stop)}
    return Page(drawing, said, (("the first steps after the stop", ("table", rows)),))


def first_steps(whole: Steps, continued: Mapping[str, Steps], stop: int) -> list[list[str]]:
    """The losses and the first labels of the first steps after the stop.

    >>> first_steps(Steps([2.0, 1.0], [[7], [3]]), {"continued": Steps([1.5], [[4]])}, 1)
    [['2', 'never stopped', '1.000000', '3'], ['2', 'continued', '1.500000', '4']]
    """
    known = {"never stopped": Steps(whole.losses[stop:], whole.labels[stop:]), **continued}
    rows = range(min(SHOWN, *[len(each.losses) for each in known.values()]))
    return [[str(stop + 1 + i), name, f"{each.losses[i]:.6f}", " ".join(map(str, each.labels[i]))]
            for i in rows for name, each in known.items()]
