"""Finds the operation that made the first nan or infinity of a loss.

When a loss is a nan, the step has already written nans into the parameters.  `NanGuard` therefore copies the state from
time to time and keeps the batches since.  After a nan it goes back to the copy and repeats the steps, and checks the
result of every operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..core.debug import debug_nans
from ..core.tensor import Tensor
from ..core.tree import flatten, leaves
from ..nn.module import Module
from ..nn.state import write
from ..ops.random import DEFAULT_GENERATOR
from ..support.errors import ConversionError, NanError
from ..support.table import counted
from ..support.words import a_type


class NanGuard:
    """A training step that raises an error if its loss is not finite, and names the first operation at fault.

    `watch` lists everything that a step changes: models, optimizers, schedules, tensors.  They are copied every `every`
    steps, and the batches since are kept.  On a GPU, losses are read only then, so that steps do not wait for them.

    >>> w = mg.asarray([2.0], requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=1.0)
    >>> def step(x):
    ...     optimizer.zero_grad()
    ...     loss = mg.sqrt(w * x).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> guarded = mg.train.NanGuard(step, [optimizer])
    >>> for x in (1.0, 4.0, 9.0, 1.0):
    ...     _ = guarded(x)
    Traceback (most recent call last):
    minigrad.support.errors.NanError: sqrt made a nan from inputs without one
    ...
    """

    def __init__(self, step: Callable[..., Any], watch: Iterable[Any] = (), every: int = 20) -> None:
        self.step, self.every = step, every
        self.tensors = _once(t for thing in watch for t in _tensors_of(thing))
        self.batches: list[tuple[Any, ...]] = []  # since the copies were made; () for a step without arguments
        self.result: Any = None

    def __call__(self, *batch: Any) -> Any:
        """Run a step."""
        if len(self.batches) >= self.every:
            self.check()
        if not self.batches:
            self.copies = [(t.detach().copy(), _copy(t.grad)) for t in self.tensors]  # type: ignore[attr-defined]
            self.random = DEFAULT_GENERATOR.get_state()
        self.batches.append(batch if self.tensors else ())
        self.result = self.step(*batch)
        loss = loss_of(self.result)
        if isinstance(loss, Tensor) and loss.device.hosted and not math.isfinite(loss.item()):
            self.check()
        return self.result

    def check(self) -> None:
        """Raise an error if the last loss is not finite; otherwise copy the state again."""
        loss = loss_of(self.result)
        value = float(loss.item() if isinstance(loss, Tensor) else loss) if loss is not None else 0.0
        if not math.isfinite(value):
            self._name_the_first(value)
        self.batches = []

    def _name_the_first(self, value: float) -> None:
        steps = len(self.batches)
        if not self.tensors:
            raise NanError(f"the loss is {value}", hint="watch=[model, optimizer] finds the first operation at fault")
        write(self.tensors, [copy for copy, _ in self.copies])
        for tensor, (_, gradient) in zip(self.tensors, self.copies):
            tensor.grad = gradient
        DEFAULT_GENERATOR.set_state(self.random)
        batches, self.batches = self.batches, []
        bad = "a nan" if math.isnan(value) else "an infinity"
        for number, batch in enumerate(batches):
            for i, array in enumerate(flatten(batch, (np.ndarray,))[0]):
                values = array.numpy_copy() if isinstance(array, Tensor) else array
                if values.dtype.kind == "f" and not np.isfinite(values).all():
                    what = f"array {i} of the batch, of shape {array.shape}, holds a nan or an infinity"
                    raise NanError(f"the loss is {value}: {what}", hint="look at the data: mg.isfinite(x).all()")
            try:
                with debug_nans(infinities=math.isinf(value)):
                    self.step(*batch)
            except NanError as error:
                error.add_note(f"{bad} was the loss; found by making step {number + 1} of the last {steps} again")
                raise
        raise NanError(f"the loss is {value}, and was finite when the last {counted(steps, 'step')} ran again",
                       hint="watch=[...] must contain everything that a step changes")


def loss_of(result: Any) -> Any:
    """The loss in the result of a step: the result, the first of several, or the entry 'loss'; otherwise None."""
    if isinstance(result, dict):
        return result.get("loss")
    if isinstance(result, (tuple, list)):
        result = result[0] if result else None
    return result if isinstance(result, float) or (isinstance(result, Tensor) and result.size == 1) else None


def _tensors_of(thing: Any) -> list[Tensor]:
    if isinstance(thing, Module):
        return [t for _, t in thing.named_tensors()]
    if hasattr(thing, "tensors"):
        return list(thing.tensors())
    found = leaves(thing)
    if not found:
        raise ConversionError(f"watch: {a_type(thing)} holds no tensors", expect="models, optimizers, tensors")
    return found


def _copy(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.copy()  # type: ignore[attr-defined, no-any-return]


def _once(tensors: Iterable[Tensor]) -> list[Tensor]:
    return list({id(t): t for t in tensors}.values())
