"""`Optimizer`: what all of them share. The parameters, a rate that can change, and a state that can be saved."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..core import dtypes
from ..core.errors import ConversionError, GradError
from ..core.mode import no_grad
from ..core.tensor import NUMBERS, Tensor
from ..nn.state import like, load_tensors
from ..ops.creation import full, zeros_like


class Optimizer:
    """Changes parameters by their gradients.  A subclass says in `update` how one step does it.

    Everything that changes from step to step is a tensor that is written in place, the rate included, so that a step
    is a computation like any other: nothing in it depends on Python numbers that change.

    >>> class Descent(mg.optim.Optimizer):
    ...     def update(self):
    ...         for parameter, gradient in self.moving():
    ...             parameter -= self.rate * gradient
    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> optimizer = Descent([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5]
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        self.parameters = _checked(parameters, type(self).__name__)
        # 0-d, and as wide as the widest parameter: a 0-d float64 beside float32 would make the result float64
        self.dtype = dtypes.result_type(dtypes.float32, *[p.dtype for p in self.parameters])
        self.rate = self.scalar(_checked_rate(lr))
        self.state: dict[str, Tensor | list[Tensor]] = {"lr": self.rate}

    @property
    def lr(self) -> float:
        """The rate, how far a step goes.  Set it whenever you like: `optimizer.lr *= 0.5`."""
        return float(self.rate.item())

    @lr.setter
    def lr(self, value: Any) -> None:
        with no_grad():
            self.rate[...] = _checked_rate(value)  # type: ignore[index]

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        with no_grad():
            self.update()

    def update(self) -> None:
        """One step, with gradients off: for subclasses to say."""
        raise NotImplementedError(f"{type(self).__name__} has no update method")

    def zero_grad(self) -> None:
        """Forget the gradients: the next backward starts from nothing.

        >>> w = mg.asarray([1.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> mg.optim.SGD([w], lr=0.1).zero_grad()
        >>> w.grad is None
        True
        """
        for parameter in self.parameters:
            parameter.grad = None

    # for subclasses -------------------------------------------------------------------------------------------------

    def moving(self, *names: str) -> Any:
        """For each parameter with a gradient: the parameter, the gradient, and what the named states hold for it."""
        rows = zip(self.parameters, [p.grad for p in self.parameters], *[self.state[name] for name in names])
        return [row for row in rows if row[1] is not None]

    def scalar(self, value: float) -> Tensor:
        """A number as a 0-d tensor, which can be written."""
        return full((), float(value), self.dtype, self.parameters[0].device)

    def zeros(self) -> list[Tensor]:
        """Zeros in the shape of each parameter, for a state."""
        return [zeros_like(p) for p in self.parameters]

    # saving ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of all that a training that goes on later needs, by name.

        >>> w = mg.asarray([1.0], requires_grad=True)
        >>> list(mg.optim.SGD([w], lr=0.1, momentum=0.9).state_dict())
        ['lr', 'velocity.0']
        """
        return {name: tensor.copy() for name, tensor in self._named_state().items()}  # type: ignore[attr-defined]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy saved values into the state; all of them or, if they do not fit, none.

        >>> w = mg.asarray([1.0], requires_grad=True)
        >>> optimizer = mg.optim.SGD([w], lr=0.1)
        >>> optimizer.load_state_dict({"lr": 0.5})
        >>> optimizer.lr
        0.5
        """
        load_tensors(self._named_state(), state, type(self).__name__)

    def _named_state(self) -> dict[str, Tensor]:
        named: dict[str, Tensor] = {}
        for name, held in self.state.items():
            named |= {f"{name}.{i}": t for i, t in enumerate(held)} if isinstance(held, list) else {name: held}
        return named

    def __repr__(self) -> str:
        count = sum(p.size for p in self.parameters)
        return f"{type(self).__name__}({len(self.parameters)} parameters of {count} numbers, lr={self.lr:g})"


def beside(scalars: tuple[Tensor, ...], parameter: Tensor) -> tuple[Tensor, ...]:
    """0-d tensors where a parameter is and in its dtype: mostly they are there already."""
    if scalars[0].device is parameter.device and scalars[0].dtype is parameter.dtype:
        return scalars
    return tuple([like(s, parameter) for s in scalars])


def _checked(parameters: Any, name: str) -> list[Tensor]:
    if isinstance(parameters, Tensor) or not isinstance(parameters, Iterable):
        hint = "model.parameters()" if hasattr(parameters, "parameters") else "[w] for a single tensor"
        raise ConversionError(f"{name}: parameters are a list of tensors, not a {type(parameters).__name__}", hint=hint)
    given = list(parameters)
    if not given:
        raise ConversionError(
            f"{name}: there are no parameters to optimize",
            hint="a model's tensors need requires_grad=True; an iterator that was used up before is empty",
        )
    seen: set[int] = set()
    for i, p in enumerate(given):
        if not isinstance(p, Tensor):
            raise ConversionError(f"{name}: parameter {i} is a {type(p).__name__}, not a tensor",
                                  hint="model.parameters() gives them without their names")  # fmt: skip
        if not p.requires_grad:
            raise GradError(f"{name}: parameter {i}, of shape {p.shape}, does not require a gradient",
                            hint="p.requires_grad = True, or leave it out")  # fmt: skip
        if not p.is_leaf:
            raise GradError(f"{name}: parameter {i}, of shape {p.shape}, is a result of {p.node.name}, not a leaf",
                            hint="optimize what it is made of, or p.detach() with requires_grad = True")  # fmt: skip
        if id(p) in seen:
            raise ConversionError(f"{name}: parameter {i}, of shape {p.shape}, is in the list twice")
        seen.add(id(p))
    return given


def _checked_rate(value: Any) -> Any:
    if value.__class__ in NUMBERS and not (value >= 0 and math.isfinite(value)):
        raise ConversionError(f"a learning rate is a number, 0 or more, not {value}")
    return value


def checked_share(name: str, what: str, value: float) -> float:
    """A coefficient from 0 up to, not including, 1: a momentum, a decay of a running mean."""
    if not 0 <= value < 1:
        raise ConversionError(f"{name}: {what} is at least 0 and below 1, not {value}")
    return value


def checked_decay(name: str, value: float) -> float:
    """A weight decay."""
    if not value >= 0:
        raise ConversionError(f"{name}: weight_decay is 0 or more, not {value}")
    return value
