"""Clipping of gradients, between `backward()` and `step()`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..core import dtypes
from ..core.mode import no_grad
from ..core.tensor import Tensor
from ..nn.state import like
from ..ops import reduce
from ..ops.creation import full
from ..ops.elementwise import abs, maximum, minimum, power, sqrt
from ..support.errors import ConversionError
from ..support.words import a_type, shown


def clip_grad_norm(parameters: Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale all gradients together, in place, so that their norm is at most `max_norm`.  Returns the norm before.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> (w * mg.asarray([3.0, 4.0])).sum().backward()
    >>> print(mg.optim.clip_grad_norm([w], 1.0), f"{w.grad:.3f}")
    5. [0.600, 0.800]
    """
    tensors = _parameters("clip_grad_norm", parameters)
    _check_limit("clip_grad_norm", "max_norm", max_norm)
    if not norm_type > 0:
        raise ConversionError(f"clip_grad_norm: norm_type is above 0, not {norm_type}", expect="1, 2, ... or inf")
    gradients = [g for g in [p.grad for p in tensors] if g is not None and g.size]
    if not gradients:
        return full((), 0.0, dtypes.float32)
    with no_grad():
        total = _norm(gradients, norm_type)
        factor = minimum(max_norm / (total + 1e-6), 1.0)
        for gradient in gradients:
            gradient *= like(factor, gradient)
    return total


def clip_grad_value(parameters: Iterable[Tensor], clip_value: float) -> None:
    """Clip every number of the gradients, in place, to between -clip_value and clip_value.

    >>> w = mg.asarray([1.0, 1.0], requires_grad=True)
    >>> (w * mg.asarray([3.0, -0.5])).sum().backward()
    >>> mg.optim.clip_grad_value([w], 1.0)
    >>> w.grad.tolist()
    [1.0, -0.5]
    """
    _check_limit("clip_grad_value", "clip_value", clip_value)
    with no_grad():
        for p in _parameters("clip_grad_value", parameters):
            gradient = p.grad
            if gradient is not None:
                gradient[...] = minimum(maximum(gradient, -clip_value), clip_value)  # type: ignore[index]


def _norm(gradients: list[Tensor], order: float) -> Tensor:
    """The norm of all numbers together, on the device of the first gradient, in float32 at least."""
    wide = dtypes.result_type(dtypes.float32, *[g.dtype for g in gradients])
    parts = [g.astype(wide) if g.dtype is not wide else g for g in gradients]  # type: ignore[attr-defined]
    if order == math.inf:
        sizes = [like(reduce.max(abs(g)), parts[0]) for g in parts]
        total = sizes[0]
        for size in sizes[1:]:
            total = maximum(total, size)
        return total
    powers = [reduce.sum(g * g if order == 2 else power(abs(g), float(order))) for g in parts]
    total = powers[0]
    for more in powers[1:]:
        total = total + like(more, total)
    return sqrt(total) if order == 2 else power(total, 1.0 / order)


def _parameters(name: str, parameters: Any) -> list[Tensor]:
    if isinstance(parameters, Tensor) or not isinstance(parameters, Iterable):
        hint = "model.parameters()" if hasattr(parameters, "parameters") else "[w] for a single tensor"
        raise ConversionError(f"{name}: parameters are a list of tensors, not {a_type(parameters)}", hint=hint)
    found = list(parameters)
    for parameter in found:
        if not isinstance(parameter, Tensor):
            raise ConversionError(f"{name}: parameters are tensors, not {shown(parameter)}")
    return found


def _check_limit(name: str, what: str, value: Any) -> None:
    if not isinstance(value, Tensor) and not value >= 0:
        raise ConversionError(f"{name}: {what} is 0 or more, not {value}")
