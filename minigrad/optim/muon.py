"""Muon: the steps of matrices are made orthogonal."""

from __future__ import annotations

import math
from typing import Any

from ..core.tensor import Tensor
from ..ops import reduce
from ..ops.elementwise import maximum, sqrt
from ..support.errors import ConversionError, ShapeError
from .groups import Group, beside
from .optimizer import Optimizer

# x (a + b x² + c x⁴) moves numbers between 0 and 1 towards 1, small ones fast, and leaves them near it.
QUINTIC = (3.4445, -4.7750, 2.0315)


class Muon(Optimizer):
    """For matrices: the step is a running mean of the gradients with all its singular values changed to about 1.

    Directions with small gradients then count too.  Use it for the weights of hidden layers, and AdamW for embeddings,
    the last layer, biases and the rest.  `adjust_lr_fn="match_rms_adamw"` makes steps as large as AdamW's.

    >>> w = mg.asarray([[1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    >>> optimizer = mg.optim.Muon([w], lr=0.5, weight_decay=0.0)
    >>> (w * mg.asarray([[3.0, 0.0], [0.0, 1.0]])).sum().backward()
    >>> optimizer.step()
    >>> 0.3 < w[0, 0].item() < 0.7 and 0.3 < w[1, 1].item() < 0.7
    True
    """

    def __init__(self, parameters: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True, ns_coefficients: tuple[float, float, float] = QUINTIC, eps: float = 1e-7,
                 ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        super().__init__(parameters, lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                         ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps,
                         adjust_lr_fn=adjust_lr_fn)

    def check(self, options: dict[str, Any], parameters: list[Tensor]) -> None:
        super().check(options, parameters)
        for i, p in enumerate(parameters):
            if p.ndim != 2:
                raise ShapeError(f"Muon: parameter {i}, of shape {p.shape}, is not a matrix",
                                 hint="give it to AdamW: [p for p in model.parameters() if p.ndim != 2]")
        if options["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ConversionError(f"Muon: there is no adjust_lr_fn {options['adjust_lr_fn']!r}",
                                  expect='"original" (None is the same) or "match_rms_adamw"')

    def states(self, options: dict[str, Any]) -> dict[str, float]:
        return {"momentum_buffer": 0.0}

    def update(self, group: Group) -> None:
        momentum, decay = group["momentum"], group["weight_decay"]
        rates = group.rate, 1.0 - group.rate * decay
        for _, parameter, gradient, mean in group.moving("momentum_buffer"):
            rate, keep = beside(parameter, *rates)
            mean *= momentum
            mean += gradient * (1 - momentum)
            step = gradient * (1 - momentum) + mean * momentum if group["nesterov"] else mean
            step = orthogonalised(step, group["ns_coefficients"], group["ns_steps"], group["eps"])
            if decay:
                parameter *= keep
            parameter -= step * (rate * _size(group["adjust_lr_fn"], *parameter.shape))


def orthogonalised(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix with the same singular vectors and singular values near 1, computed by matrix products only."""
    a, b, c = coefficients
    wide = x.T if x.shape[0] > x.shape[1] else x  # so that the products are small
    wide = wide / maximum(sqrt(reduce.sum(wide * wide)), eps)
    for _ in range(steps):
        gram = wide @ wide.T
        wide = wide * a + (gram * b + (gram @ gram) * c) @ wide
    return wide.T if x.shape[0] > x.shape[1] else wide


def _size(adjust: str | None, rows: int, columns: int) -> float:
    if adjust == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / columns))
