"""Unit 11: rules of algebra: numbers that break some of them, and rules that make a gradient cheaper."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ....autodiff.transforms import grad
from ....compile.jitted import trace
from ....compile.nodes.graph import Graph
from ....compile.rewriting import algebra
from ....compile.rewriting.equation import Equation
from ....compile.rewriting.passes import optimise
from ....compile.rewriting.rules import Note, Rules, apply_rules
from ....core.dtypes import float32
from ....core.override import overriding
from ....core.primitive import P
from ....core.tensor import Tensor
from ....ops import elementwise
from ....ops.creation import asarray, ones
from ....ops.elementwise import exp, log, sqrt
from ....support.errors import MinigradError
from ....support.table import counted
from ...feedback import Wrong, written
from ...tasks import ROUNDS, ValueTask
from .about import UNIT
from .graphs import SIZE, random_program, same_bits, same_values, values_of

HOLDS = "holds"
UNUSUAL = "numbers that are not ordinary: 0.0, -0.0, inf, nan, 1e-30, 1e30; or a plain 0.1, which is rounded"


class Claim(NamedTuple):
    """An equation for one number, its two sides, and what to think of where it breaks."""

    text: str
    left: Callable[[Tensor], Tensor]
    right: Callable[[Tensor], Any]
    hint: str = ""  # empty where it holds for every number


CLAIMS = (
    Claim("x + 0 -> x", lambda x: x + 0.0, lambda x: x, "zero has a sign. What is -0.0 + 0.0?"),
    Claim("x * 0 -> 0", lambda x: x * 0.0, lambda x: 0.0 * ones(()),
          "infinity times 0 has no value. And what is -1.0 * 0.0?"),
    Claim("x - x -> 0", lambda x: x - x, lambda x: 0.0 * ones(()), "which number has no difference from itself?"),
    Claim("x / x -> 1", lambda x: x / x, lambda x: ones(()), "which number may one not divide by?"),
    Claim("(x + 1) - 1 -> x", lambda x: (x + 1.0) - 1.0, lambda x: x, "add 1 to something tiny: where do its digits go?"),
    Claim("-(x - 1) -> 1 - x", lambda x: -(x - 1.0), lambda x: 1.0 - x, "when is the difference zero, and which sign has it?"),
    Claim("(x * 3) / 3 -> x", lambda x: (x * 3.0) / 3.0, lambda x: x, "how large is the largest float32? About 3.4e38"),
    Claim("sqrt(x * x) -> abs(x)", lambda x: sqrt(x * x), elementwise.abs, "the square of a tiny number is tinier still: 1e-60?"),
)
LEGAL = (
    Claim("x - 0 -> x", lambda x: x - 0.0, lambda x: x),
    Claim("x * 1 -> x", lambda x: x * 1.0, lambda x: x),
    Claim("-(-x) -> x", lambda x: -(-x), lambda x: x),
    Claim("x / 4 -> x * 0.25", lambda x: x / 4.0, lambda x: x * 0.25),
    Claim("abs(-x) -> abs(x)", lambda x: elementwise.abs(-x), elementwise.abs),
)


def both_sides(claim: Claim, number: Any) -> tuple[float, float]:
    """The two sides of an equation for a number, in float32.

    >>> both_sides(CLAIMS[0], -0.0)
    (0.0, -0.0)
    """
    with np.errstate(all="ignore"):
        x = asarray(float(number), dtype=float32)
        return float(claim.left(x).item()), float(claim.right(x).item())


def same_float(a: float, b: float) -> bool:
    """Whether two numbers are the same: 0.0 and -0.0 differ, and nan is nan."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@UNIT.task
class Broken(ValueTask):
    """Four equations. For each, find a number that breaks it; one of them holds for every number."""

    name = "broken"
    points = 2
    minutes = 10
    outcome = "rules"
    mistakes = ()
    example = '{"A": 2.5, "B": "holds", "C": float("inf"), "D": -0.0}'
    otherwise = f'for each letter a number, or "{HOLDS}": {example}'

    def vary(self, draw: random.Random) -> None:
        zero, *others = [CLAIMS[0], *draw.sample(CLAIMS[1:], 2)]
        chosen = [zero, *others, draw.choice(LEGAL)]
        draw.shuffle(chosen)
        self.claims = dict(zip("ABCD", chosen))

    def text(self) -> str:
        listed = "; ".join(f"{letter}: `{claim.text}`" for letter, claim in self.claims.items())
        return (
            f"A compiler may use an equation only if both sides have **the same bits for every float32**. {listed}. "
            f'Three of these break. **Find a number for each that breaks it; write "{HOLDS}" for the one that does '
            'not break.** `task.both("A", 2.5)` computes both sides of A for x = 2.5.'
        )

    def given(self) -> dict[str, Any]:
        return {"both": self.both}

    def both(self, letter: str, x: Any) -> tuple[float, float]:
        """Both sides of an equation."""
        if letter not in self.claims:
            raise KeyError(f"the equations are called A, B, C and D, not {letter!r}")
        return both_sides(self.claims[letter], x)

    def right(self) -> dict[str, Any]:
        tried = (-0.0, math.inf, 0.1, 1.0, 0.0, 1e-30, 3e38)
        return {
            letter: next((x for x in tried if not same_float(*both_sides(claim, x))), HOLDS)
            for letter, claim in self.claims.items()
        }

    def explained(self) -> str:
        return "one number is enough to refuse a rule. No number of tests is enough to allow one: that takes a proof."

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if not isinstance(answer, dict) or set(answer) != set(self.claims):
            raise Wrong(self.name, f"your answer {written(answer)} has another form", self.otherwise)
        for letter, claim in self.claims.items():
            self._judge(letter, claim, answer[letter])
        return self.explained()

    def _judge(self, letter: str, claim: Claim, given: Any) -> None:
        if isinstance(given, str) and given.strip().lower().startswith("hold"):
            if claim.hint:
                raise Wrong(self.name, f"{letter}, {claim.text}, does not hold for every number", claim.hint)
            return
        try:
            number = float(given)
        except (TypeError, ValueError):
            what = f"{written(given)} for {letter} is neither a number nor {HOLDS!r}"
            raise Wrong(self.name, what, 'infinity is float("inf"), and "not a number" is float("nan")') from None
        left, right = both_sides(claim, number)
        if not same_float(left, right):
            return
        what = f"{written(number)} does not break {letter}, {claim.text}: both sides are {written(left)}"
        raise Wrong(self.name, what, f"try {UNUSUAL}" if claim.hint else f"try also {UNUSUAL}; or does it hold?")


# ---- rules that make a gradient cheaper ------------------------------------------------------------------------------

HARD = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 0.1, -0.1, 1 / 3, 2.0, 3.0, -7.7, 1000.5, 1e-30, -1e-30, 1e30, -1e30, 1e-45, 3e38, -3e38,
     np.inf, -np.inf, np.nan], dtype=np.float32,
)
FEW = (2.0, -3.0, 0.1, 1e30)  # the numbers that n and m take
MOST_CASES = 20_000
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "h / (1 + exp(-h))": lambda h: h / (1 + exp(-h)),
    "(1 - exp(-h)) / (1 + exp(-h))": lambda h: (1 - exp(-h)) / (1 + exp(-h)),
    "exp(-1 / (1 - h * h))": lambda h: exp(-1 / (1 - h * h)),
    "log(h / (1 - h))": lambda h: log(h / (1 - h)),
}
SOLUTION = ["-x * y -> -(x * y)", "-x / y -> -(x / y)"]
OUTWARDS = (
    "look at your gradient: between two minus signs there are products and quotients. A sign can move out of a product, "
    "-x * y -> ..., until it meets the other sign"
)


def gradient_of(function: Callable[[Any], Any]) -> Graph:
    """The gradient of the sum of a function of 1,000 numbers, as the graph that autodiff records."""
    return trace(lambda h: grad(lambda h: function(h).sum())(h), ones(1000))


def operations(graph: Graph) -> int:
    """The number of operations that compute something: no views, no constants."""
    return sum(node.op is not None and node.op.kind != "view" and node.name != "full" for node in graph.nodes)


def with_rules(equations: list[str]) -> Callable[[Graph, Note], Graph]:
    """The pass `simplify`, with more equations after its own."""
    table = Rules(algebra.rule)
    for text in equations:
        if text not in [known.name for known in table]:
            table(text, on="f")
    return lambda graph, note: apply_rules(graph, table, note)


class RulesTask(ValueTask):
    """A list of equations, each of which has to hold for all floats."""

    mistakes = ()
    kind = "value"

    def legal(self, equations: Any) -> list[str]:
        """The equations; a `Wrong` for one that cannot be read, or that changes a number."""
        listed = [equations] if isinstance(equations, str) else equations
        if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
            raise Wrong(self.name, f"your answer {written(equations)} has another form", 'texts in brackets: ["... -> ..."]')
        for text in listed:
            self._check(text)
        return list(listed)

    def _check(self, text: str) -> None:
        try:
            equation = Equation(text, "f")
        except SyntaxError:
            hint = "both sides are written as in Python, with -> between them: x * 1 -> x"
            raise Wrong(self.name, f"{text!r} cannot be read", hint) from None
        except MinigradError as error:
            hint = "letters are x, y, z for any value, n and m for numbers; each letter of the right side is on the left too"
            raise Wrong(self.name, str(error).partition("\n")[0], hint) from None
        if equation.attributes or len(equation.letters) > 4:
            raise Wrong(self.name, f"{text!r} has attributes or too many letters", "signs, products and sums are enough here")
        found = counterexample(text, [part.name for part in equation.letters], [part.name for part in equation.numbers])
        if found is not None:
            where, left, right = found
            what = f"{text} changes a result\n  Expected: {left}\n  Got: {right}, for {where}"
            raise Wrong(self.name, what, "a rule has to hold for every float, with the sign of zero. This one needs to go")


def counterexample(text: str, letters: list[str], numbers: list[str]) -> tuple[str, str, str] | None:
    """Values of the letters for which the two sides of an equation differ, and the sides; None if none was found.

    >>> counterexample("x + 0 -> x", ["x"], [])
    ('x = -0.0', '0.0', '-0.0')
    >>> counterexample("-x * y -> -(x * y)", ["x", "y"], [])
    """
    grid = np.array(np.meshgrid(*[HARD] * len(letters))).reshape(len(letters), -1)
    if grid.shape[1] > MOST_CASES:
        grid = grid[:, np.random.default_rng(0).integers(grid.shape[1], size=MOST_CASES)]
    for n, m in [(n, m) for n in FEW for m in FEW] if numbers else [(0.0, 0.0)]:
        values = {name: asarray(row) for name, row in zip(letters, grid)}
        values |= {name: number for name, number in zip(("n", "m"), (n, m)) if name in numbers}
        left, right = _sides(text, values, grid.shape[1])
        differ = ~same_bits(left, right)
        if differ.any():
            at = int(np.argmax(differ))
            given = {name: row[at] for name, row in zip(letters, grid)}
            given |= {name: value for name, value in values.items() if name in numbers}
            where = ", ".join(f"{name} = {np.float32(value)}" for name, value in given.items())
            return where, str(left[at]), str(right[at])
    return None


def _sides(text: str, values: Mapping[str, Any], size: int) -> tuple[Any, Any]:
    """The two sides, computed eagerly."""
    functions = {op.name: getattr(elementwise, op.name) for op in P if hasattr(elementwise, op.name)}
    names = {"__builtins__": {}, **functions, **values}
    with np.errstate(all="ignore"):
        found = [eval(side.strip(), names) for side in text.split("->")]
    arrays = [side.numpy() if hasattr(side, "numpy") else np.float32(side) for side in found]
    return np.broadcast_to(arrays[0], size), np.broadcast_to(arrays[1], size)


@UNIT.task
class MyRules(RulesTask):
    """Equations that are not in the compiler's table, hold for all floats, and make a gradient cheaper."""

    name = "my_rules"
    points = 2
    minutes = 12
    outcome = "rewrite"
    example = '["x * 1 -> x", "x - 0 -> x"]'

    def vary(self, draw: random.Random) -> None:
        self.program = draw.choice(list(PROGRAMS))
        self.traced = gradient_of(PROGRAMS[self.program])
        self.before, _ = optimise(self.traced)
        self.budget = operations(self._optimised(SOLUTION)[0])

    def _optimised(self, equations: list[str]) -> tuple[Graph, Any]:
        run = with_rules(equations)
        with overriding(algebra.simplify, lambda graph, note, without: run(graph, note)):
            return optimise(self.traced)

    def text(self) -> str:
        return (
            f"Your function is `{self.program}`. Autodiff records its gradient, and the passes of minigrad leave "
            f"**{operations(self.before)} operations**, shown here. **Write equations that leave {self.budget}.** "
            "Each has to hold for every float: x, y, z are any values, n and m are numbers."
        )

    def given(self) -> dict[str, Any]:
        return {"gradient": self.before, "after": self.after}

    def after(self, equations: list[str]) -> Graph:
        """The gradient that is left with these equations."""
        return self._optimised(self.legal(equations))[0]

    def right(self) -> list[str]:
        return SOLUTION

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        equations = self.legal(answer)
        graph, log = self._optimised(equations)
        if not log.finished:
            hint = "one of your rules fires at its own result, or two rules undo each other"
            raise Wrong(self.name, "the rules never come to an end", hint)
        self._on_random_graphs(equations)
        left, fired = operations(graph), log.counts()
        if left > self.budget:
            said = [f"{text} ({fired[text]} times)" for text in equations if fired[text]]
            what = f"{counted(left, 'operation')} are left, {self.budget} are possible. " + (
                f"Of yours, these fired: {'; '.join(said)}" if said else "None of your rules fired")
            raise Wrong(self.name, what, OUTWARDS)
        return f"{left} operations instead of {operations(self.before)}, and the same bits on random graphs."

    def _on_random_graphs(self, equations: list[str]) -> None:
        run, draw = with_rules(equations), random.Random(0)
        for _ in range(8):
            graph = trace(random_program(draw), ones((SIZE, SIZE)))
            if not same_values(values_of(graph), values_of(run(graph, lambda *fired: None))):
                raise Wrong(self.name, "a random graph computes something else with your rules", OUTWARDS)
