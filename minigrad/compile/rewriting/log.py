"""The log of an optimisation: for each run of a pass, the graph before, the graph after, and what fired where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...core.node import Node
from ...support.source import line_of, show
from ...support.table import as_table
from ..nodes.graph import Graph
from ..nodes.titled import Titled
from .rules import Fired

SHOWN = 40  # firings that a log prints; `details()` gives as many as asked


class Missed(NamedTuple):
    """That something does not fit at a node of the graph before where it might have, and why not."""

    rule: str
    node: Node
    why: str


@dataclass
class PassRun:
    """One run of a pass: which, in which round, what it made of which graph, what fired, and what nearly did."""

    name: str
    round: int
    before: Graph
    after: Graph
    fired: list[Fired] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)

    def __call__(self, rule: str, node: Node, replacement: Node) -> None:
        """Write down that a rule has fired."""
        self.fired.append(Fired(rule, node, replacement))

    def miss(self, rule: str, node: Node, why: str) -> None:
        """Write down why a rule did not fire."""
        self.missed.append(Missed(rule, node, why))

    @property
    def changed(self) -> bool:
        """Whether the graph after is another one."""
        return self.after is not self.before

    def counts(self) -> Counter[str]:
        """How often each rule fired."""
        return Counter(f.rule for f in self.fired)

    def details(self) -> Iterator[str]:
        """A line for each firing: the rule, the node, what is in its place, and the caller's line."""
        before, after = self.before.names(), self.after.names()
        for fired in self.fired:
            new = before.get(fired.replacement) or after.get(fired.replacement) or _described(fired.replacement)
            old = before.get(fired.node, fired.node.name)
            yield f"{self.name}: {fired.rule}: {old} -> {new}   {show(fired.node.where)}"


def _described(node: Node) -> str:
    """A node that a later rule replaced in its turn, and that has no name in a graph."""
    return f"{node.name}({', '.join([x.name if isinstance(x, Node) else repr(x) for x in node.inputs])})"


class Log(Titled):
    """What was done to a graph; prints as a table.

    `runs` are all runs of passes in their order; `log["simplify"]` are those of one pass, `log.fired` all firings.
    """

    def __init__(self, graph: Graph) -> None:
        self.first = graph
        self.runs: list[PassRun] = []
        self.finished = True  # False: the last round still changed something

    @property
    def last(self) -> Graph:
        """The graph as it is now."""
        return self.runs[-1].after if self.runs else self.first

    @property
    def fired(self) -> list[Fired]:
        """Everything that fired."""
        return [f for run in self.runs for f in run.fired]

    @property
    def missed(self) -> list[Missed]:
        """What did not fit where it might have, as of the last run of each pass."""
        return [missed for run in {run.name: run for run in self.runs}.values() for missed in run.missed]

    def __getitem__(self, name: str) -> list[PassRun]:
        return [run for run in self.runs if run.name == name]

    def counts(self) -> Counter[str]:
        """How often each rule fired."""
        return Counter(f.rule for run in self.runs for f in run.fired)

    def at(self, line: int) -> list[Fired]:
        """What fired at nodes that this line of the caller's code made."""
        return [f for f in self.fired if line_of(f.node.where)[1] == line]

    def details(self, most: int | None = None) -> str:
        """A line for each firing, up to `most`."""
        lines: list[str] = []
        for line in (line for run in self.runs if run.fired for line in run.details()):
            if most is not None and len(lines) == most:
                lines.append(f"... and {len(self.fired) - most} more: log.details()")
                break
            lines.append(line)
        return "\n".join(lines)

    def near_misses(self) -> str:
        """A line for each place where a kernel of a user's own might have been put in: why it was not."""
        return "\n".join(f"{m.rule}: not at {m.node.name}, {m.why}   {show(m.node.where)}" for m in self.missed)

    def __repr__(self) -> str:
        return f"<Log of {len(self.runs)} runs: {len(self.first)} nodes before, {len(self.last)} after>"

    def listing(self) -> str:
        """The passes as a table, and what fired."""
        rows = []
        for run in self.runs:
            if run.changed or run.round == 1:
                fired = "; ".join(f"{rule} ({n} times)" if n > 1 else rule for rule, n in run.counts().most_common())
                rows.append((run.name, str(run.round), f"{len(run.before)} -> {len(run.after)}", fired or "-"))
        end = "" if self.finished else "\nstopped after the last round, which still changed something"
        table = as_table(("pass", "round", "nodes", "what fired"), rows, left=4)
        parts = [table + end, self.details(SHOWN), self.near_misses()]
        return "\n\n".join(part for part in parts if part)
