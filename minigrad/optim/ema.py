"""Averages of parameters over the last steps: smoother than the parameters, and often better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.mode import no_grad
from ..core.tensor import Tensor
from ..nn.module import Module
from ..nn.state import load_tensors, write
from ..support.errors import ConversionError
from ..support.table import counted
from ..support.words import shown


class EMA:
    """A running mean of a model's parameters: each `update()` keeps the share `decay` and adds the rest from the model.

    >>> model = mg.nn.Linear(1, 1, bias=False)
    >>> ema = mg.optim.EMA(model, decay=0.75)
    >>> before = model.weight.item()
    >>> with mg.no_grad():
    ...     model.weight += 4.0
    >>> ema.update()
    >>> with ema.applied():
    ...     model.weight.item() - before
    1.0...
    """

    def __init__(self, model: Module | Iterable[Tensor], decay: float = 0.999) -> None:
        if not 0 <= decay < 1:
            raise ConversionError(f"EMA: decay is at least 0 and below 1, not {decay}")
        named = model.named_parameters() if isinstance(model, Module) else [(str(i), p) for i, p in enumerate(model)]
        if not named:
            raise ConversionError("EMA: there are no parameters to average", hint="EMA(model), or EMA([w, b])")
        for name, parameter in named:
            if not isinstance(parameter, Tensor):
                raise ConversionError(f"EMA: parameter {name} is not a tensor, but {shown(parameter)}")
        self.names = [name for name, _ in named]
        self.parameters: list[Tensor] = [p for _, p in named]
        self.averages: list[Tensor] = [p.detach().copy() for p in self.parameters]  # type: ignore[attr-defined]
        self.decay = decay

    def update(self) -> None:
        """Update the averages with the current parameters: call it after each `optimizer.step()`."""
        with no_grad():
            for average, parameter in zip(self.averages, self.parameters):
                average += (parameter - average) * (1 - self.decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """A block in which the averages are the model's parameters."""
        own = [p.detach().copy() for p in self.parameters]  # type: ignore[attr-defined]
        try:
            write(self.parameters, self.averages)
            yield
            write(self.parameters, own)
        except BaseException:
            write(self.parameters, own)
            raise

    def tensors(self) -> list[Tensor]:
        """The averages, to continue training later."""
        return self.averages

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of the averages, by the names of the parameters.  A model can load them."""
        return {name: t.copy() for name, t in zip(self.names, self.averages)}  # type: ignore[attr-defined]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load saved averages.  If they do not fit, nothing is changed."""
        load_tensors(dict(zip(self.names, self.averages)), state, "EMA")

    def __repr__(self) -> str:
        return f"EMA({counted(len(self.averages), 'parameter')}, decay={self.decay:g})"
