"""The engine on mpi4py, `communicator()`, and what ends a run in which a rank fails."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from mmap import mmap
from typing import Any, ClassVar

import numpy as np

from ..support.errors import DistributedError
from ..support.packages import needed
from ..support.source import outside, show
from .communicators import CURRENT, Communicator
from .engine import Engine, Handle, wrong_message
from .watch import ENDED, ROW, Watch, timeout_set

# Set by mpirun: of Open MPI, of MPICH and its relatives, of Slurm.
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_OF_PROCESS: list[Communicator] = []


def communicator() -> Communicator:
    """The communicator of this process: one of n ranks if mpirun has started it, else the only one.

    It is made at the first call.  From then on an error in any rank ends all of them.

    >>> mg.distributed.communicator()
    <Communicator: rank 0 of 1, alone>
    """
    given = CURRENT.get()
    if given is not None:
        return given
    if not _OF_PROCESS:
        count = max([int(os.environ.get(name) or 1) for name in SIZES])
        loaded = sys.modules.get("mpi4py.MPI")
        if count > 1 or (loaded and loaded.COMM_WORLD.Get_size() > 1):
            _OF_PROCESS.append(_one_of(count))
        else:
            _OF_PROCESS.append(Communicator(Engine()))
    return _OF_PROCESS[0]


def _one_of(count: int) -> Communicator:
    mpi = needed("mpi4py.MPI", f"a run of {count} ranks")
    if mpi.COMM_WORLD.Get_size() < count:
        raise DistributedError(
            f"mpirun has started {count} ranks, and mpi4py finds {mpi.COMM_WORLD.Get_size()}",
            actual=f"mpi4py uses {mpi.Get_library_version().splitlines()[0].strip()}",
            hint="mpirun and mpi4py have to be of the same MPI: python -m minigrad.distributed starts the right one",
        )
    engine = MpiEngine(mpi)
    watch, before = engine.watch(), sys.excepthook

    def end(message: str) -> None:
        print(f"minigrad: {message}", file=sys.stderr, flush=True)
        mpi.COMM_WORLD.Abort(1)

    def hook(kind: Any, error: BaseException, trace: Any) -> None:
        before(kind, error, trace)
        end(f"rank {engine.rank} of {engine.size} {reason(error)}, and ends the run")

    watch.begin(timeout_set(), end)
    sys.excepthook = hook
    atexit.register(watch.set_state, ENDED)
    return Communicator(engine, watch)


def reason(error: BaseException) -> str:
    """The last line of a traceback, and the line of the user's code.

    >>> reason(ValueError("no such batch"))
    'raised ValueError: no such batch'
    """
    said = f"raised {type(error).__name__}" + (f": {error}".splitlines()[0] if str(error) else "")
    trace = outside(error.__traceback__)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return said if trace is None else f"{said} at {show((trace.tb_frame.f_code, trace.tb_lasti))}"


class Transfer(Handle):
    """A transfer of MPI, which makes progress while MPI is entered."""

    open: ClassVar[set[Transfer]] = set()  # MPI reads and writes their arrays, even if the user has dropped them

    def __init__(self, request: Any, *arrays: Any) -> None:
        self.request, self.arrays = request, arrays
        self.open.add(self)

    def wait(self) -> None:
        self.request.Wait()
        self.open.discard(self)

    def test(self) -> bool:
        done = bool(self.request.Test())
        if done:
            self.open.discard(self)
        return done


class MpiEngine(Engine):
    """Every method is one call of MPI on the memory of the arrays, without a copy."""

    name = "MPI"

    def __init__(self, mpi: Any) -> None:
        self.mpi, self.world = mpi, mpi.COMM_WORLD.Dup()  # its messages do not meet those of the user
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()
        self.ops = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN}

    def start_send(self, x: Any, to: int, tag: int = 0) -> Handle:
        return Transfer(self.world.Isend(self._bytes(x), to, tag), x)

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Handle:
        return Transfer(self.world.Irecv(self._bytes(out), source, tag), out)

    def recv(self, source: int, like: Any, tag: int = 0) -> Any:
        out, status = np.empty(like.shape, like.dtype), self.mpi.Status()
        message = self.world.Mprobe(source, tag, status)
        sent = status.Get_count(self.mpi.BYTE)
        if sent != out.nbytes:
            raise wrong_message(source, sent, out.nbytes)
        message.Recv(self._bytes(out))
        return out

    def allreduce(self, x: Any, out: Any, op: str) -> None:
        if out.dtype == np.float16:  # which MPI does not have
            wide = x.astype(np.float32)
            self.allreduce(wide, wide, op)
            out[...] = wide
        else:
            self.world.Allreduce(self.mpi.IN_PLACE if x is out else x, out, self.ops[op])

    def start_allreduce(self, x: Any, out: Any, op: str) -> Handle:
        if out.dtype == np.float16:
            return super().start_allreduce(x, out, op)
        return Transfer(self.world.Iallreduce(self.mpi.IN_PLACE if x is out else x, out, self.ops[op]), x, out)

    def broadcast(self, x: Any, out: Any, root: int) -> None:
        if self.rank == root:
            out[...] = x
        self.world.Bcast(self._bytes(out), root)

    def allgather(self, x: Any, out: Any) -> None:
        self.world.Allgather(self._bytes(x), self._bytes(out))

    def reduce_scatter(self, x: Any, out: Any) -> None:
        if out.dtype == np.float16:
            super().reduce_scatter(x, out)
        else:
            self.world.Reduce_scatter_block(x, out, self.mpi.SUM)

    def barrier(self) -> None:
        self.world.Barrier()

    def _bytes(self, x: Any) -> Any:
        return [x, self.mpi.BYTE]

    def watch(self) -> Watch:
        """The rows of the ranks on this host, in a file that all of them map, and that has no name after that."""
        near = self.world.Split_type(self.mpi.COMM_TYPE_SHARED)
        with tempfile.NamedTemporaryFile() as own:
            name = near.bcast(own.name)
            if near.rank == 0:
                own.truncate(near.size * ROW)
            near.Barrier()
            with open(name, "r+b") as file:
                memory = memoryview(mmap(file.fileno(), near.size * ROW))
            near.Barrier()
        return Watch(memory, near.rank, near.allgather(self.rank), self.size)
