"""`Communicator`: how the ranks of a run exchange tensors."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from ..core.clock import mark_written
from ..core.mode import current_mode
from ..core.primitive import P
from ..core.tensor import Tensor, contiguous_base, wrap
from ..devices import as_device
from ..ops.bits import bitwise_invert
from ..ops.elementwise import negative
from ..ops.write import assign, writable
from ..support.errors import DistributedError, DtypeError, ShapeError
from ..support.words import shown, whole
from .engine import DONE, Engine, Handle
from .nccl import NcclEngine
from .watch import Watch, memory_for

CURRENT: ContextVar[Communicator | None] = ContextVar("minigrad communicator", default=None)
EMPTY = as_device("cpu").empty  # new memory, from the pool


class Communicator:
    """One rank of a run: `rank` is its number, from 0, and `size` the number of ranks.

    `local_rank` and `local_size` count only the ranks on the same host: a GPU of a rank is `f"cuda:{comm.local_rank}"`.

    The methods take tensors and NumPy arrays.  All ranks call the same collectives in the same order, with the same
    shapes and dtypes; a rank that does not raises an error.  On tensors, `allreduce`, `broadcast`, `allgather` and
    `reduce_scatter` are operations: they have gradients, and are recorded in a graph.

    >>> comm = mg.distributed.communicator()
    >>> comm.rank, comm.size, comm.allreduce(mg.ones(2), "mean").tolist()
    (0, 1, [1.0, 1.0])
    """

    caches = ("host", "watch", "gpus", "begun")  # traces do not look into them

    def __init__(self, engine: Engine, watch: Watch | None = None) -> None:
        self.host, self.rank, self.size = engine, engine.rank, engine.size
        self.watch = watch or Watch(memory_for(1), 0, [engine.rank], engine.size)
        self.local_rank, self.local_size = self.watch.number, len(self.watch.ranks)
        self.gpus: dict[Any, Engine] = {}  # the engines of GPUs
        self.begun: dict[int, Handle] = {}  # the transfers that a graph has begun, by the address of the result

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}, {self.host.name}>"

    # Collectives ----------------------------------------------------------------------------------------------------

    def allreduce(self, x: Any, op: str = "sum", algorithm: str | None = None) -> Any:
        """The sum (or "mean", "max", "min") of the `x` of all ranks, element by element.

        With `algorithm="ring"`, the functions in `ring.py` run instead of the library's own.
        """
        x = _checked("allreduce", x, op)
        if algorithm not in (None, "ring"):
            raise DistributedError(f"allreduce: there is no algorithm {shown(algorithm)}", expect="None or 'ring'")
        if op == "mean":
            return self.allreduce(x, "sum", algorithm) / self.size
        if not isinstance(x, Tensor):
            return self.compute("allreduce", x, op=op, algorithm=algorithm)
        if op == "min":  # the operation is the maximum, which has a gradient
            flipped = negative if x.dtype.kind == "f" else bitwise_invert
            return flipped(self.allreduce(flipped(x), "max", algorithm))
        primitive = P.allreduce if op == "sum" else P.allreduce_max
        return primitive.apply(x, comm=self, algorithm=algorithm)

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """The `x` of rank `root`, in all ranks; the others give an `x` of the same shape and dtype."""
        self._check_rank("broadcast", "root", root)
        return self._apply("broadcast", _given(x), root=root)

    def allgather(self, x: Any) -> Any:
        """The `x` of all ranks one after the other, joined along the first axis.

        >>> mg.distributed.ThreadCommunicators(2).run(lambda comm: comm.allgather(mg.asarray(comm.rank)).tolist())
        [[0, 1], [0, 1]]
        """
        x = _given(x)
        return self._apply("allgather", x if x.ndim else x.reshape(1))

    def reduce_scatter(self, x: Any) -> Any:
        """The sum of the `x` of all ranks; each rank gets its part of the sum along the first axis."""
        x = _checked("reduce_scatter", x)
        if not x.ndim or x.shape[0] % self.size:
            raise ShapeError(
                f"reduce_scatter: each of {self.size} ranks gets an equal part along the first axis",
                expect=f"a multiple of {self.size} rows", actual=f"shape {tuple(x.shape)}",
            )
        return self._apply("reduce_scatter", x)

    def barrier(self) -> None:
        """Wait until all ranks have called `barrier`."""
        with self.watch.enter("barrier", np.zeros(0, np.int8)):
            self.host.barrier()

    def start_allreduce(self, buffer: Any, op: str = "sum") -> Request:
        """Begin to replace `buffer` by the sum of the buffers of all ranks; `wait()` of the result returns it.

        In between, the buffer is neither read nor written.  In a graph, the two are operations: kernels between them
        run while the arrays are on their way.  MPI moves arrays only while it is called: `test()` of a request moves
        them too.

        >>> x = mg.ones(2)
        >>> mg.distributed.communicator().start_allreduce(x).wait() is x
        True
        """
        _checked("start_allreduce", buffer, op)
        if op == "mean" and buffer.dtype.kind != "f":
            raise DtypeError("start_allreduce: the mean of integers does not fit into them", hint="op='sum'")
        op, scale = ("sum", self.size) if op == "mean" else (op, 1)
        if isinstance(buffer, Tensor) and (current_mode().interpreter is not None or writable(buffer, 0) is not None):
            return Recorded(self, P.start_allreduce.apply(buffer, comm=self, op=op), buffer, scale)
        array = _one_piece("start_allreduce", buffer)
        return Request(self._start(array, array, op), buffer, array, self.watch, "wait of an allreduce", scale)

    # From one rank to another ---------------------------------------------------------------------------------------

    def send(self, x: Any, to: int, tag: int = 0) -> None:
        """Send a tensor or an array to a rank, which calls `recv`; it returns when `x` may be changed."""
        self._check_rank("send", "to", to, other=True)
        array = _in_order(_array(x))
        with self.watch.waiting(f"send to rank {to}"):
            self._engine(array).start_send(array, to, tag).wait()

    def recv(self, source: int, like: Any, tag: int = 0) -> Any:
        """Receive a tensor or an array from a rank.  `like` has its shape and dtype, and is not changed.

        >>> def exchanged(comm):
        ...     if comm.rank == 0:
        ...         comm.send(mg.arange(3), to=1)
        ...     else:
        ...         return comm.recv(0, like=mg.zeros(3, mg.int64)).tolist()
        >>> mg.distributed.ThreadCommunicators(2).run(exchanged)
        [None, [0, 1, 2]]
        """
        self._check_rank("recv", "source", source, other=True)
        array = _array(like)
        with self.watch.waiting(f"recv from rank {source}"):
            got = self._engine(array).recv(source, array, tag)
        return wrap(got, like.device) if isinstance(like, Tensor) else got

    def start_send(self, x: Any, to: int, tag: int = 0) -> Request:
        """Begin to send; `x` must not be changed before `wait()` of the result has returned."""
        self._check_rank("send", "to", to, other=True)
        array = _in_order(_array(x))
        return Request(self._engine(array).start_send(array, to, tag), x, None, self.watch, f"send to rank {to}")

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Request:
        """Begin to receive into `out`; the message is there when `wait()` of the result has returned."""
        self._check_rank("recv", "source", source, other=True)
        array = _one_piece("start_recv", out)
        handle = self._engine(array).start_recv(array, source, tag)
        return Request(handle, out, array, self.watch, f"recv from rank {source}")

    # What kernels call ----------------------------------------------------------------------------------------------

    def compute(self, name: str, x: Any, empty: Any = EMPTY, algorithm: str | None = None, **how: Any) -> Any:
        """The result of a collective on an array: the kernel of its primitive.  `empty` makes memory for it."""
        if name == "wait":
            self.begun.pop(self._engine(x).address(x), DONE).wait()
            return x
        shape = P[name].infer(x, comm=self)[0] if name in ("allgather", "reduce_scatter") else x.shape
        x, out = _in_order(x), empty(shape, x.dtype)
        engine = self._engine(out)
        if name == "start_allreduce":
            self.begun[engine.address(out)] = self._start(x, out, **how)
            return out
        with self.watch.enter(name, x, **how):
            run = partial(Engine.allreduce, engine) if algorithm == "ring" else getattr(engine, name)
            run(x, out, **how)
        return out

    def _apply(self, name: str, x: Any, **how: Any) -> Any:
        if isinstance(x, Tensor):
            return P[name].apply(x, comm=self, **how)
        return self.compute(name, x, **how)

    def _start(self, x: Any, out: Any, op: str) -> Handle:
        with self.watch.enter("start_allreduce", x, op=op):
            return self._engine(out).start_allreduce(x, out, op)

    def _engine(self, array: Any) -> Engine:
        device: Any = getattr(array, "device", "cpu")  # "cpu" for NumPy's arrays
        if device == "cpu" or self.size == 1:
            return self.host
        if device.id not in self.gpus:
            self.gpus[device.id] = NcclEngine(self.host, device.id)
        return self.gpus[device.id]

    def _check_rank(self, name: str, what: str, rank: Any, other: bool = False) -> None:
        number = whole(rank)
        if number is None or not 0 <= number < self.size:
            last = "which has one rank, 0" if self.size == 1 else f"which has ranks 0 to {self.size - 1}"
            raise DistributedError(f"{name}: {what}={shown(rank)} is not a rank of this run, {last}")
        if other and number == self.rank:
            raise DistributedError(f"{name}: rank {number} is this rank itself", expect="another rank")


class Request:
    """A transfer that has begun: `wait()` returns its tensor or array, `test()` whether that is there."""

    def __init__(self, handle: Handle, value: Any, written: Any, watch: Watch, text: str, scale: int = 1) -> None:
        self.handle, self.value, self.written = handle, value, written  # `written`: the memory that is replaced
        self.watch, self.text, self.scale, self.done = watch, text, scale, False

    def wait(self) -> Any:
        """Wait until the transfer is done."""
        if not self.done:
            with self.watch.waiting(self.text):
                self.handle.wait()
            self._finish()
        return self.value

    def test(self) -> bool:
        """Whether the transfer is done; it does not wait."""
        if not self.done and self.handle.test():
            self._finish()
        return self.done

    def _finish(self) -> None:
        self.done = True
        if self.scale != 1:
            self.written /= self.scale
        if self.written is not None and isinstance(self.value, Tensor):
            mark_written(self.written, depth=2)


class Recorded(Request):
    """A transfer in a graph, where it begins and is done when the graph runs."""

    def __init__(self, comm: Communicator, started: Tensor, buffer: Tensor, scale: int) -> None:
        super().__init__(DONE, buffer, None, comm.watch, "", scale)
        self.comm, self.started = comm, started

    def test(self) -> bool:
        return self.done

    def _finish(self) -> None:
        self.done = True
        total = P.wait.apply(self.started, self.value, comm=self.comm)
        assign(self.value, total / self.scale if self.scale != 1 else total)


def _given(x: Any) -> Any:
    """A tensor as it is, anything else as an array."""
    return x if isinstance(x, Tensor) else np.asarray(x)


def _checked(name: str, x: Any, op: str = "sum") -> Any:
    """The same, for a reduction."""
    if op not in ("sum", "mean", "max", "min"):
        raise DistributedError(f"{name}: there is no op {shown(op)}", expect="'sum', 'mean', 'max' or 'min'")
    x = _given(x)
    if x.dtype.kind not in "iuf":
        raise DtypeError(f"{name}: only numbers have a {op}, and this is {x.dtype}", hint="x.astype(mg.int32)")
    return x


def _array(x: Any) -> Any:
    """The memory of a tensor or of an array, without a copy."""
    if not isinstance(x, Tensor):
        return np.asarray(x)
    contiguous_base(x)
    return x.data


def _one_piece(name: str, x: Any) -> Any:
    """The memory, which must be in order, because the transfer writes to it."""
    array = _array(x)
    if not array.flags.c_contiguous:
        raise ShapeError(f"{name}: the elements are not one piece of memory", hint="a buffer of its own: x.copy()")
    return array


def _in_order(array: Any) -> Any:
    return array if array.flags.c_contiguous else array.copy(order="C")
