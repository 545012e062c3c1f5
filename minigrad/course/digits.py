"""Trains a network on the digits, with the student's own code in the engine."""

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
    """How many digits of the test set a network reads correctly."""

    author: str
    right: int
    shown: int
    swapped: Swapped | None

    def __repr__(self) -> str:
        own = "" if self.swapped is None else f" with {self.swapped.name}, called {self.swapped.calls:,} times,"
        return f"{self.author}:{own} {self.right} of {self.shown} digits read ({100 * self.right / self.shown:.1f} %)"


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


def train_digits(swapped: Swapped | None = None, epochs: int = 5) -> Trained:
    """Train a small network on the digits, and count how many digits of the test set it reads."""
    train, test = digits()
    images, labels = _tensors(train)
    random.seed(SEED)
    model = nn.Sequential(Products(64, HIDDEN), Gate(), Products(HIDDEN, 10))
    optimizer = optim.SGD(model.parameters(), lr=RATE)
    with np.errstate(all="ignore"):  # with a wrong rule the numbers may overflow
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
