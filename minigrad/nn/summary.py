"""`Module.summary`: the outputs, parameters and operations of each module, for certain inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compile.jitted import trace
from ..compile.look.cost import node_costs
from ..core.mode import current_mode
from ..core.tree import leaves
from ..support.table import as_table

Scope = tuple[str, ...]
HEAD = ("module", "type", "output", "parameters", "bytes", "flops")


class Row(NamedTuple):
    """One module: its path, type and output shapes; and its parameters and flops, with those of the modules in it."""

    path: str
    type: str
    output: str
    parameters: int
    bytes: int
    flops: int


class Summary(list[Row]):
    """The modules of a model, one row each; as text, a table."""

    def __str__(self) -> str:
        table: list[tuple[str, ...]] = []
        for row in self:
            around = [other.path for other in self if row.path.startswith(f"{other.path}.")]
            name = row.path.removeprefix(f"{max(around, key=len)}." if around else "")
            indent = "  " * (len(around) + bool(row.path))
            table.append((indent + name, row.type, row.output, *[f"{n:,}" if n else "" for n in row[3:]]))
        return as_table(HEAD, table, left=3)

    __repr__ = __str__


def summary(module: Any, *inputs: Any) -> Summary:
    """Trace a module with these inputs, without computing anything, and count.

    >>> summary(mg.nn.Linear(2, 3), mg.ones((5, 2)))[0].flops
    75
    """
    called: dict[int, list[tuple[str, Scope]]] = {}

    def note(inner: Any, args: Any, output: Any) -> None:
        shapes = ", ".join(str(t.shape) for t in leaves(output))
        called.setdefault(id(inner), []).append((shapes, current_mode().scope))

    named = module.named_modules()
    handles = [inner.register_forward_hook(note) for _, inner in named]
    try:
        graph = trace(lambda *given: module(*given), *inputs)
    finally:
        for handle in handles:
            handle.remove()
    work = [(each.node.scope, each.eager.flops) for each in node_costs(graph)]
    rows = Summary()
    for path, inner in named:
        calls = called.get(id(inner), [])
        scopes = {scope for _, scope in calls}
        flops = sum(n for scope, n in work if any(scope[: len(s)] == s for s in scopes))
        held = inner.parameters()
        size = sum(p.size * p.dtype.itemsize for p in held)
        output = calls[-1][0] if calls else "not called"
        rows.append(Row(path, type(inner).__name__, output, sum(p.size for p in held), size, flops))
    return rows
