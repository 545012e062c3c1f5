"""Lanes: how many rounds of an innermost loop the processor computes at once, in the lanes of vectors.

LLVM could find this out, but its search takes most of a first call.  Our loops are simple: nearly all of them read and
write neighbours in memory, or the same element in all rounds, and the printer writes them on vectors directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..loops.index import computed, depends, fold, step_of
from ..loops.ir import Accumulate, For, Index, Kernel, Lanes, Let, Statement, Store, statements
from ..loops.operations import OPERATIONS

SLOW = {"quotient", "remainder"}  # no processor divides vectors of integers
IN_FLIGHT = 4  # vectors at once: they wait less for each other
STRAIGHT = 2000  # statements of all rounds: so much code needs no loop
LONG = 24  # statements
VERY_LONG = 100  # so many statements keep the processor busy with one vector
MOST = 32  # rounds of a loop over lanes


def lanes_of(kernel: Kernel, width: int) -> dict[int, int] | None:
    """The lanes of each innermost loop, for vectors of `width` bits; None if LLVM has to look for vectors.

    A kernel with loops over `Lanes` has no entries: its other loops run round by round.
    """
    given = [each for each in statements(kernel.body) if isinstance(each, Lanes)]
    if given:
        return {} if all(map(is_vector, given)) else None
    types = {parameter.name: parameter.dtype for parameter in kernel.parameters}
    found = {id(loop): lanes_in(loop, types, width) for loop in innermost(kernel.body)}
    return None if None in found.values() else found  # type: ignore[return-value]


def has_lanes(kernel: Kernel) -> bool:
    """Whether a kernel computes with vectors of its own, which pay only if they are much arithmetic."""
    return any(isinstance(each, Lanes) for each in statements(kernel.body))


def is_vector(loop: Lanes) -> bool:
    """Whether the rounds of a loop over lanes read the same element or neighbours, and write neighbours."""
    if loop.low != 0 or not isinstance(loop.high, int) or not 1 < loop.high <= MOST or loop.accumulators:
        return False
    inside = [*statements(loop.body)]
    if any(isinstance(each, Lanes) for each in inside):
        return False
    bounds = [index for each in inside if isinstance(each, For) for index in (each.low, each.high)]
    same = not any(depends(index, loop.variable) for index in bounds)
    reads = [each.args[-1] for each in inside if isinstance(each, Let) and each.op in ("load", "index")]
    writes = [each.index for each in inside if isinstance(each, (Store, Accumulate))]
    neighbours = all(step_of(index, loop.variable) == 1 for index in writes)
    return same and neighbours and all(step_of(index, loop.variable) in (0, 1) for index in reads)


def innermost(body: list[Statement]) -> Iterator[For]:
    """The loops without loops inside."""
    for loop in body:
        if isinstance(loop, For):
            inner = [*innermost(loop.body)]
            yield from inner or [loop]


def lanes_in(loop: For, types: Mapping[str, Any], width: int) -> int | None:
    """The lanes of a loop: 1 if it runs round by round, and None if LLVM does better."""
    if loop.steps > 1 or any(isinstance(each, For) for each in loop.body):
        return None
    lets = [each for each in loop.body if isinstance(each, Let)]
    if not all(map(_on_vectors, lets)):
        return 1
    if loop.totals or any(a.op == "prod" and a.dtype.kind in "iu" for a in loop.accumulators):
        return 1
    loads = [let.args for let in lets if let.op == "load"]
    stores = {(each.buffer, each.index) for each in loop.body if isinstance(each, (Store, Accumulate))}
    written = dict(stores)
    if any(step_of(index, loop.variable) != 1 for _, index in stores):
        return None
    if any(written.get(buffer, index) != index for buffer, index in (*loads, *stores)):
        return None  # a round uses what another round writes
    if any(depends(index, let.name) for _, index in (*loads, *stores) for let in lets):
        return None
    dtypes = [types[buffer] for buffer, _ in (*loads, *stores)] + [a.dtype for a in loop.accumulators]
    if not (is_simple(loop) or _is_straight(loop, lets)):
        return None
    size = max([dtype.itemsize for dtype in dtypes], default=width)
    lanes = max(1, width // 8 // size)
    vectors = IN_FLIGHT * (2 if any(a.op in ("max", "min") and a.dtype.kind == "f" for a in loop.accumulators) else 1)
    return _chosen(loop, lanes, lanes * (vectors if len(lets) <= VERY_LONG and is_simple(loop) else 1))


def is_simple(loop: For) -> bool:
    """Whether a loop reads neighbours, or the same element in all rounds."""
    return all(step_of(index, loop.variable) in (0, 1) for index in _positions(loop))


def _is_straight(loop: For, lets: list[Let]) -> bool:
    """Whether a loop may be printed without a loop, where its positions are known but for a start.

    The gradient of a slice is such a loop: outside of the slice, it reads some element of it.
    """
    if not isinstance(loop.low, int) or not isinstance(loop.high, int):
        return False
    short = (loop.high - loop.low) * len(lets) <= STRAIGHT
    return short and all(_is_apart(index, loop.variable) for index in _positions(loop))


def _positions(loop: For) -> list[Index]:
    return [each.args[-1] for each in loop.body if isinstance(each, Let) and each.op in ("load", "index")]


def _is_apart(index: Index, variable: str) -> bool:
    """Whether an index is a sum of a part that depends only on the variable, and a part that does not depend on it.

    >>> _is_apart(("+", ("%", "i", 8), "p"), "i"), _is_apart(("%", ("+", "i", "p"), 8), "i")
    (True, False)
    """
    if not isinstance(index, tuple) or not depends(index, variable):
        return True
    operation, left, right = index
    if operation in "+*":
        return _is_apart(left, variable) and _is_apart(right, variable)
    return not fold(index, lambda leaf: isinstance(leaf, str) and leaf != variable, lambda _, a, b: a or b)


def distance(index: Index, variable: str, place: int) -> int:
    """How far the position in round `place` is from the position in round 0, if its parts are apart.

    >>> distance(("+", ("min", "i", 3), "p"), "i", 7)
    3
    """

    def position(here: int) -> int:
        """The position in a round, if all other variables are 0."""
        return int(fold(index, lambda leaf: leaf if isinstance(leaf, int) else here * (leaf == variable), computed))

    return position(place) - position(0)


def _on_vectors(let: Let) -> bool:
    """Whether processors have vector instructions for a statement."""
    operation = OPERATIONS.get(let.op)
    if operation is None or operation.gives in ("any", "bits"):
        return True
    return bool(operation.llvm) and let.op not in SLOW


def _chosen(loop: For, lanes: int, most: int) -> int:
    """The lanes with which the rounds of a loop take the fewest steps: at most `most`; a vector has `lanes`."""
    if not isinstance(loop.low, int) or not isinstance(loop.high, int):
        return most
    rounds = loop.high - loop.low
    options = [most >> k for k in range(most.bit_length())]
    if len(loop.body) > LONG:  # LLVM takes long for long straight code
        options = [count for count in options if count <= lanes or count <= rounds // 2]
    return min(options, key=lambda count: rounds // count * max(1, count // lanes) + (rounds % count).bit_count())
