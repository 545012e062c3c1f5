"""The digits, learnt with the student's own code in the engine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import nn, optim, random
from ..core.mode import no_grad
from ..core.tensor import Tensor
from ..data import TensorDataset, digits
from ..ops.creation import asarray
from ..ops.elementwise import sigmoid
from ..ops.losses import cross_entropy
from .session import SESSION
from .swapping import Swapped

HIDDEN, BATCH, RATE, SEED = 32, 64, 0.5, 0


class Trained(NamedTuple):
    """How well a network reads digits that it has not seen."""

    author: str
    right: int
    shown: int
    swapped: Swapped | None

    def __repr__(self) -> str:
        own = "" if self.swapped is None else f" with {self.swapped.name}, called {self.swapped.calls:,} times,"
        return f"{self.author}:{own} {self.right} of {self.shown} digits read ({100 * self.right / self.shown:.1f} %)"


class Products(nn.Linear):
    """A linear layer that says what it is, each number times its weight, added up: its weights learn by `multiply`.

    With `matmul` in its place the rule of a product would decide next to nothing, and a wrong one would read as well.
    """

    def forward(self, x: Tensor) -> Tensor:
        return (x.reshape(len(x), 1, x.shape[1]) * self.weight).sum(2) + self.bias


class Gate(nn.Module):
    """Each number times how open its gate is: the activation called SiLU, in which `multiply` has two tensors."""

    def forward(self, x: Tensor) -> Tensor:
        return x * sigmoid(x)


def train_digits(swapped: Swapped | None = None, epochs: int = 5) -> Trained:
    """Train a small network on the digits, and say how many of the test set it reads, under the student's name."""
    train, test = digits()
    images, labels = _tensors(train)
    random.seed(SEED)
    model = nn.Sequential(Products(64, HIDDEN), Gate(), Products(HIDDEN, 10))
    optimizer = optim.SGD(model.parameters(), lr=RATE)
    with np.errstate(all="ignore"):  # numbers that grow without end are what a wrong rule makes
        for _ in range(epochs):
            for start in range(0, len(train), BATCH):
                batch = slice(start, start + BATCH)
                optimizer.zero_grad()
                cross_entropy(model(images[batch]), labels[batch]).backward()
                optimizer.step()
    images, labels = _tensors(test)
    with no_grad(), np.errstate(all="ignore"):
        right = int((model(images).argmax(1) == labels).sum().item())
    return Trained(SESSION.author, right, len(test), swapped)


def _tensors(digits: TensorDataset) -> tuple[Tensor, Tensor]:
    images, labels = map(asarray, digits.arrays)
    return images.reshape(len(digits), 64), labels
