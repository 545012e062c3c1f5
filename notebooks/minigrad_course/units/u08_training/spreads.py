"""How the spread of activations changes through ten layers, for several scales of the weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minigrad import nn
from minigrad import random as mg_random
from minigrad.core.mode import no_grad
from minigrad.core.tensor import Tensor
from minigrad.ops.elementwise import maximum, tanh
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.numbers import short

SCALES, INPUTS, LAYERS, EXAMPLES = (0.02, 0.05, 0.08, 0.1, 0.14, 0.2), 100, 10, 200
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda x: x, "relu": lambda x: maximum(x, 0.0), "tanh": tanh}
ROW, LEFT, MIDDLE, HALF, DECADE = 24.0, 60.0, 330.0, 200.0, 64.0


def through(scale: float, activation: str) -> list[float]:
    """The spread (the root of the mean square) of the input and of each layer's output."""
    mg_random.seed(0)
    x, found = mg_random.normal((EXAMPLES, INPUTS)), []
    with no_grad():
        for _ in range(LAYERS + 1):
            found.append(float(np.sqrt(np.mean(np.square(x.numpy(), dtype=np.float64)))))
            layer = nn.Linear(INPUTS, INPUTS, bias=False)
            nn.init.normal_(layer.weight, std=scale)
            x = ACTIVATIONS[activation](layer(x))
    return found


def spreads() -> Flipbook:
    """The spread of ten layers as bars, with a slider for the scale of the weights.

    >>> print(spreads().text())
    Weights of spread 0.05, no activation: the spread goes from 1 to 0.000973.
    """
    pages = [[_page(scale, name)] for name in ACTIVATIONS for scale in SCALES]
    knobs = (Knob("activation", tuple(ACTIVATIONS), choice=True),
             Knob("spread of the weights", tuple(map(short, SCALES)), 1))
    return Flipbook(f"{LAYERS} layers of {INPUTS} inputs", pages, knobs, words=pages[1][0].say)


def _page(scale: float, activation: str) -> Page:
    found = through(scale, activation)
    drawing = Drawing(600, ROW * (LAYERS + 1) + 30)
    drawing.text(MIDDLE, 12, "← smaller than 1 · spread · larger than 1 →", anchor="middle", fill="quiet")
    drawing.path([(MIDDLE, 20), (MIDDLE, 20 + ROW * len(found))], "line", thick=1.6)
    for i, spread in enumerate(found):
        y = 26 + ROW * i
        wide = float(np.clip(DECADE * np.log10(max(spread, 1e-12)), -HALF, HALF))
        colour = "good" if 0.5 <= spread <= 2 else "bad"
        fill = "leaf-fill" if colour == "good" else "back-fill"
        drawing.text(LEFT + 20, y + 12, "input" if not i else f"layer {i}", anchor="end", fill="quiet")
        drawing.rect(MIDDLE + min(wide, 0), y, abs(wide) + 1, ROW - 8, fill, colour)
        drawing.text(MIDDLE + HALF + 14, y + 12, short(spread))
    words = {"none": "no activation", "relu": "relu after each layer", "tanh": "tanh after each layer"}[activation]
    said = f"Weights of spread {short(scale)}, {words}: the spread goes from {short(found[0])} to {short(found[-1])}."
    return Page(drawing, said)
