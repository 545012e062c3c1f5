"""Step sizes that depend on past gradients: on all of them in Adagrad, on recent ones in RMSprop and Adadelta."""

from __future__ import annotations

from typing import Any

from ..ops.elementwise import maximum, sqrt
from .groups import Group, beside
from .optimizer import Optimizer


class RMSprop(Optimizer):
    """Steps against the gradient, divided by the root of a running mean of its squares, which keeps the share `alpha`.

    `centered` subtracts the square of the mean gradient, which leaves the variance; `momentum` adds the steps up.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.RMSprop([w], lr=0.125, alpha=0.75)
    >>> (w * mg.asarray([1000.0, 0.001])).sum().backward()
    >>> optimizer.step()
    >>> w
    Tensor([0.75..., 0.75...], shape=(2,), dtype=float32, device=cpu, requires_grad=True, ...)
    """

    def __init__(self, parameters: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False) -> None:
        super().__init__(parameters, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum,
                         centered=centered)

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        more = {"momentum_buffer": options["momentum"], "grad_avg": options["centered"]}
        return {"square_avg": 0.0} | {name: 0.0 for name, used in more.items() if used}

    def update(self, group: Group) -> None:
        alpha, decay, momentum = group["alpha"], group["weight_decay"], group["momentum"]
        for _, parameter, gradient, square, *more in group.moving(*self.states(group.options)):
            (rate,) = beside(parameter, group.rate)
            if decay:
                gradient = gradient + parameter * decay
            square *= alpha
            square += gradient * gradient * (1 - alpha)
            variance = square
            if group["centered"]:
                mean = more[-1]
                mean *= alpha
                mean += gradient * (1 - alpha)
                variance = maximum(square - mean * mean, 0.0)  # which rounding can take below 0
            step = gradient / (sqrt(variance) + group["eps"])
            if momentum:
                running = more[0]
                running *= momentum
                running += step
                step = running
            parameter -= step * rate


class Adagrad(Optimizer):
    """Steps against the gradient, divided by the root of the sum of all its squares.

    Numbers with few or small gradients take larger steps.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.Adagrad([w], lr=0.5)
    >>> (w * mg.asarray([1000.0, 0.001])).sum().backward()
    >>> optimizer.step()
    >>> w
    Tensor([0.5..., 0.5...], shape=(2,), dtype=float32, device=cpu, requires_grad=True, ...)
    """

    def __init__(self, parameters: Any, lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10) -> None:
        super().__init__(parameters, lr=lr, lr_decay=lr_decay, weight_decay=weight_decay,
                         initial_accumulator_value=initial_accumulator_value, eps=eps)

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        return {"step": 0.0, "sum": options["initial_accumulator_value"]}

    def update(self, group: Group) -> None:
        decay = group["weight_decay"]
        rates = group.rate / ((group.counted() - 1.0) * group["lr_decay"] + 1.0)
        for i, parameter, gradient, total in group.moving("sum"):
            (rate,) = beside(parameter, rates[i])
            if decay:
                gradient = gradient + parameter * decay
            total += gradient * gradient
            parameter -= gradient * rate / (sqrt(total) + group["eps"])


class Adadelta(Optimizer):
    """Steps as long as recent steps, times the gradient divided by the root of a running mean of its squares.

    The running means of squared gradients and squared steps keep the share `rho`.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> optimizer = mg.optim.Adadelta([w], rho=0.75, eps=0.0625)
    >>> (w * mg.asarray([1000.0, 0.0])).sum().backward()
    >>> optimizer.step()
    >>> w
    Tensor([0.5..., 1...], shape=(2,), dtype=float32, device=cpu, requires_grad=True, ...)
    """

    def __init__(self, parameters: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0.0) -> None:
        super().__init__(parameters, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def update(self, group: Group) -> None:
        rho, eps, decay = group["rho"], group["eps"], group["weight_decay"]
        for _, parameter, gradient, square, moved in group.moving("square_avg", "acc_delta"):
            (rate,) = beside(parameter, group.rate)
            if decay:
                gradient = gradient + parameter * decay
            square *= rho
            square += gradient * gradient * (1 - rho)
            step = gradient * sqrt(moved + eps) / sqrt(square + eps)
            moved *= rho
            moved += step * step * (1 - rho)
            parameter -= step * rate
