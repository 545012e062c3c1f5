"""The log of a training run: numbers at each step, and from time to time small pictures of weights.

`Dashboard` writes one while a loop runs, and `training` draws it: one run, or several over each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from .numbers import norm_of, shape_text, short

PICTURES, PARAMETERS = 24, 6  # the most moments with pictures, and parameters
COPIED = 1_000_000  # numbers: a copy of a small model takes less time than what is shown of it
ROWS, COLUMNS, SIDE = 8, 10, 15.0  # of the picture of a parameter: squares, and the side of one, at most
HIGH, ACROSS = 54.0, 100.0  # the room for a picture: all of a training is to be in a window of 900 pixels
FIRST, SECOND = 150.0, 265.0  # the places of the two pictures of a row
Points = list[tuple[float, float]]  # (step, value)


class Seen(NamedTuple):
    """What is shown of an array: its norm, and its squares, which are means of blocks if it is large.

    A single number is shown as text: a colour would hide its value.
    """

    shape: str
    norm: float
    squares: Any

    @classmethod
    def of(cls, array: Any) -> Seen:
        """What is shown of an array.

        >>> Seen.of(np.ones((32, 4))).about, Seen.of(np.array(-0.5)).about
        ('norm 11.3', '−0.5')
        """
        return cls(shape_text(array), norm_of(array), matrix_of(array, ROWS, COLUMNS))

    @property
    def about(self) -> str:
        """Its norm; of a single number, the number."""
        return short(self.squares.item()) if self.squares.size == 1 else f"norm {short(self.norm)}"

    def draw(self, drawing: Drawing, x: float, y: float, name: str) -> float:
        """Draw the squares; the strongest colour is that of the largest of them.  Returns the height."""
        rows, columns = self.squares.shape
        side = min(SIDE, HIGH / max(rows, 1), ACROSS / max(columns, 1))
        heat_map(drawing, x, y, self.squares, side, largest([self.squares]), f"{name}: {self.about}")
        return side * rows


class Weights(NamedTuple):
    """The parameters of a model at one moment, by name, matrices first, and the gradients of those that have one.

    They are arrays, or what is shown of them.
    """

    values: dict[str, Any] = {}
    gradients: dict[str, Any] = {}
    step: int = 0

    @classmethod
    def of(cls, model: Module, step: int = 0, most: float = COPIED) -> Weights:
        """Copies of the arrays of a model; if it has more than `most` numbers, only what is shown of them.

        A copy would take as much memory as the model does.
        """
        known = sorted(model.named_parameters(), key=lambda each: each[1].ndim < 2)
        keep: Callable[[Any], Any] = np.array if sum([p.size for _, p in known]) <= most else Seen.of
        gradients = {name: keep(p.grad.numpy()) for name, p in known if p.grad is not None}
        return cls({name: keep(p.detach().numpy()) for name, p in known}, gradients, step)

    def seen(self) -> Weights:
        """What is shown of them."""
        values, gradients = [
            {name: each if isinstance(each, Seen) else Seen.of(each) for name, each in arrays.items()}
            for arrays in self[:2]
        ]
        return Weights(values, gradients, self.step)

    def numbers(self) -> dict[str, float]:
        """The norm of the gradient, if there is one, and the parameters that are single numbers.

        >>> model = mg.nn.Linear(1, 1)
        >>> model(mg.ones((1, 1))).sum().backward()
        >>> found = Weights.of(model).numbers()
        >>> [*found], round(found["norm of the gradient"], 3)
        (['norm of the gradient', 'weight', 'bias'], 1.414)
        """
        norms = [each.norm if isinstance(each, Seen) else norm_of(each) for each in self.gradients.values()]
        arrays = {name: getattr(each, "squares", each) for name, each in self.values.items()}
        single = {name: float(array.item()) for name, array in arrays.items() if array.size == 1}
        return ({"norm of the gradient": norm_of(norms)} if norms else {}) | single


class Log:
    """What is logged of one training run.

    >>> log = Log.of([{"loss": 1.0}, {"loss": 0.5}])
    >>> log.numbers, log.last
    ({'loss': [(1.0, 1.0), (2.0, 0.5)]}, 2)
    """

    def __init__(self) -> None:
        self.numbers: dict[str, Points] = {}
        self.weights: dict[int, Weights] = {}  # by step
        self.latest = Weights()  # a picture of every step would take too long
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
        """Log a step: numbers by name; of a model the norm of its gradient, the parameters that are single numbers, and
        from time to time its pictures."""
        read = {name: _number(name, value) for name, value in values.items()}
        if model is not None:
            self.latest = Weights.of(model, step)
            first, *others = self.weights or [step - 1]  # they are at equal distances
            if step >= [first, *others][-1] + (others[0] - first if others else 1):
                self.weights[step] = self.latest.seen()
            if len(self.weights) > PICTURES:
                self.weights = dict(islice(self.weights.items(), None, None, 2))
            read = {**read, **self.latest.numbers(), **read}
        for name, value in read.items():
            self.numbers.setdefault(name, []).append((float(step), value))
        self.last = max(self.last, int(step))

    def moments(self) -> dict[int, Weights]:
        """The weights of some steps, and of the last one that had a model."""
        return self.weights and {**self.weights, self.latest.step: self.latest.seen()}


def _number(name: str, value: Any) -> float:
    """A logged value as a number."""
    if isinstance(value, (bool, int, float)) or getattr(value, "size", 0) == 1:
        return float(value)
    what = f"a tensor of shape {value.shape}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
    raise ConversionError(f"Dashboard.log: {name} is {what}", expect="a number, or a tensor with one element",
                          hint=f"{name}={name}.mean(), or model=")
