"""A graph as ONNX nodes: each node by the table, and branches and loops as graphs within."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compile.nodes.graph import Graph, Source, node_like, remade
from ...core import dtypes
from ...core.node import Node
from ...core.primitive import P
from ...support.errors import FileError
from ...support.source import show
from .arrays import FIRST, LAST
from .composites import bodies
from .decompositions import DECOMPOSITIONS, number_type
from .operator_table import TABLE, WITHOUT, writes
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
        inner = bodies(node)
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


def _body(w: Writer, label: str, graph: Graph, given: Sequence[str]) -> Any:
    """A graph inside a node.  Its first inputs have the names of outer values, the others are its own."""
    inner, count = w.within(), len(given)
    names = dict(zip(graph.inputs, [*given, *[w.fresh(f"{w.label}.{i.name}") for i in graph.inputs[count:]]]))
    infos = [inner.info(names[i], i.dtype, i.shape) for i in graph.inputs[count:]]
    results = [inner.add("Identity", name) for name in write_graph(inner, graph, names)]
    outputs = [inner.info(name, node.dtype, node.shape) for name, node in zip(results, graph.outputs)]
    return w.onnx.helper.make_graph(inner.nodes, w.fresh(label), infos, outputs)


def _number(name: str, dtype: Any, like: Node) -> Node:
    """An input of a body that ONNX adds."""
    return Source(name, None, (), dtype, like.device, like.mode)


@writes("cond")
def _cond(w: Writer, node: Node, pred: str, *names: str) -> Any:
    then, otherwise = [_body(w, key, node.attrs[key].graph, names) for key in ("then", "otherwise")]
    return w.add("If", pred, outputs=len(node.shape), then_branch=then, else_branch=otherwise)


@writes("scan")
def _scan(w: Writer, node: Node, *names: str) -> Any:
    attrs, graph = node.attrs, node.attrs["body"].graph
    if attrs["counted"] or attrs["keep"]:
        raise FileError(f"{node.name}, made at {show(node.where)}: ONNX only scans arrays, and to their end")
    consts, carries = attrs["consts"], attrs["carries"]
    moving = list(names[consts:])
    if len(moving) == carries:  # a number of rounds, and no array to scan
        moving.append(w.add("Expand", w.number(0, dtypes.int64), w.vector([attrs["length"]])))
        graph = Graph([*graph.inputs, _number("round", dtypes.int64, node)], graph.outputs)
    body = _body(w, "body", graph, names[:consts])
    rows = len(moving) - carries
    if attrs["reverse"]:  # some programs do not support ONNX's own directions
        moving[carries:] = [_reversed(w, name) for name in moving[carries:]]
    results = w.add("Scan", *moving, outputs=len(node.shape), body=body, num_scan_inputs=rows)
    return [*results[:carries], *[_reversed(w, y) if attrs["reverse"] else y for y in results[carries:]]]


def _reversed(w: Writer, name: str) -> str:
    return w.add("Slice", name, *[w.vector([number]) for number in (LAST, FIRST, 0, -1)])


@writes("while_loop")
def _while_loop(w: Writer, node: Node, *names: str) -> Any:
    """ONNX takes the first condition from outside, and each next one from the end of the body."""
    attrs, consts = node.attrs, node.attrs["consts"]
    graph, condition = attrs["body"].graph, attrs["condition"].graph
    if attrs["keep"]:
        raise FileError(f"{node.name}, made at {show(node.where)}: it keeps the values of each round for a gradient")
    outer, carry = graph.inputs[:consts], graph.inputs[consts:]
    before, go_on, rounds = [
        _number(name, dtype, node)
        for name, dtype in (("round", dtypes.int64), ("go_on", dtypes.bool), ("rounds", dtypes.int64))
    ]
    after = condition.rebuilt(remade, [*outer, *graph.outputs])
    ends = [*after.outputs, *graph.outputs, node_like(P.add, (before, 1), {}, before)]
    body = _body(w, "body", Graph([*outer, before, go_on, *carry, rounds], ends), names[:consts])
    limit = "" if attrs["limit"] is None else w.scalar(attrs["limit"])
    (first,) = write_graph(w, condition, dict(zip(condition.inputs, names)))
    start = [*names[consts:], w.number(0, dtypes.int64)]
    return w.add("Loop", limit, first, *start, outputs=len(start), body=body)
