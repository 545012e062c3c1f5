"""Functions for neural networks, composed from the primitives: activations, normalisation, attention.

Neither the compiler nor the backward pass treats these functions specially: your own variant costs and fuses the same.
For any finite input, they do not overflow, and their gradients of any order are right.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.emit import emit, recorded
from ..core.mode import current_mode
from ..core.primitive import P, Primitive
from ..core.tensor import FloatTensor, Tensor, method, wrap
from ..support.errors import ConversionError, DtypeError, IndexingError, ShapeError
from ..support.table import counted
from . import reduce
from .composite import composed, program
from .contract import matmul
from .creation import arange, zeros
from .declare import as_integers, normal_axes, normal_axis
from .elementwise import astype, erf, exp, expm1, log, log1p, sigmoid, tanh, where
from .random import DEFAULT_GENERATOR
from .reduce import Axis, reduced_shape
from .view import expand_dims, permute_dims, reshape

__all__ = [
    "softmax", "log_softmax", "logsumexp",
    "relu", "leaky_relu", "elu", "silu", "gelu", "softplus",
    "linear", "embedding", "one_hot", "dropout", "dropout2d",
    "scaled_dot_product_attention", "attention_weights",
]

# Values beside the computation --------------------------------------------------------------------------------------


def _aside(op: Primitive, *inputs: Any, **attrs: Any) -> Tensor:
    """A value that only shifts a computation: no gradient flows through it, but its node is kept for displays.

    exp(x - c) / sum(exp(x - c)) is the same for every c, so its derivatives by c are zero.  The c that prevents
    overflow needs no gradient.
    """
    if len(inputs) == 1 and (inputs[0].node is None or inputs[0].node.op is None) and not inputs[0].tracked:
        return op.apply(inputs[0], **attrs)  # type: ignore[no-any-return]
    held = [_held(x) if x.__class__ is Tensor else x for x in inputs]
    out: Tensor = emit(op, *held, **attrs)
    if out.node is None and current_mode().grad and any(x.__class__ is Tensor and x.node is not None for x in held):
        values = [x._data if x.__class__ is Tensor else x for x in held]
        out.node = recorded(op, held, values, 0, attrs, out._data, out.device)
    return out


def _held(x: Tensor) -> Tensor:
    interpreter = current_mode().interpreter
    x = x if interpreter is None else interpreter.lift(x)
    held = wrap(x._data if x._data.__class__ is x.device.ndarray else x._data.detached(), x.device)
    held.node = x.node
    return held


def _top(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    if any(not x.shape[axis] for axis in axes):  # no elements have no maximum, and cannot overflow
        return zeros(reduced_shape(x.shape, axes, True), x.dtype, x.device)
    return _aside(P.max, x, axis=axes, keepdims=True)


def _total(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return P.sum.apply(x, axis=axes, keepdims=True, dtype=None)  # type: ignore[no-any-return]


# Softmax and its kin ------------------------------------------------------------------------------------------------


@method
@program()
def softmax(x: FloatTensor, axis: int = -1) -> Tensor:
    """Positive numbers that sum to 1 along `axis`: `exp(x) / sum(exp(x))`.

    >>> import math
    >>> mg.softmax(mg.asarray([1000.0, 1000.0, -math.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    axes = (normal_axis("softmax", axis, x.ndim),)
    powers = exp(x - _top(x, axes))
    return powers * (1.0 / _total(powers, axes))


@method
@program()
def log_softmax(x: FloatTensor, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`, exact even where the softmax is too small for a float.

    >>> mg.log_softmax(mg.asarray([0.0, 200.0])).tolist()
    [-200.0, 0.0]
    """
    axes = (normal_axis("log_softmax", axis, x.ndim),)
    shifted = x - _top(x, axes)
    return shifted - log(_total(exp(shifted), axes))


@method
@program()
def logsumexp(x: FloatTensor, axis: Axis = -1, keepdims: bool = False) -> Tensor:
    """A smooth maximum along `axis`, one or several: `log(sum(exp(x)))`.

    >>> mg.logsumexp(mg.asarray([1000.0, 1000.0])).item()
    1000.693...
    """
    axes = normal_axes("logsumexp", axis, x.ndim)
    largest = dtypes.finfo(x.dtype).max
    top = _aside(P.minimum, _aside(P.maximum, _top(x, axes), -largest), largest)  # inf - inf would be nan
    out = log(_total(exp(x - top), axes)) + top
    return out if keepdims else reshape(out, reduced_shape(x.shape, axes, False))


# Activations --------------------------------------------------------------------------------------------------------


@method
@program()
def relu(x: Tensor) -> Tensor:
    """x where it is positive, 0 elsewhere; at 0 the gradient is 0.

    >>> mg.relu(mg.asarray([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    return where(x <= 0, 0, x)  # nan is not less than 0, and stays nan


@program()
def leaky_relu(x: FloatTensor, slope: float = 0.01) -> Tensor:
    """x where it is positive, `slope` times x elsewhere.

    >>> mg.leaky_relu(mg.asarray([-2.0, 2.0]), slope=0.5).tolist()
    [-1.0, 2.0]
    """
    return where(x <= 0.0, x * slope, x)


@program()
def elu(x: FloatTensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, alpha (exp(x) - 1) elsewhere.

    >>> mg.elu(mg.asarray([-1000.0, 2.0])).tolist()
    [-1.0, 2.0]
    """
    low = x <= 0.0
    bent = expm1(where(low, x, 0.0))  # expm1 of a large x would overflow, and 0 * inf is nan
    return where(low, bent if alpha == 1.0 else bent * alpha, x)


@program()
def silu(x: FloatTensor) -> Tensor:
    """x * sigmoid(x), also called swish.

    >>> mg.silu(mg.asarray([-1000.0, 0.0, 1000.0])).tolist()
    [-0.0, 0.0, 1000.0]
    """
    return x * sigmoid(x)


@program()
def gelu(x: FloatTensor, approximate: str = "none") -> Tensor:
    """x times the probability that a normal number is below x; `approximate="tanh"` is faster and off by 5e-4 at most.

    >>> mg.gelu(mg.asarray([-1000.0, 0.0, 1000.0])).tolist()
    [-0.0, 0.0, 1000.0]
    >>> mg.gelu(mg.asarray([1.0]), approximate="tanh").tolist()
    [0.841...]
    """
    if approximate == "tanh":
        scale = math.sqrt(2 / math.pi)
        bent = tanh(x * (x * x * (0.044715 * scale) + scale))
    elif approximate == "none":
        bent = erf(x * math.sqrt(0.5))
    else:
        raise ConversionError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return x * (bent * 0.5 + 0.5)


@program()
def softplus(x: FloatTensor) -> Tensor:
    """A smooth relu, log(1 + exp(x)), exact in both tails.

    >>> mg.softplus(mg.asarray([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.693..., 1000.0]
    """
    positive = x > 0.0
    high, low = where(positive, x, 0.0), where(positive, 0.0, x)
    return high + log1p(exp(low - high))


# Layers -------------------------------------------------------------------------------------------------------------


@program()
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x times the transpose of `weight`, which has a row for each output, plus `bias`.

    >>> mg.linear(mg.asarray([1.0, 2.0]), mg.asarray([[3.0, 4.0]]), mg.asarray([0.5])).tolist()
    [11.5]
    """
    shape = x.shape
    if weight.ndim != 2 or not shape or shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear: an input of shape {shape} does not fit a weight of shape {weight.shape}",
            expect="(..., features) and (outputs, features)",
        )
    if len(shape) > 2:  # one matrix product instead of many, in the forward pass and for the weight's gradient
        x = reshape(x, (math.prod(shape[:-1]), shape[-1]))
    out = matmul(x, permute_dims(weight))
    if bias is not None:
        out = out + bias
    return reshape(out, (*shape[:-1], weight.shape[0])) if out.ndim != len(shape) else out


@composed
def embedding(weight: Tensor, indices: Any) -> Tensor:
    """The rows of `weight` at these `indices`.

    >>> mg.embedding(mg.asarray([[1.0, 2.0], [3.0, 4.0]]), mg.asarray([1, 1])).tolist()
    [[3.0, 4.0], [3.0, 4.0]]
    """
    if weight.dtype.kind in "iu" and getattr(getattr(indices, "dtype", None), "kind", "") == "f":
        raise DtypeError("embedding: the table comes first, and these are integers", actual=str(weight.dtype),
                         expect="a table of floats, then indices", hint="mg.embedding(weight, indices)")
    indices = as_integers("embedding", "indices", indices, weight)
    if not weight.shape:
        raise ShapeError("embedding: weight needs rows, and this one has no dimensions")
    indices = _check_range("embedding: index", indices, weight.shape[0], f"the table has shape {weight.shape}")
    return P.gather.apply(weight, indices)  # type: ignore[no-any-return]


@composed
def one_hot(indices: Any, count: int, dtype: Any = None) -> Tensor:
    """A new last dimension of size `count` with a 1 at the index and zeros elsewhere.

    >>> mg.one_hot(mg.asarray([2, 0]), 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    indices = as_integers("one_hot", "indices", indices)
    indices = _check_range("one_hot: index", indices, count, f"with {counted(count, 'class', 'classes')}")
    classes = arange(count, dtype=indices.dtype, device=indices.device)
    if current_mode().interpreter is not None:
        indices = P.gather.apply(classes, indices)  # an error at run time if there is no such class
    hit = expand_dims(indices, -1) == classes
    return astype(hit, dtypes.default_float if dtype is None else dtype)


@composed
def dropout(x: FloatTensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero each element with probability `p` and scale the others up, so that the expectation is unchanged.

    The result is `x` itself with `p=0` or without `training`.

    >>> mg.dropout(mg.ones(3), p=0.5, training=False).tolist()
    [1.0, 1.0, 1.0]
    >>> sorted(set(mg.dropout(mg.ones(100), p=0.5).tolist()))
    [0.0, 2.0]
    """
    return _dropped("dropout", x, p, training, x.shape)


@composed
def dropout2d(x: FloatTensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero each channel of images (..., channels, height, width) with probability `p` and scale the others up.

    >>> sorted(set(mg.dropout2d(mg.ones((100, 1, 2, 2))).sum((1, 2, 3)).tolist()))
    [0.0, 8.0]
    """
    if x.ndim < 3:
        raise ShapeError(f"dropout2d: an input of shape {x.shape} has no channels of images",
                         expect="(..., channels, height, width)")
    return _dropped("dropout2d", x, p, training, (*x.shape[:-2], 1, 1))


def _dropped(name: str, x: Tensor, p: float, training: bool, shape: tuple[int, ...]) -> Tensor:
    """Dropout that decides for tensors of `shape`, which broadcasts to that of x."""
    if not 0 <= p <= 1:
        raise ConversionError(f"{name}: a probability is between 0 and 1, not {p}")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    keep = DEFAULT_GENERATOR.bernoulli(1 - p, shape, device=x.device)
    return where(keep, x * (1 / (1 - p)), 0.0)


@program()
def scaled_dot_product_attention(q: FloatTensor, k: FloatTensor, v: FloatTensor, mask: Tensor | None = None,
                                 causal: bool = False, scale: float | None = None, dropout_p: float = 0.0) -> Tensor:
    """For each query, a mean of the values, weighted by the match of their keys: softmax(q kᵀ / √d) v.

    `mask` is True where a query may attend to a key, or holds floats that are added to the scores.  With `causal`, a
    query attends only to keys up to its own position.  A query without any key gets zeros.  `dropout_p` is the
    probability that a weight is dropped; outside training, leave it at 0.

    >>> q = k = v = mg.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> mg.scaled_dot_product_attention(q, k, v, causal=True).tolist()[0]
    [1.0, 0.0]
    """
    if v.ndim < 2 or k.ndim < 2 or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"scaled_dot_product_attention: shapes q {q.shape}, k {k.shape}, v {v.shape} do not go together",
            expect="q (..., queries, d), k (..., keys, d), v (..., keys, e)",
        )
    weights = _weights("scaled_dot_product_attention", q, k, mask, causal, scale)
    return matmul(dropout(weights, dropout_p), v)


@composed
def attention_weights(q: FloatTensor, k: FloatTensor, mask: Tensor | None = None, causal: bool = False,
                      scale: float | None = None) -> Tensor:
    """The weights of `scaled_dot_product_attention`: for each query, how much each key counts.

    >>> q = k = mg.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> mg.attention_weights(q, k, causal=True).tolist()[0]
    [1.0, 0.0]
    """
    return _weights("attention_weights", q, k, mask, causal, scale)


def _weights(name: str, q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    if min(q.ndim, k.ndim) < 2 or q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{name}: shapes q {q.shape}, k {k.shape} do not go together",
                         expect="q (..., queries, d), k (..., keys, d)")
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    scores = matmul(q * scale, k.mT)  # type: ignore[attr-defined]
    forbidden = None
    if causal:
        keys, queries = arange(k.shape[-2], device=q.device), arange(q.shape[-2], device=q.device)
        forbidden = expand_dims(queries, -1) < keys
    if mask is not None and mask.dtype is dtypes.bool:
        forbidden = ~mask if forbidden is None else ~mask | forbidden
    elif mask is not None:
        scores = scores + mask
    if forbidden is not None:
        low = dtypes.finfo(scores.dtype).min / 2  # not -inf: the softmax of a row of -inf is nan
        scores = scores + astype(forbidden, scores.dtype) * low
    weights = softmax(scores)
    if forbidden is not None and mask is not None:
        weights = where(reduce.all(forbidden, axis=-1, keepdims=True), 0.0, weights)
    return weights


# Integers that name rows -------------------------------------------------------------------------------------------


def _check_range(what: str, indices: Tensor, size: int, why: str) -> Tensor:
    """The indices, after a check of their range: the array library would count negative ones from the end."""

    def check(values: Any) -> None:
        if not values.size:
            return
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= size:
            raise IndexingError(
                f"{what} {low if low < 0 else high} is out of range, {why}", expect=f"integers from 0 to {size - 1}"
            )

    mode = current_mode()
    if mode.interpreter is None:
        check(indices._data)
        return indices
    # The values may not be known yet: at run time an index out of range finds no row, and `check` gives the reason.
    mode.control.expect(indices, check)
    return where(indices < 0, size, astype(indices, dtypes.int64, copy=False))  # small integers cannot hold `size`
