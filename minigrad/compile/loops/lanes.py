"""Lanes: how many rounds of an innermost loop a processor computes at once, in the lanes of vectors.

Our loops are simple: nearly all of them read and write neighbours in memory, or the same element in all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..nodes.thresholds import BLOCK_ROUNDS, LONG_BODY, STRAIGHT_STATEMENTS, VECTORS_AT_ONCE, VERY_LONG_BODY
from .index import depends, fold, leaves, step_of
from .ir import LONG, Accumulate, Accumulator, For, Index, Kernel, Lanes, Let, Store, statements
from .legalise import written
from .operations import OPERATIONS, REDUCTIONS, operand_dtypes

SLOW = {"quotient", "remainder"}  # no processor divides vectors of integers
NEAR = (-1, 2, 3, 4)  # elements between those of two rounds, which one load or store takes along


def _by_llvm(let: Let, given: Any, lanes: int) -> bool:
    """Whether LLVM has instructions on vectors for a statement on operands of a dtype."""
    operation = OPERATIONS.get(let.op)
    return operation is None or operation.gives in ("any", "bits") or (bool(operation.llvm) and let.op not in SLOW)


class Machine(NamedTuple):
    """What a processor computes on vectors of so many `bits`.

    `fused`: it has instructions for products and sums that are rounded once.  `computes`: whether it has instructions
    for a legal statement, on vectors of so many lanes with operands of a dtype.  `simple`: all vectors of a loop are
    full and have equally many lanes, which are neighbours in memory.  `rounds` are those in a block of a long sum.
    Positions have the dtype `position`, and count elements, or bytes.
    """

    bits: int = 256
    fused: bool = True
    simple: bool = False
    computes: Callable[[Let, Any, int], bool] = _by_llvm
    rounds: int = BLOCK_ROUNDS
    position: Any = LONG
    in_bytes: bool = False

    def written(self, let: Let, given: Any) -> tuple[Let, ...]:
        """The legal statements for a statement on operands of a dtype."""
        if let.op not in OPERATIONS:
            return (let,)
        args = tuple([f"x{place}" if isinstance(arg, str) else arg for place, arg in enumerate(let.args)])
        return written(let.op, args, given, let.dtype, self.fused)

    def size(self, loop: For, types: Mapping[str, Any]) -> int:
        """The number of legal statements of a loop."""
        lets = [each for each in loop.body if isinstance(each, Let)]
        return len(loop.body) - len(lets) + sum([len(self.written(let, _given(let, types))) for let in lets])

    def has_vectors(self, let: Let, types: Mapping[str, Any], lanes: int) -> bool:
        """Whether all statements that a statement is written as have instructions on vectors."""
        inside = dict(types)
        for each in self.written(let, given := _given(let, types)):
            inside |= {arg: given for arg in each.args if isinstance(arg, str) and arg not in inside}
            if not self.computes(each, _given(each, inside), lanes):
                return False
            inside[each.name] = each.dtype
        return True

    def lanes(self, loop: For, types: Mapping[str, Any]) -> int:
        """The lanes of one vector in a loop; 0 if the machine lacks instructions, 1 if vectors have one number."""
        inside = statements(loop.body)
        sums = [a for each in (loop, *inside) if isinstance(each, For) for a in each.accumulators]
        stores = [each for each in inside if isinstance(each, (Store, Accumulate))]
        wide, lets = {a.name for a in sums}, list[Let]()
        for let in [each for each in inside if isinstance(each, Let)]:
            if differs(let, loop.variable, wide):
                wide.add(let.name)
                lets.append(let)
        dtypes = [types[each.buffer] for each in stores] + [a.dtype for a in sums]
        dtypes += [let.dtype for let in lets if self.simple or let.op == "load"]
        sizes = {dtype.itemsize for dtype in dtypes if not self.simple or dtype.kind != "b"}
        lanes = max(1, self.bits // 8 // max(sizes, default=self.bits))
        if self.simple and len(sizes) > 1:
            return 0
        steps = [Let("", REDUCTIONS[a.op], ("x", "y"), a.dtype) for a in sums]
        steps += [Let("", REDUCTIONS[s.op], ("x", "y"), types[s.buffer]) for s in stores if isinstance(s, Accumulate)]
        steps += [Let("", "load", (), types[each.buffer]) for each in stores]  # it stores what it loads
        ready = all(self.computes(step, step.dtype, lanes) for step in steps)
        return lanes if ready and all(self.has_vectors(let, types, lanes) for let in lets) else 0


def differs(let: Let, variable: str, wide: set[str]) -> bool:
    """Whether a value is not the same in all rounds of a loop; `wide` are the earlier ones that are not."""
    return depends(let.args[-1], variable) if let.op in ("load", "index") else not wide.isdisjoint(let.args)


def _given(let: Let, types: Mapping[str, Any]) -> Any:
    """The dtype of the operands of a statement."""
    return operand_dtypes(let, types.__getitem__)[-1] if let.op in OPERATIONS else let.dtype


def has_lanes(kernel: Kernel) -> bool:
    """Whether a kernel computes with vectors of its own, which pay only if they are much arithmetic."""
    return any(isinstance(each, Lanes) for each in statements(kernel.body))


def lanes_of(loop: For, types: Mapping[str, Any], machine: Machine) -> tuple[int, int]:
    """The lanes of an innermost loop, 1 if it runs round by round, and those of one vector.

    `types` has the dtypes of all names.
    """
    lets = [each for each in loop.body if isinstance(each, Let)]
    stores = [each for each in loop.body if isinstance(each, (Store, Accumulate))]
    if len(lets) + len(stores) < len(loop.body) or _is_ordered(loop, lets, stores):
        return 1, 1
    if any(a.op == "prod" and a.dtype.kind in "iu" for a in loop.accumulators):
        return 1, 1
    steps = {step_of(index, loop.variable) for index in _positions(loop)}
    lanes = machine.lanes(loop, types)
    if lanes < 2 or (machine.simple and not steps <= {0, 1}):
        return 1, 1
    at_once, size = VECTORS_AT_ONCE if steps <= {0, 1, *NEAR} else 1, machine.size(loop, types)
    if steps <= {0, 1}:
        at_once = _vectors_at_once(size, loop.accumulators, machine.simple)
    return _chosen(loop, size, lanes, lanes * at_once), lanes if machine.simple else 1


def _vectors_at_once(size: int, accumulators: list[Accumulator], few_registers: bool) -> int:
    if size > VERY_LONG_BODY + 1:
        return 1
    if few_registers:
        return (2 if size <= LONG_BODY else 1) * (2 if accumulators else 1)
    slow = any(a.op in ("max", "min") and a.dtype.kind == "f" for a in accumulators)
    return 2 * VECTORS_AT_ONCE if slow else VECTORS_AT_ONCE


def _is_ordered(loop: For, lets: list[Let], stores: list[Store | Accumulate]) -> bool:
    """Whether a round may use or overwrite what another round writes, or reads where another value says."""
    reads = [let.args for let in lets if let.op == "load"]
    written = {each.buffer: each.index for each in stores}
    for each in stores:
        step = step_of(each.index, loop.variable)
        if step is None or abs(step) < loop.steps or (step != 1 and isinstance(each, Accumulate)):
            return True
    places = [*reads, *[(each.buffer, each.index) for each in stores]]
    if any(written.get(buffer, index) != index for buffer, index in (places if loop.steps == 1 else reads)):
        return True
    if any(not {let.name for let in lets}.isdisjoint(leaves(index)) for index in _positions(loop)):
        return True
    return not is_linear(loop) and not _is_straight(loop, lets)


def is_linear(loop: For) -> bool:
    """Whether all positions in a loop grow by the same in each round."""
    return all(step_of(index, loop.variable) is not None for index in _positions(loop))


def _is_straight(loop: For, lets: list[Let]) -> bool:
    """Whether a loop may be printed without a loop, where its positions are known but for a start.

    The gradient of a slice is such a loop: outside of the slice, it reads some element of it.
    """
    if not isinstance(loop.low, int) or not isinstance(loop.high, int):
        return False
    short = (loop.high - loop.low) * len(lets) <= STRAIGHT_STATEMENTS
    return short and all(_is_apart(index, loop.variable) for index in _positions(loop))


def _positions(loop: For) -> Iterator[Index]:
    for each in loop.body:
        if isinstance(each, Let) and each.op in ("load", "index"):
            yield each.args[-1]
        elif isinstance(each, (Store, Accumulate)):
            yield each.index


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


def _chosen(loop: For, size: int, lanes: int, most: int) -> int:
    """The lanes with which the rounds of a loop take the fewest steps: at most `most`; a vector has `lanes`."""
    if not isinstance(loop.low, int) or not isinstance(loop.high, int):
        return most
    rounds = loop.high - loop.low
    options = [most >> k for k in range(most.bit_length())]
    if size > LONG_BODY:  # LLVM takes long for long straight code
        options = [count for count in options if count <= lanes or count <= rounds // 2]
    return min(options, key=lambda count: rounds // count * max(1, count // lanes) + (rounds % count).bit_count())


