"""Backends: make a function of a lowered kernel, by LLVM, as WebAssembly in a browser, or with NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ...core.dtypes import float16
from ...support.errors import CompileError
from ...support.host import IN_BROWSER
from ...support.source import show, warn_caller
from ...support.waiting import with_bar
from ..loops.ir import Kernel
from .plan import Launch

Function = Callable[[int], object]  # of the address of a table: the parameters' addresses, then lo and hi
BACKENDS = ("llvm", "wasm", "numpy")
NAMED = 3  # kernels, and operations of each, that a warning names


class BackendWarning(UserWarning):
    """A kernel could not be compiled, and NumPy runs it instead, which is slower."""


def chosen(backend: str | None) -> str:
    """The name of the backend to use: the given one, or that of the environment, or "llvm", in a browser "wasm"."""
    name = backend or os.environ.get("MINIGRAD_BACKEND") or ("wasm" if IN_BROWSER else "llvm")
    if name not in BACKENDS:
        raise CompileError(f"there is no backend named {name!r}", expect=" or ".join(BACKENDS))
    if name == "wasm" and not IN_BROWSER:
        raise CompileError("the backend 'wasm' runs kernels in a browser only", expect="llvm or numpy")
    return name


def has_machine_code(backend: str | None) -> bool:
    """Whether kernels run as machine code, which can compute a part of the rows at a time."""
    from ..codegen.native import is_available

    return chosen(backend) == "llvm" and is_available()


def compiled(launches: Mapping[int, Launch], backend: str | None = None) -> dict[int, Any]:
    """A function for each kernel; `backend` is one of `BACKENDS`."""
    name = chosen(backend)
    native = {number: each for number, each in launches.items() if is_native(each.kernel, name)}
    functions = {"llvm": _native, "wasm": _in_module}.get(name, lambda _: {})(native)
    return {number: functions.get(number) or each.by_nodes() for number, each in launches.items()}


def _native(launches: Mapping[int, Launch]) -> dict[int, Function]:
    """Machine code for the kernels that compile."""
    from ..codegen.native import compile_kernels

    return _made(launches, lambda kernel: compile_kernels([kernel])[0].function)


def _in_module(launches: Mapping[int, Launch]) -> dict[int, Function]:
    """WebAssembly for the kernels, in one module."""
    from ..codegen.side_modules import loaded, printed

    functions = _made(launches, printed)
    try:
        return dict(zip(functions, loaded([*functions.values()])))
    except OSError as error:
        _warn({_in_short(error): [*launches.values()]})
        return {}


def _made(launches: Mapping[int, Launch], make: Callable[[Kernel], Any]) -> dict[int, Any]:
    """What `make` returns for each kernel; a warning names those for which it fails, and the reason."""
    made: dict[int, Any] = {}
    failures: dict[str, list[Launch]] = {}
    for number, launch in with_bar([*launches.items()], "compiling kernels"):
        try:
            made[number] = make(launch.kernel)
        except (CompileError, RuntimeError) as error:  # the latter are llvmlite's own
            failures.setdefault(_in_short(error), []).append(launch)
    _warn(failures)
    return made


def _warn(failures: Mapping[str, list[Launch]]) -> None:
    for why, failed in failures.items():
        more = f" and {len(failed) - NAMED} more" * (len(failed) > NAMED)
        which = ", ".join(map(_described, failed[:NAMED])) + more
        warn_caller(f"NumPy runs {which}, several times slower: {why}", BackendWarning)


def _described(launch: Launch) -> str:
    """The name of a kernel, some of its operations, and the line of the first one."""
    if not launch.computes:
        return launch.name
    operations = [name.rpartition("_")[0] for name in launch.computes[:NAMED]]
    return f"{launch.name} ({', '.join(operations)}, made at {show(launch.where)})"


def _in_short(error: Exception) -> str:
    """The message and the hint of an error, without the text of the kernel."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return "\n".join([lines[0], *[line for line in lines if line.startswith("  Hint")]])


def is_native(kernel: Kernel, backend: str = "llvm") -> bool:
    """Whether a backend has all dtypes of a kernel: WebAssembly and some processors have no half precision."""
    if backend == "numpy" or not kernel.computes_in(float16):
        return backend != "numpy"
    if backend == "wasm":
        return False
    from ..codegen.native import processor

    try:
        return processor().has_half
    except CompileError:  # without LLVM there is no native code at all, which a warning says
        return True


def source(kernel: Kernel, backend: str | None = None) -> str:
    """A kernel in the language of its backend; in C, to read, where NumPy runs it."""
    name = chosen(backend)
    if name == "wasm" and is_native(kernel, name):
        from ..codegen.wasm import wasm_source

        return wasm_source(kernel)
    from ..codegen.native import compile_kernels, is_available

    if name == "llvm" and is_available() and is_native(kernel):
        return compile_kernels([kernel])[0].llvm
    from ..codegen.c import c_source

    return c_source(kernel, "kernel")
