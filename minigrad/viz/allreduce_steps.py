"""How workers in a ring sum their arrays, message by message, compared with a single summing worker.

`mg.viz.cluster` shows it for numbers of workers and for arrays.  The workers sum real arrays: the drawing shows what
each worker has in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..distributed import Communicator, Machine, ThreadCommunicators
from ..distributed import ring as ring_steps
from ..support.errors import ConversionError, DtypeError, ShapeError
from ..support.table import as_table, bytes_text, counted, time_text
from .drawing import Drawing
from .flipbook import Flipbook, Knob, Page
from .numbers import short
from .svg import number

FEWEST, MOST = 2, 8  # workers
NUMBERS = 1_000_000  # of all arrays together: they are really sent and summed
WIDTH, HEIGHT, ACROSS, DOWN = 118.0, 40.0, 96.0, 62.0  # the size of a chunk, and the place of the first
BESIDE, BELOW = 22.0, 34.0  # between two chunks
MODEL = "mg.viz.cluster(mg.distributed.Step(...), mg.distributed.Machine(...)) is a model of any number"
SIZES = ("all that is sent", "by the busiest", "bytes one after the other")
SAYS = {  # of a phase, with the sender and the receiver of its first message
    "reduce-scatter": "reduce-scatter: each worker sends one chunk to the next, which adds it to its own.",
    "all-gather": "all-gather: each worker sends one chunk to the next, which replaces its own by it: it is complete.",
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


class Noted:
    """The communicator of a rank, which notes each message: the receiver, and the number of the chunk."""

    def __init__(self, comm: Communicator, chunks: list[Any]) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.chunks = [chunk.copy() for chunk in chunks]
        self.sent: list[tuple[int, int]] = []

    def start_send(self, x: Any, to: int) -> Any:
        self.sent.append((to, [chunk is x for chunk in self.chunks].index(True)))
        return self.comm.start_send(x, to)

    def recv(self, source: int, like: Any) -> Any:
        return self.comm.recv(source, like)


def ring_rounds(arrays: Sequence[Any]) -> Iterator[Round]:
    """Sum one array of each worker by sending chunks around a ring: first sum each chunk, then distribute the sums.

    The functions in `minigrad/distributed/ring.py` do it, in one thread for each worker.  Their messages are repeated
    here one round at a time, and lead to the arrays that the threads have in the end.

    >>> rounds = list(ring_rounds([np.array([1.0, 2.0]), np.array([10.0, 20.0])]))
    >>> [r.phase for r in rounds], [float(chunk.numbers[0]) for chunk in rounds[-1].held[0]]
    (['reduce-scatter', 'all-gather'], [11.0, 22.0])
    """
    held = _begin(arrays)

    def run(comm: Communicator) -> Noted:
        noted = Noted(comm, [chunk.numbers for chunk in held[comm.rank]])
        ring_steps.reduce_scatter(noted, noted.chunks, np.add)
        ring_steps.allgather(noted, noted.chunks)
        return noted

    n = len(arrays)
    ranks = ThreadCommunicators(n).run(run)
    for step in range(2 * (n - 1)):
        added = step < n - 1
        sent = [rank.sent[step] for rank in ranks]
        messages = [Message(i, to, chunk, added) for i, (to, chunk) in enumerate(sent)]
        yield _sent("reduce-scatter" if added else "all-gather", messages, held)
    for row, rank in zip(held, ranks):
        assert np.array_equal(_whole(row), np.concatenate(rank.chunks), equal_nan=True)


def star_rounds(arrays: Sequence[Any]) -> Iterator[Round]:
    """Sum the arrays in one worker: all others send their arrays to it, and it sends the sum back.

    A worker receives one array at a time, so the senders wait for each other.
    """
    n = len(arrays)
    held = _begin(arrays)
    for i in range(1, n):
        yield _sent("to the first", [Message(i, 0, chunk, True) for chunk in range(n)], held)
    for i in range(1, n):
        yield _sent("from the first", [Message(0, i, chunk, False) for chunk in range(n)], held)


def _begin(arrays: Sequence[Any]) -> list[list[Chunk]]:
    n = len(arrays)
    return [[Chunk(part, frozenset([i])) for part in np.array_split(array, n)] for i, array in enumerate(arrays)]


def _sent(phase: str, messages: list[Message], held: list[list[Chunk]]) -> Round:
    """Send messages at the same time: each contains the numbers from before any message arrives."""
    sent = [held[m.sender][m.chunk] for m in messages]
    for (_, to, chunk, added), came in zip(messages, sent):
        mine = held[to][chunk]
        held[to][chunk] = Chunk(mine.numbers + came.numbers, mine.of | came.of) if added else came
    return Round(phase, messages, [list(row) for row in held])


def _whole(row: Sequence[Chunk]) -> np.ndarray:
    return np.concatenate([chunk.numbers for chunk in row])


def allreduce_steps(workers: int | Sequence[Any], size: int | None, machine: Machine | None) -> Flipbook:
    """The messages of an all-reduce, round by round: those of a ring, and those of one worker that sums all arrays.

    With a `machine`, its model of messages says how long each way takes.
    """
    arrays = _arrays(workers, size)
    n = len(arrays)
    ways = {"ring": list(ring_rounds(arrays)), "to one worker": list(star_rounds(arrays))}
    pages = [_pages(name, arrays, rounds, machine) for name, rounds in ways.items()]
    rows = [{"way": name, **_figures(rounds, machine)} for name, rounds in ways.items()]
    table = as_table([*rows[0]], [[*row.values()] for row in rows], left=1)
    return Flipbook(
        f"all-reduce of {n} workers, {arrays[0].size:,} numbers each: {2 * (n - 1)} rounds in a ring",
        pages, (Knob("way", tuple(ways), choice=True),), cover=n - 1, unit="round", words=table,
    )


def _arrays(workers: int | Sequence[Any], size: int | None) -> list[Any]:
    """The array of each worker: those given, or numbers that show in the sum whose they are."""
    many = workers if isinstance(workers, int) else len(workers)
    if not FEWEST <= many <= MOST:
        raise ConversionError(
            f"cluster: the messages of {counted(many, 'worker')} can't be drawn", expect=f"from {FEWEST} to {MOST}",
            hint=MODEL,
        )
    if isinstance(workers, int):
        count = workers if size is None else size
        if not 1 <= count <= NUMBERS // workers:
            raise ShapeError(f"cluster: arrays of {count:,} numbers are not sent here",
                             expect=f"a size from 1 to {NUMBERS // workers:,}", hint=MODEL)
        return [np.arange(1.0, count + 1, dtype=np.float32) + 10.0 * i for i in range(workers)]
    arrays = [np.asarray(array.numpy() if hasattr(array, "numpy") else array).reshape(-1) for array in workers]
    if any(a.dtype.kind not in "iuf" for a in arrays):
        raise DtypeError("cluster: workers sum numbers", actual=", ".join(str(a.dtype) for a in arrays))
    if len({(a.size, a.dtype) for a in arrays}) > 1 or not arrays[0].size:
        sizes = ", ".join(f"{a.size} {a.dtype}" for a in arrays)
        raise ShapeError("cluster: workers sum arrays of one size and type, which are not empty", actual=sizes)
    return arrays


def _bytes(rounds: Sequence[Round]) -> np.ndarray:
    """The bytes that each worker sends in each round."""
    sent = np.zeros((len(rounds), len(rounds[0].held)), int)
    for row, each in zip(sent, rounds):
        for message in each.messages:
            row[message.sender] += each.held[message.receiver][message.chunk].numbers.nbytes
    return sent


def _figures(rounds: Sequence[Round], machine: Machine | None) -> dict[str, str]:
    """The numbers of some rounds: how many they are, bytes, and the seconds of the model."""
    sent, many = _bytes(rounds), sum(bool(each.messages) for each in rounds)
    long = int(sent.max(1).sum())
    sizes = [bytes_text(int(size)) for size in (sent.sum(), sent.sum(0).max(), long)]
    seconds = {} if machine is None else {
        "by the model": time_text(many * machine.latency + long / machine.bandwidth)
    }
    return {"rounds": str(many), **dict(zip(SIZES, sizes)), **seconds}


def _pages(way: str, arrays: Sequence[Any], rounds: Sequence[Round], machine: Machine | None) -> list[Page]:
    """The arrays at first, each round, and the sums."""
    n = len(arrays)
    start = Round("the workers and their chunks", [], _begin(arrays))
    end = rounds[-1]._replace(phase="the sums", messages=[])
    long = f"2 · {n - 1}{f' / {n}' if way == 'ring' else ''} × {bytes_text(arrays[0].nbytes)}"
    says = [
        f"{n} workers, each with one array in {n} chunks.",
        *[SAYS[each.phase].format(*each.messages[0]) for each in rounds],
        f"Done: every worker has the sum of all {n} arrays. One after the other, {long} were sent.",
    ]
    shown, pages = [start, *rounds, end], []
    for i, said in enumerate(says):
        rows = [*_figures(shown[: i + 1], machine).items()]
        pages.append(Page(_drawn(shown[i]), said, (("so far", ("table", {"head": ["", ""], "rows": rows})),)))
    return pages


def _drawn(state: Round) -> Drawing:
    """A row for each worker, a column for each chunk: its numbers, its parts, and the messages."""
    n = len(state.held)
    drawing = Drawing(ACROSS + n * (WIDTH + BESIDE), DOWN + n * (HEIGHT + BELOW) - 20)
    drawing.heading(0, 14, state.phase)
    came = {(message.receiver, message.chunk) for message in state.messages}
    for chunk in range(n):
        drawing.text(_left(chunk) + WIDTH / 2, 42, f"chunk {chunk}", fill="quiet", anchor="middle")
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
    listed = ", ".join([*map(short, numbers[:3].tolist()), *["…"] * (numbers.size > 3)]) or "empty"
    fill, colour = ("leaf-fill", "good") if len(whose) == n else ("there-fill" if whose[1:] else "paper", "there")
    about = f"worker {worker}, chunk {chunk}: {listed}, the sum of workers {' + '.join(map(str, whose))}"
    with drawing.piece():
        drawing.rect(x, y, WIDTH, HEIGHT, fill, "now" if came else "line", thick=2.4 if came else 1.2, about=about)
        drawing.text(x + WIDTH / 2, y + 16, listed, anchor="middle", bold=True, room=WIDTH - 8)
        marks = [f"M{number(x + WIDTH / 2 + (i - n / 2) * 11)} {number(y + HEIGHT - 15)}h9v9h-9z" for i in range(n)]
        drawing.shape("".join(marks), "line", 0.35)
        drawing.shape("".join([marks[i] for i in whose]), colour)


def _arrow(drawing: Drawing, message: Message) -> None:
    """From the sender's row to the receiver's, around on the right, with a sign for what the receiver does."""
    x, colour = _left(message.chunk) + WIDTH, "back" if message.added else "good"
    start, end = _top(message.sender) + HEIGHT / 2, _top(message.receiver) + HEIGHT / 2
    drawing.path([(x, start), (x + 12, start), (x + 12, end), (x + 2, end)], colour, thick=2, arrow=True)
    drawing.text(x - 3, end - 25, "+" if message.added else "=", fill=colour, anchor="end", bold=True, size=13)
