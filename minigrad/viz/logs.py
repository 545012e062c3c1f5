"""The log of a training run: numbers at each step, and from time to time small pictures of weights.

`Dashboard` writes one while a loop runs, and `training` draws it: one run, or several over each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import ConversionError
from ..support.words import shown
from .cells import largest, matrix_of
from .drawing import Drawing
from .images import heat_map
from .numbers import norm_of, short, size_text

PICTURES, PARAMETERS = 24, 6  # the most moments with pictures, and parameters
ROWS, COLUMNS, SIDE = 8, 10, 15.0  # of the picture of a parameter: squares, and the side of one, at most
BESIDE = 210.0  # from a parameter to its gradient
Points = list[tuple[float, float]]  # (step, value)


class Weights(NamedTuple):
    """Small pictures of a parameter, and of its gradient if there is one, with what is said of each.

    A single number is drawn as text: a colour would hide its value.
    """

    pictures: list[Any]
    about: list[str]

    @classmethod
    def of(cls, *arrays: Any) -> Weights:
        """The pictures of two arrays, the second one may be None: of large ones, the means of blocks.

        >>> Weights.of(np.ones((32, 4)), None).about, Weights.of(np.float32(0.5), np.ones(1)).about
        (['32 × 4, norm 11.3'], ['0.5', '1'])
        """
        known = [array for array in arrays if array is not None]
        said = [short(array.item()) if np.size(array) == 1 else size_text(array) for array in known]
        return cls([matrix_of(array, ROWS, COLUMNS) for array in known], said)

    def draw(self, drawing: Drawing, x: float, y: float, name: str) -> float:
        """Draw the parameter, and on its right its gradient, each with a scale of its own.  Returns the height."""
        rows, columns = self.pictures[0].shape
        if rows * columns == 1:
            for i, value in enumerate(self.about):
                drawing.text(x + i * BESIDE, y + 12, f"{'∂' * i}{name} = {value}", bold=True, room=BESIDE - 12)
            return 24.0
        side = min(SIDE, 72 / rows, 150 / columns)
        drawing.text(x, y + 12, name, bold=True, room=BESIDE - 12)
        for i, (picture, about) in enumerate(zip(*self)):
            drawing.text(x + i * BESIDE, y + 26, about, fill="quiet", room=BESIDE - 12)
            heat_map(drawing, x + i * BESIDE, y + 33, picture, side, largest([picture]), f"{'∂' * i}{name}: {about}")
        return 50 + side * rows


def weights_of(model: Module) -> dict[str, Weights]:
    """The pictures of the parameters of a model, matrices first, and of their gradients."""
    first = sorted(model.named_parameters(), key=lambda each: each[1].ndim < 2)
    return {name: Weights.of(p.detach().numpy(), None if p.grad is None else p.grad.numpy()) for name, p in first}


def gradient_norms(model: Module) -> list[float]:
    """The norm of the gradient of each parameter that has one."""
    return [norm_of(p.grad.numpy()) for p in model.parameters() if p.grad is not None]


class Log:
    """What is logged of one training run.

    >>> log = Log.of([{"loss": 1.0}, {"loss": 0.5}])
    >>> log.numbers, log.last
    ({'loss': [(1.0, 1.0), (2.0, 0.5)]}, 2)
    """

    def __init__(self) -> None:
        self.numbers: dict[str, Points] = {}
        self.weights: dict[int, dict[str, Weights]] = {}  # by step: small pictures of parameters
        self.last = 0

    @classmethod
    def of(cls, run: Any) -> Log:
        """The log of a run: a `Dashboard`, what `mg.train.fit` returns, or the losses of all steps."""
        if isinstance(run, Log):
            return run
        run = run.tolist() if getattr(run, "ndim", 0) == 1 else run
        if not isinstance(run, Sequence) or isinstance(run, str) or not run:
            raise ConversionError(f"training: {shown(run)} is not the log of a run with steps",
                                  expect="an mg.viz.Dashboard, what mg.train.fit returns, or a list of losses")
        log = cls()
        for step, row in enumerate(run, 1):
            log.record(step, row if isinstance(row, Mapping) else {"loss": row})
        return log

    def record(self, step: int, values: Mapping[str, Any], model: Module | None = None) -> None:
        """Log a step: numbers by name, and of a model the norm of its gradient, and from time to time its pictures."""
        read = {name: _number(name, value) for name, value in values.items()}
        if model is not None:
            if norms := gradient_norms(model):
                read["norm of the gradient"] = norm_of(norms)
            first, *others = self.weights or [step - 1]  # they are at equal distances
            if step >= [first, *others][-1] + (others[0] - first if others else 1):
                self.weights[step] = weights_of(model)
            if len(self.weights) > PICTURES:
                self.weights = dict(islice(self.weights.items(), None, None, 2))
        for name, value in read.items():
            self.numbers.setdefault(name, []).append((float(step), value))
        self.last = max(self.last, int(step))


def _number(name: str, value: Any) -> float:
    """A logged value as a number."""
    if isinstance(value, (bool, int, float)) or getattr(value, "size", 0) == 1:
        return float(value)
    what = f"a tensor of shape {value.shape}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
    raise ConversionError(f"Dashboard.log: {name} is {what}", expect="a number, or a tensor with one element",
                          hint=f"{name}={name}.mean(), or model=")
