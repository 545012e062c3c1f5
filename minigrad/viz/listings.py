"""The stages of the compiler as one listing, in which an operation keeps its line from stage to stage.

A pass makes most nodes anew, because something that they read was replaced.  Such a node has the line of the node that
became it.  So two stages differ in few lines: some end, some begin, and some read other values.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..compile.codegen.c import CPrinter
from ..compile.fusion.count import Count
from ..compile.fusion.tally import listing_inside, untallied
from ..compile.look.cost import node_costs
from ..compile.look.stage import graph_stages
from ..compile.look.values import Values, starts_of
from ..compile.lowering.lower import Lowered
from ..compile.nodes.graph import Graph
from ..compile.rewriting.passes import PASSES, rule_names
from ..compile.running.program import Program
from ..core.node import Node
from ..core.primitive import P
from ..support.errors import MinigradError
from ..support.table import bytes_text, counted
from .compiled import sources_of
from .naming import index_text
from .numbers import Summary, short
from .phases import readers_of
from .scene import excerpt, type_of
from .steps import on_host

MOST_BYTES = 1 << 26  # of values that are computed for a listing
FUSION = "fusion"
BY_FUSION = "Kernels compute it where they read it, and store no copy."
NAME = re.compile(r"\b[vbs]\d+")  # of a value, a buffer or a temporary row in the source of a kernel


class Listing:
    """A line for each operation of a program, in all graphs from the traced one to that of the kernels.

    >>> program = mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1)).program(mg.ones(4))
    >>> listing = Listing(program, {})
    >>> [(stage["name"], stage["operations"]) for stage in listing.steps()]
    [('as traced', 5), ('simplify', 3), ('common', 2)]
    >>> [(row["name"], row["texts"]) for row in listing.rows() if row.get("name") in ("tanh_1", "tanh_2")]
    [('tanh_1', [[0, '(4,)', 'tanh', 'multiply_1'], [1, '(4,)', 'tanh', 'tensor_1']]), \
('tanh_2', [[0, '(4,)', 'tanh', 'multiply_2'], [1, '(4,)', 'tanh', 'tensor_1'], [2]])]
    """

    def __init__(self, program: Program, names: Mapping[Node, str]) -> None:
        self.log, self.runs = program.log, [run for run in program.log.runs if run.changed]
        self.graphs = [self.log.first, *[run.after for run in self.runs], program.final]
        self.line: dict[Node, int] = {}  # of each node of each graph
        self.order: list[int] = []  # the lines, from the first to the last one
        self.source: dict[int, Node] = {}  # the node to whose code a line belongs
        for before, after in pairwise([Graph([], []), *self.graphs]):
            self._follow(before, after)
        self.nodes = {line: node for node, line in self.line.items()}
        self.last = {self.line[node]: k for k, graph in enumerate(self.graphs) for node in graph.nodes}
        self.says = {each.name: each.says for each in PASSES}
        self.names = self._named({**program.final.names(), **names})
        self.row: dict[int, int] = {}  # of each line that is listed

    # lines ----------------------------------------------------------------------------------------------------------

    def _follow(self, before: Graph, after: Graph) -> None:
        """Give each new node of a graph the line of the node of its kind that became it, or a line of its own.

        A line that is above one of the values that the new node reads is not taken: a value is made before it is read.
        A line of its own is below these, and below that of the node that became it.  If none became it, it is just
        above its first reader, and belongs to the same code.
        """
        old, place = sources_of(after.became(before)), {line: i for i, line in enumerate(self.order)}
        made: dict[Node, int] = {}  # the place where a value and all that it is computed from are there
        new: dict[int, float] = {}
        for node in dict.fromkeys((*after.inputs, *after.nodes)):
            below = max([made.get(each, -1) for each in node.sources], default=-1)  # inputs may have sources too
            if node not in self.line:
                line = self.line[old[node]] if node in old else -1
                if line < 0 or old[node].op is not node.op or place[line] < below:
                    below = max(below, place.get(line, -1))
                    line = len(place) + len(new)
                    new[line] = below + 0.5
                self.line[node] = line
            made[node] = max(below, place.get(self.line[node], -1))
        at, readers = {**place, **new}, readers_of(after.nodes)
        for node in reversed(after.nodes):
            line = self.line[node]
            self.source.setdefault(line, node)
            if place and line in new and node not in old and node in readers:
                first = min([self.line[reader] for reader in readers[node]], key=at.__getitem__)
                self.source[line], at[line] = self.source[first], at[first] - 0.5 * (first in place)
        self.order = sorted([*self.order, *new], key=at.__getitem__)

    def _named(self, final: Mapping[Node, str]) -> dict[int, str]:
        """The name of each line: that of its value in the final graph, or a further number where the value ended."""
        names = {self.line[node]: name for node, name in final.items()}
        counts = Counter(node.name for node in final)
        for line in self.order:
            if line not in names:
                kind = self.nodes[line].name
                counts[kind] += 1
                names[line] = f"{kind}_{counts[kind]}"
        return names

    def ended(self, node: Node) -> tuple[str, str]:
        """The pass that removed a traced operation or made another one of it; or fusion, if no pass did.

        And why: the last rule that fired there, or else what the pass does.
        """
        line, rules = self.line[node], rule_names()
        for run in self.runs[self.last[line] :]:
            fired = [f"{rule}: {rules[rule]}" for rule, old, _ in run.fired
                     if self.line.get(old) == line and rule in rules]
            return run.name, [self.says.get(run.name, ""), *fired][-1]
        return FUSION, BY_FUSION

    # stages ---------------------------------------------------------------------------------------------------------

    def steps(self) -> list[dict[str, Any]]:
        """The graph as traced, and after each pass that changed it: its cost node by node, and the rules that fired.

        A rule has the numbers of the `rows` of the operations before and after it, or -1.
        """
        place = {node: self.row.get(line, -1) for node, line in self.line.items()}
        found = []
        for stage, fired in zip(graph_stages(self.log), [(), *[run.fired for run in self.runs]]):
            costs = node_costs(stage.object)
            taken = sum([each.eager for each in costs], Count())
            found.append({
                "name": stage.name, "says": self.says.get(stage.name.removesuffix(", again"), ""),
                "operations": len(costs),
                "launches": taken.launches, "bytes": bytes_text(taken.bytes),
                "fired": [[each.rule, place.get(each.node, -1), place.get(each.replacement, -1)] for each in fired],
            })
        return found

    # rows -----------------------------------------------------------------------------------------------------------

    def rows(self, **facts: Mapping[Node, Any]) -> list[dict[str, Any]]:
        """The rows of the page: lines of your code, and below each of them its operations.

        The `texts` of an operation are [stage, type, operation, what it reads …], one from each stage on in which it
        changed, and [stage] where it ended.  A row also has the `facts` that are known of its nodes, by their names.
        """
        texts = self._texts()
        known: dict[int, dict[str, Any]] = defaultdict(dict)
        for name, some in facts.items():
            for node, fact in some.items():
                known[self.line.get(node, -1)][name] = fact
        rows: list[dict[str, Any]] = []
        before = None
        for line in [each for each in self.order if each in texts]:
            node = self.nodes[line]
            code = excerpt(getattr(self.source.get(line), "where", None), 0)  # an input has none
            if code and (code["file"], code["line"]) != before:
                before = code["file"], code["line"]
                rows.append({"code": code["text"][0], "line": code["line"]})
            self.row[line] = len(rows)
            rows.append({
                "name": self.names[line], "texts": texts[line], **known[line],
                "view": node.is_view, "inside": listing_inside(node.attrs, "graph"),
                "span": code and code["span"],
            })
        return rows

    def _texts(self) -> dict[int, list[list[Any]]]:
        found: dict[int, list[list[Any]]] = {}
        for number, graph in enumerate(self.graphs):
            read = {each for node in graph.nodes for each in node.sources} | {*graph.outputs}
            now = {self.line[node]: [type_of(node), ""] for node in graph.inputs if node in read}
            now |= {self.line[node]: [type_of(node), *self._text(node)] for node in graph.nodes}
            for line in found.keys() | now.keys():
                text, texts = now.get(line, []), found.setdefault(line, [])
                if not texts or texts[-1][1:] != text:
                    texts.append([number, *text])
        return found

    def _text(self, node: Node) -> list[str]:
        """An operation, and what it reads."""
        if node.op is None or node.op is P.project:  # a result of an operation has that operation's name
            return [""]
        given = [self.names[self.line[each]] if isinstance(each, Node) else short(each) for each in node.inputs]
        attributes = [
            f"{name}={index_text(value) if name == 'index' else value}"
            for name, value in node.attrs.items()
            if value is not None and name != "chain" and not hasattr(value, "tally")  # a branch or a body
        ]
        return [node.name, *given, *attributes]


def values_of(graph: Graph, given: Callable[[], Sequence[Any]]) -> tuple[dict[Node, str], str]:
    """A summary of each value, computed node by node as in eager mode; or why there are none."""
    size = sum(node.nbytes for node in (*graph.inputs, *graph.nodes) if not isinstance(node.dtype, tuple))
    if size > MOST_BYTES:
        return {}, f"Their values, {bytes_text(size)}, are not shown."
    try:
        arrays = [each.copy() for each in given()]
        if len(arrays) != len(graph.inputs):
            return {}, "Without arguments there are no values."
        values = Values(graph, arrays, starts_of(graph))
        with untallied(graph.nodes), np.errstate(all="ignore"):
            known = {node: values.array(node) for node in reversed([*values]) if not isinstance(node.dtype, tuple)}
    except MinigradError as error:
        return {}, f"There are no values: {error.first_line}."
    return {node: Summary.of(on_host(value, node)).short() for node, value in known.items()}, ""


# the source of a kernel -----------------------------------------------------------------------------------------------


Line = tuple[str, tuple[Node, ...]]  # a line of a kernel's source, and its nodes: computed, loaded or stored there


def source_of(lowered: Lowered, names: Mapping[Node, str]) -> list[Line]:
    """The listing of a kernel in C: a comment for each parameter, then the function.

    >>> program = mg.jit(lambda x: mg.tanh(x) * 2).program(mg.ones(8))
    >>> (lowered,) = program.lowered.values()
    >>> for text, nodes in source_of(lowered, program.optimised.names())[3:]:
    ...     print(text, [node.name for node in nodes])
    void kernel_0(const float *restrict b0, float *restrict b1, int64_t lo, int64_t hi) { []
        for (int64_t i = lo; i < hi; i++) { []
            const float v1 = b0[i]; ['tanh', 'tensor']
            const float v2 = own_tanh(v1); ['tanh']
            const float v3 = v2 * 2.0f; ['multiply']
            b1[i] = v3; ['multiply']
        } []
    } []
    """
    about: dict[str, Node] = dict(lowered.origins)
    head: list[Line] = []
    for parameter, argument in zip(lowered.kernel.parameters, lowered.arguments):
        node = argument.node
        what = "a temporary row"
        if node is not None:
            about[parameter.name] = node
            part = {"partial": "parts of ", "number": f"element {argument.offset} of "}.get(argument.kind, "")
            what = part + names[node]
        text = f"// {parameter.name}: {what}, {counted(parameter.size, 'element')}"
        head.append((text, () if node is None else (node,)))
    listing = CPrinter(lowered.kernel, lowered.group.name).function().splitlines()
    lines: list[Line] = [*head, ("", ()), (listing[0], ())]
    for text in listing[1:]:  # the value that is defined or stored, then the memory that is read
        known = [name for name in NAME.findall(text) if name in about]  # not a temporary row
        nodes = [about[name] for name in known if name == known[0] or name[0] == "b"]
        lines.append((text, tuple(dict.fromkeys(nodes))))
    return lines
