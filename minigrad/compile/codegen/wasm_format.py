"""WebAssembly as bytes and as text: both are made from the same instructions, so that they cannot differ.

An instruction is a tuple: its name and its operands, such as `("local.get", "x")` or `("i32.const", 4)`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

Instruction = tuple[Any, ...]

TYPES = {"i32": 0x7F, "i64": 0x7E, "f32": 0x7D, "f64": 0x7C, "v128": 0x7B}
NUMBERS = {"f32": "<f", "f64": "<d"}  # how the lanes of constants are stored
LANES = {"i32x4": "i", "i64x2": "q", "f32x4": "f", "f64x2": "d"}
TABLE = ".table"  # the parameter of functions; no name of a kernel begins with a dot
SIZES = {"i32": 4, "i64": 8, "f32": 4, "f64": 8, "v128": 16}


def _opcodes() -> dict[str, bytes]:
    """The bytes of each instruction that kernels use; those of a kind have numbers that follow one another."""
    whole = "eqz eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u"
    real = "eq ne lt gt le ge"
    bits = "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr"
    functions = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign"
    parts = "load8_s load8_u load16_s load16_u"
    kinds = {"i32": (whole, bits), "i64": (whole, bits), "f32": (real, functions), "f64": (real, functions)}
    names = [f"{kind}.{word}" for part in (0, 1) for kind, words in kinds.items() for word in words[part].split()]
    names += """
        i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u
        i64.extend_i32_s i64.extend_i32_u i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u
        f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64
        f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32
        i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64 i32.extend8_s i32.extend16_s
    """.split()
    memory = [f"{kind}.load" for kind in kinds] + [f"i32.{part}" for part in parts.split()]
    stores = [f"{kind}.store" for kind in kinds] + ["i32.store8", "i32.store16"]
    saturating = [f"{to}.trunc_sat_{kind}_{sign}" for to in ("i32", "i64") for kind in ("f32", "f64") for sign in "su"]
    found = {name: bytes([0x45 + number]) for number, name in enumerate(names)}
    found |= {name: bytes([0x28 + number]) for number, name in enumerate(memory)}
    found |= {name: bytes([0x36 + number]) for number, name in enumerate(stores)}
    found |= {name: bytes([0xFC, number]) for number, name in enumerate(saturating)}
    found |= {name: b"\xfd" + leb(int(number)) for name, number in VECTORS.items()}
    return found | CONTROL


CONTROL = {
    "block": b"\x02\x40", "loop": b"\x03\x40", "end": b"\x0b", "br": b"\x0c", "br_if": b"\x0d", "call": b"\x10",
    "select": b"\x1b", "local.get": b"\x20", "local.set": b"\x21", "local.tee": b"\x22",
    "i32.const": b"\x41", "i64.const": b"\x42", "f32.const": b"\x43", "f64.const": b"\x44",
}
VECTORS = dict(each.split() for each in """
    v128.load 0, v128.store 11, v128.const 12, i32x4.splat 17, i64x2.splat 18, f32x4.splat 19, f64x2.splat 20,
    i32x4.extract_lane 27, i64x2.extract_lane 29, f32x4.extract_lane 31, f64x2.extract_lane 33, i32x4.eq 55,
    i32x4.ne 56, i32x4.lt_s 57, i32x4.lt_u 58, i32x4.le_s 61, i32x4.le_u 62, f32x4.eq 65, f32x4.ne 66, f32x4.lt 67,
    f32x4.le 69, f64x2.eq 71, f64x2.ne 72, f64x2.lt 73, f64x2.le 75, v128.and 78, v128.or 80, v128.xor 81,
    v128.bitselect 82, v128.store32_lane 90, v128.load32_zero 92, i8x16.narrow_i16x8_u 102, f32x4.floor 104,
    f32x4.nearest 106, f64x2.floor 117, i16x8.narrow_i32x4_u 134, i16x8.extend_low_i8x16_u 137, f64x2.nearest 148,
    i32x4.extend_low_i16x8_u 169, i32x4.shl 171, i32x4.shr_s 172, i32x4.shr_u 173, i32x4.add 174, i32x4.sub 177,
    i32x4.mul 181, i64x2.shl 203, i64x2.shr_s 204, i64x2.shr_u 205, i64x2.add 206, i64x2.sub 209, i64x2.mul 213,
    i64x2.eq 214, i64x2.ne 215, i64x2.lt_s 216, i64x2.le_s 218, f32x4.abs 224, f32x4.neg 225, f32x4.sqrt 227,
    f32x4.add 228, f32x4.sub 229, f32x4.mul 230, f32x4.div 231, f32x4.min 232, f32x4.max 233, f64x2.abs 236,
    f64x2.neg 237, f64x2.sqrt 239, f64x2.add 240, f64x2.sub 241, f64x2.mul 242, f64x2.div 243, f64x2.min 244,
    f64x2.max 245, i32x4.trunc_sat_f32x4_s 248, i32x4.trunc_sat_f32x4_u 249, f32x4.convert_i32x4_s 250,
    f32x4.convert_i32x4_u 251
""".split(","))  # their numbers


def leb(number: int) -> bytes:
    """A number that is not negative, in groups of seven bits, lowest first.

    >>> leb(3), leb(300)
    (b'\\x03', b'\\xac\\x02')
    """
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def signed_leb(number: int) -> bytes:
    """A number that may be negative, in groups of seven bits.

    >>> signed_leb(-1), signed_leb(64)
    (b'\\x7f', b'\\xc0\\x00')
    """
    groups = []
    while not -64 <= number < 64:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number & 127])


OPCODES = _opcodes()


@dataclass(frozen=True)
class Function:
    """A function `void name(void **table)`: the types of its local variables by their names, and its instructions."""

    name: str
    locals: Mapping[str, str]
    code: Sequence[Instruction]

    @property
    def calls(self) -> list[Instruction]:
        """The functions that it calls: the name, the type of the result, and those of the arguments."""
        return sorted({instruction[1:] for instruction in self.code if instruction[0] == "call"})


# Bytes ----------------------------------------------------------------------------------------------------------------


def module(functions: Sequence[Function]) -> bytes:
    """A side module of Emscripten with these functions, which computes in the memory of the module that loads it."""
    called = _called(functions)
    kinds = [*dict.fromkeys([each[1:] for each in called]), ("", "i32")]
    types = [b"\x60" + _types(taken) + _types([result] if result else []) for result, *taken in kinds]
    imports = [_name("env") + _name("memory") + b"\x02\x00\x00"]
    imports += [_name("env") + _name(each[0]) + b"\x00" + leb(kinds.index(each[1:])) for each in called]
    numbers = {each[0]: number for number, each in enumerate(called)}
    exports = [_name(each.name) + b"\x00" + leb(len(called) + i) for i, each in enumerate(functions)]
    parts = {1: types, 2: imports, 3: [leb(len(kinds) - 1)] * len(functions), 7: exports}
    sections = [_section(number, _listed(part)) for number, part in parts.items()]
    bodies = _listed([_sized(_body(each, numbers)) for each in functions])
    return b"\0asm\1\0\0\0" + DYNAMIC + b"".join(sections) + _section(10, bodies)


def _called(functions: Iterable[Function]) -> list[Instruction]:
    return sorted({call for each in functions for call in each.calls})


def _types(kinds: Sequence[str]) -> bytes:
    return _listed([bytes([TYPES[kind]]) for kind in kinds])


def _body(function: Function, functions: Mapping[str, int]) -> bytes:
    groups = [(len([*names]), kind) for kind, names in groupby(function.locals.values())]
    declared = _listed([leb(count) + bytes([TYPES[kind]]) for count, kind in groups])
    numbers = {name: number for number, name in enumerate([TABLE, *function.locals])}
    numbers |= {f"call {name}": number for name, number in functions.items()}
    often = {each for each in function.code if "const" not in each[0]}  # 0.0 equals -0.0, which has other bytes
    known = {each: _encoded(*each, numbers=numbers) for each in often}
    code = [known.get(each) or _encoded(*each, numbers=numbers) for each in function.code]
    return declared + b"".join(code) + OPCODES["end"]


def _encoded(name: str, *operands: Any, numbers: Mapping[str, int]) -> bytes:
    """The bytes of an instruction."""
    head = OPCODES[name]
    if name == "v128.const":
        return head + _lanes(*operands)
    if is_memory(name):
        offset, *lane = operands
        return head + leb(alignment(name).bit_length() - 1) + leb(offset) + bytes(lane)
    if name.endswith(".const"):
        kind, (number,) = name.removesuffix(".const"), operands
        return head + (struct.pack(NUMBERS[kind], number) if kind in NUMBERS else signed_leb(number))
    if name == "call":
        return head + leb(numbers[f"call {operands[0]}"])
    return head + b"".join([leb(numbers[each] if isinstance(each, str) else each) for each in operands])


def is_memory(name: str) -> bool:
    """Whether an instruction reads or writes memory."""
    return ".load" in name or ".store" in name


def alignment(name: str) -> int:
    """The number of bytes that an instruction reads or writes.

    >>> alignment("f32.load"), alignment("i32.load8_u"), alignment("v128.store")
    (4, 1, 16)
    """
    kind, _, word = name.partition(".")
    part = "".join([letter for letter in word.partition("_")[0] if letter.isdigit()])
    return int(part) // 8 if part else SIZES[kind]


def _lanes(kind: str, *numbers: Any) -> bytes:
    lanes = [*numbers] * (int(kind[-1]) // len(numbers))
    return struct.pack(f"<{len(lanes)}{LANES[kind]}", *lanes)


def _name(text: str) -> bytes:
    return _sized(text.encode())


def _sized(raw: bytes) -> bytes:
    return leb(len(raw)) + raw


def _listed(items: Sequence[bytes]) -> bytes:
    return leb(len(items)) + b"".join(items)


def _section(number: int, content: bytes) -> bytes:
    return bytes([number]) + _sized(content)


# A side module says how much memory and how many places in the table of functions it needs: none.
DYNAMIC = _section(0, _name("dylink.0") + b"\x01" + _sized(bytes(4)))


# Text -----------------------------------------------------------------------------------------------------------------


def listing(functions: Sequence[Function]) -> str:
    """The module in WebAssembly's text format."""
    lines = ["(module", '  (import "env" "memory" (memory 0))']
    for name, result, *taken in _called(functions):
        lines.append(f'  (import "env" "{name}" (func ${name} (param {" ".join(taken)}) (result {result})))')
    for each in functions:
        lines += [f'  (func ${each.name} (export "{each.name}") (param ${TABLE} i32)', *_declared(each), *_text(each)]
        lines[-1] += ")"
    return "\n".join([*lines[:-1], lines[-1] + ")"]) + "\n"


def _declared(function: Function) -> Iterator[str]:
    for name, kind in function.locals.items():
        yield f"    (local ${name} {kind})"


def _text(function: Function) -> Iterator[str]:
    """The lines of the instructions, which are indented inside blocks."""
    depth = 2
    for name, *operands in function.code:
        depth -= name == "end"
        yield "  " * depth + " ".join([name, *_operands(name, operands)])
        depth += name in ("block", "loop")


def _operands(name: str, operands: Sequence[Any]) -> list[str]:
    if name == "v128.const":
        kind, *numbers = operands
        return [kind, *[_number(each, kind) for each in numbers] * (int(kind[-1]) // len(numbers))]
    if is_memory(name):
        offset, *lane = operands
        return [*[f"offset={offset}"] * (offset > 0), *map(str, lane)]
    if name.endswith(".const"):
        return [_number(operands[0], name)]
    return [f"${each}" if isinstance(each, str) else str(each) for each in operands[:1]]  # of a call, types follow


def _number(number: Any, kind: str) -> str:
    """A number that reads as the same bits."""
    return str(np.float32(number) if kind.startswith("f32") else number)
