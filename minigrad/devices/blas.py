"""The matrix products of the BLAS library that NumPy uses, as addresses that machine code can call.

NumPy does not offer these functions, but the library that it has loaded does.  Its names depend on the build: `64_` and
`ILP64` mark functions whose integers have 64 bits.  Where nothing is found, products go through NumPy.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from ctypes import c_void_p
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# A pattern for the names of functions, and the bits of their integers.
NAMES = [
    ("scipy_{}64_", 64), ("{}64_", 64), ("{}$NEWLAPACK$ILP64", 64), ("{}$NEWLAPACK", 32), ("scipy_{}", 32), ("{}", 32),
]
PRODUCTS = {f"{letter}{name}": f"cblas_{letter}{name}" for letter in "sd" for name in ("gemm", "gemv")}
GET, SET, KERNELS = "openblas_get_num_threads", "openblas_set_num_threads", "openblas_get_corename"
# Whether products run with a lower number of threads, and the number before.  -1: the number is being changed; above 0:
# the number of products that run.  Machine code of all threads changes it (`compile/codegen/step_code.py`).
LOWERED = (ctypes.c_longlong * 2)()


class Blas(NamedTuple):
    """The addresses of the functions by their short names (sgemm, dgemm, sgemv, dgemv), and the bits of their integers.

    `get` and `set` are the functions for OpenBLAS's number of threads, and `kernels` names the processors that its
    kernels are for; 0 and "" in other libraries.
    """

    functions: dict[str, int]
    bits: int
    get: int = 0
    set: int = 0
    kernels: str = ""


@cache
def blas() -> Blas | None:
    """The library that NumPy uses, or None.

    >>> found = blas()
    >>> found is None or sorted(found.functions)
    ['dgemm', 'dgemv', 'sgemm', 'sgemv']
    """
    if sys.byteorder != "little":
        return None  # machine code reads 32 bits of fields of 64
    for library in _libraries():
        for pattern, bits in NAMES:
            functions = {name: _address(library, pattern.format(full)) for name, full in PRODUCTS.items()}
            if all(functions.values()):
                get, set_, name = [_address(library, pattern.format(each)) for each in (GET, SET, KERNELS)]
                kernels = ctypes.CFUNCTYPE(ctypes.c_char_p)(name)().decode() if name else ""
                return Blas(functions, bits, get if set_ else 0, set_ if get else 0, kernels)
    return None


def _libraries() -> Iterator[Any]:
    """The module of NumPy that calls BLAS, through which most systems find its functions; and the files beside NumPy.

    Windows finds only functions of a library itself.
    """
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    places = [Path(_multiarray_umath.__file__)]
    places += sorted(Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*"))
    for place in places:
        try:
            yield ctypes.CDLL(str(place))
        except OSError:
            continue


def _address(library: Any, name: str) -> int:
    function = getattr(library, name, None)
    return 0 if function is None else ctypes.cast(function, c_void_p).value or 0


def _restore() -> None:
    """A forked process does not have the threads that would set the number again."""
    found = blas()
    if LOWERED[0] and found is not None:
        LOWERED[0] = 0
        ctypes.CFUNCTYPE(None, ctypes.c_int)(found.set)(LOWERED[1])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restore)
