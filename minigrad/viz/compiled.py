"""The programs that the views of the compiler show, with the user's names for their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..compile.look.ran import Part, Ran
from ..compile.look.values import starts_of
from ..compile.nodes.graph import Graph
from ..compile.running.plan import Blocked, Launch, Step
from ..compile.running.program import Executable, PlainProgram, Program
from ..compile.running.targets import HOST, target_of
from ..compile.save.read import LoadedProgram
from ..core.node import Node
from ..core.tensor import Tensor
from ..support.errors import MinigradError
from .exhibit import Exhibit
from .phases import Section, sections_of
from .traced import names_of_tensors, ran_of

E = TypeVar("E", bound=Exhibit)


class Shown(NamedTuple):
    """A program to show: its title, the names of its inputs, and a function that returns arrays for the inputs."""

    title: str
    program: Executable
    names: dict[Node, str]
    keeps: bool = False  # whether it keeps values for the gradient
    arrays: Callable[[], list[Any]] = list

    @property
    def sections(self) -> dict[str, Section]:
        """The phase and the layer of each step, by its name."""
        plan, graph = self.program.plan, self.program.final
        known = {name: node for node, name in graph.names().items()}
        computed = {step.name: [known[name] for name in _computed(step) if name in known] for step in plan.steps}
        return sections_of(graph, computed)

    @property
    def devices(self) -> dict[str, str]:
        """The device of each step, by its name: that of what it writes, or of what it reads if it only checks."""
        plan = self.program.plan
        used = {step.name: [*plan.uses(step)[1], *plan.uses(step)[0]] for step in plan.steps}
        return {name: str(plan.buffers[numbers[0]].device) for name, numbers in used.items() if numbers}

    @property
    def compiled(self) -> Program:
        """The program, with its graph and its partition into kernels."""
        if not isinstance(self.program, Program):
            raise MinigradError(
                "a loaded program does not contain how it was compiled",
                expect="the function that was saved",
                hint="mg.viz.schedule, memory, profile and roofline show a loaded program",
            )
        return self.program

    def run(self) -> None:
        """Run the program on the arguments.  A program that keeps values, and a gradient's, have no side effects."""
        self.program(self.arrays(), starts_of(self.program.graph))


def _computed(step: Step) -> Sequence[str]:
    return step.computes if isinstance(step, (Launch, Blocked)) else (step.name,)


def programs_of(
    what: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], view: str, runs: bool = False
) -> list[Shown]:
    """The program of a function for these arguments, and the gradient's program if it ran in the last call.

    Without `runs`, a program that has not run yet is planned, but its kernels are not compiled, which is much faster.
    `what` can also be a jitted function, a Graph, a Program or a loaded program.
    """
    if isinstance(what, LoadedProgram):
        return [Shown("", what.program, {})]
    if isinstance(what, Executable):
        return [Shown(what.title, what, {}), *(programs_of(what.gradient, (), {}, view) if what.gradient else ())]
    if isinstance(what, Graph):
        return [Shown("", _of_graph(what, {}, view), {})]
    if isinstance(what, Tensor) or not callable(what):
        why = ": a tensor is a result, not a computation" if isinstance(what, Tensor) else ""
        raise MinigradError(
            f"there is no program in a {type(what).__name__}{why}",
            expect="a function or model and its arguments, or a jitted function", hint=f"mg.viz.{view}(f, *arguments)",
        )
    ran = ran_of(what, args, kwargs)
    names, _ = names_of_tensors(what, args, dict(kwargs), ran.tensors_of_inputs, ran.graph.nodes)
    return [_of_part(part, ran, names, view, runs) for part in ran.parts]


def view_of(shown: Sequence[Shown], view: Callable[[Shown], E]) -> E:
    """A view of the first program; the `gradient` of each view is the view of the next program."""
    found: E | None = None
    for each in reversed(shown):
        found = view(each).titled(each.title, found)
    assert found is not None
    return found


def _of_part(part: Part, ran: Ran, names: dict[Node, str], view: str, runs: bool) -> Shown:
    program = part.compiled
    if program is None and not runs and target_of((*part.graph.inputs, *part.graph.nodes)) is HOST:
        program = _of_graph(part.graph, {} if part.keeps else part.function.donate, view)
    program = program or part.program
    if isinstance(program, PlainProgram):
        raise _no_kernels(view)
    return Shown(part.title, program, names, part.keeps, lambda: ran.arrays(part))


def _of_graph(graph: Graph, donate: Mapping[int, int], view: str) -> Program:
    if target_of((*graph.inputs, *graph.nodes)) is not HOST:
        raise _no_kernels(view)
    return Program(graph, donate, backend="numpy")


def _no_kernels(view: str) -> MinigradError:
    return MinigradError(
        f"mg.viz.{view}: there are no kernels for these devices: the graph runs node by node, and nothing is fused",
        expect="all tensors on one CPU, or on a GPU with the compiler's backend",
        hint="mg.viz.graph(f, *arguments) draws what was traced",
    )
