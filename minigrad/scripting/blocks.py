"""Finds the variables of each statement that becomes functions, and what a tensor cannot decide in it."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass, field
from typing import Any

from .assigned import Assigned
from .classify import Kinds
from .liveness import Liveness
from .lowering import Lowering
from .names import Names, root_of, walk_frame

AUGMENTED = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv", ast.Mod: "imod",
    ast.Pow: "ipow", ast.MatMult: "imatmul", ast.LShift: "ilshift", ast.RShift: "irshift", ast.BitOr: "ior",
    ast.BitXor: "ixor", ast.BitAnd: "iand",
}


@dataclass
class Block:
    """An `if` or a loop that becomes functions."""

    word: str  # "if", "while" or "for"
    filename: str
    line: int
    outputs: list[str]  # the variables that the functions return
    parameters: list[str]  # the variables that they take; in a loop, the same
    changed: set[str] = field(default_factory=set)  # variables that may be changed in place
    refused: list[tuple[int, str]] = field(default_factory=list)  # (line, code) that cannot depend on a tensor
    later: set[str] = field(default_factory=set)  # variables without a value at first, which get one before any read
    result: str | None = None  # the variable with the function's result

    def __str__(self) -> str:
        return f"the `{self.word}` at line {self.line}, which a tensor decides"

    def called(self, name: str) -> str:
        """The name of a variable in messages."""
        return "the value that is returned" if name == self.result else f"`{name}`" if name else "the value"

    def place(self, line: int) -> str:
        """A line of the file, for messages."""
        return f"{self.filename}:{line}  {linecache.getline(self.filename, line).strip()}"


class Survey:
    """The blocks of a function whose jumps have been lowered.

    `decided`: all outputs of blocks.  `undefined`: variables that a block takes or returns while they may lack a value.
    `unsure`: the reads of such variables.
    """

    def __init__(self, function: Any, kinds: Kinds, lowered: Lowering, filename: str) -> None:
        self.filename = filename
        self.live, self.assigned = Liveness(function, lowered.going), Assigned(function, lowered.flags)
        self.local = self.assigned.local
        self.order = _order_of_writing(function)
        self.undefined: set[str] = set()
        self.blocks: dict[ast.AST, Block] = {}
        for node in walk_frame(function.body):
            if kinds.kinds.get(node) == "dynamic":
                self.blocks[node] = self._branches(node) if isinstance(node, ast.If) else self._loop(node)
        result = {lowered.result} - {None}  # a flag is checked before it is read
        self.unsure = {n for n, name in self.assigned.unsure.items() if name in self.undefined and name not in result}
        self.decided = {name for block in self.blocks.values() for name in block.outputs}
        later = self.undefined - {self.assigned.unsure[node] for node in self.unsure}
        for block in self.blocks.values():
            block.later, block.result = later, lowered.result

    def _branches(self, node: ast.If) -> Block:
        after = self.live.after[node]
        sides = [Names(node.body), Names(node.orelse)]
        needed: set[str] = set()
        for wanted, names in zip(self.live.branches[node], sides):
            needed |= wanted & names.written
        changed = (sides[0].changed | sides[1].changed) & self.local & needed
        outputs = ((sides[0].written | sides[1].written) & after | changed) & self.local
        for names in sides:
            needed |= changed & names.written
            self.undefined |= outputs - names.written - self.assigned.before[node]
        needed &= self.local
        self.undefined |= needed - self.assigned.before[node]
        return Block("if", self.filename, node.lineno, self.sorted(outputs), self.sorted(needed), changed,
                     self._refused([*node.body, *node.orelse]))

    def _loop(self, node: Any) -> Block:
        names = Names(node.body) if isinstance(node, ast.While) else Names([node.target, *node.body])
        wanted = self.live.inside[node] | self.live.after[node]
        state = names.written & wanted & self.local
        self.undefined |= state - self.assigned.before[node]
        word = "while" if isinstance(node, ast.While) else "for"
        ordered, changed = self.sorted(state), names.changed & state
        return Block(word, self.filename, node.lineno, ordered, ordered, changed, self._refused(node.body))

    def sorted(self, names: set[str]) -> list[str]:
        return sorted(names, key=lambda name: (self.order.get(name, 0), name))

    def _refused(self, body: list[ast.stmt]) -> list[tuple[int, str]]:
        """Assignments to attributes and items, for which a graph has no node."""
        found = []
        for node in walk_frame(body):
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                root = root_of(node)
                if not isinstance(root, ast.Name) or root.id not in self.local:
                    found.append((node.lineno, f"`{ast.unparse(node)}` is assigned"))
        return sorted(found)


def _order_of_writing(function: Any) -> dict[str, int]:
    """The position of each name in the order of first appearance."""
    arguments = [n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)]
    found = [(n.lineno, n.col_offset, n.id) for n in walk_frame(function.body) if isinstance(n, ast.Name)]
    order: dict[str, int] = {}
    for name in (*arguments, *[name for _, _, name in sorted(found)]):
        order.setdefault(name, len(order))
    return order
