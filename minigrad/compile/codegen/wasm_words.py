"""The words of WebAssembly for the values, numbers and operations of the loop language.

A value has a kind: "i32", "i64", "f32" or "f64" for a number, and for a vector of 128 bits the kind of its lanes, as in
"f32x4".  Small integers and bools are i32.  In the lanes of a vector, a true bool has all bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...core import dtypes
from ..loops.ir import INT, Let
from ..loops.operations import OPERATIONS
from ..loops.widen import Machine
from ..nodes.thresholds import WASM_BLOCK_ROUNDS
from .wasm_format import OPCODES, Instruction

KINDS = {dtype: "i64" if dtype.itemsize == 8 else "i32" for dtype in dtypes.INTEGERS}
KINDS |= {dtypes.float32: "f32", dtypes.float64: "f64", dtypes.bool: "i32"}
VECTOR = 16  # bytes
BITWISE = {"and", "or", "xor"}
SHIFTS = ("lshift", "rshift")  # on vectors, they take the number of bits as one number
# What a small integer needs after arithmetic, so that it is the same number in 32 bits.
NARROW: dict[Any, tuple[Instruction, ...]] = {
    dtypes.int8: (("i32.extend8_s",),), dtypes.int16: (("i32.extend16_s",),),
    dtypes.uint8: (("i32.const", 0xFF), ("i32.and",)),
}
# Casts of vectors, from and to dtypes of equal size.
CASTS = {
    ("f", "i"): "x i32x4.trunc_sat_f32x4_s", ("f", "u"): "x i32x4.trunc_sat_f32x4_u",
    ("i", "f"): "x f32x4.convert_i32x4_s", ("u", "f"): "x f32x4.convert_i32x4_u",
}
# The instructions that put four bytes in memory into lanes, after the load, and back, before the store.
READ_BYTES = (("i16x8.extend_low_i8x16_u",), ("i32x4.extend_low_i16x8_u",))
WRITE_BYTES = (
    ("v128.const", "i32x4", 0), ("i16x8.narrow_i32x4_u",), ("v128.const", "i32x4", 0), ("i8x16.narrow_i16x8_u",),
)


def kind_of(dtype: Any, lanes: int = 1) -> str:
    """The kind of a value, or of a vector of values.

    >>> kind_of(np.dtype("float32")), kind_of(np.dtype("float32"), 4), kind_of(np.dtype("bool"), 2)
    ('f32', 'f32x4', 'i64x2')
    """
    if lanes == 1:
        return KINDS[dtype]
    return f"{'f' if dtype.kind == 'f' else 'i'}{8 * VECTOR // lanes}x{lanes}"


def part_of(dtype: Any, sign: bool = False) -> str:
    """The end of the name of an instruction that reads or writes a part of a register: its bits, and its sign."""
    if dtype.itemsize >= 4:
        return ""
    return f"{8 * dtype.itemsize}{('_s' if dtype.kind == 'i' else '_u') * sign}"


def constant(number: Any, dtype: Any, lanes: int = 1) -> Instruction:
    """The instruction that puts a number on the stack, in all lanes.

    >>> constant(255, np.dtype("int8")), constant(True, np.dtype("bool"), 4)
    (('i32.const', -1), ('v128.const', 'i32x4', -1))
    """
    kind = kind_of(dtype, lanes)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            value: float = float(dtype.type(number))
    elif dtype.kind == "b":
        value = (-1 if lanes > 1 else 1) * bool(number)
    else:
        value = _wrapped(_wrapped(int(number), 8 * dtype.itemsize, dtype.kind == "i"), int(kind[1:3]), True)
    return (f"{kind}.const", value) if lanes == 1 else ("v128.const", kind, value)


def _wrapped(number: int, bits: int, signed: bool) -> int:
    """The number with the same lowest bits in the range of an integer dtype."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if signed and number >> (bits - 1) else number


@cache
def text_of(op: str, given: Any, dtype: Any, lanes: int = 1) -> str | None:
    """The words of an operation on operands of the dtype `given`; None if there are none.

    >>> text_of("max", np.dtype("int8"), np.dtype("int8")), text_of("add", np.dtype("float32"), np.dtype("float32"))
    ('x y y x lt_s select', 'x y add')
    """
    if op in ("cast", "bitcast", "whole"):
        text = _conversion(op, given, dtype) if lanes == 1 else _conversion_of_lanes(op, given, dtype)
    elif op == "copysign" and lanes > 1:
        text = "y x -0.0 select"
    else:
        text = OPERATIONS[op].text("wasm", given.kind)
    words = text.split()
    if words and "x" not in words:
        words = ["x", "y"][: OPERATIONS[op].arity] + words
    kind = kind_of(given, lanes)
    known = all(is_operand(word) or instruction(word, kind) in OPCODES for word in words)
    return " ".join(words) if known and words else None


def is_operand(word: str) -> bool:
    """Whether a word of a text is an operand or a number; "one" is the number 1 in the dtype of the result."""
    return word in ("x", "y", "z", "one") or word.lstrip("-")[0].isdigit()


def instruction(word: str, kind: str) -> str:
    """The name of the instruction for values of a kind.

    >>> instruction("add", "f32x4"), instruction("and", "i32x4"), instruction("select", "f32")
    ('f32x4.add', 'v128.and', 'select')
    """
    if "." in word:
        return word
    if word == "select":
        return "v128.bitselect" if "x" in kind else "select"
    return f"v128.{word}" if "x" in kind and word in BITWISE else f"{kind}.{word}"


def _conversion(op: str, given: Any, dtype: Any) -> str:
    """A value as another dtype.  A float beyond the range of an integer becomes the nearest integer."""
    old, new = KINDS[given], KINDS[dtype]
    sign = "s" if given.kind == "i" else "u"
    if op == "bitcast":
        return "x" if old == new else f"x {new}.reinterpret_{old}"
    if dtype.kind == "b":
        return "x 0 ne"
    if given.kind == "f" and dtype.kind != "f":
        small = dtype in NARROW
        limited = "x {0.min}.0 max {0.max}.0 min".format(np.iinfo(dtype)) if small else "x"
        return f"{limited} {new}.trunc_sat_{old}_{'u' if dtype.kind == 'u' and not small else 's'}"
    if old == new:
        return "x"
    if given.kind == "f":
        return "x f64.promote_f32" if new == "f64" else "x f32.demote_f64"
    if dtype.kind == "f":
        return f"x {new}.convert_{old}_{sign}"
    return f"x i64.extend_i32_{sign}" if new == "i64" else "x i32.wrap_i64"


def _conversion_of_lanes(op: str, given: Any, dtype: Any) -> str:
    if op == "bitcast" or given == dtype:
        return "x"
    if dtype.kind == "b":
        return "x 0 ne"
    if given.kind == "b":
        return "x one v128.and"
    if given.kind in "iu" and dtype.kind in "iu":
        return "x"
    return CASTS[given.kind, dtype.kind] if dtype.itemsize == 4 else ""


def _has_instructions(let: Let, given: Any, lanes: int) -> bool:
    """Whether there are instructions for a legal statement on vectors with this number of lanes."""
    sizes = {dtype.itemsize for dtype in (let.dtype, given) if dtype.kind != "b"}
    if lanes not in (2, 4) or not sizes <= {VECTOR // lanes}:
        return False
    if let.op == "load":
        return lanes == 4 or let.dtype.kind != "b"
    if let.op == "index":
        return lanes == 4
    if let.op in SHIFTS and isinstance(let.args[1], str):
        return False
    return text_of(let.op, given, let.dtype, lanes) is not None


MACHINE = Machine(8 * VECTOR, False, True, _has_instructions, WASM_BLOCK_ROUNDS, INT, in_bytes=True)
