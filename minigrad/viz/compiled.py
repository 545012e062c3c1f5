"""What a function records in a call, and the programs that it runs, with the user's names for their values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.reverse import exhaust, walk
from ..compile.functions.trace import Result
from ..compile.fusion.count import functions_of
from ..compile.jitted import Jitted, JittedMethod, jit
from ..compile.look.ran import Ran, RanProgram
from ..compile.look.record import Making, eager_record
from ..compile.look.values import starts_of
from ..compile.nodes.graph import Graph
from ..compile.rewriting.fold_views import transfer_there_and_back
from ..compile.rewriting.rules import Rules, apply_rules
from ..compile.running.plain import PlainProgram
from ..compile.running.program import Program
from ..compile.running.targets import HOST, target_of
from ..compile.save.read import LoadedProgram
from ..compile.tracing.guards import undo
from ..compile.tracing.reachable import guards_of
from ..core.clock import tick, written_since
from ..core.mode import switch
from ..core.node import Node
from ..core.tensor import Tensor
from ..core.tree import flatten, leaves
from ..devices.effects import held_back
from ..nn.module import Module
from ..ops.creation import ones_like
from ..ops.random import DEFAULT_GENERATOR
from ..support.errors import GradError, MinigradError
from .bodies import Written, made
from .models import DATA, PARAMETER, Role, around, names_of_tensors, roles_of, tensors_of
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
    moves = Rules()
    moves("to_device")(transfer_there_and_back)
    return apply_rules(graph, moves, lambda *change: None)


def places_of(call: FunctionCall) -> list[dict[str, Any]]:
    """Where a call has its tensors: the variables of the caller, and the arguments.  The last are nearest.

    A layer calls all that it is given x, so the caller's names are nearer; a function of the user has names of its own.
    """
    function: Any = not_jitted(call.what)
    model = isinstance(function, Module)
    try:
        own = inspect.signature(function.forward if model else function).bind(*call.args, **call.kwargs).arguments
    except (TypeError, ValueError):
        own = {}  # a built-in function, or wrong arguments: the call itself raises the better error
    return [own, around()] if model else [around(), own]


# Programs -------------------------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A program to show: its title, and a function that returns arrays for its inputs.

    `roles` says what each input is; those of constants, and of all inputs of a program alone, are unknown.  Of its
    outputs, the first `results` are for the caller, and the others for the gradient.
    """

    title: str
    program: Program
    keeps: bool = False  # whether it keeps values for the gradient
    arrays: Callable[[], list[Any]] = list
    roles: Mapping[Node, Role] = {}
    gradient: bool = False  # whether it is the gradient of another program
    results: float = np.inf

    @property
    def names(self) -> dict[Node, str]:
        """The names of the inputs; parameters of several models that share a name are numbered."""
        return names_in_code((), {node: role.name for node, role in self.roles.items() if role.name})

    @property
    def overwritten(self) -> dict[Node, Role]:
        """The nodes that are stored in place of an input, and what that input is."""
        stored = [pair for group in self.program.partition.groups for pair in group.inplace.items()]
        return {node: self.roles.get(base, Role(DATA, "")) for node, base in stored}


def sources_of(became: Mapping[Node, Node]) -> dict[Node, Node]:
    """The node that became each node: of several, the first one, if possible one of its kind.

    A node that became the same as one that it reads computes nothing: `x * 1` comes after `x`.

    >>> program = mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)).program(mg.ones(4))
    >>> [old.name for old in sources_of(program.final.became(program.graph)).values()]
    ['tensor', 'tanh', 'add']
    """
    found: dict[Node, Node] = {}
    for old in sorted(became, key=lambda x: (became[x] in map(became.get, x.sources), x.op is not became[x].op)):
        found.setdefault(became[old], old)
    return found


def programs_of(call: FunctionCall, view: str, gradient: bool = False) -> list[Shown]:
    """The program of a function for these arguments, and the gradient's program if it ran in the last call.

    With `gradient`, also if it did not run.  What is called can be a jitted function, a Graph, a Program or a loaded
    program, too.
    """
    what = call.what
    if isinstance(what, LoadedProgram):
        what = what.program
    if isinstance(what, Program):
        later = programs_of(FunctionCall(what.gradient), view) if what.gradient else []
        return [Shown(what.title, what), *[each._replace(gradient=True) for each in later]]
    if isinstance(what, Graph):
        if target_of((*what.inputs, *what.nodes)) is not HOST:
            raise no_kernels(view)
        return [Shown("", Program(what))]
    ran = call.ran()
    if gradient:
        with suppress(GradError):  # a loop needs max_steps
            ran = ran.with_gradient()
    tensors = ran.tensors_of_inputs
    names, models = names_of_tensors(tensors, ran.graph.nodes, *places_of(call))
    roles = roles_of(tensors, names, models)
    return [_of_part(part, ran, roles, view) for part in ran.parts]


def check_computes(shown: Shown) -> None:
    """Raise an error if there is nothing to show."""
    if not shown.program.partition.groups:
        raise MinigradError(
            "nothing is computed here: each result is an argument, a view of one, or computed by Python",
            hint="mg.viz.graph(f, *arguments) draws what was traced; a number is traced as mg.asarray(3.0)",
        )


def jitted_once(view: str, what: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionCall:
    """A call for a view.  Another function is jitted: all that is shown of it is of one program."""
    if not isinstance(what, Jitted | JittedMethod | LoadedProgram | Program | Graph):
        if isinstance(what, Tensor) or not callable(what):
            why = ": a tensor is a result, not a computation" * isinstance(what, Tensor)
            raise MinigradError(
                f"there is no program in a {type(what).__name__}{why}",
                expect="a function or model with arguments, or a jitted function", hint=f"mg.viz.{view}(f, *arguments)",
            )
        what = jit(what)
    return FunctionCall(what, args, kwargs)


def eager_record_of(call: FunctionCall, gradient: bool, runs: int) -> Making:
    """The record of a function in eager mode; with the `gradient` of its results, which start with ones."""
    plain = eagerly(call, gradient)
    return eager_record(lambda: back_from(plain.run()) if gradient else plain.run(), runs)


def back_from(result: Any) -> list[Tensor]:
    """The differentiable tensors of a result, after a backward pass that begins with ones."""
    results = tracked_in(result)
    with switch(grad=False):
        exhaust(walk([t.node for t in results], map(ones_like, results), yields=False))  # made in the walk
    return results


def not_jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside a jitted function."""
    while isinstance(function, Jitted):
        function = function.function
    if isinstance(function, JittedMethod):
        return MethodType(not_jitted(function.jitted), function.__self__)
    return function


def eagerly(call: FunctionCall, gradient: bool) -> FunctionCall:
    """The call in eager mode; for a `gradient`, with tensors of floats that require one if none flows through it."""
    call = call._replace(what=not_jitted(call.what))
    if not gradient or tracked_in(call.run()):
        return call
    tensors, rebuild = flatten(call.args)
    copies = [t.detach() for t in tensors]
    for copy in copies:
        copy.requires_grad = copy.dtype.kind == "f"
    return call._replace(args=rebuild(copies))


@contextmanager
def put_back(call: FunctionCall) -> Iterator[None]:
    """After this block, all that a function can change by name is as before: tensors, gradients, lists, attributes.

    The next random numbers are those that would have come, too.  A training step that is repeated may diverge.
    """
    guards, began = guards_of(not_jitted(call.what), call.args, call.kwargs), tick()
    reached = [value for guard in guards for value in guard.values.values() if isinstance(value, Tensor)]
    reached += leaves((call.args, call.kwargs))
    reached += [tensor.grad for tensor in reached if tensor.grad is not None]
    before = [(tensor, tensor.detach().copy(), tensor.grad) for tensor in reached]
    random = DEFAULT_GENERATOR.get_state()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        undo(guards)
        DEFAULT_GENERATOR.set_state(random)
        for tensor, values, gradient in before:
            if written_since(tensor._data, began):
                tensor.detach()[...] = values
            tensor.grad = gradient


def _of_part(part: RanProgram, ran: Ran, roles: Mapping[Node, Role], view: str) -> Shown:
    program = part.program
    if isinstance(program, PlainProgram):
        raise no_kernels(view)
    shown = Shown(part.title, program, part.keeps, lambda: ran.arrays(part), roles, part is not ran.parts[0],
                  len(part.function.outputs))
    if any(functions_of(node.attrs) for node in program.graph.nodes):  # which branch runs, and how many rounds
        with held_back():
            program([array.copy() for array in shown.arrays()], starts_of(program.graph))
    return shown


def no_kernels(view: str) -> MinigradError:
    """The error of a view for a program of a device without the compiler's backend."""
    return MinigradError(
        f"mg.viz.{view}: there are no kernels for these devices: the graph runs node by node, and nothing is fused",
        expect="tensors on one CPU, or one GPU with the compiler's backend",
        hint="mg.viz.graph(f, *arguments) draws what was traced",
    )
