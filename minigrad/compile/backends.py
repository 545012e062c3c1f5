"""Backends: how a lowered kernel becomes a function that can be called, natively or by NumPy."""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.dtypes import float16
from ..core.errors import CompileError
from .groups import Group
from .kernels.ir import Kernel, Let, statements
from .lowering import Lowered

Function = Callable[[int], object]  # of the address of a table: the parameters' addresses, then lo and hi
BACKENDS = ("llvm", "numpy")


class BackendWarning(UserWarning):
    """A kernel could not be compiled, and NumPy runs it instead, which takes longer."""


def compiled(lowered: Mapping[Group, Lowered], backend: str | None = None) -> dict[Group, Function]:
    """A function for each kernel; `backend` is "llvm", or "numpy" where that is missing or asked for."""
    chosen = backend or os.environ.get("MINIGRAD_BACKEND") or "llvm"
    if chosen not in BACKENDS:
        raise CompileError(f"there is no backend named {chosen!r}", expect=" or ".join(BACKENDS))
    if chosen == "llvm":
        native = {group: each.kernel for group, each in lowered.items() if is_native(each.kernel)}
        try:
            functions = _native(native)
        except CompileError as error:
            warnings.warn(f"NumPy runs the kernels, several times slower: {error}", BackendWarning, stacklevel=2)
            functions = {}
    else:
        functions = {}
    return {group: functions.get(group) or on_tables(each.kernel) for group, each in lowered.items()}


def _native(kernels: Mapping[Group, Kernel]) -> dict[Group, Function]:
    if not kernels:
        return {}
    from .kernels.native import compile_kernels

    return {g: made.function for g, made in zip(kernels, compile_kernels(list(kernels.values())))}


def is_native(kernel: Kernel) -> bool:
    """Whether processors compute with all of its types: half precision they only store."""
    lets = [s for s in statements(kernel.body) if isinstance(s, Let)]
    return all(dtype != float16 for dtype in (*[p.dtype for p in kernel.parameters], *[s.dtype for s in lets]))


def on_tables(kernel: Kernel) -> Function:
    """A kernel run by NumPy, called like a native one."""
    from .kernels.numpy_blocks import compile_blocks

    function = compile_blocks(kernel)
    count = len(kernel.parameters)

    def run(table: int) -> None:
        addresses = (ctypes.c_void_p * (count + 2)).from_address(table)
        arrays = [_memory(addresses[i], p.size, p.dtype) for i, p in enumerate(kernel.parameters)]
        function(arrays, addresses[count] or 0, addresses[count + 1] or 0)

    return run


def _memory(address: Any, size: int, dtype: Any) -> Any:
    raw = (ctypes.c_uint8 * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(raw, dtype)
