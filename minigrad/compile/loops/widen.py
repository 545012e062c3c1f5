"""Widening: innermost loops compute several rounds at once, in the lanes of vectors.

`for i in lo..hi: b[i] = a[i] + 1` becomes a loop over 32 rounds at a time, whose statements have 32 lanes, and a loop
over the rounds that are left.  A value that is the same in all rounds stays a number.  A sum has a partial sum in each
lane.  These operations are new:

    spread   a number in all lanes                 every       each s-th number of a vector
    pack     a number for each lane                weave       numbers of several vectors by turns
    lane     the number of one lane                across_sum  the sum of all lanes; also of other reductions
    same     another name                          step_sum    a step of a sum, whose steps may be regrouped
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..nodes.thresholds import FEW_STATEMENTS, SHORTER_VECTORS
from .index import computed, fold, plus, step_of, terms
from .ir import Accumulate, Accumulator, For, Index, Kernel, Lanes, Let, Statement, Store, Walk, statements
from .lanes import NEAR, Machine, differs, is_linear, lanes_of


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
