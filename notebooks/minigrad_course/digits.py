"""Trains a network on the digits, with the student's own code in the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minigrad import nn, optim, random
from minigrad.core.mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.data import TensorDataset, digits
from minigrad.ops.creation import asarray
from minigrad.ops.elementwise import sigmoid
from minigrad.ops.losses import cross_entropy
from minigrad.viz.flipbook import Flipbook

from .session import SESSION
from .swapping import Swapped
from .views.readings import reading

HIDDEN, BATCH, EPOCHS, RATE, SEED = 32, 64, 4, 0.5, 0


@dataclass(frozen=True, repr=False)
class Trained:
    """A training: the loss of each batch, and what was read in each digit of the test set before and after."""

    author: str
    swapped: Swapped | None
    losses: list[float]
    before: Any
    after: Any

    @property
    def shown(self) -> int:
        """The number of digits in the test set."""
        return len(self.after)

    @property
    def right(self) -> int:
        """How many of them the trained network reads correctly."""
        return int((self.after == digits()[1].arrays[1]).sum())

    def __repr__(self) -> str:
        own = "" if self.swapped is None else f" with {self.swapped.name}, called {self.swapped.calls:,} times,"
        return f"{self.author}:{own} {self.right} of {self.shown} digits read ({100 * self.right / self.shown:.1f} %)"

    @cached_property
    def picture(self) -> Flipbook:
        """The loss of each batch, and the digits that were read wrongly, before and after the training."""
        images, labels = digits()[1].arrays
        losses = [(float(i), value) for i, value in enumerate(self.losses, 1)]
        return reading(repr(self), losses, images.reshape(-1, 8, 8), labels, self.before, self.after)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {**self.picture._repr_mimebundle_(), "text/plain": repr(self)}


class Products(nn.Linear):
    """A linear layer written with `multiply` and a sum, so that its weights learn by the rule of a product.

    With `matmul` the rule would hardly matter, and a network with a wrong rule would read as well.
    """

    def forward(self, x: Tensor) -> Tensor:
        return (x.reshape(len(x), 1, x.shape[1]) * self.weight).sum(2) + self.bias


class Gate(nn.Module):
    """The activation SiLU, x · sigmoid(x), in which both inputs of `multiply` are tensors."""

    def forward(self, x: Tensor) -> Tensor:
        return x * sigmoid(x)


def tanh_network() -> nn.Module:
    """Two layers with tanh between them, always with the same first weights."""
    random.seed(SEED)
    return nn.Sequential(nn.Linear(64, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 10))


def train_digits(swapped: Swapped | None = None, epochs: int = 5) -> Trained:
    """Train a small network on the digits; a notebook shows the loss, and the digits that it reads wrongly."""
    def network() -> nn.Module:
        return nn.Sequential(Products(64, HIDDEN), Gate(), Products(HIDDEN, 10))

    return trained(network, cross_entropy, RATE, epochs, BATCH, swapped)


def trained(
    network: Callable[[], nn.Module], loss_of: Callable[[Tensor, Tensor], Tensor], rate: float, epochs: int,
    batch: int, swapped: Swapped | None = None,
) -> Trained:
    """Train the network that `network()` makes; `loss_of(outputs, labels)` is the loss of a batch."""
    random.seed(SEED)
    model = network()
    return fitted(model, optim.SGD(model.parameters(), lr=rate), in_batches(batch) * epochs, loss_of, swapped)


def fitted(
    model: nn.Module, optimizer: optim.Optimizer, batches: Iterable[tuple[Tensor, Tensor]],
    loss_of: Callable[[Tensor, Tensor], Tensor] = cross_entropy, swapped: Swapped | None = None,
) -> Trained:
    """Train a model on batches of digits."""
    before, losses = read_by(model), []
    with np.errstate(all="ignore"):  # with a wrong rule the numbers may overflow
        for images, labels in batches:
            losses.append(float(training_step(model, optimizer, images, labels, loss_of).item()))
    return Trained(SESSION.author, swapped, losses, before, read_by(model))


def training_step(
    model: nn.Module, optimizer: optim.Optimizer, images: Tensor, labels: Tensor,
    loss_of: Callable[[Tensor, Tensor], Tensor] = cross_entropy,
) -> Tensor:
    """One step of a training; returns the loss before the step."""
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


def in_batches(size: int = BATCH) -> list[tuple[Tensor, Tensor]]:
    """The training digits in batches, always in the same order."""
    images, labels = _tensors(digits()[0])
    parts = [slice(start, start + size) for start in range(0, len(images), size)]
    return [(images[part], labels[part]) for part in parts]


def read_by(model: nn.Module) -> Any:
    """The digit that a model reads in each picture of the test set."""
    with no_grad(), np.errstate(all="ignore"):
        return model(_tensors(digits()[1])[0]).argmax(1).numpy()


def _tensors(digits: TensorDataset) -> tuple[Tensor, Tensor]:
    images, labels = map(asarray, digits.arrays)
    return images.reshape(len(digits), 64), labels
