"""Adam: each number has a step size of its own, by how large its gradients have been."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..core.tensor import Tensor
from ..ops.elementwise import expm1, sqrt
from .optimizer import Optimizer, beside, checked_decay, checked_share


class Adam(Optimizer):
    """Steps along a running mean of the gradients, divided by the root of a running mean of their squares.

    `weight_decay` adds that much of the parameter to its gradient; `AdamW` shrinks the parameter instead.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.Adam([w], lr=0.5)
    >>> (w * mg.asarray([1000.0, 0.001])).sum().backward()
    >>> optimizer.step()
    >>> w
    Tensor([0.5..., 0.5...], shape=(2,), dtype=float32, device=cpu, requires_grad=True, ...)
    """

    decoupled = False  # whether the decay bypasses the running means

    def __init__(self, parameters: Iterable[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0) -> None:  # fmt: skip
        super().__init__(parameters, lr)
        name = type(self).__name__
        self.betas = checked_share(name, "betas[0]", betas[0]), checked_share(name, "betas[1]", betas[1])
        self.eps, self.weight_decay = eps, checked_decay(name, weight_decay)
        self.steps = self.scalar(0)
        self.state |= {"steps": self.steps, "mean": self.zeros(), "square": self.zeros()}

    def update(self) -> None:
        beta, beta_square = self.betas
        scalars = self._scalars()
        for parameter, gradient, mean, square in self.moving("mean", "square"):
            size, eps, shrink = beside(scalars, parameter)
            if self.weight_decay and self.decoupled:
                parameter *= shrink
            elif self.weight_decay:
                gradient = gradient + parameter * self.weight_decay
            mean *= beta
            mean += gradient * (1 - beta)
            square *= beta_square
            square += gradient * gradient * (1 - beta_square)
            parameter -= mean * size / (sqrt(square) + eps)

    def _scalars(self) -> tuple[Tensor, Tensor, Tensor]:
        """The rate and eps with the correction for running means that started at 0, and the factor of the decay.

        After t steps a running mean holds 1 - βᵗ of its full weight.  rate · (m / c) / (√(v / c') + eps) is
        (rate √c' / c) · m / (√v + eps √c'), where everything but m and v is the same for all parameters.
        """
        self.steps += 1.0
        weight, weight_square = (-expm1(self.steps * math.log(beta or 1e-300)) for beta in self.betas)
        root = sqrt(weight_square)
        return self.rate * root / weight, root * self.eps, 1.0 - self.rate * self.weight_decay


class AdamW(Adam):
    """Adam with a weight decay that shrinks the parameters by rate × decay in each step, whatever their gradients.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> mg.optim.AdamW([w], lr=0.1, weight_decay=0.1)
    AdamW(1 parameters of 1 numbers, lr=0.1)
    """

    decoupled = True

    def __init__(self, parameters: Iterable[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2) -> None:  # fmt: skip
        super().__init__(parameters, lr, betas, eps, weight_decay)
