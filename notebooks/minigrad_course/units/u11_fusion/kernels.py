"""Unit 11: kernels by hand within a budget of bytes, why operations are not fused, and how to change the program."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from minigrad.compile.fusion.by_hand import Finish, divided, members_of
from minigrad.compile.jitted import trace
from minigrad.compile.look.cost import Cost
from minigrad.compile.running.program import Program
from minigrad.ops.creation import asarray, ones
from minigrad.support.errors import CompileError, MinigradError
from minigrad.support.table import bytes_text, counted
from minigrad.viz.compiled import Shown
from minigrad.viz.fused import Fusion

from ...feedback import Wrong, written
from ...predicting import Matches
from ...tasks import ROUNDS, FunctionTask, ValueTask
from .about import UNIT
from .graphs import NAMES, evaluated

SIDE = 256
WHOLE = 4 * SIDE * SIDE  # bytes of a table
BUDGET = 3 * WHOLE + 1000  # x is read twice, the result is written; and room for partial results
COMBINED = ", combined"  # the second half of a reduction across rows


@UNIT.task
class MyKernels(ValueTask):
    """Divide a program among kernels, so that it moves fewer bytes than with the compiler's own kernels."""

    name, mistakes = "my_kernels", ()

    def vary(self, draw: random.Random) -> None:
        self.function, self.sign = draw.choice(["exp", "tanh", "sin", "cos"]), draw.choice("/-")
        given = ones((SIDE, SIDE))
        graph = trace(lambda x: evaluated(f"a {self.sign} a.sum()", a=NAMES[self.function](x)), given)
        self.program = Program(graph, backend="numpy")
        names = self.program.partition.graph.names()
        members = [member for kernel in members_of(self.program.partition) for member in kernel]
        self.members = {names[m.node] + COMBINED if isinstance(m, Finish) else names[m]: m for m in members}
        self.names = [name for name in self.members if not name.endswith(COMBINED)]
        self.first, self.total, *_ = self.names

    def own(self) -> Any:
        """The cost of the compiler's own kernels."""
        return Cost(self.program).program

    def given(self) -> dict[str, Any]:
        return {"view": Fusion(Shown("", self._divided([[name] for name in self.members])))}

    def _divided(self, kernels: Sequence[Sequence[str]]) -> Program:
        members = [[self.members[name] for name in kernel] for kernel in kernels]
        return self.program.divided(divided(self.program.partition, members))

    def right(self) -> list[list[str]]:
        first, total, last, *_ = self.members
        return [[first, total], [first, last]]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        self._check_form(answer)
        try:
            moved = Cost(self._divided(answer)).program.bytes
        except CompileError as error:
            raise Wrong(
                self.name, str(error).partition("\n")[0],
                "the sum is known only after all of a. So what reads the sum needs another kernel, which runs later"
            ) from None
        if moved <= BUDGET:
            return (
                f"{self.function} is computed twice, and its {bytes_text(WHOLE)} are never written. The compiler does "
                "not do this: by its prices the arithmetic takes longer. Fewer bytes are not always less time."
            )
        hint = f"put {self.total} into the kernel of {self.first}: then it need not read {self.first} from memory"
        if any(self.first in kernel and self.total in kernel for kernel in answer):
            hint = f"one kernel writes {self.first}, another reads it. What if both compute it? Put it into both lists"
        what = f"legal, but it moves {bytes_text(moved)}, and the budget is {bytes_text(BUDGET)}"
        raise Wrong(self.name, what, hint)

    def _check_form(self, answer: Any) -> None:
        if not isinstance(answer, list | tuple) or not all(isinstance(kernel, list | tuple) for kernel in answer):
            raise self.misformed(answer)
        named = [name for kernel in answer for name in kernel]
        unknown = [name for name in named if name not in self.members]
        if unknown:
            what = f"{written(unknown[0])} is not an operation of this program"
            raise Wrong(self.name, what, "the names are " + ", ".join(self.names))
        missing = [name for name in self.names if name not in named]
        if missing:
            raise Wrong(self.name, f"no kernel computes {', '.join(missing)}", "each operation is in a kernel")


# ---- why not? --------------------------------------------------------------------------------------------------------

REASONS = {
    "library": "one of the two is a library call, which reads and writes memory",
    "elsewhere": "the second reads other positions than the first one has just computed",
    "complete": "the second also needs a sum, which is known only after everything has been read",
    "rows": "the two go through rows of different length",
}
PLACES = {  # programs, and the two operations that are not fused
    "library": [
        ("tanh(x) @ w", "tanh and the matrix product"), ("sort(x) * 2", "the sort and the product"),
        ("exp(x @ w)", "the matrix product and exp"),
    ],
    "elsewhere": [
        ("exp(x) + exp(x).T", "exp and the sum"), ("tanh(x)[::-1] * x", "tanh and the product"),
        ("sin(x)[1:] - sin(x)[:-1]", "sin and the difference"),
    ],
    "complete": [
        ("exp(x) / exp(x).sum()", "exp and the quotient"), ("tanh(x) - tanh(x).sum()", "tanh and the difference"),
    ],
    "rows": [
        ("exp(x).sum(-1), exp(x).reshape((512, 128)).sum(-1)", "the two sums"),
        ("sin(x).max(-1), sin(x).reshape((512, 128)).max(-1)", "the two largest values"),
    ],
}


@UNIT.task
class WhyNot(Matches):
    """Three pairs of operations that are not fused: why not?"""

    name = "why_not_fused"
    otherwise = "for each of A, B and C one of " + ", ".join(f'"{reason}"' for reason in REASONS)

    def vary(self, draw: random.Random) -> None:
        self.reasons = dict(zip("ABC", draw.sample(list(REASONS), 3)))
        self.places = {letter: draw.choice(PLACES[reason]) for letter, reason in self.reasons.items()}

    def pairs(self) -> str:
        """A part of the text."""
        return "".join(f"\n- **{letter}**: {what} in `{code}`" for letter, (code, what) in self.places.items())

    def listed(self) -> str:
        """The list in the text."""
        return "".join(f'\n- `"{key}"`: {words}' for key, words in REASONS.items())

    def right(self) -> dict[str, str]:
        return self.reasons


# ---- the program, in another way -------------------------------------------------------------------------------------

ROWS = 64


class FusedTask(FunctionTask):
    """A function to write in another way, so that one kernel computes it.  Programs are texts; f is drawn."""

    points, outcome = 2, "change"
    refused: str  # the program as it is written now
    better: str  # a program of one kernel
    shapes: ClassVar[dict[str, tuple[int, ...]]] = {"x": (ROWS, ROWS)}
    still: str | None = None  # the hint where the numbers are right, and it is not fused: else `otherwise`

    def vary(self, draw: random.Random) -> None:
        self.function = draw.choice(["exp", "tanh", "sin"])

    def computed(self, text: str, *args: Any) -> Any:
        """The value of a program."""
        return evaluated(text, f=self.f, **dict(zip(self.shapes, args)))

    def parameters(self) -> list[str]:
        return list(self.shapes)

    @property
    def f(self) -> Callable[..., Any]:
        """The function."""
        return NAMES[self.function]

    @property
    def code(self) -> str:
        """The refused program, with the name of the function."""
        return self.refused.replace("f(", f"mg.{self.function}(")

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        values = np.random.default_rng(draw.randrange(1 << 30))
        yield tuple([asarray(values.uniform(-1, 1, shape).astype("f")) for shape in self.shapes.values()])

    def right(self, *args: Any) -> Any:
        return self.computed(self.better, *args)

    def _call(self, args: tuple[Any, ...]) -> str:
        shapes = [f"{name} of {' × '.join(map(str, shape))}" for name, shape in self.shapes.items()]
        return f"{self.name}, for {' and '.join(shapes)}"

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        (args,) = self.cases(random.Random(0))
        try:
            program = Program(trace(answer, *args), backend="numpy")
        except MinigradError as error:
            what = f"it cannot be recorded as a graph: {str(error).partition(chr(10))[0]}"
            raise Wrong(
                self.name, what, "use operations of minigrad only, without .numpy(), .item() and float()"
            ) from None
        before = Cost(Program(trace(lambda *args: self.computed(self.refused, *args), *args), backend="numpy")).program
        count, names = Cost(program).program, program.partition.graph.names()
        if count.launches != 1 or len(program.partition.kernels) != 1:
            reasons = program.partition.reasons.items()
            why = "".join([f". Not fused: {names[a]} and {names[b]}: {why}" for (a, b), why in reasons][:1])
            what = f"the numbers are right, but it takes {counted(count.launches, 'launch', 'launches')}{why}"
            raise Wrong(self.name, what, self.still or self.otherwise)
        return (
            f"1 launch instead of {before.launches}, {bytes_text(count.bytes)} instead of {bytes_text(before.bytes)}; "
            f"operations: {count.flops:,}, before: {before.flops:,}."
        )


VIEWS = {  # a program -> one kernel for it, and what a wrong idea would compute
    "f(x)[1:] - f(x)[:-1]": (
        "f(x[1:]) - f(x[:-1])", "f(x[1:] - x[:-1])", "x[1:] - x[:-1]", "f(x[:-1]) - f(x[1:])", "f(x[1:]) - f(x[1:])",
        "f(x[:, 1:]) - f(x[:, :-1])"),
    "f(x) + f(x).T": (
        "f(x) + f(x.T)", "f(x + x.T)", "x + x.T", "x + f(x.T)", "f(x.T) + f(x.T)", "f(x) + f(x[::-1])"),
    "f(x)[::-1] * x": (
        "f(x[::-1]) * x", "f(x[::-1] * x)", "x[::-1] * x", "f(x) * x[::-1]", "f(x[::-1]) * x[::-1]",
        "f(x[::-1, ::-1]) * x"),
}


@UNIT.task
class OneKernel(FusedTask):
    """`one_kernel(x)` computes the same numbers as a program that takes two kernels, in one."""

    name = "one_kernel"

    def vary(self, draw: random.Random) -> None:
        super().vary(draw)
        self.refused = draw.choice(list(VIEWS))
        self.better, self.mixed, self.bare, self.elsewhere, self.equal, self.axis = VIEWS[self.refused]


@UNIT.task
class RowLoops(FusedTask):
    """`row_loops(x, v)` computes the product of a table and a vector without the library."""

    name = "row_loops"
    shapes: ClassVar = {"x": (ROWS, ROWS), "v": (ROWS,)}
