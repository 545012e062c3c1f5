"""The list of passes, and `optimise`, which runs them until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...core.node import Node
from ...core.override import override_of
from ...support.errors import ConversionError
from ..nodes.graph import Graph, reapplied
from . import algebra, channels_last, common, dead, fold_views, layouts, packed, pick_rows, positions
from .log import Log, PassRun
from .rules import Note, Rules

ROUNDS = 8  # two or three are enough for most graphs; more would be passes that undo each other


@dataclass(frozen=True)
class Pass:
    """A pass: `function(graph, note, without)` returns a graph that computes the same.

    The function calls `note(rule, node, replacement)` with each change, and skips the rules named in `without`.
    """

    name: str
    function: Callable[[Graph, Note, frozenset[str]], Graph]
    rules: Rules | None = None
    last: bool = False  # it runs once, when no other pass changes anything

    @property
    def says(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


PASSES: list[Pass] = [
    Pass("simplify", algebra.simplify, algebra.rule),
    Pass("fold_views", fold_views.fold_views, fold_views.rule),
    Pass("common", common.common),
    Pass("dead", dead.dead, dead.rule),
    Pass("pick_rows", pick_rows.pick_rows, last=True),
    Pass("positions", positions.positions, last=True),
    Pass("channels_last", channels_last.channels_last, last=True),
    Pass("packed", packed.packed, last=True),
    Pass("layouts", layouts.layouts, last=True),
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

    def run(graph: Graph, note: Note, without: frozenset[str]) -> Graph:
        return function(graph, note)

    run.__doc__ = function.__doc__
    place = len(PASSES) if before is None else _place(before)
    PASSES.insert(place, Pass(name, run, rules))


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


# Targets leave some of these out, even if they were forgotten.  The last name is a part of the pass `layouts`.
BUILT_IN = frozenset([*[each.name for each in PASSES], *rule_names(), "result_layouts"])


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
        run = PassRun(each.name, number, now, now)
        function = override_of(each.function) or each.function
        now = run.after = function(now, run, left_out)
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
    known = [p.name for p in PASSES]
    for name in sorted(names - {*known, *BUILT_IN, *rule_names()}):
        raise ConversionError(
            f"there is no pass and no rule named {name!r}",
            expect="a pass: " + ", ".join(known), hint="rule_names() lists the rules",
        )


class Given(Node):
    """Replaces an input of a graph that is the result of an operation, and hides that operation from the passes."""

    __slots__ = ("of",)

    def __init__(self, of: Node) -> None:
        for field in Node.__slots__:
            if field not in ("__weakref__", "value"):
                setattr(self, field, getattr(of, field))
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
