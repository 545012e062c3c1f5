"""The climax of unit 02: one buffer and its views, what filters find in digits, and a network that reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import nn
from minigrad.core.tensor import Tensor
from minigrad.data import digits
from minigrad.ops.creation import asarray
from minigrad.ops.elementwise import maximum
from minigrad.ops.losses import cross_entropy
from minigrad.viz.flipbook import Flipbook

from ...digits import Trained, trained
from ...feedback import Misused
from ...swapping import Swapped
from .convolutions import convolution

KERNELS = {  # bright above dark, bright left of dark, two diagonals
    "lower edges": [[1, 1, 1], [0, 0, 0], [-1, -1, -1]], "right edges": [[1, 0, -1], [1, 0, -1], [1, 0, -1]],
    "strokes /": [[-1, -1, 2], [-1, 2, -1], [2, -1, -1]],
    "strokes \\": [[2, -1, -1], [-1, 2, -1], [-1, -1, 2]],
}
SHOWN = (0, 1, 2, 3)  # digits of the test set
EPOCHS, BATCH, RATE, MAPS = 6, 64, 0.3, 6


class Reader(nn.Module):
    """A convolution of 3 × 3, the larger of each number and 0, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.windows, self.last = nn.Conv2d(1, MAPS, 3), nn.Linear(MAPS * 36, 10)

    def forward(self, images: Any) -> Any:
        found = maximum(self.windows(images.reshape(len(images), 1, 8, 8)), 0.0)
        return self.last(found.reshape(len(images), MAPS * 36))


def train(swapped: Swapped | None = None) -> Trained:
    """Train the network on the digits, with the views that are in the engine now."""
    return trained(Reader, cross_entropy, RATE, EPOCHS, BATCH, swapped)


def first_digits() -> Tensor:
    """The pictures that are shown: (4, 8, 8), with numbers from 0 to 1."""
    images = digits()[1].arrays[0]
    return asarray(images.reshape(-1, 8, 8)[list(SHOWN)])


def see(convolve: Callable[..., Any]) -> Flipbook:
    """Digits, their windows, and what four filters find in them, by the student's convolution."""
    pictures, filters = first_digits(), asarray(np.array(list(KERNELS.values()), "f"))
    found, expected = convolve(pictures, filters), (len(SHOWN), 6, 6, len(KERNELS))
    shape = getattr(found, "shape", None)
    if shape != expected:
        raise Misused("convolve", f"returned shape {shape}, not {expected}", "check it first")
    return convolution(pictures.numpy(), KERNELS, asarray(found).numpy())
