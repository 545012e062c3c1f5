"""Native kernels: LLVM's text becomes machine code in this process, through llvmlite.

A kernel is known by its text: a network of 250 layers has 1,500 kernels of which eight differ.  What has been compiled
is kept, in the process and in a folder for the next one.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

from ...core.errors import CompileError
from . import storage
from .ir import Kernel
from .llvm import llvm_source

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # calling it lets go of the interpreter's lock
WIDE, NARROW = 512, 256  # bits of a vector: wide ones make the processor slower, and pay only where much is computed
COMPILERS = 2  # threads


class Compiled(NamedTuple):
    """A kernel that can be run: `function(address of its table)`.  `llvm` is its text."""

    kernel: Kernel
    function: Callable[[int], object]
    llvm: str


class _Code:
    """All that has been compiled in this process."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[int], object]] = {}
        self.engines: list[Any] = []  # which own the machine code
        self.lock = threading.Lock()


CODE = _Code()


def compile_kernels(kernels: Sequence[Kernel]) -> list[Compiled]:
    """Machine code for kernels: each different text is compiled once, and never again on this machine."""
    binding = llvmlite()
    machine = _machine()
    texts = [llvm_source(kernel, "kernel", _width(kernel, machine)) for kernel in kernels]
    names = [_name_of(text, machine) for text in texts]
    missing = {name: text for name, text in zip(names, texts) if name not in CODE.functions}
    if len(missing) > 1:
        with ThreadPoolExecutor(COMPILERS) as helpers:
            objects = list(helpers.map(lambda item: _object(binding, machine, *item), missing.items()))
    else:
        objects = [_object(binding, machine, name, text) for name, text in missing.items()]
    for name, code in zip(missing, objects):
        _load(binding, name, code)
    return [Compiled(k, CODE.functions[name], text) for k, name, text in zip(kernels, names, texts)]


@cache
def llvmlite() -> Any:
    """The library, made ready; or the error that says what to do without it."""
    try:
        from llvmlite import binding
    except Exception as error:  # an ImportError, or whatever the system says of a library that does not fit
        raise CompileError(f"llvmlite could not be loaded: {error}", hint="python -m pip install llvmlite") from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


class Machine(NamedTuple):
    """This processor, and what tells it from others."""

    triple: str
    name: str
    features: str
    version: str

    @property
    def has_wide_vectors(self) -> bool:
        return "+avx512f" in self.features


@cache
def _machine() -> Machine:
    binding = llvmlite()
    import llvmlite as package

    features = binding.get_host_cpu_features().flatten()
    return Machine(binding.get_process_triple(), binding.get_host_cpu_name(), features, package.__version__)


def _target(binding: Any, machine: Machine) -> Any:
    """One for each compilation: they are not shared between threads."""
    target = binding.Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.name, features=machine.features, opt=3, reloc="pic", codemodel="jitdefault", jit=True
    )


def _width(kernel: Kernel, machine: Machine) -> int:
    return WIDE if kernel.vectorisable and machine.has_wide_vectors else NARROW


def _name_of(text: str, machine: Machine) -> str:
    """What a kernel is known by: its text, and all that its machine code depends on."""
    return "k_" + hashlib.sha256("\0".join((text, *machine)).encode()).hexdigest()[:32]


def _object(binding: Any, machine: Machine, name: str, text: str) -> bytes:
    found = storage.load(name)
    if found is None:
        found = _compiled(binding, machine, text.replace("@kernel(", f"@{name}("))
        storage.save(name, found)
    return found


def _compiled(binding: Any, machine: Machine, text: str) -> bytes:
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused a kernel: {error}", actual=text) from error
    target = _target(binding, machine)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = True
    passes = binding.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(target.emit_object(module))


def _load(binding: Any, name: str, code: bytes) -> None:
    with CODE.lock:
        if name in CODE.functions:
            return
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target(binding, _machine()))
        engine.add_object_file(binding.object_file.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address(name)
        if not address:
            raise CompileError(f"a compiled kernel has no function {name}")
        CODE.engines.append(engine)
        CODE.functions[name] = SIGNATURE(address)
