"""Gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import ConversionError
from ..core.tensor import Tensor
from .optimizer import Optimizer, beside, checked_decay, checked_share


class SGD(Optimizer):
    """Steps against the gradient, or with `momentum` against a running sum of gradients that fades by that factor.

    `nesterov` looks ahead by one more step of the sum; `weight_decay` adds that much of the parameter to its gradient.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist(), optimizer
    ([0.5], SGD(1 parameters of 1 numbers, lr=0.25))
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.0, nesterov: bool = False,
                 weight_decay: float = 0.0) -> None:  # fmt: skip
        super().__init__(parameters, lr)
        self.momentum = checked_share("SGD", "momentum", momentum)
        self.weight_decay = checked_decay("SGD", weight_decay)
        self.nesterov = nesterov
        if nesterov and not momentum:
            raise ConversionError("SGD: nesterov looks ahead along the momentum, which is 0", hint="momentum=0.9")
        if momentum:
            self.state["velocity"] = self.zeros()

    def update(self) -> None:
        for parameter, gradient, *velocity in self.moving(*["velocity"] * bool(self.momentum)):
            (rate,) = beside((self.rate,), parameter)
            step = gradient + parameter * self.weight_decay if self.weight_decay else gradient
            for v in velocity:
                v *= self.momentum
                v += step
                step = step + v * self.momentum if self.nesterov else v
            parameter -= step * rate
