"""The stages of the compiler as one list: each has a name, an object, and the object's text."""

from __future__ import annotations

from itertools import groupby
from typing import Any, NamedTuple

from ..loops.widen import Machine
from ..rewriting.passes import Log
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
    ['as traced', 'simplify', 'common', 'kernels', 'loops', 'widened', 'code', 'program']
    >>> print(stages[2].text)
    tensor_1: float32 (4,)
    tanh_1: float32 (4,) = tanh(tensor_1)
    add_1: float32 (4,) = add(tanh_1, tanh_1)
    return add_1
    """
    made = [Stage("code", Code(program)), Stage("program", program)]
    return [*graph_stages(program.log), Stage("kernels", program.partition), *loop_stages(program), *made]


def loop_stages(program: Program) -> list[Stage]:
    """The loops of the kernels as C, and after each group of transforms that changes them, for vectors of 256 bits.

    >>> program = mg.jit(lambda x: mg.sqrt(x)).program(mg.ones(64))
    >>> print(loop_stages(program)[1].text)
    kernel_0:
    void kernel(const float *restrict b0, float *restrict b1, int64_t lo, int64_t hi) {
        for (int64_t i = lo; i + 31 < hi; i += 32) {
            const floatx32 v1 = b0[i];
            const floatx32 v2 = sqrtf(v1);
            b1[i] = v2;
        }
        for (int64_t i.1 = i.end; i.1 < hi; i.1++) {
            const float v1.1 = b0[i.1];
            const float v2.1 = sqrtf(v1.1);
            b1[i.1] = v2.1;
        }
    }
    """
    from ..codegen.c import CPrinter  # these bring what machine code needs
    from ..codegen.printing import STAGES, stages

    def code(name: str) -> Code:
        return Code(program, lambda kernel: CPrinter(stages(kernel, Machine())[name], "kernel").function())

    found = [Stage(name, code(name)) for name in ("loops", *STAGES)[:-1]]
    return [next(same) for _, same in groupby(found, lambda stage: stage.text)]


def graph_stages(log: Log) -> list[Stage]:
    """The graph as it was traced, and after each pass that changed it."""
    changed = [run for run in log.runs if run.changed]
    names = [run.name if run.round == 1 else f"{run.name}, again" for run in changed]
    return [Stage("as traced", log.first), *[Stage(name, run.after) for name, run in zip(names, changed)]]
