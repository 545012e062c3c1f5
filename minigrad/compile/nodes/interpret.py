"""Runs a graph node by node with the kernels of eager mode: to look into it, and on devices without kernels of ours.

`debug_nans` runs a graph in this way before its program, to find the line that made a nan.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from ...core.emit import EAGER, emit
from ...core.explain import explained
from ...core.mode import current_mode, switch
from ...core.node import Node
from ...core.primitive import P
from ...core.replay import evaluate_nodes
from ...core.tensor import Tensor, wrap
from ...devices.effects import held_back
from ...support.errors import IndexingError, MinigradError, NanError
from ...support.source import Where, show
from .graph import Graph, Starts
from .registered import Registered

Look = Callable[[Node, list[Any], Any], object]  # called with a node, the values of its inputs, and its value


def compute(node: Node, given: list[Any], starts: Starts) -> Any:
    """The value of one node, by its device's kernel; an error names the line that made the node."""
    if node.op is None:
        return node.array()  # type: ignore[attr-defined]
    try:
        if node.op.kind == "own":
            return node.attrs["kernel"].run(node, given, started(node.attrs, starts))
        return EAGER.compute(node.op, given, started(node.attrs, starts), node.device)
    except Exception as error:
        raise failed(error, node.op, node.attrs, node.device, node.where, given) from None


def run_nodes(
    nodes: Sequence[Node], values: dict[Node, Any], starts: Starts, wanted: Collection[Node], look: Look | None = None
) -> dict[Node, Any]:
    """The `values` with those of the nodes that are wanted added; others are freed after their last use."""
    for node, given, value in evaluate_nodes(nodes, values, partial(compute, starts=starts), wanted):
        if look is not None:
            look(node, given, value)
    return values


def eager_index_error(
    error: IndexingError, expected: Sequence[tuple[Node, Callable[[Any], None]]], graph: Graph, arrays: Sequence[Any],
    starts: Starts,
) -> IndexingError:
    """The error of eager mode for an index that a program found out of range."""
    nodes = [node for node, _ in expected]
    known = dict(zip(graph.inputs, arrays))
    try:
        values = run_nodes(Graph(graph.inputs, nodes).nodes, known, starts, {*graph.inputs, *nodes})
        for node, check in expected:
            check(values[node])
    except IndexingError as ours:
        for note in getattr(error, "__notes__", ()):
            ours.add_note(note)
        return ours
    except (MinigradError, KeyError):  # KeyError: another trace computes the node
        return error
    return error


def hunted(
    graph: Graph, arrays: Sequence[Any], starts: Starts, hunter: Any, run: Callable[[], list[Any]]
) -> list[Any]:
    """The result of `run()`, the graph's outputs for these inputs, or the error of `hunter` for the value of a node."""

    def look(node: Node, given: list[Any], value: Any) -> None:
        if node.op is not None:
            hunter.look(node.op, given, node.attrs, value, node.origin, node.where)

    with held_back() as printed:
        try:
            expected = run_nodes(graph.nodes, dict(zip(graph.inputs, arrays)), starts, set(graph.outputs), look)
        except NanError:
            for text in printed:  # by the nodes before this one: it may explain the nan
                builtins.print(text)
            raise
    with switch(interpreter=None):
        results = run()
    for node, result in zip(graph.outputs, results):
        what = None if result is None else hunter.found(result)
        if what is not None and hunter.found(expected[node]) != what:
            raise NanError(
                f"the program made {what} in {node.name}, made at {show(node.where)}; node by node it does not",
                hint="mg.jit(f, check=True) names the pass or kernel",
            )
    return results


def written_out(graph: Graph, tensors: Sequence[Tensor], starts: Starts) -> list[Tensor]:
    """The outputs of a graph for these inputs, operation by operation, in the current mode."""

    def applied(node: Node, given: list[Any]) -> Any:
        if node.op is None:
            return _constant(node)
        if node.op is P.project:
            return given[0][node.attrs["index"]]
        return emit(node.op, *given, **started(node.attrs, starts))

    values: dict[Any, Any] = dict(zip(graph.inputs, tensors))
    for _ in evaluate_nodes(graph.nodes, values, applied, wanted=graph.outputs):
        pass
    return [values[node] for node in graph.outputs]


def _constant(node: Any) -> Tensor:
    tensor = wrap(node.array(), node.device)
    return current_mode().state.admitted(tensor, None)


def started(attrs: dict[str, Any], starts: Starts) -> dict[str, Any]:
    """The attributes of a node that draws random numbers, with the keys and blocks of this run."""
    if attrs.get("key") in starts:
        key, first = starts[attrs["key"]]
        return attrs | {"key": key, "block": first + attrs["block"]}
    if attrs.get("draws"):
        return attrs | {"draws": tuple([_begun(draw, starts) for draw in attrs["draws"]])}
    return attrs


def _begun(draw: tuple[Any, Any, int, int], starts: Starts) -> tuple[Any, Any, int, int]:
    generator, key, block, step = draw
    if key not in starts:
        return draw
    return generator, starts[key][0], starts[key][1] + block, step


def failed(error: Exception, op: Any, attrs: Any, device: Any, where: Where | None, values: Sequence[Any]) -> Exception:
    """An error of a library in our form, with the line of the operation; an error of a user's kernel as it is."""
    kernel = attrs.get("kernel")
    if isinstance(kernel, Registered):
        op, attrs = kernel.op, kernel.attrs_of(attrs)
    if not isinstance(error, MinigradError) and op.kind != "own":
        given = [wrap(v, device) if isinstance(v, device.ndarray) else v for v in values]
        error = explained(op, given, attrs, error)
    return located(error, op.name, where) if isinstance(error, MinigradError) else error


def located(error: MinigradError, name: str, where: Where | None) -> MinigradError:
    """The error with a note that names the line of the operation that failed."""
    if where is not None:
        error.add_note(f"while computing {name}, made at {show(where)}")
    return error


def out_of_bounds(index: Any, check: Any, hint: str | None = None) -> MinigradError:
    """The error for an index that is not a position, with the line that uses it."""
    size = check.size
    what = f"index {index} is out of range for a dimension of size {size}"
    error = IndexingError(what, expect=f"integers from {-size} to {size - 1}", hint=hint)
    return located(error, check.op, check.where)
