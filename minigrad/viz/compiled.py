"""What the views of the compiler look at: the programs of a function, and what the user calls the values in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..compile.look.ran import Part, Ran
from ..compile.look.values import starts_of
from ..compile.nodes.graph import Graph
from ..compile.running.program import Executable, PlainProgram, Program
from ..compile.running.targets import HOST, target_of
from ..compile.save.read import LoadedProgram
from ..core.node import Node
from ..core.tensor import Tensor
from ..support.errors import MinigradError
from .exhibit import Exhibit
from .traced import named_tensors, ran_of

E = TypeVar("E", bound=Exhibit)


class Shown(NamedTuple):
    """A program to look at: which one it is, the names of its inputs, and what computes the arrays for them."""

    title: str
    program: Executable
    names: dict[Node, str]
    keeps: bool = False  # values for the gradient
    arrays: Callable[[], list[Any]] = list

    @property
    def compiled(self) -> Program:
        """The program with the stages that led to its plan."""
        if not isinstance(self.program, Program):
            raise MinigradError(
                "a loaded program does not say how it was made",
                expect="the function that was saved",
                hint="mg.viz.schedule, memory, profile and roofline show a loaded program",
            )
        return self.program

    def run(self) -> None:
        """Run the program on the arguments.  Nothing outside changes if it keeps values for a gradient, or is one."""
        self.program(self.arrays(), starts_of(self.program.graph))


def programs_of(
    what: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], view: str, runs: bool = False
) -> list[Shown]:
    """The program of a function for these arguments, and that of its gradient if it ran in the last call.

    One that has not run and need not (`runs`) is one whose kernels are not compiled, which takes a fraction of the
    time.  A jitted function, a Graph, a Program and a loaded program may be given too.
    """
    if isinstance(what, LoadedProgram):
        return [Shown("", what.program, {})]
    if isinstance(what, Executable):
        return [Shown(what.title, what, {}), *(programs_of(what.gradient, (), {}, view) if what.gradient else ())]
    if isinstance(what, Graph):
        return [Shown("", _of_graph(what, {}, view), {})]
    if isinstance(what, Tensor) or not callable(what):
        kind = "a tensor has been computed already, and shows no more how" if isinstance(what, Tensor) else ""
        raise MinigradError(
            f"there is no program in a {type(what).__name__}" + (f": {kind}" if kind else ""),
            expect="a function or model and its arguments, or a jitted function", hint=f"mg.viz.{view}(f, *arguments)",
        )
    ran = ran_of(what, args, kwargs)
    named = named_tensors(what, args, dict(kwargs))
    names = {node: named[id(t)] for node, t in ran.tensors_of_inputs.items() if id(t) in named}
    return [_of_part(part, ran, names, view, runs) for part in ran.parts]


def view_of(shown: Sequence[Shown], view: Callable[[Shown], E]) -> E:
    """A view of the first program, whose `gradient` is the view of the next one."""
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
        f"mg.viz.{view}: there are no kernels for where this runs, so it runs node by node and nothing is fused",
        expect="all tensors on one CPU, or on a GPU with the compiler's backend",
        hint="mg.viz.graph(f, *arguments) draws what was traced",
    )
