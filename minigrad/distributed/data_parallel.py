"""`DataParallel`: a model whose gradients are averaged over the ranks while backward runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from ..autodiff.reverse import after_backward
from ..core.mode import Mode, no_grad, switch
from ..core.tensor import Tensor
from ..nn.module import Module
from ..nn.state import write
from ..ops.creation import zeros_like
from ..ops.joining import concat
from ..ops.random import DEFAULT_GENERATOR
from ..ops.view import reshape
from ..support.errors import ConversionError, DistributedError
from ..support.words import shown
from .communicators import Communicator
from .mpi import communicator


class DataParallel(Module):
    """A model that is trained by all ranks, each with its part of every batch.

    All ranks begin with the parameters and buffers of rank 0, and with its random numbers.  `backward()` replaces the
    gradients by their means over the ranks.  The gradients are copied into buckets of `bucket_mb` MB, from the last
    parameter to the first.  The all-reduce of a bucket starts as soon as its gradients are there.  If a loss is a mean
    over a batch, and the parts of the ranks are equal, the ranks together train as one rank does on the whole
    batch.  Batch normalisation uses the statistics of the whole batch, unless `sync_batch_norm` is False.  Each rank
    draws its part of the random numbers of the whole batch.

    The model keeps its names: `parameters()`, `state_dict()` and its other attributes are those of the model inside.
    A parameter that a rank does not use has a gradient of zeros there.  `mg.grad` and `mg.gradients` do not average.

    >>> model = mg.distributed.DataParallel(mg.nn.Linear(2, 1))
    >>> model(mg.ones((3, 2))).sum().backward()
    >>> list(model.state_dict()), model.weight.grad.tolist()
    (['weight', 'bias'], [[3.0, 3.0]])
    """

    caches = (*Module.caches, "comm", "_buckets")
    _buckets: Any = None

    def __init__(
        self, model: Module, comm: Communicator | None = None, bucket_mb: float = 4.0, sync_batch_norm: bool = True
    ) -> None:
        if not isinstance(model, Module):
            raise ConversionError(f"DataParallel: model is a module, not {shown(model)}")
        if not isinstance(bucket_mb, (int, float)) or not bucket_mb > 0:
            raise ConversionError(f"DataParallel: bucket_mb is a number above 0, not {shown(bucket_mb)}")
        self.module, self.bucket_mb, self.averages = model, bucket_mb, True
        self.comm = communicator() if comm is None else comm
        if self.comm.size > 1:
            synchronise(self.comm, model)
            for _, inner in model.named_modules():
                if sync_batch_norm and hasattr(type(inner), "comm"):
                    inner.comm = self.comm
            self._buckets = Buckets(self, model.parameters())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model inside."""
        if self._buckets is not None and not self._buckets.fit():
            self._buckets = Buckets(self, self.module.parameters())
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which `backward()` adds up the gradients of this rank only: for all parts of a step but the last.

        >>> model = mg.distributed.DataParallel(mg.nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(mg.ones((1, 2))).sum().backward()
        >>> model(mg.ones((1, 2))).sum().backward()  # averages the sum of both
        """
        before, self.averages = self.averages, False
        try:
            yield
        finally:
            self.averages = before

    def _enter(self, mode: Mode) -> Mode:
        """The mode inside the model, in which each rank draws its part of the random numbers."""
        inside = super()._enter(mode)
        if self.comm.size > 1:
            inside = inside.but(state=PartOfDraws(inside.state, self.comm))
            self._entry = None, None  # the mode outside does not keep this one
        return inside

    # As the model itself ------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "module" not in vars(self):
            raise AttributeError(name)
        return getattr(self.module, name)

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Whether the model is in training mode."""
        return self.module.training

    def to(self, target: Any) -> Any:
        """Move or cast the tensors of the model, as its own `to` does."""
        self.module.to(target)
        if self._buckets is not None:
            self._buckets = Buckets(self, self.module.parameters())
        return self

    def named_modules(self) -> list[tuple[str, Module]]:
        """The modules of the model."""
        return self.module.named_modules()

    def _named(self) -> Iterator[tuple[str, Tensor, str]]:
        return self.module._named()


class Buckets:
    """The gradients of one backward pass, on their way from hooks to their means."""

    def __init__(self, owner: DataParallel, parameters: list[Tensor]) -> None:
        self.owner, self.parameters = owner, parameters
        self.nodes = [p.node for p in parameters]
        self.members = _members(parameters, owner.bucket_mb * 1e6)
        self.bucket_of = {i: b for b, members in enumerate(self.members) for i in members}
        for i, p in enumerate(parameters):
            p.register_hook(partial(_arrived, ref(self), i))  # type: ignore[attr-defined]
        self.begin()

    def fit(self) -> bool:
        """Whether the hooks are on the parameters, which `to` changes."""
        return all(p.node is node for p, node in zip(self.parameters, self.nodes))

    def begin(self) -> None:
        """Begin without gradients."""
        self.gradients: dict[int, Tensor] = {}
        self.missing = [len(members) for members in self.members]
        self.requests: list[Any] = []

    def arrived(self, i: int, gradient: Tensor) -> None:
        """Add the gradient of parameter `i`, and start the buckets that are full."""
        current = self.owner.averages and self.owner._buckets is self
        first = after_backward(self.finish) if current else None
        if first is None:
            return
        if first:
            self.begin()
        before = self.parameters[i].grad  # of earlier backward passes
        self.gradients[i] = gradient if before is None else before + gradient
        self.missing[self.bucket_of[i]] -= 1
        for request in self.requests:
            request.test()  # MPI makes progress when it is entered
        while len(self.requests) < len(self.members) and not self.missing[len(self.requests)]:
            self.start()

    def start(self) -> None:
        """Start the all-reduce of the next bucket."""
        row = joined([self.gradient(i) for i in self.members[len(self.requests)]])
        self.requests.append(self.owner.comm.start_allreduce(row, "mean"))

    def gradient(self, i: int) -> Tensor:
        """The gradient of a parameter; zeros if it has none."""
        parameter = self.parameters[i]
        found = self.gradients.pop(i, parameter.grad)
        return zeros_like(parameter) if found is None else found

    def finish(self) -> None:
        """Start the buckets in which parameters without a gradient are left, wait for all, and set the means."""
        while len(self.requests) < len(self.members):
            self.start()
        for request, members in zip(self.requests, self.members):
            bucket = [self.parameters[i] for i in members]
            for parameter, gradient in zip(bucket, divided(request.wait(), bucket)):
                parameter.grad = gradient
        self.begin()


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """A new row with the elements of all tensors, one after the other."""
    parts = [reshape(tensor, -1) for tensor in tensors]
    return concat(parts) if len(parts) > 1 else parts[0].copy()  # type: ignore[attr-defined, no-any-return]


def divided(row: Tensor, like: Iterable[Tensor]) -> list[Tensor]:
    """The parts of a row, with the shapes of these tensors.

    >>> given = [mg.ones((2, 1)), mg.zeros(1)]
    >>> [part.tolist() for part in divided(joined(given), like=given)]
    [[[1.0], [1.0]], [0.0]]
    """
    at, found = 0, []
    for tensor in like:
        found.append(reshape(row[at : at + tensor.size], tensor.shape))
        at += tensor.size
    return found


def _arrived(buckets: ref[Buckets], i: int, gradient: Tensor) -> None:
    """The hook of parameter `i`.  It must not keep the buckets alive, because they keep the parameter."""
    if (current := buckets()) is not None:
        current.arrived(i, gradient)


class PartOfDraws:
    """State in which a generator's next blocks belong to all ranks: each takes its part, in the order of the ranks.

    If the first dimension of a draw is that of the batch, and a part fills whole blocks (8 numbers of float32), the
    ranks together draw what one rank draws for the whole batch.
    """

    def __init__(self, state: Any, comm: Communicator) -> None:
        self.state, self.comm = state, comm

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    def take_blocks(self, generator: Any, count: int) -> tuple[Any, int]:
        """The blocks of this rank."""
        with switch(state=self.state):
            key, block = generator.take_blocks(count * self.comm.size)
        return key, block + count * self.comm.rank


def _members(parameters: list[Tensor], limit: float) -> list[list[int]]:
    """The numbers of the parameters in each bucket, from the last parameter to the first."""
    members: list[list[int]] = []
    kind, room = None, 0.0
    for i, p in reversed([*enumerate(parameters)]):
        if kind != (p.device, p.dtype) or p.nbytes > room:
            members.append([])
            kind, room = (p.device, p.dtype), limit
        members[-1].append(i)
        room -= p.nbytes
    return members


def synchronise(comm: Communicator, model: Module) -> None:
    """Give all ranks the tensors of the model in rank 0, which must be the same in all, and its default generator."""
    random = DEFAULT_GENERATOR.get_state()
    named = {f"parameter {name}": p for name, p in model.named_parameters()}
    named |= {f"buffer {name}": b for name, b in model.named_buffers()}
    own = [*[f"{name}: {t.dtype} {t.shape}" for name, t in named.items()], "nothing more"]
    *first, state = broadcast_text(comm, "\n".join([*own, f"{random['key']} {random['block']}"])).split("\n")
    for i, (ours, theirs) in enumerate(zip(own, first)):
        if ours != theirs:
            what = "the model of this rank is another one"
            if sorted(own) == sorted(first):
                what = "the parameters have a different order in this rank"
            raise DistributedError(
                f"DataParallel: {what}", expect=f"{theirs}, as number {i} in rank 0",
                actual=f"{ours}, in rank {comm.rank}",
            )
    with no_grad():
        write(named.values(), (comm.broadcast(tensor) for tensor in named.values()))
    DEFAULT_GENERATOR.set_state(dict(zip(("key", "block"), map(int, state.split()))))


def broadcast_text(comm: Communicator, text: str) -> str:
    """The text of rank 0."""
    data = np.frombuffer(text.encode(), np.uint8)
    size = int(comm.broadcast(np.asarray(data.size)))
    return bytes(comm.broadcast(np.resize(data, size))).decode()
