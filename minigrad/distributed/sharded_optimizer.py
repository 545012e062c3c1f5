"""`ShardedOptimizer`: each rank keeps the state of its part of the parameters (stage 1 of ZeRO)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.mode import no_grad
from ..core.tensor import Tensor
from ..nn.state import StateError, write
from ..ops.creation import full_like, zeros, zeros_like
from ..ops.view import reshape
from ..optim.groups import check_parameters
from ..optim.optimizer import Optimizer, saved_groups
from ..support.errors import ConversionError, DtypeError, GradError
from ..support.words import shown
from .communicators import Communicator
from .data_parallel import divided, joined
from .mpi import communicator


class ShardedOptimizer(Optimizer):
    """An optimizer whose state is divided among n ranks: each updates an n-th of the numbers of all parameters.

    A step has three parts.  A reduce-scatter of the gradients gives each rank the mean of its part.  An optimizer of
    the given class updates that part.  An allgather collects the parameters.  `averaged` leaves out the reduce-scatter:
    the gradients are then equal in all ranks, as after `backward()` of a `DataParallel` model.
    Without it, a backward pass in `model.no_sync()` saves the all-reduce.  The class treats each number alone, as all
    do except Muon.

    `state_dict()` is that of the plain optimizer, so it fits any number of ranks.  It is a collective: all ranks call
    it.

    >>> w = mg.asarray([1.0, 2.0], requires_grad=True)
    >>> optimizer = mg.distributed.ShardedOptimizer(mg.optim.SGD, [w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist(), optimizer
    ([0.5, 1.0], ShardedOptimizer(1 parameter of 2 numbers, lr=0.25))
    """

    caches = ("defaults", "comm")  # type: ignore[assignment]

    def __init__(
        self, optimizer_class: type[Optimizer], parameters: Any, comm: Communicator | None = None,
        averaged: bool = False, **options: Any,
    ) -> None:
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise ConversionError(
                f"ShardedOptimizer: optimizer_class is a class, not {shown(optimizer_class)}", expect="mg.optim.AdamW"
            )
        self.comm, self.averaged = communicator() if comm is None else comm, averaged
        given = list(parameters)
        groups = given if given and all(isinstance(g, dict) for g in given) else [{"params": given}]
        self.shards: list[Shard] = []
        self.inner = optimizer_class([self._sharded(group) for group in groups], **options)
        self.param_groups = self.inner.param_groups

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Add parameters with their own options."""
        self.inner.add_param_group(self._sharded(group))

    def _sharded(self, group: dict[str, Any]) -> dict[str, Any]:
        """A group with this rank's pieces in place of the parameters."""
        whole = list(group["params"])
        check_parameters("ShardedOptimizer", [*[shard.parameters for shard in self.shards], whole])
        if not all(p.requires_grad for p in whole):  # a piece may hold parts of several parameters, and moves as one
            raise GradError("ShardedOptimizer: a parameter does not require a gradient", hint="leave it out")
        self.shards.append(Shard(self.comm, whole))
        return {**group, "params": self.shards[-1].pieces}

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters of all groups, whole."""
        return [p for shard in self.shards for p in shard.parameters]

    def _change(self) -> None:
        with no_grad():
            for shard in self.shards:
                shard.read(self.averaged)
            self.inner.step()
            for shard in self.shards:
                shard.write()

    def _copies(self) -> list[list[dict[str, Tensor]]]:
        """The states of each whole parameter, gathered from all ranks, by group."""
        return [shard.whole(pieces) for shard, pieces in zip(self.shards, self.inner._copies())]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the state of a plain optimizer, or of a sharded one with any number of ranks."""
        saved = saved_groups("ShardedOptimizer", state, self.shards)
        entries = {str(number): entry for number, entry in state["state"].items()}
        parts: list[dict[str, Any]] = []
        groups: list[dict[str, Any]] = []
        for shard, group in zip(self.shards, saved):
            first = len(parts)
            given = [entries.get(str(number), {}) for number in group["params"]]
            parts += [shard.part(given, *place) for place in shard.places]
            groups.append({**group, "params": list(range(first, len(parts)))})
        self.inner.load_state_dict({"state": dict(enumerate(parts)), "param_groups": groups})


class Shard:
    """The parameters of a group, in a row and filled up with zeros, and the pieces of them that this rank updates."""

    caches = ("comm",)

    def __init__(self, comm: Communicator, parameters: list[Tensor]) -> None:
        self.comm, self.parameters = comm, parameters
        if len({p.dtype for p in parameters}) > 1:
            listed = ", ".join(sorted({str(p.dtype) for p in parameters}))
            raise DtypeError("ShardedOptimizer: the parameters of a group have one dtype", actual=listed,
                             hint="a group for each dtype")
        sizes = [p.size for p in parameters]
        length = -(-sum(sizes) // comm.size)
        self.fill = zeros(length * comm.size - sum(sizes), parameters[0].dtype, parameters[0].device)
        own, at = (comm.rank * length, (comm.rank + 1) * length), 0
        self.places: list[tuple[int, int, int]] = []  # of each piece: parameter, start, stop
        for i, size in enumerate([*sizes, self.fill.size]):  # the zeros are the last parameter
            start, stop = max(own[0] - at, 0), min(own[1] - at, size)
            if start < stop:
                self.places.append((i, start, stop))
            at += size
        self.pieces = [self._piece(*place).copy() for place in self.places]  # type: ignore[attr-defined]
        for piece in self.pieces:
            piece.requires_grad = True

    def _piece(self, i: int, start: int, stop: int) -> Tensor:
        return reshape([*self.parameters, self.fill][i].detach(), -1)[start:stop]  # type: ignore[attr-defined]

    def part(self, given: list[dict[str, Any]], i: int, start: int, stop: int) -> dict[str, Any]:
        """The state of a piece, from the saved states of all parameters."""
        entry = given[i] if i < len(given) else {}
        for name, value in entry.items():
            if np.shape(value) not in ((), self.parameters[i].shape):
                raise StateError(
                    f"load_state_dict: the {name} of a parameter of shape {self.parameters[i].shape} has shape "
                    f"{np.shape(value)}, and nothing was loaded into ShardedOptimizer"
                )
        return {name: value.reshape(-1)[start:stop] if np.shape(value) else value for name, value in entry.items()}

    def whole(self, pieces: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
        """The states of each parameter in all ranks, from those of the pieces in this one."""
        found: list[dict[str, Tensor]] = [{} for _ in self.parameters]
        for name, first in pieces[0].items():
            for entry, value in zip(found, self.gathered([piece[name] for piece in pieces])):
                entry[name] = value if first.ndim else reshape(value, -1)[0].copy()  # 0-d: a count of steps
        return found

    def read(self, averaged: bool) -> None:
        """Set the pieces to the present values of the parameters, and their gradients to the means over the ranks."""
        gradients = [p.grad for p in self.parameters]
        for piece, place in zip(self.pieces, self.places):
            write([piece], [self._piece(*place)])
            gradient = [*gradients, None][place[0]]
            piece.grad = None if gradient is None else reshape(gradient, -1)[place[1] : place[2]]
        if averaged or self.comm.size == 1:
            return
        parts = [zeros_like(p) if g is None else g for p, g in zip(self.parameters, gradients)]
        mean = self.comm.reduce_scatter(joined([*parts, self.fill])) / self.comm.size
        for piece, gradient in zip(self.pieces, divided(mean, self.pieces)):
            piece.grad = gradient

    def write(self) -> None:
        """Set the parameters to the pieces of all ranks."""
        write(self.parameters, self.gathered(self.pieces))
        for piece in self.pieces:
            piece.grad = None

    def gathered(self, values: list[Tensor]) -> list[Tensor]:
        """A tensor for each parameter, from one for each piece, or a number for it, in all ranks."""
        parts = [v.detach() if v.ndim else full_like(p, v) for p, v in zip(self.pieces, values)]  # type: ignore[attr-defined]
        return divided(self.comm.allgather(joined(parts)), self.parameters)
