"""ONNX's operators as our functions, for load: those that are not in `both`.

A function takes the inputs of a node by position and its attributes by name.  An input or an attribute that the file
leaves out has ONNX's default, or is None; so only those that older opsets lack have a default here.  A parameter
annotated `Numbers` must be known before the model runs, because shapes depend on it: it is computed from constants
and shapes.  A file that sets an attribute that the function does not take is an error when the file is read.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Sequence
from functools import reduce as fold
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.tensor import Tensor
from ...ops import (
    bits,
    contract,
    creation,
    elementary,
    elementwise,
    functional,
    index,
    joining,
    ordering,
    reduce,
    view,
)
from ...support.errors import FileError
from .counterparts import OF_BOOLS, SAME

Numbers = Sequence[int]

MOST = 1 << 31  # elements of a tensor whose size a file gives, so that a few bytes cannot fill the memory


class Operator(NamedTuple):
    """The function that computes an operator, the attributes that it takes, and the inputs that are `Numbers`."""

    compute: Callable[..., Any]
    attributes: Collection[str]
    numbers: Collection[int] = ()


OPERATORS: dict[str, Operator] = {}


def operator(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Put a function into the table, by its name or by another one."""
    parameters = inspect.signature(function).parameters
    numbers = [i for i, p in enumerate(parameters.values()) if "Numbers" in str(p.annotation)]
    OPERATORS[name or function.__name__] = Operator(function, parameters, numbers)
    return function


EACH = vars(elementwise) | vars(bits) | {"matmul": contract.matmul}
for _name, _theirs in (*SAME.items(), *[(name, theirs) for name, theirs in OF_BOOLS.items() if "bitwise" in name]):
    operator(EACH[_name], _theirs)
NUMBERS_WELCOME = frozenset(OPERATORS) - {"Where", "MatMul"}  # a constant without dimensions may be a number

operator(elementwise.greater, "Greater")
operator(elementwise.greater_equal, "GreaterOrEqual")
operator(elementwise.sign, "Sign")
operator(elementary.reciprocal, "Reciprocal")
operator(elementary.atan, "Atan")
operator(elementary.isnan, "IsNaN")
operator(functional.gelu, "Gelu")
operator(lambda x: x, "Identity")


def allowed(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape from a file, after a check that it is not negative or huge."""
    if any(extent < 0 for extent in shape) or math.prod(shape) > MOST:
        raise FileError(f"the file asks for a tensor of shape {tuple(shape)}", expect=f"at most {MOST:,} elements")
    return tuple(shape)


# Arithmetic ----------------------------------------------------------------------------------------------------------


@operator
def Div(x: Any, y: Any) -> Any:
    """Integers are rounded towards zero."""
    if _kind(x, y) not in "iu":
        return elementwise.divide(x, y)
    down, rest = elementwise.floor_divide(x, y), elementwise.remainder(x, y)
    up = (rest != 0) & ((x < 0) ^ (y < 0))
    return elementwise.where(up, down + 1, down)


@operator
def Mod(x: Any, y: Any, fmod: int) -> Any:
    """With `fmod` the result has the sign of x."""
    if not fmod:
        return elementwise.remainder(x, y)
    rest = elementwise.remainder(elementwise.abs(x), elementwise.abs(y))
    return elementwise.where(x < 0, -rest, rest)


def _kind(*values: Any) -> str:
    return dtypes.result_type(*values).kind


def _several(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *values: fold(function, values)


operator(_several(elementwise.maximum), "Max")
operator(_several(elementwise.minimum), "Min")
operator(_several(elementwise.add), "Sum")


@operator
def BitShift(x: Tensor, y: Any, direction: str) -> Any:
    return (bits.bitwise_left_shift if direction == "LEFT" else bits.bitwise_right_shift)(x, y)


@operator
def IsInf(x: Tensor, detect_negative: int, detect_positive: int) -> Any:
    found = elementary.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@operator
def Cast(x: Tensor, to: Any) -> Any:
    return x.astype(to)  # type: ignore[attr-defined]


@operator
def Clip(x: Tensor, low: Any, high: Any) -> Any:
    return reduce.clip(x, low, high)


# Shapes --------------------------------------------------------------------------------------------------------------


@operator
def Reshape(x: Tensor, shape: Numbers, allowzero: int | None = None) -> Any:
    return view.reshape(x, [x.shape[i] if extent == 0 and not allowzero else extent for i, extent in enumerate(shape)])


@operator
def Transpose(x: Tensor, perm: Any) -> Any:
    return view.permute_dims(x, None if perm is None else tuple(perm))


@operator
def Expand(x: Tensor, shape: Numbers) -> Any:
    return view.broadcast_to(x, allowed(np.broadcast_shapes(x.shape, tuple(shape))))


@operator
def Flatten(x: Tensor, axis: int) -> Any:
    axis %= x.ndim + 1
    return view.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator
def Squeeze(x: Tensor, axes: Numbers | None) -> Any:
    return view.squeeze(x, tuple(axes or [a for a, extent in enumerate(x.shape) if extent == 1]))


@operator
def Unsqueeze(x: Tensor, axes: Numbers) -> Any:
    ndim = x.ndim + len(axes)
    places = {a % ndim for a in axes}
    rest = iter(x.shape)
    return view.reshape(x, [1 if a in places else next(rest) for a in range(ndim)])


@operator
def Slice(x: Tensor, starts: Numbers, ends: Numbers, axes: Numbers | None, steps: Numbers | None) -> Any:
    places = range(len(starts)) if axes is None else axes
    cuts: list[Any] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(places, starts, ends, steps or [1] * len(starts)):
        first, last, by = slice(start, end, step).indices(x.shape[axis])
        cuts[axis] = slice(first, None if last < 0 else last, by)
    return x[tuple(cuts)]  # type: ignore[index]


@operator
def Concat(*xs: Tensor, axis: int) -> Any:
    return joining.concat(xs, axis=axis)


@operator
def Split(x: Tensor, sizes: Numbers | None, axis: int, num_outputs: Any = None) -> Any:
    if sizes is None:
        if not num_outputs or x.shape[axis] % num_outputs:
            raise FileError(f"Split: shape {x.shape} can't be cut into {num_outputs} equal parts along axis {axis}")
        return tuple(joining.split(x, num_outputs, axis=axis))
    return tuple(joining.split(x, [int(n) for n in np.cumsum(sizes)[:-1]], axis=axis))


@operator
def Pad(x: Tensor, pads: Numbers, value: Numbers | None, axes: Numbers | None = None, *, mode: str) -> Any:
    if mode != "constant" or any(p < 0 for p in pads):
        raise FileError(f"Pad: mode {mode!r} with pads {list(pads)} is not supported")
    places = [a % x.ndim for a in (range(x.ndim) if axes is None else axes)]
    half = len(pads) // 2
    widths = dict(zip(places, zip(pads[:half], pads[half:])))
    every = [widths.get(a, (0, 0)) for a in range(x.ndim)]
    allowed([before + extent + behind for extent, (before, behind) in zip(x.shape, every)])
    return index.pad(x, every, 0 if value is None else value[0])


# Making --------------------------------------------------------------------------------------------------------------


@operator
def ConstantOfShape(shape: Numbers, value: Any) -> Any:
    one = np.zeros((), np.float32) if value is None else np.asarray(value)
    return creation.full(allowed(shape), one.reshape(()).item(), dtypes.as_dtype(one.dtype))


@operator
def Range(start: Any, limit: Any, delta: Any) -> Any:
    first, last, step = (v.item() for v in (start, limit, delta))
    (count,) = allowed([max(0, math.ceil((last - first) / step))])
    return creation.arange(count, dtype=dtypes.int64).astype(start.dtype) * step + first  # type: ignore[attr-defined]


# Reductions and order ------------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Tensor, axes: Numbers | None, keepdims: int, noop_with_empty_axes: int = 0) -> Any:
        if not axes and noop_with_empty_axes:
            return x
        out = function(x, axis=tuple(axes) if axes else None, keepdims=bool(keepdims))
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return apply


for _name in ("sum", "prod", "max", "min", "mean"):
    operator(_reduction(getattr(reduce, _name)), f"Reduce{_name.title()}")


def _position(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Tensor, axis: int, keepdims: int) -> Any:
        return function(x, axis=axis, keepdims=bool(keepdims))

    return apply


operator(_position(reduce.argmax), "ArgMax")
operator(_position(reduce.argmin), "ArgMin")


@operator
def CumSum(x: Tensor, axis: Numbers) -> Any:
    return reduce.cumulative_sum(x, axis=axis[0], dtype=x.dtype)


@operator
def TopK(x: Tensor, k: Numbers, axis: int, largest: int) -> Any:
    return ordering.topk(x, k[0], axis, bool(largest))


# Picking and placing -------------------------------------------------------------------------------------------------


@operator
def Gather(x: Tensor, indices: Any, axis: int) -> Any:
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]  # type: ignore[index]


@operator
def GatherND(x: Tensor, indices: Tensor) -> Any:
    return x[_columns(indices)]  # type: ignore[index]


@operator
def ScatterND(x: Tensor, indices: Tensor, updates: Tensor, reduction: str = "none") -> Any:
    if reduction not in ("none", "add", "max"):
        raise FileError(f"ScatterND: the reduction {reduction!r} is not supported", expect="none, add or max")
    if reduction != "none":
        return (index.scatter_add if reduction == "add" else index.scatter_max)(x, _columns(indices), updates)
    out = elementwise.copy(x)
    out[_columns(indices)] = updates  # type: ignore[index]
    return out


def _columns(indices: Tensor) -> tuple[Any, ...]:
    return tuple([indices[..., i] for i in range(indices.shape[-1])])  # type: ignore[index]


# Layers --------------------------------------------------------------------------------------------------------------


@operator
def Gemm(a: Tensor, b: Tensor, c: Any, alpha: float, beta: float, transA: int, transB: int) -> Any:
    a, b = (view.permute_dims(a) if transA else a), (b if transB else view.permute_dims(b))
    c = c if c is None or beta == 1.0 else c * beta
    if alpha == 1.0 and (c is None or c.ndim == 1):
        return functional.linear(a, b, c)
    out = contract.matmul(a, view.permute_dims(b)) * alpha
    return out if c is None else out + c
