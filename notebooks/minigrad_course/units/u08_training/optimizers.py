"""Unit 08: momentum and Adam, written by the student and compared with a reference trajectory."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from minigrad import optim
from minigrad.core.dtypes import float64
from minigrad.ops.creation import asarray
from minigrad.support.table import counted

from ...compare import Difference, difference, plain
from ...feedback import Wrong
from ...tasks import ROUNDS, FunctionTask, Mistake
from ...views.costs import passes
from .about import UNIT
from .training import race

CURVATURES = np.array([1.0, 0.2, 0.001])  # of the bowl whose bottom the reference trajectory goes to


class UpdateTask(FunctionTask):
    """A step of an optimizer as a function of the weights, their gradient, and what is kept from step to step."""

    slips_of = "updated"
    kept: ClassVar[tuple[str, ...]]
    counted: ClassVar[bool] = False  # whether the number of the step is an argument too
    lr: float
    outcome = "optimizer"

    def updated(self, *args: Any) -> tuple[Any, ...]:
        """The new weights, and what is kept, for NumPy arrays."""
        raise NotImplementedError

    def parameters(self) -> list[str]:
        return list(inspect.signature(self.updated).parameters)

    def right(self, *args: Any) -> Any:
        return self.updated(*map(plain, args))

    def wrong(self, known: Mistake) -> Any:
        program = super().wrong(known)
        return np.errstate(all="ignore")(lambda *args: program(*map(plain, args)))

    def given(self) -> dict[str, Any]:
        return {**vars(self), "race": self.race}

    def race(self, momentum: Callable[..., Any], adam: Callable[..., Any]) -> Any:
        """Train the digits with both functions, and with the optimizers of the library."""
        return race({Momentum(self.student): momentum, Adam(self.student): adam})

    def reference(self, parameters: Any) -> Any:
        """The library's optimizer with the same numbers."""
        raise NotImplementedError

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        """Steps of the reference trajectory: the first three, and a later one."""
        w = np.array([draw.choice([-1, 1]) * draw.choice([0.5, 1.2, 1.5, 2.0]) for _ in CURVATURES])
        kept = [np.zeros(3) for _ in self.kept]
        for t in range(1, 13):
            args = [asarray(each, dtype=float64) for each in (w, CURVATURES * w, *kept)] + [t] * self.counted
            if t in (1, 2, 3, 12):
                yield tuple(args)
            w, *kept = self.right(*args)

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def careful(*args: Any) -> Any:
            with np.errstate(all="ignore"):
                return answer(*args)

        super().check(careful, rounds)
        return f"the same as the reference, in every step.{self.counted_launches(careful)}"

    def counted_launches(self, answer: Callable[..., Any]) -> str:
        """How many kernels a step takes for each parameter, beside the library's."""
        args = next(iter(self.cases(random.Random(0))))
        own = passes(answer, *args)
        w = asarray(np.ones(3), requires_grad=True)
        optimizer = self.reference([w])
        for _ in range(2):  # the first step makes arrays
            w.grad = asarray(np.ones(3))
            theirs = passes(optimizer.step)
        return f" It takes {counted(len(own), 'kernel')} for each parameter, and minigrad's own takes {len(theirs)}."

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if not isinstance(yours, tuple | list | None):
            listed = ", ".join(["w", *self.kept])
            raise Wrong(self.name, "it returned one value", f"return all new values, with commas: return {listed}")
        names = [f"the new {name}" for name in ("w", *self.kept)]
        problem = difference(yours, self.right(*args), names, "by the reference")
        return problem or self._nearly(yours, args, names)

    def _nearly(self, yours: Any, args: tuple[Any, ...], names: list[str]) -> Difference | None:
        """A difference that is small, but no rounding."""
        for name, one, other in zip(names, yours, self.right(*args)):
            if not _close(one, other):
                one = np.asarray(plain(one))
                at = int(np.argmax(np.abs(one - other)))
                expected = f"{other[at]:.10f}, by the reference"
                return Difference(f"{name} is wrong at [{at}]", expected, f"{one[at]:.10f}")
        return None

    def explains(self, known: Mistake, args: tuple[Any, ...], yours: Any) -> bool:
        try:
            return all(map(_close, yours, self.wrong(known)(*args)))
        except Exception:  # a known mistake may fail on some cases
            return False

    def _hint(self, found: list[tuple[tuple[Any, ...], Any, str]]) -> str | None:
        """The hint of a known mistake; where there is none, which of the new values are right."""
        hint = super()._hint(found)
        names = ("w", *self.kept)
        results = [(yours, self.right(*args)) for args, yours, _ in found]
        if hint != self.otherwise or any(yours is None or len(yours) != len(names) for yours, _ in results):
            return hint
        good = [name for i, name in enumerate(names) if all(_close(yours[i], right[i]) for yours, right in results)]
        if not good:
            return hint
        wrong = [name for name in names if name not in good]
        are = "is" if len(good) == 1 else "are"
        return f"{' and '.join(good)} {are} right: look at the lines of {' and '.join(wrong)}"


def _close(one: Any, other: Any) -> bool:
    """Whether two results are equal but for rounding, also to float32."""
    one, other = np.asarray(plain(one)), np.asarray(plain(other))
    return one.shape == other.shape and bool(np.allclose(one, other, 1e-6, 1e-9, equal_nan=True))


@UNIT.task
class Momentum(UpdateTask):
    """`momentum(w, g, v)` returns the new weights and the new velocity."""

    name, kept = "momentum", ("v",)

    def vary(self, draw: random.Random) -> None:
        self.lr, self.beta = draw.choice([0.05, 0.1, 0.2]), draw.choice([0.8, 0.85, 0.9])

    def reference(self, parameters: Any) -> Any:
        return optim.SGD(parameters, self.lr, momentum=self.beta)

    def updated(self, w: Any, g: Any, v: Any) -> Any:
        lr, beta = self.lr, self.beta
        V = beta * v + g
        W = w - lr * V
        return W, V


@UNIT.task
class Adam(UpdateTask):
    """`adam(w, g, m, v, t)` returns the new weights and both new running means."""

    name, kept = "adam", ("m", "v")

    def vary(self, draw: random.Random) -> None:
        self.lr, self.beta1 = draw.choice([0.005, 0.01, 0.02]), draw.choice([0.8, 0.9])
        self.beta2, self.eps, self.decay = draw.choice([0.98, 0.99, 0.999]), 0.001, draw.choice([0.1, 0.2])

    def reference(self, parameters: Any) -> Any:
        return optim.AdamW(parameters, self.lr, (self.beta1, self.beta2), self.eps, self.decay)

    def updated(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        lr, beta1, beta2, eps, decay = self.lr, self.beta1, self.beta2, self.eps, self.decay
        M = beta1 * m + (1 - beta1) * g
        V = beta2 * v + (1 - beta2) * g * g
        m1 = M / (1 - beta1**t)
        v1 = V / (1 - beta2**t)
        root = np.sqrt(v1) + eps
        shrunk = lr * decay * w
        W = w - lr * m1 / root - shrunk
        return W, M, V
