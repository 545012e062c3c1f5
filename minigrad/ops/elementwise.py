"""The elementwise primitives: each operation is one declaration.

The parameters of a gradient rule are the values that it needs from the forward pass; `g` is the gradient of the result.
"""

from __future__ import annotations

import math
from typing import Any

from ..core import dtypes
from ..core.primitive import P, Primitive
from ..core.tensor import NUMBERS, Tensor, as_tensor, method
from ..support.errors import ConversionError
from ..support.words import shown, whole
from .bits import bitwise_and, bitwise_invert
from .composite import composed
from .declare import declare, elementwise

__all__ = [
    "add", "subtract", "multiply", "divide", "negative", "pow", "floor_divide", "remainder", "abs", "maximum",
    "minimum", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "sigmoid", "erf", "atan2", "floor",
    "round", "less", "less_equal", "equal", "where", "astype", "copy", "greater", "greater_equal", "not_equal",
    "sign",
]

# Arithmetic ---------------------------------------------------------------------------------------------------------


@elementwise(expr="x + y", formula=r"x + y", local={"x": "1", "y": "1"}, x=lambda g: g, y=lambda g: g)
def add(x: Any, y: Any) -> Tensor:
    """The sum of two tensors.

    >>> mg.add(mg.asarray([1.0, 2.0]), 1)
    Tensor([2., 3.], shape=(2,), dtype=float32, device=cpu)
    """


@elementwise(expr="x - y", accepts="iuf", formula=r"x - y", local={"x": "1", "y": "-1"},
             x=lambda g: g, y=lambda g: negative(g))
def subtract(x: Any, y: Any) -> Tensor:
    """The difference of two tensors.

    >>> mg.subtract(mg.asarray([1.0, 2.0]), 1).tolist()
    [0.0, 1.0]
    """


@elementwise(expr="x * y", formula=r"x \cdot y", local={"x": "y", "y": "x"},
             x=lambda g, y: multiply(g, y), y=lambda g, x: multiply(g, x))
def multiply(x: Any, y: Any) -> Tensor:
    """The product of two tensors, element by element.

    >>> mg.multiply(mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0])).tolist()
    [3.0, 8.0]
    """


@elementwise(expr="x / y", domain="float", cost=2, formula=r"\frac{x}{y}",
             local={"x": r"\frac{1}{y}", "y": r"-\frac{x}{y^2}"},
             x=lambda g, y: g / y, y=lambda g, out, y: -g * out / y)
def divide(x: Any, y: Any) -> Tensor:
    """The quotient of two tensors; integers give floats.

    >>> mg.divide(mg.asarray([1, 2]), 2).tolist()
    [0.5, 1.0]
    """


@method
@elementwise(expr="-x", accepts="iuf", formula=r"-x", local={"x": "-1"}, linear=("x",), x=lambda g: negative(g))
def negative(x: Any) -> Tensor:
    """The tensor with the opposite sign.

    >>> mg.negative(mg.asarray([1.0, -2.0])).tolist()
    [-1.0, 2.0]
    """


def _power_by_base(g: Any, x: Any, y: Any) -> Any:
    if y.__class__ in NUMBERS:
        return g * (y * power(x, y - 1)) if y else g * 0.0
    return g * where(y == 0, 0.0, y * power(where(y == 0, 1.0, x), y - 1))


def _power_by_exponent(g: Any, out: Any, x: Any) -> Any:
    """The factor is x^y ln x, which counts as 0 at x = 0, unless x^y is infinite."""
    if x.__class__ in NUMBERS and x != 0:
        return g * (out * (math.log(x) if x > 0 else math.nan))
    flat = less_equal(abs(out), 1.0)
    if x.__class__ in NUMBERS:
        return g * (out * where(flat, 0.0, -math.inf))
    flat = bitwise_and(equal(x, 0), flat)
    return g * where(flat, 0.0, out * log(where(flat, 1.0, x)))


@elementwise(name="pow", expr="pow(x, y)", accepts="iuf", cost=20, formula=r"x^y",
             local={"x": r"y\,x^{y-1}", "y": r"x^y \ln x"}, x=_power_by_base, y=_power_by_exponent)
def power(x: Any, y: Any) -> Tensor:
    """The primitive behind `pow`."""


@method
def pow(x: Any, y: Any) -> Tensor:
    """x to the power of y; common powers are computed without `pow`.

    >>> mg.pow(mg.asarray([2.0, 3.0]), 2).tolist()
    [4.0, 9.0]
    """
    if y.__class__ in NUMBERS and x.__class__ is Tensor and x._data.dtype.kind == "f":
        if y == 2:
            return multiply(x, x)
        if y == 0.5:
            return sqrt(x)
        if y == -1:
            return divide(1.0, x)
    return power(x, y)


@elementwise(expr="x // y", accepts="iuf", cost=2, formula=r"\lfloor x / y \rfloor")
def floor_divide(x: Any, y: Any) -> Tensor:
    """The quotient rounded down.

    >>> mg.floor_divide(mg.asarray([7, -7]), 2).tolist()
    [3, -4]
    """


@elementwise(expr="x % y", accepts="iuf", cost=4, formula=r"x - y\lfloor x / y \rfloor",
             local={"x": "1", "y": r"-\lfloor x / y \rfloor"},
             x=lambda g: g, y=lambda g, x, y: -g * floor_divide(x, y))
def remainder(x: Any, y: Any) -> Tensor:
    """The remainder of `floor_divide`; it has the sign of y.

    >>> mg.remainder(mg.asarray([7, -7]), 3).tolist()
    [1, 2]
    """


@method
@elementwise(expr="abs(x)", accepts="iuf", formula=r"|x|", local={"x": r"\operatorname{sign} x"},
             x=lambda g, x: g * sign(x))
def abs(x: Any) -> Tensor:
    """The absolute value.

    >>> mg.abs(mg.asarray([1.0, -2.0])).tolist()
    [1.0, 2.0]
    """


def _if_larger(g: Any, x: Any, y: Any) -> Any:
    """The gradient where x is the larger one, half of it at a tie; 0 elsewhere, also where g is infinite."""
    return where(less(y, x), g, where(equal(x, y), g * 0.5, 0.0))


@method
@elementwise(expr="max(x, y)", formula=r"\max(x, y)",
             local={"x": r"[x > y] + \frac{1}{2} [x = y]", "y": r"[y > x] + \frac{1}{2} [x = y]"},
             x=_if_larger, y=lambda g, x, y: _if_larger(g, y, x))
def maximum(x: Any, y: Any) -> Tensor:
    """The larger of two, element by element; a nan stays a nan, and a tie shares the gradient.

    >>> mg.maximum(mg.asarray([1.0, -2.0]), 0.0).tolist()
    [1.0, 0.0]
    """


@method
@elementwise(expr="min(x, y)", formula=r"\min(x, y)",
             local={"x": r"[x < y] + \frac{1}{2} [x = y]", "y": r"[y < x] + \frac{1}{2} [x = y]"},
             x=lambda g, x, y: _if_larger(g, y, x), y=_if_larger)
def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of two, element by element.

    >>> mg.minimum(mg.asarray([1.0, -2.0]), 0.0).tolist()
    [0.0, -2.0]
    """


# Functions ----------------------------------------------------------------------------------------------------------


@method
@elementwise(expr="exp(x)", domain="float", cost=8, formula=r"e^x", local={"x": "e^x"}, x=lambda g, out: g * out)
def exp(x: Any) -> Tensor:
    """e to the power of x.

    >>> mg.exp(mg.asarray([0.0])).tolist()
    [1.0]
    """


@method
@elementwise(expr="expm1(x)", domain="float", cost=10, formula=r"e^x - 1", local={"x": "e^x"},
             x=lambda g, out: g * (out + 1.0))
def expm1(x: Any) -> Tensor:
    """exp(x) - 1, exact for small x.

    >>> mg.expm1(mg.asarray([0.0])).tolist()
    [0.0]
    """


@method
@elementwise(expr="log(x)", domain="float", cost=10, formula=r"\ln x", local={"x": r"\frac{1}{x}"},
             x=lambda g, x: g / x)
def log(x: Any) -> Tensor:
    """The natural logarithm.

    >>> mg.log(mg.asarray([1.0])).tolist()
    [0.0]
    """


@method
@elementwise(expr="log1p(x)", domain="float", cost=12, formula=r"\ln(1 + x)", local={"x": r"\frac{1}{1 + x}"},
             x=lambda g, x: g / (x + 1.0))
def log1p(x: Any) -> Tensor:
    """log(1 + x), exact for small x.

    >>> mg.log1p(mg.asarray([0.0])).tolist()
    [0.0]
    """


@method
@elementwise(expr="sqrt(x)", domain="float", cost=2, formula=r"\sqrt{x}", local={"x": r"\frac{1}{2\sqrt{x}}"},
             x=lambda g, out: g * 0.5 / out)
def sqrt(x: Any) -> Tensor:
    """The square root.

    >>> mg.sqrt(mg.asarray([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """


@method
@elementwise(expr="sin(x)", domain="float", cost=10, formula=r"\sin x", local={"x": r"\cos x"},
             x=lambda g, x: g * cos(x))
def sin(x: Any) -> Tensor:
    """The sine.

    >>> mg.sin(mg.asarray([0.0])).tolist()
    [0.0]
    """


@method
@elementwise(expr="cos(x)", domain="float", cost=10, formula=r"\cos x", local={"x": r"-\sin x"},
             x=lambda g, x: -g * sin(x))
def cos(x: Any) -> Tensor:
    """The cosine.

    >>> mg.cos(mg.asarray([0.0])).tolist()
    [1.0]
    """


@method
@elementwise(expr="tanh(x)", domain="float", cost=12, formula=r"\tanh x", local={"x": r"1 - \tanh^2 x"},
             x=lambda g, out: multiply(g, subtract(1.0, multiply(out, out))))
def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent.

    >>> mg.tanh(mg.asarray([0.0])).tolist()
    [0.0]
    """


@method
@elementwise(expr="(exp(-abs(x)) if x < 0 else 1) / (1 + exp(-abs(x)))", domain="float", cost=11,
             formula=r"\sigma(x)", local={"x": r"\sigma(x) \cdot (1 - \sigma(x))"},
             x=lambda g, out: g * (out * (1.0 - out)))
def sigmoid(x: Any) -> Tensor:
    """1 / (1 + exp(-x)), without overflow, and exact for negative x: at x = -80 it is exp(-80).

    Far above zero the result is 1; for log(sigmoid(x)) write -softplus(-x), which is exact in both tails.

    >>> mg.sigmoid(mg.asarray([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """


@method
@elementwise(expr="erf(x)", domain="float", cost=12, formula=r"\operatorname{erf} x",
             local={"x": r"\frac{2}{\sqrt\pi} e^{-x^2}"},
             x=lambda g, x: g * (exp(-(x * x)) * (2 / math.sqrt(math.pi))))
def erf(x: Any) -> Tensor:
    """The error function.

    >>> mg.erf(mg.asarray([0.0])).tolist()
    [0.0]
    """


def _over_square(side: Any, x: Any, y: Any) -> Any:
    """`side` by the square of the distance; 0 at the origin, which has no angle."""
    square = x * x + y * y
    return side / where(equal(square, 0.0), math.inf, square)


@elementwise(expr="atan2(x, y)", domain="float", cost=20, formula=r"\operatorname{atan2}(x, y)",
             local={"x": r"\frac{y}{x^2 + y^2}", "y": r"-\frac{x}{x^2 + y^2}"},
             x=lambda g, x, y: g * _over_square(y, x, y), y=lambda g, x, y: -g * _over_square(x, x, y))
def atan2(x: Any, y: Any) -> Tensor:
    """The angle of the point with height x and width y.

    >>> mg.atan2(mg.asarray([0.0]), mg.asarray([1.0])).tolist()
    [0.0]
    """


@method
@elementwise(expr="floor(x)", accepts="iuf", formula=r"\lfloor x \rfloor")
def floor(x: Any) -> Tensor:
    """The next integer below, in the same dtype.  No gradient flows through it.

    >>> mg.floor(mg.asarray([1.5, -1.5])).tolist()
    [1.0, -2.0]
    """


@elementwise(name="round", expr="rint(x)", accepts="iuf", formula=r"\operatorname{round} x")
def to_integer(x: Any) -> Tensor:
    """The primitive behind `round`."""


@method
def round(x: Any, decimals: int = 0) -> Tensor:
    """The nearest number with this number of decimals; a half goes to the even one.  No gradient flows through it.

    >>> mg.round(mg.asarray([0.5, 1.5])).tolist(), round(mg.asarray([0.125, 1.0]), 2).tolist()
    ([0.0, 2.0], [0.11999999731779099, 1.0])
    """
    if decimals == 0:
        return to_integer(x)
    if whole(decimals) is None:
        raise ConversionError(f"round: decimals is an integer, not {shown(decimals)}")
    x = as_tensor(x)
    if x.dtype.kind != "f":  # integers are rounded to tens or hundreds in float64
        return x.copy() if decimals > 0 else astype(round(astype(x, dtypes.float64), decimals), x.dtype)
    scale = 10.0 ** max(decimals, -decimals)
    return to_integer(x * scale) / scale if decimals > 0 else to_integer(x / scale) * scale


# Comparisons --------------------------------------------------------------------------------------------------------


@elementwise(expr="x < y", result=dtypes.bool, formula=r"x < y")
def less(x: Any, y: Any) -> Tensor:
    """Where x is smaller than y.

    >>> mg.less(mg.asarray([1, 2]), 2).tolist()
    [True, False]
    """


@elementwise(expr="x <= y", result=dtypes.bool, formula=r"x \le y")
def less_equal(x: Any, y: Any) -> Tensor:
    """Where x is smaller than y or equal to it.

    >>> mg.less_equal(mg.asarray([1, 2, 3]), 2).tolist()
    [True, True, False]
    """


@elementwise(expr="x == y", result=dtypes.bool, formula=r"x = y")
def equal(x: Any, y: Any) -> Tensor:
    """Where x and y are equal.

    >>> mg.equal(mg.asarray([1, 2]), 2).tolist()
    [False, True]
    """


# Choice and type ----------------------------------------------------------------------------------------------------


@elementwise(expr="x if condition else y", promotes=("x", "y"), formula=r"x \text{ if } c \text{ else } y",
             local={"x": "[c]", "y": r"[\neg c]"}, linear=("x", "y"),
             x=lambda g, condition: where(condition, g, 0.0),
             y=lambda g, condition: where(condition, 0.0, g))
def where(condition: Any, x: Any, y: Any) -> Tensor:
    """x where the condition holds, y elsewhere.

    >>> mg.where(mg.asarray([True, False]), mg.asarray([1.0, 2.0]), 0.0).tolist()
    [1.0, 0.0]
    """



declare(
    Primitive(
        "astype", "elementwise", ("x",), lambda x, dtype: (x.shape, dtype), promotes=(), linear=("x",),
        rules={"x": lambda g, node: P.astype.apply(g, dtype=node.inputs[0].dtype)},
        expr="cast(x)", formula="x", local={"x": "1"},
    )
)


@method
def astype(x: Tensor, dtype: Any, copy: bool = True, device: Any = None) -> Tensor:
    """The values in a different dtype: a copy, unless the dtype is the same and `copy` is False.

    Floats that become integers lose their fraction.  A float out of range becomes the nearest integer, and nan becomes
    0, on every device.

    >>> mg.astype(mg.asarray([1.5, -1.5]), mg.int32).tolist()
    [1, -1]
    >>> mg.astype(mg.asarray([300.0, -mg.inf, mg.nan]), mg.int8).tolist()
    [127, -128, 0]
    """
    dtype = dtypes.as_dtype(dtype)
    x = as_tensor(x)
    if device is not None:
        x = x.to_device(device)
    if not copy and x.dtype is dtype:
        return x
    return P.astype.apply(x, dtype=dtype)


def to_float(x: Tensor) -> Tensor:
    """Floats as they are, and others in the default float dtype.

    >>> to_float(mg.asarray([1, 2])).dtype
    dtype('float32')
    """
    return x if x.dtype.kind == "f" else astype(x, dtypes.default_float)


@method
def copy(x: Tensor) -> Tensor:
    """A copy of the values; gradients flow through it.

    >>> x = mg.asarray([1.0])
    >>> y = mg.copy(x)
    >>> y[0] = 5.0
    >>> x.tolist()
    [1.0]
    """
    return P.astype.apply(x, dtype=x.dtype)


# Composed from these ------------------------------------------------------------------------------------------------


def greater(x: Any, y: Any) -> Tensor:
    """Where x is larger than y.

    >>> mg.greater(mg.asarray([1, 3]), 2).tolist()
    [False, True]
    """
    return less(y, x)


def greater_equal(x: Any, y: Any) -> Tensor:
    """Where x is larger than y or equal to it.

    >>> mg.greater_equal(mg.asarray([1, 2]), 2).tolist()
    [False, True]
    """
    return less_equal(y, x)


def not_equal(x: Any, y: Any) -> Tensor:
    """Where x and y differ; a nan differs from everything.

    >>> mg.not_equal(mg.asarray([1, 2]), 2).tolist()
    [True, False]
    """
    return bitwise_invert(equal(x, y))


@method
@composed
def sign(x: Any) -> Tensor:
    """-1, 0 or 1 by the sign of x; nan for nan.

    >>> mg.sign(mg.asarray([-2.0, 0.0, 3.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    x = as_tensor(x)
    return where(greater(x, 0), 1, where(less(x, 0), -1, subtract(x, x)))
