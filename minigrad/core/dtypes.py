"""The element types, and the rules for promoting them.

A dtype is a NumPy dtype, so `t.dtype == np.float32` works.  Promotion is different from NumPy's, in which
`int32 + float32` is a float64 and `sqrt(int8)` a float16.  Here an integer and a float give the float's type, a float
function of an integer gives the default float, and a Python number takes the type of the tensor beside it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..support.errors import DtypeError
from ..support.words import shown

__all__ = [
    "bool", "can_cast", "default_float", "default_int", "finfo", "float16", "float32", "float64", "iinfo",
    "int8", "int16", "int32", "int64", "isdtype", "promote_types", "result_type", "uint8",
]

bool = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8 = np.dtype("uint8")
float16, float32, float64 = (np.dtype(f"float{bits}") for bits in (16, 32, 64))

DType = np.dtype[Any]

ALL: dict[str, DType] = {
    d.name: d for d in (bool, int8, int16, int32, int64, uint8, float16, float32, float64)
}
SIGNED = (int8, int16, int32, int64)
INTEGERS = (*SIGNED, uint8)
FLOATS = (float16, float32, float64)
KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool,),
    "signed integer": SIGNED,
    "unsigned integer": (uint8,),
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": (),
    "numeric": (*INTEGERS, *FLOATS),
}
KIND_NAMES = {"b": "bool", "i": "integers", "u": "unsigned integers", "f": "floats"}
default_int, default_float = int64, float32
SPELLINGS: dict[Any, DType] = {d: d for d in ALL.values()} | ALL | {float: default_float, int: default_int}


def as_dtype(dtype: Any) -> DType:
    """The dtype for a dtype, its name, a Python type or a NumPy scalar type.

    >>> as_dtype("float32"), as_dtype(int), as_dtype(np.float16)
    (dtype('float32'), dtype('int64'), dtype('float16'))
    """
    try:
        found = SPELLINGS.get(dtype) or (None if dtype is None else ALL.get(np.dtype(dtype).name))
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise unknown_dtype(dtype)
    return found


NO_COMPLEX = "there are no complex numbers yet: keep the real and the imaginary parts in two tensors"


def unknown_dtype(dtype: Any, title: str = "") -> DtypeError:
    """The error for a dtype that minigrad lacks.

    >>> NO_COMPLEX in str(unknown_dtype("complex64")), NO_COMPLEX in str(unknown_dtype("object"))
    (True, False)
    """
    hint = "several sizes or axes are one argument: mg.zeros((2, 3)), axis=(0, 1)" if isinstance(dtype, int) else None
    what = dtype if isinstance(dtype, np.dtype) and title else shown(dtype)
    return DtypeError(
        f"{title}{what} is not a dtype that minigrad has", expect="one of " + ", ".join(ALL),
        hint=NO_COMPLEX if "complex" in str(dtype) else hint,
    )


def dtype_of(item: Any) -> DType:
    """The dtype of a tensor or an array, or of an argument of `as_dtype`.

    >>> dtype_of(np.ones(1)), dtype_of("int8"), dtype_of(int8)
    (dtype('float64'), dtype('int8'), dtype('int8'))
    """
    found = getattr(item, "dtype", None)
    return as_dtype(found if isinstance(found, np.dtype) else item)  # not so for NumPy's scalar classes


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a dtype is of a kind: another dtype, the name of a kind, or a tuple of these.

    >>> isdtype(float32, "real floating"), isdtype(int8, ("bool", int8))
    (True, True)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind not in ALL:
        if kind not in KINDS:
            raise DtypeError(f"{kind!r} is not a kind of dtype", expect=", ".join(KINDS))
        return as_dtype(dtype) in KINDS[kind]
    return dtype == as_dtype(kind)


def promote_types(a: DType, b: DType) -> DType:
    """The smallest type for the values of both, as in the array API; an integer and a float give the float's type.

    >>> promote_types(int32, float32), promote_types(uint8, int8)
    (dtype('float32'), dtype('int16'))
    """
    a, b = as_dtype(a), as_dtype(b)
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    if a.kind == "f" or b.kind == "b":
        return a
    if b.kind == "f" or a.kind == "b":
        return b
    return ALL[np.promote_types(a, b).name]  # uint8 and a signed integer


def weak_type(scalar: Any, dtype: DType) -> DType:
    """The dtype of a tensor of `dtype` and a Python number: the tensor's, unless the number does not fit (2.5, int)."""
    if scalar.__class__ is float and dtype.kind != "f":
        return default_float
    if scalar.__class__ is int and dtype.kind == "b":
        return default_int
    return dtype


def scalar_type(scalar: Any) -> DType:
    """The dtype of a Python number on its own."""
    return bool if scalar is True or scalar is False else as_dtype(type(scalar))


def result_type(*items: Any) -> DType:
    """The dtype in which an operation on these tensors, dtypes and Python numbers computes.

    >>> result_type(int32, float32), result_type(int64, 2.5), result_type(float16, 1)
    (dtype('float32'), dtype('float32'), dtype('float16'))
    """
    numbers = [i for i in items if isinstance(i, (int, float))]
    strong = [dtype_of(i) for i in items if not isinstance(i, (int, float))]
    if not strong:
        strong = [scalar_type(n) for n in numbers]
    if not strong:
        raise DtypeError("result_type needs at least one dtype, tensor or number")
    dtype = strong[0]
    for other in strong[1:]:
        dtype = dtype if other is dtype else promote_types(dtype, other)
    for number in numbers:
        dtype = weak_type(number, dtype)
    return dtype


def can_cast(from_: Any, to: Any) -> Any:
    """Whether a cast from one dtype (or a tensor's) to the other loses neither kind nor range.

    >>> can_cast(int8, int16), can_cast(float32, int32)
    (True, False)
    """
    source = dtype_of(from_)
    target = as_dtype(to)
    order = "bif"
    kinds = order.index(source.kind.replace("u", "i")), order.index(target.kind.replace("u", "i"))
    return promote_types(source, target) == target if kinds[0] == kinds[1] else kinds[0] < kinds[1]


class finfo:
    """The limits of a float dtype: `bits eps max min smallest_normal dtype`, as Python numbers.

    >>> finfo(float32).bits, finfo(float32).eps
    (32, 1.1920928955078125e-07)
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype_of(dtype)
        if self.dtype.kind != "f":
            raise DtypeError(f"finfo is for floats, not {self.dtype}", expect="a float dtype; iinfo is for integers")
        info = np.finfo(self.dtype)
        self.bits: int = info.bits
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.smallest_normal = float(info.smallest_normal)


class iinfo:
    """The limits of an integer dtype: `bits max min dtype`.

    >>> iinfo(int8).max
    127
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype_of(dtype)
        if self.dtype.kind not in "iu":
            raise DtypeError(f"iinfo is for integers, not {self.dtype}", expect="an integer dtype; finfo is for floats")
        info = np.iinfo(self.dtype)
        self.bits, self.max, self.min = int(info.bits), int(info.max), int(info.min)


def check_fits(name: str, least: Any, most: Any, dtype: DType) -> None:
    """Raise an error for numbers outside the range of an integer dtype.  Only casts of tensors and arrays saturate.

    >>> check_fits("full", 300, 300, int8)
    Traceback (most recent call last):
    minigrad.support.errors.DtypeError: full: 300 does not fit into int8
    ...
    """
    if dtype.kind in "iu":
        low, high = _limits(dtype)
        if not low <= least <= most <= high:
            numbers = f"{least} does" if least is most else f"numbers from {least} to {most} do"
            raise DtypeError(f"{name}: {numbers} not fit into {dtype}", expect=f"{low} to {high}")


@cache
def _limits(dtype: DType) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)
