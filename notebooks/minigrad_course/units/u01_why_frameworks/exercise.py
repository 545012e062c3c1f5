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
    output,
    sigma,  # noqa: F401  (a mistake in the texts uses it)
    train,
)
from .demo import LINES, ByParts, counts_of
from .layers import layers


class HandWritten(FunctionTask):
    """The gradients of W, b, V and c of a network of two layers, by hand."""

    shared = True

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
        forward, slope = self.activation.forward, self.activation.slope
        z, h, p = output(forward, x, W, b, V, c)
        do = (p - t) / len(x)
        dh = do @ V.T
        dz = dh * slope(z)
        dW, db, dV, dc = x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)
        return dW, db, dV, dc

    def judge(self, yours: Any, args: tuple[Any, ...]) -> Difference | str | None:
        if not isinstance(yours, tuple | list):
            raise Wrong(self.name, f"it returned {written(yours)}, not 4 gradients", "return dW, db, dV, dc")
        return difference(yours, self.right(*args), [f"the gradient of {name}" for name in ("W", "b", "V", "c")])


@UNIT.task
class MlpGrad(HandWritten):
    name = "mlp_grad"

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

    def vary(self, draw: random.Random) -> None:
        self.chosen = draw.choice(list(ACTIVATIONS))

    @property
    def activation(self) -> Activation:
        return ACTIVATIONS[self.chosen]

    def given(self) -> dict[str, Any]:
        return {"activation": self.chosen, "compare": partial(compared, self.chosen), "changes": changes}


@UNIT.task
class StackCounts(ByParts):
    """What two lines make the engine do."""

    name = "stack_counts"
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

    def vary(self, draw: random.Random) -> None:
        self.share, self.times = draw.choice([60, 70, 80, 90]), draw.choice([5, 10, 20])

    def right(self) -> float:
        return round(100 / (100 - self.share + self.share / self.times), 2)

    def read(self, answer: Any) -> Any:
        return round(answer, 2) if isinstance(answer, int | float) else answer

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
