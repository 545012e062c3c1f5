"""Widening: innermost loops compute several rounds at once, in the lanes of vectors.

`for i in lo..hi: b[i] = a[i] + 1` becomes a loop over 32 rounds at a time, whose statements have 32 lanes, and a loop
over the rounds that are left.  A value that is the same in all rounds stays a number.  A sum has a partial sum in each
lane.  These operations are new:

    spread   a number in all lanes                 every       each s-th number of a vector
    pack     a number for each lane                weave       numbers of several vectors by turns
    lane     the number of one lane                across_sum  the sum of all lanes; also of other reductions
    same     another name                          step_sum    a step of a sum, whose steps may be regrouped

A `Machine` chooses how many rounds a loop computes at once.  Our loops are simple: nearly all of them read and write
neighbours in memory, or the same element in all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..nodes.thresholds import (
    BLOCK_ROUNDS,
    FEW_STATEMENTS,
    LONG_BODY,
    SHORTER_VECTORS,
    STRAIGHT_STATEMENTS,
    VECTORS_AT_ONCE,
    VERY_LONG_BODY,
)
from .index import computed, depends, fold, leaves, plus, step_of, terms
from .ir import LONG, Accumulate, Accumulator, For, Index, Kernel, Lanes, Let, Statement, Store, Walk, statements
from .legalise import written
from .operations import OPERATIONS, REDUCTIONS, operand_dtypes

SLOW = {"quotient", "remainder"}  # no processor divides vectors of integers
NEAR = (-1, 2, 3, 4)  # elements between those of two rounds, which one load or store takes along


def _by_llvm(let: Let, given: Any, lanes: int) -> bool:
    """Whether LLVM has instructions on vectors for a statement on operands of a dtype."""
    operation = OPERATIONS.get(let.op)
    return operation is None or operation.gives in ("any", "bits") or (bool(operation.llvm) and let.op not in SLOW)


class Machine(NamedTuple):
    """What a processor computes on vectors of `bits` bits.

    `fused`: it has instructions for products and sums that are rounded once.  `computes`: whether it has instructions
    for a legal statement, on vectors of some lanes with operands of a dtype.  `simple`: all vectors of a loop are
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
    """Whether a round may use or overwrite what another round writes, or reads at a position that is a value."""
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

    The gradient of a slice is such a loop: outside the slice, it reads some element of it.
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


# The wider loops ------------------------------------------------------------------------------------------------------


def widen(kernel: Kernel, machine: Machine) -> Kernel:
    """The kernel with loops on the vectors of a machine."""
    return replace(kernel, body=_Widening(kernel, machine).block(kernel.body))


class _Widening(Walk):
    """Replaces each innermost loop by pieces: a loop over most rounds, and shorter loops over those that are left."""

    def __init__(self, kernel: Kernel, machine: Machine) -> None:
        self.types, self.machine = {p.name: p.dtype for p in kernel.parameters}, machine

    def let(self, let: Let) -> list[Statement]:
        self.types[let.name] = let.dtype
        return [let]

    def loop(self, loop: For) -> list[Statement]:
        self.types |= {a.name: a.dtype for a in (*loop.accumulators, *loop.totals)}
        self.types |= {each.name: each.dtype for each in loop.body if isinstance(each, Let)}
        if isinstance(loop, Lanes):
            self.types |= {each.name: each.dtype for each in statements(loop.body) if isinstance(each, Let)}
            vector, lanes = self.machine.lanes(loop, self.types), int(str(loop.high))
            if vector > 1 and (lanes % vector == 0 or not self.machine.simple):
                return _Vectors(loop.variable, 0, lanes, vector, "", self.types).block(loop.body)
        if any(isinstance(each, For) for each in loop.body):
            return [replace(loop, body=self.block(loop.body))]
        lanes, vector = lanes_of(loop, self.types, self.machine)
        known = isinstance(loop.low, int) and isinstance(loop.high, int) and not loop.totals
        if lanes == 1 and not (known and len(loop.body) * (int(str(loop.high)) - int(str(loop.low))) <= FEW_STATEMENTS):
            return [loop]
        made, totals = list[Statement](), dict[str, str]()
        pieces = _known_pieces(loop, lanes, vector) if known else _pieces(loop, lanes, vector)
        for number, piece in enumerate(pieces):
            made += self.piece(loop, *piece, vector, f".{number}" if number else "", totals)
        return [*made, *[Let(a.name, "same", (totals[a.name],), a.dtype) for a in loop.accumulators]]

    def piece(
        self, loop: For, low: Index, high: Index, lanes: int, vector: int, suffix: str, totals: dict[str, str]
    ) -> Iterator[Statement]:
        """Some rounds, and the statements that join their sums with those of the pieces before."""
        once = isinstance(high, int) and isinstance(low, int) and high - low == lanes
        variable = loop.variable + suffix
        vectors = _Vectors(loop.variable, low if once else variable, lanes, vector, suffix, self.types)
        body, sums = vectors.block(loop.body), list[Accumulator]()
        for a in loop.accumulators:
            value, start = vectors.operand(a.value, body), totals.get(a.name) if lanes == 1 else None
            if once and lanes > 1 and not isinstance(value, str):  # what joins lanes reads a vector
                body.append(Let(f"{a.name}{suffix}_x", "spread", (value, vector), a.dtype, lanes))
                value = f"{a.name}{suffix}_x"
            sums.append(replace(a, name=f"{a.name}{suffix}_part", value=value, lanes=lanes, start=start))
        yield from body if once else [For(variable, low, high, body, sums, stride=lanes)]
        for a, part in zip(loop.accumulators, sums):
            total, before = part.value if once else part.name, totals.get(a.name)
            if lanes > 1:
                yield Let(f"{a.name}{suffix}_all", f"across_{a.op}", (total, lanes), a.dtype)
                total = f"{a.name}{suffix}_all"
            if before is not None and (lanes > 1 or once):
                yield Let(f"{a.name}{suffix}_sum", f"step_{a.op}", (before, total), a.dtype)
                total = f"{a.name}{suffix}_sum"
            totals[a.name] = total  # type: ignore[assignment]


def _pieces(loop: For, lanes: int, vector: int) -> Iterator[tuple[Index, Index, int]]:
    """(low, high, lanes) of the pieces of a loop whose end is not known."""
    shorter = [max(lanes // SHORTER_VECTORS, vector)] if loop.accumulators else []
    low = loop.low
    for number, count in enumerate(dict.fromkeys([lanes, *filter(None, shorter), 1])):
        yield low, loop.high, count
        low = f"{loop.variable}{f'.{number}' if number else ''}.end"


def _known_pieces(loop: For, lanes: int, vector: int) -> Iterator[tuple[Index, Index, int]]:
    """The pieces of a loop with a known number of rounds: a loop, then vectors whose lanes halve."""
    low, high = int(str(loop.low)), int(str(loop.high))
    straight = (high - low) * len(loop.body) <= FEW_STATEMENTS if lanes == 1 else not is_linear(loop)
    while low < high:
        while lanes > high - low:
            lanes = lanes // 2 if lanes >= 2 * vector else 1
        whole = 1 if straight or high - low < 2 * lanes else (high - low) // lanes
        yield low, low + whole * lanes, lanes
        low += whole * lanes


class _Vectors(Walk):
    """Copies statements of a loop for several rounds at once, of which the first one is `place`."""

    def __init__(
        self, variable: str, place: Index, lanes: int, vector: int, suffix: str, types: dict[str, Any]
    ) -> None:
        self.variable, self.place, self.lanes, self.vector = variable, place, lanes, vector
        self.suffix, self.types = suffix, types
        self.names: dict[Any, str] = {}
        self.wide: set[str] = set()  # the values that are vectors
        self.copies: dict[str, str] = {}  # a number -> the vector with the number in all lanes

    def at(self, index: Index, lane: int = 0) -> Index:
        """An index in the round of a lane."""
        here = plus(self.place, lane)
        return fold(index, lambda leaf: here if leaf == self.variable else self.names.get(leaf, leaf), _joined)

    def named(self, name: str, wide: bool) -> str:
        self.names[name] = name + self.suffix
        if wide:
            self.wide.add(name)
        return self.names[name]

    def block(self, body: list[Statement]) -> list[Any]:
        """The statements; stores that together fill neighbours are one store."""
        woven = _woven(body, self.variable) if self.lanes > 1 else {}
        made: list[Any] = []
        for statement in body:
            group = woven.get(id(statement))
            made += self.visit(statement) if group is None else self.weave(group, made) if group else ()
        return made

    def let(self, let: Let) -> list[Statement]:
        self.types[let.name] = let.dtype
        known, place = let.op in ("load", "index"), let.args[-1]
        wide = self.lanes > 1 and differs(let, self.variable, self.wide)
        if let.op == "load" and wide and step_of(place, self.variable) != 1:
            return self.scattered(let)
        made, lanes = list[Statement](), self.lanes if wide else 1
        if known:
            args = (*let.args[:-1], self.at(place), *(self.offsets(place) if wide and let.op == "index" else ()))
        else:
            args = tuple([self.operand(arg, made, wide) for arg in let.args])
        return [*made, Let(self.named(let.name, wide), let.op, args, let.dtype, lanes)]

    def offsets(self, index: Index) -> tuple[int, ...]:
        """How far the positions in the lanes are from the first one."""
        alone = [self.alone(index, lane) for lane in range(self.lanes)]
        return tuple([each - alone[0] for each in alone])

    def alone(self, index: Index, lane: int) -> int:
        """An index in the round of a lane, where all other variables are 0."""
        here = (self.place if isinstance(self.place, int) else 0) + lane
        numbers = {self.variable: here}
        return int(fold(index, lambda leaf: leaf if isinstance(leaf, int) else numbers.get(leaf, 0), computed))

    def scattered(self, let: Let) -> list[Statement]:
        """A vector of elements that are not neighbours: one load for each lane."""
        name, buffer, step = self.named(let.name, True), let.args[0], step_of(let.args[1], self.variable)
        if step in NEAR:  # one load, of not one element more than the lanes need
            length, first = (self.lanes - 1) * abs(step) + 1, self.at(let.args[1], 0 if step > 0 else self.lanes - 1)
            near = replace(let, name=f"{name}.near", args=(buffer, first), lanes=length)
            return [near, Let(name, "every", (near.name, step, length), let.dtype, self.lanes)]
        parts = [replace(let, name=f"{name}.at{k}", args=(buffer, self.at(let.args[1], k))) for k in range(self.lanes)]
        return [*parts, Let(name, "pack", tuple([part.name for part in parts]), let.dtype, self.lanes)]

    def operand(self, value: Any, made: list[Statement], wide: bool = True) -> Any:
        """An operand of a statement on vectors; a named number becomes a vector first."""
        name = self.names.get(value, value)
        if not wide or self.lanes == 1 or not isinstance(value, str) or value in self.wide:
            return name
        if name not in self.copies:
            self.copies[name] = f"{name}{self.suffix}_x{self.lanes}"
            made.append(Let(self.copies[name], "spread", (name, self.vector), self.types[value], self.lanes))
        return self.copies[name]

    def store(self, store: Store | Accumulate) -> list[Statement]:
        made: list[Statement] = []
        value, step = self.operand(store.value, made), step_of(store.index, self.variable)
        if step == 1 or self.lanes == 1:
            return [*made, replace(store, index=self.at(store.index), value=value, lanes=self.lanes)]
        dtype = self.types[store.buffer]
        if step == -1 and isinstance(value, str):
            turned = f"{value}.turned"
            made.append(Let(turned, "every", (value, -1, self.lanes), dtype, self.lanes))
            return [*made, replace(store, index=self.at(store.index, self.lanes - 1), value=turned, lanes=self.lanes)]
        for lane in range(self.lanes):  # elements that are not neighbours
            part = value
            if isinstance(value, str):
                part = f"{value}.lane{lane}"
                made.append(Let(part, "lane", (value, lane, self.lanes), dtype))
            made.append(replace(store, index=self.at(store.index, lane), value=part))
        return made

    accumulate = store

    def weave(self, stores: list[Store], made: list[Any]) -> list[Statement]:
        """One store of the values of several."""
        first, lanes = stores[0], self.lanes * len(stores)
        values = tuple([self.operand(each.value, made) for each in stores])
        name, dtype = f"{first.buffer}{self.suffix}.woven", self.types[first.buffer]
        woven = Let(name, "weave", values, dtype, lanes)
        return [woven, replace(first, index=self.at(first.index), value=name, lanes=lanes)]

    def loop(self, loop: For) -> list[Statement]:
        """A loop inside, which runs for all lanes together."""
        body = self.block(loop.body)
        self.types |= {a.name: a.dtype for a in loop.accumulators}
        sums = [replace(a, value=self.operand(a.value, body), lanes=self.lanes) for a in loop.accumulators]
        self.wide |= {a.name for a in sums}
        return [replace(loop, low=self.at(loop.low), high=self.at(loop.high), body=body, accumulators=sums)]


def _woven(body: list[Statement], variable: str) -> dict[int, list[Store]]:
    """For the last one of stores that together fill neighbours, all of them in order; and for the others, nothing.

    >>> group = [Store("b", ("*", "i", 2), "x"), Store("b", ("+", ("*", "i", 2), 1), "y")]
    >>> [*_woven(group, "i").values()] == [[], group]
    True
    """
    groups: dict[Any, dict[int, Store]] = {}
    for each in body:
        step = step_of(each.index, variable) if isinstance(each, Store) else None
        if isinstance(each, Store) and step in NEAR and step > 0 and isinstance(each.value, str):
            parts = terms(each.index)
            number = sum([part for part in parts if isinstance(part, int)])
            place = tuple([part for part in parts if not isinstance(part, int)])
            groups.setdefault((each.buffer, place, step), {})[number] = each
    found: dict[int, list[Store]] = {}
    for (_, _, step), group in groups.items():
        numbers = sorted(group)
        if numbers == [*range(numbers[0], numbers[0] + step)]:
            last = [each for each in body if any(each is one for one in group.values())][-1]
            found |= {id(each): [] for each in group.values()} | {id(last): [group[number] for number in numbers]}
    return found


def _joined(operation: str, left: Index, right: Any) -> Index:
    if isinstance(left, int) and isinstance(right, int):
        return int(computed(operation, left, right))
    return plus(left, right) if operation == "+" else (operation, left, right)
