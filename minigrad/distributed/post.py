"""Messages between ranks of one process."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from typing import Any

from ..support.errors import DistributedError

Key = tuple[int, int, int]  # sender, receiver, tag


class Post:
    """Messages that were sent and not received yet, by (sender, receiver, tag)."""

    def __init__(self, timeout: float) -> None:
        self.changed, self.timeout = threading.Condition(), timeout
        self.messages: dict[Key, deque[Any]] = defaultdict(deque)
        self.broken: BaseException | None = None  # the error of a rank, which ends the others

    def put(self, key: Key, message: Any) -> None:
        with self.changed:
            self.messages[key].append(message)
            self.changed.notify_all()

    def has(self, key: Key) -> bool:
        """Whether a message is there."""
        return bool(self.messages[key])

    def take(self, key: Key) -> Any:
        with self.changed:
            self.changed.wait_for(lambda: self.messages[key] or self.broken, self.timeout)
            if self.messages[key]:
                return self.messages[key].popleft()
        if self.broken:
            raise DistributedError(f"rank {key[1]} cannot go on, because another rank failed") from self.broken
        raise DistributedError(
            f"rank {key[1]} has waited for {self.timeout:g} s for a message of rank {key[0]}",
            hint="all ranks call the same collectives in the same order",
        )

    def fail(self, error: BaseException, rank: int) -> None:
        """End all ranks that wait, now or later."""
        with self.changed:
            if self.broken is None:
                self.broken = error
                error.add_note(f"in rank {rank}")
            self.changed.notify_all()

    def leave(self) -> None:
        """A rank has returned."""
