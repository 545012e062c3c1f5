"""`fit`, a ready training loop; early stopping; and the history, which prints as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from ..core.mode import no_grad, switch
from ..core.tensor import Tensor
from ..nn.module import Module
from ..nn.state import check_complete
from ..support.errors import ConversionError
from ..support.table import as_table
from ..support.words import a_type, shown, whole
from .metrics import Mean
from .nans import NanGuard
from .progress_bar import progress


class History(list[dict[str, float]]):
    """A dict of numbers for each epoch.  A name selects all numbers of that name; it prints as a table.

    >>> history = mg.train.History([{"loss": 2.0, "accuracy": 0.5}, {"loss": 1.0, "accuracy": 0.75}])
    >>> history["loss"]
    [2.0, 1.0]
    >>> history
    epoch   loss  accuracy
        1      2       0.5
        2      1      0.75
    """

    def __getitem__(self, key: Any) -> Any:
        return [row[key] for row in self if key in row] if isinstance(key, str) else super().__getitem__(key)

    def __repr__(self) -> str:
        names = list(dict.fromkeys(name for row in self for name in row))
        cells = [[f"{row[name]:.4g}" if name in row else "" for name in names] for row in self]
        return as_table(("epoch", *names), [[str(i), *row] for i, row in enumerate(cells, 1)], left=0)


class EarlyStopping:
    """Decides when to stop: when a number has not improved for more than `patience` calls.

    `name` selects one of several numbers.  `mode` says whether less ("min") or more ("max") is better, and `min_delta`
    is the smallest improvement that counts.  With a `model`, its best state is kept, and `restore()` loads it.

    >>> stop = mg.train.EarlyStopping(patience=1)
    >>> [stop.after(loss) for loss in (3.0, 2.0, 2.5, 2.1)], stop.best, stop.best_at
    ([False, False, False, True], 2.0, 2)
    """

    def __init__(self, patience: int = 5, name: str = "val_loss", mode: str = "min", min_delta: float = 0.0,
                 model: Module | None = None) -> None:
        if mode not in ("min", "max"):
            raise ConversionError(f"EarlyStopping: mode is min or max, not {mode!r}")
        self.patience, self.name, self.min_delta, self.model = patience, name, abs(min_delta), model
        self.sign = 1.0 if mode == "min" else -1.0
        self.best, self.best_at, self.looks = self.sign * math.inf, 0, 0
        self._state: dict[str, Tensor] | None = None

    def after(self, numbers: Any) -> bool:
        """Whether to stop, after the next number (or the dict of numbers with that name)."""
        if isinstance(numbers, dict):
            if self.name not in numbers:
                raise ConversionError(f"EarlyStopping: there is no number named {self.name!r}",
                                      expect=", ".join(numbers))
            numbers = numbers[self.name]
        value = float(numbers)
        self.looks += 1
        if value * self.sign < self.best * self.sign - self.min_delta:
            state = None if self.model is None else self.model.state_dict()
            self.best, self.best_at, self._state = value, self.looks, state
        return self.looks - self.best_at > self.patience

    def state_dict(self) -> dict[str, Any]:
        """The state, to continue training later, with the best state of the model."""
        return {"best": self.best, "best_at": self.best_at, "looks": self.looks, "model": self._state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        names = self.state_dict()
        check_complete(state, names, "an EarlyStopping")
        self.best, self.best_at, self.looks, self._state = (state[name] for name in names)

    def restore(self) -> None:
        """Load the best state into the model."""
        if self.model is not None and self._state is not None:
            self.model.load_state_dict(self._state)


def fit(
    step: Callable[..., Any], batches: Iterable[Any], epochs: int = 1, *, validate: Callable[[], Any] | None = None,
    stop: EarlyStopping | None = None, watch: Iterable[Any] = (), callbacks: Iterable[Any] = (),
    model: Module | None = None, quiet: bool = False,
) -> History:
    """Call `step(*batch)` for each batch, for some epochs, with a progress bar, means and a history.

    `step` makes a whole training step and returns the loss, or a dict of numbers by name; jit it.  After each epoch
    `validate()` returns more numbers, recorded as `val_...`, and `stop` decides whether to end.  `watch` is for
    `NanGuard`, which finds the operation that made a nan.  Each of the `callbacks` gets the number of steps, the result
    of `step`, and the `model` if there is one: `callback.log(7, loss=..., model=...)`, or without such a method
    `callback(7, loss=..., model=...)`.  It gets the numbers of each validation in the same way.

    >>> w = mg.asarray([4.0], requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.25)
    >>> def step(x):
    ...     optimizer.zero_grad()
    ...     loss = ((w - x) ** 2).sum()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> mg.train.fit(step, [2.0, 2.0], epochs=3, watch=[optimizer], quiet=True)["loss"]
    [2.5, 0.15625, 0.009765625]
    """
    history, guarded, count = History(), NanGuard(step, watch), 0
    loggers = [getattr(callback, "log", callback) for callback in callbacks]
    for callback in loggers:
        if not callable(callback):
            raise ConversionError(f"fit: a callback is a function, or has a method `log`, not {shown(callback)}")
    if model is not None and not isinstance(model, Module):
        raise ConversionError(f"fit: model is a module, not {shown(model)}")
    if whole(epochs, 0) is None:
        raise ConversionError(f"fit: epochs is an integer, 0 or more, not {shown(epochs)}")
    given = {} if model is None else {"model": model}
    with switch():  # an interrupt leaves the modes unchanged
        for epoch in range(1, epochs + 1):
            means: dict[str, Mean] = {}
            for batch in (bar := progress(batches, f"epoch {epoch}/{epochs}", quiet=quiet)):
                numbers = {name: _alone(value) for name, value in _by_name(guarded(*_arguments(batch))).items()}
                count += 1
                for name, value in numbers.items():
                    _mean(means, name, value).add(value, _examples(batch))
                bar.show(**means)
                for log in loggers:
                    log(count, **numbers, **given)
            guarded.check()
            row = {name: mean.value for name, mean in means.items()}
            if not row:
                raise ConversionError(
                    "fit: there are no batches", hint="a generator is empty after one epoch: use a list"
                )
            if validate is not None:
                found = {f"val_{name}": float(value) for name, value in _by_name(validate()).items()}
                for log in loggers:
                    log(count, **found, **given)
                row |= found
            history.append(row)
            if stop is not None and stop.after(row):
                break
    return history


def evaluate(model: Module, function: Callable[..., Any], batches: Iterable[Any]) -> dict[str, float]:
    """The means of the results of `function(*batch)`, by name, with the model in evaluation mode, without gradients.

    The function returns means over a batch; batches are weighted by their number of examples, the first dimension.

    >>> model = mg.nn.Dropout(0.5)
    >>> mg.train.evaluate(model, lambda x: {"mean": model(x).mean()}, [mg.ones(4), mg.zeros(4)])
    {'mean': 0.5}
    """
    means: dict[str, Mean] = {}
    modes = [(module, module.training) for _, module in model.named_modules()]  # some may be frozen
    try:
        model.eval()
        with no_grad():
            for batch in batches:
                for name, value in _by_name(function(*_arguments(batch))).items():
                    _mean(means, name, value).add(value, _examples(batch))
        _set_training(modes)
    except BaseException:
        _set_training(modes)
        raise
    return {name: mean.value for name, mean in means.items()}


def _set_training(modes: list[tuple[Module, bool]]) -> None:
    for module, training in modes:
        if training:
            vars(module).pop("training", None)  # as `Module.train` does
        else:
            module.training = False


def _arguments(batch: Any) -> tuple[Any, ...]:
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


def _examples(batch: Any) -> int:
    """The number of examples of a batch: the size of the first dimension of its first array."""
    shape = getattr(next(iter(_arguments(batch)), None), "shape", ())
    return shape[0] if shape else 1


def _by_name(result: Any) -> dict[str, Any]:
    """The result of a step as numbers by name: a dict is returned unchanged, anything else is the loss."""
    numbers = result if isinstance(result, dict) else {"loss": result}
    for name, value in numbers.items():
        if not isinstance(value, (int, float)) and not (isinstance(value, Tensor) and value.size == 1):
            raise ConversionError(f"a step returns its loss, or a dict of numbers by name: {name} is {_short(value)}",
                                  hint='return {"loss": loss, "accuracy": accuracy}, of means')
    return numbers


def _alone(value: Any) -> Any:
    """A number without its history, which would stay in memory."""
    return value.detach() if isinstance(value, Tensor) else value  # type: ignore[attr-defined]


def _mean(means: dict[str, Mean], name: str, value: Any) -> Mean:
    if name not in means:
        means[name] = Mean(device=value.device if isinstance(value, Tensor) else None)
    return means[name]


def _short(value: Any) -> str:
    return f"a tensor of shape {value.shape}" if isinstance(value, Tensor) else a_type(value)
