"""Unit 06: the engine as the student writes it, its seeds, and three broken engines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minigrad.autodiff import reverse
from minigrad.core.node import Leaf, Node, topological_order
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.ops.elementwise import tanh
from minigrad.support.errors import GradError

from ...compare import Difference
from ...feedback import Wrong, written
from ...predicting import Matches
from ...programs import leaf
from ...tasks import ROUNDS, FunctionTask, ValueTask
from ...walking import Passes, add, impatient, made_from
from .about import UNIT
from .walks import BackwardOrder, ClippedWalk, WalkBack, numbers

for each in (BackwardOrder, WalkBack, ClippedWalk):
    UNIT.task(each)


@UNIT.task
class Jacobian(FunctionTask):
    name = "jacobian"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        w = asarray([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
        yield (lambda x: w @ x), leaf(1.0, 2.0, -1.0)
        yield (lambda x: tanh(w @ x)), leaf(0.1, 0.2, -0.3)
        yield (lambda x: x * x), leaf(1.0, 2.0, 3.0)
        yield (lambda x: x + x.sum()), leaf(1.0, 2.0)

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def plain(f: Any, x: Tensor) -> Any:
            x.grad = None
            found = answer(f, x)
            return None if found is None else np.array([numbers(row) for row in found])

        try:
            return super().check(plain, rounds)
        except GradError as error:
            if "has its shape" in str(error):
                problem = "the seed does not have as many numbers as y"
                raise Wrong(self.name, problem, "one row for each number of y: y.size, and not x.size") from None
            if "a second time" not in str(error):
                raise
            hint = (
                "keep them for the next row, y.backward(seed, retain_graph=True), or compute y = f(x) anew for each row"
            )
            raise Wrong(self.name, "after the first row, the values that y had saved are gone", hint) from None

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        if all(np.shape(yours) == np.shape(self.right(*args)) and np.allclose(yours, self.right(*args), atol=0.05)
               for args, yours, _ in found):
            return "nearly right, like finite differences. y.backward(seed) gives the exact numbers, one row at a time"
        return super()._hint(found)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return "it returned None, not a list of rows" if yours is None else super().judge(yours, args)

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"jacobian(f, {written(args[1])})"

    def right(self, f: Any, x: Tensor) -> Any:
        y = f(x)
        seeds = map(asarray, np.eye(y.size, dtype=np.float32))
        return np.array([reverse.gradients(y, x, seed, retain_graph=True).numpy() for seed in seeds])


@UNIT.task
class Weighted(ValueTask):
    """`y = W @ x`. What is x.grad after y.backward(seed)?"""

    name = "weighted"

    def vary(self, draw: random.Random) -> None:
        self.matrix = [[draw.randint(1, 4) for _ in range(3)], [draw.randint(5, 9) for _ in range(3)]]
        self.seed = [draw.choice([2, 3]), draw.choice([-1, -2])]

    def right(self) -> list[int]:
        (p, q), (one, two) = self.seed, self.matrix
        return [p * a + q * b for a, b in zip(one, two)]


def lost(result: Node, gradients: Any, passes_back: Passes) -> None:
    """Replaces the contributions that came before."""
    for node in reversed(topological_order([result])):
        for source, value in passes_back(node, gradients[node]):
            gradients[source] = value


def stale(result: Node, gradients: Any, passes_back: Passes) -> None:
    """Reads values that have been changed since: here, the inputs of a * w."""
    for node in reversed(topological_order([result])):
        if node not in gradients:
            continue
        for source, value in passes_back(node, gradients[node]):
            changed = node.name == "multiply" and isinstance(source, Leaf) and len(made_from(node)) == 2
            value = value * 0.25 if changed else value
            add(gradients, source, value)


BUGS: dict[str, Callable[..., None]] = {"lost": lost, "order": impatient, "stale": stale}


@UNIT.task
class Broken(Matches):
    """Three engines, each with one bug: which is which?"""

    name = "broken"

    def vary(self, draw: random.Random) -> None:
        self.x, self.w = draw.choice([1.0, 2.0, 3.0]), draw.choice([0.5, 1.5, -0.5])
        bugs = list(BUGS)
        draw.shuffle(bugs)
        self.bugs = dict(zip("ABC", bugs))

    def given(self) -> dict[str, Any]:
        return {"x": self.x, "w": self.w, "engine": self.engine}

    def engine(self, letter: str) -> Callable[..., None]:
        """One of the three."""
        if letter not in self.bugs:
            raise KeyError(f"the engines are called A, B and C, not {letter!r}")
        bug = BUGS[self.bugs[letter]]

        def engine(result: Node, gradients: Any, passes_back: Passes) -> None:
            bug(result, gradients, passes_back)

        engine.__name__ = f"engine_{letter}"
        return engine

    def right(self) -> dict[str, str]:
        return self.bugs
