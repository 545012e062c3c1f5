"""Engines move arrays between ranks.  Communicators add tensors, gradients and checks.

A subclass needs `start_send` and `start_recv`; the collectives here are built on these
two.  An engine that has a faster collective overrides it (`mpi.py`, `nccl.py`).  Arrays
are contiguous.  A collective reads `x` and writes `out`, which may be the same array.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..support.errors import DistributedError
from . import ring

ENTRY = 120  # bytes
OPS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class Handle:
    """A transfer that has begun: `wait()` returns when it is done, `test()` says whether it is.  This one is done."""

    def wait(self) -> None: ...

    def test(self) -> bool:
        return True


DONE = Handle()


class Engine:
    """One rank of a run.  This class itself is the only rank of its run."""

    name = "alone"
    rank, size = 0, 1

    def start_send(self, x: Any, to: int, tag: int = 0) -> Handle:
        raise DistributedError(f"{self.name} sends no messages from rank to rank", hint='x.to("cpu")')

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Handle:
        return self.start_send(out, source, tag)

    def recv(self, source: int, like: Any, tag: int = 0) -> Any:
        out = np.empty(like.shape, like.dtype)
        self.start_recv(out, source, tag).wait()
        return out

    def allreduce(self, x: Any, out: Any, op: str) -> None:
        out[...] = x
        ring.allreduce(self, out, OPS[op])

    def start_allreduce(self, x: Any, out: Any, op: str) -> Handle:
        self.allreduce(x, out, op)
        return DONE

    def broadcast(self, x: Any, out: Any, root: int) -> None:
        others = [rank for rank in range(self.size) if rank != root]
        for handle in [self.start_send(x, to) for to in others if self.rank == root]:
            handle.wait()
        out[...] = x if self.rank == root else self.recv(root, out)

    def allgather(self, x: Any, out: Any) -> None:
        rows = out.reshape(self.size, *x.shape)
        rows[self.rank] = x
        ring.allgather(self, [rows[i] for i in range(self.size)])

    def reduce_scatter(self, x: Any, out: Any) -> None:
        rows = x.copy().reshape(self.size, *out.shape)
        ring.reduce_scatter(self, [rows[i] for i in range(self.size)], np.add)
        out[...] = rows[self.rank]

    def barrier(self) -> None:
        self.allgather(np.zeros(1), np.zeros(self.size))

    def address(self, x: Any) -> int:
        """Where the elements begin."""
        return int(x.__array_interface__["data"][0])


@lru_cache(1000)
def entry(dtype: Any, shape: tuple[int, ...]) -> bytes:
    """The dtype and shape of an array, as a text of a fixed number of bytes that ranks compare.

    >>> words(entry(np.dtype("float32"), (2, 3)))
    'float32 (2, 3)'
    """
    return padded(f"{dtype} {shape}")


def padded(text: str) -> bytes:
    """A text in the number of bytes of an entry."""
    return text.encode()[:ENTRY].ljust(ENTRY, b"\0")


def words(text: bytes) -> str:
    """A text without the bytes that fill it up."""
    return text.rstrip(b"\0").decode(errors="replace")


def wrong_message(sender: int, sent: bytes, out: Any) -> DistributedError:
    """The error for a message of a different dtype or shape, whose bytes would be other numbers."""
    return DistributedError(
        f"recv: the message of rank {sender} has a different dtype or shape",
        expect=words(entry(out.dtype, out.shape)), actual=words(sent),
        hint="`like` has the dtype and shape of the array that is sent",
    )
