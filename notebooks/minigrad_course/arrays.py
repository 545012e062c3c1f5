"""Tasks on arrays: gradient rules, functions to compose, and hints for words of NumPy and PyTorch."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from inspect import unwrap
from typing import Any, ClassVar

import numpy as np

import minigrad as mg
from minigrad.core.dtypes import float64
from minigrad.core.emit import Eager
from minigrad.core.mode import switch
from minigrad.core.override import overriding
from minigrad.core.tensor import Tensor
from minigrad.ops.composite import COMPOSED
from minigrad.ops.creation import asarray
from minigrad.support.table import counted

from .compare import Difference, difference, plain
from .feedback import Wrong, written
from .tasks import ROUNDS, FunctionTask, GradientTask, Mistake
from .views.costs import passes

FITTING = {  # the common mistakes that a rule of arrays can make too
    "swapped", "without_g", "swapped_without_g", "first_only", "last_only", "value", "times_out", "rule_of_a_sum",
    "nothing_returned",
}
OF_ONE_INPUT = {"without_g", "value", "times_out", "rule_of_a_sum", "nothing_returned"}


class ArrayRule(GradientTask):
    """A gradient rule of arrays.  A rule of one input may return its gradient with or without a comma."""

    mistakes = tuple([known for known in GradientTask.mistakes if known.name in FITTING])
    source = "by finite differences"  # of the right gradients

    def drawn(self, draw: random.Random, *shapes: tuple[int, ...]) -> tuple[Any, ...]:
        """Arguments of the rule for inputs of these shapes."""
        inputs = [array(draw, shape) for shape in shapes]
        out = asarray(self.forward(*map(plain, inputs)), dtype=float64)
        return array(draw, out.shape), out, *inputs

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        rule = in_brackets(answer) if len(self.inputs()) == 1 else answer
        return f"{super().check(rule, rounds) or ''} {self.measured(rule)}".strip()

    def measured(self, rule: Callable[..., Any]) -> str:
        """Which of its arguments a right rule reads, and how many kernels it takes, beside the library's own."""
        *_, args = self.cases(random.Random(0))
        inputs = [asarray(plain(each), dtype=float64, requires_grad=True) for each in args[2:]]
        out = getattr(mg, self.name.removesuffix("_grad"))(*inputs)
        others = {name: (*args[:i], args[i] * -1.5 + 0.25, *args[i + 1 :]) for i, name in enumerate(self.parameters())}
        read = [name for name, changed in others.items() if self.judge(rule(*changed), args)]
        counts = _counts(passes(rule, *args), "minigrad's own", passes(out.backward, args[0]))
        return f"It reads {', '.join(read)}.{counts}"

    def wrong(self, known: Mistake) -> Any:
        return in_brackets(super().wrong(known)) if len(self.inputs()) == 1 else super().wrong(known)

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        names = self.inputs()
        if not isinstance(yours, tuple | list):
            return f"it returned {written(yours)}, not {len(names)} gradients"
        return difference(yours, self.right(*args), [f"the gradient of {name}" for name in names], self.source)


ADVICE = ArrayRule.advice


class ComposedTask(FunctionTask):
    """A function of tables to compose from primitives.  The composite of the library, `mg.<composite>`, is refused."""

    composite: ClassVar[str]
    advice: ClassVar[dict[str, str]] = ADVICE | {
        "float() needs": "exp, sqrt, ... of minigrad_course work on one number. For tables: mg.exp, mg.sqrt, ...",
        "do not broadcast": "a sum over an axis drops the axis. keepdims=True keeps it: (2, 3) and (2, 1) fit",
        "do not fit into shape": "a sum over an axis drops the axis. keepdims=True keeps it: (2, 3) and (2, 1) fit",
        "'dim'": "minigrad has NumPy's names: axis=-1, and keepdims=True",
        "'keepdim'": "minigrad has NumPy's names: keepdims=True, with an s",
        "'unbiased'": "minigrad has NumPy's names. Or compose it: the mean of the squares of x - mean",
    }

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def refused(*args: Any, **options: Any) -> Any:
            hint = "write it with mg.exp, mg.sqrt, .max, .sum, .mean and arithmetic"
            raise Wrong(self.name, f"mg.{self.composite} is the composite itself", hint)

        def careful(*args: Any) -> Any:
            given = [asarray(each) for each in args]
            composite = overriding(unwrap(COMPOSED[self.composite]), refused)
            with np.errstate(all="ignore"), composite, switch(interpreter=Eager()):
                return answer(*given)

        said = super().check(careful, rounds)
        args = [asarray(each) for each in next(iter(self.cases(random.Random(0))))]
        theirs = passes(getattr(mg, self.composite), *args)
        return f"{said or ''}{_counts(passes(careful, *args), f'mg.{self.composite}', theirs)}".strip()

    def wrong(self, known: Mistake) -> Any:
        return np.errstate(all="ignore")(super().wrong(known))  # some overflow on purpose

    def _call(self, args: tuple[Any, ...]) -> str:
        rows = ", ".join(str([round(float(x), 2) for x in row]) for row in args[0][:3])
        return f"{self.name}, for x of shape {args[0].shape}: {rows}"


def array(draw: random.Random, shape: tuple[int, ...]) -> Tensor:
    """Numbers with one decimal, none of them 0 or 1."""
    numbers = [draw.choice((-1, 1)) * draw.choice((5, 12, 15, 20, 25, 30)) / 10 for _ in range(int(np.prod(shape)))]
    return asarray(np.reshape(numbers, shape), dtype=float64)


def _counts(own: Sequence[Any], other: str, theirs: Sequence[Any]) -> str:
    """How many kernels a program takes, beside another one; nothing where it runs in NumPy."""
    return f" It takes {counted(len(own), 'kernel')}, and {other} takes {len(theirs)}." if own else ""


def in_brackets(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of one input, which returns a tuple of one gradient."""

    def one(*args: Any) -> Any:
        found = rule(*args)
        return found if isinstance(found, tuple | list) and len(found) == 1 else (found,)

    return one
