"""Unit 11: programs that the compiler does not fuse, to be written in another way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....compile.jitted import trace
from ....compile.look.cost import Cost
from ....compile.running.program import Program
from ....core.tensor import Tensor
from ....ops.creation import asarray
from ....support.errors import MinigradError
from ....support.table import bytes_text, counted
from ...feedback import Wrong
from ...tasks import ROUNDS, FunctionTask, mistake
from .about import UNIT
from .kernels import FUNCTIONS

ROWS = 64


class FusedTask(FunctionTask):
    """A function to write in another way, so that one kernel computes it."""

    points = 2
    refused: str  # the function as it is written now, in which f is the student's function
    f: Callable[[Any], Any]

    def vary(self, draw: random.Random) -> None:
        self.function = draw.choice(["exp", "tanh", "sin"])
        self.f = FUNCTIONS[self.function]

    @property
    def code(self) -> str:
        """The refused program, with the name of the function."""
        return self.refused.replace("f(", f"mg.{self.function}(")

    def arguments(self, draw: random.Random) -> tuple[Tensor, ...]:
        """The tensors that it is called with."""
        values = np.random.default_rng(draw.randrange(1 << 30))
        return tuple([asarray(values.uniform(-1, 1, shape).astype("f")) for shape in self.shapes])

    shapes: tuple[tuple[int, ...], ...] = ((ROWS, ROWS),)

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield self.arguments(draw)

    def right(self, *args: Any) -> Any:
        raise NotImplementedError

    def _call(self, args: tuple[Any, ...]) -> str:
        shapes = ", ".join(f"{name} of {' × '.join(map(str, x.shape))}" for name, x in zip(self.parameters(), args))
        return f"{self.name}: {shapes}"

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        args = self.arguments(random.Random(0))
        try:
            program = Program(trace(answer, *args), backend="numpy")
        except MinigradError as error:
            what = f"it cannot be recorded as a graph: {str(error).partition(chr(10))[0]}"
            raise Wrong(self.name, what, "use operations of minigrad only, without .numpy(), .item() and float()") from None
        before = Cost(Program(trace(self.original, *args), backend="numpy")).program
        count = Cost(program).program
        kernels = len(program.partition.groups)
        if count.launches > 1 or kernels != len(program.partition.kernels):
            names = program.partition.graph.names()
            why = [f"{names[a]} and {names[b]}: {reason}" for (a, b), reason in program.partition.reasons.items()]
            said = f". Not fused: {why[0]}" if why else ""
            what = f"the numbers are right, but it takes {counted(count.launches, 'launch', 'launches')}{said}"
            raise Wrong(self.name, what, self.words_for(program))
        return (
            f"1 launch instead of {before.launches}, {bytes_text(count.bytes)} instead of {bytes_text(before.bytes)}; "
            f"{count.flops:,} operations instead of {before.flops:,}."
        )

    def original(self, *args: Any) -> Any:
        """The program as it is refused."""
        raise NotImplementedError

    def words_for(self, program: Program) -> str | None:
        """The hint for a program that is still not fused."""
        return self.otherwise


VIEWS = {
    "f(x)[1:] - f(x)[:-1]": (lambda f, x: f(x)[1:] - f(x)[:-1], lambda f, x: f(x[1:]) - f(x[:-1]),
                             lambda f, x: f(x[1:] - x[:-1])),
    "f(x) + f(x).T": (lambda f, x: f(x) + f(x).T, lambda f, x: f(x) + f(x.T), lambda f, x: f(x + x.T)),
    "f(x)[::-1] * x": (lambda f, x: f(x)[::-1] * x, lambda f, x: f(x[::-1]) * x, lambda f, x: f(x[::-1] * x)),
}


@UNIT.task
class OneKernel(FusedTask):
    """`one_kernel(x)` computes the same numbers as a program that takes two kernels, in one."""

    name = "one_kernel"
    minutes = 8
    outcome = "change"
    otherwise = (
        "a view of x is free: the kernel reads x at other places. A view of a computed value has to wait until the value "
        "is in memory. So take the view first, and compute afterwards"
    )

    def vary(self, draw: random.Random) -> None:
        super().vary(draw)
        self.refused = draw.choice(list(VIEWS))

    def text(self) -> str:
        return (
            f"The compiler makes two kernels of `{self.code}`: in between, `mg.{self.function}(x)` is written to memory, and "
            f"read at other places. **Write `one_kernel(x)`, which returns the same numbers and takes one kernel.**"
        )

    def original(self, x: Any) -> Any:
        return VIEWS[self.refused][0](self.f, x)

    def right(self, x: Any) -> Any:
        return VIEWS[self.refused][1](self.f, x)

    @mistake("the function of a difference or a sum is not the difference of the functions. Take each view of x alone, and "
             "compute the function of each")
    def inside(self, x: Any) -> Any:
        return VIEWS[self.refused][2](self.f, x)

    @mistake("the function itself is missing: these are only the views")
    def without_function(self, x: Any) -> Any:
        return VIEWS[self.refused][0](lambda value: value, x)

    @mistake("the views are missing: which places of x belong together?")
    def without_views(self, x: Any) -> Any:
        return self.f(x)

    @mistake("a function gives back only the value after `return`")
    def nothing_returned(self, x: Any) -> Any:
        return None


@UNIT.task
class RowLoops(FusedTask):
    """`row_loops(x, v)` computes the product of a table and a vector without the library."""

    name = "row_loops"
    minutes = 6
    outcome = "change"
    refused = "f(x) @ v"
    shapes = ((ROWS, ROWS), (ROWS,))
    otherwise = "number i of x @ v is the sum of x[i, j] * v[j] over j. A product and a sum along the rows are loops"

    def text(self) -> str:
        return (
            f"`{self.code}`, for a vector v, takes two launches: `@` is a library call, which reads its inputs from memory. "
            "**Write `row_loops(x, v)`, which computes the same in one kernel, from operations that are loops.**"
        )

    def original(self, x: Any, v: Any) -> Any:
        return self.f(x) @ v

    def right(self, x: Any, v: Any) -> Any:
        return (self.f(x) * v).sum(-1)

    def words_for(self, program: Program) -> str | None:
        return "the matrix product is still there. Multiply place by place, `*`, and add along the rows, .sum(-1)"

    @mistake("that adds along the columns, .sum(0). Number i is a sum over row i: .sum(-1)")
    def columns(self, x: Any, v: Any) -> Any:
        return (self.f(x) * v).sum(0)

    @mistake("that adds everything to one number: .sum(-1) adds each row")
    def everything(self, x: Any, v: Any) -> Any:
        return (self.f(x) * v).sum()

    @mistake("the products are right. Now add each row: .sum(-1)")
    def without_sum(self, x: Any, v: Any) -> Any:
        return self.f(x) * v

    @mistake("the function is missing: it is applied to x first")
    def without_function(self, x: Any, v: Any) -> Any:
        return (x * v).sum(-1)

    @mistake("the function is applied to x alone, before v comes in")
    def outside(self, x: Any, v: Any) -> Any:
        return self.f((x * v).sum(-1))

    @mistake("v is multiplied to each row: v[j] belongs to column j. v[:, None] multiplies the rows")
    def by_rows(self, x: Any, v: Any) -> Any:
        return (self.f(x) * v[:, None]).sum(-1)

    @mistake("the result has one number for each row: without keepdims")
    def keeps(self, x: Any, v: Any) -> Any:
        return (self.f(x) * v).sum(-1, keepdims=True)
