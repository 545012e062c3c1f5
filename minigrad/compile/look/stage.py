"""The stages of the compiler as one list: each has a name, an object, and the object's text."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..rewriting.log import Log
from ..running.program import Program
from .code import Code


class Stage(NamedTuple):
    """What the compiler has after a stage: a graph, the kernels, their code, or the program."""

    name: str
    object: Any

    @property
    def text(self) -> str:
        """The object as a listing."""
        return str(self.object)


def stages_of(program: Program) -> list[Stage]:
    """The stages of a program, from the traced graph to the program itself.

    >>> stages = stages_of(mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)).program(mg.ones(4)))
    >>> [stage.name for stage in stages]
    ['as traced', 'simplify', 'common', 'kernels', 'code', 'program']
    >>> print(stages[2].text)
    tensor_1: float32 (4,)
    tanh_1: float32 (4,) = tanh(tensor_1)
    add_1: float32 (4,) = add(tanh_1, tanh_1)
    return add_1
    """
    made = [Stage("kernels", program.partition), Stage("code", Code(program)), Stage("program", program)]
    return [*graph_stages(program.log), *made]


def graph_stages(log: Log) -> list[Stage]:
    """The graph as it was traced, and after each pass that changed it."""
    changed = [run for run in log.runs if run.changed]
    names = [run.name if run.round == 1 else f"{run.name}, again" for run in changed]
    return [Stage("as traced", log.first), *[Stage(name, run.after) for name, run in zip(names, changed)]]
