"""The cost model: the bytes, operations and memory of a graph node by node, beside those of its program.

    print(step.cost(x))            # a table: what each kernel reads, writes and computes
    step.cost(x).eager.bytes       # a single figure

All figures are counted; a `Record` measures.  "Node by node" is eager mode, where each value is freed after its
last use.  A `put` writes into existing memory, all other operations allocate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ...core.node import Node
from ...core.primitive import P
from ...support.table import as_html, as_table, bytes_text, escape
from ..fusion.count import Count, eager_count, functions_of
from ..fusion.tally import rounds_text
from ..nodes.graph import Graph, Titled
from ..nodes.view import views_of
from ..running.blocked import scratch_bytes
from ..running.frame import pieces_of
from ..running.plan import LIBRARY, RESULT, Blocked, Call, Launch, Plan
from ..running.program import Program
from ..running.schedule import counts_of
from ..running.steps import ALIGNMENT, COPIES, copies_of

SUMS = ("", "launches", "read", "written", "flops", "peak memory")
HEAD = ("step", "computes", "read", "written", "flops", "flops/byte", "read and written node by node")


@dataclass(frozen=True)
class NodeCost:
    """The cost of a node alone."""

    node: Node
    name: str
    eager: Count


@dataclass(frozen=True)
class KernelCost:
    """The cost of a step of a program, and of its nodes one by one.

    `nodes` are the nodes that it computes, in order; a node that several kernels compute is in each of them.
    """

    name: str
    kind: str  # kernel, library or copies (of results that are views)
    nodes: list[NodeCost]
    program: Count
    scratch: int = 0  # bytes of scratch memory; of a loop or branch, all that the functions that run allocate
    rounds: str = ""  # of a loop or branch: how often its functions run, in words

    @cached_property
    def eager(self) -> Count:
        """The cost of its nodes one by one."""
        return sum([node.eager for node in self.nodes], Count())


@dataclass(frozen=True)
class Memory:
    """The bytes that a program allocates, without its inputs: nothing is freed before the run ends."""

    arena: int  # values between steps; kept for the next run
    scratch: int  # rows that kernels use while they run; kept too
    results: int
    libraries: int  # results of library calls that do not lie in the arena

    @property
    def total(self) -> int:
        """The peak."""
        return self.arena + self.scratch + self.results + self.libraries


class Cost(Titled):
    """The cost of a program, and of the same graph node by node.

    `nodes` are the nodes of the traced graph, and `kernels` the steps of the program.  `eager` and `program` are the
    sums; `eager_peak` and `memory.total` are the most bytes in use at the same time, without the inputs.

    >>> cost = mg.jit(lambda x: mg.exp(x - x.max(-1, keepdims=True))).cost(mg.ones((4, 16)))
    >>> [(kernel.name, [node.name for node in kernel.nodes]) for kernel in cost.kernels]
    [('kernel_0', ['max_1', 'subtract_1', 'exp_1'])]
    >>> cost.program
    Count(bytes_read=256, bytes_written=256, flops=192, launches=1)
    >>> cost.eager
    Count(bytes_read=784, bytes_written=528, flops=192, launches=3)
    """

    def __init__(self, program: Program) -> None:
        self.graph, self._program = program.graph, program
        self.nodes = node_costs(self.graph)
        self.kernels = _steps(program.plan, {each.name: each for each in node_costs(program.final)})
        self.eager_peak = eager_peak(self.graph)
        self.memory = _memory(program.plan, self.kernels)

    @cached_property
    def eager(self) -> Count:
        """The cost of the traced graph node by node."""
        return sum([node.eager for node in self.nodes], Count())

    @cached_property
    def after_passes(self) -> Count:
        """The cost of the graph node by node after all passes."""
        return sum([node.eager for node in node_costs(self._program.optimised)], Count())

    @cached_property
    def program(self) -> Count:
        """The cost of the program."""
        return sum([kernel.program for kernel in self.kernels], Count())

    # as a table -----------------------------------------------------------------------------------------------------

    def rows(self) -> list[tuple[str, ...]]:
        """The rows of the table, one for each step."""
        return [
            (kernel.name, kernel.rounds or _listed([node.name for node in kernel.nodes]), *_figures(kernel.program),
             bytes_text(kernel.eager.bytes))
            for kernel in self.kernels
        ]

    def sums(self) -> list[tuple[str, str, str, str, str, str]]:
        """The sums, node by node and fused: launches, bytes read and written, operations, and the peak of memory."""
        ways = [("node by node", self.eager, self.eager_peak), ("fused", self.program, self.memory.total)]
        return [(name, str(c.launches), *_figures(c)[:3], bytes_text(peak)) for name, c, peak in ways]

    def listing(self) -> str:
        """The steps as a table, and the sums."""
        steps = as_table(HEAD, self.rows(), left=2)
        sums = as_table(SUMS, self.sums(), left=1)
        return f"{steps}\n\n{sums}"

    __repr__ = Titled.__str__

    def _repr_html_(self) -> str:
        title = f"<p>{escape(self.title)}</p>" if self.title else ""
        steps = title + as_html(HEAD, self.rows())
        return steps + as_html(SUMS, self.sums()) + ("" if self.gradient is None else self.gradient._repr_html_())


# Node by node -------------------------------------------------------------------------------------------------------


def node_costs(graph: Graph) -> list[NodeCost]:
    """The cost of each node of a graph."""
    views, names = views_of(graph), graph.names()
    return [NodeCost(node, names[node], eager_count(node, views)) for node in graph.nodes]


def eager_peak(graph: Graph) -> int:
    """The most bytes that values take at the same time, if each is freed after its last use; in loops, too.

    >>> eager_peak(mg.trace(lambda x: mg.tanh(x * 2) + x, mg.ones(4)))
    32
    """
    changes = [0] * (len(graph.nodes) + 1)
    for node, (first, last) in eager_lives(graph).items():
        changes[first] += node.nbytes
        changes[last + 1] -= node.nbytes
    for at, node in enumerate(graph.nodes):
        inner = max([eager_peak(each.graph) for each in functions_of(node.attrs) if each.tally.last != 0], default=0)
        changes[at] += inner
        changes[at + 1] -= inner
    return max(accumulate(changes))


def eager_lives(graph: Graph) -> dict[Node, tuple[int, int]]:
    """The first and the last node after which each value is in use, if it is freed after its last use.

    Inputs do not count.  A value is freed after the last use of its views, or of the results it is one of.
    """
    views = views_of(graph)
    home = {node: node for node in graph.inputs}  # the node whose memory holds a node's value
    for node in graph.nodes:
        into = node.inputs[0] if node.op in (P.project, P.put) else views[node].base
        home[node] = node if into is node else home[into]
    made = {node: at for at, node in enumerate(graph.nodes) if home[node] is node and node.op is not None}
    last = {home[i]: at for at, node in enumerate(graph.nodes) for i in node.inputs if isinstance(i, Node)}
    last |= {home[node]: len(graph.nodes) - 1 for node in graph.outputs}
    return {node: (at, last.get(node, len(graph.nodes) - 1)) for node, at in made.items()}


# The program --------------------------------------------------------------------------------------------------------


def _steps(plan: Plan, costs: Mapping[str, NodeCost]) -> list[KernelCost]:
    steps = []
    for step, count in zip(plan.steps, counts_of(plan)):
        if isinstance(step, (Launch, Blocked)):
            scratch = _scratch(step) if isinstance(step, Launch) else scratch_bytes(step)
            steps.append(KernelCost(step.name, "kernel", [costs[name] for name in step.computes], count, scratch))
        elif isinstance(step, Call):
            inner = functions_of(step.attrs)
            scratch = sum([Cost(each.program).memory.total for each in inner if each.tally.last != 0])
            rounds = rounds_text(step.attrs) if inner else ""
            steps.append(KernelCost(step.name, "library", [costs[step.name]], count, scratch, rounds))
    copies = copies_of(plan)
    if copies.launches:
        steps.append(KernelCost(COPIES, "copies", [], copies))
    return steps


def _scratch(launch: Launch) -> int:
    """The bytes of a kernel's scratch memory: one row of each kind for every piece that threads may run."""
    sizes = [p.size * p.dtype.itemsize + ALIGNMENT for p in launch.kernel.parameters if p.role == "scratch"]
    return sum(sizes) * len(pieces_of(launch)) if sizes else 0


def _memory(plan: Plan, kernels: Sequence[KernelCost]) -> Memory:
    arena = sum([size + ALIGNMENT for size in plan.slots])
    results = sum([buffer.nbytes for buffer in plan.buffers if buffer.kind == RESULT])
    results += sum([kernel.program.bytes_written for kernel in kernels if kernel.kind == "copies"])
    made = [plan.buffers[step.out] for step in plan.steps if isinstance(step, Call) and step.count.launches]
    libraries = sum([buffer.nbytes for buffer in made if buffer.kind == LIBRARY])
    return Memory(arena, sum([kernel.scratch for kernel in kernels]), results, libraries)


# Words --------------------------------------------------------------------------------------------------------------


def _figures(count: Count) -> tuple[str, str, str, str]:
    return bytes_text(count.bytes_read), bytes_text(count.bytes_written), f"{count.flops:,}", f"{count.intensity:.2f}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + f" and {len(names) - 6} more" * (len(names) > 6)


def cost(graph: Graph) -> Cost:
    """The cost of a graph node by node, and of its program.

    >>> mg.trace(lambda x: x * 2 + 1, mg.ones(100)).cost().program.bytes
    800
    """
    return Cost(Program(graph))

