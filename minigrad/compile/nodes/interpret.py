"""Running a graph node by node, by the kernels of eager mode: to look into it, and where there are no kernels of ours.

Where nans are hunted, this is done before a program runs: it tells what made one, and on which line.
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
from ...core.replay import interpret
from ...core.tensor import Tensor, wrap
from ...devices.effects import held_back
from ...support.errors import IndexingError, MinigradError, NanError
from ...support.source import Where, show
from .graph import Graph

Starts = dict[Any, tuple[Any, int]]  # where each generator of random numbers begins, in one run
Look = Callable[[Node, list[Any], Any], object]  # at a node, the values of its inputs, and its own


def compute(node: Node, given: list[Any], starts: Starts) -> Any:
    """The value of one node, by its device's kernel; an error says which line made the node."""
    if node.op is None:
        return node.array()  # type: ignore[attr-defined]
    try:
        if node.op.kind == "own":
            return node.attrs["kernel"].run(node, given)
        return EAGER.compute(node.op, given, started(node.attrs, starts), node.device)
    except Exception as error:
        raise failed(error, node.op, node.attrs, node.device, node.where, given) from None


def run_nodes(
    nodes: Sequence[Node], values: dict[Node, Any], starts: Starts, wanted: Collection[Node], look: Look | None = None
) -> dict[Node, Any]:
    """The `values` with those of the nodes that are wanted; all others are let go after their last use."""
    for node, given, value in interpret(nodes, values, partial(compute, starts=starts), wanted):
        if look is not None:
            look(node, given, value)
    return values


def eager_index_error(
    error: IndexingError, expected: Sequence[tuple[Node, Callable[[Any], None]]], graph: Graph, arrays: Sequence[Any],
    starts: Starts,
) -> IndexingError:
    """What eager mode says, where a program finds an index out of range: the number that came in, and what it names."""
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
    except (MinigradError, KeyError):  # KeyError: of a node that another trace computes
        return error
    return error


def hunted(
    graph: Graph, arrays: Sequence[Any], starts: Starts, hunter: Any, run: Callable[[], list[Any]]
) -> list[Any]:
    """What `run()` gives, the graph's outputs for these inputs, unless a node makes what is hunted."""

    def look(node: Node, given: list[Any], value: Any) -> None:
        if node.op is not None:
            hunter.look(node.op, given, node.attrs, value, node.origin, node.where)

    with held_back() as printed:
        try:
            expected = run_nodes(graph.nodes, dict(zip(graph.inputs, arrays)), starts, set(graph.outputs), look)
        except NanError:
            for text in printed:  # up to here: it may tell how it came to this
                builtins.print(text)
            raise
    with switch(interpreter=None):
        results = run()
    for node, result in zip(graph.outputs, results):
        what = None if result is None else hunter.found(result)
        if what is not None and hunter.found(expected[node]) != what:
            raise NanError(
                f"the program made {what} of {node.name}, made at {show(node.where)}; its nodes one by one do not",
                hint="mg.jit(f, check=True) says which pass or kernel it is",
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
    for _ in interpret(graph.nodes, values, applied, wanted=graph.outputs):
        pass
    return [values[node] for node in graph.outputs]


def _constant(node: Any) -> Tensor:
    tensor = wrap(node.array(), node.device)
    return current_mode().state.admitted(tensor, None)


def started(attrs: dict[str, Any], starts: Starts) -> dict[str, Any]:
    """The attributes of what draws random numbers, or calls what does, from where its generators begin in this run."""
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
    """An error of what a library computes, in our words, with the line of its operation; of a user's, in theirs."""
    if not isinstance(error, MinigradError) and op.kind != "own":
        given = [wrap(v, device) if isinstance(v, device.ndarray) else v for v in values]
        error = explained(op, given, attrs, error)
    return located(error, op.name, where) if isinstance(error, MinigradError) else error


def located(error: MinigradError, name: str, where: Where | None) -> MinigradError:
    """An error of a running program, with the line of the operation that failed: the line of the call is in it."""
    if where is not None:
        error.add_note(f"while computing {name}, made at {show(where)}")
    return error
