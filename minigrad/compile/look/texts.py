"""Stages as text: graphs, logs of passes, which nodes each kernel computes, and plans with the place of each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ...core.node import Node
from ...support.source import show
from ...support.table import as_table, bytes_text
from ..fusion.compute import ONCE, PER_ELEMENT, PER_ROW
from ..fusion.count import functions_of
from ..fusion.group import Block, Group, Partition
from ..fusion.tally import listing_inside, rounds_text
from ..nodes.graph import Graph
from ..nodes.view import View
from ..rewriting.passes import Log, PassRun
from ..running.plan import IN_PLACE, LIBRARY, Blocked, Call, Check, Plan

# Graphs and logs ------------------------------------------------------------------------------------------------------

SHOWN = 40  # firings that a log prints; `details()` lists all


def graph_listing(graph: Graph) -> str:
    """A line for each input and each node of a graph."""
    names = graph.names()
    lines = [f"{names[node]}: {node.dtype} {node.shape}" for node in graph.inputs]
    for node in graph.nodes:
        given = [names[i] if isinstance(i, Node) else repr(i) for i in node.inputs]
        given += [f"{key}={value!r}" for key, value in node.attrs.items()]
        lines.append(f"{names[node]}: {_kind(node)} = {node.name}({', '.join(given)})")
        for key, value in node.attrs.items():
            if isinstance(getattr(value, "graph", None), Graph):  # a branch, or the body of a loop
                lines += [f"  {key}:", *[f"    {line}" for line in str(value.graph).splitlines()]]
    lines.append("return " + ", ".join(names[node] for node in graph.outputs))
    return "\n".join(lines)


def _kind(node: Node) -> str:
    """The dtype and shape of each result of a node."""
    if isinstance(node.dtype, tuple):
        return ", ".join([f"{dtype} {shape}" for dtype, shape in zip(node.dtype, node.shape)])
    return f"{node.dtype} {node.shape}"


def log_listing(log: Log) -> str:
    """The runs of the passes as a table, then the firings and the near misses."""
    rows = []
    for run in log.runs:
        if run.changed or run.round == 1:
            fired = "; ".join(f"{rule} ({n} times)" if n > 1 else rule for rule, n in run.counts().most_common())
            rows.append((run.name, str(run.round), f"{len(run.before)} -> {len(run.after)}", fired or "-"))
    end = "" if log.finished else "\nstopped after the last round, which still changed something"
    table = as_table(("pass", "round", "nodes", "what fired"), rows, left=4)
    parts = [table + end, log_details(log, SHOWN), near_misses(log)]
    return "\n\n".join(part for part in parts if part)


def log_details(log: Log, most: int | None = None) -> str:
    """A line for each firing, up to `most`."""
    lines = [*islice((line for run in log.runs if run.fired for line in _firings(run)), most)]
    if len(lines) < len(log.fired):
        lines.append(f"... and {len(log.fired) - len(lines)} more: log.details()")
    return "\n".join(lines)


def _firings(run: PassRun) -> Iterator[str]:
    """A line for each firing: the rule, the node, its replacement, and the caller's line."""
    before, after = run.before.names(), run.after.names()
    for fired in run.fired:
        new = before.get(fired.replacement) or after.get(fired.replacement) or _described(fired.replacement)
        old = before.get(fired.node, fired.node.name)
        yield f"{run.name}: {fired.rule}: {old} -> {new}   {show(fired.node.where)}"


def _described(node: Node) -> str:
    """A node that a later rule replaced as well, so that no graph names it."""
    return f"{node.name}({', '.join([x.name if isinstance(x, Node) else repr(x) for x in node.inputs])})"


def near_misses(log: Log) -> str:
    """A line for each place where a user's kernel nearly fits: why it does not."""
    return "\n".join(f"{m.rule}: not at {m.node.name}, {m.why}   {show(m.node.where)}" for m in log.missed)


# Kernels --------------------------------------------------------------------------------------------------------------


def partition_listing(partition: Partition) -> str:
    """The nodes of each kernel, and why some nodes are in different kernels."""
    names = partition.graph.names()
    lines: list[str] = []
    for group in partition.groups:
        lines += _group(group, names)
        if group in partition.blocks:
            lines.append(f"  in blocks: {_block(partition.blocks[group], names)}")
    if partition.reasons:
        lines.append("not in one kernel:")
        lines += [f"  {names[a]} → {names[b]}: {why}" for (a, b), why in partition.reasons.items()]
    return "\n".join(lines)


def _group(group: Group, names: Mapping[Node, str]) -> list[str]:
    """What a kernel or library call computes, reads and writes."""
    if group.library is not None:
        given = [names[r.base] if isinstance(r, View) else repr(r) for r in group.library.reads]
        call = f"{names[group.library.node]}({', '.join(given)}), by {group.library.by}"
        return [f"{group.name} (level {group.depth}): {call}", *listing_inside(group.library.node.attrs, "partition")]
    lines = [f"{group.name} (level {group.depth}): {group.loops}"]
    what = {PER_ELEMENT: "for each element", PER_ROW: "for each row", ONCE: "once"}
    for level in (ONCE, PER_ROW, PER_ELEMENT):
        nodes = [names[node] for node, at in group.levels.items() if at == level]
        if nodes:
            lines.append(f"  {what[level]}: {', '.join(nodes)}")
    if group.partials:
        lines.append(f"  across rows, to be finished later: {', '.join(names[node] for node in group.partials)}")
    lines.append(f"  reads {', '.join(names[node] for node in group.loads) or 'nothing'}")
    lines.append(f"  writes {', '.join(names[node] for node in group.stores) or 'partial results only'}")
    lines += [f"  {names[a]} is stored where {names[b]} was" for a, b in group.inplace.items()]
    return lines


def _block(block: Block, names: Mapping[Node, str]) -> str:
    """The size of a block, and the products in it."""
    *_, height, width = block.shape
    ends = ", up to the column of the last row" if block.triangular else ""
    before, after, inside = [
        ", ".join([names[node] for node in nodes]) or "nothing"
        for nodes in ([p.node for p in block.into], [p.node for p in block.out], block.inside)
    ]
    size = f"{block.rows} rows of {height} × {width}{ends}"
    return f"{size}; {before} before, {after} after; {inside} only in scratch memory"


# Plans ----------------------------------------------------------------------------------------------------------------


def plan_listing(plan: Plan) -> str:
    """The steps of a plan as a table, and its memory."""
    rows = []
    for number, turn in enumerate(plan.turns):
        for i in turn:
            step = plan.steps[i]
            reads, writes = plan.uses(step)
            places = [[_placed(plan, i) for i in writes], [_placed(plan, i) for i in reads]]
            after = [plan.steps[other].name for other in plan.after[i]]
            rows.append((str(number), step.name, *[", ".join(cell) or "-" for cell in (*places, after)]))
    sizes = f" ({', '.join(map(bytes_text, plan.slots))})" if plan.slots else ""
    arena = f"arena of {bytes_text(sum(plan.slots))} in {len(plan.slots)} slots{sizes}"
    inside = [f"{c.name}, {rounds_text(c.attrs)}{left_by(c.attrs)}:\n{text}\n" for c, text in _inside(plan)]
    return f"{as_table(('turn', 'step', 'writes', 'reads', 'after'), rows, left=5)}\n{''.join(inside)}{arena}"


def _inside(plan: Plan) -> list[tuple[Call, str]]:
    """The loops and branches, with the listings of the programs inside them."""
    calls = [step for step in plan.steps if isinstance(step, Call) and functions_of(step.attrs)]
    return [(call, "\n".join(listing_inside(call.attrs, "plan"))) for call in calls]


def _placed(plan: Plan, number: int) -> str:
    """The name of a value and its place."""
    buffer = plan.buffers[number]
    where = f"{buffer.kind} {buffer.number}"
    if buffer.kind == IN_PLACE:
        where = f"where {plan.buffers[buffer.number].name} was"
    elif buffer.kind == LIBRARY:
        where = "the library's"
    return f"{buffer.name} [{where}]"


def left_by(attrs: Mapping[str, Any]) -> str:
    """Why Python runs each round of a loop, in words; "" if machine code can run all rounds.

    >>> plan = mg.jit(lambda x: mg.fori_loop(0, 9, lambda i, s: mg.sort(s) + i, x)).program(mg.ones(3)).plan
    >>> [left_by(step.attrs) for step in plan.steps if isinstance(step, Call) and "body" in step.attrs]
    ['; Python runs each round, because of sort_1, a library call']
    """
    functions = [attrs[name] for name in ("body", "condition") if name in attrs]
    plans = [plan for function in functions if (plan := getattr(function.program, "plan", None)) is not None]
    reasons = [f"{step.name}, {REASONS[type(step)]}" for plan in plans for step in plan.steps
               if isinstance(step, (Check, Blocked)) or (isinstance(step, Call) and not step.fills)]
    return f"; Python runs each round, because of {' and '.join(reasons)}" if reasons else ""


REASONS = {Call: "a library call", Check: "a check of positions", Blocked: "a kernel in blocks"}
