"""The engine on mpi4py, `communicator()`, and what ends a run in which a rank fails."""

from __future__ import annotations

import atexit
import os
import struct
import sys
import tempfile
from itertools import count
from mmap import mmap
from typing import Any, ClassVar

import numpy as np

from ..support.errors import DistributedError
from ..support.packages import needed
from ..support.source import outside, show
from .communicators import CURRENT, Communicator
from .engine import ENTRY, Engine, Handle, entry, wrong_message
from .watch import ENDED, ROW, Watch, timeout_set

# Set by mpirun: of Open MPI, of MPICH and its relatives, of Slurm.
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
HEAD = struct.Struct(f"=Hq{ENTRY}s")  # of a message: the tag of its elements, their bytes, their dtype and shape
TAGS = 2**15  # that any MPI has
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
            hint="mpirun and mpi4py must be of the same MPI: python -m minigrad.distributed starts the right one",
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
    """Requests of MPI, which make progress while MPI is entered."""

    open: ClassVar[set[Transfer]] = set()  # MPI reads and writes their arrays, even if the user has dropped them

    def __init__(self, requests: list[Any], *arrays: Any) -> None:
        self.requests, self.arrays = requests, arrays
        self.open.add(self)

    def wait(self) -> None:
        for request in self.requests:
            request.Wait()
        self.open.discard(self)

    def test(self) -> bool:
        done = all(request.Test() for request in self.requests)
        if done:
            self.open.discard(self)
        return done


class Arriving(Handle):
    """A message that is awaited: its head, and when that is here its elements."""

    def __init__(self, engine: MpiEngine, out: Any, source: int, tag: int) -> None:
        self.engine, self.out, self.source = engine, out, source
        self.head = bytearray(HEAD.size)
        self.coming = Transfer([engine.world.Irecv(engine.bytes(self.head), source, tag)], self.head)
        self.elements: Handle | None = None

    def wait(self) -> None:
        self.coming.wait()
        self._elements().wait()

    def test(self) -> bool:
        return self.coming.test() and self._elements().test()

    def _elements(self) -> Handle:
        if self.elements is None:
            engine, out = self.engine, self.out
            tag = engine.checked(self.head, self.source, out)
            self.elements = Transfer([engine.bodies.Irecv(engine.bytes(out), self.source, tag)], out)
        return self.elements


class MpiEngine(Engine):
    """Collectives are one call of MPI on the memory of the arrays, without a copy.  Messages are two calls."""

    name = "MPI"

    def __init__(self, mpi: Any) -> None:
        self.mpi, self.world = mpi, mpi.COMM_WORLD.Dup()  # its messages do not meet those of the user
        self.bodies, self.numbers = mpi.COMM_WORLD.Dup(), count()  # the elements of messages
        self.rank, self.size = self.world.Get_rank(), self.world.Get_size()
        self.ops = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN}

    def start_send(self, x: Any, to: int, tag: int = 0) -> Handle:
        own = next(self.numbers) % TAGS
        head = HEAD.pack(own, x.nbytes, entry(x.dtype, x.shape))
        first = self.world.Isend(self.bytes(head), to, tag)
        return Transfer([first, self.bodies.Isend(self.bytes(x), to, own)], head, x)

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Handle:
        return Arriving(self, out, source, tag)

    def recv(self, source: int, like: Any, tag: int = 0) -> Any:
        head = bytearray(HEAD.size)
        self.world.Recv(self.bytes(head), source, tag)
        tag, out = self.checked(head, source, like), np.empty(like.shape, like.dtype)
        self.bodies.Recv(self.bytes(out), source, tag)
        return out

    def checked(self, head: bytearray, source: int, out: Any) -> int:
        """The tag of a message's elements; if they do not fit into `out`, they are received and dropped.

        MPI itself does not compare dtypes, and Open MPI writes behind an array that is smaller than the message.
        """
        tag, size, text = HEAD.unpack(head)
        if text != entry(out.dtype, out.shape):
            self.bodies.Recv(self.bytes(bytearray(size)), source, tag)
            raise wrong_message(source, text, out)
        return int(tag)

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
        return Transfer([self.world.Iallreduce(self.mpi.IN_PLACE if x is out else x, out, self.ops[op])], x, out)

    def broadcast(self, x: Any, out: Any, root: int) -> None:
        if self.rank == root:
            out[...] = x
        self.world.Bcast(self.bytes(out), root)

    def allgather(self, x: Any, out: Any) -> None:
        self.world.Allgather(self.bytes(x), self.bytes(out))

    def reduce_scatter(self, x: Any, out: Any) -> None:
        if out.dtype == np.float16:
            super().reduce_scatter(x, out)
        else:
            self.world.Reduce_scatter_block(x, out, self.mpi.SUM)

    def barrier(self) -> None:
        self.world.Barrier()

    def bytes(self, x: Any) -> Any:
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
