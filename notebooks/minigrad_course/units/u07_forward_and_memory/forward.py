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
from ...tasks import ROUNDS, FunctionTask, ValueTask, mistake
from .about import UNIT
from .tangents import moving
from .wrong import by_formula


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

    slips = {
        "first_only": (" + a * db", ""),
        "second_only": ("da * b + ", ""),
        "step_end": ("da * b + a * db", "(a + da) * (b + db)"),
        "swapped": ("da * b + a", "a * da + b"),
        "product": ("da * b + a * db", "da * db"),
        "value": ("da * b + a * db", "a * b"),
        "without_tangents": ("da * b + a * db", "a + b"),
        "rule_of_a_sum": ("da * b + a * db", "da + db"),
        "minus": ("b +", "b -"),
        "whole_step": ("da * b + a * db", "(a + da) * (b + db) - a * b"),
    }

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
    mistakes = by_formula(
        ("da*b+a*db", "that is the product alone. a is used a second time: add what that use contributes"),
        ("factor*da", "that is the second use of a alone: add how fast the product a * b moves"),
        ("da*b+factor*da", "b moves too: its part of the product is a · db"),
        ("a*db+factor*da", "in the product a moves too: its part there is da · b"),
        ("da*b", "that is one of three parts: b moves too, and a is used a second time"),
        ("a*db", "that is one of three parts: a moves too, and is used a second time"),
        ("a*b+factor*a", "that is the value of y. How fast does it move?"),
        ("a*da+b*db+factor*da", "in the product each tangent goes with the *other* factor: da · b + a · db"),
        ("da*db+factor*da", "in a product the speeds are not multiplied with each other: da · b + a · db"),
        ("da*b+-1*a*db+factor*da", "both parts of the product count with a plus: da · b + a · db"),
        ("da*b+a*db+da*db+factor*da",
         "that is the change over a whole second, with da · db in it. How fast does y move at the start?"),
        ("da*b+a*db+factor", "the second use of a moves at da, not at 1"),
        ("da*b+a*db+factor*a", "the second use of a moves at da. The value of a does not count there"),
        ("b+factor", "that is the gradient of y with respect to a. It does not contain the speeds"),
    )

    def vary(self, draw: random.Random) -> None:
        self.a, self.da, self.db = draw.sample([3, 5, 7, 11], 3)  # with these, all known mistakes differ
        self.b, self.factor = -draw.choice([2, 4]), draw.choice([29, 34, 38])

    def right(self) -> int:
        return self.da * self.b + self.a * self.db + self.factor * self.da

    def explained(self) -> str:
        moved = self.da * self.b + self.a * self.db
        return f"{moved} from the product, {self.factor * self.da} from {self.factor} * a. Nothing was kept."


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

    @mistake
    def transposed(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x).T

    @mistake
    def values(self, f: Any, x: Tensor) -> Any:
        return np.stack([f(x).numpy()] * x.size, axis=1)

    @mistake
    def all_at_once(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x).sum(axis=1)

    @mistake
    def pair(self, f: Any, x: Tensor) -> Any:
        return np.stack([f(x).numpy(), self.right(f, x).sum(axis=1)])

    @mistake
    def ones_each(self, f: Any, x: Tensor) -> Any:
        return np.stack([self.right(f, x).sum(axis=1)] * x.size, axis=1)

    @mistake
    def first_only(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x)[:, 0]

    @mistake
    def one_column(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x)[:, :1]

    @mistake
    def last_only(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x)[:, -1]

    @mistake
    def not_cleared(self, f: Any, x: Tensor) -> Any:
        return np.cumsum(self.right(f, x), axis=1)

    @mistake
    def times_x(self, f: Any, x: Tensor) -> Any:
        return self.right(f, x) * x.numpy()


def _rows(found: Any) -> Any:
    """A matrix as NumPy's, from a tensor, an array, or a list of rows."""
    rows = isinstance(found, list | tuple)
    return np.array([np.asarray(plain(row)) for row in found]) if rows else plain(found)


@UNIT.task
class FewestPasses(ValueTask):
    """The fewest passes for the whole Jacobian of four functions."""

    name = "fewest_passes"
    mistakes = by_formula(
        ("1 outputs_of_b outputs_of_c 1",
         "that is reverse mode for all. Where there are fewer inputs than outputs, forward mode is cheaper"),
        ("weights 1 inputs_of_c 1",
         "that is forward mode for all. Where there are fewer outputs than inputs, reverse mode is cheaper"),
        ("weights outputs_of_b many 1", "that is the dearer mode for each: take the smaller of the two numbers"),
        ("weights outputs_of_b few*many 1",
         "a pass computes a whole row or a whole column, not one entry: do not multiply inputs by outputs"),
        ("weights 1 few 1", "B, C and D are right. A has a single output: reverse mode needs one pass"),
        ("1 outputs_of_b few 1", "A, C and D are right. B has a single input, the angle: forward mode needs one pass"),
        ("1 side few 1", "A, C and D are right. B has a single input, the angle: forward mode needs one pass"),
        ("1 1 many 1", "A, B and D are right. In C you took the larger number of passes"),
        ("1 1 1 1", "A, B and D are right. In C, each of the inputs (or outputs) takes its own pass"),
        ("1 1 few few",
         "A, B and C are right. D needs one direction, not the whole matrix: how many passes is that?"),
        ("1 1 few many",
         "A, B and C are right. D needs one direction, not the whole matrix: how many passes is that?"),
        ("1 1 many many", "A and B are right. C: take the smaller number of passes. D: only one direction"),
    )

    def vary(self, draw: random.Random) -> None:
        self.weights, self.side = draw.choice([5130, 2410, 8970]), draw.choice([16, 32, 48])
        self.few, self.many = draw.choice([3, 4, 6]), draw.choice([200, 500, 800])
        self.wide = draw.random() < 0.5  # whether C has more outputs than inputs
        self.inputs_of_c, self.outputs_of_c = (self.few, self.many)[:: 1 if self.wide else -1]
        self.outputs_of_b = self.side**2

    def right(self) -> list[int]:
        return [1, 1, self.few, 1]

    def explained(self) -> str:
        mode = "forward" if self.wide else "reverse"
        return f"A: reverse mode. B: forward mode. C: {mode} mode. D: one jvp, whatever the sizes."
