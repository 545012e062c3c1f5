"""Which loops WebAssembly computes on vectors of 128 bits, and how many vectors a round has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core import dtypes
from ..loops.index import depends
from ..loops.ir import Accumulate, For, Lanes, Let, Statement, Store, statements
from ..loops.operations import REDUCTIONS, operand_dtypes
from .lanes import LONG, VERY_LONG, is_simple, is_vector, lanes_in
from .wasm_words import VECTOR, text_of


def lanes_of(loop: For, types: Mapping[str, Any]) -> tuple[int, set[str]]:
    """How many rounds of a loop fill a vector, 1 if it runs round by round; and the values that are vectors then.

    The numbers in all vectors have one size, and there are instructions for all operations on them.
    """
    possible = is_vector(loop) if isinstance(loop, Lanes) else (lanes_in(loop, types, 8 * VECTOR) or 1) > 1
    if not possible or not is_simple(loop):
        return 1, set()
    inside = [*statements(loop.body)]
    sums = [a for each in (loop, *inside) if isinstance(each, For) for a in each.accumulators]
    types, wide = {**types, **{a.name: a.dtype for a in sums}}, {a.name for a in sums}
    for let in [each for each in inside if isinstance(each, Let)]:
        types[let.name] = let.dtype
        if _differs(let, loop.variable, wide):
            wide.add(let.name)
    numbers = [types[name] for name in wide] + [types[s.buffer] for s in inside if isinstance(s, (Store, Accumulate))]
    sizes = {dtype.itemsize for dtype in numbers if dtype.kind != "b"}
    lanes = VECTOR // max(sizes, default=VECTOR)
    if len(sizes) > 1 or lanes not in (2, 4) or (isinstance(loop, Lanes) and loop.high != lanes):
        return 1, set()
    reduced = all(text_of(REDUCTIONS[a.op], a.dtype, a.dtype, lanes) for a in sums)
    return (lanes, wide) if reduced and all(_is_ready(s, types, wide, lanes) for s in inside) else (1, set())


def _differs(let: Let, variable: str, wide: set[str]) -> bool:
    """Whether a value is not the same in all rounds of a loop."""
    if let.op in ("load", "index"):
        return depends(let.args[-1], variable)
    return any(isinstance(arg, str) and arg in wide for arg in let.args)


def _is_ready(statement: Statement, types: Mapping[str, Any], wide: set[str], lanes: int) -> bool:
    """Whether there are instructions for a statement on vectors."""
    if isinstance(statement, (Store, Accumulate)):
        dtype = types[statement.buffer]
        op = REDUCTIONS[statement.op] if isinstance(statement, Accumulate) else "select"
        return lanes == 4 if dtype.kind == "b" else text_of(op, dtype, dtype, lanes) is not None
    if not isinstance(statement, Let):
        return isinstance(statement, For)
    op, dtype, args = statement.op, statement.dtype, statement.args
    if statement.name not in wide:
        return True
    if op == "load":
        return lanes == 4 or dtype.kind != "b"
    if op == "index":
        return lanes == 4 and text_of("cast", dtypes.int32, dtype, lanes) is not None
    if op in ("lshift", "rshift") and args[1] in wide:  # all lanes are shifted by the same number of bits
        return False
    return text_of(op, operand_dtypes(statement, types.__getitem__)[-1], dtype, lanes) is not None


def vectors_in_round(loop: For) -> int:
    """The number of vectors in a round: sums in several registers wait less for each other, and are more exact."""
    size = len(loop.body)
    return (2 if size <= LONG else 1) * (2 if loop.accumulators and size <= VERY_LONG else 1)
