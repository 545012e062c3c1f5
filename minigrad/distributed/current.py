"""`communicator()`: the communicator of this process."""

from __future__ import annotations

import sys

from .communicators import CURRENT, Communicator
from .engine import Engine
from .mpi import launched, mpi_engine, watched

_OF_PROCESS: list[Communicator] = []


def communicator() -> Communicator:
    """The communicator of this process: one of n ranks if mpirun has started it, else the only one.

    It is made at the first call, on mpi4py.  So the same script runs on one rank and on many:

    >>> comm = mg.distributed.communicator()
    >>> comm
    <Communicator: rank 0 of 1, alone>
    """
    given = CURRENT.get()
    if given is not None:
        return given
    if not _OF_PROCESS:
        if launched() > 1 or ("mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].COMM_WORLD.size > 1):
            engine = mpi_engine()
            _OF_PROCESS.append(Communicator(engine, watched(engine)))
        else:
            _OF_PROCESS.append(Communicator(Engine()))
    return _OF_PROCESS[0]
