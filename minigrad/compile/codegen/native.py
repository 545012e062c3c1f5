"""Compiles kernels to machine code in this process, from LLVM text through llvmlite.

Equal kernels are compiled once, whatever their names: a network of 250 layers has 1,500 kernels, of which eight differ.
Compiled code is kept on disk (`disk_cache`), and in the process as long as a program uses it, or a while longer
(`RECENT`).  The new kernels of a program are compiled together, in one thread, because llvmlite lets no other one in.

LLVM frees the code of a whole engine at once.  An engine takes 50 kB and the code of a kernel 10 kB, so kernels share
engines where that is safe.  Each function holds a reference to its engine, which is freed with its last function.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import os
import re
import struct
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...support.errors import CompileError
from ...support.forking import new_lock
from ...support.packages import how_to_install
from ...support.waiting import with_bar
from ..loops.ir import HALF, Kernel, Let, statements
from ..loops.operations import OPERATIONS
from ..loops.widen import Machine, has_lanes
from . import disk_cache
from .llvm import llvm_source

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # a call releases the interpreter's lock
SHARED = 16  # kernels in a module or an engine: one kernel in use keeps the others in memory
HARMLESS = {b"", b"_GLOBAL_OFFSET_TABLE_"}  # symbols that are not functions
ELF = b"\x7fELF\x02\x01"  # the first bytes of object files on Linux: 64 bits, little-endian
SYMBOLS = 2  # the type of a section that lists symbols


def calls_nothing(code: bytes) -> bool:
    """Whether an object file surely calls no outside function; only files of Linux are read."""
    return code.startswith(ELF) and all(name in HARMLESS for name in _undefined(code))


def _undefined(code: bytes) -> Iterator[bytes]:
    """The names of the symbols that an ELF file uses and does not define."""
    (start,) = struct.unpack_from("<Q", code, 40)
    length, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQI", code, start + length * number) for number in range(count)]
    for _, kind, _, _, offset, size, names in sections:
        if kind == SYMBOLS:
            for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", code[offset : offset + size]):
                if not section:
                    begin = sections[names][4] + name
                    yield code[begin : code.index(b"\0", begin)]


# Kernels --------------------------------------------------------------------------------------------------------------


WIDE, NARROW = 512, 256  # bits of a vector: wide vectors slow the processor down, and only pay for much arithmetic
BEST, QUICK = 3, 0  # efforts of LLVM: it takes a quarter of the time for code that only calls other code
SUPERFLUOUS = "disable-lsr", "disable-cgp"  # a quarter of its time, and no code is faster
RECENT = 64  # functions that are kept for the next program although no program uses them
OUTSIDE = re.compile(r"declare [^@]*@(?!llvm\.)(\w+)\(")  # functions that are linked at run time
COMPILING = new_lock()  # one thread at a time, and no fork of the process meanwhile


def compile_kernels(kernels: Sequence[Kernel]) -> list[Callable[[int], object]]:
    """Machine code for kernels, functions of the address of a table: each different one is compiled once here."""
    return _compiler().compiled(kernels)


def llvm_text(kernel: Kernel) -> str:
    """A kernel as LLVM text for this processor."""
    return _compiler().text(kernel)


def compile_text(text: str) -> Callable[[int], object]:
    """Machine code for a text of LLVM, of which `@kernel` is the function to call."""
    with COMPILING:
        return _compiler()._loaded([text], QUICK)[0]  # type: ignore[no-any-return]


def computes_functions(kernel: Kernel) -> bool:
    """Whether a kernel computes a function without a processor instruction, for which wide vectors pay."""
    used = [OPERATIONS[s.op] for s in statements(kernel.body) if isinstance(s, Let) and s.op in OPERATIONS]
    return any(operation.text("c", "f").isidentifier() and not operation.text("llvm", "f") for operation in used)


def is_available() -> bool:
    """Whether kernels are compiled to machine code here."""
    if (os.environ.get("MINIGRAD_BACKEND") or "llvm") != "llvm":
        return False
    try:
        llvmlite()
    except CompileError:
        return False
    return True


@cache
def llvmlite() -> Any:
    """The initialised library; a `CompileError` says how to install it."""
    try:
        from llvmlite import binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    except Exception as error:  # an ImportError, or any error of the system about the shared library
        raise CompileError(f"llvmlite could not be loaded: {error}", hint=how_to_install("llvmlite")) from error
    return binding


class Processor(NamedTuple):
    """This processor and the versions of the compilers: the code for another `Processor` may differ."""

    triple: str
    name: str
    features: str
    llvm: str
    version: str  # of minigrad

    @property
    def has_half(self) -> bool:
        """Whether it has instructions that convert float16; the functions that replace them may be missing."""
        return "+f16c" in self.features or self._is_arm

    @property
    def has_fused(self) -> bool:
        """Whether it has instructions for a product and a sum that are rounded once."""
        return "+fma" in self.features or self._is_arm

    @property
    def _is_arm(self) -> bool:
        return self.triple.startswith(("aarch64", "arm64"))


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
    """Compiles kernels, and reuses compiled code that is still in memory or on disk."""

    def __init__(self, binding: Any, processor: Processor) -> None:
        self.binding, self.processor = binding, processor
        self.made: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # by the kernel
        self.recent: deque[Any] = deque(maxlen=RECENT)  # those used last
        self.targets: dict[int, Any] = {}  # by LLVM's effort
        self.shared: Any = None  # the engine that new code is added to

    def _target(self, effort: int = BEST) -> Any:
        here = self.processor
        target = self.binding.Target.from_triple(here.triple)
        return target.create_target_machine(
            cpu=here.name, features=here.features, opt=effort, reloc="pic", codemodel="jitdefault", jit=True
        )

    def compiled(self, kernels: Sequence[Kernel]) -> list[Any]:
        """The machine code of kernels, compiled if necessary."""
        with COMPILING:
            named = {kernel.digest: kernel for kernel in kernels}
            found = {name: self.made.get(name) for name in named}
            new = {name: self.text(kernel) for name, kernel in named.items() if found[name] is None}
            found |= zip(new, self._loaded([*new.values()]))
            self.made.update(found)
            self.recent.extend(found.values())
        return [found[kernel.digest] for kernel in kernels]

    def text(self, kernel: Kernel) -> str:
        """The LLVM text of a kernel for this processor."""
        return llvm_source(kernel, self.machine(kernel))

    def machine(self, kernel: Kernel) -> Machine:
        """The vectors of this processor that pay for a kernel."""
        if not self.processor.has_half and kernel.computes_in(HALF):
            raise CompileError(f"this processor ({self.processor.name}) has no instructions for float16")
        wide = "+avx512f" in self.processor.features and (computes_functions(kernel) or has_lanes(kernel))
        return Machine(WIDE if wide else NARROW, self.processor.has_fused)

    def _name(self, text: str) -> str:
        """The name of code: a hash of its text and of the processor."""
        return "k_" + hashlib.sha256("\0".join((text, *self.processor)).encode()).hexdigest()[:32]

    def _loaded(self, texts: Sequence[str], effort: int = BEST) -> list[Any]:
        """The functions of texts, from the disk or compiled, several in a module."""
        for outside in OUTSIDE.findall("".join(texts)):
            self._find(outside)
        names, found = [self._name(text) for text in texts], dict[str, Any]()
        for name in names:
            code = disk_cache.load(name) if name not in found else None
            if code is not None and name.encode() in code:
                found |= self._linked([each for each in names if each.encode() in code], code)
        left = [each for each in dict(zip(names, texts)).items() if each[0] not in found]
        for first in with_bar(range(0, len(left), SHARED), "compiling kernels"):
            part = dict(left[first : first + SHARED])
            code = self._machine_code(_module(part), effort)
            disk_cache.save([*part], code)
            found |= self._linked([*part], code)
        return [found[name] for name in names]

    def _linked(self, names: Sequence[str], code: bytes) -> dict[str, Any]:
        """Functions of an object file by their names, each with a reference to its engine.

        Code that calls functions gets an engine to itself: in an engine with other code it would call wrong functions,
        because LLVM takes all addresses from the table of the first code.
        """
        engine, shares = self.shared, calls_nothing(code)
        if engine is None or not shares or engine.count >= SHARED:
            engine = self.binding.create_mcjit_compiler(self.binding.parse_assembly(""), self._target(QUICK))
            engine.count = 0
        if shares:
            self.shared = engine
        engine.count += len(names)
        engine.add_object_file(self.binding.object_file.ObjectFileRef.from_data(code))
        engine.finalize_object()
        found = {name: SIGNATURE(int(engine.get_function_address(name))) for name in names}
        for function in found.values():
            function.engine = engine  # type: ignore[attr-defined]
        return found

    def _machine_code(self, text: str, effort: int) -> bytes:
        try:
            module = self.binding.parse_assembly(text)
            module.verify()
        except RuntimeError as error:
            raise CompileError(f"LLVM refused a kernel: {error}", actual=text) from error
        if effort not in self.targets:
            self.targets[effort] = self._target(effort)
        self._leave_out("true")
        try:
            return bytes(self.targets[effort].emit_object(module))
        finally:
            self._leave_out("false")

    def _leave_out(self, said: str) -> None:
        """Set the options of the process: others may use LLVM too."""
        for option in SUPERFLUOUS:
            self.binding.set_option("minigrad", f"-{option}={said}")

    def _find(self, name: str) -> None:
        """Give LLVM the address of a function of C's mathematical library: if one is missing, LLVM ends the process."""
        if self.binding.address_of_symbol(name):
            return
        library = ctypes.CDLL(ctypes.util.find_library("ucrtbase" if sys.platform == "win32" else "m"))
        function = getattr(library, name, None)
        if function is None:
            raise CompileError(f"the mathematical library of this system has no function {name}")
        self.binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


def _module(texts: Mapping[str, str]) -> str:
    """One text for functions with these names, in which each outside function is declared once."""
    lines = [line for name, text in texts.items() for line in text.replace("@kernel(", f"@{name}(").split("\n")]
    declared = dict.fromkeys([line for line in lines if line.startswith("declare ")])
    return "\n".join([*[line for line in lines if line not in declared], *declared])


# A forked process inherits LLVM with its locks.  So a fork waits until no thread compiles or frees code.

_HELD: list[Any] = []  # the locks that a fork holds


def _enter_llvm() -> None:
    """Take our lock, and the lock of llvmlite if it is loaded."""
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
