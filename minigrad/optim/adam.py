"""Adam and its relatives: each number has its own step size, which depends on the size of its past gradients."""

from __future__ import annotations

import math
from typing import Any

from ..ops.elementwise import expm1, maximum, sign, sqrt
from .groups import Group, beside
from .optimizer import Optimizer


class Adam(Optimizer):
    """Steps against a running mean of the gradients, divided by the root of a running mean of their squares.

    `weight_decay` adds that much of the parameter to its gradient; `AdamW` shrinks the parameter instead.
    `amsgrad` divides by the root of the largest mean so far, so that steps do not grow again.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.Adam([w], lr=0.5)
    >>> (w * mg.asarray([1000.0, 0.001])).sum().backward()
    >>> optimizer.step()
    >>> w
    Tensor([0.5..., 0.5...], shape=(2,), dtype=float32, device=cpu, requires_grad=True, ...)
    """

    decoupled = False  # whether the decay bypasses the running means

    def __init__(self, parameters: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False) -> None:
        super().__init__(parameters, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad)

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        names = ("step", "exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * bool(options["amsgrad"]))
        return dict.fromkeys(names, 0.0)

    def update(self, group: Group) -> None:
        """One step, with a correction for running means that started at 0.

        After t steps a running mean holds c = 1 - βᵗ of its full weight.  rate · (m / c) / (√(v / c') + eps) is
        (rate √c' / c) · m / (√v + eps √c'), where everything but m and v is a number.
        """
        (beta, beta_square), decay = group["betas"], group["weight_decay"]
        steps = group.counted()
        weight, weight_square = (-expm1(steps * math.log(b or 1e-300)) for b in group["betas"])
        root = sqrt(weight_square)
        sizes, least, shrink = group.rate * root / weight, root * group["eps"], 1.0 - group.rate * decay
        names = ("exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * bool(group["amsgrad"]))
        for i, parameter, gradient, mean, square, *largest in group.moving(*names):
            size, eps, keep = beside(parameter, sizes[i], least[i], shrink)
            if decay and self.decoupled:
                parameter *= keep
            elif decay:
                gradient = gradient + parameter * decay
            mean *= beta
            mean += gradient * (1 - beta)
            square *= beta_square
            square += gradient * gradient * (1 - beta_square)
            for most in largest:
                square = most[...] = maximum(most, square)
            parameter -= mean * size / (sqrt(square) + eps)


class AdamW(Adam):
    """Adam with a weight decay that shrinks the parameters by rate × decay in each step, whatever the gradients.

    >>> w = mg.asarray([1.0], requires_grad=True)
    >>> mg.optim.AdamW([w], lr=0.1, weight_decay=0.1)
    AdamW(1 parameter of 1 number, lr=0.1)
    """

    decoupled = True

    def __init__(self, parameters: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay, amsgrad)


class Lion(Optimizer):
    """Steps of the same size for all numbers, against the sign of a mixture of the gradient and its running mean.

    It keeps half as much state as Adam.  Use a rate three to ten times smaller than for AdamW, and a decay
    larger by the same factor.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.Lion([w], lr=0.25)
    >>> (w * mg.asarray([1000.0, -0.001])).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.75, 1.25]
    """

    def __init__(self, parameters: Any, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.0) -> None:
        super().__init__(parameters, lr=lr, betas=betas, weight_decay=weight_decay)

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        return {"exp_avg": 0.0}

    def update(self, group: Group) -> None:
        (share, beta), decay = group["betas"], group["weight_decay"]
        rates = group.rate, 1.0 - group.rate * decay
        for _, parameter, gradient, mean in group.moving("exp_avg"):
            rate, keep = beside(parameter, *rates)
            if decay:
                parameter *= keep
            parameter -= sign(mean * share + gradient * (1 - share)) * rate
            mean *= beta
            mean += gradient * (1 - beta)
