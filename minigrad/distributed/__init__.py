"""Several processes that compute together.

Each process is a *rank*; all run the same script.  A communicator exchanges tensors between them:

    comm = mg.distributed.communicator()
    total = comm.allreduce(x)            # the sum of the x of all ranks
    python -m minigrad.distributed -n 4 train.py

Without mpirun there is one rank, and no other package is needed.  With it, mpi4py moves the arrays
(the extra `distributed` brings it, and an MPI).

`step_time(step, machine, 1000)` is a model of a training step on workers that are not there: see `simulate.py`.
"""

from ..arguments.public import public
from .communicators import Communicator, Request
from .data_parallel import DataParallel
from .mpi import communicator
from .sharded_optimizer import ShardedOptimizer
from .simulate import Layer, Machine, Step, measure_machine, measure_step, step_time
from .threads import ThreadCommunicators

__all__ = [
    "communicator", "Communicator", "DataParallel", "Request", "ShardedOptimizer", "ThreadCommunicators",
    "Layer", "Machine", "Step", "measure_machine", "measure_step", "step_time",
]

_checked = ("communicator", "Communicator", "ThreadCommunicators", "Machine", "Step", "step_time")
public([*_checked, "measure_machine", "measure_step"], globals())
