"""Ranks that are threads of this process: for tests, lectures and pictures."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from ..support.errors import DistributedError
from .communicators import CURRENT, Communicator
from .engine import DONE, Engine, Handle, wrong_message
from .watch import Watch, memory_for


class Post:
    """Messages that were sent and not received yet, by (sender, receiver, tag)."""

    def __init__(self, timeout: float) -> None:
        self.changed, self.timeout = threading.Condition(), timeout
        self.messages: dict[tuple[int, int, int], deque[Any]] = defaultdict(deque)
        self.broken: BaseException | None = None  # the error of a rank, which ends the others

    def put(self, key: tuple[int, int, int], message: Any) -> None:
        with self.changed:
            self.messages[key].append(message)
            self.changed.notify_all()

    def take(self, key: tuple[int, int, int]) -> Any:
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


class Receiving(Handle):
    """A message that is awaited: it is copied into `out` when it is there."""

    def __init__(self, post: Post, key: tuple[int, int, int], out: Any) -> None:
        self.post, self.key, self.out = post, key, out

    def wait(self) -> None:
        if self.out is not None:
            message, out, self.out = self.post.take(self.key), self.out, None
            if message.nbytes != out.nbytes:
                raise wrong_message(self.key[0], message.nbytes, out.nbytes)
            out[...] = message.reshape(out.shape)

    def test(self) -> bool:
        if self.out is not None and self.post.messages[self.key]:
            self.wait()
        return self.out is None


class ThreadEngine(Engine):
    """Sends by putting a copy into a dictionary."""

    name = "threads"

    def __init__(self, post: Post, rank: int, size: int) -> None:
        self.post, self.rank, self.size = post, rank, size

    def start_send(self, x: Any, to: int, tag: int = 0) -> Handle:
        self.post.put((self.rank, to, tag), x.copy())
        return DONE

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Handle:
        return Receiving(self.post, (source, self.rank, tag), out)


class ThreadCommunicators(list[Communicator]):
    """A communicator for each of `size` threads, which `run` starts.

    >>> ranks = ThreadCommunicators(3)
    >>> ranks.run(lambda comm: comm.allreduce(mg.ones(2) * comm.rank).tolist())
    [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, size: int, timeout: float = 60.0) -> None:
        self.post, memory = Post(timeout), memory_for(size)
        engines = [ThreadEngine(self.post, rank, size) for rank in range(size)]
        super().__init__([Communicator(engine, Watch(memory, engine.rank, range(size))) for engine in engines])

    def run(self, function: Callable[[Communicator], Any]) -> list[Any]:
        """Call `function(comm)` in a thread for each rank; the results in the order of the ranks.

        Inside, `mg.distributed.communicator()` is the communicator of the thread.  If ranks fail, the error of the
        one that failed first is raised, with a note that names the rank.  Each thread jits functions of its own.
        """
        results: list[Any] = [None] * len(self)

        def work(comm: Communicator) -> None:
            CURRENT.set(comm)
            try:
                results[comm.rank] = function(comm)
            except BaseException as error:
                self.post.fail(error, comm.rank)

        threads = [threading.Thread(target=copy_context().run, args=(work, comm), daemon=True) for comm in self]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.post.broken is not None:
            raise self.post.broken
        return results
