"""Engines move arrays between ranks.  Communicators add tensors, gradients and checks.

A subclass needs `start_send` and `start_recv`; the collectives here are built on these
two.  An engine that has a faster collective overrides it (`mpi.py`, `nccl.py`).  Arrays
are contiguous.  A collective reads `x` and writes `out`, which may be the same array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..support.errors import DistributedError
from . import ring

OPS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Handle:
    """A transfer that has begun: `wait()` returns when it is done, `test()` says whether it is."""

    def wait(self) -> None:
        """Return when the transfer is done."""

    def test(self) -> bool:
        """Whether the transfer is done."""
        return True


DONE = Handle()


class Engine:
    """One rank of a run.  This class itself is the only rank of its run."""

    name = "alone"
    rank, size = 0, 1

    def start_send(self, x: Any, to: int, tag: int = 0) -> Handle:
        raise NotImplementedError

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Handle:
        raise NotImplementedError

    def recv(self, source: int, like: Any, tag: int = 0) -> Any:
        """A new array, received; `like` has its shape and dtype."""
        out = np.empty(like.shape, like.dtype)
        self.start_recv(out, source, tag).wait()
        return out

    def allreduce(self, x: Any, out: Any, op: str) -> None:
        if out is not x:
            out[...] = x
        ring.allreduce(self, out, OPS[op])

    def start_allreduce(self, x: Any, out: Any, op: str) -> Handle:
        self.allreduce(x, out, op)
        return DONE

    def broadcast(self, x: Any, out: Any, root: int) -> None:
        if self.rank == root:
            out[...] = x
            for sending in [self.start_send(x, to) for to in range(self.size) if to != root]:
                sending.wait()
        else:
            out[...] = self.recv(root, out)

    def allgather(self, x: Any, out: Any) -> None:
        chunks = np.split(out.reshape(-1), self.size)
        chunks[self.rank][...] = x.reshape(-1)
        ring.allgather(self, chunks)

    def reduce_scatter(self, x: Any, out: Any) -> None:
        chunks = np.split(x.reshape(-1).copy(), self.size)
        ring.reduce_scatter(self, chunks, np.add)
        out[...] = chunks[self.rank].reshape(out.shape)

    def barrier(self) -> None:
        self.allgather(np.zeros(1, np.int8), np.zeros(self.size, np.int8))


def wrong_message(sender: int, sent: int, expected: int) -> DistributedError:
    """The error for a message of another number of bytes."""
    return DistributedError(
        f"recv: the message of rank {sender} has another size", expect=f"{expected} bytes", actual=f"{sent} bytes",
        hint="`like` has the shape and dtype of the array that is sent",
    )
