"""Python's operators on tensors: `x + y`, `y + x` and `x += y` for each operation, and the comparisons."""

from __future__ import annotations

from typing import Any

from ..core.primitive import P, Primitive
from ..core.tensor import Tensor
from .bits import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)
from .contract import matmul
from .elementwise import (
    abs,
    add,
    divide,
    equal,
    floor_divide,
    greater,
    greater_equal,
    less,
    less_equal,
    multiply,
    negative,
    not_equal,
    pow,
    remainder,
    round,
    subtract,
    where,
)
from .write import update


def _reflected(function: Any) -> Any:
    def apply(self: Tensor, other: Any) -> Tensor:
        return function(other, self)

    return apply


def _divmod(self: Any, other: Any) -> tuple[Tensor, Tensor]:
    return floor_divide(self, other), remainder(self, other)


def _chosen(x: Tensor, condition: Any, y: Any) -> Tensor:
    """x where the condition holds, y elsewhere: `where(condition, x, y)`, in the order of PyTorch's method.

    >>> x = mg.asarray([-1.0, 2.0])
    >>> x.where(x > 0, 0.0).tolist()
    [0.0, 2.0]
    """
    return where(condition, x, y)


def _in_place(op: Primitive) -> Any:
    def apply(self: Tensor, other: Any) -> Tensor:
        return update(self, op, other)

    return apply


def _or_unequal(function: Any) -> Any:
    def compare(self: Tensor, other: Any) -> Any:
        return NotImplemented if other is None or isinstance(other, str) else function(self, other)

    return compare


for _name, _function in (
    ("add", add), ("sub", subtract), ("mul", multiply), ("truediv", divide), ("pow", pow), ("floordiv", floor_divide),
    ("mod", remainder), ("matmul", matmul), ("and", bitwise_and), ("or", bitwise_or), ("xor", bitwise_xor),
    ("lshift", bitwise_left_shift), ("rshift", bitwise_right_shift),
):
    setattr(Tensor, f"__{_name}__", _function)
    setattr(Tensor, f"__r{_name}__", _reflected(_function))
    setattr(Tensor, f"__i{_name}__", _in_place(P[_function.__name__]))
for _name, _operator in (
    ("neg", negative), ("abs", abs), ("invert", bitwise_invert), ("lt", less), ("le", less_equal),
    ("gt", greater), ("ge", greater_equal), ("eq", _or_unequal(equal)), ("ne", _or_unequal(not_equal)),
):
    setattr(Tensor, f"__{_name}__", _operator)
Tensor.where, Tensor.__round__ = _chosen, round  # type: ignore[assignment]
Tensor.__divmod__, Tensor.__rdivmod__ = _divmod, _reflected(_divmod)  # type: ignore[assignment]
