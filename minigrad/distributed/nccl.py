"""The engine for GPUs: NCCL through CuPy.  A call puts the transfer into the queue of the GPU, and returns.

So the watch finds a rank that has called a different collective, but not a GPU that waits for a different one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..support.errors import DistributedError, PackageError
from ..support.packages import needed
from .engine import Engine, Handle


class Queued(Handle):
    """A transfer in a stream of its own; the stream that computes waits for it, Python does not."""

    def __init__(self, cuda: Any, stream: Any) -> None:
        self.cuda, self.event = cuda, stream.record()

    def wait(self) -> None:
        self.cuda.get_current_stream().wait_event(self.event)

    def test(self) -> bool:
        return bool(self.event.done)


class NcclEngine(Engine):
    """The ranks of `host`, with a GPU each."""

    name = "NCCL"

    def __init__(self, host: Engine, device: int) -> None:
        user = "a collective on a GPU"
        self.cuda, nccl = needed("cupy", user).cuda, needed("cupy.cuda.nccl", user)
        if not nccl.available:
            raise PackageError(f"{user} needs NCCL", hint="python -m pip install nvidia-nccl-cu13")
        self.nccl, self.rank, self.size = nccl, host.rank, host.size
        own = np.frombuffer(bytes(self.cuda.runtime.getDeviceProperties(device)["uuid"]), np.uint8)
        gpus = np.empty((host.size, own.size), np.uint8)
        host.allgather(own, gpus)
        same = [rank for rank in range(host.size) if bytes(gpus[rank]) == bytes(own)]
        if len(same) > 1:
            raise DistributedError(
                f"ranks {' and '.join(map(str, same))} use the same GPU, which NCCL refuses",
                expect="a GPU for each rank", hint='device = f"cuda:{comm.local_rank}", or the CPU: x.to("cpu")',
            )
        number = np.array(nccl.get_unique_id() if host.rank == 0 else [0] * 128, np.int64)
        host.broadcast(number, number, 0)
        with self.cuda.Device(device):
            self.world = nccl.NcclCommunicator(host.size, tuple(number.tolist()), host.rank)
            self.stream = self.cuda.Stream(non_blocking=True)

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def _number(self, name: str) -> int:
        """NCCL's number of a dtype or an operation."""
        return int(getattr(self.nccl, f"NCCL_{name.upper()}"))

    def _put(self, collective: Any, x: Any, out: Any, *how: int) -> None:
        """Put a collective into the queue.  Each rank gives or gets the smaller array; bools travel as bytes."""
        kind = self._number("uint8" if x.dtype == bool else x.dtype.name)
        queue = int(self.cuda.get_current_stream().ptr)
        collective(x.data.ptr, out.data.ptr, min(x.size, out.size), kind, *how, queue)

    def allreduce(self, x: Any, out: Any, op: str) -> None:
        self._put(self.world.allReduce, x, out, self._number(op))

    def start_allreduce(self, x: Any, out: Any, op: str) -> Handle:
        self.stream.wait_event(self.cuda.get_current_stream().record())  # for what computes x
        with self.stream:
            self.allreduce(x, out, op)
        return Queued(self.cuda, self.stream)

    def broadcast(self, x: Any, out: Any, root: int) -> None:
        self._put(self.world.broadcast, x, out, root)

    def allgather(self, x: Any, out: Any) -> None:
        self._put(self.world.allGather, x, out)

    def reduce_scatter(self, x: Any, out: Any) -> None:
        self._put(self.world.reduceScatter, x, out, self._number("sum"))
