"""`mg.viz.ring`: how workers in a ring sum their arrays, message by message, compared with a single summing worker.

The workers sum real arrays: the drawing shows what each worker has in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...distributed import Communicator, ThreadCommunicators
from ...distributed import ring as ring_steps
from ...support.errors import ConversionError, DtypeError, ShapeError
from ...support.table import as_table, bytes_text
from ..drawing import Drawing
from ..flipbook import Flipbook, Knob, Page
from ..numbers import short
from ..svg import number

FEWEST, MOST = 2, 8  # workers
WIDTH, HEIGHT, ACROSS, DOWN = 118.0, 40.0, 96.0, 62.0  # the size of a chunk, and the place of the first


class Message(NamedTuple):
    """A chunk that one worker sends to another, which adds the chunk to its own or replaces its own by it."""

    sender: int
    receiver: int
    chunk: int
    added: bool


class Round(NamedTuple):
    """Messages that are sent at the same time, and the chunks of each worker afterwards.

    `held[worker][chunk]` are the numbers, and `of[worker][chunk]` the workers whose numbers are in the sum.
    """

    phase: str
    messages: list[Message]
    held: list[list[Any]]
    of: list[list[frozenset[int]]]


class Noted:
    """The communicator of a rank, which notes all messages, and the chunks of the rank before each of them."""

    def __init__(self, comm: Communicator, chunks: list[Any]) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.chunks = chunks
        self.sent: list[tuple[int, int]] = []  # of each message: the receiver and the number of the chunk
        self.held: list[list[Any]] = []

    def start_send(self, x: Any, to: int) -> Any:
        self.sent.append((to, [chunk is x for chunk in self.chunks].index(True)))
        self.note()
        return self.comm.start_send(x, to)

    def recv(self, source: int, like: Any) -> Any:
        return self.comm.recv(source, like)

    def note(self) -> None:
        self.held.append([chunk.copy() for chunk in self.chunks])


def _ran(chunks_of: list[list[Any]], op: Any) -> list[Noted]:
    """Run the ring of `mg.distributed` on the chunks of each rank; what each rank did."""

    def run(comm: Communicator) -> Noted:
        noted = Noted(comm, [chunk.copy() for chunk in chunks_of[comm.rank]])
        ring_steps.reduce_scatter(noted, noted.chunks, op)
        ring_steps.allgather(noted, noted.chunks)
        noted.note()
        return noted

    return ThreadCommunicators(len(chunks_of)).run(run)


def ring_rounds(arrays: Sequence[Any]) -> Iterator[Round]:
    """Sum one array of each worker by sending chunks around a ring: first sum each chunk, then distribute the sums.

    The functions in `minigrad/distributed/ring.py` do it, in one thread for each worker.

    >>> rounds = list(ring_rounds([np.array([1.0, 2.0]), np.array([10.0, 20.0])]))
    >>> [r.phase for r in rounds], [float(chunk[0]) for chunk in rounds[-1].held[0]]
    (['reduce-scatter', 'all-gather'], [11.0, 22.0])
    """
    n = len(arrays)
    held, _ = _begin(arrays)
    ranks = _ran(held, np.add)
    whose = _ran([[np.array([1 << i]) for _ in range(n)] for i in range(n)], np.bitwise_or)  # a bit for each worker
    for step in range(2 * (n - 1)):
        added = step < n - 1
        messages = [Message(i, *rank.sent[step], added) for i, rank in enumerate(ranks)]
        of = [[frozenset(i for i in range(n) if mask[0] >> i & 1) for mask in rank.held[step + 1]] for rank in whose]
        yield Round("reduce-scatter" if added else "all-gather", messages, [r.held[step + 1] for r in ranks], of)


def star_rounds(arrays: Sequence[Any]) -> Iterator[Round]:
    """Sum the arrays in one worker: all others send their arrays to it, and it sends the sum back.

    A worker receives one array at a time, so the senders wait for each other.
    """
    n = len(arrays)
    held, of = _begin(arrays)
    for i in range(1, n):
        yield _sent("to the first", [Message(i, 0, chunk, True) for chunk in range(n)], held, of)
    for i in range(1, n):
        yield _sent("from the first", [Message(0, i, chunk, False) for chunk in range(n)], held, of)


def _begin(arrays: Sequence[Any]) -> tuple[list[list[Any]], list[list[frozenset[int]]]]:
    n = len(arrays)
    held = [list(np.array_split(np.array(array), n)) for array in arrays]
    return held, [[frozenset([i])] * n for i in range(n)]


def _sent(phase: str, messages: list[Message], held: list[list[Any]], of: list[list[frozenset[int]]]) -> Round:
    """Send messages at the same time: each contains the numbers from before any message arrives."""
    sent = [(held[m.sender][m.chunk], of[m.sender][m.chunk]) for m in messages]
    for message, (numbers, whose) in zip(messages, sent):
        to, chunk = message.receiver, message.chunk
        held[to][chunk] = held[to][chunk] + numbers if message.added else numbers
        of[to][chunk] = of[to][chunk] | whose if message.added else whose
    return Round(phase, messages, [list(row) for row in held], [list(row) for row in of])


def ring(workers: int | Sequence[Any] = 4, size: int | None = None) -> Flipbook:
    """Step through an all-reduce of a number of workers with `size` numbers each, or of given arrays.

    >>> book = mg.viz.ring(3)
    >>> book
    <all-reduce of 3 workers, 3 numbers each: 4 rounds in a ring>
    >>> print(book.text())
    way            rounds  all that is sent  by the busiest  bytes one after the other
    ring                4              48 B            16 B                       16 B
    to one worker       4              48 B            24 B                       48 B
    """
    arrays = _arrays(workers, size)
    n = len(arrays)
    total = np.sum(np.stack(arrays), 0)
    ways = {"ring": list(ring_rounds(arrays)), "to one worker": list(star_rounds(arrays))}
    pages = [_pages(name, arrays, rounds, total) for name, rounds in ways.items()]
    table = as_table(HEAD, [_figures(name, rounds, n) for name, rounds in ways.items()], left=1)
    return Flipbook(
        f"all-reduce of {n} workers, {arrays[0].size} numbers each: {2 * (n - 1)} rounds in a ring",
        pages, (Knob("way", tuple(ways), choice=True),), cover=n - 1, unit="round", words=table,
    )


def _arrays(workers: int | Sequence[Any], size: int | None) -> list[Any]:
    if isinstance(workers, int):
        _check_count(workers)
        count = workers if size is None else size
        if count < 1:
            raise ShapeError(f"ring: arrays of {count} numbers have nothing to sum", expect="a size of at least 1")
        return [np.arange(1.0, count + 1, dtype=np.float32) + 10.0 * i for i in range(workers)]
    arrays = [np.asarray(array.numpy() if hasattr(array, "numpy") else array).reshape(-1) for array in workers]
    _check_count(len(arrays))
    if any(a.dtype.kind not in "iuf" for a in arrays):
        raise DtypeError("ring: workers sum numbers", actual=", ".join(str(a.dtype) for a in arrays))
    if len({(a.size, a.dtype) for a in arrays}) > 1 or not arrays[0].size:
        sizes = ", ".join(f"{a.size} {a.dtype}" for a in arrays)
        raise ShapeError("ring: workers sum arrays of one size and type, which are not empty", actual=sizes)
    return arrays


def _check_count(workers: int) -> None:
    if not FEWEST <= workers <= MOST:
        raise ConversionError(
            f"ring: {workers} workers can't be drawn", expect=f"from {FEWEST} to {MOST}",
            hint="with any number n of workers, each sends 2 (n - 1) / n of the bytes of its array",
        )


HEAD = ("way", "rounds", "all that is sent", "by the busiest", "bytes one after the other")


def _bytes(round: Round) -> dict[int, int]:
    """The bytes that each worker sends in a round."""
    sent: dict[int, int] = {}
    for message in round.messages:
        sent[message.sender] = sent.get(message.sender, 0) + round.held[message.receiver][message.chunk].nbytes
    return sent


def _figures(name: str, rounds: Sequence[Round], workers: int) -> tuple[str, ...]:
    each = [_bytes(r) for r in rounds]
    busiest = max(sum(sent.get(i, 0) for sent in each) for i in range(workers))
    long = sum(max(sent.values()) for sent in each)
    return name, str(len(rounds)), *map(bytes_text, (sum(sum(s.values()) for s in each), busiest, long))


def _pages(way: str, arrays: Sequence[Any], rounds: Sequence[Round], total: Any) -> list[Page]:
    held, of = _begin(arrays)
    n = len(arrays)
    start = Round("before", [], held, of)
    pages = [Page(_drawn(start, None), f"{n} workers, each with one array in {n} chunks.",
                  _blocks(way, start, [], n))]
    for i, now in enumerate(rounds):
        pages.append(Page(_drawn(now, now), _said(way, now), _blocks(way, now, rounds[: i + 1], n)))
    same = all(np.allclose(np.concatenate(row), total, equal_nan=True) for row in rounds[-1].held)
    assert same, "the all-reduce does not compute the sum"
    done = f"Done: after {len(rounds)} rounds, every worker has the sum of all {n} arrays."
    pages.append(Page(_drawn(rounds[-1], None), done, _blocks(way, rounds[-1], rounds, n)))
    return pages


def _said(way: str, round: Round) -> str:
    first = round.messages[0]
    if way == "ring":
        what = "which adds it to its own" if first.added else "which replaces its own by it: it is complete"
        return f"{round.phase}: each worker sends one chunk to the next, {what}."
    if first.added:
        return f"Worker {first.sender} sends all of its array to worker 0, which adds it to its own; the others wait."
    return f"Worker 0 sends the whole sum to worker {first.receiver}; the others wait."


def _blocks(way: str, now: Round, so_far: Sequence[Round], workers: int) -> tuple[Any, ...]:
    sent = [_bytes(r) for r in so_far]
    rows = [
        [str(i), bytes_text(sent[-1].get(i, 0)) if sent else "–", bytes_text(sum(s.get(i, 0) for s in sent))]
        for i in range(workers)
    ]
    long = bytes_text(sum(max(s.values()) for s in sent)) if sent else "nothing"
    size = sum(chunk.nbytes for chunk in now.held[0])
    whole = f"2 · {workers - 1}{f' / {workers}' if way == 'ring' else ''} × {bytes_text(size)}"
    return (
        ("bytes sent", ("table", {"head": ["worker", "this round", "so far"], "rows": rows})),
        ("one after the other", ("text", f"{long} went over the busiest wire so far; in the end it will be {whole}.")),
    )


def _drawn(state: Round, now: Round | None) -> Drawing:
    """A row for each worker, a column for each chunk: its numbers, its parts, and the messages."""
    n = len(state.held)
    drawing = Drawing(ACROSS + n * (WIDTH + 10), DOWN + n * (HEIGHT + 34) - 20)
    drawing.heading(0, 14, state.phase if now else "the workers and their chunks")
    for chunk in range(n):
        drawing.text(ACROSS + chunk * (WIDTH + 10) + WIDTH / 2, 42, f"chunk {chunk}", fill="quiet", anchor="middle")
    came = {(m.receiver, m.chunk): m for m in now.messages} if now else {}
    went = {(m.sender, m.chunk) for m in now.messages} if now else set()
    for worker in range(n):
        y = _top(worker)
        drawing.text(ACROSS - 14, y + HEIGHT / 2 + 4, f"worker {worker}", size=12, bold=True, anchor="end")
        for chunk in range(n):
            _cell(drawing, state, worker, chunk, y, came.get((worker, chunk)), (worker, chunk) in went)
    for message in now.messages if now else ():
        _arrow(drawing, message, n)
    return drawing


def _top(worker: int) -> float:
    return DOWN + worker * (HEIGHT + 34)


def _cell(
    drawing: Drawing, state: Round, worker: int, chunk: int, y: float, came: Message | None, went: bool
) -> None:
    n, begin = len(state.held), len(drawing.pieces)
    x, whose = ACROSS + chunk * (WIDTH + 10), state.of[worker][chunk]
    complete = len(whose) == n
    fill = "leaf-fill" if complete else "there-fill" if len(whose) > 1 else "paper"
    stroke = "now" if came else "good" if complete else "there" if went else "line"
    parts = " + ".join(str(i) for i in sorted(whose))
    about = f"worker {worker}, chunk {chunk}: {_listed(state.held[worker][chunk])}, the sum of workers {parts}"
    drawing.rect(x, y, WIDTH, HEIGHT, fill, stroke, thick=2.4 if came else 1.2, about=about)
    drawing.text(x + WIDTH / 2, y + 16, _listed(state.held[worker][chunk]), anchor="middle", bold=True, room=WIDTH - 8)
    marks = [f"M{number(x + WIDTH / 2 + (i - n / 2) * 11)} {number(y + HEIGHT - 15)}h9v9h-9z" for i in range(n)]
    drawing.shape("".join(marks), "line", 0.35)  # a mark for each worker, filled if its part is in the sum
    drawing.shape("".join([mark for i, mark in enumerate(marks) if i in whose]), "good" if complete else "there")
    drawing.merge(begin)


def _arrow(drawing: Drawing, message: Message, workers: int) -> None:
    """From the sender's row to the receiver's; from the last worker to the first, around on the right."""
    x = ACROSS + message.chunk * (WIDTH + 10) + WIDTH / 2
    colour = "back" if message.added else "good"
    if message.receiver == message.sender + 1:
        start, end = _top(message.sender) + HEIGHT + 1, _top(message.receiver) - 2
        drawing.path([(x, start), (x, end)], colour, thick=2, arrow=True)
        drawing.text(x + 8, end - 11, "+" if message.added else "=", fill=colour, bold=True, size=13)
        return
    edge = x + WIDTH / 2 + 5
    start, end = _top(message.sender) + HEIGHT / 2, _top(message.receiver) + HEIGHT / 2
    drawing.path([(edge - 5, start), (edge, start), (edge, end), (edge - 5, end)], colour, thick=2, arrow=True)


def _listed(numbers: Any) -> str:
    shown = [short(float(x)) for x in numbers[:3]]
    return ", ".join(shown) + (", …" if numbers.size > 3 else "") if shown else "empty"
