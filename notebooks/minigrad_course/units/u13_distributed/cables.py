"""Ranks in threads, joined by cables: messages are checked and counted, and ranks that all wait are found at once.

`Switch` ends the ranks as soon as each of them waits for another one, so no wrong program hangs.  A send is done when
the other rank has received, as with MPI's long messages: what works here works with messages of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.distributed import ThreadCommunicators
from minigrad.distributed.post import Key, Post
from minigrad.distributed.turns import Turns
from minigrad.support.errors import DistributedError
from minigrad.support.host import IN_BROWSER
from minigrad.support.words import whole

from ...feedback import Wrong
from ...limits import at_most

RECEIVED = 1_000_000  # the tag of the message that says that a message was received, plus the tag of this
SEND_FIRST = (
    "every rank sends, and goes on when its message is received; none of them receives yet. Begin to send without "
    "waiting, sending = comm.start_send(...), receive, and then sending.wait()"
)
RECEIVE_FIRST = (
    "every rank waits for a message, and none of them has sent one. Begin to send first: sending = comm.start_send(...)"
)
UNEVEN = "ranks send and receive equally often: count the rounds of each loop. With n ranks there are n - 1"


class Stuck(Exception):
    """All ranks wait for each other, or for ranks that have ended: (sender, receiver, tag) of what they wait for."""

    def __init__(self, waits: Sequence[Key], ended: int) -> None:
        super().__init__(waits)
        self.waits, self.ended = waits, ended

    @property
    def message(self) -> str:
        """What each rank waits for."""
        parts = [
            f"rank {receiver} waits until rank {sender} receives" if tag >= RECEIVED
            else f"rank {receiver} waits for a message from rank {sender}"
            for sender, receiver, tag in sorted(self.waits, key=lambda key: key[1])
        ]
        ended = f"; {self.ended} of the ranks have returned" if self.ended else ""
        return f"it never ends: {'; '.join(parts)}{ended}"

    @property
    def hint(self) -> str:
        """How to end the wait."""
        if self.ended:
            return UNEVEN
        return SEND_FIRST if all(tag >= RECEIVED for _, _, tag in self.waits) else RECEIVE_FIRST


class Switch(Post):
    """Delivers messages, and finds out when no rank can go on."""

    def __init__(self, ranks: int) -> None:
        super().__init__(timeout=60.0)
        self.size = self.running = ranks
        self.waiting: dict[int, Key] = {}

    def take(self, key: Key) -> Any:
        with self.changed:
            self.waiting[key[1]] = key
            self._look()
            self.changed.wait_for(lambda: self.messages[key] or self.broken)
            del self.waiting[key[1]]
            if self.messages[key]:
                return self.messages[key].popleft()
        raise DistributedError(f"rank {key[1]} cannot go on, because another rank failed") from self.broken

    def leave(self) -> None:
        with self.changed:
            self.running -= 1
            self._look()

    def _look(self) -> None:
        waits = list(self.waiting.values())
        if waits and len(waits) == self.running and not any(self.messages[key] for key in waits):
            self.fail(Stuck(waits, self.size - self.running), waits[0][1])


class Sending:
    """A message on its way."""

    def __init__(self, rank: Rank, x: Any, to: int, tag: int) -> None:
        self.rank, self.x, self.before, self.to, self.tag = rank, x, x.copy(), to, tag

    def wait(self) -> None:
        """Return when the message is received."""
        self.rank.engine.start_recv(np.zeros(0), self.to, RECEIVED + self.tag).wait()
        self.close()

    def close(self) -> None:
        """Check that the array is as it was when the message began."""
        if self in self.rank.open:
            self.rank.open.remove(self)
            if not np.array_equal(self.x, self.before):
                raise Wrong(
                    self.rank.task, f"rank {self.rank.rank} changed an array while it was on its way",
                    "the other rank may get the new numbers. Call sending.wait() before anything writes to the array "
                    "that is sent, in the same round",
                )


class Rank:
    """One rank, as a student's function gets it: `comm`.  Its cables lead to the rank `stride` further."""

    def __init__(self, engine: Any, task: str, stride: int, chunks: Any = None) -> None:
        self.engine, self.task, self.stride = engine, task, stride
        self.rank, self.size = engine.rank, engine.size
        self.chunks = chunks
        self.sent: list[tuple[int, int, int]] = []  # of each message: receiver, chunk (-1: another array), bytes
        self.held: list[list[Any]] = []  # the chunks before each message
        self.open: list[Sending] = []
        self.left = 0  # messages that were not waited for

    def start_send(self, x: Any, to: int, tag: int = 0) -> Sending:
        """Begin to send; `wait()` of the result returns when the message is received."""
        x = self._array(x, "send")
        self._check(to, 1, "send to")
        number = [i for i, chunk in enumerate(self.chunks or ()) if np.shares_memory(chunk, x)]
        self.sent.append((int(to), number[0] if number else -1, x.nbytes))
        self.note()
        self.engine.start_send(x, int(to), tag)
        self.open.append(Sending(self, x, int(to), tag))
        return self.open[-1]

    def send(self, x: Any, to: int, tag: int = 0) -> None:
        """Send, and return when the message is received."""
        self.start_send(x, to, tag).wait()

    def recv(self, source: int, like: Any, tag: int = 0) -> Any:
        """The next message of a rank, as a new array of the shape of `like`."""
        like = self._array(like, "recv: like")
        self._check(source, -1, "receive from")
        out = np.empty(like.shape, like.dtype)
        self.engine.start_recv(out, int(source), tag).wait()
        self.engine.start_send(np.zeros(0), int(source), RECEIVED + tag)
        return out

    def note(self) -> None:
        """Keep a copy of the chunks."""
        self.held.append([chunk.copy() for chunk in self.chunks or ()])

    def close(self) -> None:
        """Check the messages that were not waited for, and count them."""
        left = list(self.open)
        for sending in left:
            sending.close()
        self.left = len(left)

    def _array(self, x: Any, what: str) -> Any:
        if isinstance(x, np.ndarray):
            return x
        hint = "chunks is a list of arrays, and a message is one of them: chunks[i], not i"
        raise Wrong(self.task, f"{what} takes an array, not {type(x).__name__}", hint)

    def _check(self, other: Any, way: int, what: str) -> None:
        """Whether there is a cable."""
        number, right = whole(other), (self.rank + way * self.stride) % self.size
        if number == right:
            return
        where = f"rank {self.rank} cannot {what} rank {other}"
        if number is not None and not 0 <= number < self.size:
            hint = f"the ranks are 0 to {self.size - 1}, and the ring is closed: take the number modulo n, (...) % n"
            raise Wrong(self.task, f"{where}: there is no such rank", hint)
        step = f"{'+' if way > 0 else '-'} {self.stride}"
        raise Wrong(
            self.task, f"{where}: there is no cable",
            f"in this ring, rank r can {what} rank (r {step}) % n only: here, rank {right}",
        )


def check_waits(ranks: Sequence[Rank]) -> None:
    """Raise `Wrong` where a rank has not waited for all of its messages."""
    for rank in ranks:
        if rank.left:
            raise Wrong(
                rank.task, f"rank {rank.rank} never waits for {rank.left} of the messages that it sends",
                "a message is on its way until wait() returns, and its array must not change before. It was luck that "
                "none did: call sending.wait() after the receive, in the same round",
            )


def on_cables(
    call: Callable[[Rank], Any], size: int, task: str = "", stride: int = 1, seconds: float = 5.0, chunks: Any = None
) -> list[Rank]:
    """Call `call(rank)` in a thread for each rank; `chunks[rank]` are noted at each message.

    In a browser, ranks take turns: `call(rank)` begins several times, each time with the same numbers in its chunks.
    """
    before = [[chunk.copy() for chunk in row] for row in chunks or ()]
    ranks = ThreadCommunicators(size, post=Turns(size, Stuck) if IN_BROWSER else Switch(size))

    def work(comm: Any) -> Rank:
        rank = Rank(comm.host, task, stride, None if chunks is None else chunks[comm.rank])
        for chunk, given in zip(rank.chunks or (), before[comm.rank] if before else ()):
            chunk[...] = given
        with at_most(seconds):
            call(rank)
            rank.close()
        rank.note()
        return rank

    try:
        return ranks.run(work)
    except Stuck as stuck:
        raise Wrong(task, stuck.message, stuck.hint) from None
