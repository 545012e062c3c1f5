"""The reductions, and the functions composed from them."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.tensor import NUMBERS, FloatTensor, Tensor, as_tensor, method
from ..support.errors import ConversionError
from .bits import bitwise_or
from .composite import composed, program
from .declare import declare, normal_axes, normal_axis, only_axis
from .elementwise import abs, astype, equal, greater, less, multiply, not_equal, power, sqrt, to_float, where
from .view import broadcast_to, raw_broadcast_to, raw_reshape, reshape

__all__ = [
    "sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin", "all", "any", "count_nonzero",
    "nansum", "nanmean",
    "cumulative_sum", "cumulative_prod", "clip",
]

Axis = int | tuple[int, ...] | None


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape after a reduction over `axes`.

    >>> reduced_shape((2, 3, 4), (1,), True)
    (2, 1, 4)
    """
    if keepdims:
        return tuple([1 if i in axes else s for i, s in enumerate(shape)])
    return tuple([s for i, s in enumerate(shape) if i not in axes])


def _infer_total(x: Any, axis: tuple[int, ...], keepdims: bool, dtype: Any = None) -> Any:
    return reduced_shape(x.shape, axis, keepdims), dtype or x.dtype


def _infer_extreme(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if builtins.any(x.shape[a] == 0 for a in axis):
        raise ConversionError(f"max and min of no elements do not exist: shape {x.shape}, axis {axis}")
    return reduced_shape(x.shape, axis, keepdims), x.dtype


def _infer_position(x: Any, axis: int) -> Any:
    if x.shape[axis] == 0:
        raise ConversionError(f"argmax and argmin of no elements do not exist: shape {x.shape}, axis {axis}")
    return x.shape[:axis] + x.shape[axis + 1 :], dtypes.default_int


def aligned(g: Tensor, node: Any) -> Tensor:
    """The result of a reduction, or its gradient, in a shape that broadcasts to that of the input."""
    shape, axes = node.inputs[0].shape, node.attrs["axis"]
    if node.attrs["keepdims"] or len(axes) == len(shape):
        return g
    return raw_reshape(g, shape=reduced_shape(shape, axes, True))  # type: ignore[no-any-return]


def spread(g: Tensor, node: Any) -> Tensor:
    """The result of a reduction, or its gradient, broadcast back over the axes that were reduced."""
    return raw_broadcast_to(aligned(g, node), shape=node.inputs[0].shape)  # type: ignore[no-any-return]


def _of_extreme(g: Any, out: Any, x: Any, node: Any) -> Any:
    """The gradient goes to the extreme element; equal ones share it.  All others get 0, also where g is infinite."""
    hit = equal(x, aligned(out, node))
    count = raw_sum(P.astype.apply(hit, dtype=g.dtype), **{**node.attrs, "dtype": None})
    return where(hit, aligned(g / count, node), 0.0)


def _of_prod(g: Any, x: Any, node: Any) -> Any:
    """The derivative by each element is the product of the others, also where elements are zero."""
    axes = node.attrs["axis"]
    shape = x.shape
    rest = [i for i in range(len(shape)) if i not in axes]
    moved = x.permute_dims((*rest, *axes))
    lined = reshape(moved, (*[shape[i] for i in rest], math.prod([shape[i] for i in axes])))
    others = product_of_others(lined)
    order = sorted(range(len(shape)), key=[*rest, *axes].__getitem__)
    others = reshape(others, tuple([shape[i] for i in (*rest, *axes)])).permute_dims(order)
    return spread(g, node) * others


def product_of_others(x: Tensor) -> Tensor:
    """For each element along the last axis, the product of all the others, by products from both sides.

    >>> product_of_others(mg.asarray([2.0, 0.0, 5.0])).tolist()
    [0.0, 10.0, 0.0]
    """
    from .joining import concat
    from .view import flip

    if not x.shape[-1]:
        return x
    one = broadcast_to(as_tensor(1.0, x.device).astype(x.dtype), (*x.shape[:-1], 1))
    last = x.ndim - 1
    ahead = P.cumulative_prod.apply(concat([one, x[..., :-1]], axis=-1), axis=last, dtype=None)
    behind = P.cumulative_prod.apply(concat([one, flip(x[..., 1:], axis=-1)], axis=-1), axis=last, dtype=None)
    return ahead * flip(behind, axis=-1)


def _of_cumulative_sum(g: Any, node: Any) -> Any:
    from .view import flip

    axis = node.attrs["axis"]
    return flip(P.cumulative_sum.apply(flip(g, axis=axis), axis=axis, dtype=None), axis=axis)


def _of_cumulative_prod(g: Any, x: Any, node: Any) -> Any:
    """The derivative of result i by element j is the product of x[0..i] without x[j], also where x has zeros."""
    axis = node.attrs["axis"]
    order = [i for i in range(x.ndim) if i != axis] + [axis]
    lined, lined_g = x.permute_dims(order), g.permute_dims(order)
    n = lined.shape[-1]
    if n == 0:
        return g
    from .creation import eye, tril

    own = eye(n, dtype=dtypes.bool, device=x.device)
    without = where(own, 1.0, reshape(lined, (*lined.shape[:-1], 1, n)))  # row j: x without element j
    partial = P.cumulative_prod.apply(without, axis=without.ndim - 1, dtype=None)  # [j, i]
    from_j = tril(broadcast_to(as_tensor(1.0, x.device).astype(x.dtype), (n, n))).T  # result i reads x[j] if j <= i
    total = sum(partial * from_j * reshape(lined_g, (*lined.shape[:-1], 1, n)), axis=-1)
    return total.permute_dims(sorted(range(x.ndim), key=order.__getitem__))


for _op in (
    Primitive("sum", "reduce", ("x",), _infer_total, {"x": lambda g, node: spread(g, node)}, promotes=(), linear=("x",),
              formula=r"\sum x", local={"x": "1"}),
    Primitive("prod", "reduce", ("x",), _infer_total, {"x": _of_prod}, promotes=(), formula=r"\prod x",
              local={"x": r"\prod_{k \ne i} x_k"}),
    Primitive("max", "reduce", ("x",), _infer_extreme, {"x": _of_extreme}, promotes=(), formula=r"\max x",
              local={"x": r"\frac{[x_i = \max x]}{\text{number of maxima}}"}),
    Primitive("min", "reduce", ("x",), _infer_extreme, {"x": _of_extreme}, promotes=(), formula=r"\min x",
              local={"x": r"\frac{[x_i = \min x]}{\text{number of minima}}"}),
    Primitive("argmax", "reduce", ("x",), _infer_position, promotes=(), formula=r"\operatorname{argmax} x"),
    Primitive("argmin", "reduce", ("x",), _infer_position, promotes=(), formula=r"\operatorname{argmin} x"),
    Primitive("cumulative_sum", "reduce", ("x",), lambda x, axis, dtype=None: (x.shape, dtype or x.dtype),
              {"x": _of_cumulative_sum}, promotes=(), linear=("x",), formula=r"\sum_{k \le i} x_k",
              local={"x": r"[k \le i]"}),
    Primitive("cumulative_prod", "reduce", ("x",), lambda x, axis, dtype=None: (x.shape, dtype or x.dtype),
              {"x": _of_cumulative_prod}, promotes=(), formula=r"\prod_{k \le i} x_k",
              local={"x": r"\prod_{k \le i, k \ne j} x_k"}),
):
    declare(_op)

# the primitives themselves, with final attributes and without checks
raw_sum, raw_max, raw_min = P.sum.apply, P.max.apply, P.min.apply


def _to_total(x: Tensor, dtype: Any) -> tuple[Tensor, Any]:
    """The tensor to sum or multiply, and the dtype: int64 for integers, so that they do not overflow."""
    kind = x._data.dtype.kind
    if dtype is None:
        return x, None if kind == "f" else dtypes.default_int
    dtype = dtypes.as_dtype(dtype)
    return (astype(x, dtype) if kind == "f" and dtype.kind != "f" else x), dtype


@method
def sum(x: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (over everything if None).  Integers are summed in int64.

    >>> mg.sum(mg.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [4.0, 6.0]
    """
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    axes = normal_axes("sum", axis, len(x._data.shape))
    if dtype is not None or x._data.dtype is not dtypes.float32:
        x, dtype = _to_total(x, dtype)
    return raw_sum(x, axis=axes, keepdims=keepdims, dtype=dtype)


@method
def prod(x: Tensor, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` (over everything if None).

    >>> mg.prod(mg.asarray([2.0, 3.0, 4.0])).item()
    24.0
    """
    x = as_tensor(x)
    axes = normal_axes("prod", axis, x.ndim)
    x, dtype = _to_total(x, dtype)
    return P.prod.apply(x, axis=axes, keepdims=keepdims, dtype=dtype)


@method
def max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element along `axis` (of everything if None).

    >>> mg.max(mg.asarray([[1.0, 5.0], [7.0, 2.0]]), axis=1).tolist()
    [5.0, 7.0]
    """
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    return raw_max(x, axis=normal_axes("max", axis, len(x._data.shape)), keepdims=keepdims)


@method
def min(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element along `axis` (of everything if None).

    >>> mg.min(mg.asarray([3.0, 1.0, 2.0])).item()
    1.0
    """
    if x.__class__ is not Tensor:
        x = as_tensor(x)
    return raw_min(x, axis=normal_axes("min", axis, len(x._data.shape)), keepdims=keepdims)


@method
@composed
def mean(x: FloatTensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis` (over everything if None); of bools, the share of True.

    >>> mg.mean(mg.asarray([1.0, 2.0, 6.0])).item(), mg.mean(mg.asarray([True, False])).item()
    (3.0, 0.5)
    """
    if x._data.dtype is dtypes.float16:
        return in_float32(mean, x, axis, keepdims=keepdims)
    axes = normal_axes("mean", axis, x.ndim)
    total = raw_sum(x, axis=axes, keepdims=keepdims, dtype=None)
    return total / math.prod([x.shape[a] for a in axes])


@method
@program()
def var(x: FloatTensor, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over `axis`: the sum of squares divided by n - `correction`, or by 0 if that is negative.

    >>> mg.var(mg.asarray([1.0, 3.0])).item()
    1.0
    """
    if x._data.dtype is dtypes.float16:
        return in_float32(var, x, axis, correction, keepdims)
    axes = normal_axes("var", axis, x.ndim)
    count = math.prod([x.shape[a] for a in axes])
    off = x - mean(x, axes, keepdims=True)
    squares = raw_sum(multiply(off, off), axis=axes, keepdims=keepdims, dtype=None)
    # The mean is rounded, which raises the squares: far from 0 by more than their own rounding.  It changes no slope.
    slip = raw_sum(off.detach(), axis=axes, keepdims=keepdims, dtype=None)
    excess = slip * (slip / builtins.max(count, 1))
    total = squares - where(excess < squares, excess, squares.detach())
    return total / builtins.max(count - correction, 0)


@method
@program()
def std(x: FloatTensor, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over `axis`: the root of the variance.  Where it is 0, the gradient is 0 too.

    >>> mg.std(mg.asarray([1.0, 3.0])).item()
    1.0
    """
    if x._data.dtype is dtypes.float16:
        return in_float32(std, x, axis, correction, keepdims)
    return root(var(x, axis, correction, keepdims), 2)


@composed
def nansum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` of what is not nan.

    >>> mg.nansum(mg.asarray([1.0, mg.nan, 5.0])).item()
    6.0
    """
    return sum(where(equal(x, x), x, 0), axis, keepdims=keepdims)


@composed
def nanmean(x: FloatTensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis` of what is not nan; nan where there is nothing else.

    >>> mg.nanmean(mg.asarray([1.0, mg.nan, 5.0])).item()
    3.0
    """
    return nansum(x, axis, keepdims) / sum(astype(equal(x, x), x.dtype), axis, keepdims=keepdims)


def root(total: Tensor, degree: float) -> Tensor:
    """The root of a sum that may be 0, where the infinite slope of the root is taken to be 0.

    >>> total = mg.asarray([0.0, 4.0], requires_grad=True)
    >>> root(total, 2).sum().backward()
    >>> total.grad.tolist()
    [0.0, 0.25]
    """
    nothing = equal(total, 0)
    safe = where(nothing, 1.0, total)
    return where(nothing, 0.0, sqrt(safe) if degree == 2 else power(safe, 1 / degree))


@program()
def vector_norm(x: Tensor, axis: Any = None, ord: float = 2, keepdims: bool = False) -> Tensor:
    """The norm of vectors along `axis` (of all elements as one vector if None): the p-th root of the sum of |x|ᵖ.

    `ord` may be any number: inf and -inf are the largest and the smallest size, 0 counts what is not 0.  The gradient
    at a vector of zeros is taken to be 0.

    >>> x = mg.asarray([3.0, -4.0])
    >>> [mg.linalg.vector_norm(x, ord=p).item() for p in (1, 2, mg.inf, 0)]
    [7.0, 5.0, 4.0, 2.0]
    """
    x = to_float(x)
    axes = normal_axes("vector_norm", axis, x.ndim)
    if ord == math.inf:
        return max(abs(x), axes, keepdims)
    if ord == -math.inf:
        return min(abs(x), axes, keepdims)
    if ord == 0:
        return sum(astype(not_equal(x, 0), x.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return sum(abs(x), axes, keepdims=keepdims)
    if not isinstance(ord, (int, float)):
        raise ConversionError(f"vector_norm: ord is a number, not {ord!r}")
    if ord == 2:
        return root(sum(multiply(x, x), axes, keepdims=keepdims), 2)
    return root(sum(power(abs(x), ord), axes, keepdims=keepdims), ord)


def in_float32(statistic: Callable[..., Tensor], x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Compute in float32, because a sum may exceed 65504, the largest float16, even if the mean does not."""
    return astype(statistic(astype(x, dtypes.float32), *args, **kwargs), dtypes.float16)


@method
def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the largest element along `axis` (in the flattened tensor if None); the first of equal ones.

    >>> mg.argmax(mg.asarray([1.0, 5.0, 2.0])).item()
    1
    """
    return _position(P.argmax, x, axis, keepdims)


@method
def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the smallest element along `axis` (in the flattened tensor if None).

    >>> mg.argmin(mg.asarray([1.0, 5.0, -2.0])).item()
    2
    """
    return _position(P.argmin, x, axis, keepdims)


def _position(op: Primitive, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        out = op.apply(reshape(x, (-1,)), axis=0)
        return reshape(out, (1,) * x.ndim) if keepdims else out
    place = normal_axis(op.name, axis, x.ndim)
    out = op.apply(x, axis=place)
    return reshape(out, reduced_shape(x.shape, (place,), True)) if keepdims else out


@method
@composed
def all(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether every element along `axis` is true (not zero).

    >>> mg.all(mg.asarray([True, False])).item()
    False
    """
    return equal(count_nonzero(equal(x, 0), axis, keepdims), 0)


@method
@composed
def any(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element along `axis` is true (not zero).

    >>> mg.any(mg.asarray([True, False])).item()
    True
    """
    return greater(count_nonzero(x, axis, keepdims), 0)


@method
@composed
def count_nonzero(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The number of elements along `axis` that are not zero.

    >>> mg.count_nonzero(mg.asarray([1, 0, 3])).item()
    2
    """
    hit = x if x.dtype is dtypes.bool else not_equal(x, 0)
    axes = normal_axes("count_nonzero", axis, x.ndim)
    return raw_sum(hit, axis=axes, keepdims=keepdims, dtype=dtypes.default_int)


@method
def cumulative_sum(x: Tensor, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The running sum along `axis`; `include_initial` puts a 0 in front.

    >>> mg.cumulative_sum(mg.asarray([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    """
    return _running(P.cumulative_sum, x, axis, dtype, include_initial, 0)


@method
def cumulative_prod(x: Tensor, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The running product along `axis`; `include_initial` puts a 1 in front.

    >>> mg.cumulative_prod(mg.asarray([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 6.0]
    """
    return _running(P.cumulative_prod, x, axis, dtype, include_initial, 1)


def _running(op: Primitive, x: Any, axis: int | None, dtype: Any, include_initial: bool, first: int) -> Tensor:
    from .joining import concat

    place = only_axis(op.name, axis, x)
    x, dtype = _to_total(x, dtype)
    out = op.apply(x, axis=place, dtype=dtype)
    if include_initial:
        shape = tuple([1 if i == place else s for i, s in enumerate(x.shape)])
        out = concat([broadcast_to(as_tensor(first, x.device).astype(out.dtype), shape), out], axis=place)
    return out


@method
@program()
def clip(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The values limited to `min` and `max`; either may be missing.  A value at a limit has the whole gradient.

    >>> mg.clip(mg.asarray([-1.0, 0.5, 3.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    out = x if min is None else _limited(x, low := _bound(min, x), less(x, low))
    out = out if max is None else _limited(out, high := _bound(max, x), less(high, out))
    return out.copy() if out is x else out


def _bound(bound: Any, x: Tensor) -> Any:
    return bound if bound.__class__ in NUMBERS else astype(as_tensor(bound, x.device), x.dtype, copy=False)


def _limited(x: Tensor, bound: Any, beyond: Tensor) -> Tensor:
    """x, with the bound where it is beyond it, or where the bound is nan."""
    return where(bitwise_or(beyond, not_equal(bound, bound)) if bound.__class__ is Tensor else beyond, bound, x)
