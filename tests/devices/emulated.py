"""The stand-in for CuPy that also compiles CUDA C and runs it on the CPU, through the emulation header.

The code that launches programs is the real one.  A GPU forgives wrong arguments; the emulation checks them strictly:
their number, their sizes, the threads of a block.  A recording stream runs nothing.  The calls that are queued on it
run each time the graph is launched, at the addresses that they had during the recording.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tests.devices import standin
from tests.devices.standin import CUDARuntimeError, ndarray

CXX = shutil.which("g++") if sys.platform == "linux" else None
EMULATION = Path(__file__).parent.parent / "compile" / "codegen" / "emulation"
FLAGS = ["-O1", "-fwrapv", "-ffp-contract=off", "-fPIC", "-std=c++17", "-w"]
FUNCTION = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(([^)]*)\)')
SIZES = {"int": 4, "float": 4, "long long": 8, "word": 8}
PROCESSORS = 2

RECORDINGS: list[list[Any]] = []  # the calls that are queued while a stream records, innermost recording last
ALLOCATORS: list[Any] = []  # in use, innermost last
LAUNCHES: list[str] = []  # the kernels that ran
MODULES: list[RawModule] = []  # all modules that were compiled


# Recording ------------------------------------------------------------------------------------------------------------


def queued(work: Any) -> None:
    """Run a call, or queue it for the graph that is being recorded."""
    if RECORDINGS:
        RECORDINGS[-1].append(work)
    else:
        work()


def making(function: Any) -> Any:
    """Wraps a function that makes an array: during a recording the array holds nonsense, until a launch fills it."""

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        if not RECORDINGS:
            return function(*args, **kwargs)
        recording = RECORDINGS.pop()
        try:
            result = function(*args, **kwargs)
        finally:
            RECORDINGS.append(recording)
        given = [a for a in (*args, *kwargs.values()) if isinstance(a, ndarray)]
        if any(result is a or np.shares_memory(result._host, a._host) for a in given):
            if kwargs.get("out") is not None:
                raise NotImplementedError(f"{function.__name__} with out= is not recorded")
            return result  # a view
        target = result._host
        _allocated(target)
        target.reshape(-1).view(np.uint8)[...] = 0x7B
        place = target.ctypes.data, target.shape, target.dtype
        recording.append(lambda: _at(*place).__setitem__(..., function(*args, **kwargs)._host))
        return result

    return make


def changing(function: Any) -> Any:
    """Wraps a function that changes an array."""

    @functools.wraps(function)
    def change(*args: Any, **kwargs: Any) -> None:
        queued(lambda: function(*args, **kwargs))

    return change


def refused(function: Any) -> Any:
    """Wraps a function that reads a value: it is refused while a stream records."""

    @functools.wraps(function)
    def ask(*args: Any, **kwargs: Any) -> Any:
        if RECORDINGS:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not permitted when stream is capturing")
        return function(*args, **kwargs)

    return ask


def _at(address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The memory at the address of the recording, no matter which array uses it now."""
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype).reshape(shape)


class Stream:
    """Stands for cupy.cuda.Stream."""

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False) -> None:
        self.non_blocking = non_blocking

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def begin_capture(self, mode: Any = None) -> None:
        if not self.non_blocking:
            raise CUDARuntimeError("the stand-in records on streams only that do not wait for the default one")
        RECORDINGS.append([])

    def end_capture(self) -> Graph:
        return Graph(RECORDINGS.pop())


class Graph:
    """Stands for cupy.cuda.Graph; `LAUNCHED` counts."""

    LAUNCHED = 0

    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def launch(self, stream: Any = None) -> None:
        Graph.LAUNCHED += 1
        for work in self.works:
            work()


class MemoryPool:
    """Stands for cupy.cuda.MemoryPool: memory from the pool stays in place while the pool exists."""

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def malloc(self, array: Any) -> None:
        self.taken.append(array)


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Any:
    ALLOCATORS.append(allocator)
    try:
        yield
    finally:
        ALLOCATORS.pop()


def _allocated(array: np.ndarray) -> None:
    """The memory of a recording may not be used for other arrays before the recording is deleted."""
    assert ALLOCATORS, "memory of the default pool is written to by each launch"
    ALLOCATORS[-1](array)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    array = standin.empty(shape, dtype, order)
    if RECORDINGS:
        _allocated(array._host)
    return array


# Memory ---------------------------------------------------------------------------------------------------------------


class MemoryPointer:
    """Stands for cupy.cuda.MemoryPointer: an address in the memory of an array."""

    def __init__(self, owner: Any, ptr: int) -> None:
        self.owner = self.mem = owner
        self.ptr = ptr

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.owner, self.ptr + offset)


def _new_array(cls: type, *args: Any, **kwargs: Any) -> Any:
    return object.__new__(cls)


def _init_array(self: Any, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None) -> None:
    owner, dtype = memptr.owner, np.dtype(dtype)
    memory = owner.reshape(-1).view(np.uint8)
    start = memptr.ptr - memory.ctypes.data
    reach = start + sum((n - 1) * s for n, s in zip(shape, strides)) + dtype.itemsize
    assert 0 <= start and reach <= memory.size, "an array that reaches beyond its memory"
    first = memory[start:][: (memory.size - start) // dtype.itemsize * dtype.itemsize].view(dtype)
    self._host, self._device, self.base = as_strided(first, shape, strides), standin.CURRENT[-1], None


def _data(self: Any) -> MemoryPointer:
    owner = self._host
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return MemoryPointer(owner, self._host.ctypes.data)


# Kernels --------------------------------------------------------------------------------------------------------------


class RawModule:
    """Stands for cupy.RawModule."""

    def __init__(self, *, code: str, options: tuple[str, ...] = (), **others: Any) -> None:
        self.code, self.options = code, options
        self.library: Any = None

    def get_function(self, name: str) -> Any:
        if self.library is None:
            MODULES.append(self)
            self.library, self.parameters = compiled(self.code)
        return functools.partial(self._launch, name)

    def _launch(self, name: str, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        (blocks,), (threads,) = grid, block
        assert threads % 32 == 0 and blocks > 0, "a launch has blocks of whole warps"
        kinds = self.parameters[name]
        assert len(args) == len(kinds), f"{name} takes {len(kinds)} arguments, not {len(args)}"
        values = [_passed(a, kind, name) for a, kind in zip(args, kinds)]
        function = getattr(self.library, f"launch_{name}")
        bound = re.search(rf"__launch_bounds__\((\d+)\) {name}\(", self.code)
        assert bound is None or threads <= int(bound[1]), f"{name} is made for fewer threads"

        def run() -> None:
            LAUNCHES.append(name)
            order = (0, 1, 5)[len(LAUNCHES) % 3]
            table = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
            function(table, blocks, threads, order)

        queued(run)


def _passed(value: Any, kind: str, name: str) -> Any:
    """An argument in memory, as large as CuPy hands it over."""
    if isinstance(value, ndarray):
        value = value.data.ptr
    size = value.itemsize if isinstance(value, np.generic) else 8
    assert size == (8 if "*" in kind else SIZES[kind]), f"{name}: {value!r} is not of type {kind}"
    return (ctypes.c_int32 if size == 4 else ctypes.c_int64)(int(value) & (1 << 8 * size) - 1)


@functools.cache
def _folder() -> Path:
    """The folder of the libraries, with the precompiled emulation header."""
    folder = Path(tempfile.mkdtemp(prefix="minigrad-emulated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("cuda.h", "cuda_fp16.h"):
        shutil.copy(EMULATION / name, folder)
    subprocess.run([CXX, *FLAGS, "-x", "c++-header", str(folder / "cuda.h")], check=True)
    return folder


@functools.cache
def compiled(code: str) -> tuple[Any, dict[str, list[str]]]:
    """The library compiled from a module, and the argument types of each of its kernels."""
    include = "#include <cuda_fp16.h>"
    expanded = subprocess.run(
        [CXX, "-E", "-P", "-x", "c++", "-"], input=code.replace(include, ""), text=True, check=True, capture_output=True
    ).stdout
    parameters, launchers = {}, []
    for name, listed in FUNCTION.findall(expanded):
        kinds = [_kind(text) for text in listed.split(",")]
        parameters[name] = kinds
        place = f"in_{name}::{name}" if f"namespace in_{name}" in expanded else name
        given = ", ".join(f"*({kind} *)table[{i}]" for i, kind in enumerate(kinds))
        launchers.append(
            f'extern "C" void launch_{name}(void **table, int blocks, int threads, int how) '
            f"{{ run_grid(blocks, threads, how, [&] {{ {place}({given}); }}); }}"
        )
    path = _folder() / (hashlib.sha256(code.encode()).hexdigest()[:16] + ".cpp")
    header = f'#include "cuda.h"\n{include}\n'
    path.write_text(header + code.replace(include, "") + "\n".join(launchers))
    subprocess.run([CXX, *FLAGS, f"-I{_folder()}", "-shared", "-o", f"{path}.so", str(path)], check=True)
    return ctypes.CDLL(f"{path}.so"), parameters


def _kind(parameter: str) -> str:
    """The type of `const float *restrict x`."""
    words = re.sub(r"\b(const|__restrict__)\b", "", parameter)
    return re.sub(r"\s+", " ", re.sub(r"\w+\s*$", "", words)).strip().replace(" *", "*").replace("*", " *")


# The library ----------------------------------------------------------------------------------------------------------

MAKES = "copy astype sum prod max min any all argmax argmin cumsum cumprod __getitem__ dot"
ASKS = "get item tolist __bool__ __int__ __float__"


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Like CuPy's: `out` must have the type of the result and be contiguous."""
    return _product(np.dot, a, b, out)


def matmul(a: Any, b: Any, *, out: Any = None) -> Any:
    return _product(np.matmul, a, b, out)


def _product(function: Any, a: Any, b: Any, out: Any) -> Any:
    if out is None:
        return making(lambda x, y: standin.made(function(standin.host(x), standin.host(y))))(a, b)
    assert out._host.flags.c_contiguous and out.dtype == np.result_type(a.dtype, b.dtype)
    queued(lambda: np.copyto(standin.host(out), function(standin.host(a), standin.host(b))))
    return out


def modules(**how: Any) -> dict[str, Any]:
    """The modules to put into `sys.modules`."""
    found = standin.modules(**how)
    cupy = found["cupy"]
    for name in ("concatenate", "stack", "flip", "arange", "zeros", "where", "ascontiguousarray", "argmax", "argmin"):
        setattr(cupy, name, making(getattr(cupy, name)))
    for name, function in standin.FUNCTIONS.items():
        wrapped = making(function.__call__)
        wrapped.at, wrapped.reduce = changing(function.at), function.reduce
        setattr(cupy, name, wrapped)
    cupy.copyto, cupy.dot, cupy.matmul, cupy.RawModule = changing(cupy.copyto), dot, matmul, RawModule
    cupy.empty = empty
    for name, kind in (("Stream", Stream), ("MemoryPool", MemoryPool), ("using_allocator", using_allocator)):
        setattr(cupy.cuda, name, kind)
    cupy.cuda.Device = Device
    return found


class Device(standin.Device):
    attributes = {"MultiProcessorCount": PROCESSORS}


def class_members() -> dict[str, Any]:
    """More attributes for the array class while a test runs."""
    members = {name: making(getattr(ndarray, name)) for name in MAKES.split()}
    members |= {name: refused(getattr(ndarray, name)) for name in ASKS.split()}
    members |= {name: changing(getattr(ndarray, name)) for name in ("fill", "__setitem__")}
    return members | {"__new__": _new_array, "__init__": _init_array, "data": property(_data)}
