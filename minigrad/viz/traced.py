"""What a function records for some arguments, and the names of the tensors in it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..compile.functions.trace import Result
from ..compile.jitted import Jitted, JittedMethod, jit
from ..compile.look.ran import Ran
from ..compile.nodes.graph import Graph
from ..compile.rewriting.fold_views import transfer_there_and_back
from ..compile.rewriting.rules import Rules, apply_rules
from ..core.node import Node
from ..core.primitive import P
from ..core.tensor import Tensor
from ..core.tree import leaves
from ..nn.module import Module
from ..support.errors import MinigradError
from .bodies import Written, made
from .models import PARAMETER, around, names_of_tensors, roles_of, tensors_of
from .naming import names_in_code
from .scene import Subject
from .steps import history_of


class FunctionCall(NamedTuple):
    """What a view shows: a function, or a program, and the arguments that it is called with."""

    what: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}

    def run(self) -> Any:
        """The results of the function."""
        return self.what(*self.args, **self.kwargs)

    def ran(self) -> Ran:
        """The graphs of the last call of a jitted function; another function is jitted first."""
        what = self.what
        return (what if isinstance(what, (Jitted, JittedMethod)) else jit(what)).ran(*self.args, **self.kwargs)


def traced(call: FunctionCall, backward: bool) -> Subject:
    """What a function records in a call."""
    owner = getattr(call.what, "__self__", None)
    bound = [owner] if isinstance(owner, Module) else None  # the model whose method is called
    if backward:
        tracked = tracked_in(call.run())
        if not tracked:
            raise MinigradError(
                "no gradient flows through this function", hint="requires_grad=True for the tensors to differentiate by"
            )
        results, nodes = history_of([t.node for t in tracked])
        known, models = names_of_tensors(tensors_of(nodes), nodes, *places_of(call), models=bound)
        return Subject(nodes, results, names_in_code(nodes, known), models)
    ran = call.ran()
    graph = without_detours(ran.graph)
    tensors, count = ran.tensors_of_inputs, len(graph.outputs)
    known, models = names_of_tensors(tensors, graph.nodes, *places_of(call), models=bound)
    roles = roles_of(tensors, known, models)
    graph = Graph(graph.inputs, (*graph.outputs, *returned(ran, graph.outputs)), graph.effects).titled(graph.title)
    used = {source for node in graph.nodes for source in node.sources}
    inputs = [node for node in graph.inputs if node in used or node in graph.outputs]
    found = written_out(graph, inputs, {node: role.name for node, role in roles.items() if role.name})
    trains = bool(ran.recording.changes) or len(ran.parts) > 1
    role = {id(tensor): roles[node] for node, tensor in tensors.items()}
    writes = [(found.results[number], id(place.find(ran.tensors))) for place, number in ran.recording.writes]
    stored = {node: role[each] for node, each in writes if each in role and role[each].kind == PARAMETER}
    return found._replace(
        results=found.results[count:] or found.results, models=models, phases=trains, stored=stored
    )


def tracked_in(result: Any) -> list[Tensor]:
    """The tensors of a result through which a gradient flows."""
    return [tensor for tensor in leaves(result) if tensor.tracked]


def returned(ran: Ran, outputs: Sequence[Node]) -> list[Node]:
    """What the function returns: outputs of its graph, or views of them, which a call makes after its program."""
    found = []
    for result in ran.recording.results:
        if isinstance(result, Result) and result.place is None:
            node = outputs[result.number]
            for op, attrs in result.chain:
                view = made(op, [node], attrs, node, node)
                view.code, (view.shape, view.dtype) = None, op.infer(node, **attrs)
                node = view
            found.append(node)
    return found


def written_out(graph: Graph, inputs: Sequence[Node], known: Mapping[Node, str] = {}) -> Subject:
    """The nodes of a graph with the branches and bodies in it, after some of its inputs, whose names may be `known`."""
    found = Written(graph)
    nodes, names = [*inputs, *found.nodes], names_in_code(found.nodes, known, found.carried)
    return Subject(nodes, found.outputs, names, (), graph.title, found.again, phases=True)


def without_detours(graph: Graph) -> Graph:
    """The graph without transfers that undo each other, which `mg.offload` records around each operation."""
    if not any(node.op is P.to_device for node in graph.nodes):
        return graph
    moves = Rules()
    moves("to_device")(transfer_there_and_back)
    return apply_rules(graph, moves, lambda *change: None)


def places_of(call: FunctionCall) -> list[dict[str, Any]]:
    """Where a call has its tensors: the variables of the caller, and the arguments.  The last are nearest.

    A layer calls all that it is given x, so the caller's names are nearer; a function of the user has names of its own.
    """
    function, args, kwargs = call
    if isinstance(getattr(function, "jitted", None), Jitted):
        args = (function.__self__, *args)  # type: ignore[attr-defined]
    target: Any = function.forward if isinstance(function, Module) else function
    try:
        own = inspect.signature(getattr(target, "function", target)).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        own = {}  # a built-in function, or wrong arguments: the call itself raises the better error
    return [own, around()] if isinstance(function, Module) else [around(), own]
