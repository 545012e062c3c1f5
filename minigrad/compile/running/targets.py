"""Targets: how programs differ between devices; and settings: how a graph is compiled and its program runs.

All targets share the stages up to the loops of the kernels.  On a CPU, a backend makes a function of a lowered kernel:
LLVM, WebAssembly in a browser, or NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from ...core.dtypes import float16
from ...core.node import Node
from ...core.override import overridable
from ...devices.blas import blas
from ...support.errors import CompileError
from ...support.host import IN_BROWSER
from ...support.source import show, warn_caller
from ..codegen.step_code import product_function
from ..fusion.group import Chunking
from ..loops.ir import Kernel
from .frame import Frame, Layout
from .plan import Call, Launch, Plan, one_by_one
from .steps import Product, product_of

Function = Callable[[int], object]  # of the address of a table: the parameters' addresses, then lo and hi
BACKENDS = ("llvm", "wasm", "numpy")
FAILURES = CompileError, RuntimeError, OSError  # our own, those of llvmlite, and those of a browser's modules
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


def compiled(launches: Mapping[int, Launch], backend: str | None = None) -> dict[int, Any]:
    """A function for each kernel; `backend` is one of `BACKENDS`."""
    name = chosen(backend)
    native = {number: each for number, each in launches.items() if is_native(each.kernel, name)}
    functions = {"llvm": _native, "wasm": _in_module}.get(name, lambda _: {})(native)
    return {number: functions.get(number) or each.by_nodes() for number, each in launches.items()}


def _native(launches: Mapping[int, Launch]) -> dict[int, Function]:
    """Machine code for the kernels that compile."""
    from ..codegen.native import compile_kernels

    return _made(launches, compile_kernels)


def _in_module(launches: Mapping[int, Launch]) -> dict[int, Function]:
    """WebAssembly for the kernels, in one module."""
    from ..codegen.side_modules import loaded

    return _made(launches, loaded)


def _made(launches: Mapping[int, Launch], make: Callable[[list[Kernel]], list[Any]]) -> dict[int, Any]:
    """What `make` returns for all kernels, or one by one: a warning names those for which it fails, and the reason."""
    with suppress(*FAILURES):
        return dict(zip(launches, make([launch.kernel for launch in launches.values()])))
    made: dict[int, Any] = {}
    failures: dict[str, list[Launch]] = {}
    for number, launch in launches.items():
        try:
            made[number] = make([launch.kernel])[0]
        except FAILURES as error:
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
    from ..codegen.native import is_available, llvm_text

    if name == "llvm" and is_available() and is_native(kernel):
        return llvm_text(kernel)
    from ..codegen.c import c_source

    return c_source(kernel, "kernel")


# Targets --------------------------------------------------------------------------------------------------------------


# The rules and the passes for what loops compute faster than libraries, if they have vectors.
LOOPS = ("windows as product", "join by position", "channels_last", "packed")


def products_of(plan: Plan, backend: str | None = None) -> dict[int, Product]:
    """The products among the steps of a plan that machine code can compute, by the number of the step."""
    library = blas() if chosen(backend) == "llvm" else None
    if library is None:
        return {}
    calls = [(number, step) for number, step in enumerate(plan.steps) if isinstance(step, Call) and step.fills]
    made = {number: product_of(call, plan.buffers) for number, call in calls}
    found = {number: product for number, product in made.items() if product is not None}
    try:
        for product in found.values():
            product_function(product.function, library.bits)
    except CompileError:  # LLVM is missing: a warning says so if there are kernels
        return {}
    return found


@dataclass(frozen=True)
class Target:
    """The parts of the compiler that depend on the device.

    `chunking` divides reductions whose partial results are combined.  `compiled` makes a function for each launch, by
    the number of its step.  `frame` makes a frame.  Only with `threads` may the steps of a level run at the same time,
    and kernels run in blocks together with products.  `products` finds the matrix products that run in machine code, by
    the number of the step.
    """

    chunking: Chunking
    compiled: Callable[[Mapping[int, Launch], str | None], dict[int, Any]]
    frame: Callable[[Layout, dict[int, Any]], Frame]
    threads: bool
    products: Callable[[Plan, str | None], dict[int, Any]] = lambda plan, backend: {}
    without: tuple[str, ...] = ()  # the passes and rules that do not pay here

    def on_backend(self, backend: str | None) -> Target:
        """This target where `backend` runs the kernels: NumPy has no vectors, so libraries compute all products, and
        browsers have no libraries, so loops compute them.
        """
        name = chosen(backend)
        if name == "wasm":
            return replace(self, chunking=replace(self.chunking, lanes=4, registers=16, products=True))
        if name == "llvm":
            return self
        return replace(self, chunking=replace(self.chunking, lanes=0), without=(*self.without, *LOOPS))


def _has_wide_vectors() -> bool:
    """Whether vectors have 512 bits, judged by NumPy, because loading LLVM takes longer."""
    features = getattr(getattr(getattr(np, "_core", None), "_multiarray_umath", None), "__cpu_features__", {})
    return bool(features.get("AVX512F"))


WIDE = Chunking(lanes=16, registers=32)
HOST = Target(
    WIDE if _has_wide_vectors() else Chunking(), compiled, Frame, threads=True, products=products_of
)
_MAKERS: dict[str, Callable[[Any], Target]] = {}  # kind of device -> function that makes its target


def register_target(kind: str, make: Callable[[Any], Target]) -> None:
    """Compile programs for devices of this kind: `make(device)` returns the target of one of them.

    Devices with NumPy's arrays and kernels use the target of the CPU.  Programs on other devices, or on several
    devices, run node by node with the devices' kernels.
    """
    _MAKERS[kind] = cache(make)


def target_of(nodes: Iterable[Node]) -> Target | None:
    """The target that fits the devices of all nodes, or None."""
    devices = {node.device for node in nodes}
    if len(devices) == 1:
        (device,) = devices
        if device.kind in _MAKERS:
            return _MAKERS[device.kind](device)
    return HOST if all(device.is_standard for device in devices) else None


@dataclass(frozen=True)
class Settings:
    """How a graph is compiled for a target, and how its program runs.

    `backend` names what runs the kernels, and `executor` which steps run at the same time; None: as the environment
    says.  `donate` names outputs, by number, that may be stored in place of an input.  `without` names passes and rules
    to leave out.  With `any_layout`, results need not be in row-major order.
    """

    target: Target = HOST
    backend: str | None = None
    executor: str | None = None
    donate: Mapping[int, int] = field(default_factory=dict)
    without: str | Collection[str] = ()
    any_layout: bool = False

    @property
    def left_out(self) -> list[str]:
        """The passes and rules to leave out, with those that do not pay on the target."""
        named = [self.without] if isinstance(self.without, str) else self.without
        return [*named, *self.target.without, *([] if self.any_layout else ["result_layouts"])]

    def resolved(self) -> Settings:
        """These settings, with the executor that the environment names, and a target that fits the backend.

        >>> Settings().resolved().executor
        'serial'
        """
        executor = self.executor or os.environ.get("MINIGRAD_EXECUTOR") or "serial"
        return replace(self, executor=executor, target=self.target.on_backend(self.backend))

    @property
    def in_blocks(self) -> bool:
        """Whether kernels may run on a part of the rows at a time, together with products: as machine code of a CPU."""
        from ..codegen.native import is_available

        return self.target.threads and chosen(self.backend) == "llvm" and is_available()

    @overridable
    def turns(self, plan: Plan) -> list[list[int]]:
        """The numbers of the steps in the order of a run, in lists of steps that run at the same time."""
        if self.executor is None or self.executor == "serial" or not self.target.threads:
            return one_by_one(plan)
        from .schedule import Schedule, turns

        return [[step.number for step in turn] for turn in turns(Schedule(plan), self.executor)]


USUAL = Settings()
