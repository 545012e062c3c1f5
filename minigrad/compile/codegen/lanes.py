"""Lanes: how many rounds of an innermost loop the processor computes at once, in the lanes of vectors.

LLVM could find this out, but its search takes most of a first call.  Our loops are simple: nearly all of them read and
write neighbours in memory, or the same element in all rounds, and the printer writes them on vectors directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..loops.index import depends
from ..loops.ir import Accumulate, For, Index, Kernel, Let, Prefetch, Statement, Store
from ..loops.operations import OPERATIONS
from .gpu_loops import step_of

Loops = Mapping[int, int]  # the lanes of each loop, by its id
SLOW = {"quotient", "remainder"}  # no processor divides vectors of integers
IN_FLIGHT = 4  # vectors of a sum, of which each waits only for itself
SHORT, VERY_LONG = 12, 100  # statements


def lanes_of(kernel: Kernel, width: int) -> dict[int, int] | None:
    """The lanes of each innermost loop, for vectors of `width` bits; None if LLVM has to look for vectors."""
    types = {parameter.name: parameter.dtype for parameter in kernel.parameters}
    found = {id(loop): _lanes(loop, types, width) for loop in innermost(kernel.body)}
    return None if None in found.values() else found  # type: ignore[return-value]


def innermost(body: list[Statement]) -> Iterator[For]:
    """The loops without loops inside."""
    for loop in body:
        if isinstance(loop, For):
            inner = [*innermost(loop.body)]
            yield from inner or [loop]


def _lanes(loop: For, types: Mapping[str, Any], width: int) -> int | None:
    """The lanes of a loop: 1 if it runs round by round, and None if its reads and writes are not simple."""
    if loop.steps > 1 or any(isinstance(each, For) for each in loop.body):
        return None
    lets = [each for each in loop.body if isinstance(each, Let)]
    if any(isinstance(each, Prefetch) for each in loop.body) or not all(map(_on_vectors, lets)):
        return 1
    if any(a.op == "prod" and a.dtype.kind in "iu" for a in loop.accumulators):
        return 1
    loads = [let for let in lets if let.op == "load"]
    stores = [each for each in loop.body if isinstance(each, (Store, Accumulate))]
    written: dict[str, Index] = {store.buffer: store.index for store in stores}
    steps = [step_of(let.args[-1], loop.variable) for let in lets if let.op in ("load", "index")]
    if not {*steps} <= {0, 1} or any(step_of(store.index, loop.variable) != 1 for store in stores):
        return None
    places = [*[let.args for let in loads], *[(store.buffer, store.index) for store in stores]]
    if any(written.get(buffer, index) != index for buffer, index in places):
        return None
    if any(depends(index, let.name) for _, index in places for let in lets):
        return None
    dtypes = [types[buffer] for buffer, _ in places] + [a.dtype for a in loop.accumulators]
    return _chosen(loop, width // 8 // max(dtype.itemsize for dtype in dtypes), len(lets))


def _on_vectors(let: Let) -> bool:
    """Whether processors have vector instructions for a statement."""
    operation = OPERATIONS.get(let.op)
    if operation is None or operation.gives == "any" or operation.gives == "bits":
        return True
    return bool(operation.llvm) and let.op not in SLOW


def _chosen(loop: For, lanes: int, statements: int) -> int:
    """The lanes with which the rounds of a loop take the fewest steps."""
    most = lanes * (IN_FLIGHT if statements <= VERY_LONG else 1)
    if not isinstance(loop.low, int) or not isinstance(loop.high, int):
        return most
    rounds = loop.high - loop.low
    options = [most >> k for k in range(most.bit_length())]
    return min(options, key=lambda count: rounds // count * max(1, count // lanes) + (rounds % count).bit_count())
