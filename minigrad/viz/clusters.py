"""`mg.viz.cluster`: workers that train together: the messages of an all-reduce, or a model of a step on thousands.

The messages are those of a real all-reduce, `allreduce_steps.py`.  The model is that of `distributed/simulate.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from textwrap import wrap
from typing import Any

import numpy as np

from ..distributed import Machine, Step, step_time
from ..distributed.simulate import ASSUMPTIONS, StepTime, changed
from ..support.errors import ConversionError, DistributedError
from ..support.table import as_table, bytes_text, bytes_unit, counted, time_text, time_unit
from ..support.words import shown
from .allreduce_steps import allreduce_steps
from .drawing import SERIES, Drawing
from .flipbook import Flipbook, Knob, Page
from .lanes import Band, Bar, Lane, Work, chart_of
from .numbers import short
from .runs import moments

COUNTS = tuple(2**power for power in range(13))  # workers
FIRST, MEASURED = "as given", "measured"  # two curves
WIDE = 620.0  # the width of the curves
COMPARED = "compared; efficiency = undisturbed own work ÷ a step"
COLUMNS = ("a step", "efficiency", "waiting", "sent")
TEXTS: dict[str, Callable[[Any], str]] = {  # of the fields with a unit, or without a number
    "update": time_text, "latency": time_text, "bucket": bytes_text, "bandwidth": lambda each: f"{bytes_text(each)}/s",
    "jitter": "a worker is late by {:.3g} of its time, on average".format, "slow": "{} of the workers".format,
    "slowdown": "a slow worker takes {:.3g} times as long".format,
    **dict.fromkeys(("overlap", "sharded", "fixed_batch"), ("no", "yes").__getitem__),
}


def cluster(
    what: Any = 4, machine: Machine | None = None, what_if: Mapping[str, Mapping[str, Any]] | None = None,
    workers: Sequence[int] | None = None, measured: Mapping[int, float] | None = None,
) -> Flipbook:
    """How workers sum their gradients, and how long a training step takes on many of them.

    `cluster(4)`, or `cluster(arrays)` with an array of each worker, steps through an all-reduce: which worker sends
    which chunk to whom, and how many bytes, in a ring and through one worker.

    >>> book = mg.viz.cluster(3)
    >>> book
    <all-reduce of 3 workers, 3 numbers each: 4 rounds in a ring>
    >>> print(book.text())
    way            rounds  all that is sent  by the busiest  sent one after another
    ring                4              48 B            16 B                    16 B
    to one worker       4              48 B            24 B                    48 B

    `cluster(step, machine)`, with a step of `mg.distributed`, is a model of data parallel training: the time of a step,
    its efficiency, the wait for the network, and the bytes sent, by the number of workers, and what computing and the
    network do in one step.  `what_if` gives names to other values of fields of the step and the machine, and each
    becomes a curve.  `measured` are seconds of real steps, by the number of workers.  The model's assumptions stand
    beside the curves: `mg.distributed.simulate.ASSUMPTIONS`.

    >>> step = mg.distributed.Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
    >>> machine = mg.distributed.Machine(latency=20e-6, bandwidth=10e9)
    >>> book = mg.viz.cluster(step, machine, {"large buckets": {"bucket": 500e6}}, workers=(1, 32, 1024))
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
    if isinstance(what, Step):
        if machine is None:
            raise ConversionError(
                "cluster: a step needs a machine", expect="cluster(step, machine)",
                hint="mg.distributed.Machine(latency=20e-6, bandwidth=10e9), or measure_machine(comm)",
            )
        return _model(what, machine, what_if or {}, workers, measured or {})
    if isinstance(what, (str, Mapping)) or not (hasattr(what, "__len__") or isinstance(what, int | np.integer)):
        raise ConversionError(
            f"cluster: {shown(what)} is neither a number of workers, nor their arrays, nor a step",
            expect="4, a list of arrays, or an mg.distributed.Step",
            hint="mg.distributed.measure_step(loss, parameters) measures the step of a model",
        )
    if (machine, what_if, workers, measured) != (None,) * 4:
        raise ConversionError("cluster: machine, what_if, workers and measured belong to the model of a step",
                              expect="cluster(4), cluster(arrays) or cluster(step, machine, ...)")
    return allreduce_steps(what)


def _model(
    step: Step, machine: Machine, what_if: Mapping[str, Mapping[str, Any]], workers: Sequence[int] | None,
    measured: Mapping[int, float],
) -> Flipbook:
    """For each number of workers a page with the curves of all numbers, and one with what happens in a step."""
    for name, other in what_if.items():
        if not isinstance(other, Mapping) or not isinstance(name, str) or name in (FIRST, MEASURED):
            raise DistributedError(f"cluster: {shown({name: other})} does not name a change",
                                   expect="{'small buckets': {'bucket': 1e6}}")
    variants = {FIRST: (step, machine)} | {name: changed(step, machine, dict(each)) for name, each in what_if.items()}
    if not all(isinstance(each, (int, float)) and 0 < each < inf for each in [*measured, *measured.values()]):
        raise ConversionError(f"cluster: measured is a dictionary of seconds by workers, not {shown(measured)}")
    counts = sorted(set(COUNTS if workers is None else workers))
    if len(variants) + bool(measured) > len(SERIES) or len(counts) < 2:
        raise DistributedError(
            f"cluster: {counted(len(counts), 'number')} of workers and {counted(len(variants) - 1, 'change')}",
            expect=f"2 numbers of workers or more, at most {len(SERIES)} curves",
        )
    times = {name: [step_time(*variant, count) for count in counts] for name, variant in variants.items()}
    given, pages, lines = _settings(*variants[FIRST]), [], list[Sequence[str]]()
    own = {name: [row for row in _settings(*variant) if name == FIRST or row not in given]
           for name, variant in variants.items()}
    assumed = [line for each in ASSUMPTIONS for line in (*wrap(each, 48), "")]
    beside = Drawing(WIDE + 310.0, 16.0 * len(assumed) + 20.0)
    beside.heading(WIDE + 20.0, 12, "The model assumes")
    for i, text in enumerate(assumed, 2):
        beside.text(WIDE + 20.0, 16.0 * i, text, fill="quiet")
    drawings = moments(_charts(times, measured), counts, [beside] * len(counts), wide=WIDE, log_across=True,
                       along="workers")
    for i, (count, drawing) in enumerate(zip(counts, drawings)):
        now = {name: each[i] for name, each in times.items()}
        ways = {name: " and ".join(dict.fromkeys([span.name for span in time.spans if span.bytes])) or "nothing is sent"
                for name, time in now.items()}
        rows: list[Sequence[str]] = [
            (name, time_text(time.seconds), f"{time.efficiency:.0%}", f"{time.waiting:.0%}",
             bytes_text(round(time.bytes)))
            for name, time in now.items()
        ]
        lines += [(f"{count:,}" if row[0] == FIRST else "", *row) for row in rows]
        if count in measured:
            rows.append((MEASURED, time_text(measured[count])))
        tables = (
            (COMPARED, ("table", {"head": ("", *COLUMNS), "rows": rows})),
            *[(name, ("table", {"rows": [("summed by", ways[name]), *each]})) for name, each in own.items()],
        )
        said = f"{counted(count, 'worker')}: {_said(now[FIRST])}."
        bands = [Band(name, lanes_of(time), _said(time), True) for name, time in now.items()]
        pages.append([Page(drawing, said, tables, "curves"),
                      Page(chart_of(bands, time_unit), said, tables, "one step")])
    return Flipbook(
        f"a step on {counts[0]:,} to {counts[-1]:,} workers, by a model", pages,
        (Knob("workers", tuple([f"{count:,}" for count in counts]), len(counts) // 2),), cover=0,
        words=as_table(("workers", "", *COLUMNS), lines, left=2),
    )


def _said(time: StepTime) -> str:
    return f"{time_text(time.seconds)} a step, {time.waiting:.0%} of it waiting for the network"


def _settings(step: Step, machine: Machine) -> list[tuple[str, str]]:
    """The buckets, and the fields of the step and of the machine, which `what_if` changes."""
    buckets, backward = step.buckets(), sum(layer.backward for layer in step.layers)
    late = ", full when computing ends" * all(full >= backward for full, _ in buckets)
    known = [("one worker alone", time_text(step.seconds)), ("gradients", bytes_text(round(step.gradients))),
             ("buckets", f"{len(buckets):,}{late}")]
    return known + [(name, TEXTS.get(name, short)(value))
                    for name, value in (vars(step) | vars(machine)).items() if name != "layers"]


def _charts(times: Mapping[str, list[StepTime]], measured: Mapping[int, float]) -> dict[str, dict[str, np.ndarray]]:
    """The numbers of all variants on each number of workers, by the title of their chart; the measured times, too."""
    every = [time for each in times.values() for time in each]
    one, sent = bytes_unit(max(time.bytes for time in every))
    second, unit = time_unit(max(time.seconds for time in every))
    titles = (f"time of a step ({unit})", "efficiency = own work ÷ time of a step (%)",
              "the slowest worker waits for the network (%)", f"sent by the busiest worker ({sent})")
    tables = {name: np.array([
        (time.workers, time.seconds / second, 100 * time.efficiency, 100 * round(time.waiting, 6), time.bytes / one)
        for time in each]) for name, each in times.items()}
    charts = {title: {name: table[:, [0, i]] for name, table in tables.items()} for i, title in enumerate(titles, 1)}
    if measured:
        charts[titles[0]][MEASURED] = np.array(sorted(measured.items()), float) / [1, second]
    return charts


# One step -------------------------------------------------------------------------------------------------------------


def lanes_of(time: StepTime) -> list[Lane]:
    """What the slowest worker computes and what the network sends, over the time of a step.

    >>> step = Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
    >>> [(lane.name, len(lane.bars)) for lane in lanes_of(step_time(step, Machine(latency=20e-6, bandwidth=10e9), 8))]
    [('computing', 48), ('network', 40)]
    """
    return [
        Lane(lane, [Bar(begin, end, Work(name, name, kind=name if lane == "computing" else lane))
                    for where, name, begin, end, _ in time.spans if where == lane and end > begin])
        for lane in ("computing", "network")
    ]
