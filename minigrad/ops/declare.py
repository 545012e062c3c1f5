"""Decorators that declare the families of primitives, on functions with only a signature and a docstring."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from ..core.primitive import P, Primitive
from ..core.quick import quick
from ..core.tensor import Tensor, as_tensor
from ..support.errors import AxisError, ConversionError, DtypeError, ShapeError
from ..support.table import counted
from ..support.words import shown, whole

F = TypeVar("F", bound=Callable[..., Any])


def declare(op: Primitive, attributes: bool = True) -> Primitive:
    """Add a primitive to the table, with its quick form: `op.apply(x, axis=0)`.

    Without `attributes`, the quick form takes only the inputs.
    """
    object.__setattr__(op, "apply", quick(op, attributes))
    return P.declare(op)


def elementwise(
    *,
    name: str | None = None,
    expr: str | None = None,
    accepts: str = "biuf",
    domain: str = "any",
    result: Any = None,
    cost: float = 0.25,
    formula: str = "",
    local: dict[str, str] | None = None,
    promotes: tuple[str, ...] | None = None,
    linear: tuple[str, ...] = (),
    **rules: Callable[..., Any],
) -> Callable[[F], F]:
    """Declare a primitive that works element by element, and make the function that applies it.

    The function's parameters name the inputs, and so do the gradient rules: `x=lambda g, y: g * y` is the rule of input
    x.  `result` is the dtype of the result if it differs from that of the inputs.
    """

    primitive = name

    def made(function: F) -> F:
        name = primitive or function.__name__
        inputs = function.__code__.co_varnames[: function.__code__.co_argcount]
        op = declare(
            Primitive(
                name, "elementwise", inputs, _elementwise_infer(name, result),
                rules=rules, promotes=promotes, domain=domain, accepts=accepts, linear=linear,
                expr=expr, cost=cost, formula=formula, local=local or {},
            ),
            attributes=False,
        )
        call = op.apply if len(inputs) < 3 else _of_three(op)
        return wraps(function)(call)  # type: ignore[return-value]

    return made


def _of_three(op: Primitive) -> Callable[..., Any]:
    """The function of an operation of three inputs, such as `where`, whose quick form takes any number of them."""
    def apply(condition: Any, x: Any = None, y: Any = None) -> Any:
        if y is None:
            places = "condition.nonzero() gives the places where it is true"
            raise ConversionError(f"{op.name} needs a condition, x and y", hint=places)
        return op.apply(condition, x, y)

    return apply


def _elementwise_infer(name: str, result: Any) -> Any:
    def infer(*operands: Any) -> tuple[tuple[int, ...], Any]:
        dtype = P[name].common_dtype(operands)
        return broadcast_shapes(name, [x.shape for x in operands if hasattr(x, "shape")]), result or dtype

    return infer


def broadcast_shapes(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that these shapes broadcast to; an error if two sizes do not fit.

    >>> broadcast_shapes("add", [(2, 1), (3,)])
    (2, 3)
    """
    if shapes and not [shape for shape in shapes if shape != shapes[0]]:
        return shapes[0]
    ndim = builtins.max(map(len, shapes), default=0)
    result = []
    for back in range(ndim, 0, -1):
        sizes = [s[-back] for s in shapes if len(s) >= back and s[-back] != 1]
        if sizes and builtins.any(size != sizes[0] for size in sizes):
            other = next(size for size in sizes if size != sizes[0])
            raise ShapeError(
                f"{name}: shapes {' and '.join(map(str, shapes))} do not broadcast: "
                f"{sizes[0]} against {other} in dimension {ndim - back}",
                expect="equal sizes, or a 1, in each dimension counted from the last",
                hint="expand_dims, reshape or .T align dimensions",
            )
        result.append(sizes[0] if sizes else 1)
    return tuple(result)


ALL_AXES = [tuple(range(ndim)) for ndim in range(65)]  # NumPy has at most 64 dimensions


def normal_axis(name: str, axis: Any, ndim: int) -> int:
    """An axis counted from the front.

    >>> normal_axis("sum", -1, 3)
    2
    """
    number = axis if axis.__class__ is int else whole(axis)
    if number is None or not -ndim <= number < ndim:
        raise AxisError(
            f"{name}: axis {shown(axis)} does not exist in a tensor of {counted(ndim, 'dimension')}",
            expect=f"an integer from {-ndim} to {ndim - 1}" if ndim else "no axis: this tensor has no dimensions",
            hint=f"mg.{name}imum(x, y)" if name in ("max", "min") and isinstance(axis, Tensor) else None,
        )
    return number % ndim


def only_axis(name: str, axis: int | None, x: Tensor) -> int:
    """An axis counted from the front; without one, that of a tensor with one dimension.

    >>> only_axis("take", None, mg.ones(3))
    0
    """
    if axis is None and x.ndim != 1:
        raise ConversionError(f"{name}: shape {x.shape} has {counted(x.ndim, 'dimension')}, so axis is needed")
    return normal_axis(name, 0 if axis is None else axis, x.ndim)


def normal_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, in the given order; None means all axes.

    >>> normal_axes("sum", (0, -1), 3)
    (0, 2)
    """
    if axis is None:
        return ALL_AXES[ndim]
    if axis.__class__ is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if not isinstance(axis, (tuple, list)):
        return (normal_axis(name, axis, ndim),)
    axes = tuple(normal_axis(name, a, ndim) for a in axis)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: axis {axis} names a dimension twice")
    return axes


def as_integers(name: str, what: str, indices: Any, beside: Tensor | None = None) -> Tensor:
    """A tensor of integers, on the device of the tensor `beside`; an error for a mask.

    >>> as_integers("take", "indices", 3).dtype
    dtype('int64')
    """
    indices = as_tensor(indices, None if beside is None else beside.device)
    if indices.dtype.kind not in "iu":
        raise DtypeError(f"{name}: {what} are integers, not {indices.dtype}", hint=f"{what}.astype(mg.int64)")
    return indices
