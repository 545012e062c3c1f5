"""Elementwise operators, and matrix products.

`SAME` has the primitives that are one operator in ONNX, under another name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold
from typing import Any

from ...core import dtypes
from ...core.node import Node
from ...core.tensor import Tensor
from ...ops import bits, contract, elementary, elementwise, reduce
from .operator_table import TABLE, Write, operator, writes
from .writer import Writer

SAME = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg", "pow": "Pow", "abs": "Abs",
    "maximum": "Max", "minimum": "Min", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "floor": "Floor", "round": "Round", "less": "Less",
    "less_equal": "LessOrEqual", "equal": "Equal", "where": "Where", "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "bitwise_invert": "BitwiseNot", "matmul": "MatMul",
}
OF_BOOLS = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "bitwise_invert": "Not"}
EACH = vars(elementwise) | vars(bits) | {"matmul": contract.matmul}
NUMBERS_WELCOME = {*SAME.values(), *OF_BOOLS.values()} - {"Where", "MatMul"}  # a constant () may be a Python number


def _same(op_type: str, of_bools: str) -> Write:
    return lambda w, node, *names: w.add(of_bools if node.dtype.kind == "b" else op_type, *names)


for _name, _theirs in SAME.items():
    TABLE[_name] = _same(_theirs, OF_BOOLS.get(_name, _theirs))
for _name, _theirs in (*SAME.items(), *OF_BOOLS.items()):
    operator(EACH[_name], _theirs)
operator(elementwise.greater, "Greater")
operator(elementwise.greater_equal, "GreaterOrEqual")
operator(elementwise.sign, "Sign")
operator(elementary.reciprocal, "Reciprocal")
operator(elementary.isnan, "IsNaN")
operator(lambda x: x, "Identity")
operator(lambda x, ratio, training_mode, seed: x, "Dropout")  # a model from a file is not in training
operator(reduce.clip, "Clip")

# Arithmetic ----------------------------------------------------------------------------------------------------------

TABLE["floor_divide"] = _same("Div", "")  # of integers, once there is no remainder


@operator
def Div(x: Any, y: Any) -> Any:
    """Integers are rounded towards zero."""
    if dtypes.result_type(x, y).kind not in "iu":
        return elementwise.divide(x, y)
    down, rest = elementwise.floor_divide(x, y), elementwise.remainder(x, y)
    up = (rest != 0) & ((x < 0) ^ (y < 0))
    return elementwise.where(up, down + 1, down)


@writes("remainder")
def _remainder(w: Writer, node: Node, x: str, y: str) -> str:
    return w.add("Mod", x, y, fmod=int(node.dtype.kind == "f"))


@operator
def Mod(x: Any, y: Any, fmod: int) -> Any:
    """With `fmod` the result has the sign of x."""
    if not fmod:
        return elementwise.remainder(x, y)
    rest = elementwise.remainder(elementwise.abs(x), elementwise.abs(y))
    return elementwise.where(x < 0, -rest, rest)


def _several(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *values: fold(function, values)


operator(_several(elementwise.maximum), "Max")
operator(_several(elementwise.minimum), "Min")
operator(_several(elementwise.add), "Sum")


@writes("atan2")
def _atan(w: Writer, node: Node, slope: str, one: str) -> str:
    return w.add("Atan", slope)


operator(elementary.atan, "Atan")


@writes("bitwise_left_shift", "bitwise_right_shift")
def _shift(w: Writer, node: Node, x: str, y: str) -> str:
    return w.add("BitShift", x, y, direction="LEFT" if node.name == "bitwise_left_shift" else "RIGHT")


@operator
def BitShift(x: Tensor, y: Any, direction: str) -> Any:
    return (bits.bitwise_left_shift if direction == "LEFT" else bits.bitwise_right_shift)(x, y)


@operator
def IsInf(x: Tensor, detect_negative: int, detect_positive: int) -> Any:
    found = elementary.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@writes("astype", "to_device")
def _astype(w: Writer, node: Node, x: str) -> str:
    return x if node.inputs[0].dtype == node.dtype else w.cast(x, node.dtype)


@operator
def Cast(x: Tensor, to: Any) -> Any:
    return x.astype(to)  # type: ignore[attr-defined]
