"""Hoisting: positions become values, each computed once, outside all loops that do not change it.

Afterwards a load or store reads `place[index]`, where the index is a number or a name, and `place` is a parameter or a
value of the operation "address": a pointer moved by some elements.  Every name is defined once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

from .index import computed, fold, leaves, terms, times
from .ir import LONG, Accumulate, For, Index, Kernel, Let, Running, Statement, Store, Walk

NOTHING = {("+", 0), ("*", 1), ("//", 1)}  # operations that do nothing


def hoist(kernel: Kernel, position: Any = LONG, in_bytes: bool = False) -> Kernel:
    """The kernel with positions as values of a dtype, which count elements or bytes."""
    return replace(kernel, body=_Hoisting(kernel, position, in_bytes).all(kernel.body))


class _Hoisting(Walk):
    """Builds the bodies of all loops around a statement at the same time: what moves goes to the end of an outer one,
    which is before the loop.
    """

    def __init__(self, kernel: Kernel, position: Any, in_bytes: bool) -> None:
        self.position, self.in_bytes = position, in_bytes
        self.types = {p.name: p.dtype for p in kernel.parameters}
        self.depths: dict[Any, int] = {}  # the loops around the statement that defines a name; 0 for parameters
        self.names: dict[Any, Any] = {}  # a name in the kernel -> the name here, if it differs
        self.bodies: list[list[Statement]] = []
        self.known: list[dict[Any, str]] = []
        self.count = 0

    def all(self, body: list[Statement]) -> list[Statement]:
        """The statements of a body: those that stay, and those that moved here."""
        self.bodies.append([])
        self.known.append({})
        for statement in body:
            self.visit(statement)
        self.known.pop()
        return self.bodies.pop()

    @property
    def depth(self) -> int:
        return len(self.bodies) - 1

    def defined(self, name: str) -> str:
        """The name of a value that is defined here."""
        new = name if name not in self.depths else self.fresh(name)
        self.names[name], self.depths[new] = new, self.depth
        return new

    def fresh(self, name: str) -> str:
        """A new name, without the number that an earlier call put at the end."""
        self.count += 1
        return f"{name.partition('.')[0]}..{self.count}"

    def named(self, operand: Any) -> Any:
        return self.names.get(operand, operand) if isinstance(operand, str) else operand

    def depth_of(self, operand: Any) -> int:
        return self.depths.get(operand, 0) if isinstance(operand, str) else 0

    # Positions --------------------------------------------------------------------------------------------------------

    def moved(self, op: str, args: tuple[Any, ...], depth: int, dtype: Any, lanes: int = 1) -> str:
        """The name of a value that is computed once, with `depth` loops around it."""
        key = (op, args, lanes)
        if key not in self.known[depth]:
            name = self.known[depth][key] = self.fresh(args[0] if op == "address" else "t")
            self.depths[name] = depth
            self.bodies[depth].append(Let(name, op, args, dtype, lanes))
        return self.known[depth][key]

    def index(self, index: Index) -> Any:
        """The number or the name that is a position."""
        return fold(index, self.leaf, self.joined)

    def leaf(self, leaf: Any) -> Any:
        """A number or a name in an index; a value from memory becomes a position."""
        name = self.named(leaf)
        if self.types.get(name, self.position) == self.position:
            return name
        return self.moved("cast", (name,), self.depth_of(name), self.position)

    def joined(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            return int(computed(op, left, right))
        if (op, right) in NOTHING:
            return left
        risky = op in ("//", "%") and isinstance(right, str)  # before a loop without rounds, it may divide by 0
        depth = self.depth if risky else max(self.depth_of(left), self.depth_of(right))
        return self.moved(f"index {op}", (left, right), depth, self.position)

    def place(self, buffer: str, index: Index) -> tuple[str, Any]:
        """A place in memory: an address, and the number or name of what changes last."""
        size = self.types[buffer].itemsize if self.in_bytes else 1
        parts = [*map(self.index, terms(times(index, size)))]
        number, start = sum([part for part in parts if isinstance(part, int)]), buffer
        names = sorted([part for part in parts if isinstance(part, str)], key=self.depth_of)
        if not names:
            return start, number
        moves: list[Any] = names if number else names[:-1]
        if self.in_bytes and any(isinstance(leaf, int) and leaf < 0 for leaf in leaves(index)):
            moves, number = [*names, number], 0  # the sum could be below 0 without the number
        if moves:  # one address for their sum: a chain of addresses takes LLVM twice as long
            place = reduce(lambda left, right: self.joined("+", left, right), moves)
            start = self.moved("address", (buffer, place), self.depth_of(place), self.types[buffer])
        return start, names[-1] if moves == names[:-1] else number

    # Statements -------------------------------------------------------------------------------------------------------

    def put(self, statement: Statement) -> None:
        self.bodies[-1].append(statement)

    def let(self, let: Let) -> None:
        if let.op == "load":
            args: tuple[Any, ...] = self.place(*let.args)
        elif let.op == "index":
            self.names[let.name] = self.index(let.args[0])
            return
        else:
            args = tuple(map(self.named, let.args))
            if let.op == "same":
                self.names[let.name] = args[0]
                return
            if let.op == "spread":
                self.names[let.name] = self.moved(let.op, args, max(map(self.depth_of, args)), let.dtype, let.lanes)
                return
        name = self.defined(let.name)
        self.types[name] = let.dtype
        self.put(Let(name, let.op, args, let.dtype, let.lanes))

    def store(self, store: Store | Accumulate) -> None:
        buffer, index = self.place(store.buffer, store.index)
        self.put(replace(store, buffer=buffer, index=index, value=self.named(store.value)))

    accumulate = store

    def running(self, running: Running) -> None:
        value = self.named(running.value)
        self.put(replace(running, name=self.defined(running.name), value=value))

    def loop(self, loop: For) -> None:
        low, high = self.index(loop.low), self.index(loop.high)
        outside, starts = dict(self.names), [self.named(a.start) for a in loop.accumulators]
        variable = self.defined(loop.variable)
        self.depths[variable] += 1
        for total in loop.totals:  # read before the first round
            self.names[total.name] = f"{total.name}.so_far"
        body = self.all(loop.body)
        self.depths[variable] -= 1
        inside, self.names = self.names, outside | {f"{loop.variable}.end": f"{variable}.end"}
        self.depths[f"{variable}.end"] = self.depth
        sums = []
        for a, start in zip(loop.accumulators, starts):
            value = inside.get(a.value, a.value) if isinstance(a.value, str) else a.value
            sums.append(replace(a, name=self.defined(a.name), value=value, start=start))
        self.put(replace(loop, variable=variable, low=low, high=high, body=body, accumulators=sums))
