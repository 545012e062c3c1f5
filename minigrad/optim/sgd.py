"""Gradient descent."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.creation import full_like
from ..ops.elementwise import where
from ..support.errors import ConversionError
from .groups import Group, beside
from .optimizer import Optimizer


class SGD(Optimizer):
    """Steps against the gradient.  With `momentum`, steps against a sum of gradients that decays by this factor.

    `dampening` reduces each gradient by that share before it is added, except the first; `weight_decay` adds that share
    of the parameter to its gradient; `nesterov` looks ahead by one more step of the sum.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist(), optimizer
    ([0.5], SGD(1 parameter of 1 number, lr=0.25))
    """

    def __init__(self, parameters: Any, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False) -> None:
        super().__init__(parameters, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                         nesterov=nesterov)

    def check(self, options: dict[str, Any], parameters: list[Tensor]) -> None:
        super().check(options, parameters)
        if options["nesterov"] and not options["momentum"]:
            raise ConversionError("SGD: nesterov looks ahead along the momentum, which is 0", hint="momentum=0.9")
        if options["nesterov"] and options["dampening"]:
            raise ConversionError("SGD: nesterov and dampening do not go together", hint="dampening=0")

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        if not options["momentum"]:
            return {}
        return {"momentum_buffer": 0.0} | ({"step": 0.0} if options["dampening"] else {})

    def adapted(self, entry: dict[str, Any], kept: dict[str, Tensor]) -> dict[str, Any]:
        """With a count of steps; only whether it is 0 matters."""
        given = super().adapted(entry, kept)
        return {"step": 1.0} | given if given and "step" in kept else given

    def update(self, group: Group) -> None:
        momentum, decay, dampening = group["momentum"], group["weight_decay"], group["dampening"]
        shares = None
        if momentum and dampening:
            steps = group.counted()
            shares = where(steps > 1.0, full_like(steps, 1.0 - dampening), 1.0)
        for i, parameter, gradient, *sums in group.moving(*["momentum_buffer"] * bool(momentum)):
            (rate,) = beside(parameter, group.rate)
            step = gradient + parameter * decay if decay else gradient
            for running in sums:
                running *= momentum
                running += step if shares is None else step * beside(parameter, shares[i])[0]
                step = step + running * momentum if group["nesterov"] else running
            parameter -= step * rate
