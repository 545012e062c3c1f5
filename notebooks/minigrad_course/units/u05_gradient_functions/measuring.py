"""Unit 05: the student's gradient check, and five rules of which one is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ...compare import Difference, numerical, plain
from ...feedback import Wrong, written
from ...forms import parts_of
from ...tasks import ROUNDS, FunctionTask, ValueTask, mistake
from .about import UNIT

VERDICT = UNIT.words["verdict"]
LARGEST = UNIT.words["largest"]


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

    runs = 0  # of f, in the last case

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def careful(f: Any, rule: Any, x: Any, g: Any) -> Any:
            given, self.runs = x.copy(), 0

            def counted(x: Any) -> Any:
                self.runs += 1
                return f(x)

            found = answer(counted, rule, given, g)
            if not np.array_equal(given, x):
                hint = "nudge a copy: nudged = x.copy(), then nudged[i] += h. Otherwise each nudge stays in x"
                raise Wrong(self.name, "it has changed x", hint)
            return found

        return super().check(careful, rounds)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        yours = plain(yours)
        if yours is None:
            raise Wrong(self.name, "it returned None", "a function gives back only the value after `return`")
        if isinstance(yours, bool | np.bool_):
            raise Wrong(self.name, f"it returned {yours}", VERDICT)
        if np.ndim(yours):
            raise Wrong(self.name, f"it returned an array, {written(yours)}", LARGEST)
        if np.asarray(yours).dtype.kind not in "iuf":
            return f"it returned {written(yours)}, not the largest difference as one number"
        right = self.right(*args)
        if abs(yours - right) <= 1e-4 * (1 + right):
            return None
        return Difference("the largest difference is wrong", f"{right:.4f}", f"{float(yours):.4f}")

    def _call(self, args: tuple[Any, ...]) -> str:
        code = next((each.code for each in OPERATIONS if each.forward is args[0]), "f")
        which = "its rule" if any(each.rule is args[1] for each in OPERATIONS) else "a wrong rule"
        return f"gradcheck(f, rule, x={args[2].tolist()}, g={written(args[3])}), with f(x) = {code} and {which}"

    def right(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        by_rule, measured = rule(g, f(x), x), numerical(f, (x,), g)[0]
        return float(np.abs(by_rule - measured).max())

    @mistake
    def diagonal(self, f: Any, rule: Any, x: Any, g: Any) -> Any:
        one, h = rule(g, f(x), x), 1e-6
        step = np.eye(len(x)) * h
        changes = [np.asarray((f(x + each) - f(x - each)) * g).reshape(-1) for each in step]
        measured = np.array([each[min(i, each.size - 1)] for i, each in enumerate(changes)]) / (2 * h)
        return float(np.abs(one - measured).max())


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

    def listed(self) -> str:
        """The list in the text."""
        return "; ".join(f"{letter}: `{each.code}`" for letter, each in self.operations.items())

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
        return self.letter, round(GradCheck().right(f, rule, self.x, g), 2)

    def check(self, answer: Any, rounds: int = ROUNDS) -> str | None:
        letter, number = map(plain, parts_of(answer, 2))
        letter = letter.strip().upper() if isinstance(letter, str) else letter
        form = np.ndim(number) == 0 and np.asarray(number).dtype.kind in "iuf"
        if letter not in self.operations or not form:
            raise self.misformed(answer)
        right, largest = self.right()
        if letter != right:
            problem = f"the rule of {letter}, {self._at(letter).code}, is right"
            hint = f'gradcheck(task.f("{letter}"), task.rule("{letter}"), task.x, task.g("{letter}")) should be near 0'
            raise Wrong(self.name, problem, hint)
        if not abs(float(number or 0) - largest) <= 0.011:  # nan is not close either
            hint = "give the number that your gradcheck returns, at task.x and with task.g(letter)"
            raise Wrong(self.name, f"{letter} is the wrong rule, but {number:g} is not its largest difference", hint)
        return self.explained()
