"""Unit 11: kernels by hand within a budget of bytes, and why operations are not fused."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from ....compile.fusion.by_hand import Finish, Member, divided, members_of
from ....compile.fusion.group import Partition
from ....compile.jitted import trace
from ....compile.look.cost import Cost
from ....compile.running.program import Program
from ....ops.creation import ones
from ....ops.elementwise import cos, exp, sin, tanh
from ....ops.joining import concat
from ....support.errors import CompileError
from ....support.table import bytes_text
from ....viz.fused import Fusion
from ...feedback import Wrong, written
from ...tasks import ROUNDS, ValueTask
from .about import UNIT

SIDE = 256
COMBINED = ", combined"  # the second half of a reduction across rows


def compiled(function: Callable[..., Any], *args: Any) -> Program:
    """The program of a function, without machine code."""
    return Program(trace(function, *args), backend="numpy")


def names_of(partition: Partition) -> dict[str, Member]:
    """The computed operations by the names of the fusion view."""
    names = partition.graph.names()
    members = [member for kernel in members_of(partition) for member in kernel]
    return {names[m.node] + COMBINED if isinstance(m, Finish) else names[m]: m for m in members}


FUNCTIONS: dict[str, Callable[[Any], Any]] = {"exp": exp, "tanh": tanh, "sin": sin, "cos": cos}
COMBINE: dict[str, Callable[[Any, Any], Any]] = {"/": lambda a, s: a / s, "-": lambda a, s: a - s}


@UNIT.task
class MyKernels(ValueTask):
    """Divide a program among kernels, so that it moves fewer bytes than with the compiler's own kernels."""

    name = "my_kernels"
    points = 2
    minutes = 12
    outcome = "fuse"
    mistakes = ()
    example = '[["exp_1"], ["sum_1"], ["divide_1"]]'
    otherwise = f"a list of kernels, each a list of names in quotation marks: {example}"

    def vary(self, draw: random.Random) -> None:
        self.function, self.sign = draw.choice(list(FUNCTIONS)), draw.choice(list(COMBINE))

    @cached_property
    def program(self) -> Program:
        """As the compiler divides it."""
        function, combine = FUNCTIONS[self.function], COMBINE[self.sign]

        def program(x: Any) -> Any:
            a = function(x)
            return combine(a, a.sum())

        return compiled(program, ones((SIDE, SIDE)))

    @property
    def budget(self) -> int:
        """Three arrays: x is read twice, the result is written; and room for partial results."""
        return 3 * 4 * SIDE * SIDE + 1000

    def text(self) -> str:
        own = Cost(self.program).program
        return (
            f"The program is `a = {self.function}(x)`, `y = a {self.sign} a.sum()`, for x of {SIDE} × {SIDE} numbers "
            f"({bytes_text(4 * SIDE * SIDE)}). The compiler makes {own.launches} kernels, which move "
            f"{bytes_text(own.bytes)}. **Find kernels that move at most {bytes_text(self.budget)}.** In this picture each "
            "operation is a kernel of its own. Drag operations; with the Alt key (or c on the keyboard) an operation is "
            "copied, and both kernels compute it."
        )

    def given(self) -> dict[str, Any]:
        return {"view": Fusion(self._divided([[name] for name in names_of(self.program.partition)]), {})}

    def _divided(self, kernels: Sequence[Sequence[str]]) -> Program:
        known = names_of(self.program.partition)
        members = [[known[name] for name in kernel] for kernel in kernels]
        return self.program.divided(divided(self.program.partition, members))

    def right(self) -> list[list[str]]:
        first, total, last, *_ = names_of(self.program.partition)
        return [[first, total], [first, total + COMBINED, last]]

    def explained(self) -> str:
        return (
            f"{self.function} is computed twice, and its {bytes_text(4 * SIDE * SIDE)} are never written. The compiler "
            "refuses: it reckons that the arithmetic takes longer. Fewer bytes are not always less time."
        )

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if isinstance(answer, Fusion):
            answer = [list(_named(answer.partition, kernel)) for kernel in members_of(answer.partition)]
        program = self._legal(self._form(answer))
        count = Cost(program).program
        if count.bytes <= self.budget:
            return self.explained()
        first, total, *_ = names_of(self.program.partition)
        together = any(first in kernel and total in kernel for kernel in answer)
        hint = (
            f"one kernel writes {first}, another reads it. What if both compute it, from x? Write it into both lists"
            if together else f"put {total} into the kernel of {first}: then it need not read {first} from memory"
        )
        what = f"legal, but it moves {bytes_text(count.bytes)}, and the budget is {bytes_text(self.budget)}"
        raise Wrong(self.name, what, hint)

    def _form(self, answer: Any) -> list[list[str]]:
        kernels = answer if isinstance(answer, list | tuple) else [answer]
        listed = [[kernel] if isinstance(kernel, str) else kernel for kernel in kernels]
        known = names_of(self.program.partition)
        if not all(isinstance(kernel, list | tuple) for kernel in listed):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", self.otherwise)
        named = [name for kernel in listed for name in kernel]
        unknown = [name for name in named if name not in known]
        if unknown:
            what = f"{written(unknown[0])} is not an operation of this program"
            raise Wrong(self.name, what, "the names are " + ", ".join(known))
        missing = [name for name in known if name not in named and not name.endswith(COMBINED)]
        if missing:
            raise Wrong(self.name, f"no kernel computes {', '.join(missing)}", "each operation is in at least one kernel")
        return [list(kernel) for kernel in listed]

    def _legal(self, kernels: list[list[str]]) -> Program:
        try:
            return self._divided(kernels)
        except CompileError as error:
            hint = (
                "the sum is known only after all of a. So what reads the sum needs a kernel of its own, which runs later"
            )
            raise Wrong(self.name, str(error).partition("\n")[0], hint) from None


def _named(partition: Partition, kernel: Sequence[Member]) -> list[str]:
    known = {member: name for name, member in names_of(partition).items()}
    return [known[member] for member in kernel]


# ---- why not? --------------------------------------------------------------------------------------------------------

REASONS = {
    "library": "one of the two is a library call, which reads and writes memory",
    "elsewhere": "the second reads other positions than the first one has just computed",
    "complete": "the second also needs a sum, which is known only after everything has been read",
    "rows": "the two go through rows of different length",
}
PLACES = {
    "library": {
        "tanh(x) @ w": "tanh and the matrix product", "concat([x, x]) * 2": "the join and the product",
        "exp(x @ w)": "the matrix product and exp",
    },
    "elsewhere": {
        "exp(x) + exp(x).T": "exp and the sum", "tanh(x)[::-1] * x": "tanh and the product",
        "sin(x)[1:] - sin(x)[:-1]": "sin and the difference",
    },
    "complete": {
        "exp(x) / exp(x).sum()": "exp and the quotient", "tanh(x) - tanh(x).sum()": "tanh and the difference",
    },
    "rows": {
        "sum(exp(x), -1), sum(exp(x.reshape(512, 128)), -1)": "the two sums",
        "max(sin(x), -1), max(sin(x.reshape(512, 128)), -1)": "the two largest values",
    },
}
SIGNS = {
    "library": "is there a matrix product, or a join? Which of the two is not a loop of the compiler?",
    "elsewhere": "when the first has computed place (0, 1), which place does the second need?",
    "complete": "is there a reduction over everything, whose result goes into the second operation?",
    "rows": "how many numbers does each reduction add up? Are these counts different?",
}


@UNIT.task
class WhyNot(ValueTask):
    """Three pairs of operations that are not fused: why not?"""

    name = "why_not"
    points = 2
    minutes = 6
    outcome = "why"
    mistakes = ()
    example = '{"A": "library", "B": "rows", "C": "complete"}'
    otherwise = "for each of A, B and C one of " + ", ".join(f'"{reason}"' for reason in REASONS)
    ORDER: ClassVar[tuple[str, ...]] = ("A", "B", "C")

    def vary(self, draw: random.Random) -> None:
        reasons = draw.sample(list(REASONS), 3)
        self.reasons = dict(zip(self.ORDER, reasons))
        self.places = {letter: draw.choice(list(PLACES[reason].items())) for letter, reason in self.reasons.items()}

    def text(self) -> str:
        pairs = "; ".join(f"**{letter}**: {what} in `{code}`" for letter, (code, what) in self.places.items())
        listed = "; ".join(f'`"{key}"`: {words}' for key, words in REASONS.items())
        return (
            f"x is a table of {SIDE} × {SIDE} numbers. Each pair ends up in two kernels. {pairs}. **Why?** {listed}."
        )

    def right(self) -> dict[str, str]:
        return self.reasons

    def explained(self) -> str:
        return "in the fusion view, a click on an arrow between two kernels gives the reason."

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if isinstance(answer, dict):
            answer = {key: each.strip().lower() if isinstance(each, str) else each for key, each in answer.items()}
        form = isinstance(answer, dict) and set(answer) == set(self.reasons)
        if not form or not all(isinstance(each, str) and each in REASONS for each in answer.values()):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", self.otherwise)
        wrong = [letter for letter in self.reasons if answer[letter] != self.reasons[letter]]
        if not wrong:
            return self.explained()
        said = answer[wrong[0]]
        problem = f"{len(wrong)} of 3 are not right, {wrong[0]} is one of them"
        raise Wrong(self.name, problem, f'you say "{said}" for {wrong[0]}: {SIGNS[said]}')


def program_of(code: str) -> Program:
    """The program of an expression of x and w."""
    names = {"exp": exp, "tanh": tanh, "sin": sin, "concat": concat, "sum": lambda x, axis: x.sum(axis),
             "max": lambda x, axis: x.max(axis)}
    given = ones((SIDE, SIDE)), ones((SIDE, SIDE))
    return compiled(lambda x, w: eval(code, {"__builtins__": {}, **names, "x": x, "w": w}), *given)
