"""Unit 10: the second call, the baked-in branch, a loop by script and by trace, and a bug that only graph mode has."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from ....compile.jitted import Jitted
from ....core.tensor import Tensor
from ....ops.creation import asarray
from ....scripting.scripted import script
from ....support.errors import MinigradError, ScriptError
from ...compare import difference
from ...feedback import Wrong, written
from ...predicting import Choice
from ...tasks import ROUNDS, FunctionTask, ValueTask, mistake
from .about import UNIT
from .by_example import by_example
from .programs import Program

Call = tuple[str, tuple[int, ...], str, float]  # the words, and what the program depends on: shape, n, offset


@UNIT.task
class SecondCall(ValueTask):
    """Which calls of a jitted function run its Python code?"""

    name = "second_call"
    points = 2
    minutes = 6
    outcome = "calls"
    mistakes = ()
    example = "[1, 2, 5]"
    otherwise = "go call by call: is there a trace already for this shape, this `n` and this `offset`?"

    def vary(self, draw: random.Random) -> None:
        small, large = draw.sample([2, 3, 4, 5, 6], 2)
        n, other = draw.sample([2, 3, 4, 5], 2)
        offset = draw.choice([10, 20, 30])
        self.code = (
            "offset = 1.0\n\n@mg.jit\ndef f(x, n):\n    print(\"Python runs\")\n    return x * n + offset\n"
        )
        middle: list[Call] = [
            (f"f(mg.ones({large}), {n})", (large,), str(n), 1.0),
            (f"f(mg.ones({small}), {other})", (small,), str(other), 1.0),
            (f"f(mg.zeros({small}), {n})", (small,), str(n), 1.0),
            (f"f(mg.ones({small}) * 7, {n})", (small,), str(n), 1.0),
            (f"f(mg.asarray({[float(i) for i in range(large)]}), {n})", (large,), str(n), 1.0),
        ]
        draw.shuffle(middle)
        self.calls: list[Call] = [
            (f"f(mg.ones({small}), {n})", (small,), str(n), 1.0), *middle,
            (f"offset = {offset:.1f}; f(mg.ones({small}), {n})", (small,), str(n), float(offset)),
            (f"offset = 1.0; f(mg.ones({large}), {n})", (large,), str(n), 1.0),
        ]

    def text(self) -> str:
        listed = "\n".join(f"{i}. `{words}`" for i, (words, *_) in enumerate(self.calls, 1))
        return (
            f"```python\n{self.code}```\n\nThese calls run one after the other:\n\n{listed}\n\n"
            "**In which calls does Python run the body of `f`?** A list of their numbers, in order."
        )

    def read(self, answer: Any) -> Any:
        return sorted(answer) if isinstance(answer, list | tuple) else answer

    def right(self) -> list[int]:
        return self.new(lambda call: call[1:])

    def new(self, kind: Callable[[Call], Any]) -> list[int]:
        """The numbers of the calls with a `kind` that no call before has."""
        kinds = [kind(call) for call in self.calls]
        return [i + 1 for i, each in enumerate(kinds) if each not in kinds[:i]]

    def explained(self) -> str:
        return "a new shape, a new Python number or a new global makes a new trace. Old traces are kept."

    @mistake("that is eager mode: a call that finds a fitting trace runs the program, without Python")
    def all_of_them(self) -> list[int]:
        return [i + 1 for i in range(len(self.calls))]

    @mistake("only the first? The loops of a program are made for one shape, and a Python number is in the graph")
    def first_only(self) -> list[int]:
        return [1]

    @mistake("new shapes are right. But `n` is a Python number: it is written into the graph, and so is `offset`")
    def shapes_only(self) -> list[int]:
        return self.new(lambda call: call[1])

    @mistake("`n` is right. The function also reads `offset` by name, and a guard compares it")
    def no_globals(self) -> list[int]:
        return self.new(lambda call: call[1:3])

    @mistake("shapes and `offset` are right. `n` is a Python number, not a tensor: it is written into the graph")
    def no_numbers(self) -> list[int]:
        return self.new(lambda call: (call[1], call[3]))

    @mistake("the numbers *in* a tensor are inputs of the program: other numbers need no new trace")
    def values_too(self) -> list[int]:
        return self.new(lambda call: call)

    @mistake("a trace is kept: a later call of the same kind uses it, also when other calls came between")
    def last_only_kept(self) -> list[int]:
        kinds = [None, *[call[1:] for call in self.calls]]
        return [i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]]


@UNIT.task
class BakedBranch(ValueTask):
    """A graph traced by an example: give an x for which it is wrong."""

    name = "baked_branch"
    points = 2
    minutes = 7
    outcome = "baked"
    mistakes = ()
    example = "[1.0, 2.0, 3.0]"
    otherwise = "read the graph: which branch is in it? Then find an x for which the function takes the other one"

    def vary(self, draw: random.Random) -> None:
        self.limit = float(draw.choice([4, 6, 8, 10]))
        self.up = draw.choice([True, False])
        times, plus = draw.choice([2.0, 3.0]), draw.choice([1.0, 5.0])
        branches = [f"x * {times}", f"x + {plus}"]
        draw.shuffle(branches)
        measure, words = draw.choice([("x.sum()", "sum"), ("x.max()", "max")])
        self.measure = words
        self.code = (
            f"def f(x):\n    if {measure} > {self.limit}:\n        return {branches[0]}\n    return {branches[1]}\n"
        )
        whole = self.limit / 3 if words == "sum" else self.limit
        self.sample = [whole + (1.0 if self.up else -1.0)] * 3
        self.program = Program(self.code)

    def text(self) -> str:
        return (
            f"```python\n{self.code}```\n\nSomebody traced `f` by an example, and did not write down which. This is the "
            f"graph:\n\n```\n{self.graph}\n```\n\n**Give an x of three numbers for which the graph is wrong.**"
        ).replace("Somebody traced `f` by an example, and did not write down which.",
                  "`f` was traced by an example. The example is lost.")

    @property
    def graph(self) -> Any:
        """The graph of the example."""
        return by_example(self.program.function, asarray(self.sample)).graph

    def given(self) -> dict[str, Any]:
        return {"f": self.program.function, "graph": self.graph}

    def right(self) -> list[float]:
        return [each - 2.0 if self.up else each + 2.0 for each in self.sample]

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        try:
            x = np.asarray(answer.numpy() if isinstance(answer, Tensor) else answer, np.float32)
        except (TypeError, ValueError):
            x = np.zeros(0, np.float32)
        if x.shape != (3,):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", f"three numbers: {self.example}")
        wanted = self.program.function(asarray(x))
        found = by_example(self.program.function, asarray(self.sample))(asarray(x))
        if wanted.tolist() != found.tolist():
            return f"f computes {written(wanted)}, and the graph {written(found)}."
        size = float(getattr(x, self.measure)())
        problem = f"for {written(x)} the function and the graph both compute {written(found)}"
        other = (size > self.limit) != self.up
        hint = "it takes the other branch, but the two results are equal by chance: take other numbers" if other else (
            f"the {self.measure} is {size:g}: that is the branch in the graph. The limit is {self.limit:g}"
        )
        raise Wrong(self.name, problem, hint)


def halved(x: Any) -> Any:
    """The solution of `halve`."""
    while x > 1.0:
        x = x / 2
    return x


@UNIT.task
class Halve(FunctionTask):
    """`halve(x)` halves a number until it is at most 1.  It becomes a graph with a loop by `mg.script`."""

    name = "halve"
    points = 0
    minutes = 8
    outcome = "ways"
    otherwise = "while x > 1.0: x = x / 2. The last line returns x"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield from [(asarray(value),) for value in (12.0, 0.75, 1.0, 2.0, 100.0)]

    def parameters(self) -> list[str]:
        return ["x"]

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        super().check(answer, rounds)
        compiled = self._scripted(getattr(answer, "__wrapped__", answer))
        for (x,) in self._all_cases(rounds):
            try:
                found = compiled(x)
            except MinigradError as error:
                first = str(error).partition("\n")[0]
                raise Wrong(self.name, f"right in eager mode, but as a graph it stops: {first}", TENSORS) from None
            if problem := difference(found, self.right(x)):
                hint = "a condition must stay a tensor, and the loop too: without .item(), float() and int()"
                raise Wrong(self.name, f"right in eager mode, but not as a graph, for x={written(x)}: {problem}", hint)
        if len(compiled.traces) > 1:
            problem = f"right, but it was traced {len(compiled.traces)} times for 5 numbers"
            raise Wrong(self.name, problem, "a loop over a tensor needs one trace only: where is a Python number?")
        return "one trace, for every x: the loop is a node of the graph."

    def _scripted(self, function: Callable[..., Any]) -> Jitted:
        try:
            return Jitted(script(function))
        except ScriptError as error:
            raise Wrong(self.name, str(error).partition("\n")[0], "def halve(x): ... in a cell of its own") from None

    def solution(self) -> Any:
        return halved

    def right(self, x: Any) -> Any:
        return halved(x)

    @mistake("only once. It goes on until x is at most 1: `while` in the place of `if`")
    def once(self, x: Any) -> Any:
        return x / 2 if x > 1.0 else x

    @mistake("that halves one time too often: 1 itself is not halved. `>` in the place of `>=`")
    def too_far(self, x: Any) -> Any:
        while x >= 1.0:
            x = x / 2
        return x

    @mistake("that stops one turn too early: it goes on until x itself is at most 1")
    def too_early(self, x: Any) -> Any:
        while x > 2.0:
            x = x / 2
        return x

    @mistake("that is the number of turns. Return x")
    def turns(self, x: Any) -> Any:
        count = 0
        while x > 1.0:
            x, count = x / 2, count + 1
        return count

    @mistake("that returns x unchanged: does the loop assign x? x / 2 alone changes nothing")
    def unchanged(self, x: Any) -> Any:
        return x

    @mistake("`return` is inside of the loop, so the loop ends in its first turn")
    def returns_inside(self, x: Any) -> Any:
        return x / 2 if x > 1.0 else None


TENSORS = "the loop's condition and x must stay tensors: x > 1.0 and x / 2, without .item(), float() and int()"


@UNIT.task
class LoopDifference(ValueTask):
    """`halve` by script and by example: what do they compute for another x?"""

    name = "loop_difference"
    points = 3
    minutes = 6
    outcome = "ways"
    example = "[1.0, 0.25]"
    otherwise = "the script runs the loop for this x. The trace divides as often as it did for the example"
    hints: ClassVar[dict[str, str]] = {
        "turned": "the other way round: the script first",
        "all_like_the_first": "the first is right. The trace has no loop: it divides as often as for the example",
        "all_like_the_last": "the second is right. The script has the loop, and stops when x is at most 1",
        "first_only": "two numbers are asked for: by script, and by trace",
    }

    def vary(self, draw: random.Random) -> None:
        self.turns = draw.choice([2, 3])
        self.first = 0.75 * 2**self.turns
        self.last = draw.choice([12.0, 14.0, 10.0, 24.0, 20.0])

    def text(self) -> str:
        return (
            f"`halve` becomes a graph by script, and a graph by trace with the example **{self.first:g}**. Both are called "
            f"with **{self.last:g}**. **What do they compute?** Two numbers, the script's first. Work them out before "
            "you run anything."
        )

    def right(self) -> list[float]:
        x = self.last
        while x > 1:
            x = x / 2
        return [x, self.last / 2**self.turns]

    def explained(self) -> str:
        return f"the trace is {self.turns} divisions in a row: right for numbers that need {self.turns} turns only."

    @mistake("the trace does not hold the example's result: it divides the new x, as often as it divided the example")
    def result_of_the_example(self) -> list[float]:
        return [self.right()[0], self.first / 2**self.turns]

    @mistake("the trace divides once for each turn of the example, not once in all")
    def one_division(self) -> list[float]:
        return [self.right()[0], self.last / 2]

    @mistake("count the example's turns again: it stops when x is at most 1")
    def one_turn_more(self) -> list[float]:
        return [self.right()[0], self.last / 2 ** (self.turns + 1)]

    @mistake("count the example's turns again: it goes on while x is greater than 1")
    def one_turn_less(self) -> list[float]:
        return [self.right()[0], self.last / 2 ** (self.turns - 1)]

    @mistake("the script goes on until x is at most 1")
    def script_stops_early(self) -> list[float]:
        return [2 * self.right()[0], self.right()[1]]


@UNIT.task
class WhyLoop(Choice):
    """Why do the two graphs of `halve` differ?

    - `"A"`: the script reads the source, where the loop is; the trace sees only the operations that ran.
    - `"B"`: the trace is optimised, and the passes have removed the loop.
    - `"C"`: the script runs in eager mode, and the trace in graph mode.
    - `"D"`: the trace stops after a fixed number of turns, to protect you from endless loops.

    One letter.
    """

    name = "why_loop"
    points = 0
    minutes = 2
    outcome = "ways"
    answer = "A"
    options: ClassVar[dict[str, str]] = {
        "A": "",
        "B": "the passes change nothing that is computed. Look at the graph before the passes: has it a loop?",
        "C": "both are graphs. course.task(\"halve\") was checked with one trace for five numbers",
        "D": "it is the number of turns that the example needed, 2 or 3 or any other number",
    }

    def explained(self) -> str:
        return "a tracer sees operations. `while` is not an operation, but a word of Python."


SETTINGS = "MINIGRAD_COURSE_SCALE"  # the environment variable of one of the functions
SOURCES = {
    "attribute": ("class settings:\n    scale = 2.0\n\n", "settings.scale", "settings.scale = 5.0"),
    "list": ("scales = [2.0, 3.0]\n\n", "scales[0]", "scales[0] = 5.0"),
    "global": ("scale = 2.0\n\n", "scale", "scale = 5.0"),
    "environment": (
        "import os\n\n", f'float(os.environ["{SETTINGS}"])', f'os.environ["{SETTINGS}"] = "5.0"'),
}


@UNIT.task
class OnlyGraph(ValueTask):
    """Four functions, one with a bug that only graph mode has: which, and at which node?"""

    name = "only_graph"
    points = 3
    minutes = 12
    outcome = "debug"
    mistakes = ()
    example = '("A", "add")'
    otherwise = 'a letter, and the name of a node, in brackets: ("A", "add")'

    def vary(self, draw: random.Random) -> None:
        sources, ops = list(SOURCES), ["h * {}", "h + {}", "h - {}", "h / {}"]
        draw.shuffle(sources)
        draw.shuffle(ops)
        self.kinds = dict(zip("ABCD", sources))
        self.programs = {}
        for letter, kind, op in zip("ABCD", sources, ops):
            before, reads, change = SOURCES[kind]
            first = draw.choice(["mg.tanh(x)", "mg.exp(x)"])
            code = f"{before}def {letter}(x):\n    h = {first}\n    return {op.format(reads)}\n"
            self.programs[letter] = Program(code, change)
        self.letter = next(letter for letter, kind in self.kinds.items() if kind == "environment")
        self.node = dict(zip("*+-/", ("multiply", "add", "subtract", "divide")))[
            self.programs[self.letter].code.rpartition("return h ")[2][0]]

    def text(self) -> str:
        listed = "\n".join(f"{each.code}\n" for each in self.programs.values())
        return (
            f"```python\n{listed}```\n\nAll four are right in eager mode, also after the number that they read has "
            "changed. **One of them is wrong in graph mode. Which, and which node is the first that differs?** "
            "`task.change(letter)` changes the number."
        )

    def given(self) -> dict[str, Any]:
        return {"f": self.function, "change": self.change}

    def _at(self, letter: str) -> Program:
        if letter not in self.programs:
            raise KeyError(f"the functions are called A, B, C and D, not {letter!r}")
        return self.programs[letter]

    def function(self, letter: str) -> Callable[..., Any]:
        """One of the four.  The number that it reads is 2.0 again."""
        os.environ[SETTINGS] = "2.0"
        return self._at(letter).fresh()

    def change(self, letter: str) -> None:
        """Change the number that a function reads from 2.0 to 5.0."""
        self._at(letter).run()

    def right(self) -> tuple[str, str]:
        return self.letter, self.node

    def explained(self) -> str:
        return "no guard looks at environment variables, files or clocks. Read them outside, and pass an argument."

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        parts = answer if isinstance(answer, tuple | list) and len(answer) == 2 else (answer, None)
        letter, node = [each.strip() if isinstance(each, str) else each for each in parts]
        letter = letter.upper() if isinstance(letter, str) else letter
        if letter not in self.programs or not isinstance(node, str):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", self.otherwise)
        if letter != self.letter:
            hint = f"{self._reads(letter)}: a guard compares it, and {letter} is traced again. What has no guard?"
            raise Wrong(self.name, f"{letter} is right in graph mode too", hint)
        if node.lower().partition("_")[0] != self.node:
            hint = "mg.jit(f, check=True) raises a CheckError after the change. It names the first node that differs"
            raise Wrong(self.name, f"{letter} is the one, but {node} is not the first node that differs", hint)
        return self.explained()

    def _reads(self, letter: str) -> str:
        return {
            "attribute": "it reads an attribute of your object", "list": "it reads an entry of your list",
            "global": "it reads a global name", "environment": "",
        }[self.kinds[letter]]


