"""Operations brought down to what every machine has, so that each printer needs few of them.

Half precision is computed in float32 and rounded, division that rounds down is made of division that cuts off, shifts
are kept within the width of their type, and the functions of float32 are written out (`maths`).  All of it gives what
NumPy gives, for every value: nothing here is undefined.

Four operations exist only behind this pass: "quotient" and "remainder" are C's `/` of integers and C's `%` or `fmod`,
"copysign" is a number with the sign of another, and "whole" a cast to int32 of what is in its range or nan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .ir import For, Kernel, Let, Operand, Statement
from .maths import BOOL, DOUBLE, EXPANSIONS, FLOAT, INT, Writer, expansion

HALF = np.dtype(np.float16)
LOGIC = {"add": "or", "mul": "and", "max": "or", "min": "and"}  # what arithmetic on bools means
AS_IT_IS = ("load", "index", "select", "bitcast")  # work on any type


def elementary(kernel: Kernel, written_out: bool = True) -> Kernel:
    """A kernel that computes the same with elementary operations.

    The functions in `maths.EXPANSIONS` remain, of float32, if they are not to be `written_out`.
    """
    return replace(kernel, body=_Rewriter(written_out).block(kernel.body))


class _Rewriter:
    def __init__(self, written_out: bool) -> None:
        self.written_out = written_out
        self.types: dict[str, Any] = {}

    def block(self, body: list[Statement]) -> list[Statement]:
        result: list[Statement] = []
        for statement in body:
            if isinstance(statement, Let):
                result += self.let(statement)
            elif isinstance(statement, For):
                for accumulator in statement.accumulators:
                    self.types[accumulator.name] = accumulator.dtype
                result.append(replace(statement, body=self.block(statement.body)))
            else:
                result.append(statement)
        return result

    def let(self, let: Let) -> list[Let]:
        """The statements that take the place of one."""
        self.types[let.name] = let.dtype
        if let.op in AS_IT_IS:
            return [let]
        given = next((self.types[a] for a in let.args if isinstance(a, str)), let.dtype)
        writer = Writer(let.name)
        if given == HALF and let.op != "cast":
            writer.name_last(_in_float(writer, let), let.name)
            return [s for each in writer.statements for s in self.let(each)]
        if let.op == "cast":
            result = _half(writer, let.args[0], given) if let.dtype == HALF else None
        elif given.kind == "b" and let.op in LOGIC:
            return [replace(let, op=LOGIC[let.op])]
        else:
            rule = RULES.get(let.op)
            result = rule(writer, given, *let.args) if rule else None
        if result is None:
            return self.functions(let)
        writer.name_last(result, let.name)
        return writer.statements

    def functions(self, let: Let) -> list[Let]:
        """A function written out, and anything else as it is."""
        ours = self.written_out and let.op in EXPANSIONS and let.dtype == FLOAT and isinstance(let.args[0], str)
        return expansion(let.op, let.args[0], let.name) if ours else [let]


# Half precision -------------------------------------------------------------------------------------------------------


def _in_float(w: Writer, let: Let) -> str:
    """An operation on float16: in float32, and rounded.  For + - * / √ that is the same as rounding once."""
    wider = [w.let("cast", (a,), FLOAT) if isinstance(a, str) else a for a in let.args]
    if let.dtype == BOOL:
        return w.let(let.op, tuple(wider), BOOL)
    return w.let("cast", (w.let(let.op, tuple(wider), FLOAT),), HALF)


def _half(w: Writer, value: Operand, source: Any) -> str | None:
    """A cast to float16 by way of float32; None if it is one step anyway.

    A float64 that lies between two float32 becomes the one of them whose last bit is 1: rounded once more, that gives
    what rounding once would have given.
    """
    if source in (FLOAT, HALF) or not isinstance(value, str):
        return None
    near = w.let("cast", (value,), FLOAT)
    if source != DOUBLE:
        return w.let("cast", (near,), HALF)
    back = w.let("cast", (near,), DOUBLE)
    beyond = w.let("lt", (w.let("abs", (value,), DOUBLE), w.let("abs", (back,), DOUBLE)), BOOL)
    inexact = w.let("invert", (w.let("eq", (value, back), BOOL),), BOOL)
    bits = w.whole("sub", w.let("bitcast", (near,), INT), w.whole("cast", beyond))
    odd = w.let("bitcast", (w.whole("or", bits, w.whole("cast", inexact)),), FLOAT)
    return w.let("cast", (odd,), HALF)


# Division -------------------------------------------------------------------------------------------------------------


def _floordiv(w: Writer, dtype: Any, x: Operand, y: Operand) -> str:
    """The quotient rounded down."""
    if dtype.kind == "f":
        return _float_floordiv(w, dtype, x, y)
    zero, minus, safe = _safe_divisor(w, dtype, y)
    quotient = w.let("quotient", (x, safe), dtype)
    rest = w.let("remainder", (x, safe), dtype)
    lower = w.let("sub", (quotient, 1), dtype)
    quotient = w.let("select", (_other_side(w, dtype, rest, safe), lower, quotient), dtype)
    if minus:
        quotient = w.let("select", (minus, w.let("sub", (0, x), dtype), quotient), dtype)
    return w.let("select", (zero, 0, quotient), dtype)


def _mod(w: Writer, dtype: Any, x: Operand, y: Operand) -> str:
    """What remains of it, which has the sign of y."""
    if dtype.kind == "f":
        return _float_mod(w, dtype, x, y)
    _, _, safe = _safe_divisor(w, dtype, y)
    rest = w.let("remainder", (x, safe), dtype)
    higher = w.let("add", (rest, safe), dtype)
    return w.let("select", (_other_side(w, dtype, rest, safe), higher, rest), dtype)


def _safe_divisor(w: Writer, dtype: Any, y: Operand) -> tuple[Operand, Operand, Operand]:
    """Whether y is 0 and whether it is -1 (which overflows for the least number), and 1 in their places."""
    if not isinstance(y, str):  # what is compared with a number would not say of which type
        return y == 0, y == -1, 1 if y in (0, -1) else y
    zero = bad = w.let("eq", (y, 0), BOOL)
    minus = ""
    if dtype.kind == "i":
        minus = w.let("eq", (y, -1), BOOL)
        bad = w.let("or", (zero, minus), BOOL)
    return zero, minus, w.let("select", (bad, 1, y), dtype)


def _other_side(w: Writer, dtype: Any, rest: Operand, y: Operand) -> str:
    """Whether a remainder is not 0 and has another sign than y."""
    present = w.let("invert", (w.let("eq", (rest, 0), BOOL),), BOOL)
    below = w.let("lt", (rest, 0), BOOL)
    if isinstance(y, str):
        below = w.let("xor", (below, w.let("lt", (y, 0), BOOL)), BOOL)
    elif y < 0:  # a number: what it is compared with would not say of which type
        below = w.let("invert", (below,), BOOL)
    return w.let("and", (present, below), BOOL)


def _float_mod(w: Writer, dtype: Any, x: Operand, y: Operand) -> str:
    rest = w.let("remainder", (x, y), dtype)
    none = w.let("eq", (rest, 0.0), BOOL)
    signed = w.let("select", (none, w.let("copysign", (0.0, y), dtype), rest), dtype)
    return w.let("select", (_other_side(w, dtype, rest, y), w.let("add", (rest, y), dtype), signed), dtype)


def _float_floordiv(w: Writer, dtype: Any, x: Operand, y: Operand) -> str:
    """(x - remainder) / y, rounded to the whole number that it nearly is; x / y where y is 0."""
    if not isinstance(y, str) and not y:
        return w.let("div", (x, y), dtype)
    rest = w.let("remainder", (x, y), dtype)
    ratio = w.let("div", (x, y), dtype)
    quotient = w.let("div", (w.let("sub", (x, rest), dtype), y), dtype)
    lower = w.let("sub", (quotient, 1.0), dtype)
    quotient = w.let("select", (_other_side(w, dtype, rest, y), lower, quotient), dtype)
    whole = w.let("floor", (quotient,), dtype)
    nearer = w.let("lt", (0.5, w.let("sub", (quotient, whole), dtype)), BOOL)
    whole = w.let("select", (nearer, w.let("add", (whole, 1.0), dtype), whole), dtype)
    nothing = w.let("eq", (quotient, 0.0), BOOL)
    whole = w.let("select", (nothing, w.let("copysign", (0.0, ratio), dtype), whole), dtype)
    if not isinstance(y, str):
        return whole
    return w.let("select", (w.let("eq", (y, 0.0), BOOL), ratio, whole), dtype)


# Shifts and the rest --------------------------------------------------------------------------------------------------


def _lshift(w: Writer, dtype: Any, x: Operand, by: Operand) -> str | None:
    """All bits are gone if it shifts by the width or more."""
    return _shifted(w, "lshift", dtype, x, by)


def _rshift(w: Writer, dtype: Any, x: Operand, by: Operand) -> str | None:
    """Only the sign is left if it shifts by the width or more."""
    return _shifted(w, "rshift", dtype, x, by)


def _shifted(w: Writer, op: str, dtype: Any, x: Operand, by: Operand) -> str | None:
    width = 8 * dtype.itemsize
    if not isinstance(by, str) and 0 <= by < width:
        return None
    within = _within(w, by, width)
    keeps_sign = op == "rshift" and dtype.kind == "i"
    shifted = w.let(op, (x, w.let("select", (within, by, width - 1 if keeps_sign else 0), dtype)), dtype)
    return shifted if keeps_sign else w.let("select", (within, shifted, 0), dtype)


def _within(w: Writer, by: Operand, width: int) -> Operand:
    if not isinstance(by, str):
        return bool(0 <= by < width)
    return w.let("and", (w.let("le", (0, by), BOOL), w.let("lt", (by, width), BOOL)), BOOL)


def _rounded(w: Writer, dtype: Any, x: Operand) -> str | None:
    """An integer is whole already."""
    return None if dtype.kind == "f" else w.let("cast", (x,), dtype)


def _size(w: Writer, dtype: Any, x: Operand) -> str | None:
    return w.let("cast", (x,), dtype) if dtype.kind in "bu" else None


RULES: dict[str, Callable[..., str | None]] = {
    "floordiv": _floordiv, "mod": _mod, "lshift": _lshift, "rshift": _rshift, "floor": _rounded, "rint": _rounded,
    "abs": _size,
}  # fmt: skip
