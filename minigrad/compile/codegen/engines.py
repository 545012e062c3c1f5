"""Loads machine code into memory, and frees it.

LLVM frees the code of a whole engine at once.  An engine takes 40 kB and the code of a kernel 5 kB, so kernels share
engines where that is safe.  Each function holds a reference to its engine, which is freed with its last function.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any

SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # a call releases the interpreter's lock
SHARED = 16  # kernels in an engine: one kernel in use keeps the others in memory
HARMLESS = {b"", b"_GLOBAL_OFFSET_TABLE_"}  # symbols that are not functions
ELF = b"\x7fELF\x02\x01"  # the first bytes of object files on Linux: 64 bits, little-endian
SYMBOLS = 2  # the type of a section that lists symbols


class Engine:
    """An engine of LLVM, and the addresses of its functions."""

    def __init__(self, binding: Any, target: Any) -> None:
        self.binding = binding
        self.jit = binding.create_mcjit_compiler(binding.parse_assembly(""), target)
        self.addresses: dict[str, int] = {}

    def function(self, name: str, code: bytes) -> Any:
        """A function of an object file, with a reference to this engine."""
        if name not in self.addresses:
            self.jit.add_object_file(self.binding.object_file.ObjectFileRef.from_data(code))
            self.jit.finalize_object()
            self.addresses[name] = int(self.jit.get_function_address(name))
        function = SIGNATURE(self.addresses[name])
        function.engine = self  # type: ignore[attr-defined]
        return function


class Engines:
    """Finds an engine for each object file.

    Code that calls functions gets an engine to itself: in an engine with other code it would call wrong functions,
    because LLVM takes all addresses from the table of the first code.
    """

    def __init__(self, binding: Any, new_target: Callable[[], Any]) -> None:
        self.binding, self.new_target = binding, new_target
        self.shared: Engine | None = None

    def function(self, name: str, code: bytes) -> Any:
        """The function `name` of an object file."""
        if not calls_nothing(code):
            return Engine(self.binding, self.new_target()).function(name, code)
        if self.shared is None or len(self.shared.addresses) >= SHARED:
            self.shared = Engine(self.binding, self.new_target())
        return self.shared.function(name, code)


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
