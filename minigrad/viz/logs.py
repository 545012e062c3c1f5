"""The log of a training run: numbers at each step, and from time to time small pictures of weights.

`Dashboard` writes one while a loop runs, and `training` draws it: one run, or several over each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor
from ..nn.module import Module
from ..support.errors import ConversionError
from ..support.table import counted
from ..support.words import shown
from .numbers import cells_of, norm_of, shape_text, short

PICTURES, PARAMETERS = 24, 6  # the most moments with pictures, and parameters
HIGH, ACROSS, SIDE = 54.0, 100.0, 15.0  # the room for a picture: all is to be in a window of 900 pixels; of a square
FIRST, SECOND = 150.0, 265.0  # the places of the two pictures of a row


class Seen(NamedTuple):
    """What is shown of an array: its norm, and its heat map, whose squares are means of blocks if it is large.

    A single number is shown as text: a colour would hide its value.
    """

    shape: str
    norm: float
    single: float | None
    cells: str

    @classmethod
    def of(cls, array: Any) -> Seen:
        """What is shown of an array.

        >>> Seen.of(mg.ones((32, 4)).numpy()).about, Seen.of(mg.asarray(-0.5).numpy()).about
        ('norm 11.3', '−0.5')
        """
        with np.errstate(over="ignore", invalid="ignore"):  # of a run that diverged
            return cls(shape_text(array), norm_of(array), array.item() if array.size == 1 else None, cells_of(array))

    @property
    def about(self) -> str:
        """Its norm; of a single number, the number."""
        return f"norm {short(self.norm)}" if self.single is None else short(self.single)


class Weights(NamedTuple):
    """What is shown of the parameters of a model at one moment, by name, matrices first, and of their gradients.

    Copies would take as much memory as the model does.
    """

    values: dict[str, Seen] = {}
    gradients: dict[str, Seen] = {}  # of those that have one
    step: int = 0

    @classmethod
    def of(cls, model: Module, step: int = 0) -> Weights:
        """The weights of a model as they are now."""
        known = sorted(model.named_parameters(), key=lambda each: each[1].ndim < 2)
        gradients = {name: Seen.of(p.grad.numpy()) for name, p in known if p.grad is not None}
        return cls({name: Seen.of(p.detach().numpy()) for name, p in known}, gradients, step)

    def numbers(self) -> dict[str, float]:
        """The norm of the gradient, if there is one, and the parameters that are single numbers.

        >>> model = mg.nn.Linear(1, 1)
        >>> model(mg.ones((1, 1))).sum().backward()
        >>> found = Weights.of(model).numbers()
        >>> [*found], round(found["norm of the gradient"], 3)
        (['norm of the gradient', 'weight', 'bias'], 1.414)
        """
        norms = [each.norm for each in self.gradients.values()]
        single = {name: each.single for name, each in self.values.items() if each.single is not None}
        return ({"norm of the gradient": norm_of(norms)} if norms else {}) | single


class Log:
    """What is logged of one training run.

    >>> log = Log.of([{"loss": 1.0}, {"loss": 0.5}])
    >>> log.numbers, len(log.steps)
    ({'loss': {1: 1.0, 2: 0.5}}, 2)
    """

    def __init__(self) -> None:
        self.numbers: dict[str, dict[int, float]] = {}  # by name and step
        self.weights: dict[int, Weights] = {}  # by step
        self.steps = set[int]()

    @classmethod
    def of(cls, run: Any) -> Log:
        """The log of a run: a `Dashboard`, what `mg.train.fit` returns, or the losses of all steps."""
        if isinstance(run, Log):
            return run
        run = run.tolist() if getattr(run, "ndim", 0) == 1 else run
        if not isinstance(run, Sequence) or isinstance(run, str) or not run:
            raise ConversionError(f"training: {shown(run)} is not the log of a run with steps",
                                  expect="a Dashboard, what mg.train.fit returns, or losses in a list")
        log = cls()
        for step, row in enumerate(run, 1):
            log.record(step, row if isinstance(row, Mapping) else {"loss": row})
        return log

    def record(self, step: int, values: Mapping[str, Any], model: Module | None = None) -> None:
        """Log a step: numbers by name; of a model the norm of its gradient, the parameters that are single numbers, and
        its pictures, of which those of the first and the last step and some between them stay.

        A number that is logged again at a step, as by a run that was resumed, replaces what it was there.
        """
        read, step = {name: _number(name, value) for name, value in values.items()}, index(step)
        if model is not None:
            self.weights[step] = Weights.of(model, step)
            read = {**read, **self.weights[step].numbers(), **read}
            known = sorted(self.weights)
            if len(known) > PICTURES:  # without one whose neighbours are closest to each other
                _, spare, _ = min(zip(known, known[1:], known[2:]), key=lambda three: three[2] - three[0])
                del self.weights[spare]
        for name, value in read.items():
            self.numbers.setdefault(name, {})[step] = value
        self.steps.add(step)


def steps_of(logs: Iterable[Log]) -> str:
    """How many steps were logged, and which one is the last if it is not the one of this number, counted from 1 or 0.

    >>> log, other = Log(), Log()
    >>> for step in range(2):
    ...     log.record(100 + 100 * step, {"loss": 0.5})
    ...     other.record(step, {"loss": 0.5})
    >>> steps_of([log]), steps_of([other]), steps_of([Log.of([0.5])])
    ('2 steps up to step 200', '2 steps', '1 step')
    """
    steps = {step for log in logs for step in log.steps}
    last = max(steps, default=0)
    return counted(len(steps), "step") + f" up to step {last:,}" * (last not in (len(steps), len(steps) - 1))


def _number(name: str, value: Any) -> float:
    """A logged value as a number."""
    found = value.item() if getattr(value, "size", 0) == 1 else value
    if isinstance(found, (bool, int, float)):
        return float(found)
    what = f"a tensor of shape {value.shape}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
    raise ConversionError(f"Dashboard.log: {name} is {what}", expect="a number, or a tensor with one element",
                          hint=f"{name}={name}.mean(), or model=")
