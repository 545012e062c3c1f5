"""Is this gradient right?  Compared with central differences, in float64, to second order if wanted."""

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
    """True if the gradients of `function` at `args` agree with central differences; else the error that says where.

    The outputs are weighted with random numbers, because plain sums hide mistakes (the rows of a softmax sum to 1).
    `order=2` checks the gradient of the gradient as well.

    >>> mg.gradcheck(lambda x: mg.tanh(x) * x, [mg.asarray([0.5, -1.0])], order=2)
    True
    """
    tensors, rebuild = flatten(tuple(args))
    rng = np.random.default_rng(seed)
    inputs = [t.detach().astype(dtypes.float64) if t.dtype.kind == "f" else t for t in tensors]
    moving = [i for i, t in enumerate(inputs) if t.dtype.kind == "f"]
    weights: list[Tensor] = []

    def weighted(values: list[Tensor]) -> Tensor:
        outputs = [o for o in flatten(function(*rebuild(values)))[0] if o.dtype.kind == "f"]
        if not weights:
            weights.extend(wrap(o.device.from_numpy(rng.standard_normal(o.shape)), o.device) for o in outputs)
        parts = [(o * w).sum() for o, w in zip(outputs, weights)]
        if not parts:
            raise CheckError("gradcheck: the function returns no tensor of floats")
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def gradient_of(values: list[Tensor], create_graph: bool = False) -> tuple[list[Tensor], list[Any]]:
        leaves = [_leaf(v) if i in moving else v for i, v in enumerate(values)]
        wanted = [leaves[i] for i in moving]
        output = weighted(leaves)
        if not output.tracked:
            return wanted, [None] * len(wanted)
        return wanted, gradients(output, wanted, create_graph=create_graph, allow_unused=True)

    for place, g in zip(moving, gradient_of(inputs)[1]):
        numerical = _differences(lambda values: weighted(values).item(), inputs, place, eps)
        _compare(g, numerical, place, tolerance, "")
    if order > 1:
        _check_second(gradient_of, inputs, moving, rng, eps, tolerance)
    return True


def _leaf(tensor: Tensor) -> Tensor:
    leaf = wrap(tensor._data, tensor.device)
    leaf.requires_grad = True
    return leaf


def _check_second(
    gradient_of: Any, inputs: list[Tensor], moving: list[int], rng: Any, eps: float, tolerance: float
) -> None:
    """The gradient of <gradient, random vector>, against differences of the same."""
    along = [wrap(inputs[i].device.from_numpy(rng.standard_normal(inputs[i].shape)), inputs[i].device) for i in moving]

    def slope(values: list[Tensor], create_graph: bool = False) -> tuple[list[Tensor], Any]:
        wanted, found = gradient_of(values, create_graph)
        return wanted, sum((g * v).sum() for g, v in zip(found, along) if g is not None)

    wanted, total = slope(inputs, create_graph=True)
    tracked = isinstance(total, Tensor) and total.tracked
    second = gradients(total, wanted, allow_unused=True) if tracked else [None] * len(moving)
    for place, g in zip(moving, second):
        numerical = _differences(lambda values: float(slope(values)[1]), inputs, place, eps)
        _compare(g, numerical, place, 10 * tolerance, "second-order ")


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
