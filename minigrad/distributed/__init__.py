"""Several processes that compute together.

Each process is a *rank*; all run the same script.  A communicator exchanges tensors between them:

    comm = mg.distributed.communicator()
    total = comm.allreduce(x)            # the sum of the x of all ranks
    python -m minigrad.distributed -n 4 train.py

Without mpirun there is one rank, and no other package is needed.  With it, mpi4py moves the arrays
(`pip install "minigrad[distributed]"` brings it, and an MPI).
"""

from ..arguments.public import public
from .communicators import Communicator, Request
from .data_parallel import DataParallel
from .mpi import communicator
from .sharded_optimizer import ShardedOptimizer
from .threads import ThreadCommunicators

__all__ = ["communicator", "Communicator", "DataParallel", "Request", "ShardedOptimizer", "ThreadCommunicators"]

public(["communicator", "Communicator", "ThreadCommunicators"], globals())
