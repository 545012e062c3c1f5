"""Unit 05: the student's gradient check, and five rules of which one is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ...compare import Difference, numerical
from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask, ValueTask, mistake
from .about import UNIT

VERDICT = "return the largest difference itself, a number, not whether it is small"
LARGEST = "one number: take abs of the rule minus the measured slope in each place, and return the largest, .max()"


class Operation(NamedTuple):
    """An operation of a vector, its gradient rule, a wrong rule, and what is wrong with it."""

    code: str
    forward: Callable[[Any], Any]
    rule: Callable[[Any, Any, Any], Any]
    wrong: Callable[[Any, Any, Any], Any]
    fault: str


def _softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum()


OPERATIONS = (
    Operation("x * x", lambda x: x * x, lambda g, out, x: g * 2 * x, lambda g, out, x: 2 * x,
              "it forgets g. With g = 1 it would look right"),
    Operation("softmax(x)", _softmax, lambda g, out, x: out * (g - (g * out).sum()),
              lambda g, out, x: g * out * (1 - out),
              "it forgets that each number of x changes every number of the output"),
    Operation("x - x.mean()", lambda x: x - x.mean(), lambda g, out, x: g - g.mean(), lambda g, out, x: g,
              "it forgets that the mean depends on x too"),
    Operation("cumsum(x)", np.cumsum, lambda g, out, x: np.cumsum(g[::-1])[::-1], lambda g, out, x: np.cumsum(g),
              "its sums run from the front, but a number of x goes into the outputs behind it"),
    Operation("sqrt((x * x).sum())", lambda x: np.sqrt((x * x).sum()), lambda g, out, x: g * x / out,
              lambda g, out, x: g * x, "it forgets to divide by the output"),
)


def furthest(rule: Any, by_differences: Any) -> float:
    """The largest difference between two gradients."""
    return float(np.abs(rule - by_differences).max())


@UNIT.task
class GradCheck(FunctionTask):
    name = "gradcheck"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        x, g = np.array([1.0, -2.0, 0.5]), np.array([2.0, -1.0, 3.0])
        square, softmax, mean, cumsum, length = OPERATIONS
        yield square.forward, square.rule, x, g
        yield square.forward, square.wrong, x, g
        yield cumsum.forward, cumsum.wrong, x, g
        yield mean.forward, mean.wrong, x, g
        yield softmax.forward, softmax.rule, x, g
        yield length.forward, length.wrong, x, 2.0

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def careful(f: Any, rule: Any, x: Any, g: Any) -> Any:
            given = x.copy()
            found = answer(f, rule, given, g)
            if not np.array_equal(given, x):
                hint = "nudge a copy: nudged = x.copy(), then nudged[i] += h. Otherwise each nudge stays in x"
                raise Wrong(self.name, "it has changed x", hint)
            return found

        return super().check(careful, rounds)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if isinstance(yours, bool | np.bool_):
            raise Wrong(self.name, f"it returned {yours}", VERDICT)
        if np.ndim(yours):
            raise Wrong(self.name, f"it returned an array, {written(yours)}", LARGEST)
        if not isinstance(yours, int | float | np.number):
            return f"it returned {written(yours)}, not the largest difference as one number"
        right = self.right(*args)
        if abs(yours - right) <= 1e-3 * (1 + right):
            return None
        return Difference("the largest difference is wrong", f"{right:.4f}", f"{float(yours):.4f}")

    def _call(self, args: tuple[Any, ...]) -> str:
        code = next((each.code for each in OPERATIONS if each.forward is args[0]), "f")
        which = "its rule" if any(each.rule is args[1] for each in OPERATIONS) else "a wrong rule"
        return f"gradcheck(f, rule, x={args[2].tolist()}, g={written(args[3])}), with f(x) = {code} and {which}"

    def both(self, f: Any, rule: Any, x: Any, g: Any) -> tuple[Any, Any]:
        """The gradient by the rule, and by finite differences."""
        return rule(g, f(x), x), numerical(f, (x,), g)[0]

    def right(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        return furthest(*self.both(f, rule, x, g))

    @mistake
    def differences_without_g(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        return furthest(rule(g, f(x), x), numerical(f, (x,), np.ones_like(f(x)))[0])

    @mistake
    def without_g(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        ones = np.ones_like(f(x))
        return furthest(*self.both(f, rule, x, ones))

    @mistake
    def by_h_only(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return furthest(one, 2 * two)

    @mistake
    def brackets(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return furthest(one, two * 1e-10)

    @mistake
    def with_signs(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return float((one - two).max())

    @mistake
    def with_other_signs(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return float((two - one).max())

    @mistake
    def added(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return float(np.abs(one - two).sum())

    @mistake
    def mean(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return float(np.abs(one - two).mean())

    @mistake
    def first_only(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return float(abs(one[0] - two[0]))

    @mistake
    def last_only(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return float(abs(one[-1] - two[-1]))

    @mistake
    def all_together(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return furthest(one, np.full_like(two, two.sum()))

    @mistake
    def diagonal(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, h = rule(g, f(x), x), 1e-6
        step = np.eye(len(x)) * h
        changes = [np.asarray((f(x + each) - f(x - each)) * g).reshape(-1) for each in step]
        return furthest(one, np.array([each[min(i, each.size - 1)] for i, each in enumerate(changes)]) / (2 * h))

    @mistake
    def array(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, two = self.both(f, rule, x, g)
        return np.abs(one - two)

    @mistake
    def verdict(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        return self.right(f, rule, x, g) < 1e-4


@UNIT.task
class WrongRule(ValueTask):
    """Five rules, one of them wrong: which, and by how much?"""

    name = "wrong_rule"
    mistakes = ()

    def vary(self, draw: random.Random) -> None:
        order = list(OPERATIONS)
        draw.shuffle(order)
        self.operations = dict(zip("ABCDE", order))
        self.letter = draw.choice("ABCDE")
        self.x = np.array([draw.choice([-1, 1]) * draw.choice([0.5, 0.8, 1.2, 1.6]) for _ in range(3)])
        self.g = np.array([2.0, -1.0, draw.choice([3.0, 4.0, 5.0])])

    def text(self) -> str:
        listed = "; ".join(f"{letter}: `{each.code}`" for letter, each in self.operations.items())
        return (
            f"Five operations of three numbers, each with a gradient rule. {listed}. **One rule is wrong. Which, and "
            f"what does your gradcheck return for it**, at `x = {self.x.tolist()}`? "
            "(g is `task.g(letter)`.) Two decimals."
        )

    def given(self) -> dict[str, Any]:
        return {"x": self.x.copy(), "g": self.gradient, "f": self.forward, "rule": self.rule}

    def _at(self, letter: str) -> Operation:
        if letter not in self.operations:
            raise KeyError(f"the operations are called A, B, C, D and E, not {letter!r}")
        return self.operations[letter]

    def forward(self, letter: str) -> Callable[..., Any]:
        """The operation."""
        return self._at(letter).forward

    def rule(self, letter: str) -> Callable[..., Any]:
        """Its gradient rule, which may be wrong."""
        chosen = self._at(letter)
        return chosen.wrong if letter == self.letter else chosen.rule

    def gradient(self, letter: str) -> Any:
        """The gradient of the output: one number, if the output is one."""
        return self.g if np.ndim(self.forward(letter)(self.x)) else float(self.g[0])

    def right(self) -> tuple[str, float]:
        f, rule, g = self.forward(self.letter), self.rule(self.letter), self.gradient(self.letter)
        return self.letter, round(furthest(rule(g, f(self.x), self.x), numerical(f, (self.x,), g)[0]), 2)

    def explained(self) -> str:
        return f"the rule of {self.operations[self.letter].code} is wrong: {self.operations[self.letter].fault}."

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        letter, number = answer if isinstance(answer, tuple | list) and len(answer) == 2 else (answer, None)
        letter = letter.strip().upper() if isinstance(letter, str) else letter
        form = isinstance(number, int | float | np.number) and not isinstance(number, bool)
        if letter not in self.operations or not form:
            raise Wrong(self.name, f"your answer {written(answer)} has another form", self.otherwise)
        right, largest = self.right()
        if letter != right:
            problem = f"the rule of {letter}, {self._at(letter).code}, is right"
            hint = f'gradcheck(task.f("{letter}"), task.rule("{letter}"), task.x, task.g("{letter}")) should be near 0'
            raise Wrong(self.name, problem, hint)
        if abs(float(number or 0) - largest) > 0.011:
            hint = "give the number that your gradcheck returns, at task.x and with task.g(letter)"
            raise Wrong(self.name, f"{letter} is the wrong rule, but {number:g} is not its largest difference", hint)
        return self.explained()
