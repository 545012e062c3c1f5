"""Rules that write NumPy's arithmetic as processor operations, defined for every value.

A rule writes the statements of an operation on operands of the writer's dtype.  It returns the name of the result, or
None if the operation stays unchanged.
"""

from __future__ import annotations

from functools import partial

from .ir import Operand, Writer


def floordiv(w: Writer, x: Operand, y: Operand) -> str:
    """The quotient rounded down."""
    if w.dtype.kind == "f":
        return _float_floordiv(w, x, y)
    zero, minus, safe = _safe_divisor(w, y)
    quotient = w.quotient(x, safe)
    rest = w.remainder(x, safe)
    lower = w.sub(quotient, 1)
    quotient = w.select(_other_side(w, rest, safe), lower, quotient)
    if minus:
        quotient = w.select(minus, w.sub(0, x), quotient)
    return w.select(zero, 0, quotient)


def mod(w: Writer, x: Operand, y: Operand) -> str:
    """The remainder of a quotient that is rounded down; it has the sign of y."""
    if w.dtype.kind == "f":
        return _float_mod(w, x, y)
    _, _, safe = _safe_divisor(w, y)
    rest = w.remainder(x, safe)
    higher = w.add(rest, safe)
    return w.select(_other_side(w, rest, safe), higher, rest)


def _safe_divisor(w: Writer, y: Operand) -> tuple[Operand, Operand, Operand]:
    """Whether y is 0, whether y is -1 (x / -1 overflows for the least x), and y with 1 in place of both."""
    if not isinstance(y, str):  # two numbers without a name have no dtype
        return y == 0, y == -1, 1 if y in (0, -1) else y
    zero = bad = w.eq(y, 0)
    minus = ""
    if w.dtype.kind == "i":
        minus = w.eq(y, -1)
        bad = w.logic("or", zero, minus)
    return zero, minus, w.select(bad, 1, y)


def _other_side(w: Writer, rest: Operand, y: Operand) -> str:
    """Whether a remainder is not 0 and its sign differs from that of y."""
    present = w.logic("invert", w.eq(rest, 0))
    below = w.lt(rest, 0)
    if isinstance(y, str):
        below = w.logic("xor", below, w.lt(y, 0))
    elif y < 0:  # known already
        below = w.logic("invert", below)
    return w.logic("and", present, below)


def _float_mod(w: Writer, x: Operand, y: Operand) -> str:
    rest = w.remainder(x, y)
    none = w.eq(rest, 0.0)
    signed = w.select(none, w.copysign(0.0, y), rest)
    return w.select(_other_side(w, rest, y), w.add(rest, y), signed)


def _float_floordiv(w: Writer, x: Operand, y: Operand) -> str:
    """(x - remainder) / y, rounded to the nearest whole number; x / y where y is 0."""
    if not isinstance(y, str) and not w.dtype.type(y):
        return w.div(x, y)
    rest = w.remainder(x, y)
    ratio = w.div(x, y)
    quotient = w.div(w.sub(x, rest), y)
    lower = w.sub(quotient, 1.0)
    quotient = w.select(_other_side(w, rest, y), lower, quotient)
    whole = w.floor(quotient)
    nearer = w.lt(0.5, w.sub(quotient, whole))
    whole = w.select(nearer, w.add(whole, 1.0), whole)
    nothing = w.eq(quotient, 0.0)
    whole = w.select(nothing, w.copysign(0.0, ratio), whole)
    if not isinstance(y, str):
        return whole
    return w.select(w.eq(y, 0.0), ratio, whole)


# Shifts and the rest --------------------------------------------------------------------------------------------------


def _shifted(op: str, w: Writer, x: Operand, by: Operand) -> str | None:
    """A shift; by the width or more, all bits are lost, except the sign in a shift to the right."""
    width = 8 * w.dtype.itemsize
    if not isinstance(by, str):
        if 0 <= by < width:
            return None
        within: Operand = False
    else:
        within = w.logic("and", w.logic("le", 0, by), w.lt(by, width))
    keeps_sign = op == "rshift" and w.dtype.kind == "i"
    shifted = w.let(op, (x, w.select(within, by, width - 1 if keeps_sign else 0)), w.dtype)
    return shifted if keeps_sign else w.select(within, shifted, 0)


lshift, rshift = partial(_shifted, "lshift"), partial(_shifted, "rshift")


def rounded(w: Writer, x: Operand) -> str | None:
    """A float rounded to a whole number; an integer stays unchanged."""
    return None if w.dtype.kind == "f" else w.cast(x)


def position(w: Writer, x: Operand, size: int) -> str:
    """A position in a dimension, where negative ones count from the end; one beyond an end becomes that end."""
    forward = w.select(w.lt(x, 0), w.add(x, size), x)
    return w.min(w.max(forward, 0), size - 1)


def size(w: Writer, x: Operand) -> str | None:
    """The absolute value; unsigned numbers stay unchanged."""
    return w.cast(x) if w.dtype.kind in "bu" else None
