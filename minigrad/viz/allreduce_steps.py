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
from ..support.table import as_table, bytes_text, time_text
from .drawing import Drawing
from .flipbook import Block, Flipbook, Knob, Page
from .numbers import short
from .svg import number

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
    >>> [r.phase for r in rounds], [float(chunk[0]) for chunk in rounds[-1].held[0]]
    (['reduce-scatter', 'all-gather'], [11.0, 22.0])
    """
    held, of = _begin(arrays)

    def run(comm: Communicator) -> Noted:
        noted = Noted(comm, held[comm.rank])
        ring_steps.reduce_scatter(noted, noted.chunks, np.add)
        ring_steps.allgather(noted, noted.chunks)
        return noted

    n = len(arrays)
    ranks = ThreadCommunicators(n).run(run)
    for step in range(2 * (n - 1)):
        added = step < n - 1
        sent = [rank.sent[step] for rank in ranks]
        messages = [Message(i, to, chunk, added) for i, (to, chunk) in enumerate(sent)]
        yield _sent("reduce-scatter" if added else "all-gather", messages, held, of)
    for row, rank in zip(held, ranks):
        assert np.array_equal(np.concatenate(row), np.concatenate(rank.chunks), equal_nan=True)


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


def allreduce_steps(workers: int | Sequence[Any], size: int | None, machine: Machine | None) -> Flipbook:
    """The messages of an all-reduce, round by round: those of a ring, and those of one worker that sums all arrays.

    With a `machine`, its model of messages says how long each way takes.
    """
    arrays = _arrays(workers, size)
    n = len(arrays)
    ways = {"ring": list(ring_rounds(arrays)), "to one worker": list(star_rounds(arrays))}
    pages = [_pages(name, arrays, rounds) for name, rounds in ways.items()]
    head = HEAD if machine is None else (*HEAD, "by the model")
    table = as_table(head, [(name, *_figures(rounds, n, machine)) for name, rounds in ways.items()], left=1)
    return Flipbook(
        f"all-reduce of {n} workers, {arrays[0].size} numbers each: {2 * (n - 1)} rounds in a ring",
        pages, (Knob("way", tuple(ways), choice=True),), cover=n - 1, unit="round", words=table,
    )


def _arrays(workers: int | Sequence[Any], size: int | None) -> list[Any]:
    """The array of each worker: those given, or numbers that show in the sum whose they are."""
    if isinstance(workers, int):
        _check_count(workers)
        count = workers if size is None else size
        if count < 1:
            raise ShapeError(f"cluster: arrays of {count} numbers have nothing to sum", expect="a size of at least 1")
        return [np.arange(1.0, count + 1, dtype=np.float32) + 10.0 * i for i in range(workers)]
    arrays = [np.asarray(array.numpy() if hasattr(array, "numpy") else array).reshape(-1) for array in workers]
    _check_count(len(arrays))
    if any(a.dtype.kind not in "iuf" for a in arrays):
        raise DtypeError("cluster: workers sum numbers", actual=", ".join(str(a.dtype) for a in arrays))
    if len({(a.size, a.dtype) for a in arrays}) > 1 or not arrays[0].size:
        sizes = ", ".join(f"{a.size} {a.dtype}" for a in arrays)
        raise ShapeError("cluster: workers sum arrays of one size and type, which are not empty", actual=sizes)
    return arrays


def _check_count(workers: int) -> None:
    if not FEWEST <= workers <= MOST:
        raise ConversionError(
            f"cluster: the messages of {workers} workers can't be drawn", expect=f"from {FEWEST} to {MOST}",
            hint="mg.viz.cluster(mg.distributed.Step(...), mg.distributed.Machine(...)) is a model of any number",
        )


HEAD = ("way", "rounds", "all that is sent", "by the busiest", "bytes one after the other")


def _bytes(round: Round) -> dict[int, int]:
    """The bytes that each worker sends in a round."""
    sent: dict[int, int] = {}
    for message in round.messages:
        sent[message.sender] = sent.get(message.sender, 0) + round.held[message.receiver][message.chunk].nbytes
    return sent


def _figures(rounds: Sequence[Round], workers: int, machine: Machine | None) -> list[str]:
    """The numbers of a way: rounds, bytes, and the seconds of the model."""
    each = [_bytes(r) for r in rounds]
    busiest = max(sum(sent.get(i, 0) for sent in each) for i in range(workers))
    long = sum(max(sent.values()) for sent in each)
    sizes = [bytes_text(size) for size in (sum(sum(s.values()) for s in each), busiest, long)]
    seconds = [] if machine is None else [time_text(len(rounds) * machine.latency + long / machine.bandwidth)]
    return [str(len(rounds)), *sizes, *seconds]


def _pages(way: str, arrays: Sequence[Any], rounds: Sequence[Round]) -> list[Page]:
    """The arrays at first, each round, and the sums."""
    n = len(arrays)
    start = Round("before", [], *_begin(arrays))
    begin = f"{n} workers, each with one array in {n} chunks."
    end = f"Done: after {len(rounds)} rounds, every worker has the sum of all {n} arrays."
    shown = [(start, False, begin), *[(each, True, _said(way, each)) for each in rounds], (rounds[-1], False, end)]
    return [
        Page(_drawn(state, sending), said, _blocks(way, state, rounds[:i], n))
        for i, (state, sending, said) in enumerate(shown)
    ]


def _said(way: str, round: Round) -> str:
    first = round.messages[0]
    if way == "ring":
        what = "which adds it to its own" if first.added else "which replaces its own by it: it is complete"
        return f"{round.phase}: each worker sends one chunk to the next, {what}."
    if first.added:
        return f"Worker {first.sender} sends all of its array to worker 0, which adds it to its own; the others wait."
    return f"Worker 0 sends the whole sum to worker {first.receiver}; the others wait."


def _blocks(way: str, now: Round, so_far: Sequence[Round], workers: int) -> tuple[tuple[str, Block], ...]:
    """What each worker has sent, and what has gone over the busiest wire."""
    sent = [_bytes(r) for r in so_far]
    each = [[each.get(i, 0) for each in sent] for i in range(workers)]
    rows = [[str(i), *[bytes_text(size) for size in (sum(sizes[-1:]), sum(sizes))]] for i, sizes in enumerate(each)]
    long = bytes_text(sum(max(s.values()) for s in sent))
    size = bytes_text(sum(chunk.nbytes for chunk in now.held[0]))
    whole = f"2 · {workers - 1}{f' / {workers}' if way == 'ring' else ''} × {size}"
    return (
        ("bytes sent", ("table", {"head": ["worker", "this round", "so far"], "rows": rows})),
        ("one after the other", ("text", f"{long} went over the busiest wire so far; in the end it will be {whole}.")),
    )


def _drawn(state: Round, sending: bool) -> Drawing:
    """A row for each worker, a column for each chunk: its numbers, its parts, and the messages."""
    n = len(state.held)
    drawing = Drawing(ACROSS + n * (WIDTH + 10), DOWN + n * (HEIGHT + 34) - 20)
    drawing.heading(0, 14, state.phase if sending else "the workers and their chunks")
    messages = state.messages if sending else []
    came, went = {(m.receiver, m.chunk) for m in messages}, {(m.sender, m.chunk) for m in messages}
    for chunk in range(n):
        drawing.text(_left(chunk) + WIDTH / 2, 42, f"chunk {chunk}", fill="quiet", anchor="middle")
    for worker in range(n):
        drawing.text(ACROSS - 14, _top(worker) + HEIGHT / 2 + 4, f"worker {worker}", size=12, bold=True, anchor="end")
        for chunk in range(n):
            _cell(drawing, state, worker, chunk, (worker, chunk) in came, (worker, chunk) in went)
    for message in messages:
        _arrow(drawing, message)
    return drawing


def _left(chunk: int) -> float:
    return ACROSS + chunk * (WIDTH + 10)


def _top(worker: int) -> float:
    return DOWN + worker * (HEIGHT + 34)


def _cell(drawing: Drawing, state: Round, worker: int, chunk: int, came: bool, went: bool) -> None:
    """The numbers of a chunk, and a mark for each worker, filled if its part is in the sum."""
    n, begin = len(state.held), len(drawing.pieces)
    x, y, whose, listed = _left(chunk), _top(worker), state.of[worker][chunk], _listed(state.held[worker][chunk])
    complete = len(whose) == n
    fill = "leaf-fill" if complete else "there-fill" if len(whose) > 1 else "paper"
    stroke = "now" if came else "good" if complete else "there" if went else "line"
    about = f"worker {worker}, chunk {chunk}: {listed}, the sum of workers {' + '.join(map(str, sorted(whose)))}"
    drawing.rect(x, y, WIDTH, HEIGHT, fill, stroke, thick=2.4 if came else 1.2, about=about)
    drawing.text(x + WIDTH / 2, y + 16, listed, anchor="middle", bold=True, room=WIDTH - 8)
    marks = [f"M{number(x + WIDTH / 2 + (i - n / 2) * 11)} {number(y + HEIGHT - 15)}h9v9h-9z" for i in range(n)]
    drawing.shape("".join(marks), "line", 0.35)
    drawing.shape("".join([marks[i] for i in sorted(whose)]), "good" if complete else "there")
    drawing.merge(begin)


def _arrow(drawing: Drawing, message: Message) -> None:
    """From the sender's row to the next one; to any other row, around on the right."""
    x, colour = _left(message.chunk) + WIDTH / 2, "back" if message.added else "good"
    start, end = _top(message.sender), _top(message.receiver)
    if message.receiver == message.sender + 1:
        way = [(x, start + HEIGHT + 1), (x, end - 2)]
        drawing.text(x + 8, end - 13, "+" if message.added else "=", fill=colour, bold=True, size=13)
    else:
        edge = x + WIDTH / 2
        way = [(edge + out, row + HEIGHT / 2) for out, row in ((0, start), (5, start), (5, end), (0, end))]
    drawing.path(way, colour, thick=2, arrow=True)


def _listed(numbers: Any) -> str:
    shown = [short(float(x)) for x in numbers[:3]]
    return ", ".join(shown) + (", …" if numbers.size > 3 else "") if shown else "empty"
