"""Compiles kernels for GPUs by NVRTC through CuPy, which caches compiled code.

Equal kernels are printed and compiled once in a process.  New kernels are compiled together, which is faster than one
by one.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...support.errors import CompileError
from ..loops.ir import Kernel
from .cuda import CudaSource, cuda_source

OPTIONS = ("--std=c++17", "--fmad=false")  # a value is the same in each kernel that computes it
LOCK = threading.Lock()
MADE: dict[Any, tuple[CudaSource, Any]] = {}  # by CuPy module and content of the kernel


class GpuKernel(NamedTuple):
    """A kernel that can be launched by `function(grid, block, arguments)`."""

    kernel: Kernel
    source: CudaSource
    function: Any


def compile_for_gpu(kernels: Sequence[Kernel], cupy: Any) -> list[GpuKernel]:
    """Compile kernels, or find them compiled."""
    keys = [(cupy, repr((k.parameters, k.body, k.units, k.parallel))) for k in kernels]
    with LOCK:
        missing = {key: kernel for key, kernel in zip(keys, kernels) if key not in MADE}
        sources = {key: cuda_source(kernel, name_of(key[1])) for key, kernel in missing.items()}
        if sources:
            functions = compiled_together(list(sources.values()), cupy)
            MADE.update({key: (source, function) for (key, source), function in zip(sources.items(), functions)})
        return [GpuKernel(kernel, *MADE[key]) for key, kernel in zip(keys, kernels)]


def name_of(what: str) -> str:
    """The name of a kernel with this content."""
    return "k_" + hashlib.sha256(what.encode()).hexdigest()[:24]


def compiled_together(sources: Sequence[CudaSource], cupy: Any) -> list[Any]:
    """The functions of kernels that are compiled as one module."""
    try:
        module = cupy.RawModule(code=one_file(sources), options=OPTIONS)
        return [module.get_function(source.name) for source in sources]
    except Exception as error:  # from NVRTC, or because of a missing library or an old driver
        raise CompileError(f"CUDA's compiler refused kernels: {error}") from error


def one_file(sources: Sequence[CudaSource]) -> str:
    """Several kernels with names of their own, as one file."""
    include = "#include <cuda_fp16.h>"
    parts = [f"namespace in_{s.name} {{\n{s.text.replace(include, '').strip()}\n}}" for s in sources]
    includes = [include] if any(include in s.text for s in sources) else []
    return "\n\n".join([*includes, *parts]) + "\n"
