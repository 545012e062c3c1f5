"""Compares gradients with central differences in float64, to first or second order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.tensor import Tensor, wrap
from ..core.tree import flatten
from ..support.errors import CheckError
from .reverse import gradients


def gradcheck(
    function: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    eps: float = 1e-6,
    tolerance: float = 1e-5,
    seed: int = 0,
) -> bool:
    """True if the gradients of `function` at `args` agree with central differences; else an error that says where.

    The outputs are weighted with random numbers, because plain sums hide mistakes (the rows of a softmax sum to 1).
    `order=2` also checks the gradient of the gradient.

    >>> mg.gradcheck(lambda x: mg.tanh(x) * x, [mg.asarray([0.5, -1.0])], order=2)
    True
    """
    tensors, rebuild = flatten(tuple(args))
    rng = np.random.default_rng(seed)
    inputs = [t.detach().astype(dtypes.float64) if t.dtype.kind == "f" else t for t in tensors]
    moving = [i for i, t in enumerate(inputs) if t.dtype.kind == "f"]

    def outputs_of(values: list[Tensor]) -> list[Tensor]:
        return [o for o in flatten(function(*rebuild(values)))[0] if o.dtype.kind == "f"]

    if not outputs_of(inputs):
        raise CheckError("gradcheck: the function returns no tensor of floats")
    total = _weighted(outputs_of, rng)
    _check(total, inputs, moving, eps, tolerance, "")
    if order > 1:
        slopes = _weighted(lambda values: [g for g in _gradients(total, values, moving, True)[1] if g is not None], rng)
        _check(slopes, inputs, moving, eps, 10 * tolerance, "second-order ")
    return True


Total = Callable[[list[Tensor]], "Tensor | float"]


def _weighted(outputs_of: Callable[[list[Tensor]], list[Tensor]], rng: Any) -> Total:
    """A function of the inputs: the sum of its outputs, weighted with the same random numbers in each call."""
    weights: list[Tensor] = []

    def total(values: list[Tensor]) -> Tensor | float:
        outputs = outputs_of(values)
        if not weights:
            weights.extend(wrap(o.device.from_numpy(rng.standard_normal(o.shape)), o.device) for o in outputs)
        return sum([(o * w).sum() for o, w in zip(outputs, weights)], 0.0)

    return total


def _gradients(total: Total, values: list[Tensor], moving: list[int], record: bool) -> tuple[list[Tensor], list[Any]]:
    """Leaves that replace the moving values, and the gradients of the total with respect to them."""
    leaves = [value if value.tracked or i not in moving else _leaf(value) for i, value in enumerate(values)]
    wanted = [leaves[i] for i in moving]
    output = total(leaves)
    if not isinstance(output, Tensor) or not output.tracked:
        return wanted, [None] * len(wanted)
    return wanted, gradients(output, wanted, create_graph=record, allow_unused=True)


def _leaf(tensor: Tensor) -> Tensor:
    leaf = wrap(tensor._data, tensor.device)
    leaf.requires_grad = True
    return leaf


def _check(total: Total, inputs: list[Tensor], moving: list[int], eps: float, tolerance: float, order: str) -> None:
    for place, g in zip(moving, _gradients(total, inputs, moving, False)[1]):
        _compare(g, _differences(lambda values: float(total(values)), inputs, place, eps), place, tolerance, order)


def _differences(value: Callable[[list[Tensor]], float], inputs: list[Tensor], place: int, eps: float) -> Any:
    """(f(x + eps) - f(x - eps)) / 2 eps, for each element of one input."""
    base = inputs[place].numpy_copy()
    slopes = np.empty_like(base)
    for position in np.ndindex(base.shape):
        sides = []
        for step in (eps, -eps):
            moved = base.copy()
            moved[position] += step
            values = list(inputs)
            values[place] = wrap(inputs[place].device.from_numpy(moved), inputs[place].device)
            sides.append(value(values))
        slopes[position] = (sides[0] - sides[1]) / (2 * eps)
    return slopes


def _compare(found: Tensor | None, numerical: Any, place: int, tolerance: float, order: str) -> None:
    ours = np.zeros_like(numerical) if found is None else found.numpy_copy()
    wrong = np.abs(ours - numerical) > tolerance * (1 + np.abs(numerical))
    wrong |= np.isnan(ours) != np.isnan(numerical)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise CheckError(
            f"the {order}gradient of input {place} is wrong at {at}: yours {ours[at]:.6g}, "
            f"numerical {numerical[at]:.6g} ({int(wrong.sum())} of {wrong.size} entries differ)"
        )
