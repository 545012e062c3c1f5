"""Plain statements: a kernel in the few statements that every machine has, so that printers need no others.

`b[i] += x` becomes a load, a step of the sum, and a store.  A bool in memory is a byte, of which every value except 0
is true.  A position used as a value is a cast.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .ir import LONG, Accumulate, For, Kernel, Let, Statement, Store, Walk

BYTE = np.dtype(np.uint8)


def plain(kernel: Kernel, position: Any = LONG) -> Kernel:
    """The kernel with loads, stores, operations and loops only; positions have a dtype."""
    parameters = [replace(p, dtype=BYTE) if p.dtype.kind == "b" else p for p in kernel.parameters]
    return replace(kernel, parameters=parameters, body=_Plain(kernel, position).block(kernel.body))


class _Plain(Walk):
    def __init__(self, kernel: Kernel, position: Any) -> None:
        self.position = position
        self.types: dict[str, Any] = {p.name: p.dtype for p in kernel.parameters}

    def loop(self, loop: For) -> list[Statement]:
        return [replace(loop, body=self.block(loop.body))]

    def let(self, let: Let) -> list[Let]:
        if let.op == "load" and let.dtype.kind == "b":
            byte = replace(let, name=f"{let.name}.byte", dtype=BYTE)
            return [byte, replace(let, op="cast", args=(byte.name,))]
        return self.index(let) if let.op == "index" else [let]

    def index(self, let: Let) -> list[Let]:
        """A position as a value; in lanes, the first position and the distances from it."""
        (first, *offsets), name = let.args, f"{let.name}.at"
        made = [Let(name, "index", (first,), self.position)]
        if offsets:
            made.append(Let(f"{name}.first", "spread", (name,), self.position, let.lanes))
            made.append(Let(f"{name}.all", "add", (f"{name}.first", tuple(offsets)), self.position, let.lanes))
        return [*made, Let(let.name, "cast", (made[-1].name,), let.dtype, let.lanes)]

    def store(self, store: Store) -> list[Statement]:
        if self.types[store.buffer].kind != "b":
            return [store]
        byte = f"{store.buffer}.byte"
        return [Let(byte, "cast", (store.value,), BYTE, store.lanes), replace(store, value=byte)]

    def accumulate(self, update: Accumulate) -> list[Statement]:
        buffer, index, lanes, dtype = update.buffer, update.index, update.lanes, self.types[update.buffer]
        old, new = f"{buffer}.old", f"{buffer}.new"
        return [
            Let(old, "load", (buffer, index), dtype, lanes),
            Let(new, f"step_{update.op}", (update.value, old), dtype, lanes), Store(buffer, index, new, lanes),
        ]
