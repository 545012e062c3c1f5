"""The list of passes, `optimise`, which runs them until nothing changes, and the log of what they did.

For each run of a pass, the log has the graphs before and after, and which rules fired where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

from ...core.node import Node
from ...core.override import override_of
from ...core.primitive import P
from ...support.errors import ConversionError
from ...support.source import line_of
from ..nodes.graph import STORED, Graph, Titled, later, reapplied
from ..nodes.view import FILLED
from . import algebra, common
from .rules import NONE, Note, Rules, apply_rules


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
    without: frozenset[str] = NONE  # the rules that it skips
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

class Log(Titled):
    """What the passes did to a graph; prints as a table.

    `log.runs` lists all runs of passes in order, `log["simplify"]` the runs of one pass, `log.fired` all firings.
    """

    listing = later("minigrad.compile.look.texts", "log_listing")
    details = later("minigrad.compile.look.texts", "log_details")
    near_misses = later("minigrad.compile.look.texts", "near_misses")

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

    def __repr__(self) -> str:
        return f"<Log of {len(self.runs)} runs: {len(self.first)} nodes before, {len(self.last)} after>"

# The passes -----------------------------------------------------------------------------------------------------------


ROUNDS = 8  # two or three are enough for most graphs; more would be passes that undo each other


@dataclass(frozen=True)
class Pass:
    """A pass: `function(graph, note)` returns a graph that computes the same.

    The function calls `note(rule, node, replacement)` with each change, and skips the rules in `left_out(note)`.
    """

    name: str
    function: Callable[[Graph, Note], Graph]
    rules: Rules | None = None
    last: bool = False  # it runs once, when no other pass changes anything

    @property
    def says(self) -> str:
        """The first line of the function's docstring."""
        function = getattr(self.function, "function", self.function)  # of a guest
        return (function.__doc__ or "").strip().partition("\n")[0]


@dataclass(frozen=True)
class Guest:
    """A pass in another file, "file.function", which is loaded when a graph has something that the pass may change."""

    place: str
    concerns: Callable[[Graph], bool]

    @property
    def function(self) -> Callable[[Graph, Note], Graph]:
        file, name = self.place.split(".")
        return getattr(import_module(f"{__package__}.{file}"), name)  # type: ignore[no-any-return]

    def __call__(self, graph: Graph, note: Note) -> Graph:
        return self.function(graph, note) if self.concerns(graph) else graph


def has(*ops: Any, **of_inputs: Any) -> Callable[[Graph], bool]:
    """Whether a graph has nodes of these primitives, or an input with one of these attributes."""

    def concerns(graph: Graph) -> bool:
        given = [getattr(x, name, None) == value for name, value in of_inputs.items() for x in graph.inputs]
        return True in given or not {node.op for node in graph.nodes}.isdisjoint(ops)

    return concerns


VIEWS = Rules(fold_views=("broadcast_to", "permute_dims", "reshape", "slice", "to_device"))
IDLE = Rules(dead=("put",))


def fold_views(graph: Graph, note: Note) -> Graph:
    """Merges views of views, and drops views of everything."""
    return apply_rules(graph, VIEWS, note)


def dead(graph: Graph, note: Note) -> Graph:
    """Removes writes to whole tensors, writes that are overwritten before they are read, and unread values of loops."""
    return apply_rules(Guest("dead.unkept", has(P.scan, P.while_loop))(graph, note), IDLE, note)


FILLINGS = [op for op in P if op.name in FILLED]
PASSES: list[Pass] = [
    Pass("simplify", algebra.simplify, algebra.rule),
    Pass("fold_views", fold_views, VIEWS),
    Pass("common", common.common),
    Pass("dead", dead, IDLE),
    Pass("pick_rows", Guest("positions.pick_rows", has(P.gather, P.scatter_add)), last=True),
    Pass("positions", Guest("positions.positions", has(*FILLINGS)), last=True),
    Pass("channels_last", Guest("channels_last.channels_last", has(P.windows, kind=STORED)), last=True),
    Pass("packed", Guest("layouts.packed", has(lasting=True)), last=True),
    Pass("layouts", Guest("layouts.layouts", has(P.permute_dims)), last=True),
]
OURS = tuple(each.name for each in PASSES if not each.last)  # patterns of user kernels go through these passes only


def register_pass(
    name: str, function: Callable[[Graph, Note], Graph], before: str | None = None, rules: Rules | None = None
) -> None:
    """Add your own pass, at the end or before another one; `function(graph, note)` returns the new graph.

    >>> def look(graph, note):
    ...     print(len(graph), "nodes")
    ...     return graph
    >>> register_pass("look", look, before="simplify")
    >>> from minigrad.compile.nodes.graph import Graph
    >>> x = mg.asarray([1.0], requires_grad=True)
    >>> y = x * 1.0
    >>> graph, log = optimise(Graph([x.node], [y.node]))
    1 nodes
    0 nodes
    >>> forget_pass("look")
    """
    if any(known.name == name for known in PASSES):
        raise ConversionError(f"there is a pass named {name!r} already", hint=f"forget_pass({name!r})")

    place = len(PASSES) if before is None else _place(before)
    PASSES.insert(place, Pass(name, function, rules))


def forget_pass(name: str) -> None:
    """Remove a pass; `optimise(..., without=name)` skips one once."""
    del PASSES[_place(name)]


def _place(name: str) -> int:
    names = [known.name for known in PASSES]
    if name not in names:
        raise ConversionError(f"there is no pass named {name!r}", expect="one of " + ", ".join(names))
    return names.index(name)


def rule_names() -> dict[str, str]:
    """All rules: name and description.

    >>> rule_names()["x - x -> 0"]
    'For integers and unsigned integers.'
    """
    return {rule.name: rule.says for known in PASSES if known.rules is not None for rule in known.rules}


BUILT_IN = tuple(PASSES)  # targets leave some of these out, or their rules, even if they were forgotten
PARTS = ("result_layouts",)  # what a pass may leave out of its work: here `layouts` and `channels_last`


def optimise(
    graph: Graph, without: Iterable[str] = (), only: Iterable[str] | None = None, rounds: int = ROUNDS
) -> tuple[Graph, Log]:
    """The graph after all passes, and the log of what they did.

    `without` names passes or single rules to skip; `only` names the passes to run.  A graph starts at its inputs: no
    pass looks at the operations that made them.

    >>> from minigrad.compile.nodes.graph import Graph
    >>> x = mg.asarray([1.0], requires_grad=True)
    >>> y = (x * 1.0) / 4.0
    >>> graph, log = optimise(Graph([x.node], [y.node]))
    >>> len(graph), log.counts()["x * 1 -> x"]
    (1, 1)
    """
    left_out = frozenset([without] if isinstance(without, str) else without)
    chosen = frozenset([only] if isinstance(only, str) else only or ())
    _check_names(left_out | chosen)
    passes = [p for p in PASSES if p.name not in left_out and (only is None or p.name in chosen)]
    log = Log(graph)
    now, opened = closed(graph)

    def apply(each: Pass, number: int) -> bool:
        nonlocal now
        run = PassRun(each.name, number, now, now, left_out)
        function = override_of(each.function) or each.function
        now = run.after = function(now, run)
        log.runs.append(run)
        return run.changed

    repeated = [each for each in passes if not each.last]
    unchanged = 0  # passes in a row that changed nothing
    for number in range(1, rounds + 1):
        for each in repeated:
            if unchanged < len(repeated):
                unchanged = 0 if apply(each, number) else unchanged + 1
    log.finished = unchanged == len(repeated)
    for each in passes:
        if each.last:
            apply(each, 1)
    return opened(now), log


def _check_names(names: frozenset[str]) -> None:
    every = {*PASSES, *BUILT_IN}
    unknown = names.difference(PARTS, [each.name for each in every])
    for table in [each.rules for each in every if unknown and each.rules is not None]:
        unknown -= {rule.name for rule in table} | table.forgotten
    for name in sorted(unknown):
        raise ConversionError(
            f"there is no pass and no rule named {name!r}",
            expect="a pass: " + ", ".join([each.name for each in PASSES]), hint="rule_names() lists the rules",
        )


class Given(Node):
    """Replaces an input of a graph that is the result of an operation, and hides that operation from the passes."""

    __slots__ = ("of",)

    def __init__(self, of: Node) -> None:
        for slot in Node.__slots__:
            if slot not in ("__weakref__", "value"):
                setattr(self, slot, getattr(of, slot))
        self.of, self.op, self.inputs, self.attrs = of, None, (), {}

    @property
    def name(self) -> str:
        return self.of.name


def closed(graph: Graph) -> tuple[Graph, Callable[[Graph], Graph]]:
    """The graph with `Given` inputs, and the function that puts the original inputs back."""
    given = {node: Given(node) for node in graph.inputs if node.op is not None}
    if not given:
        return graph, lambda graph: graph
    return _with_inputs(graph, given), lambda graph: _with_inputs(graph, {g: node for node, g in given.items()})


def _with_inputs(graph: Graph, other: dict[Any, Any]) -> Graph:
    """The graph with other inputs.  Every node is made anew, so effects keep their order."""

    def anew(node: Node, inputs: tuple[Any, ...]) -> Node:
        return node if node.op is None else reapplied(node, inputs)

    return graph.rebuilt(anew, [other.get(node, node) for node in graph.inputs])
