"""Ranks that are threads of this process: for tests, lectures and pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

from ..support.host import IN_BROWSER
from .communicators import CURRENT, Communicator
from .engine import DONE, Engine, Handle, entry, wrong_message
from .post import Key, Post
from .turns import Turns
from .watch import Watch, memory_for


class Receiving(Handle):
    """A message that is awaited: it is copied into `out` when it is there."""

    def __init__(self, post: Post, key: Key, out: Any) -> None:
        self.post, self.key, self.out = post, key, out

    def wait(self) -> None:
        if self.out is not None:
            message, out, self.out = self.post.take(self.key), self.out, None
            if (message.dtype, message.shape) != (out.dtype, out.shape):
                raise wrong_message(self.key[0], entry(message.dtype, message.shape), out)
            out[...] = message

    def test(self) -> bool:
        if self.out is not None and self.post.has(self.key):
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
    """A communicator for each of `size` threads, which `run` starts.  In a browser, they take turns in one thread.

    >>> ranks = ThreadCommunicators(3)
    >>> ranks.run(lambda comm: comm.allreduce(mg.ones(2) * comm.rank).tolist())
    [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, size: int, timeout: float = 60.0, post: Post | None = None) -> None:
        self.post = post or (Turns(size) if IN_BROWSER else Post(timeout))
        self.memory = memory_for(size)
        super().__init__([self._communicator(rank, size) for rank in range(size)])

    def _communicator(self, rank: int, size: int) -> Communicator:
        return Communicator(ThreadEngine(self.post, rank, size), Watch(self.memory, rank, range(size)))

    def run(self, function: Callable[[Communicator], Any]) -> list[Any]:
        """Call `function(comm)` in a thread for each rank; the results in the order of the ranks.

        Inside, `mg.distributed.communicator()` is the communicator of the thread.  If ranks fail, the error of the
        one that failed first is raised, with a note that names the rank.  Each thread jits functions of its own.
        In a browser, `function` is called several times for each rank, until it has no more to wait for: what it does
        must follow from its arguments, from seeds, and from the messages.
        """
        if isinstance(self.post, Turns):
            return self.post.run(len(self), partial(self._turn, function))
        results: list[Any] = [None] * len(self)

        def work(comm: Communicator) -> None:
            CURRENT.set(comm)
            try:
                results[comm.rank] = function(comm)
                self.post.leave()
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

    def _turn(self, function: Callable[[Communicator], Any], rank: int) -> Any:
        comm = self._communicator(rank, len(self))
        CURRENT.set(comm)
        return function(comm)
