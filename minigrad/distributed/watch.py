"""Compares what the ranks of one host do, and finds the rank for which the others wait.

Each rank writes its collectives into its row of a memory that the ranks share, before it enters them.  The rank that
comes later finds the entries of its neighbours with the same number, and compares.  So the check costs no message,
about a microsecond, and it comes before ranks with different collectives wait for each other or mix up their arrays.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..support.errors import ConversionError, DistributedError, MinigradError
from ..support.source import in_library, show
from ..support.table import counted
from .engine import padded, words

ENTRY = struct.Struct("=q120s")  # the number of a collective, written last and read first, and its text
NUMBER = struct.Struct("=q")
ENTRIES = 16  # of a row: a rank may be a few broadcasts ahead of another
STATE = struct.Struct("=q240s")  # a number below, and the line at which the rank is
ROW = ENTRIES * ENTRY.size + STATE.size
RUNNING, ASKS, ENDED = 0, 1, 2  # the states of a rank; one in the state ASKS makes all write their lines
POLL = 0.25  # seconds


def memory_for(ranks: int) -> memoryview:
    """Memory for the rows of ranks that are threads."""
    return memoryview(bytearray(ranks * ROW))


def timeout_set() -> float:
    """The seconds that a rank waits for others, from MINIGRAD_TIMEOUT."""
    text = os.environ.get("MINIGRAD_TIMEOUT") or "300"  # long enough for a first compilation
    with suppress(ValueError):
        if float(text) > 0:
            return float(text)
    raise ConversionError(f"MINIGRAD_TIMEOUT is a number of seconds above 0, not {text!r}")


class Watch:
    """The row of one rank, and the rows of others; `ranks` are the ranks of all rows, and `number` is the own row."""

    def __init__(self, memory: memoryview, number: int, ranks: Sequence[int], size: int | None = None) -> None:
        self.memory, self.number, self.ranks, self.size = memory, number, ranks, size or len(ranks)
        n = len(ranks)
        self.neighbours = sorted({(number - 1) % n, (number + 1) % n} - {number})
        self.count = 0  # of collectives
        self.doing, self.since = b"", 0.0  # the call that waits now, and since when; 0.0: none
        self.texts: dict[Any, bytes] = {}

    def enter(self, name: str, x: Any, **how: Any) -> Watch:
        """Write the next collective, and compare it with that of the neighbours; then a block waits in it."""
        key = name, x.dtype, x.shape, *how.values()
        text = self.texts.get(key)
        if text is None:
            said = " ".join([name, *map(str, how.values()), f"of {x.dtype} {x.shape}"])
            text = self.texts[key] = padded(said)
        self.count = count = self.count + 1
        place = count % ENTRIES * ENTRY.size
        own = self.number * ROW + place
        self.memory[own + NUMBER.size : own + ENTRY.size] = text
        NUMBER.pack_into(self.memory, own, count)
        for other in self.neighbours:
            number, theirs = ENTRY.unpack_from(self.memory, other * ROW + place)
            if number == count and theirs != text:
                self._compare_again(other, place, text)
        self.doing, self.since = text, time.monotonic()
        return self

    def waiting(self, text: str) -> Watch:
        """A block that waits for a rank, without a collective."""
        self.doing, self.since = text.encode(), time.monotonic()
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.since = 0.0
        if isinstance(error, RuntimeError) and not isinstance(error, MinigradError):  # of MPI or NCCL
            raise DistributedError(f"{words(self.doing)}: {error}") from error

    def _compare_again(self, other: int, place: int, ours: bytes) -> None:
        """Raise the error for different collectives, unless a processor that reorders writes had shown them late."""
        time.sleep(0.01)
        _, theirs = ENTRY.unpack_from(self.memory, other * ROW + place)
        if theirs != ours:
            raise DistributedError(
                f"ranks differ in their collective number {self.count}",
                expect=f"{words(theirs)}, as in rank {self.ranks[other]}",
                actual=f"{words(ours)}, in rank {self.ranks[self.number]}",
                hint="all ranks call the same collectives in the same order, with the same shapes and dtypes",
            )

    # The thread that looks for ranks that do not come -----------------------------------------------------------------

    def begin(self, timeout: float, end: Callable[[str], None]) -> None:
        """Start a thread that calls `end(message)` if this rank waits too long, or for a rank that has ended."""
        ours = threading.main_thread().ident, os.getppid()
        threading.Thread(target=self._look, args=(timeout, end, *ours), name="minigrad watch", daemon=True).start()

    def set_state(self, state: int, line: str = "") -> None:
        """Write the state of this rank, and its line."""
        STATE.pack_into(self.memory, self.number * ROW + ENTRIES * ENTRY.size, state, line.encode()[:240])

    def _look(self, timeout: float, end: Callable[[str], None], main: Any, parent: int) -> None:
        while True:
            time.sleep(min(POLL, timeout / 4))
            if os.getppid() != parent:  # mpirun was killed, and cannot end the run
                os._exit(1)
            states = {row: self._state(row)[0] for row in range(len(self.ranks))}
            own = states.pop(self.number)
            if ASKS in states.values():
                self.set_state(own, _line_of(main))
            elif since := self.since:
                waited = time.monotonic() - since
                ended = [row for row, state in states.items() if state == ENDED and self._count(row) < self.count]
                if waited > (POLL if ended else timeout):
                    time.sleep(self.number * POLL / 5)  # so that one rank asks and reports
                    if self.since == since and ASKS not in [self._state(row)[0] for row in states]:
                        self.set_state(ASKS)
                        time.sleep(3 * POLL)
                        end(self._report(list(states), waited))

    def _report(self, others: Sequence[int], waited: float) -> str:
        late = [row for row in others if self._count(row) < self.count]
        found = []
        for row in late or others:
            state, line = self._state(row)
            doing = "has ended its script" if state == ENDED else f"is at {line}" if line else "runs no Python code"
            found.append(f"rank {self.ranks[row]}, after {counted(self._count(row), 'collective')}, {doing}")
        return (
            f"rank {self.ranks[self.number]} of {self.size} has waited for {waited:.1f} s in {words(self.doing)}, "
            f"after {counted(self.count - bool(late), 'collective')}\n  Got: {'; '.join(found)}\n"
            "  Hint: all ranks call the same collectives; MINIGRAD_TIMEOUT=600 waits for 600 s"
        )

    def _state(self, row: int) -> tuple[int, str]:
        state, line = STATE.unpack_from(self.memory, row * ROW + ENTRIES * ENTRY.size)
        return state, words(line)

    def _count(self, row: int) -> int:
        return max(NUMBER.unpack_from(self.memory, row * ROW + i * ENTRY.size)[0] for i in range(ENTRIES))


def _line_of(thread: Any) -> str:
    """The line of the user's code that a thread runs."""
    frame = sys._current_frames().get(thread)
    while frame is not None and in_library(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return "" if frame is None else show((frame.f_code, frame.f_lasti))
