"""How workers in a ring sum their arrays, message by message, compared with a single summing worker.

`mg.viz.cluster` shows it for numbers of workers and for arrays.  The messages are those of `distributed/ring.py`, sent
one round at a time: the drawing shows what each worker has in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from ..support.errors import ConversionError, DtypeError, ShapeError
from ..support.table import as_table, bytes_text, counted
from .drawing import Drawing
from .flipbook import Flipbook, Knob, Page
from .numbers import short
from .svg import number

FEWEST, MOST = 2, 8  # workers
WIDTH, HEIGHT, ACROSS, DOWN = 118.0, 40.0, 96.0, 62.0  # the size of a chunk, and the place of the first
LETTERS = 16  # for the numbers of a chunk
BESIDE, BELOW = 22.0, 34.0  # between two chunks
MODEL = "mg.viz.cluster(mg.distributed.Step(...), mg.distributed.Machine(...)) is a model of any number"
FIGURES = ("rounds", "all that is sent", "by the busiest", "sent one after another")
MARKS = "Squares: the workers in a sum. Pale blue: some, green: all. Yellow frame: it has just changed."
SAYS = {  # of a phase, with the sender and the receiver of its first message
    "reduce-scatter": "Reduce-scatter: each worker sends one chunk to the next, which adds it to its own.",
    "all-gather": "All-gather: each worker sends one complete chunk to the next, which keeps it.",
    "to the first": "Worker {0} sends all of its array to worker 0, which adds it to its own; the others wait.",
    "from the first": "Worker 0 sends the whole sum to worker {1}; the others wait.",
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
    x, y, whose, listed = _left(chunk), _top(worker), sorted(of), _listed(numbers)
    fill, colour = ("leaf-fill", "good") if len(whose) == n else ("there-fill" if whose[1:] else "paper", "there")
    made = f"the sum of workers {' + '.join(map(str, whose))}" if whose[1:] else f"of worker {whose[0]}"
    about = f"worker {worker}, chunk {chunk}: {listed}, {made}"
    with drawing.piece():
        drawing.rect(x, y, WIDTH, HEIGHT, fill, "now" if came else "line", thick=2.4 if came else 1.2, about=about)
        drawing.text(x + WIDTH / 2, y + 16, listed, anchor="middle", room=WIDTH - 16)
        marks = [f"M{number(x + WIDTH / 2 + (i - n / 2) * 11)} {number(y + HEIGHT - 15)}h9v9h-9z" for i in range(n)]
        drawing.shape("".join(marks), "line", 0.35)
        drawing.shape("".join(marks[i] for i in whose), colour)


def _listed(numbers: Any) -> str:
    """The first numbers of a chunk: as many as its box has room for."""
    return shorten(", ".join(map(short, numbers[:LETTERS].tolist())), LETTERS, placeholder=" …") or "empty"


def _arrow(drawing: Drawing, message: Message) -> None:
    """From the sender's row to the receiver's, around on the right, with a sign for what the receiver does."""
    x, colour = _left(message.chunk) + WIDTH, "back" if message.added else "good"
    start, end = _top(message.sender) + HEIGHT / 2, _top(message.receiver) + HEIGHT / 2
    drawing.path([(x, start), (x + 12, start), (x + 12, end), (x + 2, end)], colour, thick=2, arrow=True)
    drawing.text(x - 3, end - 25, "+" if message.added else "=", fill=colour, anchor="end", bold=True, size=13)
