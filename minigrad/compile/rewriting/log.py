"""The log of an optimisation: for each run of a pass, the graphs before and after, and which rules fired where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from ...core.node import Node
from ...support.source import line_of, show
from ...support.table import as_table
from ..nodes.graph import Graph, Titled

SHOWN = 40  # firings that a log prints; `details()` lists all


class Fired(NamedTuple):
    """A rule has fired: the node of the graph before, and its replacement."""

    rule: str
    node: Node
    replacement: Node


class Missed(NamedTuple):
    """A rule has nearly fired: the node of the graph before, and why the rule does not fit."""

    rule: str
    node: Node
    why: str


@dataclass
class PassRun:
    """One run of a pass: its round, the graphs before and after, which rules fired, and which nearly did."""

    name: str
    round: int
    before: Graph
    after: Graph
    fired: list[Fired] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)

    def __call__(self, rule: str, node: Node, replacement: Node) -> None:
        """Note that a rule has fired."""
        self.fired.append(Fired(rule, node, replacement))

    def miss(self, rule: str, node: Node, why: str) -> None:
        """Note why a rule did not fire."""
        self.missed.append(Missed(rule, node, why))

    @property
    def changed(self) -> bool:
        """Whether the pass changed the graph."""
        return self.after is not self.before

    def counts(self) -> Counter[str]:
        """How often each rule fired."""
        return Counter(f.rule for f in self.fired)

    def details(self) -> Iterator[str]:
        """A line for each firing: the rule, the node, its replacement, and the caller's line."""
        before, after = self.before.names(), self.after.names()
        for fired in self.fired:
            new = before.get(fired.replacement) or after.get(fired.replacement) or _described(fired.replacement)
            old = before.get(fired.node, fired.node.name)
            yield f"{self.name}: {fired.rule}: {old} -> {new}   {show(fired.node.where)}"


def _described(node: Node) -> str:
    """A node that a later rule replaced as well, so that no graph names it."""
    return f"{node.name}({', '.join([x.name if isinstance(x, Node) else repr(x) for x in node.inputs])})"


class Log(Titled):
    """What the passes did to a graph; prints as a table.

    `log.runs` lists all runs of passes in order, `log["simplify"]` the runs of one pass, `log.fired` all firings.
    """

    def __init__(self, graph: Graph) -> None:
        self.first = graph
        self.runs: list[PassRun] = []
        self.finished = True  # False: the last round still changed something

    @property
    def last(self) -> Graph:
        """The graph after the last run."""
        return self.runs[-1].after if self.runs else self.first

    @property
    def fired(self) -> list[Fired]:
        """All firings, in order."""
        return [f for run in self.runs for f in run.fired]

    @property
    def missed(self) -> list[Missed]:
        """The near misses in the last run of each pass."""
        return [missed for run in {run.name: run for run in self.runs}.values() for missed in run.missed]

    def __getitem__(self, name: str) -> list[PassRun]:
        return [run for run in self.runs if run.name == name]

    def counts(self) -> Counter[str]:
        """How often each rule fired."""
        return Counter(f.rule for f in self.fired)

    def at(self, line: int) -> list[Fired]:
        """The firings at nodes that come from this line of the caller's code."""
        return [f for f in self.fired if line_of(f.node.where)[1] == line]

    def details(self, most: int | None = None) -> str:
        """A line for each firing, up to `most`."""
        lines = [*islice((line for run in self.runs if run.fired for line in run.details()), most)]
        if len(lines) < len(self.fired):
            lines.append(f"... and {len(self.fired) - len(lines)} more: log.details()")
        return "\n".join(lines)

    def near_misses(self) -> str:
        """A line for each place where a user's kernel nearly fits: why it does not."""
        return "\n".join(f"{m.rule}: not at {m.node.name}, {m.why}   {show(m.node.where)}" for m in self.missed)

    def __repr__(self) -> str:
        return f"<Log of {len(self.runs)} runs: {len(self.first)} nodes before, {len(self.last)} after>"

    def listing(self) -> str:
        """The runs of the passes as a table, then the firings and the near misses."""
        rows = []
        for run in self.runs:
            if run.changed or run.round == 1:
                fired = "; ".join(f"{rule} ({n} times)" if n > 1 else rule for rule, n in run.counts().most_common())
                rows.append((run.name, str(run.round), f"{len(run.before)} -> {len(run.after)}", fired or "-"))
        end = "" if self.finished else "\nstopped after the last round, which still changed something"
        table = as_table(("pass", "round", "nodes", "what fired"), rows, left=4)
        parts = [table + end, self.details(SHOWN), self.near_misses()]
        return "\n\n".join(part for part in parts if part)
