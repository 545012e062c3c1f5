"""Tools for debugging: `debug_nans` finds the first nan, `live_graphs` lists the graphs that are still in memory."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from math import inf
from typing import Any

from ..support.errors import NanError, TraceError
from ..support.source import Where, line_of, show
from ..support.table import counted
from .emit import Eager, Interpreter
from .mode import current_mode, switch
from .node import Node, topological_order
from .primitive import Primitive
from .state import Control, State


class NanHunter(Eager, State, Control):
    """Eager mode that checks every result, also those inside compiled programs."""

    runs_programs = True

    def __init__(self, infinities: bool = False) -> None:
        self.infinities = infinities

    def compute(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> Any:
        data = super().compute(op, values, attrs, device)
        self.look(op, values, attrs, data, current_mode().origin)
        return data

    def look_ahead(self, op: Primitive, values: list[Any], attrs: dict[str, Any], device: Any) -> None:
        self.compute(op, values, attrs, device)  # in new memory: after an error the tensor has its old values

    def look(
        self, op: Primitive, values: Sequence[Any], attrs: dict[str, Any], data: Any, origin: Node | None,
        where: Where | None = None,
    ) -> None:
        """Raise an error if the result has a nan (or an infinity) and the inputs have none."""
        what = self.found(data)
        if what is None or any(self.found(v) == what for v in (*values, attrs.get("value"))):
            return
        if op.kind == "structural" and any(getattr(held, "looks_inside", False) for held in attrs.values()):
            return  # a program, whose nodes were checked
        made = "" if where is None else f", made at {show(where)},"
        whose = "" if origin is None else f", in the gradient of {origin.name} made at {show(origin.where)}"
        raise NanError(
            f"{op.name}{made} made {what} from inputs without one{whose}",
            actual=", ".join(f"{op.name_of(i)} {_range(v)}" for i, v in enumerate(values)),
        )

    def found(self, value: Any) -> str | None:
        """"a nan" or "an infinity", if one is among these values."""
        if isinstance(value, tuple):
            return next((what for what in map(self.found, value) if what is not None), None)
        if not isinstance(value, float) and getattr(getattr(value, "dtype", None), "kind", "") != "f":
            return None
        if _any(value != value):
            return "a nan"
        return "an infinity" if self.infinities and _any(abs(value) == inf) else None


def _any(condition: Any) -> bool:
    return bool(condition if isinstance(condition, bool) else condition.any())


def _range(value: Any) -> str:
    if not hasattr(value, "shape"):
        return repr(value)
    if not value.size:
        return f"{value.shape} empty"
    return f"{value.shape} from {float(value.min()):.4g} to {float(value.max()):.4g}"


class debug_nans(ContextDecorator):
    """In this block, the first operation that makes a nan (with `infinities`: or an infinity) raises an error.

    This includes the backward pass and programs of `mg.jit` and graph mode: these run node by node first, and the error
    names the line that made the node.  A block inside a jitted function applies to the whole function, in each run.
    Values are checked before they are written in place, so that the tensor keeps its old values.

    >>> with mg.debug_nans():
    ...     mg.sqrt(mg.asarray([4.0])).tolist()
    [2.0]
    >>> f = mg.jit(lambda x: mg.exp(x) * 0.0)
    >>> with mg.debug_nans(infinities=True):
    ...     f(mg.asarray([1e3]))
    Traceback (most recent call last):
    minigrad.support.errors.NanError: exp, made at ..., made an infinity from inputs without one
    ...
    """

    def __init__(self, infinities: bool = False) -> None:
        self.hunter = NanHunter(infinities)
        self.blocks: list[Any] = []

    def __enter__(self) -> debug_nans:
        block = current_mode().state.hunting(self.hunter) or _hunting(self.hunter)
        block.__enter__()
        self.blocks.append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        self.blocks.pop().__exit__(*error)


def _hunting(hunter: NanHunter) -> switch:
    """A block in which the hunter computes, below an interpreter that casts inputs (autocast)."""
    found: Interpreter = hunter
    interpreter = current_mode().interpreter
    if interpreter is not None and not isinstance(interpreter, Eager):
        found, below = interpreter.on(hunter), getattr(interpreter, "outer").interpreter  # noqa: B009
        if found is hunter or not isinstance(below or hunter, Eager):
            raise TraceError(
                "debug_nans begins inside vmap or jvp, where a tensor has several values",
                hint="`with mg.debug_nans():` around the call",
            )
    return switch(interpreter=found, state=hunter)


@dataclass(frozen=True)
class LiveGraph:
    """A result that is in use, with all nodes that it depends on."""

    where: str
    nodes: int
    saved_bytes: int


@dataclass(frozen=True)
class LiveGraphs:
    """The graphs in memory, the largest first; prints as a table with advice."""

    graphs: list[LiveGraph]

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Any:
        return iter(self.graphs)

    def __repr__(self) -> str:
        if not self.graphs:
            return "no graphs are alive"
        rows = [f"{counted(len(self.graphs), 'graph is', 'graphs are')} alive"]
        by_line = Counter(g.where for g in self.graphs)
        for where, count in by_line.most_common(10):
            same = [g for g in self.graphs if g.where == where]
            rows.append(
                f"  {count:6d} × made at {where}: {counted(sum(g.nodes for g in same), 'node')}, "
                f"{counted(sum(g.saved_bytes for g in same), 'byte')} saved"
            )
        if by_line.most_common(1)[0][1] > 1:
            rows.append("  A list of losses keeps every graph: append loss.item(), or loss.detach()")
        return "\n".join(rows)


def live_graphs() -> LiveGraphs:
    """The graphs that are still in memory, by the line that made their last node.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> losses = [(w * i).sum() for i in range(3)]
    >>> len([g for g in mg.live_graphs() if g.nodes == 3]) >= 3
    True
    """
    alive = [x for x in gc.get_objects() if issubclass(type(x), Node) and x.op is not None]
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
