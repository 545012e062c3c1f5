"""The words of LLVM for the types, numbers and casts of the loop language."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ...core import dtypes

TYPES = {dtype: f"i{8 * dtype.itemsize}" for dtype in dtypes.INTEGERS}
TYPES |= {dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double", dtypes.bool: "i1"}


def constant(value: Any, dtype: Any) -> str:
    """A number in LLVM's syntax: floats are written as bits.

    >>> constant(1.5, np.dtype("float32")), constant(True, np.dtype("bool")), constant(2.0, np.dtype("int8"))
    ('0x3FF8000000000000', 'true', '2')
    """
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(int(value))
    with np.errstate(over="ignore"):
        number = np.asarray(value, dtype)
    if dtype.itemsize == 2:
        return f"0xH{int(number.view(np.uint16)):04X}"
    return f"0x{struct.unpack('Q', struct.pack('d', float(number)))[0]:016X}"


def kind_of(dtype: Any, lanes: int) -> str:
    """The type of a number or of a vector."""
    return TYPES[dtype] if lanes == 1 else f"<{lanes} x {TYPES[dtype]}>"


def suffix(dtype: Any, lanes: int) -> str:
    """The suffix of a function's name."""
    one = f"f{8 * dtype.itemsize}" if dtype.kind == "f" else TYPES[dtype]
    return one if lanes == 1 else f"v{lanes}{one}"


def conversion(old: Any, new: Any) -> str:
    """The instruction that casts a number to another type."""
    if old.kind == "f":
        return "fpext" if old.itemsize < new.itemsize else "fptrunc"
    if new.kind == "f":
        return "sitofp" if old.kind == "i" else "uitofp"
    if old.kind == "b" or old.itemsize < new.itemsize:
        return "sext" if old.kind == "i" else "zext"
    return "trunc"
