"""The ring: an all-reduce on `start_send` and `recv` only.

Each rank sends to the next one and receives from the one before.  An array is cut into
as many chunks as there are ranks, so in each round all ranks send at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def reduce_scatter(comm: Any, chunks: Sequence[Any], op: Callable[..., Any]) -> None:
    """Afterwards chunk r of rank r is the total of all ranks."""
    n, r = comm.size, comm.rank
    for step in range(1, n):
        sent, into = chunks[(r - step) % n], chunks[(r - step - 1) % n]
        sending = comm.start_send(sent, (r + 1) % n)
        op(into, comm.recv((r - 1) % n, into), out=into)
        sending.wait()


def allgather(comm: Any, chunks: Sequence[Any]) -> None:
    """Afterwards chunk r of every rank is that of rank r."""
    n, r = comm.size, comm.rank
    for step in range(n - 1):
        sent, into = chunks[(r - step) % n], chunks[(r - step - 1) % n]
        sending = comm.start_send(sent, (r + 1) % n)
        into[...] = comm.recv((r - 1) % n, into)
        sending.wait()


def allreduce(comm: Any, x: Any, op: Callable[..., Any] = np.add) -> None:
    """Replace `x`, an array in one piece, by the total of the arrays of all ranks.

    A rank sends 2 (n - 1) / n times the bytes of its array, for any number n of ranks.

    >>> def total(comm):
    ...     x = np.array([1.0, 2.0, 3.0]) * 10**comm.rank
    ...     allreduce(comm, x)
    ...     return x.tolist()
    >>> mg.distributed.ThreadCommunicators(2).run(total)
    [[11.0, 22.0, 33.0], [11.0, 22.0, 33.0]]
    """
    chunks = np.array_split(x.reshape(-1), comm.size)  # views of the memory of x
    reduce_scatter(comm, chunks, op)
    allgather(comm, chunks)
