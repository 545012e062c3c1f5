"""Tables for moving operations between kernels by hand: the page adds up the numbers that are computed here.

Each value has its size.  Each reader has, for each value, the bytes that it reads if the value is in memory.  It also
has how it reads the value: this decides whether the two may be in one kernel.  The compiler checks such a partition in
`compile/fusion/by_hand.py`; tests compare its answers with those of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compile.fusion.by_hand import Finish, Member, members_of
from ..compile.fusion.compute import BY_ROW, Compute
from ..compile.fusion.count import Count
from ..compile.fusion.group import Partition
from ..compile.fusion.kinds import Library
from ..compile.loops.operations import accumulated_in
from ..compile.nodes.thresholds import MOST_NODES
from ..compile.nodes.view import View
from ..core.node import Node
from .scene import type_of


class Tables:
    """The inputs and the computed values, what each reads, and those of each kernel; `taken`: the costs of loops.

    >>> from minigrad.compile.fusion.fuse import fuse
    >>> graph = mg.trace(lambda x: mg.tanh(x) * 2, mg.ones(4))
    >>> made = Tables(fuse(graph), graph.names(), {}).plain()
    >>> [(item["name"], item["bytes"], item["reads"]) for item in made["items"]][1:]
    [('tanh_1', 16, [[0, 0, 16, 'order', 0]]), ('multiply_1', 16, [[1, 1, 16, 'order', 0]])]
    >>> made["kernels"]
    [[1, 2]]
    """

    def __init__(self, partition: Partition, names: Mapping[Node, str], taken: Mapping[str, Count]) -> None:
        self.partition, self.names, self.computes, self.taken = partition, names, partition.computes, taken
        self.kernels = members_of(partition)
        members = dict.fromkeys(member for kernel in self.kernels for member in kernel)
        nodes = sorted([m for m in members if not isinstance(m, Finish)], key=lambda n: self.computes[n].position)
        read = {base for node in nodes for base in self.computes[node].bases}
        self.inputs = [node for node in partition.graph.inputs if node in read]
        # The readers of a reduction across rows in several chunks read the step that combines the parts.
        self.finished = [m.node for m in members if isinstance(m, Finish)]
        order: list[Member] = [*self.inputs, *nodes, *map(Finish, self.finished)]
        self.number = {member: i for i, member in enumerate(order)}
        self.kept = partition.kept
        self.views: dict[View, int] = {}

    def name_of(self, member: Member) -> str:
        """The name of a value; the second half of a reduction in parts has one too."""
        return f"{self.names[member.node]}, combined" if isinstance(member, Finish) else self.names[member]

    def plain(self) -> dict[str, Any]:
        """All tables, as plain data."""
        return {
            "items": [self._item(member) for member in self.number],
            "kernels": [[self.number[member] for member in kernel] for kernel in self.kernels],
            "most": MOST_NODES,
        }

    def _item(self, member: Member) -> dict[str, Any]:
        node = member.node if isinstance(member, Finish) else member
        item = {"name": self.name_of(member), "type": type_of(node), "bytes": node.nbytes}
        if isinstance(member, Finish):
            return item | {
                "kind": "finish", "size": node.size,
                "reads": [[self.number[node], -1, self.partition.partial_bytes(node), "after", 0]],
                "kept": node in self.kept or node in self.partition.gathered,  # whose parts are combined in memory
                "idle": self.partition.chunks_of[node] == 1 and accumulated_in(node) == node.dtype,
            }
        if node in self.inputs:
            return item | {"kind": "input", "reads": []}
        compute = self.computes[node]
        item |= {"kind": "reduce" if compute.reduces else "kernel", "kept": node in self.kept}
        if node in self.finished:
            item |= {"bytes": self.partition.partial_bytes(node), "kept": False}
        if isinstance(compute, Library):
            taken = self.taken.get(self.names[node], compute.count)
            item |= {
                "kind": "part" if node.name == "project" else "kernel" if compute.launched else "library",
                "why": compute.why, "by": compute.by, "launches": taken.launches,
                "takes": [taken.bytes_read, taken.bytes_written],
            }
        return item | {
            "size": compute.size, "rows": compute.row,
            "reads": [
                self._read(compute, view, touched)
                for view, touched in dict(zip(compute.views, compute.touched)).items()
                if view.base in self.number and view.base in compute.bases
            ],
        }

    def _read(self, compute: Compute, view: View, touched: View) -> list[Any]:
        """The value, the number of the view, the bytes, the kind of access, and the repeats in a row.

        `touched` has as many elements as are read, where their positions come from memory.
        """
        base = view.base
        source: Member = Finish(base) if base in self.finished else base
        how = compute.access(view)
        number = self.views.setdefault(view, len(self.views))
        size = min(touched.footprint, base.size) * base.dtype.itemsize if compute.node.name != "project" else 0
        return [self.number[source], number, size, how.value, view.repeats if how is BY_ROW else 0]
