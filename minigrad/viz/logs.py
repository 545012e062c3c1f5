"""The log of a training run: numbers at each step, and from time to time small pictures of weights and of the data.

`Dashboard` writes one while a loop runs, and `training` draws it: one run, or several over each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import ConversionError
from .cells import largest, matrix_of
from .drawing import Drawing
from .images import heat_map, pictures_of
from .numbers import norm_of, short, size_text

PICTURES, PARAMETERS, IMAGES = 24, 6, 12  # the most moments with pictures, parameters, and images of a name
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
        (['32 × 4, norm 11.3, means of blocks'], ['0.5', '1'])
        """
        known = [array for array in arrays if array is not None]
        pictures = [matrix_of(array, ROWS, COLUMNS) for array in known]
        blocks = [", means of blocks" * (picture.size < np.size(array)) for array, picture in zip(known, pictures)]
        said = [short(array.item()) if np.size(array) == 1 else size_text(array) for array in known]
        return cls(pictures, [about + of_blocks for about, of_blocks in zip(said, blocks)])

    def draw(self, drawing: Drawing, x: float, y: float, name: str, most: float) -> float:
        """Draw the parameter, of which `most` has the strongest colour, and on its right its gradient.  The height.

        A gradient has a scale of its own, because those of a training become smaller and smaller.
        """
        rows, columns = self.pictures[0].shape
        if rows * columns == 1:
            for i, value in enumerate(self.about):
                drawing.text(x + i * BESIDE, y + 12, f"{'∂' * i}{name} = {value}", bold=True, room=BESIDE - 12)
            return 24.0
        side = min(SIDE, 72 / rows, 150 / columns)
        drawing.text(x, y + 12, name, bold=True, room=BESIDE - 12)
        for i, (picture, about) in enumerate(zip(*self)):
            drawing.text(x + i * BESIDE, y + 26, about, fill="quiet", room=BESIDE - 12)
            scale = largest([picture]) if i else most
            heat_map(drawing, x + i * BESIDE, y + 33, picture, side, scale, f"{'∂' * i}{name}: {about}")
        return 50 + side * rows


def weights_of(model: Module) -> dict[str, Weights]:
    """The pictures of some parameters of a model, matrices first, and of their gradients."""
    first = sorted(model.named_parameters(), key=lambda each: each[1].ndim < 2)[:PARAMETERS]
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
        self.images: dict[int, dict[str, Any]] = {}  # by step: pictures of the data
        self.parameters = self.last = 0  # how many the model has; the last step

    @classmethod
    def of(cls, run: Any) -> Log:
        """The log of a run: a `Dashboard`, what `mg.train.fit` returns, or the losses of all steps."""
        if isinstance(run, Log):
            return run
        run = run.tolist() if getattr(run, "ndim", 0) == 1 else run
        if not isinstance(run, Sequence) or isinstance(run, str) or not run:
            raise ConversionError(
                "training: the log of a run has no step" if isinstance(run, (list, tuple))
                else f"training: a {type(run).__name__} is not the log of a run",
                expect="an mg.viz.Dashboard, what mg.train.fit returns, or a list of losses",
            )
        log = cls()
        for step, row in enumerate(run, 1):
            log.record(step, row if isinstance(row, Mapping) else {"loss": row})
        return log

    def record(self, step: int, values: Mapping[str, Any], model: Module | None = None) -> None:
        """Log a step: numbers and images by name, and of a model the norm of its gradient and pictures of weights."""
        images = {name: found for name, value in values.items() if (found := _images(value)) is not None}
        read = {name: _number(name, value) for name, value in values.items() if name not in images}
        if images:
            self.images = _kept({**self.images, step: images})
        if model is not None:
            if norms := gradient_norms(model):
                read["norm of the gradient"] = norm_of(norms)
            self._look_at(step, model)
        for name, value in read.items():
            self.numbers.setdefault(name, []).append((float(step), value))
        self.last = max(self.last, int(step))

    def _look_at(self, step: int, model: Module) -> None:
        """From time to time, log pictures of the parameters."""
        steps = [*self.weights]
        gap = steps[1] - steps[0] if len(steps) > 1 else 1
        if not steps or step >= steps[-1] + gap:
            self.weights, self.parameters = _kept({**self.weights, step: weights_of(model)}), len(model.parameters())

    def most(self, name: str) -> float:
        """The largest number in all pictures of a parameter."""
        return largest([moment[name].pictures[0] for moment in self.weights.values() if name in moment])


def _number(name: str, value: Any) -> float:
    """A logged value as a number."""
    if isinstance(value, (bool, int, float)) or getattr(value, "size", 0) == 1:
        return float(value)
    what = f"a tensor of shape {value.shape}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
    raise ConversionError(f"Dashboard.log: {name} is {what}", expect="a number, or a tensor with one element",
                          hint=f"{name}={name}.mean(), or images of shape (count, height, width), or model=")


def _images(value: Any) -> Any:
    """The first images of a batch; None for a value that is not a batch of images."""
    array = value.detach().numpy() if isinstance(value, Tensor) else value
    return pictures_of(array, IMAGES) if getattr(array, "ndim", 0) > 1 else None


def _kept(moments: dict[int, Any]) -> dict[int, Any]:
    """At most `PICTURES` moments: of more, every second one."""
    if len(moments) <= PICTURES:
        return moments
    return {step: each for i, (step, each) in enumerate(moments.items()) if i % 2 == 0}
