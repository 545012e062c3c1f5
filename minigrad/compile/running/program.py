"""A program: a graph after all passes, as kernels and library calls, with memory planned, ready to run."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ...core.errors import CompileError, DeviceError
from ...core.forking import new_lock
from ...core.mode import current_mode
from ...core.node import Node
from ...core.source import show
from ...core.table import bytes_text
from ..fusion.fuse import fuse
from ..fusion.group import Group, Partition
from ..lowering.lower import Lowered, lower
from ..nodes.graph import Graph
from ..nodes.interpret import Starts, hunted, run_nodes
from ..nodes.titled import Titled
from ..rewriting.log import Log
from ..rewriting.passes import optimise
from .backends import BackendWarning
from .executors import turns
from .frame import Frame, Layout
from .listing import listing
from .order import Schedule
from .targets import HOST, Target, target_of


class Program(Titled):
    """What a graph becomes.

    `graph` as it was traced, `optimised` by the passes (`log` says how), the `partition` into kernels and library
    calls, the kernels `lowered` to loops, the `schedule`, and the `layout` of memory.  `donate` names outputs, by
    number, that may be stored where an input is: for these a call returns None.
    """

    def __init__(
        self, graph: Graph, donate: Mapping[int, int] | None = None, without: Iterable[str] = (),
        backend: str | None = None, executor: str | None = None, target: Target = HOST,
    ) -> None:  # fmt: skip
        self.target = target
        self.constants: list[Any] = [node for node in graph.nodes if node.op is None]
        self.graph = Graph((*graph.inputs, *self.constants), graph.outputs, graph.effects)
        self.optimised, self.log = optimise(self.graph, without)
        self.partition = fuse(self.optimised, target.chunking)
        self.stored_in: dict[int, int] = {}  # the outputs that are stored in inputs
        self._donate(donate or {})
        self._finish({group: lower(self.partition, group) for group in self.partition.kernels}, backend, executor)

    def _finish(self, lowered: dict[Group, Lowered], backend: str | None, executor: str | None) -> None:
        """What is left to do when the kernels are known."""
        self.lowered = lowered
        self.functions = self.target.compiled(self.lowered, backend)
        self.executor = executor or os.environ.get("MINIGRAD_EXECUTOR") or "serial"
        self.layout = Layout(self.partition, self.lowered, self._turns())
        self._idle: list[Frame] = []
        self._lock = new_lock()

    @cached_property
    def schedule(self) -> Schedule:
        """What waits for what, and what could run at the same time."""
        return Schedule(self.partition, self.lowered)

    def __repr__(self) -> str:
        arena = bytes_text(self.layout.plan.bytes)
        return f"<Program of {len(self.partition.groups)} steps, {len(self.lowered)} of them kernels, arena {arena}>"

    def listing(self) -> str:
        """The steps, and where each value lies."""
        return listing(self)

    def _turns(self) -> list[list[Group]]:
        """The groups in the order in which they run, in lists of those that run at the same time."""
        groups = self.partition.groups
        if self.executor == "serial" or not self.target.threads:
            return [[group] for group in groups]
        return [[groups[step.number] for step in turn] for turn in turns(self.schedule, self.executor)]

    @classmethod
    def restored(
        cls, partition: Partition, lowered: dict[Group, Lowered], constants: list[Any], target: Target = HOST
    ) -> Program:
        """A program whose graph has been through all passes, fusion and lowering before: it was saved."""
        program = cls.__new__(cls)
        program.constants, program.partition, program.stored_in, program.target = constants, partition, {}, target
        program.graph = program.optimised = partition.graph
        program.log = Log(partition.graph)
        program._finish(lowered, None, None)
        return program

    def _donate(self, donate: Mapping[int, int]) -> None:
        inputs, outputs = set(self.optimised.inputs), self.partition.outputs
        returned = Counter(view.base for view in outputs)
        for output, source in donate.items():
            node, wanted = self.optimised.inputs[source], outputs[output]
            whole = wanted.in_order and wanted.base not in inputs
            alone = returned[wanted.base] == 1 and not returned[node]
            if whole and alone and not self.partition.donate(wanted.base, node):
                self.stored_in[output] = source

    def __call__(self, arrays: Sequence[Any], starts: Starts | None = None) -> list[Any]:
        """The outputs for these inputs, None for those that are stored in one of them.

        `starts` says where each generator of random numbers begins in this run.
        """
        try:
            given = [*arrays, *[node.array() for node in self.constants]]
            hunter = current_mode().interpreter
            if hunter is not None and hunter.runs_programs:
                return hunted(self.graph, given, starts or {}, hunter, lambda: self(arrays, starts))
            for source in self.stored_in.values():
                if not given[source].flags.c_contiguous:
                    return self._run_on_copy(source, given, starts)
            return self._run(given, starts or {})
        except MemoryError as error:
            raise self._without_memory(error) from None

    def _without_memory(self, error: MemoryError) -> Exception:
        """The error of a run for which there is not enough memory: what it takes, and what takes most of that."""
        kept = [node for node in self.layout.plan.place if isinstance(node, Node)]
        made = [node for node, _, _, _ in self.layout.results]
        largest = max((*kept, *made, *self.constants), key=lambda node: node.nbytes, default=None)
        fault = None if largest is None else largest.device.fault(error)
        if largest is None or fault is None:
            return error
        where = f", made at {show(largest.where)}" if largest.where else ""
        results = bytes_text(sum(node.nbytes for node in made))
        return DeviceError(
            f"{fault[0]} of a program: {error}",
            actual=f"an arena of {bytes_text(self.layout.plan.bytes)} and results of {results}; "
            f"the largest value is {largest.name} {largest.shape} of {largest.dtype}{where}",
            hint=fault[1],
        )

    def _run_on_copy(self, source: int, given: list[Any], starts: Starts | None) -> list[Any]:
        """A run that stores a result where an input is, whose elements do not lie in order."""
        array, device = given[source], self.graph.inputs[source].device
        given[source] = device.contiguous(array)
        results = self(given[: len(given) - len(self.constants)], starts)
        device.kernels["put"](array, given[source], chain=(), out=array)
        return results

    def _run(self, given: list[Any], starts: Starts) -> list[Any]:
        try:
            frame = self._idle.pop()  # as many as there are runs at a time
        except IndexError:
            with self._lock:
                frame = self.target.frame(self.layout, self.functions)
        try:
            return frame.run(given, starts)
        finally:
            self._idle.append(frame)


class PlainProgram(Titled):
    """The same, node by node, each by its device's kernel: where there are no kernels of ours, and to compare with."""

    stored_in: Mapping[int, int] = {}

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def listing(self) -> str:
        """The nodes: each is a step."""
        return str(self.graph)

    def __call__(self, arrays: Sequence[Any], starts: Starts | None = None) -> list[Any]:
        """The outputs for these inputs."""
        hunter = current_mode().interpreter
        if hunter is not None and hunter.runs_programs:
            return hunted(self.graph, arrays, starts or {}, hunter, lambda: self(arrays, starts))
        values = dict(zip(self.graph.inputs, arrays))
        run_nodes(self.graph.nodes, values, starts or {}, {*self.graph.inputs, *self.graph.outputs})
        seen = {id(a) for a in arrays}
        return [self._owned(node, values[node], seen) for node in self.graph.outputs]

    def _owned(self, node: Node, array: Any, seen: set[int]) -> Any:
        """A result that shares no memory with anything that somebody else holds."""
        shared = node.op is None or node.op.kind == "view" or id(array) in seen
        seen.add(id(array))
        return array.copy() if shared else array


def program_for(graph: Graph, donate: Mapping[int, int] | None = None, **options: Any) -> Program | PlainProgram:
    """A program for where the graph's values are; node by node where they are in several places, or compiling fails."""
    target = target_of((*graph.inputs, *graph.nodes))
    if target is HOST:
        return Program(graph, donate, **options)
    if target is not None:
        try:
            return Program(graph, donate, **options, target=target)
        except CompileError as error:
            warnings.warn(f"the graph runs node by node, which takes longer: {error}", BackendWarning, stacklevel=2)
    return PlainProgram(graph)
