"""Native kernels: LLVM's text becomes machine code in this process, through llvmlite.

A kernel is known by what it does, not by its name: a network of 250 layers has 1,500 kernels of which eight differ.
Compiled code is kept on disk (`disk_cache`), and in the process as long as a program uses it, or a while longer
(`RECENT`).  Kernels are compiled one after the other: llvmlite lets one thread at a time into LLVM.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import os
import re
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...support.errors import CompileError
from ...support.forking import new_lock
from ...support.packages import how_to_install
from ..loops.ir import HALF, Kernel, Let, statements
from ..loops.operations import OPERATIONS
from . import disk_cache
from .engines import Engines
from .llvm import llvm_source

WIDE, NARROW = 512, 256  # bits of a vector: wide ones make the processor slower, and pay only where much is computed
RECENT = 64  # functions that are kept though no program uses them, for the next program that does
OUTSIDE = re.compile(r"^declare .*@(?!llvm\.)(\w+)\(", re.MULTILINE)  # functions that are found at run time
COMPILING = new_lock()  # one thread at a time; and no process is forked meanwhile


class NativeKernel(NamedTuple):
    """A kernel that can be run: `function(address of its table)`, which keeps the machine code."""

    kernel: Kernel
    function: Callable[[int], object]

    @property
    def address(self) -> int:
        """Where its machine code begins."""
        return ctypes.cast(self.function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]

    @property
    def llvm(self) -> str:
        """Its text."""
        return _compiler().text(self.kernel)


def compile_kernels(kernels: Sequence[Kernel]) -> list[NativeKernel]:
    """Machine code for kernels: each different one is compiled once, and never again on this machine."""
    compiler = _compiler()
    return [compiler.compiled(kernel) for kernel in kernels]


def computes_functions(kernel: Kernel) -> bool:
    """Whether processors have no instruction for something that a kernel computes: wide vectors gain from such."""
    used = [OPERATIONS[s.op] for s in statements(kernel.body) if isinstance(s, Let) and s.op in OPERATIONS]
    return any(operation.text("c", "f").isidentifier() and not operation.text("llvm", "f") for operation in used)


@cache
def llvmlite() -> Any:
    """The library, made ready; or the error that says what to do without it."""
    try:
        from llvmlite import binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    except Exception as error:  # an ImportError, or whatever the system says of a library that does not fit
        raise CompileError(f"llvmlite could not be loaded: {error}", hint=how_to_install("llvmlite")) from error
    return binding


class Processor(NamedTuple):
    """This processor, and what tells it and its code from others."""

    triple: str
    name: str
    features: str
    llvm: str
    version: str  # of minigrad

    @property
    def has_wide_vectors(self) -> bool:
        return "+avx512f" in self.features

    @property
    def has_half(self) -> bool:
        """Whether it converts half precision by itself, and not by a function that may not be there."""
        return "+f16c" in self.features or self.triple.startswith(("aarch64", "arm64"))


@cache
def processor() -> Processor:
    """The processor that this runs on."""
    binding = llvmlite()
    version = ".".join(map(str, binding.llvm_version_info)) + " " + sys.modules["llvmlite"].__version__
    features = binding.get_host_cpu_features().flatten()
    ours = sys.modules["minigrad"].__version__
    return Processor(binding.get_process_triple(), binding.get_host_cpu_name(), features, version, ours)


@cache
def _compiler() -> _Compiler:
    return _Compiler(llvmlite(), processor())


class _Compiler:
    """Compiles, and finds what it has compiled as long as that is there."""

    def __init__(self, binding: Any, processor: Processor) -> None:
        self.binding, self.processor = binding, processor
        self.made: weakref.WeakValueDictionary[bytes, Any] = weakref.WeakValueDictionary()  # by what the kernel does
        self.recent: OrderedDict[bytes, Any] = OrderedDict()  # the functions that were asked for last
        self.target = self._target()
        self.engines = Engines(binding, self._target)

    def _target(self) -> Any:
        here = self.processor
        target = self.binding.Target.from_triple(here.triple)
        return target.create_target_machine(
            cpu=here.name, features=here.features, opt=3, reloc="pic", codemodel="jitdefault", jit=True
        )

    def compiled(self, kernel: Kernel) -> NativeKernel:
        """A kernel's machine code, which may have been there already."""
        pointers = [(parameter.name, parameter.dtype) for parameter in kernel.parameters]
        key = hashlib.sha256(repr((pointers, kernel.body)).encode()).digest()
        with COMPILING:
            function = self.made.get(key)
            if function is None:
                function = self.made[key] = self._loaded(self.text(kernel))
            self._keep(key, function)
        return NativeKernel(kernel, function)

    def _keep(self, key: bytes, function: Any) -> None:
        """Keep a function, and let go of the one that was asked for longest ago if there are too many."""
        self.recent[key] = function
        self.recent.move_to_end(key)
        if len(self.recent) > RECENT:
            self.recent.popitem(last=False)

    def text(self, kernel: Kernel) -> str:
        """A kernel in LLVM's language, for this processor."""
        if not self.processor.has_half and kernel.computes_in(HALF):
            raise CompileError(f"this processor ({self.processor.name}) has no instructions for float16")
        wide = self.processor.has_wide_vectors and computes_functions(kernel)
        return llvm_source(kernel, width=WIDE if wide else NARROW)

    def _name(self, text: str) -> str:
        """What code is known by: its text, and all that it depends on besides."""
        return "k_" + hashlib.sha256("\0".join((text, *self.processor)).encode()).hexdigest()[:32]

    def _loaded(self, text: str) -> Any:
        """The function with this text."""
        name = self._name(text)
        return self.engines.function(name, self._code(name, text))

    def _code(self, name: str, text: str) -> bytes:
        for outside in OUTSIDE.findall(text):
            self._find(outside)
        code = disk_cache.load(name)
        if code is None:
            code = self._machine_code(text.replace("@kernel(", f"@{name}("))
            disk_cache.save(name, code)
        return code

    def _machine_code(self, text: str) -> bytes:
        binding = self.binding
        try:
            module = binding.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise CompileError(f"LLVM refused a kernel: {error}", actual=text) from error
        options = binding.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
        builder = binding.create_pass_builder(self.target, options)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        _free(passes)
        return bytes(self.target.emit_object(module))

    def _find(self, name: str) -> None:
        """See to it that LLVM finds a function of C's mathematical library: it would end the process if not."""
        if self.binding.address_of_symbol(name):
            return
        library = ctypes.CDLL(ctypes.util.find_library("ucrtbase" if sys.platform == "win32" else "m"))
        function = getattr(library, name, None)
        if function is None:
            raise CompileError(f"this system's mathematical library has no function {name}")
        self.binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


def _free(passes: Any) -> None:
    """Free what a run of passes has used, 90 kB.

    A class of llvmlite's inherits from two others, and the first of them has a `_dispose` that does nothing.
    """
    from llvmlite.binding import ffi, newpassmanagers

    if type(passes)._dispose is ffi.ObjectRef._dispose:
        newpassmanagers.NewPassManager._dispose(passes)
    else:
        passes.close()


# A forked process has LLVM as it is at that moment, locks included.  So a fork waits until no thread is in there, to
# compile or to free what a program has left.

_HELD: list[Any] = []  # the locks that a fork has taken


def _enter_llvm() -> None:
    """Take our lock, and llvmlite's own if that is loaded."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    theirs = getattr(getattr(library, "_lock", None), "_lock", None)
    for lock in (COMPILING, theirs):
        if lock is not None:
            lock.acquire()
            _HELD.append(lock)


def _leave_llvm() -> None:
    while _HELD:
        _HELD.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_enter_llvm, after_in_parent=_leave_llvm, after_in_child=_leave_llvm)
