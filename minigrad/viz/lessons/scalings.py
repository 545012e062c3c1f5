"""`mg.viz.scaling`: a training step on one worker, on two, on thousands, by the model in `distributed/simulate.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import log10
from typing import Any

from ...distributed import Machine, Step, step_time
from ...distributed.simulate import ASSUMPTIONS, Span, StepTime, changed
from ...support.errors import ConversionError, DistributedError
from ...support.table import as_table, bytes_text, bytes_unit, counted, time_text
from ...support.words import shown
from ..charts import KINDS, Chart, legend
from ..drawing import DASHES, SERIES, Axes, Drawing, tick_text
from ..flipbook import Block, Flipbook, Knob, Page
from ..svg import text_width

WIDTH, LEFT, RIGHT, GAP = 650.0, 90.0, 14.0, 26.0
PANEL, LANE, BAR = 176.0, 26.0, 20.0  # heights
COUNTS = tuple(2**power for power in range(13))  # workers
MANY = 60  # transfers: of more, those that follow each other are one bar
FIRST = "as given"
COLUMNS = ("a step", "efficiency", "waiting", "sent")
PHASES = ("forward", "backward", "update", "library")  # the kinds of bars; "library" is the network
Runs = dict[str, list[StepTime]]  # what each variant takes, for each number of workers


def scaling(
    step: Step, machine: Machine, what_if: Mapping[str, Mapping[str, Any]] | None = None,
    workers: Sequence[int] = COUNTS, measured: Mapping[int, float] | None = None,
) -> Flipbook:
    """The time of a step, its efficiency, the wait for the network, and the bytes sent, by the number of workers.

    `what_if` gives names to other values of fields of the step and the machine, and each becomes a curve.  `measured`
    are seconds of real steps, by the number of workers.  The model's assumptions stand below the curves:
    `mg.distributed.simulate.ASSUMPTIONS`.

    >>> step = mg.distributed.Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
    >>> machine = mg.distributed.Machine(latency=20e-6, bandwidth=10e9)
    >>> book = mg.viz.scaling(step, machine, {"large buckets": {"bucket": 500e6}}, workers=(1, 32, 1024))
    >>> book
    <a step on 1 to 1,024 workers, by a model>
    >>> print(book.text())
    workers                 a step  efficiency  waiting     sent
    1        as given       150 ms        100%       0%      0 B
             large buckets  150 ms        100%       0%      0 B
    32       as given       298 ms         50%      50%  1.94 GB
             large buckets  296 ms         51%      49%  1.94 GB
    1,024    as given       1.89 s          8%      92%     2 GB
             large buckets  382 ms         39%      61%     2 GB
    """
    what_if = {} if what_if is None else what_if
    measured = {} if measured is None else measured
    if not isinstance(what_if, Mapping):
        raise ConversionError(f"scaling: what_if is a dictionary of changes by name, not {shown(what_if)}")
    numbers = isinstance(measured, Mapping) and [*measured, *measured.values()]
    if numbers is False or not all(isinstance(each, (int, float)) for each in numbers):
        raise ConversionError(f"scaling: measured is a dictionary of seconds by workers, not {shown(measured)}")
    variants = {FIRST: (step, machine)}
    for name, other in what_if.items():
        if not isinstance(other, Mapping):
            raise DistributedError(
                f"scaling: the change {name!r} has no fields", expect="{'bucket': 1e6}", actual=shown(other)
            )
        variants[name] = changed(step, machine, dict(other))
    counts = sorted(set(workers))
    if len(variants) > len(SERIES) or len(counts) < 2:
        raise DistributedError(
            f"scaling: {counted(len(counts), 'number')} of workers and {counted(len(variants) - 1, 'change')}",
            expect=f"at least 2 numbers of workers, and at most {len(SERIES) - 1} changes",
        )
    runs = {name: [step_time(*variant, count) for count in counts] for name, variant in variants.items()}
    settings = {name: _settings(*variant) for name, variant in variants.items()}
    pages = []
    for i, count in enumerate(counts):
        now = {name: times[i] for name, times in runs.items()}
        said = f"{counted(count, 'worker')}: {_said(now[FIRST])}."
        blocks = tuple([(name, _block(now[name], settings[name], settings[FIRST], name == FIRST)) for name in now])
        drawings = {"curves": _curves(runs, i, measured), "one step": _over_time(now)}
        pages.append([Page(drawing, said, blocks, name) for name, drawing in drawings.items()])
    rows = [
        (f"{count:,}" if name == FIRST else "", name, *_row(times[i]))
        for i, count in enumerate(counts) for name, times in runs.items()
    ]
    return Flipbook(
        f"a step on {counts[0]:,} to {counts[-1]:,} workers, by a model", pages,
        (Knob("workers", tuple(f"{count:,}" for count in counts), len(counts) // 2),), cover=0, unit="picture",
        words=as_table(("workers", "", *COLUMNS), rows, left=2),
    )


def _row(time: StepTime) -> list[str]:
    sent = bytes_text(round(time.bytes))
    return [time_text(time.seconds), f"{time.efficiency:.0%}", f"{time.waiting:.0%}", sent]


def _said(time: StepTime) -> str:
    return f"{time_text(time.seconds)} a step, {time.waiting:.0%} of it waiting for the network"


def _settings(step: Step, machine: Machine) -> dict[str, str]:
    slow = f"{machine.slow}, {machine.slowdown:g} times as long" if machine.slow else "none"
    return {
        "one worker alone": time_text(step.seconds), "gradients": bytes_text(round(step.gradients)),
        "buckets": f"{len(step.buckets()):,} of {bytes_text(step.bucket)}",
        "overlap": "yes" if step.overlap else "no", "optimizer": "sharded" if step.sharded else "whole",
        "algorithm": step.algorithm, "batch": "one for all" if step.fixed_batch else "one for each worker",
        "latency": time_text(machine.latency), "bandwidth": f"{bytes_text(machine.bandwidth)}/s",
        "mean delay": f"{machine.jitter:.1%}", "slow workers": slow,
    }


def _block(time: StepTime, settings: Mapping[str, str], first: Mapping[str, str], every: bool) -> Block:
    """The results, and the settings: all of them, or those that differ from the first variant's."""
    rows = [*zip(COLUMNS, _row(time)), *[(n, text) for n, text in settings.items() if every or text != first[n]]]
    return "table", {"head": ["", ""], "rows": [list(row) for row in rows]}


# Curves ---------------------------------------------------------------------------------------------------------------


def _curves(runs: Runs, now: int, measured: Mapping[int, float]) -> Drawing:
    """Four charts, with a line at the number of workers that is set; below them, the assumptions."""
    names = [*runs, *["measured"] * bool(measured)] if len(runs) > 1 or measured else []
    places = _in_lines(names)
    top = places[-1][1] + 18.0 if places else 0.0
    drawing = Drawing(WIDTH, top + 2 * (PANEL + GAP) + 16.0 * len(ASSUMPTIONS) + 10.0)
    for i, (name, (x, y)) in enumerate(zip(names, places)):
        if i < len(runs):
            drawing.path([(x, y), (x + 24, y)], SERIES[i], dashes=DASHES[i], thick=2.2)
        else:
            drawing.dot(x + 18, y, "ink", 4.0)
        drawing.text(x + 30, y + 4, name, size=12)
    times = [time for each in runs.values() for time in each]
    second, unit = (1.0, "s") if max(time.seconds for time in times) >= 1 else (1e-3, "ms")
    one, sent = bytes_unit(max(time.bytes for time in times))
    charts = {
        f"time of a step ({unit})": lambda time: time.seconds / second,
        "efficiency (%)": lambda time: 100 * time.efficiency,
        "waiting for the network (% of the step)": lambda time: 100 * time.waiting,
        f"sent by the busiest worker ({sent})": lambda time: time.bytes / one,
    }
    wide = (WIDTH - GAP) / 2
    for number, (title, value) in enumerate(charts.items()):
        place = (number % 2 * (wide + GAP), top + number // 2 * (PANEL + GAP))
        points = {name: [(time.workers, value(time)) for time in each] for name, each in runs.items()}
        dots = [(n, each / second) for n, each in measured.items()] if number == 0 else []
        _chart(drawing, (*place, wide, PANEL), title, points, dots, now)
    y = top + 2 * (PANEL + GAP) + 8.0
    drawing.heading(0, y, "The model assumes:")
    for i, line in enumerate(ASSUMPTIONS):
        drawing.text(0, y + 16.0 * (i + 1), line, size=11, fill="quiet")
    return drawing


def _in_lines(names: Sequence[str]) -> list[tuple[float, float]]:
    """Where the entries of a legend stand, in as many lines as they need."""
    places, x, y = list[tuple[float, float]](), Axes.LEFT, 6.0
    for name in names:
        wide = text_width(name, 12.0) + 50.0
        if x > Axes.LEFT and x + wide > WIDTH + 20.0:
            x, y = Axes.LEFT, y + 18.0
        places.append((x, y))
        x += wide
    return places


def _chart(
    drawing: Drawing, place: tuple[float, float, float, float], title: str,
    series: Mapping[str, Sequence[tuple[int, float]]], dots: Sequence[tuple[int, float]], now: int,
) -> None:
    x, y, width, height = place
    counts = [count for count, _ in next(iter(series.values()))]
    values = [value for points in (*series.values(), dots) for _, value in points]
    share = "%" in title
    most = 100.0 if share else max(values) or 1.0
    log = not share and min(values) > 0 and most > 30 * min(values)
    drawing.heading(x + Axes.LEFT, y + 10, title)
    ends = log10(counts[0]) - 0.05, log10(counts[-1]) + 0.05
    least = min(values) / 1.2 if log else 0.0
    axes = Axes(drawing, (x, y + 18, width, height - 18), ends, (least, 1.06 * most), log=log, ticks="up")
    bottom = axes.at(0, least)[1]
    here = axes.at(log10(counts[now]), least)[0]
    drawing.path([(here, axes.y), (here, bottom)], "quiet", thick=1.0, dashes="3 3")
    powers = [count for count in (10**i for i in range(9)) if counts[0] <= count <= counts[-1]]
    for count in powers if len(powers) > 2 else counts:
        drawing.text(axes.at(log10(count), least)[0], bottom + 14, tick_text(count), fill="quiet", anchor="middle")
    drawing.text(x + width, bottom + 26, "workers", fill="quiet", anchor="end")
    for i, points in enumerate(series.values()):
        axes.curve([(log10(count), value) for count, value in points], SERIES[i], thick=2.2, dashes=DASHES[i])
        drawing.dot(*axes.at(log10(points[now][0]), points[now][1]), SERIES[i], 4.0)
    for count, value in dots:
        drawing.dot(*axes.at(log10(count), value), "ink", 4.0)


# One step -------------------------------------------------------------------------------------------------------------


def _over_time(now: Mapping[str, StepTime]) -> Drawing:
    """What the slowest worker computes and what the network sends, over the time of a step."""
    high = 2 * LANE + 34.0
    chart = Chart(WIDTH, 24.0 + high * len(now) + 26.0)
    names = ("forward", "backward", "update", "network")
    legend(chart, LEFT, 10.0, [(*KINDS[kind], name) for kind, name in zip(PHASES, names)])
    bottom = 24.0 + high * len(now)
    until = max(time.seconds for time in now.values()) or 1e-9
    scale = chart.ruler((LEFT, WIDTH - RIGHT), (24.0, bottom), 1e6 * until, lambda tick: time_text(tick / 1e6)) * 1e6
    for i, (name, time) in enumerate(now.items()):
        y = 30.0 + i * high
        chart.heading(LEFT, y + 12, f"{name}: {_said(time)}", room=WIDTH - LEFT)
        for row, lane in enumerate(("computing", "network")):
            chart.lane(LEFT, y + 20 + row * LANE, BAR, lane)
        for count, span in joined(time.spans):
            row = span.lane == "network"
            border, fill = KINDS["library" if row else span.name]
            x, wide = LEFT + span.begin * scale, (span.end - span.begin) * scale
            what = f"{count:,} × {span.name}" if count > 1 and row else span.name
            about = f"{what}: {time_text(span.end - span.begin)}, from {time_text(span.begin)}"
            chart.rect(x, y + 20 + row * LANE, max(wide, 0.8), BAR, fill, border, round=1.5, about=about)
    return chart


def joined(spans: Sequence[Span]) -> list[tuple[int, Span]]:
    """The spans with their numbers, where a span may stand for several of one name that follow each other.

    >>> ((count, span),) = joined([Span("computing", "forward", 0.0, 1.0), Span("computing", "forward", 1.0, 3.0)])
    >>> count, span.begin, span.end
    (2, 0.0, 3.0)
    """
    few = sum(span.lane == "network" for span in spans) <= MANY
    found = list[tuple[int, Span]]()
    for (lane, name), each in groupby(spans, key=lambda span: span[:2]):
        for span in each:
            follows = bool(found) and found[-1][1][:2] == (lane, name) and span.begin <= found[-1][1].end
            if follows and not (few and lane == "network"):
                found[-1] = found[-1][0] + 1, found[-1][1]._replace(end=span.end)
            else:
                found.append((1, span))
    return found
