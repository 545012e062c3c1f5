"""Printing a kernel for a processor: the stages before it, and the base of the printers.

The transforms of loops come first, in the same order for every machine.  A printer then decides nothing: it walks over
the hoisted kernel, has the dtype of each name, and writes each statement as it stands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..loops.bands import tiled, with_long_sums_in_blocks, with_rows_at_once, with_terms
from ..loops.index import INDEXING, IndexOperation
from ..loops.ir import LONG, For, Kernel, Let, Walk
from ..loops.legalise import hoist, legalise, plain
from ..loops.operations import REDUCTIONS, operand_dtypes
from ..loops.widen import Machine, widen


def stages(kernel: Kernel, machine: Machine) -> dict[str, Kernel]:
    """The kernel as it was lowered, and after each of the `STAGES`; the last one is printed."""
    made = {"loops": kernel}
    for name, transform in STAGES.items():
        made[name] = kernel = transform(kernel, machine)
    return made


def banded(kernel: Kernel, machine: Machine) -> Kernel:
    """The kernel with its loops in a different order, and with sums in blocks."""
    return with_terms(with_long_sums_in_blocks(with_rows_at_once(tiled(kernel)), machine.rounds))


def hoisted(kernel: Kernel, machine: Machine) -> Kernel:
    """The kernel in the statements that printers write."""
    place = machine.position
    return hoist(plain(legalise(kernel, fused=machine.fused), place), place, machine.in_bytes)


# The transforms of loops, in their order.  Views show all but the last one, whose result is for printers only.
STAGES = {"banded": banded, "widened": widen, "hoisted": hoisted}


# Printers -------------------------------------------------------------------------------------------------------------


CONVERSIONS = ("cast", "bitcast", "whole")


class Words(Walk):
    """A language: a subclass has a method for each kind of statement and of value, and its tables."""

    position_type: Any = LONG

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.types: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}
        self.types |= dict.fromkeys(("lo", "hi"), self.position_type)

    def let(self, let: Let) -> list[Any]:
        """The lines of a value."""
        self.types[let.name] = let.dtype
        if let.op.startswith("index "):
            return self.position(let, INDEXING[let.op.removeprefix("index ")])
        if let.op.startswith("across_"):
            return self.across(let, REDUCTIONS[let.op.removeprefix("across_")])
        if let.op.startswith("step_"):
            step = replace(let, op=REDUCTIONS[let.op.removeprefix("step_")])
            return self.apply(step, [let.dtype, let.dtype], regroups=True)
        given = operand_dtypes(let, self.types.__getitem__)
        if let.op in CONVERSIONS:
            return self.convert(let, given[0])
        own = getattr(self, let.op, None)  # load, address, spread, pack, lane, every, weave
        return own(let) if own else self.apply(let, given)

    def loop(self, loop: For) -> list[Any]:
        """The lines of a loop."""
        self.types |= {a.name: a.dtype for a in (*loop.accumulators, *loop.totals)}
        self.types |= dict.fromkeys((loop.variable, f"{loop.variable}.end"), self.position_type)
        return self.rounds(loop, self.block(loop.body))

    def position(self, let: Let, operation: IndexOperation) -> list[Any]:
        """Arithmetic of positions."""
        raise NotImplementedError

    def across(self, let: Let, op: str) -> list[Any]:
        """The lanes of a vector, joined by an operation."""
        raise NotImplementedError

    def apply(self, let: Let, kinds: list[Any], regroups: bool = False) -> list[Any]:
        """An operation on operands of these dtypes."""
        raise NotImplementedError

    def convert(self, let: Let, old: Any) -> list[Any]:
        """A value as another dtype."""
        raise NotImplementedError

    def rounds(self, loop: For, body: list[Any]) -> list[Any]:
        """A loop around the lines of its body."""
        raise NotImplementedError
