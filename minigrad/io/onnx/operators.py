"""ONNX's operators as our functions: the inverse of the tables in `counterparts` and `composites`.

A function takes the inputs of a node by position and its attributes by name.  A parameter annotated `Numbers` has to be
known before the model runs, because shapes depend on it: it is computed from constants and shapes.  Defaults are those
of ONNX.  A file with an attribute that the function does not take is an error when the file is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.tensor import Tensor
from ...ops import (
    bits,
    contract,
    convolution,
    creation,
    elementary,
    elementwise,
    functional,
    index,
    joining,
    normalization,
    ordering,
    pooling,
    reduce,
    view,
)
from ...support.errors import FileError
from .counterparts import SAME

Numbers = Sequence[int]

MOST = 1 << 31  # elements of a tensor whose size a file gives, so that a few bytes cannot fill the memory
EACH = vars(elementwise) | vars(bits)
OPERATORS: dict[str, Callable[..., Any]] = {SAME[name]: EACH[name] for name in SAME if name != "matmul"}
NUMBERS_WELCOME = frozenset(OPERATORS) - {"Where"}  # a constant without dimensions may be a number


def operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put a function into the table, by its name."""
    OPERATORS[function.__name__.rstrip("_")] = function
    return function


OPERATORS |= {
    "MatMul": contract.matmul,
    "And": bits.bitwise_and, "Or": bits.bitwise_or, "Xor": bits.bitwise_xor,
    "Not": bits.bitwise_invert, "Greater": elementwise.greater, "GreaterOrEqual": elementwise.greater_equal,
    "Sign": elementwise.sign, "Reciprocal": elementary.reciprocal, "Atan": elementary.atan, "IsNaN": elementary.isnan,
    "Relu": functional.relu, "Softplus": functional.softplus,
    "Identity": lambda x: x,
}


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
def Mod(x: Any, y: Any, fmod: int = 0) -> Any:
    """With `fmod` the result has the sign of x."""
    if not fmod:
        return elementwise.remainder(x, y)
    rest = elementwise.remainder(elementwise.abs(x), elementwise.abs(y))
    return elementwise.where(x < 0, -rest, rest)


def _kind(*values: Any) -> str:
    return dtypes.result_type(*values).kind


def _several(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(first: Any, *others: Any) -> Any:
        for other in others:
            first = function(first, other)
        return first

    return apply


OPERATORS |= {
    "Max": _several(elementwise.maximum), "Min": _several(elementwise.minimum), "Sum": _several(elementwise.add),
}


@operator
def BitShift(x: Tensor, y: Any, direction: str) -> Any:
    return (bits.bitwise_left_shift if direction == "LEFT" else bits.bitwise_right_shift)(x, y)


@operator
def IsInf(x: Tensor, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    found = elementary.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@operator
def Cast(x: Tensor, to: Any, saturate: int = 1) -> Any:
    return x.astype(to)  # type: ignore[attr-defined]


@operator
def Clip(x: Tensor, low: Any = None, high: Any = None) -> Any:
    return reduce.clip(x, low, high)


# Shapes --------------------------------------------------------------------------------------------------------------


@operator
def Reshape(x: Tensor, shape: Numbers, allowzero: int = 0) -> Any:
    return view.reshape(x, [x.shape[i] if extent == 0 and not allowzero else extent for i, extent in enumerate(shape)])


@operator
def Transpose(x: Tensor, perm: Any = None) -> Any:
    return view.permute_dims(x, None if perm is None else tuple(perm))


@operator
def Expand(x: Tensor, shape: Numbers) -> Any:
    return view.broadcast_to(x, allowed(np.broadcast_shapes(x.shape, tuple(shape))))


@operator
def Flatten(x: Tensor, axis: int = 1) -> Any:
    axis %= x.ndim + 1
    return view.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator
def Squeeze(x: Tensor, axes: Numbers = ()) -> Any:
    return view.squeeze(x, tuple(axes or [a for a, extent in enumerate(x.shape) if extent == 1]))


@operator
def Unsqueeze(x: Tensor, axes: Numbers) -> Any:
    ndim = x.ndim + len(axes)
    places = {a % ndim for a in axes}
    rest = iter(x.shape)
    return view.reshape(x, [1 if a in places else next(rest) for a in range(ndim)])


@operator
def Slice(x: Tensor, starts: Numbers, ends: Numbers, axes: Numbers | None = None, steps: Numbers | None = None) -> Any:
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
def Split(x: Tensor, sizes: Numbers | None = None, axis: int = 0, num_outputs: Any = None) -> Any:
    if sizes is None:
        if not num_outputs or x.shape[axis] % num_outputs:
            raise FileError(f"Split: shape {x.shape} can't be cut into {num_outputs} equal parts along axis {axis}")
        return tuple(joining.split(x, num_outputs, axis=axis))
    return tuple(joining.split(x, [int(n) for n in np.cumsum(sizes)[:-1]], axis=axis))


@operator
def Pad(x: Tensor, pads: Numbers, value: Numbers | None = None, axes: Numbers | None = None,
        mode: str = "constant") -> Any:
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
def ConstantOfShape(shape: Numbers, value: Any = None) -> Any:
    one = np.zeros((), np.float32) if value is None else np.asarray(value)
    return creation.full(allowed(shape), one.reshape(()).item(), dtypes.as_dtype(one.dtype))


@operator
def Range(start: Any, limit: Any, delta: Any) -> Any:
    first, last, step = (v.item() for v in (start, limit, delta))
    (count,) = allowed([max(0, math.ceil((last - first) / step))])
    return creation.arange(count, dtype=dtypes.int64).astype(start.dtype) * step + first  # type: ignore[attr-defined]


# Reductions and order ------------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Tensor, axes: Numbers | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        if not axes and noop_with_empty_axes:
            return x
        out = function(x, axis=tuple(axes) if axes else None, keepdims=bool(keepdims))
        return out if out.dtype is x.dtype else out.astype(x.dtype)

    return apply


for _name in ("sum", "prod", "max", "min", "mean"):
    OPERATORS[f"Reduce{_name.title()}"] = _reduction(getattr(reduce, _name))


def _position(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Tensor, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        if select_last_index:
            raise FileError("ArgMax: select_last_index is not supported; of equal elements the first is chosen")
        return function(x, axis=axis, keepdims=bool(keepdims))

    return apply


OPERATORS |= {"ArgMax": _position(reduce.argmax), "ArgMin": _position(reduce.argmin)}


@operator
def CumSum(x: Tensor, axis: Numbers, exclusive: int = 0, reverse: int = 0) -> Any:
    if exclusive or reverse:
        raise FileError("CumSum: exclusive and reverse sums are not supported")
    return reduce.cumulative_sum(x, axis=axis[0], dtype=x.dtype)


@operator
def TopK(x: Tensor, k: Numbers, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    return ordering.topk(x, k[0], axis, bool(largest))


# Picking and placing -------------------------------------------------------------------------------------------------


@operator
def Gather(x: Tensor, indices: Any, axis: int = 0) -> Any:
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]  # type: ignore[index]


@operator
def GatherND(x: Tensor, indices: Tensor, batch_dims: int = 0) -> Any:
    if batch_dims:
        raise FileError("GatherND: batch_dims are not supported")
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
def Gemm(
    a: Tensor, b: Tensor, c: Any = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0
) -> Any:
    a, b = (view.permute_dims(a) if transA else a), (b if transB else view.permute_dims(b))
    c = c if c is None or beta == 1.0 else c * beta
    if alpha == 1.0 and (c is None or c.ndim == 1):
        return functional.linear(a, b, c)
    out = contract.matmul(a, view.permute_dims(b)) * alpha
    return out if c is None else out + c


def _pairs(pads: Any, count: int) -> tuple[tuple[int, int], ...]:
    pads = [0] * (2 * count) if pads is None else pads
    return tuple(zip(pads[:count], pads[count:]))


def _checked(name: str, ndim: int, auto_pad: str, **flags: Any) -> int:
    """The number of dimensions that windows slide along."""
    asked = [f"{key}={value!r}" for key, value in flags.items() if value] + [f"auto_pad={auto_pad!r}"] * (
        auto_pad != "NOTSET")
    if asked or ndim not in (3, 4):
        raise FileError(f"{name}: not supported for these attributes or dimensions",
                        actual=", ".join([f"{ndim} dimensions", *asked]))
    return ndim - 2


@operator
def Conv(x: Tensor, weight: Tensor, bias: Any = None, auto_pad: str = "NOTSET", dilations: Any = 1, group: int = 1,
         kernel_shape: Any = None, pads: Any = None, strides: Any = 1) -> Any:
    count = _checked("Conv", x.ndim, auto_pad)
    function = convolution.conv1d if count == 1 else convolution.conv2d
    return function(x, weight, bias, strides, _pairs(pads, count), dilations, group)


@operator
def ConvTranspose(x: Tensor, weight: Tensor, bias: Any = None, auto_pad: str = "NOTSET", dilations: Any = 1,
                  group: int = 1, kernel_shape: Any = None, output_padding: Any = 0, pads: Any = None,
                  strides: Any = 1, output_shape: Any = None) -> Any:
    count = _checked("ConvTranspose", x.ndim, auto_pad, output_shape=output_shape)
    pairs = _pairs(pads, count)
    if count != 2 or any(before != behind for before, behind in pairs):
        raise FileError("ConvTranspose: only images with equal padding on both sides are supported", actual=pads)
    return convolution.conv_transpose2d(
        x, weight, bias, stride=strides, padding=[p for p, _ in pairs], output_padding=output_padding, groups=group,
        dilation=dilations,
    )


@operator
def MaxPool(x: Tensor, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Any = 1,
            pads: Any = None, storage_order: int = 0, strides: Any = 1) -> Any:
    count = _checked("MaxPool", x.ndim, auto_pad, ceil_mode=ceil_mode, storage_order=storage_order)
    function = pooling.max_pool1d if count == 1 else pooling.max_pool2d
    return _pooled(function, x, _pairs(pads, count), -math.inf, kernel_shape, strides, dilation=dilations)


@operator
def AveragePool(x: Tensor, kernel_shape: Any, auto_pad: str = "NOTSET", ceil_mode: int = 0,
                count_include_pad: int = 0, pads: Any = None, strides: Any = 1) -> Any:
    count = _checked("AveragePool", x.ndim, auto_pad, ceil_mode=ceil_mode)
    pairs = _pairs(pads, count)
    if not count_include_pad and any(map(any, pairs)):
        raise FileError("AveragePool: a mean without the padding is not supported",
                        expect="count_include_pad=1, or no pads")
    function = pooling.avg_pool1d if count == 1 else pooling.avg_pool2d
    return _pooled(function, x, pairs, 0.0, kernel_shape, strides)


def _pooled(function: Any, x: Tensor, pads: Any, outside: float, size: Any, stride: Any, **options: Any) -> Any:
    """Pooling with these pads; pads that the function does not take are put around the image first."""
    if all(before == behind and 2 * before <= extent for (before, behind), extent in zip(pads, size)):
        return function(x, size, stride, padding=[before for before, _ in pads], **options)
    return function(convolution.padded(x, pads, outside), size, stride, **options)


@operator
def GlobalAveragePool(x: Tensor) -> Any:
    return reduce.mean(x, tuple(range(2, x.ndim)), keepdims=True)


@operator
def BatchNormalization(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, epsilon: float = 1e-5,
                       momentum: float = 0.9, training_mode: int = 0) -> Any:
    if training_mode:
        raise FileError("BatchNormalization: a file with training_mode=1 is not supported")
    return normalization.batch_norm(x, mean, variance, weight, bias, eps=epsilon)


@operator
def LayerNormalization(x: Tensor, weight: Tensor, bias: Any = None, axis: int = -1, epsilon: float = 1e-5,
                       stash_type: int = 1) -> Any:
    if axis % x.ndim != x.ndim - 1:
        raise FileError(f"LayerNormalization: only the last axis is supported, not axis {axis}")
    return functional.layer_norm(x, weight, bias, eps=epsilon)


@operator
def Softmax(x: Tensor, axis: int = -1) -> Any:
    return functional.softmax(x, axis)


@operator
def LogSoftmax(x: Tensor, axis: int = -1) -> Any:
    return functional.log_softmax(x, axis)


@operator
def Elu(x: Tensor, alpha: float = 1.0) -> Any:
    return functional.elu(x, alpha)


@operator
def LeakyRelu(x: Tensor, alpha: float = 0.01) -> Any:
    return functional.leaky_relu(x, alpha)


@operator
def Gelu(x: Tensor, approximate: str = "none") -> Any:
    return functional.gelu(x, approximate)
