"""A program as text: its steps in the order in which they run, and where each value lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.table import as_table, bytes_text
from .frame import Layout
from .order import uses

if TYPE_CHECKING:
    from .program import Program


def listing(program: Program) -> str:
    """The steps with what they read and write.

    A value lies in an input, in a result, in a slot of the arena that the program keeps, or where a library puts it.
    """
    layout = program.layout
    names: dict[Any, str] = dict(layout.partition.graph.names())
    rows = []
    for number, turn in enumerate(layout.turns):
        for group in turn:
            reads, writes = uses(group, layout.lowered)
            stored = {source: out for out, source in group.inplace.items()}
            reads = [*reads, *[source for source in stored if source in group.loads]]
            cells = [
                ", ".join(dict.fromkeys(_placed(value, names, layout) for value in values)) or "-"
                for values in ([stored.get(value, value) for value in writes], reads)
            ]
            rows.append((str(number), layout.names[group], *cells))
    slots = layout.plan.slots
    sizes = f" ({', '.join(map(bytes_text, slots))})" if slots else ""
    arena = f"arena of {bytes_text(layout.plan.bytes)} in {len(slots)} slots{sizes}"
    return f"{as_table(('turn', 'step', 'writes', 'reads'), rows, left=4)}\n{arena}"


def _placed(value: Any, names: dict[Any, str], layout: Layout) -> str:
    """The name of a value and where it lies."""
    if value in layout.plan.place:  # of a partial result, `value.node` is what it is a part of
        name = names.get(value) or f"partial {names[value.node]}"
        return f"{name} [slot {layout.plan.place[value]}]"
    if value in layout.inputs:
        return f"{names[value]} [input {layout.inputs[value]}]"
    if value in layout.donated:
        return f"{names[value]} [where {names[layout.donated[value]]} was]"
    if value in layout.from_libraries:
        return f"{names[value]} [the library's]"
    return f"{names[value]} [result {layout.direct[value]}]"
