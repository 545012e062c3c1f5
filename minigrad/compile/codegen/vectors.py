"""Prints a kernel as LLVM text in which innermost loops compute on vectors, several rounds at once.

LLVM could find the vectors itself, but its search takes most of the time of a first call.  Our loops are simple: almost
all of them read and write neighbours in memory, or the same element in all rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import dtypes
from ..loops.index import computed, depends, fold, plus, step_of
from ..loops.ir import Accumulate, For, Index, Kernel, Lanes, Let, Store
from ..loops.legalise import legalise
from ..loops.operations import REDUCTIONS
from .lanes import distance, is_simple, lanes_of
from .llvm import REGROUP, TYPES, Printer, constant, conversion, stored_type

STEP = 8  # of the lanes of a loop whose end is not known: first all lanes, then an eighth of them, then single rounds
FEW = 8  # statements of all rounds, for which a loop would be longer than straight code


def vector_source(kernel: Kernel, width: int = 256, fused: bool = True) -> str | None:
    """The text of a module with the function `kernel`, for vectors of `width` bits; None if LLVM must look for vectors.

    It needs no passes of LLVM, only the translation to machine code.
    """
    legal = legalise(kernel, fused=fused)
    lanes = lanes_of(legal, width)
    return None if lanes is None else _VectorPrinter(legal, lanes, width).ready_module()


def without(index: Index, variable: str) -> Index:
    """An index in round 0 of a loop.

    >>> without(("+", ("+", "i", ("*", "p", 8)), 1), "i")
    ('+', ('*', 'p', 8), 1)
    """

    def joined(operation: str, left: Index, right: Any) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return int(computed(operation, left, right))
        return plus(left, right) if operation == "+" else (operation, left, right)

    return fold(index, lambda leaf: 0 if leaf == variable else leaf, joined)


class _VectorPrinter(Printer):
    """Prints loops on vectors, and rounds that are left one by one.

    In a loop on vectors, the values that are the same in all rounds stay single numbers.
    """

    def __init__(self, kernel: Kernel, lanes_of: dict[int, int], width: int) -> None:
        super().__init__(kernel, "kernel", width)
        self.lanes_of = lanes_of
        self.variable = ""  # of the innermost loop that is being printed
        self.lanes = 1  # of that loop
        self.wide: set[str] = set()  # the registers with vectors
        self.copies: dict[tuple[str, int], str] = {}  # a register and a number of lanes -> the vector of its copies
        self.starts: dict[tuple[str, Index], str] = {}  # a buffer and an index -> the place that belongs to round 0

    # Types and operands -----------------------------------------------------------------------------------------------

    def kind(self, dtype: Any, stored: bool = False) -> str:
        """The type of a number, or of a vector if the current statement computes vectors."""
        number = super().kind(dtype, stored)
        return number if self.now == 1 else f"<{self.now} x {number}>"

    def suffix(self, dtype: Any) -> str:
        """The suffix of a function's name."""
        return super().suffix(dtype) if self.now == 1 else f"v{self.now}{super().suffix(dtype)}"

    def number(self, value: Any, dtype: Any) -> str:
        """A constant, in all lanes."""
        one = constant(value, dtype)
        return one if self.now == 1 else f"splat ({TYPES[dtype]} {one})"

    def value(self, operand: Any, dtype: Any) -> str:
        """The register of an operand; a number becomes a vector if the current statement needs one."""
        register = super().value(operand, dtype)
        if self.now == 1 or not isinstance(operand, str) or register in self.wide:
            return register
        return self.copied(register, TYPES[dtype])

    def copied(self, register: str, kind: str) -> str:
        """The vector with a number in all lanes, set before the loop if possible."""
        key = (register, self.now)
        if key in self.copies:
            return self.copies[key]

        def made() -> str:
            vector = f"<{self.now} x {kind}>"
            first = self.set(f"insertelement {vector} poison, {kind} {register}, i64 0")
            return self.set(f"shufflevector {vector} {first}, {vector} poison, <{self.now} x i32> zeroinitializer")

        if self.depth_of(register) == len(self.rooms):
            return made()
        self.copies[key] = self.before(made)
        return self.copies[key]

    def before(self, made: Callable[[], str]) -> str:
        """The register that `made` sets, in lines before the loop."""
        lines, self.lines = self.lines, self.rooms[-1][1]
        register = made()
        self.lines = lines
        return register

    def pointer(self, buffer: str, index: Index, sure: str = "inbounds ") -> str:
        """The place of the first lane."""
        if not self.variable or step_of(index, self.variable) != 1:
            return super().pointer(buffer, index, sure)
        if self.around > 1:
            return super().pointer(buffer, without(index, self.variable), sure)
        kind, place = stored_type(self.types[buffer]), self.names[self.variable]
        return self.set(f"getelementptr {kind}, ptr {self.start(buffer, index)}, i64 {place}")

    def start(self, buffer: str, index: Index) -> str:
        """The place that belongs to round 0 of the loop."""
        key = (buffer, without(index, self.variable))
        if key not in self.starts:
            self.starts[key] = self.before(lambda: super(_VectorPrinter, self).pointer(*key, ""))
        return self.starts[key]

    def define(self, name: str, dtype: Any) -> str:
        register = super().define(name, dtype)
        if self.now > 1:
            self.wide.add(register)
        return register

    # Statements -------------------------------------------------------------------------------------------------------

    def let(self, let: Let) -> None:
        """A value: a vector if it differs between the rounds."""
        self.now = self.lanes if self.lanes > 1 and self.differs(let) else 1
        if self.now > 1 and let.op == "index":
            self.positions(let)
        elif self.now > 1 and let.op == "load" and step_of(let.args[1], self.variable) != 1:
            self.scattered(let)
        else:
            super().let(let)
        self.now = 1

    def differs(self, let: Let) -> bool:
        """Whether a value is not the same in all rounds of the loop on vectors."""
        if let.op in ("load", "index"):
            return depends(let.args[-1], self.variable)
        return any(isinstance(arg, str) and self.names[arg] in self.wide for arg in let.args)

    def positions(self, let: Let) -> None:
        """The positions in the lanes."""
        index, place = let.args[0], self.names[self.variable]
        steps = [self.distance(index, lane) for lane in range(self.now)]
        first = self.copied(self.index(without(index, self.variable) if place.isdigit() else index), "i64")
        where = self.set(f"add <{self.now} x i64> {first}, <{', '.join(f'i64 {step}' for step in steps)}>")
        self.set(conversion(where, dtypes.int64, let.dtype, self), self.define(let.name, let.dtype))

    def scattered(self, let: Let) -> None:
        """Elements that are not neighbours: one after the other is put into its lane."""
        (buffer, index), lanes, self.now = let.args, self.now, 1
        start, vector = self.start(buffer, index), "poison"
        for lane in range(lanes):
            kind, step = stored_type(self.types[buffer]), self.distance(index, lane)
            value = self.read(buffer, self.set(f"getelementptr {kind}, ptr {start}, i64 {step}"))
            register = self.define(let.name, let.dtype) if lane == lanes - 1 else None
            kind = TYPES[let.dtype]
            vector = self.set(f"insertelement <{lanes} x {kind}> {vector}, {kind} {value}, i64 {lane}", register)
        self.wide.add(vector)
        self.now = lanes

    def distance(self, index: Index, lane: int) -> int:
        """How far a lane's position is from the first one, which belongs to round 0 in straight code."""
        place = self.names[self.variable]
        return distance(index, self.variable, int(place) + lane) if place.isdigit() else lane

    def store(self, store: Store) -> None:
        self.now = self.lanes
        super().store(store)
        self.now = 1

    def accumulate(self, update: Accumulate) -> None:
        self.now = self.lanes
        super().accumulate(update)
        self.now = 1

    # Loops ------------------------------------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        if isinstance(loop, Lanes):
            outside, self.around = dict(self.names), int(str(loop.high))
            self.open()
            self.body(loop, "0", self.around)
            self.close()
            self.names, self.around, self.now = outside, 1, 1
            return
        self.now = self.around
        super().loop(loop)
        self.now = 1
        self.wide |= {self.names[a.name] for a in loop.accumulators if self.around > 1}

    def all_rounds(self, loop: For, sums: list[str]) -> list[str]:
        """The rounds on vectors, then the rounds that are left."""
        place, high, lanes = self.index(loop.low), self.index(loop.high), self.lanes_of.get(id(loop), 1)
        if isinstance(loop.low, int) and isinstance(loop.high, int) and not loop.totals:
            return self.known_rounds(loop, range(loop.low, loop.high), sums, lanes)
        fewer = [lanes // STEP] if loop.accumulators else []  # single rounds of a reduction wait for each other
        for count in dict.fromkeys(each for each in (lanes, *fewer, 1) if each):
            place, parts = self.rounds(loop, place, high, sums, count)
            sums = parts if count in (lanes, 1) else self.merged(loop, sums, parts)
        return sums

    def known_rounds(self, loop: For, left: range, totals: list[str], lanes: int) -> list[str]:
        """A loop over most of the rounds, and straight code for the others, on vectors that halve their lanes."""
        straight = len(left) * len(loop.body) <= FEW if lanes == 1 else not is_simple(loop)
        while left:
            while lanes > len(left):
                lanes //= 2
            if straight or len(left) < 2 * lanes:
                totals = self.once(loop, str(left[0]), totals, lanes)
                left = left[lanes:]
            else:
                whole = len(left) // lanes * lanes
                _, totals = self.rounds(loop, str(left[0]), str(left[0] + whole), totals, lanes, sure=True)
                left = left[whole:]
        return totals

    def once(self, loop: For, place: str, totals: list[str], lanes: int) -> list[str]:
        """As many rounds as there are lanes, without a loop: the accumulators after them."""
        self.open()
        values = self.body(loop, place, lanes)
        self.close()
        parts = [self.across(a.op, a.dtype, value, lanes) for a, value in zip(loop.accumulators, values)]
        totals = self.merged(loop, totals, parts)
        self.now = 1
        return totals

    def merged(self, loop: For, totals: list[str], parts: list[str]) -> list[str]:
        """The accumulators after some rounds, and their values from further rounds, joined."""
        return [self.taken(total, a.op, part, a.dtype) for a, total, part in zip(loop.accumulators, totals, parts)]

    def body(self, loop: For, place: str, lanes: int) -> list[str]:
        if id(loop) not in self.lanes_of and not isinstance(loop, Lanes):  # it has loops inside, or lanes around
            return super().body(loop, place, lanes)
        self.variable, self.lanes, self.copies, self.starts = loop.variable, lanes, {}, {}
        self.names[loop.variable] = place
        self.block(loop.body)
        self.now = lanes
        values = [self.value(a.value, a.dtype) for a in loop.accumulators]
        self.lanes, self.variable = 1, ""
        return values

    def rounds(
        self, loop: For, low: str, high: str, sums: list[str], lanes: int, sure: bool = False
    ) -> tuple[str, list[str]]:
        place, sums = super().rounds(loop, low, high, sums, lanes, sure)
        return place, [self.across(a.op, a.dtype, each, lanes) for a, each in zip(loop.accumulators, sums)]

    def hint(self, loop: For) -> str:
        """No pass of LLVM reads hints."""
        return ""

    def across(self, op: str, dtype: Any, vector: str, lanes: int) -> str:
        """The reduction of a vector: halves are joined until one number is left."""
        kind = TYPES[dtype]
        if lanes == 1:
            return vector
        while lanes > 2:
            half = lanes // 2
            parts = []
            for first in (0, half):
                order = ", ".join(f"i32 {lane}" for lane in range(first, first + half))
                given = f"<{lanes} x {kind}>"
                parts.append(self.set(f"shufflevector {given} {vector}, {given} poison, <{half} x i32> <{order}>"))
            self.now = lanes = half
            vector = self.operation(REDUCTIONS[op], dtype, dtype, parts, flags=REGROUP)
        self.now = 1
        parts = [self.set(f"extractelement <2 x {kind}> {vector}, i64 {lane}") for lane in range(2)]
        return self.operation(REDUCTIONS[op], dtype, dtype, parts, flags=REGROUP)
