"""Unit 08: momentum and Adam, written by the student and compared with a reference trajectory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from minigrad import optim
from minigrad.core.dtypes import float64
from minigrad.ops.creation import asarray

from ...compare import Difference, difference, plain
from ...feedback import Wrong
from ...tasks import ROUNDS, FunctionTask
from .about import UNIT
from .training import race

CURVATURES = np.array([1.0, 0.2, 0.001])  # of the bowl whose bottom the reference trajectory goes to
NUMPY_NAMES = {
    "has no attribute 'sqrt'": "minigrad has it as a function: mg.sqrt(v)",
    "float() needs": "math.sqrt takes one number. For arrays: mg.sqrt(v)",
    "for ^": "a power is written ** in Python: beta1 ** t",
    "division by zero": "t is 1 in the first step, and 1 − β ** 1 is not 0: use t, not t - 1",
}


class UpdateTask(FunctionTask):
    """A step of an optimizer as a function of the weights, their gradient, and what is kept from step to step.

    `formulas` computes it, line by line, in the names of the parameters and of the student's numbers.  A known mistake
    replaces some of the formulas: `faults` has their names and the formulas in their place.
    """

    kept: ClassVar[tuple[str, ...]]
    counted: ClassVar[bool] = False  # whether the number of the step is an argument too
    formulas: ClassVar[dict[str, str]]
    lr: float
    outcome = "optimizer"
    advice = NUMPY_NAMES

    def faulty(self, words: Sequence[str], *args: Any) -> Any:
        names = vars(self) | dict(zip(self.parameters(), map(plain, args))) | {"sqrt": np.sqrt}
        with np.errstate(all="ignore"):
            for name, formula in (self.formulas | dict(zip(words[::2], words[1::2]))).items():
                names[name] = eval(formula, {}, names)
        return names["out"]

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
                return answer(*[each.copy() if hasattr(each, "copy") else each for each in args])

        super().check(careful, rounds)
        return "the same as the reference, in every step."

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if yours is not None and not isinstance(yours, tuple | list):
            listed = ", ".join(["w", *self.kept])
            raise Wrong(self.name, "it returned one value", f"return all new values, with commas: return {listed}")
        names = [f"the new {name}" for name in ("w", *self.kept)]
        return difference(yours, self.right(*args), names, "by the reference")


@UNIT.task
class Momentum(UpdateTask):
    """`momentum(w, g, v)` returns the new weights and the new velocity."""

    name, kept = "momentum", ("v",)
    faults = (
        ("W", "w - lr * g",
         "you step against g alone. The velocity is computed, but the step does not use it: w - lr * v"),
        ("W", "w - lr * v",
         "you step with the old velocity: in the first step nothing moves. Compute the new v first"),
        ("out", "W, v", "w is right, but you return the old velocity: the next step would begin without this gradient"),
        ("V", "beta * v + (1 - beta) * g",
         "g times (1 − β) belongs to a running mean, as in Adam. A velocity adds all of g"),
        ("out", "W, beta * v + lr * g",
         "w is right. But here the velocity is a sum of gradients, without lr, so that lr can change later"),
        ("V", "beta * v + lr * g", "W", "w - V",
         "the rate belongs to the step, not to the velocity: v = beta * v + g, and w - lr * v"),
        ("V", "beta * v - lr * g", "W", "w + V",
         "the velocity has the sign of a step: others write v = beta * v - lr * g and w + v. Here v adds gradients up, "
         "and w - lr * v goes against them"),
        ("V", "beta * v - g",
         "the sign of g: the velocity adds gradients up, v = beta * v + g. The minus comes with the step"),
        ("W", "w + lr * V", "that goes uphill: the step is against the velocity, w - lr * v"),
        ("V", "v + g", "β is missing: without it the velocity forgets nothing, and grows for ever"),
        ("V", "beta * (v + g)", "β belongs to the old velocity alone: beta * v + g, not beta * (v + g)"),
        ("V", "v + beta * g", "β belongs to the old velocity, not to the new gradient: beta * v + g"),
        ("W", "w - lr * (V + g)",
         "g enters twice: once into the velocity, and once more into the step. The step uses the new v alone"),
        ("W", "w - lr * (g + beta * V)",
         "that is Nesterov's variant, which looks one step ahead. Here the step is lr * v, with the new v"),
        ("V", "beta * (beta * v + g) + g",
         "the velocity is updated twice in one step: the line v = beta * v + g runs once"),
        ("out", "V, W", "swapped: the new w comes first, then the new v"),
        ("V", "lr * v + g", "W", "w - beta * V", "lr and β are swapped: β is for the velocity, lr for the step"),
        ("V", "g", "the old velocity is not used: v = beta * v + g"),
        ("W", "lr * V", "the step alone is returned. Return the new weights: w - lr * v"),
        ("W", "w - V", "lr is missing in the step: w - lr * v"),
    )

    def vary(self, draw: random.Random) -> None:
        self.lr, self.beta = draw.choice([0.05, 0.1, 0.2]), draw.choice([0.8, 0.85, 0.9])

    def reference(self, parameters: Any) -> Any:
        return optim.SGD(parameters, self.lr, momentum=self.beta)

    def right(self, w: Any, g: Any, v: Any) -> Any:
        return self.faulty((), w, g, v)


@UNIT.task
class Adam(UpdateTask):
    """`adam(w, g, m, v, t)` returns the new weights and both new running means."""

    name, kept = "adam", ("m", "v")
    faults = (
        ("m1", "M", "v1", "V",
         "the correction is missing: divide m by 1 − β₁ᵗ and v by 1 − β₂ᵗ. Both began at 0, so they are too small in "
         "the first steps"),
        ("v1", "V", "m is corrected, and v is not: divide v by 1 − β₂ᵗ too"),
        ("m1", "M", "v is corrected, and m is not: divide m by 1 − β₁ᵗ too"),
        ("m1", "M / (1 - beta1)", "v1", "V / (1 - beta2)",
         "in the correction, β is without its power: 1 − β₁ᵗ is 1 - beta1 ** t"),
        ("m1", "M / (1 - beta1)**t", "v1", "V / (1 - beta2)**t",
         "the power is for β alone: 1 - beta1 ** t, and not (1 - beta1) ** t"),
        ("m1", "M * (1 - beta1**t)", "v1", "V * (1 - beta2**t)",
         "the means are too small at first, so they are divided by 1 − βᵗ, not multiplied"),
        ("m1", "M / (1 - beta1 * t)", "v1", "V / (1 - beta2 * t)",
         "in the correction, β is multiplied by t. βᵗ is a power: beta1 ** t"),
        ("m1", "M / 1 - beta1**t", "v1", "V / 1 - beta2**t",
         "parentheses are missing: / comes before -, so write m / (1 - beta1 ** t)"),
        ("m1", "M / (1 - beta1 ** (t + 1))", "v1", "V / (1 - beta2 ** (t + 1))",
         "t is 1 in the first step already: use t, not t + 1"),
        ("m1", "M / (1 - beta1 ** (t - 1.0))", "v1", "V / (1 - beta2 ** (t - 1.0))",
         "t is 1 in the first step, and 1 − β⁰ would be 0: use t, not t - 1"),
        ("root", "sqrt(v1 + eps)",
         "ε stands outside of the root: mg.sqrt(v) + eps. Inside, ε counts as √ε, which is much larger"),
        ("root", "(sqrt(V) + eps) / sqrt(1 - beta2**t)",
         "ε is added before v is corrected, so that the correction changes ε too. First correct v, then the root, then "
         "+ eps"),
        ("root", "v1 + eps", "the root is missing: divide by mg.sqrt(v) + eps, with the corrected v"),
        ("root", "sqrt(v1)", "ε is missing: divide by mg.sqrt(v) + eps"),
        ("W", "w + lr * m1 / root - shrunk", "that goes uphill: the step is subtracted from w"),
        ("W", "w - lr * m1 / sqrt(v1) + eps - shrunk",
         "parentheses are missing: ε belongs to the divisor, / (mg.sqrt(v) + eps)"),
        ("shrunk", "-lr * decay * w", "the sign of the decay: w loses lr * decay * w, and becomes smaller"),
        ("W", "w - m1 / root - shrunk", "lr is missing in the step: lr * (corrected m) / (root + eps)"),
        ("shrunk", "0", "the weight decay is missing: w also loses lr * decay * w"),
        ("shrunk", "decay * w", "the weight decay lacks lr: w loses lr * decay * w"),
        ("M", "beta1 * m + (1 - beta1) * (g + decay * w)", "V", "beta2 * v + (1 - beta2) * (g + decay * w) ** 2",
         "shrunk", "0",
         "the decay is added to the gradient, so it goes through both means and is divided by the root: that is the "
         "older, coupled way. Here w loses lr * decay * w by itself"),
        ("m1", "m / (1 - beta1**t)", "v1", "v / (1 - beta2**t)",
         "the step uses the old means. Compute the new m and v first: they contain the new gradient"),
        ("out", "W, m, v",
         "w is right, but you return the old means: the next step would begin without this gradient"),
        ("out", "W, m1, v1",
         "the corrected means are for this step only. Return m and v as they were before the correction: give the "
         "corrected ones other names"),
        ("V", "beta2 * v + (1 - beta2) * M * M", "v is the running mean of g², not of m²"),
        ("V", "beta2 * v + ((1 - beta2) * g) ** 2", "the square is of g alone: (1 − β₂) · g², not ((1 − β₂) · g)²"),
        ("M", "beta1 * m + (1 - beta1) * (g + decay * w)", "V", "beta2 * v + (1 - beta2) * (g + decay * w) ** 2",
         "the decay enters twice: into the gradient, and into w. Only w loses lr * decay * w"),
        ("V", "beta2 * v + (1 - beta2) * g", "v is the running mean of g · g: the square is missing"),
        ("M", "beta1 * m + g", "V", "beta2 * v + g * g",
         "the new gradient goes in whole. A running mean takes a share of it: (1 − β₁) · g, and (1 − β₂) · g²"),
        ("M", "(1 - beta1) * m + beta1 * g", "V", "(1 - beta2) * v + beta2 * g * g",
         "the shares are swapped: the old mean is multiplied by β, and the new gradient by 1 − β"),
        ("M", "(1 - beta1) * m + beta1 * g",
         "in m the shares are swapped: the old mean is multiplied by β₁, and the new gradient by 1 − β₁"),
        ("M", "beta2 * m + (1 - beta2) * g", "V", "beta1 * v + (1 - beta1) * g * g",
         "β₁ and β₂ are swapped: β₁ is for m, β₂ for v"),
        ("M", "beta2 * m + (1 - beta2) * g", "V", "beta1 * v + (1 - beta1) * g * g", "m1", "M / (1 - beta2**t)",
         "v1", "V / (1 - beta1**t)", "β₁ and β₂ are swapped: β₁ is for m, β₂ for v"),
        ("M", "beta1 * (beta1 * m + (1 - beta1) * g) + (1 - beta1) * g", "V",
         "beta2 * (beta2 * v + (1 - beta2) * g * g) + (1 - beta2) * g * g",
         "the means are updated twice in one step, so the gradient enters twice. Each line runs once"),
        ("m1", "g", "the step uses g in the place of m: that divides the gradient, but has no momentum"),
        ("out", "M, V, W", "the order is w, m, v: the weights come first, then the mean, then the mean of the squares"),
        ("out", "W, V, M", "the order is w, m, v: the mean comes before the mean of the squares"),
    )

    def vary(self, draw: random.Random) -> None:
        self.lr, self.beta1 = draw.choice([0.005, 0.01, 0.02]), draw.choice([0.8, 0.9])
        self.beta2, self.eps, self.decay = draw.choice([0.98, 0.99, 0.999]), 0.001, draw.choice([0.1, 0.2])

    def reference(self, parameters: Any) -> Any:
        return optim.AdamW(parameters, self.lr, (self.beta1, self.beta2), self.eps, self.decay)

    def right(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        return self.faulty((), w, g, m, v, t)
