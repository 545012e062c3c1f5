"""Loads WebAssembly kernels in Pyodide, as side modules of the module that Python runs in.

Loading a module takes longer than printing it, so the kernels of a program are one module.  Equal kernels are compiled
once, whatever their names.  A module is never unloaded.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from ...support.waiting import with_bar
from ..loops.ir import Kernel
from .wasm import wasm_function
from .wasm_format import Function, module

_loaded: dict[str, Any] = {}  # by the names of the functions, which are hashes of the kernels


def loaded(kernels: Sequence[Kernel]) -> list[Callable[[int], object]]:
    """The functions of kernels, which take the address of a table; new ones are loaded together."""
    new = {kernel.digest: kernel for kernel in kernels if kernel.digest not in _loaded}
    if new:
        _load([wasm_function(new[name], name) for name in with_bar([*new], "compiling kernels")])
    return [_loaded[kernel.digest] for kernel in kernels]


def _load(functions: Sequence[Function]) -> None:
    """Load functions as one module, from a file as all libraries are."""
    descriptor, path = tempfile.mkstemp(suffix=".so")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(module(functions))
        library = ctypes.CDLL(path)
    finally:
        os.unlink(path)
    for name in [each.name for each in functions]:
        function = _loaded[name] = library[name]
        function.argtypes, function.restype = [ctypes.c_void_p], None
