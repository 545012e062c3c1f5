"""Unit 07: forward mode as the student writes it: a rule for tangents, and a Jacobian column by column."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minigrad.autodiff.forward import jvp
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.ops.elementwise import tanh
from minigrad.ops.joining import stack
from minigrad.support.table import counted

from ...compare import Difference, plain
from ...counting import Passes
from ...feedback import Wrong, written
from ...tasks import ROUNDS, FunctionTask, ValueTask
from .about import UNIT
from .tangents import moving


@UNIT.task
class MulJvp(FunctionTask):
    name = "mul_jvp"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield 3.0, -2.0, 5.0, 7.0
        yield 3.0, -2.0, 5.0, 0.0
        yield tuple([draw.choice([-1, 1]) * draw.choice([2, 3, 4, 6]) / 2 for _ in range(4)])

    def given(self) -> dict[str, Any]:
        return {"moving": moving}

    def right(self, a: Any, b: Any, da: Any, db: Any) -> Any:
        return da * b + a * db

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if yours is None:
            raise Wrong(self.name, "it returned None", "a function gives back only the value after `return`")
        if isinstance(yours, tuple | list):
            hint = "one number: what a contributes and what b contributes, added. The engine computes a * b itself"
            raise Wrong(self.name, f"it returned {written(yours)}, not one tangent\n  in {self._call(args)}", hint)
        return super().judge(yours, args)


@UNIT.task
class Direction(ValueTask):
    """A tangent, by hand, through two operations."""

    name = "direction"

    def vary(self, draw: random.Random) -> None:
        self.a, self.da, self.db = draw.sample([3, 5, 7, 11], 3)  # with these, all known mistakes differ
        self.b, self.factor = -draw.choice([2, 4]), draw.choice([29, 34, 38])

    def right(self) -> int:
        return self.da * self.b + self.a * self.db + self.factor * self.da


@UNIT.task
class Columns(FunctionTask):
    name = "columns"

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        w = asarray([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
        yield (lambda x: w @ x), asarray([1.0, 2.0, -1.0])
        yield (lambda x: tanh(w.T @ x)), asarray([0.1, -0.3])
        yield (lambda x: x * x.sum()), asarray([1.0, 2.0])
        yield (lambda x: x * asarray([1.0, 2.0, 3.0, 4.0])), asarray([2.0])

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def measured(f: Any, x: Tensor) -> Any:
            before = x.tolist()
            with Passes(f) as passes:
                found = _rows(answer(passes, x))
            if x.tolist() != before:
                hint = "`v = x` is another name for the same tensor: begin with v = mg.zeros(x.size)"
                raise Wrong(self.name, "your function has changed x", hint)
            self._by_forward_mode(passes, x, found, self.right(f, x))
            return found

        super().check(measured, rounds)
        return "a pass of forward mode for each number of x, and no backward pass"

    def _by_forward_mode(self, passes: Passes, x: Tensor, yours: Any, right: Any) -> None:
        """Raise `Wrong` for the right Jacobian in another way."""
        if np.shape(yours) != right.shape or not np.allclose(yours, right, atol=0.05):
            return
        if passes.backward:
            hint = "mg.jvp(f, (x,), (v,)) is a pass of forward mode: call it once for each number of x"
            problem = f"the numbers are right, but by {counted(passes.backward, 'backward pass', 'backward passes')}"
            raise Wrong(self.name, problem, hint)
        if not passes.forward:
            hint = "mg.jvp(f, (x,), (v,)) gives the exact tangent, with no small step"
            raise Wrong(self.name, "the numbers are about right, but no pass of forward mode ran", hint)
        if passes.forward != x.size:
            hint = "a loop over the numbers of x, with one mg.jvp in it. mg.jacobian does all of them at once"
            ran = counted(passes.forward, "pass", "passes")
            raise Wrong(self.name, f"the numbers are right, but by {ran} for {x.size} numbers of x", hint)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        return "it returned None, not a matrix" if yours is None else super().judge(yours, args)

    def _call(self, args: tuple[Any, ...]) -> str:
        return f"columns(f, {written(args[1])}), where f(x) has {args[0](args[1]).size} numbers"

    def right(self, f: Any, x: Tensor) -> Any:
        moves = map(asarray, np.eye(x.size, dtype=np.float32))
        return stack([jvp(f, (x,), (v,))[1] for v in moves], axis=1).numpy()


def _rows(found: Any) -> Any:
    """A matrix as NumPy's, from a tensor, an array, or a list of rows."""
    rows = isinstance(found, list | tuple)
    return np.array([np.asarray(plain(row)) for row in found]) if rows else plain(found)


@UNIT.task
class FewestPasses(ValueTask):
    """The fewest passes for the whole Jacobian of four functions."""

    name = "fewest_passes"

    def vary(self, draw: random.Random) -> None:
        self.weights, self.side = draw.choice([5130, 2410, 8970]), draw.choice([16, 32, 48])
        self.few, self.many = draw.choice([3, 4, 6]), draw.choice([200, 500, 800])
        self.wide = draw.random() < 0.5  # whether C has more outputs than inputs
        self.inputs_of_c, self.outputs_of_c = (self.few, self.many)[:: 1 if self.wide else -1]
        self.outputs_of_b = self.side**2

    def right(self) -> list[int]:
        return [1, 1, self.few, 1]
