"""Unit 08: momentum and Adam, written by the student and compared with a reference trajectory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from ....core.dtypes import float64
from ....ops.creation import asarray
from ...compare import Difference, difference, plain
from ...feedback import Wrong
from ...tasks import ROUNDS, FunctionTask, mistake
from .about import UNIT
from .training import Options, Update, race

CURVATURES = np.array([1.0, 0.2, 0.001])  # of the bowl whose bottom the reference trajectory goes to
NAMES_OF_NUMPY = {
    "has no attribute 'sqrt'": "minigrad has it as a function: mg.sqrt(v)",
    "no attribute 'pow'": "powers are written **: b ** t",
    "math domain": "math.sqrt takes one number. For arrays: mg.sqrt(v)",
    "only": "math.sqrt takes one number. For arrays: mg.sqrt(v)",
    "float() needs": "math.sqrt takes one number. For arrays: mg.sqrt(v)",
    "division by zero": "t is 1 in the first step, and 1 − β ** 1 is not 0: use t, not t - 1",
}


class UpdateTask(FunctionTask):
    """A step of an optimizer as a function of the weights, their gradient, and what is kept from step to step."""

    kept: ClassVar[tuple[str, ...]]
    counted: ClassVar[bool] = False  # whether the number of the step is an argument too
    options: Options
    outcome = "optimizer"
    advice: ClassVar[dict[str, str]] = NAMES_OF_NUMPY

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in self.options._asdict().items() if value is not None} | {
            "race": self.race}

    def race(self, momentum: Callable[..., Any], adam: Callable[..., Any]) -> Any:
        """Train the digits with both functions, and with the optimizers of the library."""
        tasks = Momentum(self.student), Adam(self.student)
        return race(*[Update(each.name, function, each.kept, each.counted, each.options)
                      for each, function in zip(tasks, (momentum, adam))])

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        """Steps of the reference trajectory: the first three, and later ones."""
        w = np.array([draw.choice([-1, 1]) * draw.choice([0.5, 1.2, 1.5, 2.0]) for _ in CURVATURES])
        kept = tuple([np.zeros(3) for _ in self.kept])
        for t in range(1, 13):
            args = w, CURVATURES * w, *kept
            if t in (1, 2, 3, 12):
                yield (*[asarray(each, dtype=float64) for each in args], *[t] * self.counted)
            w, *rest = self.right(*args, *[t] * self.counted)
            kept = tuple(rest)

    def check(self, answer: Callable[..., Any], rounds: int = ROUNDS) -> str | None:
        def careful(*args: Any) -> Any:
            copies = [each.copy() if hasattr(each, "copy") else each for each in args]
            with np.errstate(all="ignore"):
                return answer(*copies)

        super().check(careful, rounds)
        return "the same as the reference, in every step."

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        names = ["the new w", *[f"the new {name}" for name in self.kept]]
        if yours is not None and not isinstance(yours, tuple | list):
            listed = ", ".join(["w", *self.kept])
            raise Wrong(self.name, "it returned one value", f"return all new values, with commas: return {listed}")
        return difference(yours, self.right(*args), names, "by the reference")


@UNIT.task
class Momentum(UpdateTask):
    """`momentum(w, g, v)` returns the new weights and the new velocity."""

    name = "momentum"
    kept = ("v",)
    points = 2
    minutes = 8
    otherwise = "two lines: v = beta * v + g, then w = w - lr * v. Return both, w first"

    def vary(self, draw: random.Random) -> None:
        self.options = Options(lr=draw.choice([0.05, 0.1, 0.2]), beta=draw.choice([0.8, 0.85, 0.9]))

    def text(self) -> str:
        return (
            "With **momentum**, a weight has a velocity v, which is 0 at first. A step does two things: v becomes "
            "β · v + g, where g is the gradient; then w becomes w − lr · v, with the new v. `momentum(w, g, v)` "
            f"returns the new w and the new v. **Yours: lr = {self.options.lr}, β = {self.options.beta}.**"
        )

    def after(self, w: Any, v: Any, kept: Any = None) -> tuple[Any, Any]:
        """A step with a velocity; `kept` is returned as the velocity if it is another one."""
        return w - self.options.lr * v, v if kept is None else kept

    def right(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, self.options.beta * v + g)

    @mistake("you step against g alone. The velocity is computed, but the step does not use it: w - lr * v")
    def gradient_alone(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, g, self.options.beta * v + g)

    @mistake("you step with the old velocity: in the first step nothing moves. Compute the new v first")
    def old_velocity(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, v, self.options.beta * v + g)

    @mistake("w is right, but you return the old velocity: the next step would begin without this gradient")
    def old_velocity_returned(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, self.options.beta * v + g, v)

    @mistake("g times (1 − β) belongs to a running mean, as in Adam. A velocity adds all of g")
    def dampened(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, self.options.beta * v + (1 - self.options.beta) * g)

    @mistake("w is right. But here the velocity is a sum of gradients, without lr, so that lr can change later: "
             "v = beta * v + g, and w - lr * v")
    def rate_inside(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, self.options.beta * v + g)[0], self.options.beta * v + self.options.lr * g

    @mistake("the rate belongs to the step, not to the velocity: v = beta * v + g, and w - lr * v")
    def rate_in_velocity(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        new = self.options.beta * v + self.options.lr * g
        return w - new, new

    @mistake("the velocity has the sign of a step: others write v = beta * v - lr * g and w + v. Here v adds gradients "
             "up, and w - lr * v goes against them")
    def velocity_of_steps(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        new = self.options.beta * v - self.options.lr * g
        return w + new, new

    @mistake("the sign of g: the velocity adds gradients up, v = beta * v + g. The minus comes with the step")
    def gradient_subtracted(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, self.options.beta * v - g)

    @mistake("that goes uphill: the step is against the velocity, w - lr * v")
    def uphill(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        new = self.options.beta * v + g
        return w + self.options.lr * new, new

    @mistake("β is missing: without it the velocity forgets nothing, and grows for ever")
    def nothing_forgotten(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, v + g)

    @mistake("β belongs to the old velocity alone: beta * v + g, not beta * (v + g)")
    def both_forgotten(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, self.options.beta * (v + g))

    @mistake("β belongs to the old velocity, not to the new gradient: beta * v + g")
    def gradient_scaled(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, v + self.options.beta * g)

    @mistake("g enters twice: once into the velocity, and once more into the step. (With β on the velocity, that "
             "would be Nesterov's variant.) The step uses the new v alone")
    def gradient_twice(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        new = self.options.beta * v + g
        return self.after(w, new + g, new)

    @mistake("that is Nesterov's variant, which looks one step ahead. Here the step is lr * v, with the new v")
    def nesterov(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        new = self.options.beta * v + g
        return self.after(w, g + self.options.beta * new, new)

    @mistake("the velocity is updated twice in one step: the line v = beta * v + g runs once")
    def updated_twice(self, w: Any, g: Any, v: Any) -> Any:
        w, g, v = map(plain, (w, g, v))
        return self.after(w, self.options.beta * (self.options.beta * v + g) + g)

    @mistake("swapped: the new w comes first, then the new v")
    def swapped(self, w: Any, g: Any, v: Any) -> Any:
        return self.right(w, g, v)[::-1]

    @mistake("the step alone is returned. Return the new weights: w - lr * v")
    def step_alone(self, w: Any, g: Any, v: Any) -> Any:
        w, new = self.right(w, g, v)
        return self.options.lr * new, new


@UNIT.task
class Adam(UpdateTask):
    """`adam(w, g, m, v, t)` returns the new weights and both new running means."""

    name = "adam"
    kept = ("m", "v")
    counted = True
    points = 3
    minutes = 18
    otherwise = "write it line by line as in the text: m, v, then both corrected under new names, then w"

    def vary(self, draw: random.Random) -> None:
        self.options = Options(
            lr=draw.choice([0.005, 0.01, 0.02]), beta1=draw.choice([0.8, 0.9]), beta2=draw.choice([0.98, 0.99, 0.999]),
            eps=0.001, decay=draw.choice([0.1, 0.2]))

    def text(self) -> str:
        o = self.options
        return (
            "**Adam** keeps two running means for each weight: m of the gradient, and v of its square. Both are 0 at "
            "first. In step t (1, 2, 3, ...)\n\n"
            "1. m becomes β₁ · m + (1 − β₁) · g, and v becomes β₂ · v + (1 − β₂) · g²;\n"
            "2. both are too small in the first steps, because they began at 0. The corrected means are "
            "m / (1 − β₁ᵗ) and v / (1 − β₂ᵗ). They are used in this step and not kept;\n"
            "3. w loses lr · (corrected m) / (√(corrected v) + ε), and also lr · decay · w (*weight decay*, of the old "
            "w).\n\n"
            "`adam(w, g, m, v, t)` returns the new w, m and v. `mg.sqrt` is the root. "
            f"**Yours: lr = {o.lr}, β₁ = {o.beta1}, β₂ = {o.beta2}, ε = {o.eps}, decay = {o.decay}.**"
        )

    def means(self, g: Any, m: Any, v: Any) -> tuple[Any, Any]:
        one, two = self.options.beta1, self.options.beta2
        return one * m + (1 - one) * g, two * v + (1 - two) * g * g

    def corrected(self, m: Any, v: Any, t: float) -> tuple[Any, Any]:
        return m / (1 - self.options.beta1**t), v / (1 - self.options.beta2**t)

    def moved(self, w: Any, m: Any, v: Any) -> Any:
        return self.shrunk(w) - self.options.lr * m / (np.sqrt(v) + self.options.eps)

    def shrunk(self, w: Any) -> Any:
        return w * (1 - self.options.lr * self.options.decay)

    def made(self, args: tuple[Any, ...], way: Callable[..., Any]) -> Any:
        """A result from new running means: `way(w, m, v, t)` returns the new weights."""
        w, g, m, v, t = map(plain, args)
        m, v = self.means(g, m, v)
        with np.errstate(all="ignore"):
            return way(w, m, v, t), m, v

    def right(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        return self.made((w, g, m, v, t), lambda w, m, v, t: self.moved(w, *self.corrected(m, v, t)))

    @mistake("the correction is missing: divide m by 1 − β₁ᵗ and v by 1 − β₂ᵗ. Both began at 0, so they are too small "
             "in the first steps")
    def uncorrected(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: self.moved(w, m, v))

    @mistake("m is corrected, and v is not: divide v by 1 − β₂ᵗ too")
    def only_m_corrected(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: self.moved(w, self.corrected(m, v, t)[0], v))

    @mistake("v is corrected, and m is not: divide m by 1 − β₁ᵗ too")
    def only_v_corrected(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: self.moved(w, m, self.corrected(m, v, t)[1]))

    @mistake("in the correction, β is without its power: 1 − β₁ᵗ is 1 - beta1 ** t")
    def without_power(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: self.moved(w, *self.corrected(m, v, 1)))

    @mistake("in the correction, β is multiplied by t. βᵗ is a power: beta1 ** t")
    def times_t(self, *args: Any) -> Any:
        o = self.options
        return self.made(args, lambda w, m, v, t: self.moved(w, m / (1 - o.beta1 * t), v / (1 - o.beta2 * t)))

    @mistake("t is 1 in the first step already: use t, not t + 1")
    def counts_ahead(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: self.moved(w, *self.corrected(m, v, t + 1)))

    @mistake("t is 1 in the first step, and 1 − β⁰ would be 0: use t, not t - 1")
    def counts_from_zero(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: self.moved(w, *self.corrected(m, v, t - 1)))

    @mistake("ε stands outside of the root: mg.sqrt(v) + eps. Inside, ε counts as √ε, which is much larger")
    def eps_inside(self, *args: Any) -> Any:
        def way(w: Any, m: Any, v: Any, t: Any) -> Any:
            m, v = self.corrected(m, v, t)
            return self.shrunk(w) - self.options.lr * m / np.sqrt(v + self.options.eps)

        return self.made(args, way)

    @mistake("ε is added before v is corrected, so that the correction changes ε too. First correct v, then the root, "
             "then + eps")
    def eps_too_early(self, *args: Any) -> Any:
        def way(w: Any, m: Any, v: Any, t: Any) -> Any:
            root = (np.sqrt(v) + self.options.eps) / np.sqrt(1 - self.options.beta2**t)
            return self.shrunk(w) - self.options.lr * self.corrected(m, v, t)[0] / root

        return self.made(args, way)

    @mistake("the root is missing: divide by mg.sqrt(v) + eps, with the corrected v")
    def without_root(self, *args: Any) -> Any:
        def way(w: Any, m: Any, v: Any, t: Any) -> Any:
            m, v = self.corrected(m, v, t)
            return self.shrunk(w) - self.options.lr * m / (v + self.options.eps)

        return self.made(args, way)

    @mistake("brackets: m / mg.sqrt(v) + eps adds ε to the quotient. Write m / (mg.sqrt(v) + eps)")
    def without_brackets(self, *args: Any) -> Any:
        def way(w: Any, m: Any, v: Any, t: Any) -> Any:
            m, v = self.corrected(m, v, t)
            return self.shrunk(w) - self.options.lr * (m / np.sqrt(v) + self.options.eps)

        return self.made(args, way)

    @mistake("that goes uphill: the step is subtracted from w")
    def uphill(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: 2 * self.shrunk(w) - self.moved(w, *self.corrected(m, v, t)))

    @mistake("the weight decay is missing: w also loses lr * decay * w")
    def without_decay(self, *args: Any) -> Any:
        return self.made(args, lambda w, m, v, t: self.moved(w, *self.corrected(m, v, t)) + w - self.shrunk(w))

    @mistake("the weight decay lacks lr: w loses lr * decay * w")
    def decay_without_rate(self, *args: Any) -> Any:
        def way(w: Any, m: Any, v: Any, t: Any) -> Any:
            return self.moved(w, *self.corrected(m, v, t)) - self.shrunk(w) + w * (1 - self.options.decay)

        return self.made(args, way)

    @mistake("the decay is added to the gradient, so it goes through both means and is divided by the root: that is "
             "the older, coupled way. Here w loses lr * decay * w by itself")
    def decay_coupled(self, w: Any, g: Any, *rest: Any) -> Any:
        w, g = plain(w), plain(g)
        found = self.right(w, g + self.options.decay * w, *rest)
        return found[0] + w - self.shrunk(w), *found[1:]

    @mistake("the step uses the old means. Compute the new m and v first: they contain the new gradient")
    def old_means(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        new = self.means(plain(g), plain(m), plain(v))
        with np.errstate(all="ignore"):
            return self.moved(plain(w), *self.corrected(plain(m), plain(v), t)), *new

    @mistake("w is right, but you return the old means: the next step would begin without this gradient")
    def old_means_returned(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        return self.right(w, g, m, v, t)[0], plain(m), plain(v)

    @mistake("the corrected means are for this step only. Return m and v as they were before the correction: give the "
             "corrected ones other names")
    def corrected_returned(self, *args: Any) -> Any:
        w, m, v = self.right(*args)
        return w, *self.corrected(m, v, args[-1])

    @mistake("v is the running mean of g², not of m²")
    def square_of_the_mean(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        w, g, m, v = map(plain, (w, g, m, v))
        m = self.means(g, m, v)[0]
        v = self.options.beta2 * v + (1 - self.options.beta2) * m * m
        return self.moved(w, *self.corrected(m, v, t)), m, v

    @mistake("v is the running mean of g · g: the square is missing")
    def not_squared(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        w, g, m, v = map(plain, (w, g, m, v))
        m = self.means(g, m, v)[0]
        v = self.options.beta2 * v + (1 - self.options.beta2) * g
        with np.errstate(all="ignore"):
            return self.moved(w, *self.corrected(m, v, t)), m, v

    @mistake("the new gradient goes in whole. A running mean takes a share of it: (1 − β₁) · g, and (1 − β₂) · g²")
    def sums(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        w, g, m, v = map(plain, (w, g, m, v))
        m, v = self.options.beta1 * m + g, self.options.beta2 * v + g * g
        return self.moved(w, *self.corrected(m, v, t)), m, v

    @mistake("the shares are swapped: the old mean is multiplied by β, and the new gradient by 1 − β")
    def shares_swapped(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        w, g, m, v = map(plain, (w, g, m, v))
        one, two = self.options.beta1, self.options.beta2
        m, v = (1 - one) * m + one * g, (1 - two) * v + two * g * g
        return self.moved(w, *self.corrected(m, v, t)), m, v

    @mistake("β₁ and β₂ are swapped: β₁ is for m, β₂ for v")
    def betas_swapped(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        o = self.options
        other = Adam(self.student)
        other.options = o._replace(beta1=o.beta2, beta2=o.beta1)
        return other.right(w, g, m, v, t)

    @mistake("the means are updated twice in one step, so the gradient enters twice. Each line runs once")
    def updated_twice(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        w, g, m, v = map(plain, (w, g, m, v))
        return self.right(w, g, *self.means(g, m, v), t)

    @mistake("the step uses g in the place of m: that divides the gradient, but has no momentum")
    def gradient_for_mean(self, w: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
        w, g, m, v = map(plain, (w, g, m, v))
        m, v = self.means(g, m, v)
        return self.moved(w, g, self.corrected(m, v, t)[1]), m, v

    @mistake("the order is w, m, v: the weights come first, then the mean, then the mean of the squares")
    def other_order(self, *args: Any) -> Any:
        w, m, v = self.right(*args)
        return m, v, w

    @mistake("the order is w, m, v: the mean comes before the mean of the squares")
    def means_swapped(self, *args: Any) -> Any:
        w, m, v = self.right(*args)
        return w, v, m
