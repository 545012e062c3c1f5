"""Unit 05: a network that needs the student's four rules, and a picture of its training."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import nn, optim, random
from ....core.mode import no_grad
from ....data import digits
from ....ops.creation import asarray
from ....ops.elementwise import maximum, sigmoid
from ....viz.drawing import Axes, Drawing
from ....viz.flipbook import Flipbook, Page

STEPS, HIDDEN, RATE, SEED = 80, 32, 1.0, 0
COLUMNS, TILE = 30, 15.0  # of the wall of test digits


class Network(nn.Module):
    """Two layers: matrix products, sums with a broadcast row, the larger of h and 0, a sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, HIDDEN), nn.Linear(HIDDEN, 10)

    def forward(self, images: Any) -> Any:
        return sigmoid(self.second(maximum(self.first(images), 0.0)))


def train() -> Flipbook:
    """Train the network on the digits with the rules that are in the engine now."""
    (images, labels), (shown, answers) = [each.arrays for each in digits()]
    inputs, targets = asarray(images.reshape(-1, 64)), asarray(np.eye(10, dtype="f")[labels])
    random.seed(SEED)
    network = Network()
    optimizer, losses = optim.SGD(network.parameters(), lr=RATE), []
    read = [_read(network, shown)]
    with np.errstate(all="ignore"):  # with a wrong rule the numbers may overflow
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = ((network(inputs) - targets) ** 2).sum() / len(labels)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.item()))
    read.append(_read(network, shown))
    right = [int((each == answers).sum()) for each in read]
    title = f"{right[0]} of {len(answers)} digits read before the training, {right[1]} after it"
    return Flipbook(title, [[Page(_drawn(losses, shown.reshape(-1, 8, 8), answers, read), f"{title}.")]], words=title)


def _read(network: Network, images: Any) -> Any:
    with no_grad(), np.errstate(all="ignore"):
        return network(asarray(images.reshape(-1, 64))).argmax(1).numpy()


def _drawn(losses: list[float], images: Any, answers: Any, read: list[Any]) -> Drawing:
    """The loss of each step; below it all test digits twice, with those that are read wrongly framed."""
    wide, wall = COLUMNS * TILE, len(images) // COLUMNS * TILE
    drawing = Drawing(wide, 130 + 2 * (wall + 34))
    drawing.heading(40, 12, "the loss, step by step")
    finite = [each for each in losses if np.isfinite(each)] or [1.0]
    axes = Axes(drawing, (0, 20, wide, 100), (1, STEPS), (0, max(finite)))
    axes.curve([(float(i), each) for i, each in enumerate(losses, 1)], "back", thick=2.4)
    for half, name in enumerate(("before", "after")):
        top, right = 146 + half * (wall + 34), int((read[half] == answers).sum())
        drawing.heading(0, top, f"{name} the training: {right} of {len(answers)} right, the others framed")
        for i, (image, wrong) in enumerate(zip(images, read[half] != answers)):
            _digit(drawing, i % COLUMNS * TILE, top + 10 + i // COLUMNS * TILE, image, bool(wrong))
    return drawing


def _digit(drawing: Drawing, x: float, y: float, image: Any, wrong: bool) -> None:
    side = (TILE - 3) / 8
    ink = "".join(f"M{x + j * side:.1f} {y + i * side:.1f}h{side:g}v{side:g}h-{side:g}z"
                  for i, j in np.argwhere(image > 0.5 * image.max()))
    drawing.shape(ink, "bad" if wrong else "ink")
    if wrong:
        drawing.rect(x - 1, y - 1, TILE - 1, TILE - 1, "none", "bad", thick=1.2, round=1)
