"""A graph as ONNX nodes: each node by the table, and branches and loops as graphs within."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...compile.nodes.graph import Graph
from ...core import dtypes
from ...core.node import Node
from ...support.errors import FileError
from ...support.source import show
from .arrays import FIRST, LAST
from .decompositions import DECOMPOSITIONS, number_type
from .table import TABLE, WITHOUT, writes
from .writer import Writer

Names = dict[Any, Any]  # node -> the name of its value, or the names of several


def refuse_unknown(graph: Graph) -> None:
    """Raise the error that lists all operations of a graph without a counterpart in ONNX, if there are any."""
    lines = [
        f"  {node.name}, made at {show(node.where)}" + (f": {why}" if why else "") for node, why in _without(graph)
    ]
    if lines:
        raise FileError("\n".join(["export_onnx: ONNX has no counterpart of these operations", *dict.fromkeys(lines)]))


def _without(graph: Graph) -> list[tuple[Node, str]]:
    found = []
    for node in graph.nodes:
        inner = [held.graph for held in node.attrs.values() if isinstance(getattr(held, "graph", None), Graph)]
        for body in inner:
            found += _without(body)
        if node.op is not None:
            kind = node.op.kind if node.op.kind == "own" else node.op.name
            if (kind not in TABLE and kind not in DECOMPOSITIONS) or (node.effect is not None and not inner):
                found.append((node, WITHOUT.get(kind) or WITHOUT.get(str(node.effect), "")))
    return found


def write_graph(w: Writer, graph: Graph, names: Names) -> list[str]:
    """Write the nodes that lead from the inputs, which have names, to the outputs; the names of the outputs."""
    labels = graph.names()
    for node in graph.nodes:
        w.label, w.scope = labels.get(node, node.name), "/".join(node.scope)
        if node.op is None:
            names[node] = w.constant(node.array())  # type: ignore[attr-defined]
        else:
            names[node] = TABLE[node.op.name](w, node, *_given(w, node, names))
    return [names[node] for node in graph.outputs]


def _given(w: Writer, node: Node, names: Names) -> list[Any]:
    return [names[i] if isinstance(i, Node) else w.number(i, number_type(node)) for i in node.inputs]


# Branches and loops --------------------------------------------------------------------------------------------------


def _body(w: Writer, label: str, inputs: Sequence[tuple[str, Node]], graph: Graph, outside: Names,
          more: Any = None) -> Any:
    """A graph inside a node: `inputs` are its own inputs by name, `outside` are the names of outer values.

    `more(writer, names, outputs)` may write further outputs around `outputs`, which have these names.
    """
    helper = w.shared.onnx.helper
    inner, names = w.within(), dict(outside)
    infos = [inner.info(name, node.dtype, node.shape) for name, node in inputs]
    names |= {node: name for name, node in inputs}
    results = [inner.add("Identity", name) for name in write_graph(inner, graph, names)]
    outputs = [inner.info(name, node.dtype, node.shape) for name, node in zip(results, graph.outputs)]
    if more is not None:
        outputs = more(inner, results, outputs)
    return helper.make_graph(inner.nodes, w.shared.fresh(label), infos, outputs)


@writes("cond")
def _cond(w: Writer, node: Node, pred: str, *names: str) -> Any:
    branches = []
    for key in ("then", "otherwise"):
        graph = node.attrs[key].graph
        branches.append(_body(w, key, [], graph, dict(zip(graph.inputs, names))))
    return w.add("If", pred, outputs=len(node.shape), then_branch=branches[0], else_branch=branches[1])


@writes("scan")
def _scan(w: Writer, node: Node, *names: str) -> Any:
    attrs, graph = node.attrs, node.attrs["body"].graph
    if attrs["counted"] or attrs["keep"]:
        raise FileError(f"{node.name}, made at {show(node.where)}: ONNX only scans arrays, and to their end")
    consts, carries = attrs["consts"], attrs["carries"]
    own = [(w.shared.fresh(f"{w.label}.{given.name}"), given) for given in graph.inputs[consts:]]
    moving = list(names[consts:])
    if len(moving) == carries:  # a number of rounds, and no array to scan
        moving.append(w.add("Expand", w.number(0, dtypes.int64), w.vector([attrs["length"]])))
        own.append((w.shared.fresh(f"{w.label}.round"), _Typed((), dtypes.int64)))  # type: ignore[arg-type]
    body = _body(w, "body", own, graph, dict(zip(graph.inputs[:consts], names)))
    rows = len(moving) - carries
    if attrs["reverse"]:  # some programs do not support ONNX's own directions
        moving[carries:] = [_reversed(w, name) for name in moving[carries:]]
    results = w.add("Scan", *moving, outputs=len(node.shape), body=body, num_scan_inputs=rows)
    return [*results[:carries], *[_reversed(w, y) if attrs["reverse"] else y for y in results[carries:]]]


class _Typed(NamedTuple):
    """A shape and a dtype, as a node has them."""

    shape: tuple[int, ...]
    dtype: Any


def _reversed(w: Writer, name: str) -> str:
    return w.add("Slice", name, *[w.vector([number]) for number in (LAST, FIRST, 0, -1)])


@writes("while_loop")
def _while_loop(w: Writer, node: Node, *names: str) -> Any:
    """ONNX takes the first condition from outside, and each next one from the end of the body."""
    attrs, consts = node.attrs, node.attrs["consts"]
    graph, condition = attrs["body"].graph, attrs["condition"].graph
    if attrs["keep"]:
        raise FileError(f"{node.name}, made at {show(node.where)}: it keeps the values of each round for a gradient")
    fixed, start = names[:consts], list(names[consts:])

    def holds(writer: Writer, carry: Sequence[str]) -> str:
        known = dict(zip(condition.inputs, (*fixed, *carry)))
        return write_graph(writer, condition, known)[0]

    rounds: Any = _Typed((), dtypes.int64)
    own = [(w.shared.fresh(f"{w.label}.{n}"), t) for n, t in (("round", rounds), ("go_on", _Typed((), dtypes.bool)))]
    own += [(w.shared.fresh(f"{w.label}.{given.name}"), given) for given in graph.inputs[consts:]]

    def more(inner: Writer, results: list[str], outputs: list[Any]) -> list[Any]:
        go_on = inner.add("Identity", holds(inner, results))
        count = inner.add("Add", own[0][0], inner.number(1, dtypes.int64))
        return [inner.info(go_on, dtypes.bool, ()), *outputs, inner.info(count, dtypes.int64, ())]

    count_before = w.shared.fresh(f"{w.label}.rounds")
    own.append((count_before, rounds))
    body = _body(w, "body", own, graph, dict(zip(graph.inputs[:consts], fixed)), more)  # type: ignore[arg-type]
    limit = "" if attrs["limit"] is None else w.scalar(attrs["limit"])
    return w.add("Loop", limit, holds(w, start), *start, w.number(0, dtypes.int64), outputs=len(start) + 1, body=body)
