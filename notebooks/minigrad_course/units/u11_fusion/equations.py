"""Unit 11: rules of algebra: numbers that break some of them, and rules that make a gradient cheaper."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minigrad.autodiff.transforms import grad
from minigrad.compile.jitted import trace
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.rewriting import algebra
from minigrad.compile.rewriting.equation import Equation
from minigrad.compile.rewriting.passes import Log, optimise
from minigrad.compile.rewriting.rules import Note, Rules, apply_rules
from minigrad.core.override import overriding
from minigrad.ops.creation import asarray, ones
from minigrad.support.errors import MinigradError
from minigrad.support.table import counted

from ...feedback import Wrong, written
from ...tasks import ROUNDS, ValueTask
from .about import UNIT
from .graphs import evaluated, random_graph, same_bits, same_values, values_of

HOLDS = "holds"
UNUSUAL = "numbers that are not ordinary: 0.0, -0.0, inf, nan, 1e-30, 1e30; or a plain 0.1, which is rounded"
ZERO = {"x + 0 -> x": "zero has a sign. What is -0.0 + 0.0?"}
BREAK = {  # what to think of where an equation breaks
    "x * 0 -> 0": "infinity times 0 has no value. And what is -1.0 * 0.0?",
    "x - x -> 0": "which number has no difference from itself?",
    "x / x -> 1": "which number may one not divide by?",
    "(x + 1) - 1 -> x": "add 1 to something tiny: where do its digits go?",
    "-(x - 1) -> 1 - x": "when is the difference zero, and which sign does the zero have?",
    "(x * 3) / 3 -> x": "how large is the largest float32? About 3.4e38",
    "sqrt(x * x) -> abs(x)": "the square of a tiny number is tinier still: 1e-60?",
}
POSITIVE = [0.0, 1.0, 0.5, 0.1, 1 / 3, 2.0, 3.0, 7.7, 1000.5, 1e-30, 1e30, 1e-45, 3e38, np.inf]
HARD = np.array([*POSITIVE, *[-x for x in POSITIVE], np.nan], dtype=np.float32)
LEGAL = ["x - 0 -> x", "x * 1 -> x", "-(-x) -> x", "x / 4 -> x * 0.25", "abs(-x) -> abs(x)"]


def sides(equation: str, values: Mapping[str, Any]) -> list[Any]:
    """The two sides of an equation as float32 arrays, computed eagerly.

    >>> sides("x + 0 -> x", {"x": asarray(-0.0)})
    [array(0., dtype=float32), array(-0., dtype=float32)]
    """
    with np.errstate(all="ignore"):
        found = [evaluated(side, **values) for side in equation.split("->")]
        return [side.numpy() if hasattr(side, "numpy") else np.asarray(side, "f") for side in found]


@np.errstate(all="ignore")
def both_sides(equation: str, number: float) -> list[Any]:
    """The two sides for one number."""
    return [side.item() for side in sides(equation, {"x": asarray(np.float32(number))})]


@UNIT.task
class Breaks(ValueTask):
    """Four equations. For each, find a number that breaks it; one of them holds for every number."""

    name, mistakes = "breaks", ()

    def vary(self, draw: random.Random) -> None:
        chosen = [*ZERO, *draw.sample(list(BREAK), 2), draw.choice(LEGAL)]
        draw.shuffle(chosen)
        self.equations = dict(zip("ABCD", chosen))

    def listed(self) -> str:
        """The list in the text."""
        return "".join(f"\n- {letter}: `{text}`" for letter, text in self.equations.items())

    def given(self) -> dict[str, Any]:
        return {"both": lambda letter, x: both_sides(self.equations[letter], x)}

    def right(self) -> dict[str, Any]:
        return {
            letter: next((x for x in HARD.tolist() if not same_bits(*both_sides(text, x))), HOLDS)
            for letter, text in self.equations.items()
        }

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        if not isinstance(answer, dict) or set(answer) != set(self.equations):
            raise self.misformed(answer)
        for letter, text in self.equations.items():
            hint, given = {**ZERO, **BREAK}.get(text), answer[letter]
            if str(given).strip().lower().startswith("hold"):
                if hint:
                    raise Wrong(self.name, f"{letter}, {text}, does not hold for every number", hint)
                continue
            try:
                left, right = both_sides(text, float(given))
            except (TypeError, ValueError):
                what = f"{written(given)} for {letter} is neither a number nor {HOLDS!r}"
                raise Wrong(self.name, what, 'infinity is float("inf"), and "not a number" is float("nan")') from None
            if same_bits(left, right):
                what = f"{written(given)} does not break {letter}, {text}: both sides are {written(left)}"
                raise Wrong(self.name, what, f"try {UNUSUAL}" if hint else f"try also {UNUSUAL}; or does it hold?")
        return "one number is enough to refuse a rule. No number of tests is enough to allow one: that takes a proof."


# ---- rules that make a gradient cheaper ------------------------------------------------------------------------------

FEW = [(2.0, -3.0), (-3.0, 0.1), (0.1, 1e30), (1e30, 2.0)]  # pairs of numbers that n and m take
PROGRAMS = ["h / (1 + exp(-h))", "(1 - exp(-h)) / (1 + exp(-h))", "exp(-1 / (1 - h * h))", "log(h / (1 - h))"]
SOLUTION = ["-x * y -> -(x * y)", "-x / y -> -(x / y)"]
BLOCKED = {  # what to say where a minus sign is an input of such an operation
    "multiply": "with your rules, a sign still goes into a product (`multiply`). How does it move out? -x * y -> ...",
    "divide": "with your rules, a sign still goes into a quotient (`divide`). How does it move out? -x / y -> ...",
}
NEEDLESS = "a rule must hold for every float, with the sign of zero. This one needs to go"


def operations(graph: Graph) -> int:
    """The number of operations that compute something: no views, no constants."""
    return sum(node.op is not None and node.op.kind != "view" and node.name != "full" for node in graph.nodes)


def with_rules(equations: list[str]) -> Callable[[Graph, Note], Graph]:
    """The pass `simplify`, with more equations after its own."""
    table = Rules(algebra.rule)
    for text in dict.fromkeys(equations):
        if all(text != known.name for known in table):
            table(text, on="f")

    def your_rules(graph: Graph, note: Note) -> Graph:
        return apply_rules(graph, table, note)

    return your_rules


def counterexample(equation: Equation) -> str | None:
    """Values of the letters for which the two sides of an equation differ, and the sides; None if none was found.

    >>> print(counterexample(Equation("x + 0 -> x")))
      Expected: 0.0
      Got: -0.0, for x = -0.0
    >>> counterexample(Equation("-x * y -> -(x * y)"))
    """
    letters = [part.name for part in equation.letters]
    grid = np.array(np.meshgrid(*[HARD] * len(letters))).reshape(len(letters), -1)
    grid = grid[:, np.sort(np.random.default_rng(0).permutation(grid.shape[1])[:20_000])]
    for pair in FEW:
        numbers = {part.name: pair[part.name == "m"] for part in equation.numbers}
        found = sides(equation.text, {**dict(zip(letters, map(asarray, grid))), **numbers})
        left, right = [np.broadcast_to(side, grid.shape[1]) for side in found]
        differ = ~same_bits(left, right)
        if differ.any():
            at = int(np.argmax(differ))
            where = {**dict(zip(letters, grid[:, at])), **numbers}
            listed = ", ".join(f"{name} = {value}" for name, value in where.items())
            return f"  Expected: {left[at]}\n  Got: {right[at]}, for {listed}"
    return None


@UNIT.task
class MyRules(ValueTask):
    """Equations that are not in the compiler's table, hold for all floats, and make a gradient cheaper."""

    name, mistakes = "my_rules", ()

    def vary(self, draw: random.Random) -> None:
        self.program = draw.choice(PROGRAMS)
        self.traced = trace(grad(lambda h: evaluated(self.program, h=h).sum()), ones(1000))
        self.before, _ = optimise(self.traced)
        self.budget = operations(self._optimised(SOLUTION)[0])

    def _optimised(self, equations: list[str]) -> tuple[Graph, Log]:
        run = with_rules(equations)
        with overriding(algebra.simplify, run):
            return optimise(self.traced)

    def given(self) -> dict[str, Any]:
        return {
            "gradient": self.before, "after": lambda equations: self._optimised(self._legal(equations))[0],
            "as_pass": lambda equations: with_rules(self._legal(equations)),
        }

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        equations = self._legal(answer)
        graph, log = self._optimised(equations)
        if not log.finished:
            hint = "one of your rules fires at its own result, or two rules undo each other"
            raise Wrong(self.name, "the rules never come to an end", hint)
        left, fired = operations(graph), log.counts()
        if left > self.budget:
            said = "; ".join(f"{text} ({counted(fired[text], 'time')})" for text in equations if fired[text])
            what = f"{counted(left, 'operation')} are left, {self.budget} are possible"
            readers = [node for node in graph.nodes if any(getattr(x, "name", "") == "negative" for x in node.inputs)]
            blocked = (BLOCKED[node.name] for node in readers if equations and node.name in BLOCKED)
            raise Wrong(
                self.name, f"{what}. Of yours, these fired: {said or 'none'}",
                next(blocked, "look at your gradient: between two minus signs there are products and quotients. A sign "
                     "can move out of a product, -x * y -> ..., until it meets the other sign")
            )
        run, draw = with_rules(equations), random.Random(0)
        for graph in [random_graph(draw) for _ in range(8)]:
            if not same_values(values_of(graph), values_of(run(graph, lambda *fired: None))):
                raise Wrong(self.name, "a random graph computes something else with your rules", NEEDLESS)
        return f"{left} operations instead of {operations(self.before)}, and the same bits on random graphs."

    def _legal(self, equations: Any) -> list[str]:
        """The equations; a `Wrong` for one that cannot be read, or that changes a number."""
        listed = [equations] if isinstance(equations, str) else equations
        if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
            raise self.misformed(equations, f"in brackets: {self.example}")
        for text in listed:
            try:
                found = counterexample(Equation(text, "f"))
            except (SyntaxError, TypeError, NameError, AttributeError, MinigradError) as error:
                why = str(error).partition("\n")[0].replace(" on 'f'", "")
                raise Wrong(
                    self.name, f"{text!r} cannot be used: {why}",
                    "both sides as in Python, -> between them. Letters of the right side are on the left too"
                ) from None
            if found:
                raise Wrong(self.name, f"{text} changes a result\n{found}", NEEDLESS)
        return list(listed)
