"""Unit 10: the second call, the baked-in branch, and a loop by script and by trace."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from minigrad.compile.jitted import Jitted
from minigrad.ops.creation import asarray
from minigrad.scripting.scripted import script
from minigrad.support.errors import MinigradError, ScriptError

from ...compare import difference, plain
from ...feedback import Wrong, written
from ...source_code import Program
from ...tasks import ROUNDS, FunctionTask, ValueTask
from .about import UNIT
from .guarding import Guard
from .one_run import by_example


class Call(NamedTuple):
    """A call of `f(x, n)`, and a global number that is set before it."""

    x: str
    size: int
    n: int
    offset: float = 1.0
    before: str = ""

    @property
    def kind(self) -> tuple[int, int, float]:
        """What the graph depends on."""
        return self.size, self.n, self.offset

    def __str__(self) -> str:
        return f"{self.before}f({self.x}, {self.n})"


@UNIT.task
class SecondCall(ValueTask):
    """Which calls of a jitted function run its Python code?"""

    name = "second_call"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        small, large = draw.sample([2, 3, 4, 5, 6], 2)
        n, other = draw.sample([2, 3, 4, 5], 2)
        offset = draw.choice([10, 20, 30])
        self.code = (
            "offset = 1.0\n\n@mg.jit\ndef f(x, n):\n    print(\"Python runs\")\n    return x * n + offset\n"
        )
        first, other_shape = Call(f"mg.ones({small})", small, n), Call(f"mg.ones({large})", large, n)
        middle = [
            other_shape, first._replace(n=other), first._replace(x=f"mg.zeros({small})"),
            first._replace(x=f"mg.ones({small}) * 7"),
            other_shape._replace(x=f"mg.asarray({[float(i) for i in range(large)]})"),
        ]
        draw.shuffle(middle)
        self.calls = [
            first, *middle, first._replace(offset=float(offset), before=f"offset = {offset:.1f}; "),
            other_shape._replace(before="offset = 1.0; "),
        ]

    def listed(self) -> str:
        """The list in the text."""
        return "\n".join(f"{i}. `{words}`" for i, words in enumerate(self.calls, 1))

    def read(self, answer: Any) -> Any:
        return sorted(answer) if isinstance(answer, list | tuple) else answer

    def right(self) -> list[int]:
        return self.new(lambda call: call.kind)

    def new(self, kind: Callable[[Call], Any]) -> list[int]:
        """The numbers of the calls with a `kind` that no call before has."""
        kinds = [kind(call) for call in self.calls]
        return [i + 1 for i, each in enumerate(kinds) if each not in kinds[:i]]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        given = answer if isinstance(answer, list | tuple) else self.right()
        wrong = [i for i in range(1, len(self.calls) + 1) if (i in given) != (i in self.right())]
        self.otherwise = self._about(wrong[0]) if wrong else type(self).otherwise
        return super().check(answer, rounds)

    def _about(self, number: int) -> str:
        """A hint for a call that an answer gets wrong."""
        kinds = [call.kind for call in self.calls]
        before = kinds.index(kinds[number - 1]) + 1
        return (
            f"look at calls {before} and {number}: the same shape, `n` and `offset`. The trace of call {before} is kept"
            if before < number else f"look at call {number}: has a call before it this shape, `n` and `offset`?"
        )


@UNIT.task
class BakedBranch(ValueTask):
    """A graph traced by an example: give an x for which it is wrong."""

    name = "baked_branch"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        self.limit, self.up = float(draw.choice([4, 6, 8, 10])), draw.choice([True, False])
        branches = [f"x * {draw.choice([2.0, 3.0])}", f"x + {draw.choice([1.0, 5.0])}"]
        draw.shuffle(branches)
        self.measure = draw.choice(["sum", "max"])
        self.program = Program(
            f"def f(x):\n    if x.{self.measure}() > {self.limit}:\n        return {branches[0]}\n"
            f"    return {branches[1]}\n")
        whole = self.limit / 3 if self.measure == "sum" else self.limit
        self.sample = [whole + (1.0 if self.up else -1.0)] * 3
        self.graph = by_example(self.program.function, asarray(self.sample)).graph

    def given(self) -> dict[str, Any]:
        return {"f": self.program.function, "graph": self.graph}

    def right(self) -> list[float]:
        others = [[each - step if self.up else each + step for each in self.sample] for step in (2.0, 3.0)]
        return next(x for x in others if len(set(map(str, self.both(x)))) > 1)

    def both(self, x: Any) -> list[Any]:
        """What the function computes, and what the graph computes."""
        function = self.program.function
        return [each(asarray(x)).tolist() for each in (function, by_example(function, asarray(self.sample)))]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        numbers = plain(answer)
        if np.shape(numbers) != (3,) or np.asarray(numbers).dtype.kind not in "if":
            raise self.misformed(answer, f"three numbers: {self.example}")
        x = np.asarray(numbers, np.float32)
        wanted, found = self.both(x)
        if str(wanted) != str(found):  # nan is not equal to itself, and is the same text
            return f"f computes {written(wanted)}, and the graph {written(found)}."
        size = float(getattr(x, self.measure)())
        order = "greater than" if size > self.limit else "not greater than"
        hint = f"the {self.measure} is {size:g}, {order} {self.limit:g}: that is the branch in the graph"
        if (size > self.limit) != self.up:
            hint = "it takes the other branch, but the two results are equal by chance: take other numbers"
        raise Wrong(self.name, f"for {written(x)} the function and the graph both compute {written(found)}", hint)


UNIT.task(Guard)


def grown(x: Any) -> Any:
    """The solution of `grow`."""
    while x < 10.0:
        x = x * 2
    return x


@UNIT.task
class Grow(FunctionTask):
    name = "grow"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield from [(asarray(value),) for value in (3.0, 12.0, 10.0, 5.0, 0.1)]

    def parameters(self) -> list[str]:
        return ["x"]

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        function = getattr(answer, "__wrapped__", answer)
        compiled = self._scripted(function)
        for (x,) in self._all_cases(rounds):
            try:
                found = compiled(x)
            except MinigradError as error:
                first = str(error).partition(", made at")[0].partition("\n")[0]
                hint = RECURSION if "grow" in function.__code__.co_names else TENSORS
                raise Wrong(self.name, f"right in eager mode, but as a graph it stops: {first}", hint) from None
            if differs := difference(found, self.right(x)):
                problem = f"right in eager mode, but not as a graph, for x={written(x)}: {differs}"
                raise Wrong(self.name, problem, TENSORS)
        if len(compiled.traces) > 1:
            problem = f"right, but it was traced {len(compiled.traces)} times for 5 numbers"
            raise Wrong(self.name, problem, "a loop over a tensor needs one trace only: where is a Python number?")
        if "while_loop" not in str(compiled.graph(x)):
            raise Wrong(
                self.name, "right for these numbers, but its graph has no loop",
                "write the doubling as a loop, `while x < 10.0:`. The next tasks look at this loop in the graph")
        return "one trace, for every x: the loop is a node of the graph."

    def _scripted(self, function: Callable[..., Any]) -> Jitted:
        try:
            return Jitted(script(function))
        except ScriptError as error:
            raise Wrong(
                self.name, str(error).partition("\n")[0],
                "write `def grow(x):` in a cell, without a decorator: the check makes a script of it") from None

    def solution(self) -> Any:
        return grown

    def right(self, x: Any) -> Any:
        return grown(x)


RECURSION = "a loop, not a function that calls itself: the inner call is not scripted, so its `if` cannot be recorded"
TENSORS = "the loop's condition and x must stay tensors: x < 10.0 and x * 2, without .item(), float() and int()"


@UNIT.task
class LoopDifference(ValueTask):
    """`grow` by script and by example: what do they compute for another x?"""

    name = "loop_difference"

    def vary(self, draw: random.Random) -> None:
        self.turns = draw.choice([2, 3])
        self.first, self.last = 16 / 2**self.turns, draw.choice([0.75, 0.625, 12.0, 15.0, 20.0])

    def right(self) -> list[float]:
        return [grown(self.last), self.last * 2**self.turns]
