"""The base of the printer to WebAssembly: instructions, local variables, and positions in memory."""

from __future__ import annotations

from typing import Any

from ..loops.index import INDEXING, computed, fold, leaves, step_of
from ..loops.ir import Index, Kernel, Walk
from .wasm_format import Instruction
from .wasm_words import kind_of

NOTHING = {("+", 0), ("*", 1), ("//", 1)}  # operations on positions that do nothing


class Places(Walk):
    """Collects instructions.  Pointers, variables and values are local variables, most of them by their names."""

    def __init__(self, kernel: Kernel) -> None:
        self.code: list[Instruction] = []
        self.locals: dict[str, str] = {}  # their types
        self.types: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}
        self.at: dict[str, str] = {}  # the local variable of each value
        self.depths: dict[str, int] = {}  # a local variable -> the number of loops around it
        # For each loop around the current statement, the instructions that belong before it; and for each depth, the
        # results of instructions that need not run again, and how many there are in all.
        self.rooms: list[list[Instruction]] = []
        self.known: list[dict[Any, Any]] = [{}]
        self.count = 0
        self.lanes = self.now = 1  # of the loop on vectors around, and of the statement that is being printed
        self.variable = ""  # of that loop
        self.copy = 0  # the number of the vector, in a round with several
        self.wide: set[str] = set()  # the values that are vectors

    # Instructions -----------------------------------------------------------------------------------------------------

    def emit(self, *instructions: Instruction) -> None:
        self.code += instructions

    def push(self, place: Instruction) -> None:
        """Put a local variable or a number on the stack."""
        if self.code and self.code[-1] == ("local.set", place[1]):
            self.code[-1] = ("local.tee", place[1])
        else:
            self.emit(place)

    def set(self, name: str, kind: str) -> str:
        """Store the top of the stack in the local variable for a name; returns the variable."""
        kind = "v128" if "x" in kind else kind
        local = name if self.locals.setdefault(name, kind) == kind else f"{name}.{kind}"
        self.locals[local], self.depths[local] = kind, len(self.rooms)
        self.emit(("local.set", local))
        return local

    def define(self, name: str, dtype: Any) -> None:
        """Store the top of the stack as a value."""
        self.types[name] = dtype
        self.at[name] = self.set(name, kind_of(dtype, self.now))
        if self.now > 1:
            self.wide.add(name)

    def outside(self, code: tuple[Instruction, ...], depth: int, kind: str = "i32") -> Instruction:
        """The local variable with the result of a code, which runs once, with as few loops around it as possible."""
        found = self.known[depth].get(code)
        if found is None:
            here = self.code
            if depth < len(self.rooms):
                self.code = self.rooms[depth]
            self.emit(*code)
            self.count += 1
            local = self.set(f"at.{self.count}", kind)
            found = self.known[depth][code] = ("local.get", local)
            self.code, self.depths[local] = here, depth
        return found

    # Positions --------------------------------------------------------------------------------------------------------

    def index(self, index: Index) -> Instruction:
        """The local variable or the number that is a position."""
        return fold(index, self.leaf, self.joined)

    def leaf(self, leaf: int | str) -> Instruction:
        if isinstance(leaf, int):
            return ("i32.const", leaf)
        found = ("local.get", self.at.get(leaf, leaf))
        if self.locals[found[1]] != "i64":
            return found
        return self.outside((found, ("i32.wrap_i64",)), self.depth_of(found))

    def joined(self, op: str, left: Instruction, right: Instruction) -> Instruction:
        """An operation on positions, which is computed once, before all loops that do not change it."""
        if left[0] == right[0] == "i32.const":
            return ("i32.const", int(computed(op, left[1], right[1])))
        if right[0] == "i32.const" and (op, right[1]) in NOTHING:
            return left
        word = INDEXING[op].wasm
        end = ((f"i32.{word}",),) if word else (left, right, ("i32.lt_s",), ("select",))
        risky = op in ("//", "%") and right[0] != "i32.const"  # before a loop without rounds, it may divide by 0
        depth = max(self.depth_of(left), self.depth_of(right))
        return self.outside((left, right, *end), len(self.rooms) if risky else depth)

    def depth_of(self, place: Instruction) -> int:
        """The number of loops around the code that sets a local variable; 0 for numbers."""
        return self.depths[place[1]] if place[0] == "local.get" else 0

    def address(self, buffer: str, index: Index) -> int:
        """Put an address on the stack; returns the number of bytes to add to it."""
        size, key = self.types[buffer].itemsize, (buffer, index)
        if key not in self.known[-1]:
            self.known[-1][key] = self.place(buffer, index, size)
        start, offset = self.known[-1][key]
        self.push(start)
        further = self.copy * self.lanes * size if self.copy and step_of(index, self.variable) else 0
        return int(offset + further)

    def place(self, buffer: str, index: Index, size: int) -> tuple[Instruction, int]:
        """A local variable with an address, and the number of bytes to add to it.

        Terms that change in few loops are added first.
        """
        terms = _terms(index)
        offset = size * sum([term for term in terms if isinstance(term, int)])
        places = [self.scaled(term, size) for term in terms if not isinstance(term, int)]
        if any(isinstance(leaf, int) and leaf < 0 for leaf in leaves(index)):  # the sum could be below 0 without it
            places, offset = [*places, ("i32.const", offset)], 0
        start: Instruction = ("local.get", buffer)
        for place in sorted(places, key=self.depth_of):
            start = self.joined("+", start, place)
        return start, offset

    def scaled(self, term: Index, size: int) -> Instruction:
        if isinstance(term, tuple) and term[0] == "*" and isinstance(term[2], int):
            return self.joined("*", self.index(term[1]), ("i32.const", size * term[2]))
        return self.joined("*", self.index(term), ("i32.const", size))


def _terms(index: Index) -> list[Index]:
    """The terms of a sum."""
    if isinstance(index, tuple) and index[0] == "+":
        return [*_terms(index[1]), *_terms(index[2])]
    return [index]
