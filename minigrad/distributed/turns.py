"""Ranks that take turns in one thread, for a browser, which has no others.

A rank runs until it waits for a message that has not been sent.  Then the next rank runs.  When the message is there,
the function of the waiting rank is called again from its beginning.  What it has sent already is not sent again, and
what it has received already is received again.  So it reaches the same place, and goes on.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from contextvars import copy_context
from typing import Any

from ..ops.random import DEFAULT_GENERATOR
from ..support.errors import DistributedError
from .post import Key, Post

SAME = (
    "in a browser, the function of a rank is called again after each message that it waits for: what it does follows "
    "from its arguments, from seeds, and from the messages"
)


class Pause(BaseException):
    """Ends the turn of a rank that waits."""


def deadlock(waits: Sequence[Key], ended: int) -> Exception:
    """The error for ranks that all wait."""
    return DistributedError(
        "the ranks wait for each other: "
        + ", ".join(f"rank {receiver} for a message of rank {sender}" for sender, receiver, _ in waits),
        hint="all ranks call the same collectives in the same order",
    )


class Turns(Post):
    """Messages of ranks that take turns.  `stuck(keys, ended)` is the error for ranks that all wait."""

    def __init__(self, ranks: int, stuck: Callable[[Sequence[Key], int], Exception] = deadlock) -> None:
        super().__init__(timeout=0.0)
        self.stuck = stuck
        self.received: list[list[tuple[Key, Any]]] = [[] for _ in range(ranks)]
        self.sent, self.printed = [0] * ranks, [0] * ranks  # messages and letters
        self.waits: dict[int, Key] = {}  # what each rank waits for
        self.sends = self.takes = 0  # of this turn

    def put(self, key: Key, message: Any) -> None:
        self.sends += 1
        if self.sends > self.sent[key[0]]:
            self.sent[key[0]] += 1
            self.messages[key].append(message)

    def has(self, key: Key) -> bool:
        """Whether the message is there; if not, the rank waits, because nothing would change in its turn."""
        if self.takes == len(self.received[key[1]]) and not self.messages[key]:
            self.waits[key[1]] = key
            raise Pause
        return True

    def take(self, key: Key) -> Any:
        known = self.received[key[1]]
        if self.has(key) and self.takes == len(known):
            known.append((key, self.messages[key].popleft()))
        before, message = known[self.takes]
        if before != key:
            raise DistributedError(f"rank {key[1]} has done something else than before", hint=SAME)
        self.takes += 1
        return message

    def run(self, ranks: int, work: Callable[[int], Any]) -> list[Any]:
        """The results of `work(rank)` for all ranks."""
        results: dict[int, Any] = {}
        numbers = DEFAULT_GENERATOR.get_state()
        while len(results) < ranks:
            open_ranks = [rank for rank in range(ranks) if rank not in results]
            ready = [rank for rank in open_ranks if rank not in self.waits or self.messages[self.waits[rank]]]
            if not ready:
                raise self.stuck(list(self.waits.values()), len(results))
            for rank in ready:
                DEFAULT_GENERATOR.set_state(numbers)
                self.sends = self.takes = 0
                self.waits.pop(rank, None)
                try:
                    with redirect_stdout(_Rest(self.printed, rank)):
                        results[rank] = copy_context().run(work, rank)
                except Pause:
                    pass
                except BaseException as error:
                    error.add_note(f"in rank {rank}")
                    raise
        return [results[rank] for rank in range(ranks)]


class _Rest(io.TextIOBase):
    """Prints what a rank has not printed in its earlier turns."""

    def __init__(self, printed: list[int], rank: int) -> None:
        self.printed, self.rank, self.at, self.out = printed, rank, 0, sys.stdout

    def write(self, text: str) -> int:
        self.at += len(text)
        if new := max(self.at - self.printed[self.rank], 0):
            self.printed[self.rank] = self.at
            self.out.write(text[-new:])
        return len(text)
