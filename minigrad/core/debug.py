"""Help with what goes wrong: the first nan, and graphs that somebody keeps alive."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass
from typing import Any

from .emit import Eager
from .errors import NanError
from .mode import current_mode, switch
from .node import Node, topological_order
from .primitive import Primitive
from .source import line_of, show


class NanHunter(Eager):
    """Eager mode that looks at every result."""

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        data = super().compute(op, values, attrs, device)
        if _holds_nan(data) and not any(_holds_nan(v) for v in values):
            origin = current_mode().origin
            whose = "" if origin is None else f", in the gradient of {origin.name} made at {show(origin.where)}"
            raise NanError(
                f"{op.name} made a nan out of inputs that held none{whose}",
                actual=", ".join(f"{op.name_of(i)} {_range(v)}" for i, v in enumerate(values)),
            )
        return data


def _holds_nan(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_holds_nan(v) for v in value)
    if not hasattr(value, "dtype"):
        return bool(value != value)
    return value.dtype.kind == "f" and bool((value != value).any())


def _range(value: Any) -> str:
    if not hasattr(value, "shape"):
        return repr(value)
    if not value.size:
        return f"{value.shape} empty"
    return f"{value.shape} from {float(value.min()):.4g} to {float(value.max()):.4g}"


def debug_nans() -> switch:
    """In this block, stop at the first operation that makes a nan, forward or backward.

    >>> with mg.debug_nans():
    ...     mg.sqrt(mg.asarray([4.0])).tolist()
    [2.0]
    """
    return switch(interpreter=NanHunter())


@dataclass(frozen=True)
class LiveGraph:
    """A result that somebody holds, with everything it was made from."""

    where: str
    nodes: int
    saved_bytes: int


@dataclass(frozen=True)
class LiveGraphs:
    """The graphs that are alive, the largest first; prints as a table with advice."""

    graphs: list[LiveGraph]

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Any:
        return iter(self.graphs)

    def __repr__(self) -> str:
        if not self.graphs:
            return "no graphs are alive"
        rows = [f"{len(self.graphs)} graphs are alive"]
        by_line = Counter(g.where for g in self.graphs)
        for where, count in by_line.most_common(10):
            same = [g for g in self.graphs if g.where == where]
            rows.append(
                f"  {count:6d} × made at {where}: {sum(g.nodes for g in same)} nodes, "
                f"{sum(g.saved_bytes for g in same)} bytes saved"
            )
        if by_line.most_common(1)[0][1] > 1:
            rows.append("  A list of losses keeps every graph: append loss.item(), or loss.detach()")
        return "\n".join(rows)


def live_graphs() -> LiveGraphs:
    """The graphs that somebody keeps alive, by the line that made their last node.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> losses = [(w * i).sum() for i in range(3)]
    >>> len([g for g in mg.live_graphs() if g.nodes == 3]) >= 3
    True
    """
    alive = [x for x in gc.get_objects() if isinstance(x, Node) and x.op is not None]
    used = {id(i) for node in alive for i in node.inputs}
    roots = [node for node in alive if id(node) not in used and node.plan.rules]
    graphs = []
    for root in roots:
        order = topological_order([root])
        filename, line = line_of(root.where)
        graphs.append(LiveGraph(f"{filename}:{line}", len(order), sum(map(_saved_bytes, order))))
    return LiveGraphs(sorted(graphs, key=lambda g: (-g.saved_bytes, -g.nodes, g.where)))


def _saved_bytes(node: Node) -> int:
    saved = node.saved if isinstance(node.saved, tuple) else ()
    return sum(getattr(v, "nbytes", 0) for v in saved)
