"""Training runs over each other: a chart for each number, with a curve for each run and every step of it.

The pages are moments of the runs: at each, a dot on every curve, the values in words and in a table, and the pictures
that were logged last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from ..support.table import as_table
from .curves import LEGEND, curves, dots, value_at
from .drawing import Axes, Drawing
from .flipbook import Block, Flipbook, Knob, Page
from .heat import spark
from .images import gallery
from .logs import Log, Points
from .numbers import short
from .svg import LINE, number, text_width

STOPS, NUMBERS, LAYERS, NORMS = 48, 5, 5, 12  # the most moments, charts of numbers, curves of norms, norms in a table
WIDE, TALL, LOW = 620.0, 250.0, 170.0  # the width of the curves; the height of the first chart, and of the others
ROW, SIDE = 5, 62.0  # images in a row, and the side of one
AXES = {"as it fits": None, "linear": False, "logarithmic": True}
Runs = Mapping[str, Log]  # by name; the pictures are those of the first


def runs_book(runs: Runs, title: str) -> Flipbook:
    """A page for each moment, for each kind of axis; the last moment is shown first."""
    stops = _stops(runs)
    told = [(_said(runs, step), blocks) for step, blocks in zip(stops, _blocks(runs, stops))]
    clocks = ("steps", "seconds") if all(log.seconds for log in runs.values()) else ("steps",)
    charts, beside = _charts(runs), [_pictures(next(iter(runs.values())), step) for step in stops]
    pages = [
        [Page(drawing, *each) for drawing, each in zip(_drawn(charts, stops, beside, log, clock == "seconds"), told)]
        for log, clock in product(AXES.values(), clocks)
    ]
    knobs = Knob("axis", tuple(AXES), choice=True), Knob("over", clocks, choice=True)
    return Flipbook(title, pages, knobs, unit="moment", start=len(stops) - 1, words=table_of(runs), smooth=True)


def last_drawing(runs: Runs) -> Drawing:
    """All curves, and the pictures of the last moment."""
    stop = max(log.last for log in runs.values())
    return next(_drawn(_charts(runs), [stop], [_pictures(next(iter(runs.values())), stop)]))


def table_of(runs: Runs) -> str:
    """The numbers as a table, with a small curve in each line."""
    rows, sparks = [], []
    for label, points in _labelled(runs, {run: log.curves() for run, log in runs.items()}):
        values = [value for _, value in points]
        finite = [v for v in values if math.isfinite(v)] or [math.nan]
        rows.append([label, *map(short, (values[0], values[-1], min(finite), max(finite)))])
        sparks.append(spark(values))
    if not rows:
        return "nothing logged yet"
    head, *lines = as_table(["", "first", "last", "least", "most"], rows, left=1).splitlines()
    return "\n".join([head, *[f"{line}  {curve}" for line, curve in zip(lines, sparks)]])


def _labelled(runs: Runs, known: Mapping[str, Mapping[str, Points]]) -> Iterator[tuple[str, Points]]:
    """The points of each name, run by run; where there are several runs, with the name of the run."""
    for name in dict.fromkeys(name for each in known.values() for name in each):
        for run in runs:
            if name in known[run]:
                yield name if len(runs) == 1 else f"{name}, {run}", known[run][name]


def _stops(runs: Runs) -> list[int]:
    """The steps that have a page: those with pictures, some between the first and the last, and the last."""
    steps = sorted({int(step) for log in runs.values() for points in log.curves().values() for step, _ in points})
    few = [steps[i * (len(steps) - 1) // (STOPS - 1)] for i in range(STOPS)] if steps else []
    first = next(iter(runs.values()))
    return sorted({*few, *first.weights, *first.images, max(log.last for log in runs.values())})


# What is said of a moment ---------------------------------------------------------------------------------------------


def _said(runs: Runs, step: int) -> str:
    parts = []
    for name in dict.fromkeys(name for log in runs.values() for name in log.numbers):
        found = {run: value_at(log.numbers.get(name, []), step) for run, log in runs.items()}
        here = [short(p[1]) + f" in {run}" * (len(runs) > 1) for run, p in found.items() if p is not None]
        parts += [f"{name} is {', '.join(here)}"] if here else []
    return f"After step {step}" + (f": {(', ' if len(runs) == 1 else '; ').join(parts)}." if parts else ".")


def _blocks(runs: Runs, stops: Sequence[int]) -> Iterator[tuple[tuple[str, Block], ...]]:
    """For each moment: the numbers, the norms of the first run, and the first steps that are not finite."""
    numbers = dict(_labelled(runs, {run: log.numbers for run, log in runs.items()}))
    first = dict([*next(iter(runs.values())).norms.items()][:NORMS])
    most = {name: short(max(value for _, value in points)) for name, points in first.items()}
    everything = _labelled(runs, {run: log.curves() for run, log in runs.items()})
    strange = (f"{name}: step {int(s)}" for name, points in everything for s, v in points if not math.isfinite(v))
    warning = ", ".join(islice(strange, 3))
    for step in stops:
        found = [(name, value_at(points, step)) for name, points in (*numbers.items(), *first.items())]
        here = {name: "–" if point is None else short(point[1]) for name, point in found}
        blocks: dict[str, tuple[Any, Block]] = {
            "numbers": (numbers, ("table", {"head": ["", "at first", "here"], "rows": [
                [name, short(points[0][1]), here[name]] for name, points in numbers.items()]})),
            "norms of gradients": (first, ("table", {"head": ["", "here", "most"], "rows": [
                [name, here[name], most[name]] for name in first]})),
            "not finite": (warning, ("text", warning)),
        }
        yield tuple([(heading, block) for heading, (shown, block) in blocks.items() if shown])


# What is drawn --------------------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """The points of a curve, as a list and as an array, and the log that they are from."""

    log: Log
    points: Points
    array: np.ndarray

    @classmethod
    def of(cls, log: Log, points: Points) -> Curve:
        """The curve of some points of a log."""
        return cls(log, points, np.array(points, np.float64).reshape(-1, 2))


Charts = list[tuple[str, dict[str, Curve]]]  # titles, and curves by name


def _charts(runs: Runs) -> Charts:
    """The titles of the charts, and their curves: a number of all runs, and the norms of the first run."""
    names = list(dict.fromkeys(name for log in runs.values() for name in log.numbers))[:NUMBERS]
    charts = [(n, {run: Curve.of(log, log.numbers.get(n, [])) for run, log in runs.items()}) for n in names]
    name, first = next(iter(runs.items()))
    if first.norms:
        most = sorted(first.norms.items(), key=lambda item: -max(v for _, v in item[1] if v == v))[:LAYERS]
        title = "norms of gradients" + f" of {name}" * (len(runs) > 1)
        charts.append((title, {layer: Curve.of(first, points) for layer, points in most}))
    return charts


def _drawn(
    charts: Charts, stops: Sequence[int], beside: Sequence[Drawing], log: bool | None = None, seconds: bool = False
) -> Iterator[Drawing]:
    """For each moment: the curves of all steps on the left; the images and the weights of the moment on the right.

    The curves are the same for all moments, and are drawn once.
    """
    base, y, axes = Drawing(WIDE, 60), 0.0, []
    curves_of_all = [curve for _, series in charts for curve in series.values()]
    clocks = {curve.log: _clock(curve.log, seconds) for curve in curves_of_all}
    ends = [float(clocks[c.log](c.points[i][0])) for c in curves_of_all if c.points for i in (0, -1)] or [0.0]
    for i, (title, series) in enumerate(charts):
        height, legend = TALL if i == 0 else LOW, 0.0
        if len(series) > 1:
            legend = max(40.0 + min(LEGEND, text_width(name, LINE)) for name in series)
        placed = {name: np.stack([clocks[c.log](c.array[:, 0]), c.array[:, 1]], 1) for name, c in series.items()}
        axes.append(curves(base, (0, y, WIDE - legend, height), placed, title, (min(ends), max(ends)), log=log,
                           names=i in (0, len(charts) - 1)))
        y += height + 14
    first = next(iter(clocks.values()), None)
    hovers = [_hover(chart, first(np.array(stops, np.float64)).tolist()) for chart in axes if first]
    for step, pictures in zip(stops, beside):
        drawing = Drawing(pictures.width, max(y, pictures.height))
        drawing.pieces = list(base.pieces)
        for chart, (_, series) in zip(axes, charts):
            found = [(clocks[curve.log], value_at(curve.points, step)) for curve in series.values()]
            dots(drawing, chart, [point and (float(clock(point[0])), point[1]) for clock, point in found])
        drawing.pieces += [*hovers, *pictures.pieces]
        yield drawing


def _clock(log: Log, seconds: bool) -> Callable[[Any], Any]:
    """What leads from steps to their places on the axis: the steps themselves, or the seconds until then."""
    known = np.array(log.seconds if seconds else [], np.float64).reshape(-1, 2)
    return (lambda steps: np.interp(steps, known[:, 0], known[:, 1])) if seconds else (lambda steps: steps)


def _hover(chart: Axes, stops: Sequence[float]) -> str:
    """The part of a chart over which the pointer leads to the nearest moment."""
    shares = " ".join([number(1000 * (chart.at(at, 1.0)[0] - chart.x) / chart.width) for at in stops])
    x, y, width, height = map(number, (chart.x, chart.y, chart.width, chart.height))
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<rect {place} fill="transparent" stroke="none" data-stops="{shares}"/>'


def _pictures(log: Log, step: int) -> Drawing:
    """The images and the weights of the last moment until a step, from the top down."""
    drawing, x, y = Drawing(WIDE, 60), WIDE + 40, 0.0
    near = max([s for s in log.images if s <= step], default=None)
    for name, pictures in log.images[near].items() if near is not None else ():
        drawing.heading(x, y + 12, f"{name} after step {near:,}")
        y += 32 + gallery(drawing, x, y + 22, pictures, (), ROW, SIDE)
    near = max([s for s in log.weights if s <= step], default=None)
    for name, weights in log.weights[near].items() if near is not None else ():
        y += weights.draw(drawing, x, y, name, log.most(name), True)
    if y:
        drawing.merge(0, "mg-beside")
        drawing.width, drawing.height = x + 340, y
    return drawing
