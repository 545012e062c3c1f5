"""Unit 09: bytes to predict, and kernels to write: gelu, its gradient, and an activation of the student's own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ...tasks import ValueTask, common, digest, mistake
from .about import UNIT
from .kernel_tasks import BackwardTask, KernelTask
from .kernels import erf, exp, tanh

ROOT_2, ROOT_PI = 2**0.5, np.pi**0.5
SIGMOID = {
    "name 'b'": "write the number that your task has for b",
    "igmoid'": "there is no sigmoid of one number: write it out, 1 / (1 + exp(-z))",
    "σ": "Python has no σ: write it out, 1 / (1 + exp(-z))",
}


class Megabytes(ValueTask):
    """How many MB are read and written; `arrays` of one size count."""

    example = "12.5"
    tolerance = 0.01
    reads: int  # arrays
    writes: int
    count: int  # numbers in an array
    mistakes = common(
        only_written=("that is what is written. What is read counts too", lambda self: self.megabytes(self.writes)),
        only_read=("that is what is read. What is written counts too", lambda self: self.megabytes(self.reads)),
        without_four=("these are millions of numbers. A number has 4 bytes", lambda self: self.right() / 4),
        in_bytes=("these are bytes. A MB is a million bytes", lambda self: self.right() * 1e6),
        float64=("a number has 4 bytes here (float32). 8 bytes would be float64", lambda self: self.right() * 2),
    )

    def megabytes(self, arrays: float) -> float:
        """The size of so many arrays."""
        return round(arrays * 4 * self.count / 1e6, 6)

    def right(self) -> float:
        return self.megabytes(self.reads + self.writes)


@UNIT.task
class EagerBytes(Megabytes):
    """A formula and a size: how many MB does eager mode move?"""

    name = "eager_bytes"
    minutes = 5
    outcome = "traffic"
    otherwise = "one line for each operation: the arrays that it reads, and the one that it writes, 4 bytes a number"
    FORMS = (  # the code, the arrays that are read, and those that are written, one by each operation
        ("mg.tanh(x * {a}) * x + {b}", 5, 4),
        ("mg.exp(x + {a}) * x - {b}", 5, 4),
        ("(x + {a}) * mg.tanh(x) * {b}", 5, 4),
        ("mg.sqrt(x * x + {a}) - x * {b}", 6, 5),
    )

    def vary(self, draw: random.Random) -> None:
        form, self.reads, self.writes = draw.choice(self.FORMS)
        self.code = form.format(a=draw.choice([2, 3, 5]), b=draw.choice([4, 7, 9]))
        self.count = draw.choice([200_000, 300_000, 500_000, 600_000, 800_000])

    def text(self) -> str:
        return (
            f"x has {self.count:,} numbers of 4 bytes. **How many MB does `{self.code}` read and write in eager "
            "mode?** Python takes the operations apart: brackets first, then `*`, then `+` and `-`. An array that an "
            "operation gets twice is read once. Numbers such as 2 cost nothing. A MB is a million bytes."
        )

    def explained(self) -> str:
        return f"{self.writes} operations read {self.reads} arrays and write {self.writes}. One pass would do 1 and 1."

    @mistake("that is one pass: x read, the result written. In eager mode each operation reads and writes")
    def one_pass(self) -> float:
        return self.megabytes(2)

    @mistake("an operation of two arrays reads both. You counted one input for each operation")
    def one_input_each(self) -> float:
        return self.megabytes(2 * self.writes)

    @mistake("a number such as 2 is not an array. Only some of the operations read two arrays")
    def two_inputs_each(self) -> float:
        return self.megabytes(3 * self.writes)


@UNIT.task
class Gelu(KernelTask):
    """`gelu(i, x, out)` writes x · (1 + erf(x / √2)) / 2 in one pass."""

    name = "gelu"
    outcome = "fuse"
    points = 0
    otherwise = "a = x[i], then out[i] = a * (1 + erf(a / sqrt(2))) / 2. Look at the brackets"

    def formula(self, a: Any) -> Any:  # type: ignore[override]
        return a * (1 + erf(a / ROOT_2)) / 2

    @mistake("one factor is missing: that is the probability (1 + erf) / 2, and gelu is x times that")
    def without_x(self, a: Any) -> Any:
        return (1 + erf(a / ROOT_2)) / 2

    @mistake("it is twice too large: divide by 2")
    def without_half(self, a: Any) -> Any:
        return a * (1 + erf(a / ROOT_2))

    @mistake("inside of erf, x is divided by √2")
    def without_root(self, a: Any) -> Any:
        return a * (1 + erf(a)) / 2

    @mistake("inside of erf, x is divided by √2, not multiplied")
    def root_upside_down(self, a: Any) -> Any:
        return a * (1 + erf(a * ROOT_2)) / 2

    @mistake("inside of erf, x is divided by √2, about 1.414, not by 2")
    def by_two(self, a: Any) -> Any:
        return a * (1 + erf(a / 2)) / 2

    @mistake("brackets: (1 + erf(...)) first, then times x")
    def without_brackets(self, a: Any) -> Any:
        return (a * 1 + erf(a / ROOT_2)) / 2

    @mistake("brackets: 1 + erf(...) / 2 halves the erf alone. (1 + erf(...)) / 2 halves both")
    def half_of_erf(self, a: Any) -> Any:
        return a * (1 + erf(a / ROOT_2) / 2)

    @mistake("0.707 is √½, rounded, as it is printed in the lecture. Divide by sqrt(2): then all digits are right")
    def rounded(self, a: Any) -> Any:
        return a * (1 + erf(a * 0.707)) / 2

    @mistake("1 plus erf, not minus: for large x, gelu(x) is nearly x")
    def minus(self, a: Any) -> Any:
        return a * (1 - erf(a / ROOT_2)) / 2

    @mistake("nearly: that is the form with tanh, off by up to 0.0005. This task wants erf")
    def by_tanh(self, a: Any) -> Any:
        return a * (1 + tanh((2 / np.pi) ** 0.5 * (a + 0.044715 * a * a * a))) / 2

    @mistake("that is silu, which uses the sigmoid. gelu uses erf")
    def by_sigmoid(self, a: Any) -> Any:
        return a / (1 + exp(-a))


@UNIT.task
class GeluBackward(BackwardTask):
    """`gelu_backward(i, g, x, dx)` writes the gradient of x for gelu."""

    name = "gelu_backward"
    outcome = "fuse"
    points = 0
    minutes = 15
    otherwise = "two parts: Φ, and x times the slope of Φ. With z = x/√2, this slope is 1/2 · 2/√π · exp(−z²) · 1/√2"

    def value(self, a: Any) -> Any:
        return a * (1 + erf(a / ROOT_2)) / 2

    def slope(self, a: Any) -> Any:
        return (1 + erf(a / ROOT_2)) / 2 + self.second(a)

    def second(self, a: Any) -> Any:
        """x times the slope of (1 + erf(x / √2)) / 2."""
        return a * exp(-a * a / 2) / (ROOT_2 * ROOT_PI)

    @mistake("one part is missing. gelu is x times Φ, and Φ depends on x too: add x times the slope of Φ")
    def first_part(self, g: Any, a: Any) -> Any:
        return g * (1 + erf(a / ROOT_2)) / 2

    @mistake("one part is missing. gelu is x times Φ, and x has the slope 1: add Φ = (1 + erf(x / √2)) / 2")
    def second_part(self, g: Any, a: Any) -> Any:
        return g * self.second(a)

    @mistake("in the second part, the factor x is missing: x times the slope of Φ")
    def without_x(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 + exp(-a * a / 2) / (ROOT_2 * ROOT_PI))

    @mistake("in the second part, 1 / √(2π) is missing: erf has the slope 2/√π · exp(−z²), and z = x/√2")
    def without_constant(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 + a * exp(-a * a / 2))

    @mistake("nearly: erf(x / √2): the chain rule multiplies by the slope of x / √2, which is 1/√2")
    def without_inner(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 + a * exp(-a * a / 2) / ROOT_PI)

    @mistake("nearly: the second part is twice too large. gelu has a half in front of both parts")
    def without_half(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 + 2 * self.second(a))

    @mistake("nearly: z is x/√2, so exp(−z²) is exp(−x²/2)")
    def exponent_not_halved(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 + a * exp(-a * a) / (ROOT_2 * ROOT_PI))

    @mistake("exp(−x²/2) needs its minus. Is the minus inside of the square? -a * a / 2 is right, (-a)**2 / 2 is not")
    def exponent_positive(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 + a * exp(a * a / 2) / (ROOT_2 * ROOT_PI))

    @mistake("plus between the two parts, not minus: a product has the slope u' · v + u · v'")
    def minus(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 - self.second(a))

    @mistake("3.14 is rounded: pi, from the first cell, has all digits")
    def rounded(self, g: Any, a: Any) -> Any:
        return g * ((1 + erf(a / ROOT_2)) / 2 + self.second(a) * (np.pi / 3.14) ** 0.5)

    @mistake("that is the slope of Φ alone. gelu is x times Φ: Φ + x times the slope of Φ")
    def slope_of_phi(self, g: Any, a: Any) -> Any:
        return g * exp(-a * a / 2) / (ROOT_2 * ROOT_PI)

    @mistake("g belongs to both parts: g[i] * (Φ + x · slope), with brackets")
    def g_for_first(self, g: Any, a: Any) -> Any:
        return g * (1 + erf(a / ROOT_2)) / 2 + self.second(a)


@UNIT.task
class StepBytes(Megabytes):
    """How many MB do the two kernels move in one training step of a GPT?"""

    name = "step_bytes"
    minutes = 5
    outcome = "register"
    otherwise = "for each number: 2 arrays of 4 bytes forward, 3 backward. Times the numbers, times the layers"
    reads, writes = 3, 2

    def vary(self, draw: random.Random) -> None:
        self.layers, self.numbers = draw.choice([3, 4, 6, 7]), draw.choice([400_000, 1_000_000, 2_000_000])
        self.count = self.layers * self.numbers

    def text(self) -> str:
        return (
            f"A GPT has {self.layers} layers. In each, gelu gets {self.numbers:,} numbers of 4 bytes. **How many MB do "
            "your two kernels read and write in one training step**, forward and backward together?"
        )

    def explained(self) -> str:
        return f"5 arrays. As operations, gelu and its gradient move 35 arrays: {self.megabytes(35):,g} MB."

    @mistake("that is the forward pass. The backward kernel moves three arrays: g, x and dx")
    def writes_alone(self) -> float:
        return self.megabytes(2)

    @mistake("that is the backward pass. The forward kernel moves two arrays: x and out")
    def backward_alone(self) -> float:
        return self.megabytes(3)

    @mistake("the backward kernel reads two arrays, g and x, and writes one")
    def backward_as_forward(self) -> float:
        return self.megabytes(4)

    @mistake("that is one layer")
    def one_layer(self) -> float:
        return self.right() / self.layers

    @mistake("that is gelu as operations. Yours are two kernels")
    def as_operations(self) -> float:
        return self.megabytes(35)


class Swish:
    """x · sigmoid(b · x), with the student's own b, the same in both tasks."""

    student: str

    def vary(self, draw: random.Random) -> None:
        self.b = random.Random(digest("swish", self.student)).choice([0.6, 0.8, 1.4, 1.6, 1.8, 2.2, 2.5, 3.0])

    def sigmoid(self, a: Any, b: float | None = None) -> Any:
        """The sigmoid of b · x."""
        return 1 / (1 + exp(-(self.b if b is None else b) * a))

    def slope_of_sigmoid(self, a: Any) -> Any:
        """The slope of the sigmoid of b · x, at x."""
        s = self.sigmoid(a)
        return self.b * s * (1 - s)


@UNIT.task
class SwishKernel(Swish, KernelTask):
    """`swish(i, x, out)` writes x · sigmoid(b · x), with the student's own b."""

    name = "swish"
    outcome = "fuse"
    points = 1
    minutes = 5
    otherwise = "a = x[i], then out[i] = a / (1 + exp(-b * a)), with the b of your task"
    advice = SIGMOID

    def text(self) -> str:
        return (
            "swish(x) = x · σ(b · x), where σ(z) = 1 / (1 + exp(−z)) is the sigmoid. minigrad has no operator for it. "
            f"**In your swish, b = {self.b:g}.** Write `swish(i, x, out)`: one pass, 8 bytes for each number."
        )

    def formula(self, a: Any) -> Any:  # type: ignore[override]
        return a * self.sigmoid(a)

    @mistake("b is missing, or 1: your task has a b of its own")
    def silu(self, a: Any) -> Any:
        return a * self.sigmoid(a, 1.0)

    @mistake("mind the sign: σ(z) = 1 / (1 + exp(−z))")
    def other_sign(self, a: Any) -> Any:
        return a * self.sigmoid(a, -self.b)

    @mistake("one factor is missing: that is the sigmoid, and swish is x times that")
    def without_x(self, a: Any) -> Any:
        return self.sigmoid(a)

    @mistake("x is divided by (1 + exp(−b · x)), not multiplied. Or are brackets missing, as in 1 / (1 + ...)?")
    def upside_down(self, a: Any) -> Any:
        return a / self.sigmoid(a)

    @mistake("b is inside of the sigmoid only: x · σ(b · x)")
    def b_outside(self, a: Any) -> Any:
        return self.b * a * self.sigmoid(a)


@UNIT.task
class SwishBackward(Swish, BackwardTask):
    """`swish_backward(i, g, x, dx)` writes the gradient of x for swish."""

    name = "swish_backward"
    outcome = "fuse"
    points = 2
    otherwise = "s = 1 / (1 + exp(-b * a)); the slope is s + a · b · s · (1 − s). Then times g[i]"
    advice = SIGMOID

    def text(self) -> str:
        return (
            f"`swish_backward(i, g, x, dx)` for **your b = {self.b:g}**. The slope of σ(z) is σ(z) · (1 − σ(z)). "
            "The rest is the rule of a product, and the chain rule. One pass, 12 bytes for each number."
        )

    def value(self, a: Any) -> Any:
        return a * self.sigmoid(a)

    def slope(self, a: Any) -> Any:
        return self.sigmoid(a) + a * self.slope_of_sigmoid(a)

    @mistake("b is missing in the second part: by the chain rule, the slope of σ(b · x) is b · σ · (1 − σ)")
    def without_inner(self, g: Any, a: Any) -> Any:
        return g * (self.sigmoid(a) + a * self.slope_of_sigmoid(a) / self.b)

    @mistake("one part is missing. swish is x times σ, and σ depends on x too: add x · b · σ · (1 − σ)")
    def first_part(self, g: Any, a: Any) -> Any:
        return g * self.sigmoid(a)

    @mistake("one part is missing. swish is x times σ, and x has the slope 1: add σ")
    def second_part(self, g: Any, a: Any) -> Any:
        return g * a * self.slope_of_sigmoid(a)

    @mistake("in the second part, the factor x is missing: x · b · σ · (1 − σ)")
    def without_x(self, g: Any, a: Any) -> Any:
        return g * (self.sigmoid(a) + self.slope_of_sigmoid(a))

    @mistake("that is the slope of σ alone. swish is x times σ: σ + x · b · σ · (1 − σ)")
    def without_product(self, g: Any, a: Any) -> Any:
        return g * self.slope_of_sigmoid(a)

    @mistake("that is the gradient for b = 1: your task has a b of its own")
    def of_silu(self, g: Any, a: Any) -> Any:
        s = self.sigmoid(a, 1.0)
        return g * (s + a * s * (1 - s))

    @mistake("g belongs to both parts: g[i] * (σ + ...), with brackets")
    def g_for_first(self, g: Any, a: Any) -> Any:
        return g * self.sigmoid(a) + a * self.slope_of_sigmoid(a)


@UNIT.task
class KernelsNeeded(ValueTask):
    """A kernel for each chain of two operations, for each device, with its gradient: how many?"""

    name = "kernels_needed"
    minutes = 4
    outcome = "operators"
    example = "100"
    otherwise = "chains: each first with each second. Times the devices, times 2: forward and gradient"

    def vary(self, draw: random.Random) -> None:
        self.operations, self.devices = draw.choice([20, 30, 40, 50]), draw.choice([3, 4, 5])

    def text(self) -> str:
        return (
            f"A library has {self.operations} operations that work element by element, on {self.devices} kinds of "
            "devices. You want a fused kernel for **each chain of two** operations (one after the other, also the "
            "same twice), **on each device**, each with **another kernel for its gradient**. How many kernels is this?"
        )

    def right(self) -> int:
        return 2 * self.devices * self.operations**2

    def explained(self) -> str:
        return f"{self.operations}² · {self.devices} · 2, for chains of two, in one number type."

    @mistake("that is without the gradients: each chain needs a kernel for its gradient too")
    def without_gradients(self) -> int:
        return self.devices * self.operations**2

    @mistake("that is for one device")
    def one_device(self) -> int:
        return 2 * self.operations**2

    @mistake("that counts the chains. Each needs a kernel on each device, and one for its gradient")
    def chains(self) -> int:
        return self.operations**2

    @mistake("that is for single operations. In a chain, any operation can follow any other: square their number")
    def single(self) -> int:
        return 2 * self.devices * self.operations

    @mistake("any operation can follow any other: multiply, not add")
    def doubled(self) -> int:
        return 4 * self.devices * self.operations

    @mistake("an operation can follow itself, as in exp(exp(x))")
    def without_itself(self) -> int:
        return 2 * self.devices * self.operations * (self.operations - 1)

    @mistake("the order counts: exp(-x) is not -exp(x)")
    def without_order(self) -> int:
        return self.devices * self.operations * (self.operations - 1)
