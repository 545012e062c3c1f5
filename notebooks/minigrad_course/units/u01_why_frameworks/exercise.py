"""Unit 01: what the student writes: a gradient by hand, the same with another activation, a sum over machines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from minigrad.compile.look.watching import watching
from minigrad.data import digits
from minigrad.ops.creation import asarray
from minigrad.ops.losses import cross_entropy
from minigrad.optim import SGD
from minigrad.viz.flipbook import Flipbook

from ...compare import Difference, difference
from ...digits import tanh_network
from ...feedback import Wrong, written
from ...swapping import whose
from ...tasks import FunctionTask, ValueTask
from .about import UNIT
from .by_hand import (
    ACTIVATIONS,
    RATE,
    TANH,
    Activation,
    beside,
    changes,
    compared,
    gradients,
    output,
    pair,
    sigma,
    train,
)
from .demo import LINES, ByParts, counts_of
from .layers import layers

BIASES = (  # a mistake in a bias: what stands in the place of .sum(0)
    (".sum(0) * 0", "the biases have gradients too: dz.sum(0) and do.sum(0)"),
    (".mean(0)", "a bias is added to every picture: its gradient is the sum over pictures"),
    ("", "a bias was used once for each picture: add over the pictures, .sum(0)"),
    (".sum()", "each number of a bias has its own gradient: sum over the pictures only, .sum(0)"),
    (".sum(1)", "you have one number for each picture: sum over the pictures, .sum(0)"),
    (".sum(0, keepdims=True)", "a bias has one axis: sum over the pictures without keepdims"),
)


def _slope(change: Callable[..., Any]) -> Callable[..., Any]:
    """A mistake in the slope: `change(z, h)`."""
    return lambda task, *args: task.with_slope(change, *args)


class HandWritten(FunctionTask):
    """The gradients of W, b, V and c of a network of two layers, by hand."""

    outcome = "by_hand"
    faults = (
        ("dV, dc, dW, db", "the order is dW, db, dV, dc: the first layer comes first"),
        ("dW, dV, db, dc", "the order is dW, db, dV, dc: a bias after each matrix"),
        ("dW, dc, dV, db", "db is the gradient of the first bias, dc of the second"),
        ("dW.T, db, dV.T, dc", "each gradient has the shape of its weights: x.T @ dz"),
        ("dW.T, db, dV, dc", "dW has the shape of W: x.T @ dz"),
        ("dW, db, dV.T, dc", "dV has the shape of V: h.T @ do"),
        ("-dW, -db, -dV, -dc",
         "the sign: a gradient says how fast the loss *grows*. The step against it is the optimizer's"),
        ("dW, dV", "the biases have gradients too: dz.sum(0) and do.sum(0)"),
        ("dW, db", "V and c have gradients too: return dW, db, dV, dc"),
        ("dW / n, db / n, dV / n, dc / n",
         "do is divided by len(x) already: the loss is a mean. Do not divide again"),
        ("dW / n, db / n, dV, dc", "do is divided by len(x) already, and dh comes from do. Do not divide again"),
        ("dW * n, db * n, dV * n, dc * n", "do has lost its `/ len(x)`: the loss is the mean over the pictures"),
        ("x.T @ dh, db, dV, dc", "dh comes to h. To W comes dz, which has gone through the slope: x.T @ dz"),
        ("dW, dh.sum(0), dV, dc", "dh comes to h. To b comes dz, which has gone through the slope: dz.sum(0)"),
        *[(f"dW, dz{b}, dV, do{c}", hint) for change, hint in BIASES
          for b, c in ((change, change), (change, ".sum(0)"), (".sum(0)", change))],
    )
    advice = {
        "matmul": "a product p @ q of (n, k) and (k, m) has shape (n, m). Write the shapes beside each line: .T turns",
        "could not be broadcast": "`*` and `-` work place by place, on arrays of one shape. What needs `@`, or `.T`?",
        "name 's'": "compute it in a line above, as the task says: s = ...",
        "is not defined": "compute it in a line above: do, then dh, then dz",
        "'do'": "the line `do = (p - t) / len(x)` has to stay",
    }

    @property
    def activation(self) -> Activation:
        """That of this student."""
        return TANH

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        make = np.random.default_rng(draw.randrange(1000))
        sizes = (5, 4), (4, 3), (3,), (3, 2), (2,)
        x, *weights = (make.normal(size=size) for size in sizes)
        yield x, np.eye(2)[make.integers(0, 2, 5)], *weights

    def right(self, x: Any, t: Any, W: Any, b: Any, V: Any, c: Any) -> Any:
        return gradients(self.activation.forward, self.activation.slope, x, t, W, b, V, c)

    def faulty(self, words: Sequence[str], x: Any, t: Any, *weights: Any) -> Any:
        """What a wrong last line returns, after right ones."""
        z, _, p = output(self.activation.forward, x, *weights)
        do = (p - t) / len(x)
        dh = do @ weights[2].T
        known = {"x": x, "n": len(x), "do": do, "dh": dh, "dz": dh * self.activation.slope(z)}
        return eval(words[0], known | dict(zip(("dW", "db", "dV", "dc"), self.right(x, t, *weights))))

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if not isinstance(yours, tuple | list):
            raise Wrong(self.name, f"it returned {written(yours)}, not 4 gradients", "return dW, db, dV, dc")
        return difference(yours, self.right(*args), [f"the gradient of {name}" for name in ("W", "b", "V", "c")])

    def with_slope(self, change: Callable[[Any, Any], Any], *args: Any) -> Any:
        """The gradients with another slope: `change(z, h)`."""
        forward = self.activation.forward
        return gradients(forward, lambda z: change(z, forward(z)), *args)


@UNIT.task
class MlpGrad(HandWritten):
    name = "mlp_grad"
    wrong_programs = (
        (_slope(lambda z, h: 1 + 0 * z), "the slope of tanh is missing: dz = dh * (1 - h * h)"),
        (_slope(lambda z, h: 1 - h), "1 - h is not the slope of tanh: it is 1 - h * h"),
        (_slope(lambda z, h: 1 - z * z), "the slope reads the output: 1 - h * h, not 1 - z * z"),
        (_slope(lambda z, h: 1 - np.tanh(h) ** 2), "h is already the tanh: 1 - h * h, without a second tanh"),
        (_slope(lambda z, h: h), "multiply dh by the slope, 1 - h * h. You multiplied by the output, h"),
        (_slope(lambda z, h: h * h), "1 is missing: the slope is 1 - h * h"),
        (_slope(lambda z, h: h * (1 - h)), "that is the slope of the sigmoid. This activation is tanh: 1 - h * h"),
    )

    def given(self) -> dict[str, Any]:
        return {"train": self.train}

    def train(self, gradient: Callable[..., Any]) -> Flipbook:
        """Train the engine's network with the gradient by hand, and with its own."""
        runs = {whose(gradient.__name__): train(TANH, gradient), "the engine": train(TANH)}
        return beside("a gradient by hand", runs)


@UNIT.task
class SwappedGrad(HandWritten):
    """The same with another activation."""

    name = "swapped_grad"
    wrong_programs = (
        (lambda self, *args: pair(self.activation, TANH)(*args),
         "the forward pass is new, and dz still has the slope of tanh. This is the forgotten line"),
        (lambda self, *args: pair(TANH, self.activation)(*args),
         "the slope is new, and h is still a tanh. The forward pass has to change too"),
        (lambda self, *args: pair(TANH, TANH)(*args), "that is still the gradient for tanh: two lines have to change"),
        (lambda self, *args: self.with_slope(lambda z, h: self.activation.slope(h), *args),
         "the slope is a function of z, the input of the activation. You gave it h"),
        (_slope(lambda z, h: 1 + 0 * z), "the slope is missing: dz is dh times the slope"),
        (_slope(lambda z, h: h), "dz is dh times the slope, not times the activation"),
        (lambda self, *args: self.with_slope(lambda z, h: self.activation.slope(z) * (1 - h * h), *args),
         "dz has two slopes now: the one of tanh, 1 - h * h, has to go"),
        (_slope(lambda z, h: sigma(z) * (1 - sigma(z))), "that is the slope of the sigmoid. Yours stands in the task"),
        (_slope(lambda z, h: sigma(z) * (1 + h * (1 - sigma(z)))), "the slope is a function of z. One place has h"),
        (_slope(lambda z, h: sigma(h) * (1 + z * (1 - sigma(h)))), "s is a function of z. You gave it h"),
    )

    def vary(self, draw: random.Random) -> None:
        self.chosen = draw.choice(list(ACTIVATIONS))

    @property
    def activation(self) -> Activation:
        return ACTIVATIONS[self.chosen]

    def text(self) -> str:
        return (
            f"**Your activation is {self.chosen}**: tanh goes, `h = {self.activation.code}` comes. Its slope at z is "
            f"`{self.activation.slope_code}`. Write `swapped_grad`: copy `mlp_grad`, and change what has to change."
        )

    def given(self) -> dict[str, Any]:
        return {"activation": self.chosen, "compare": partial(compared, self.chosen), "changes": changes}


def _counts(change: Callable[..., list[int]]) -> Callable[..., Any]:
    """A mistake in the four numbers; None where it changes nothing."""
    return lambda task: None if change(*task.right()) == task.right() else change(*task.right())


@UNIT.task
class StackCounts(ByParts):
    """What two lines make the engine do."""

    name = "stack_counts"
    wrong_programs = (
        (_counts(lambda a, b, c, d: [a, b, c, d + 1]), "x is data: the product has one rule, that of W"),
        (_counts(lambda a, b, c, d: [a, b, d, 0]), "line 2 records nothing: you swapped its two numbers"),
        (_counts(lambda a, b, c, d: [a, b, 0, a]), "one rule for each input that leads to a weight, not for each "
                                                   "operation: which operation has two such inputs, or is there none?"),
    )
    places = (0, "recorded"), (0, "kernels"), (1, "recorded"), (1, "rules")

    def vary(self, draw: random.Random) -> None:
        inside = f"mg.{draw.choice(['tanh', 'exp', 'sigmoid'])}(x @ W{draw.choice(['', ' + b'])})"
        self.line = f"y = ({draw.choice(['3 * ', 'c * ', 'c + 2 * '])}{inside}).sum()"

    def given(self) -> dict[str, Any]:
        return {"stack": self.stack}

    def stack(self, answer: Any) -> Flipbook:
        """The layers of the three lines; right numbers light their places."""
        given = answer if isinstance(answer, list | tuple) and len(answer) == len(self.places) else [...] * 4
        lines = self.line, *LINES[1:]
        return layers(lines, counts_of(*lines), dict(zip(self.places, given)), hidden=True)

    def right(self) -> list[int]:
        counts = counts_of(self.line, *LINES[1:])
        return [getattr(counts[line], what) for line, what in self.places]


@UNIT.task
class WholeGradient(FunctionTask):
    name = "whole_gradient"
    faults = (
        ("sum(g for n, g in parts) / len(parts)",
         "the mean of the parts: a picture of a small part counts more than one of a large part"),
        ("sum(g for n, g in parts)",
         "each part's gradient is a mean, and a sum of means is not a mean: multiply by counts, divide by all"),
        ("sum(n * g for n, g in parts)", "divide by the number of all pictures in the end: the loss is a mean"),
        ("sum(n * g for n, g in parts) / len(parts)",
         "divide by the number of all pictures, not by the number of parts"),
        ("sum(g for n, g in parts) / sum(n for n, g in parts)",
         "you divide by all counts, but each gradient has to be multiplied by its own count first"),
        ("sum(n * g for n, g in parts) / parts[-1][0]",
         "you divide by the count of one part. Divide by the number of all pictures"),
        ("sum(g / n for n, g in parts) / sum(n for n, g in parts)",
         "you divided each gradient by its count: multiply by it"),
        ("sum(g / n for n, g in parts)",
         "each gradient is a mean already. Multiply by its count, and divide by all counts in the end"),
        ("sum(n * g for n, g in parts) / sum(g for n, g in parts)",
         "the count is the first of a pair, and the gradient the second"),
        ("np.mean([g for n, g in parts])",
         "np.mean without axis=0 takes the mean of all numbers. And a part counts by its pictures"),
        ("(sum(n * g for n, g in parts), sum(n for n, g in parts))",
         "divide the sum by the number of pictures, and return one gradient"),
        ("parts[0][1]", "that is the first part only. Is `return` inside of the loop?"),
        ("parts[-1][1]", "that is the last part only: add in each turn, total = total + ..."),
    )

    def faulty(self, words: Sequence[str], parts: Any) -> Any:
        return eval(words[0], {"parts": parts, "np": np})

    def cases(self, draw: random.Random) -> Iterable[tuple[Any, ...]]:
        yield ([(1, np.array([10.0, 0.0])), (3, np.array([2.0, 4.0]))],)
        make = np.random.default_rng(draw.randrange(1000))
        yield ([(int(make.integers(1, 9)), make.normal(size=3)) for _ in range(4)],)

    def right(self, parts: Sequence[tuple[int, Any]]) -> Any:
        return sum(count * each for count, each in parts) / sum(count for count, _ in parts)

    def given(self) -> dict[str, Any]:
        return {"train": self.train}

    def train(self, gradient: Callable[..., Any], whole: Callable[..., Any]) -> Flipbook:
        """Train on four workers with unequal parts: a gradient by hand on each, then `whole` for each weight."""
        sizes = (1000, 300, 100, 37)
        ends = np.cumsum([0, *sizes])

        def by_parts(x: Any, t: Any, *weights: Any) -> Any:
            found = [gradient(x[start:end], t[start:end], *weights) for start, end in pairwise(ends)]
            return [whole(list(zip(sizes, each))) for each in zip(*found)]

        return beside("four workers", {"four workers": train(TANH, by_parts), "one worker": train(TANH)})


@UNIT.task
class StepGain(ValueTask):
    """How much faster is a step?"""

    name = "step_gain"
    faults = (
        ("times", "only the kernels are that much faster. The rest takes as long as before"),
        ("(share * times + rest) / 100",
         "you averaged the factors. Add times instead: the old rest, and the new time of the kernels"),
        ("rest + share / times", "that is the new time, of 100 ms. How many times as fast is that?"),
        ("100 / (share + rest / times)", "you made the Python part faster, and left the kernels as they were"),
        ("share * times / 100",
         "a share times a factor is not a time. Take 100 ms: the kernels' part becomes shorter, the rest stays"),
        ("(rest + share / times) / 100",
         "that is the new time, as a part of the old one. How many times as fast is that?"),
        ("(share - share / times) / 100",
         "that is the time that is saved, as a part of the old one. 1 divided by what is left"),
        ("100 / rest", "the kernels still take some time: a part of their old time"),
    )

    def faulty(self, words: Sequence[str], *args: Any) -> Any:
        return round(eval(words[0], {"share": self.share, "times": self.times, "rest": 100 - self.share}), 2)

    def vary(self, draw: random.Random) -> None:
        self.share, self.times = draw.choice([60, 70, 80, 90]), draw.choice([5, 10, 20])

    def right(self) -> float:
        return round(100 / (100 - self.share + self.share / self.times), 2)

    def read(self, answer: Any) -> Any:
        return round(answer, 2) if isinstance(answer, int | float) else answer

    def explained(self) -> str:
        return f"and with infinitely fast kernels it would be {100 / (100 - self.share):.4g} times: the rest is left."

    def given(self) -> dict[str, Any]:
        return {"measure": self.measure}

    def measure(self, batch: int = 64) -> str:
        """The share of kernels in a training step on this machine, and what faster kernels would gain."""
        images, labels = digits()[0].arrays
        x, t = asarray(images[:batch]).reshape(batch, 64), asarray(labels[:batch])
        model = tanh_network()
        optimizer = SGD(model.parameters(), lr=RATE)

        def step() -> None:
            optimizer.zero_grad()
            cross_entropy(model(x), t).backward()
            optimizer.step()

        step()
        whole = min(_seconds(step) for _ in range(20))
        kernels = min(_in_kernels(step) for _ in range(20))
        share = min(kernels / whole, 0.99)
        gain = 1 / (1 - share + share / self.times)
        return (f"A step with {batch} pictures takes {whole * 1e6:,.0f} µs here, {share:.0%} of it in kernels. "
                f"With kernels {self.times} times as fast, it would be {gain:.1f} times as fast.")


def _seconds(step: Callable[[], None]) -> float:
    begin = perf_counter()
    step()
    return perf_counter() - begin


def _in_kernels(step: Callable[[], None]) -> float:
    with watching(frames=False, keep=False) as calls:
        step()
    return sum(call.end - call.begin for call in calls)
