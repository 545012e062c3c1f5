"""Collectives: operations in which all ranks of a distributed run take part.

They are nodes like others, and effects: a node is never removed, and all ranks run theirs in the order in which they
were recorded.  The methods of `mg.distributed.Communicator` apply them; `comm` is the communicator.
"""

from __future__ import annotations

from typing import Any

from ..core.node import Node
from ..core.primitive import P, Primitive
from ..core.tensor import Tensor
from .creation import zeros_like
from .declare import declare
from .elementwise import astype, equal, where
from .view import moveaxis


def _same(x: Any, *others: Any, **how: Any) -> Any:
    return x.shape, x.dtype


def _behind(op: Primitive, inputs: Any, many: Any, size: int, attrs: Any) -> Tensor:
    """The batch dimension goes second: the first is the one that is gathered or scattered."""
    return moveaxis(op.apply(moveaxis(inputs[0], 0, 1), **attrs), 1, 0)


def _of_total(g: Tensor, node: Node) -> Tensor:
    return P.allreduce.apply(g, **node.attrs)


def _of_maximum(g: Tensor, x: Tensor, out: Tensor, node: Node) -> Tensor:
    """Equal parts to all elements that are the maximum, in whichever rank."""
    largest = equal(x, out)
    return where(largest, _of_total(g, node) / _of_total(astype(largest, g.dtype), node), 0.0)


def _of_root(g: Tensor, node: Node) -> Tensor:
    total = P.allreduce.apply(g, comm=node.attrs["comm"], algorithm=None)
    return total if node.attrs["comm"].rank == node.attrs["root"] else zeros_like(total)


def _declare(name: str, infer: Any = _same, gradient: Any = None, **options: Any) -> None:
    rules = {} if gradient is None else {"x": gradient}
    declare(Primitive(name, "structural", ("x",), infer, rules, promotes=(), effect="collective", **options))


_declare("allreduce", gradient=_of_total, linear=("x",))
_declare("allreduce_max", gradient=_of_maximum)
_declare("broadcast", gradient=_of_root, linear=("x",))
_declare(
    "allgather", lambda x, comm: ((x.shape[0] * comm.size, *x.shape[1:]), x.dtype),
    lambda g, node: P.reduce_scatter.apply(g, **node.attrs), linear=("x",), batch=_behind,
)
_declare(
    "reduce_scatter", lambda x, comm: ((x.shape[0] // comm.size, *x.shape[1:]), x.dtype),
    lambda g, node: P.allgather.apply(g, **node.attrs), linear=("x",), batch=_behind,
)
_declare("start_allreduce")
declare(Primitive("wait", "structural", ("started", "x"), _same, promotes=(), effect="collective"))
