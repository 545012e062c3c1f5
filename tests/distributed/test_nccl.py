"""The engine for GPUs, with a stand-in for CuPy and NCCL: memory of this process, and threads as ranks."""

import ctypes
import sys
import types

import numpy as np
import pytest

import minigrad as mg
from minigrad.distributed import ThreadCommunicators
from minigrad.distributed.communicators import CURRENT

ELEMENTS = {7: np.float32, 8: np.float64, 6: np.float16, 4: np.int64, 1: np.uint8}


class GpuArray(np.ndarray):
    """An array "on a GPU": it has an address, as CuPy's arrays have."""

    device = types.SimpleNamespace(id=0)
    data = property(lambda self: types.SimpleNamespace(ptr=self.ctypes.data))


def on_gpu(values):
    return np.array(values).view(GpuArray)


def memory(address, count, dtype):
    """The elements at an address; NCCL's arguments are numbers."""
    return np.frombuffer((ctypes.c_char * (count * np.dtype(ELEMENTS[dtype]).itemsize)).from_address(address),
                         ELEMENTS[dtype])


class World:
    """Stands for cupy.cuda.nccl.NcclCommunicator: the ranks exchange through their CPU engines."""

    def __init__(self, size, number, rank):
        assert number == tuple(range(128)) and (size, rank) == (CURRENT.get().size, CURRENT.get().rank)
        self.host, self.size = CURRENT.get().host, size

    def allReduce(self, x, out, count, dtype, op, stream):
        self.host.allreduce(memory(x, count, dtype), memory(out, count, dtype), ["sum", "prod", "max", "min"][op])

    def broadcast(self, x, out, count, dtype, root, stream):
        self.host.broadcast(memory(x, count, dtype), memory(out, count, dtype), root)

    def allGather(self, x, out, count, dtype, stream):
        self.host.allgather(memory(x, count, dtype), memory(out, count * self.size, dtype))

    def reduceScatter(self, x, out, count, dtype, op, stream):
        self.host.reduce_scatter(memory(x, count * self.size, dtype), memory(out, count, dtype))


class Stream:
    ptr = 0
    done = True

    def __init__(self, **options):
        pass

    def record(self):
        return self

    def wait_event(self, event):
        assert isinstance(event, Stream)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.fixture
def gpus(monkeypatch):
    """A GPU for each rank; the list of their identities can be changed."""
    found = [b"first", b"other", b"third"]
    nccl = types.SimpleNamespace(
        available=True, get_unique_id=lambda: tuple(range(128)), NcclCommunicator=World,
        NCCL_SUM=0, NCCL_MAX=2, NCCL_MIN=3,
        **{f"NCCL_{np.dtype(dtype).name.upper()}": number for number, dtype in ELEMENTS.items()},
    )
    runtime = types.SimpleNamespace(getDeviceProperties=lambda device: {"uuid": found[CURRENT.get().rank]})
    cuda = types.SimpleNamespace(
        nccl=nccl, runtime=runtime, Stream=Stream, Device=lambda number: Stream(), get_current_stream=Stream
    )
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", nccl)
    return found, nccl


def empty(shape, dtype):
    return on_gpu(np.zeros(shape, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_collectives_of_gpu_arrays_are_calls_of_nccl(gpus, dtype):
    def run(comm):
        x = on_gpu(np.arange(6, dtype=dtype) + comm.rank)
        results = [
            comm.compute("allreduce", x, empty, op="sum"), comm.compute("allreduce", x, empty, op="max"),
            comm.compute("broadcast", x, empty, root=2), comm.compute("allgather", x, empty),
            comm.compute("reduce_scatter", x, empty),
        ]
        started = comm.compute("start_allreduce", x, empty, op="min")
        results.append(comm.compute("wait", started, empty))
        assert not comm.begun and comm.gpus[0].name == "NCCL"
        return [np.asarray(r).tolist() for r in results]

    base = np.arange(6)
    for rank, found in enumerate(ThreadCommunicators(3, 20).run(run)):
        assert found == [
            (3 * base + 3).tolist(), (base + 2).tolist(), (base + 2).tolist(),
            [*base, *(base + 1), *(base + 2)], (3 * base + 3)[2 * rank : 2 * rank + 2].tolist(), base.tolist(),
        ]


def test_two_ranks_on_one_gpu_are_refused_before_nccl_refuses_them(gpus):
    gpus[0][2] = b"first"
    ranks = ThreadCommunicators(3, 20)
    with pytest.raises(mg.DistributedError, match=r"ranks 0 and 2 use the same GPU, which NCCL refuses[^$]*local_rank"):
        ranks.run(lambda comm: comm.compute("allreduce", on_gpu(np.ones(2)), empty, op="sum"))


def test_nccl_sends_no_messages_and_says_so(gpus):
    with pytest.raises(mg.DistributedError, match=r"NCCL sends no messages from rank to rank[^$]*x.to\(\"cpu\"\)"):
        ThreadCommunicators(2, 20).run(lambda comm: comm.compute("allreduce", on_gpu(np.ones(2)), empty,
                                                                 op="sum", algorithm="ring"))


def test_without_nccl_the_package_is_named(gpus):
    gpus[1].available = False
    with pytest.raises(mg.PackageError, match=r"a collective on a GPU needs NCCL[^$]*nvidia-nccl-cu13"):
        ThreadCommunicators(2, 20).run(lambda comm: comm.compute("allreduce", on_gpu(np.ones(2)), empty, op="sum"))
