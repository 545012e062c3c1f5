"""Tasks on kernels: a function of one place to write, and its gradient."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...compare import numerical
from ...feedback import Misused, Wrong, place
from ...tasks import ROUNDS, FunctionTask, Mistake, common
from .kernels import Place, Program

FIRST = {"g": [2.0, -1.0, 3.0, 0.5, 1.5], "x": [0.0, 1.0, -1.0, 2.0, -3.0]}


class KernelTask(FunctionTask):
    """A kernel to write, `f(i, x, out)`: it is recorded, its bytes are counted, and it runs on arrays.

    The task has a formula of one value, and the known mistakes are formulas too.
    """

    names: tuple[str, ...] = ("x", "out")  # of its arrays
    slips_of = "formula"
    moves = 8  # bytes for each place, at best
    minutes = 8

    def formula(self, *values: Any) -> Any:
        """What the kernel writes, for the numbers that it reads at one place."""
        raise NotImplementedError

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield tuple([np.array(FIRST[name]) for name in self.parameters()])
        yield tuple([np.round([draw.uniform(-3, 3) for _ in range(12)], 2) for _ in self.parameters()])

    def right(self, *arrays: Any) -> Any:
        return self._as_kernel(self.formula)(*arrays)

    def parameters(self) -> list[str]:
        return list(self.names[:-1])

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        program = self._recorded(answer)
        super().check(program, rounds)
        if program.bytes > self.moves:
            problem = f"right, but it moves {program.bytes} bytes for each number, and {self.moves} are enough"
            raise Wrong(self.name, problem, f"write {self.names[-1]}[i] once, at the end")
        return f"it moves {self.moves} bytes for each number, as one kernel."

    def _recorded(self, answer: Callable[..., Any]) -> Program:
        program = Program(answer, self.names)
        try:
            program.recorded()
        except Misused as error:
            raise Wrong(self.name, "\n".join([error.message, *place(error)]), error.hint) from None
        return program

    def solution(self) -> Any:
        return self._as_kernel(self.formula)

    def wrong(self, known: Mistake) -> Any:
        return self._as_kernel(known.program.__get__(self))

    def _as_kernel(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """A kernel that writes what a formula gives; called with arrays, it runs."""

        def kernel(i: Any, *memory: Any) -> Any:
            if not isinstance(i, Place):
                return Program(kernel, self.names)(i, *memory)
            *inputs, output = memory
            output[i] = formula(*[each[i] for each in inputs])

        return kernel


class BackwardTask(KernelTask):
    """The kernel of a gradient, `f(i, g, x, dx)`: its results are compared with finite differences of `value`."""

    names, moves = ("g", "x", "dx"), 12
    minutes = 12
    mistakes = common(
        without_g=lambda self, g, a: self.slope(a),
        times_value=lambda self, g, a: g * self.value(a),
        only_value=lambda self, g, a: self.value(a),
        exchanged=lambda self, g, a: a * self.slope(g),
        g_unchanged=lambda self, g, a: g,
        g_added=lambda self, g, a: g + self.slope(a),
        other_sign=lambda self, g, a: -g * self.slope(a),
    )

    def value(self, a: Any) -> Any:
        """The output, for an input."""
        raise NotImplementedError

    def slope(self, a: Any) -> Any:
        """How fast the output changes with the input."""
        raise NotImplementedError

    def formula(self, g: Any, a: Any) -> Any:  # type: ignore[override]
        return g * self.slope(a)

    def right(self, g: Any, x: Any) -> Any:  # type: ignore[override]
        def forward(i: Any, x: Any, out: Any) -> None:
            out[i] = self.value(x[i])

        return numerical(Program(forward), (x,), g)[0]
