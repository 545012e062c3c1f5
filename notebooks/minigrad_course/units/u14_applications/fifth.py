"""Unit 14: a fifth program, to count what it needs that the four do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minigrad as mg
from minigrad import nn
from minigrad.compile.jitted import trace
from minigrad.compile.nodes.graph import Graph


class Recurrent(nn.Module):
    """Reads names letter by letter, and keeps a state."""

    def __init__(self) -> None:
        self.letters, self.cell, self.scores = nn.Embedding(27, 8), nn.GRU(8, 16), nn.Linear(16, 27)

    def forward(self, text: Any) -> Any:
        return self.scores(self.cell(self.letters(text))[0])


def step_of(model: nn.Module, loss: Callable[[Any], Any]) -> Graph:
    """The graph of a training step by Adam."""
    optimizer = mg.optim.Adam(model.parameters())

    def step() -> Any:
        optimizer.zero_grad()
        result = loss(model)
        result.backward()
        optimizer.step()
        return result

    return trace(step)


def _autoencoder() -> Graph:
    images = mg.ones((16, 64))
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 64), nn.Sigmoid())
    return step_of(model, lambda model: ((model(images) - images) ** 2).mean())


def _convolutions() -> Graph:
    images, labels = mg.ones((16, 1, 8, 8)), mg.zeros(16, dtype=mg.int64)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10))
    return step_of(model, lambda model: mg.cross_entropy(model(images), labels))


def _recurrent() -> Graph:
    text = mg.zeros((4, 6), dtype=mg.int64)
    return step_of(Recurrent(), lambda model: mg.cross_entropy(
        model(text[:, :-1]).reshape(-1, 27), text[:, 1:].reshape(-1)))


FIFTH: dict[str, Callable[[], Graph]] = {
    "an autoencoder squeezes the 64 numbers of a digit into 16, and makes 64 of them again": _autoencoder,
    "a network of convolutions reads the digits": _convolutions,
    "a recurrent network reads names letter by letter, and keeps a state": _recurrent,
}
