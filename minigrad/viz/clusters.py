"""`mg.viz.cluster`: workers that train together: the messages of an all-reduce, or a model of a step on thousands.

The messages are those of `distributed/ring.py`, sent one round at a time: the drawing shows what each worker has in
memory.  The model is that of `distributed/simulate.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from textwrap import shorten, wrap
from typing import Any, NamedTuple

import numpy as np

from ..distributed import Machine, Step, step_time
from ..distributed.simulate import ASSUMPTIONS, StepTime, changed
from ..support.errors import ConversionError, DistributedError, DtypeError, ShapeError
from ..support.table import as_table, bytes_text, bytes_unit, counted, time_text, time_unit
from ..support.words import shown
from .drawing import SERIES, Drawing
from .flipbook import Flipbook, Knob, Page
from .lanes import Band, Bar, Lane, Work, chart_of
from .numbers import short
from .runs import moments
from .svg import number

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


# Messages -------------------------------------------------------------------------------------------------------------

FEWEST, MOST = 2, 8  # workers
WIDTH, HEIGHT, ACROSS, DOWN = 118.0, 40.0, 96.0, 62.0  # the size of a chunk, and the place of the first
LETTERS = 16  # for the numbers of a chunk
BESIDE, BELOW = 22.0, 34.0  # between two chunks
MODEL = "mg.viz.cluster(step, machine) is a model of any number"
FIGURES = ("rounds", "all that is sent", "by the busiest", "sent one after another")
MARKS = "Squares: the workers in a sum. Pale blue: some, green: all. Yellow frame: it has just changed."
SAYS = {  # of a phase, with the sender and the receiver of its first message
    "reduce-scatter": "Reduce-scatter: each worker sends one chunk to the next, which adds it to its own.",
    "all-gather": "All-gather: each worker sends one complete chunk to the next, which keeps it.",
    "to the first": "Worker {0} sends all of its array to worker 0, which adds it to its own; the others wait.",
    "from the first": "Worker 0 sends the sum to worker {1}; the others wait.",
}


class Message(NamedTuple):
    """A chunk that one worker sends to another, which adds the chunk to its own or replaces its own by it."""

    sender: int
    receiver: int
    chunk: int
    added: bool


class Chunk(NamedTuple):
    """The numbers of a chunk, and the workers whose numbers are in the sum."""

    numbers: Any
    of: frozenset[int]


class Round(NamedTuple):
    """Messages that are sent at the same time, and afterwards the chunks of each worker: `held[worker][chunk]`."""

    phase: str
    messages: list[Message]
    held: list[list[Chunk]]

    @property
    def sent(self) -> Counter[int]:
        """The bytes that each worker sends."""
        found = Counter[int]()
        for sender, receiver, chunk, _ in self.messages:
            found[sender] += self.held[receiver][chunk].numbers.nbytes
        return found


def ring_rounds(arrays: Sequence[Any]) -> list[Round]:
    """Sum one array of each worker by sending chunks around a ring: first sum each chunk, then distribute the sums.

    >>> rounds = ring_rounds([np.array([1.0, 2.0]), np.array([10.0, 20.0])])
    >>> [r.phase for r in rounds], [float(chunk.numbers[0]) for chunk in rounds[-1].held[0]]
    (['the workers and their chunks', 'reduce-scatter', 'all-gather'], [11.0, 22.0])
    """
    n = len(arrays)
    return _rounds(arrays, [
        (phase, [Message(i, (i + 1) % n, (i - step) % n, added) for i in range(n)])
        for phase, added, steps in (("reduce-scatter", True, range(1, n)), ("all-gather", False, range(n - 1)))
        for step in steps
    ])


def star_rounds(arrays: Sequence[Any]) -> list[Round]:
    """Sum the arrays in one worker: all others send their arrays to it, and it sends the sum back.

    A worker receives one array at a time, so the senders wait for each other.
    """
    n = len(arrays)
    there = [("to the first", [Message(i, 0, chunk, True) for chunk in range(n)]) for i in range(1, n)]
    back = [("from the first", [Message(0, i, chunk, False) for chunk in range(n)]) for i in range(1, n)]
    return _rounds(arrays, there + back)


def _rounds(arrays: Sequence[Any], plan: Sequence[tuple[str, list[Message]]]) -> list[Round]:
    """The chunks at first, and after the messages of each phase, which have the numbers from before any arrives."""
    held = [[Chunk(part, frozenset([i])) for part in np.array_split(array, len(arrays))]
            for i, array in enumerate(arrays)]
    rounds = [Round("the workers and their chunks", [], held)]
    for phase, messages in plan:
        before, held = held, [list(row) for row in held]
        for sender, receiver, chunk, added in messages:
            mine, came = before[receiver][chunk], before[sender][chunk]
            held[receiver][chunk] = Chunk(mine.numbers + came.numbers, mine.of | came.of) if added else came
        rounds.append(Round(phase, messages, held))
    return rounds


def allreduce_steps(workers: int | Sequence[Any]) -> Flipbook:
    """The messages of an all-reduce, round by round: those of a ring, and those of one worker that sums all arrays."""
    arrays = _arrays(workers)
    n = len(arrays)
    ways = {"ring": ring_rounds(arrays), "to one worker": star_rounds(arrays)}
    pages = [_pages(rounds) for rounds in ways.values()]
    rows = [(name, *_figures(rounds)) for name, rounds in ways.items()]
    return Flipbook(
        f"all-reduce of {n} workers, {counted(arrays[0].size, 'number')} each: {2 * (n - 1)} rounds in a ring",
        pages, (Knob("way", tuple(ways), choice=True),), cover=n - 1, unit="round",
        words=as_table(("way", *FIGURES), rows, left=1),
    )


def _arrays(workers: int | Sequence[Any]) -> list[Any]:
    """The array of each worker: those given, or numbers that show in the sum whose they are."""
    many = workers if isinstance(workers, int | np.integer) else len(workers)
    if not FEWEST <= many <= MOST:
        raise ConversionError(
            f"cluster: the messages of {counted(many, 'worker')} can't be drawn", expect=f"from {FEWEST} to {MOST}",
            hint=MODEL,
        )
    if isinstance(workers, int | np.integer):
        return [np.arange(1.0, workers + 1, dtype=np.float32) + 10.0 * i for i in range(workers)]
    arrays = [np.asarray(array).reshape(-1) for array in workers]
    if any(a.dtype.kind not in "iuf" for a in arrays):
        raise DtypeError("cluster: workers sum numbers", actual=", ".join(str(a.dtype) for a in arrays))
    if len({(a.size, a.dtype) for a in arrays}) > 1 or not arrays[0].size:
        sizes = ", ".join(f"{a.size} {a.dtype}" for a in arrays)
        raise ShapeError("cluster: workers sum arrays of one size and type, which are not empty", actual=sizes)
    return arrays


def _figures(rounds: Sequence[Round]) -> tuple[str, ...]:
    """The `FIGURES` of some rounds, of which the first one is before all messages."""
    sent = sum([each.sent for each in rounds], Counter[int]())
    longest = sum(max(each.sent.values()) for each in rounds[1:])
    return str(len(rounds) - 1), *map(bytes_text, (sent.total(), max(sent.values(), default=0), longest))


def _pages(rounds: Sequence[Round]) -> list[Page]:
    """The arrays at first, and each round."""
    n, last = len(rounds[0].held), len(rounds) - 1
    says = [
        f"At the end, each of {n} workers has the sum of all {n} arrays. They send chunks (in brackets: of how many "
        f"numbers). {MARKS}",
        *[f"Round {i} of {last}. {SAYS[each.phase].format(*each.messages[0])}"
          for i, each in enumerate(rounds[1:], 1)],
    ]
    says[-1] += f" Done: every worker has the sum of all {n} arrays."
    return [
        Page(_drawn(shown), said, (("so far", ("table", {"rows": [*zip(FIGURES, _figures(rounds[: i + 1]))]})),),
             count=f"round {i} / {last}")
        for i, (shown, said) in enumerate(zip(rounds, says))
    ]


def _drawn(state: Round) -> Drawing:
    """A row for each worker, a column for each chunk: its numbers, its parts, and the messages."""
    n = len(state.held)
    drawing = Drawing(ACROSS + n * (WIDTH + BESIDE), DOWN + n * (HEIGHT + BELOW) - 20)
    drawing.heading(0, 14, state.phase)
    came = {(message.receiver, message.chunk) for message in state.messages}
    for chunk, (numbers, _) in enumerate(state.held[0]):
        drawing.text(_left(chunk) + WIDTH / 2, 42, f"chunk {chunk} ({numbers.size})", fill="quiet", anchor="middle")
    for worker in range(n):
        drawing.text(ACROSS - 14, _top(worker) + HEIGHT / 2 + 4, f"worker {worker}", size=12, bold=True, anchor="end")
        for chunk in range(n):
            _cell(drawing, worker, chunk, *state.held[worker][chunk], n, (worker, chunk) in came)
    for message in state.messages:
        _arrow(drawing, message)
    return drawing


def _left(chunk: int) -> float:
    return ACROSS + chunk * (WIDTH + BESIDE)


def _top(worker: int) -> float:
    return DOWN + worker * (HEIGHT + BELOW)


def _cell(
    drawing: Drawing, worker: int, chunk: int, numbers: Any, of: frozenset[int], n: int, came: bool
) -> None:
    """The numbers of a chunk, and a mark for each of n workers, filled if its part is in the sum."""
    x, y, whose = _left(chunk), _top(worker), sorted(of)
    listed = shorten(", ".join(map(short, numbers[:LETTERS].tolist())), LETTERS, placeholder=" …") or "empty"
    fill, colour = ("leaf-fill", "good") if len(whose) == n else ("there-fill" if whose[1:] else "paper", "there")
    made = f"the sum of workers {' + '.join(map(str, whose))}" if whose[1:] else f"of worker {whose[0]}"
    about = f"worker {worker}, chunk {chunk}: {listed}, {made}"
    with drawing.piece():
        drawing.rect(x, y, WIDTH, HEIGHT, fill, "now" if came else "line", thick=2.4 if came else 1.2, about=about)
        drawing.text(x + WIDTH / 2, y + 16, listed, anchor="middle", room=WIDTH - 16)
        marks = [f"M{number(x + WIDTH / 2 + (i - n / 2) * 11)} {number(y + HEIGHT - 15)}h9v9h-9z" for i in range(n)]
        drawing.shape("".join(marks), "line", 0.35)
        drawing.shape("".join(marks[i] for i in whose), colour)


def _arrow(drawing: Drawing, message: Message) -> None:
    """From the sender's row to the receiver's, around on the right, with a sign for what the receiver does."""
    x, colour = _left(message.chunk) + WIDTH, "back" if message.added else "good"
    start, end = _top(message.sender) + HEIGHT / 2, _top(message.receiver) + HEIGHT / 2
    drawing.path([(x, start), (x + 12, start), (x + 12, end), (x + 2, end)], colour, thick=2, arrow=True)
    drawing.text(x - 3, end - 25, "+" if message.added else "=", fill=colour, anchor="end", bold=True, size=13)
