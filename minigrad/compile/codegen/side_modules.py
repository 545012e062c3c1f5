"""Loads WebAssembly kernels in Pyodide, as side modules of the module that Python runs in.

Loading a module takes longer than printing it, so the kernels of a program are one module.  Equal kernels are compiled
once, whatever their names.  A module is never unloaded.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from ..loops.ir import Kernel
from .wasm import wasm_function
from .wasm_format import Function, module

_loaded: dict[str, Any] = {}  # by the names of the functions, which are hashes of the kernels


def printed(kernel: Kernel) -> Function:
    """The function of a kernel, under a name that equal kernels share."""
    pointers = [(parameter.name, parameter.dtype) for parameter in kernel.parameters]
    name = "k_" + hashlib.sha256(repr((pointers, kernel.body)).encode()).hexdigest()[:32]
    return Function(name, {}, ()) if name in _loaded else wasm_function(kernel, name)


def loaded(functions: Sequence[Function]) -> list[Callable[[int], object]]:
    """The functions, which take the address of a table; new ones are loaded together."""
    new = {each.name: each for each in functions if each.name not in _loaded}
    if new:
        _load([*new.values()])
    return [_loaded[each.name] for each in functions]


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
