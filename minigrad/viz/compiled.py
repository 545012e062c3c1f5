"""What the views of the compiler look at: the program of a function, and what the user calls the values in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compile.jitted import Jitted, JittedMethod, jit
from ..compile.nodes.graph import Graph
from ..compile.running.program import Executable, PlainProgram, Program
from ..compile.running.targets import HOST, target_of
from ..core.errors import MinigradError
from ..core.node import Node
from ..core.tensor import Tensor
from .graphs import named_tensors


def program_of(
    what: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], view: str, runs: bool = False
) -> tuple[Executable, dict[Node, str]]:
    """The program of a function for these arguments, and the names of its inputs.

    Unless it is to run (`runs`), its kernels are not compiled, which takes a fraction of the time.  A jitted function,
    a Graph and a program may be given too, also one that was loaded from a file.
    """
    if isinstance(what, Executable):
        return what, {}
    if isinstance(what, Graph):
        return _of_graph(what, {}, view), {}
    if isinstance(what, Tensor) or not callable(what):
        kind = "a tensor has been computed already, and shows no more how" if isinstance(what, Tensor) else ""
        raise MinigradError(
            f"there is no program in a {type(what).__name__}" + (f": {kind}" if kind else ""),
            expect="a function or model and its arguments, or a jitted function", hint=f"mg.viz.{view}(f, *arguments)",
        )  # fmt: skip
    jitted = what if isinstance(what, (Jitted, JittedMethod)) else jit(what)
    traced = jitted.traced(*args, **kwargs)
    named = named_tensors(what, args, dict(kwargs))
    names = {node: named[id(held)] for node in traced.sources if id(held := getattr(node, "held", None)) in named}
    if not runs and target_of((*traced.graph.inputs, *traced.graph.nodes)) is HOST:
        return Program(traced.graph, traced.donate, backend="numpy"), names
    program = traced.program
    if isinstance(program, PlainProgram):
        raise _no_kernels(view)
    return program, names


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
