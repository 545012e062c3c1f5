"""Unit 01: a network of two layers whose gradient is written by hand, alone and in the place of the engine's."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

import numpy as np

from minigrad import nn
from minigrad.autodiff import reverse
from minigrad.core.tensor import Tensor
from minigrad.data import digits
from minigrad.ops import elementwise
from minigrad.ops.creation import asarray
from minigrad.ops.elementary import atan
from minigrad.ops.functional import relu, silu
from minigrad.ops.losses import cross_entropy
from minigrad.ops.random import DEFAULT_GENERATOR
from minigrad.support.table import counted
from minigrad.viz.curves import curves
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page
from minigrad.viz.images import pictures_of

from ...digits import HIDDEN, Trained, trained
from ...swapping import Swapped, swap, whose
from ...views.readings import wall

STEPS, LONG, RATE = 60, 150, 0.5
TILE, COLUMNS, APART = 9.0, 18, 18.0  # of the walls of digits
LEAST, LEGEND, CHART = 560.0, 190.0, 170.0  # of the picture and its chart
ByHand = Callable[..., Any]


class Activation(NamedTuple):
    """An activation: its code and its slope in NumPy, for Markdown, both also as functions, and the operation."""

    code: str
    slope_code: str
    forward: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    operation: Callable[[Tensor], Tensor]


def sigma(z: Any) -> Any:
    """The sigmoid, in NumPy."""
    return 1 / (1 + np.exp(-z))


TANH = Activation("np.tanh(z)", "1 - np.tanh(z) ** 2", np.tanh, lambda z: 1 - np.tanh(z) ** 2, elementwise.tanh)
SIGMOID = Activation("1 / (1 + np.exp(-z))", "h * (1 - h)", sigma, lambda z: sigma(z) * (1 - sigma(z)),
                     elementwise.sigmoid)
ACTIVATIONS = {
    "relu": Activation("np.maximum(z, 0)", "z > 0", lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0, relu),
    "silu": Activation("z / (1 + np.exp(-z))", "s * (1 + z * (1 - s))`, with `s = 1 / (1 + np.exp(-z))",
                       lambda z: z * sigma(z), lambda z: sigma(z) * (1 + z * (1 - sigma(z))), silu),
    "sin": Activation("np.sin(z)", "np.cos(z)", np.sin, np.cos, elementwise.sin),
    "atan": Activation("np.arctan(z)", "1 / (1 + z * z)", np.arctan, lambda z: 1 / (1 + z * z), atan),
}

# With relu and silu, one forgotten line destroys the network in 150 steps.  With sin and atan, no digit shows it.
OTHER = {"relu": "sin", "silu": "atan", "sin": "relu", "atan": "silu"}


def output(act: Callable[[Any], Any], x: Any, W: Any, b: Any, V: Any, c: Any) -> tuple[Any, Any, Any]:
    """The forward pass: what goes into the activation, what comes out, and the share that each digit gets."""
    z = x @ W + b
    h = act(z)
    scores = np.exp(h @ V + c)
    return z, h, scores / scores.sum(1, keepdims=True)


def gradients(act: Callable[[Any], Any], slope: Callable[[Any], Any], x: Any, t: Any, *weights: Any) -> tuple[Any, ...]:
    """The gradients of W, b, V and c, by hand."""
    z, h, p = output(act, x, *weights)
    do = (p - t) / len(x)
    dz = do @ weights[2].T * slope(z)
    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)


def pair(forward: Activation, backward: Activation) -> ByHand:
    """A gradient by hand in which the forward pass has one activation and the backward pass another.

    The backward pass of tanh is 1 - h * h, as it is written first: it reads the activation's output.
    """
    slope = (lambda z: 1 - forward.forward(z) ** 2) if backward is TANH else backward.slope
    return lambda *args: gradients(forward.forward, slope, *args)


class Network(nn.Module):
    """The same network in the engine.  It keeps the pictures of the batch, which a gradient by hand needs."""

    def __init__(self, activation: Activation) -> None:
        super().__init__()
        self.W, self.b = _weight(64, HIDDEN), asarray(np.zeros(HIDDEN, "f"), requires_grad=True)
        self.V, self.c = _weight(HIDDEN, 10), asarray(np.zeros(10, "f"), requires_grad=True)
        self.activation = activation.operation
        self.images: Any = None

    def forward(self, images: Tensor) -> Tensor:
        self.images = images
        return self.activation(images @ self.W + self.b) @ self.V + self.c


def _weight(rows: int, columns: int) -> Tensor:
    bound = rows**-0.5
    return DEFAULT_GENERATOR.uniform((rows, columns), low=-bound, high=bound, requires_grad=True)


def train(activation: Activation, hand: ByHand | None = None, steps: int = STEPS) -> Trained:
    """Train the network on all digits at once: with the engine's backward pass, or with a gradient by hand.

    The forward pass, the optimizer and the reading are the engine's in both cases.
    """
    made: list[Network] = []
    batch: list[Any] = []

    def network() -> Network:
        made.append(Network(activation))
        return made[0]

    def loss_of(outputs: Tensor, labels: Tensor) -> Tensor:
        batch[:] = [np.eye(10, dtype="f")[labels.numpy()]]
        return cross_entropy(outputs, labels)

    def run(swapped: Swapped | None = None) -> Trained:
        return trained(network, loss_of, RATE, steps, len(digits()[0]), swapped)

    if hand is None:
        return run()
    swapped = Swapped(getattr(hand, "__name__", "by hand"))

    def walk(*args: Any, **options: Any) -> Generator[Any, Any, dict[Any, Tensor]]:
        swapped.calls += 1
        weights = [made[0].W, made[0].b, made[0].V, made[0].c]
        given = [each.detach().numpy().copy() for each in (made[0].images, *weights)]
        found = hand(given[0], batch[0], *given[1:])
        return {weight.node: asarray(np.asarray(g, "f")) for weight, g in zip(weights, found)}
        yield

    with swap(reverse.walk, walk), np.errstate(all="ignore"):
        return run(swapped)


def beside(title: str, runs: Mapping[str, Trained]) -> Flipbook:
    """Several trainings: the loss of each step in one chart, and below it what each network reads."""
    images, labels = digits()[1].arrays
    pictures = pictures_of(images, len(labels))
    width = max(len(runs) * (COLUMNS * TILE + APART) - APART, LEAST)
    drawing, said = Drawing(width, 0), []
    losses = {name.replace("_", " "): list(enumerate(run.losses, 1)) for name, run in runs.items()}
    curves(drawing, (0, 0, width - LEGEND, CHART), losses, "loss of each step")
    for i, (name, run) in enumerate(zip(losses, runs.values())):
        x, wrong = i * (COLUMNS * TILE + APART), run.after != labels
        drawing.heading(x, CHART + 28, f"{run.right} of {run.shown}")
        drawing.text(x, CHART + 46, name, size=12, room=COLUMNS * TILE + APART)
        drawing.height = CHART + 56 + wall(drawing, x, CHART + 56, pictures, wrong.tolist(), COLUMNS, TILE)
        said.append(f"{name}: {run.right} of {run.shown} digits read")
    return Flipbook(title, [[Page(drawing, "Framed digits are read wrongly.")]], words="\n".join(said))


def compared(name: str, new: ByHand) -> Flipbook:
    """A network with a new activation: by the engine, by hand, and with one line forgotten, also with another one."""
    other = OTHER[name]
    ours, theirs = ACTIVATIONS[name], ACTIVATIONS[other]
    return beside(f"tanh becomes {name}", {
        f"{name}, the engine": train(ours, None, LONG),
        f"{name}, {whose(getattr(new, '__name__', 'new'))}": train(ours, new, LONG),
        f"{name}, one line forgotten": train(ours, pair(ours, TANH), LONG),
        f"{other}, one line forgotten": train(theirs, pair(theirs, TANH), LONG),
    })


def changes(old: ByHand, new: ByHand) -> str:
    """The lines that differ between two functions, as a text."""
    one, two = (inspect.getsource(each).splitlines() for each in (old, new))
    lines = [line for line in difflib.ndiff(one[1:], two[1:]) if line[0] in "+-" and line[1:].strip()]
    return "\n".join([*lines, f"{counted(sum(line[0] == '+' for line in lines), 'line')} changed by hand."])
