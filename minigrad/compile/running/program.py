"""Programs: compile a graph to a plan, and run the plan with compiled kernels and memory that is used again."""

from __future__ import annotations

import warnings
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...core.mode import current_mode
from ...core.node import Node
from ...devices.registry import CHANGES, REGISTRATIONS, Registration
from ...support.errors import CompileError, DeviceError
from ...support.forking import new_lock
from ...support.source import show
from ...support.table import bytes_text
from ..fusion.fuse import fuse
from ..fusion.group import Group, Partition
from ..lowering.lower import Lowered, lower
from ..nodes.graph import Graph, Starts, Titled
from ..rewriting.passes import Log, optimise
from .frame import Frame, Layout
from .plan import IN_PLACE, RESULT, SLOT, Blocked, Launch, Plan
from .planning import planned
from .steps import RUNNING, is_profiled
from .targets import HOST, USUAL, BackendWarning, Settings, target_of

if TYPE_CHECKING:
    from .plain import PlainProgram
    from .schedule import Schedule

# The attributes that hold what the compiler made of a graph; see `Program.forget`.
MADE = frozenset("optimised log partition lowered final plan layout products functions stored_in _idle".split())
PROGRAMS: weakref.WeakSet[Program] = weakref.WeakSet()  # all programs
PROGRAMS_LOCK = new_lock()


@dataclass(frozen=True, eq=False)
class Compiled:
    """The result of each stage for one graph.  A run needs only the plan; the others are for views."""

    graph: Graph
    log: Log
    partition: Partition
    lowered: Mapping[Group, Lowered]
    plan: Plan


def compile(graph: Graph, settings: Settings = USUAL) -> Compiled:
    """Simplify a graph, divide it among kernels and library calls, lower the kernels to
    loops, and plan the run.

    >>> compile(mg.trace(lambda x: mg.tanh(x * 1) + 2, mg.ones(4))).plan
    <Plan of 1 steps, 1 of them kernels, arena 0 B>
    """
    target = settings.target
    optimised, log = optimise(with_registered(graph), settings.left_out)
    partition = fuse(optimised, target.chunking)
    partition = partition.donated(in_place(settings.donate, partition))
    if partition.may_have_blocks and settings.in_blocks:
        partition = partition.with_blocks()
    lowered = {group: lower(partition, group) for group in partition.kernels}
    plan = planned(partition, lowered, settings.turns, settings.any_layout)
    return Compiled(optimised, log, partition, lowered, plan)


def with_registered(graph: Graph) -> Graph:
    """The graph with library calls in place of the operations whose kernels users have registered."""
    if not REGISTRATIONS:
        return graph
    from ..nodes import registered

    return registered.with_registered(graph)


def in_place(donate: Mapping[int, int], partition: Partition) -> dict[Node, Node]:
    """The values that may be stored in place of an input: each is exactly one result,
    and the input is not a result.
    """
    inputs, outputs = partition.graph.inputs, partition.outputs
    returned, given = Counter(view.base for view in outputs), set(inputs)
    wanted = [(outputs[i], inputs[source]) for i, source in donate.items()]
    return {
        view.base: node
        for view, node in wanted
        if view.in_order and view.base not in given
        if returned[view.base] == 1 and not returned[node]
    }


class Program(Titled):
    """A compiled graph: the plan, which runs as the settings say, and the results of the stages before it.

    `graph` is the graph before all passes, for runs node by node that search for a fault; its last inputs are the
    `constants`.  The stages are the `optimised` graph with its `log`, the `partition` into kernels and library calls,
    the kernels `lowered` to loops, and the `final` graph, whose values the plan names.

    For outputs that are stored in place of an input, a call returns None: see `Settings.donate`.

    >>> Program(mg.trace(lambda x: mg.tanh(x) + 2, mg.ones(4)), backend="numpy")
    <Program of 1 steps, 1 of them kernels, arena 0 B>
    """

    keeps_frames = True  # for later runs; else each run makes a frame, and its memory is free between runs

    def __init__(self, graph: Graph, **settings: Any) -> None:
        constants = [node for node in graph.nodes if node.op is None]
        whole = Graph((*graph.inputs, *constants), graph.outputs, graph.effects)
        self._begin(whole, constants, Settings(**settings).resolved())
        self._compile()
        with PROGRAMS_LOCK:
            PROGRAMS.add(self)

    def _compile(self) -> None:
        self._keep(compile(self.graph, self.settings))

    def forget(self) -> None:
        """Drop what the compiler made of the graph.  It is made again when it is next used."""
        with self._lock:
            for name in MADE:
                vars(self).pop(name, None)

    def __getattr__(self, name: str) -> Any:
        """What was dropped."""
        if name not in MADE:
            raise AttributeError(name)
        with self._lock:
            if name not in vars(self):
                self._compile()
            return getattr(self, name)

    def _begin(self, graph: Graph, constants: Sequence[Any], settings: Settings) -> None:
        self.graph, self.constants, self.settings, self.target = graph, constants, settings, settings.target
        self._lock = new_lock()

    def _keep(self, made: Compiled) -> None:
        self.optimised, self.log, self.partition, self.lowered = made.graph, made.log, made.partition, made.lowered
        self.final = made.partition.graph
        self._load(made.plan)

    def divided(self, partition: Partition) -> Program:
        """The same program with another partition of its graph."""
        other = Program.__new__(Program)
        other._begin(self.graph, self.constants, self.settings)
        lowered = {group: lower(partition, group) for group in partition.kernels}
        plan = planned(partition, lowered, other.settings.turns)
        other._keep(Compiled(self.optimised, self.log, partition, lowered, plan))
        return other

    def _load(self, plan: Plan) -> None:
        """Get ready to run a plan."""
        self.plan, self.products = plan, self.target.products(plan, self.settings.backend)
        self.layout = Layout(plan, self.products)
        outputs = [plan.buffers[read.buffer] for read in plan.outputs]
        self.stored_in = {i: buffer.number for i, buffer in enumerate(outputs) if buffer.kind == IN_PLACE}
        self._idle: list[Frame] = []

    @cached_property
    def functions(self) -> dict[int, Any]:
        """What runs the kernels and products, by the number of the step.  Kernels are compiled before the first run."""
        steps = [step.launch if isinstance(step, Blocked) else step for step in self.plan.steps]
        launches = {number: step for number, step in enumerate(steps) if isinstance(step, Launch)}
        return self.target.compiled(launches, self.settings.backend) | self.products

    def ready(self) -> Any:
        """The program, with its kernels compiled, which may fail."""
        vars(self)["functions"] = self.functions
        return self

    @property
    def schedule(self) -> Schedule:
        """The order of the steps: which wait for which, and which could run at the same time."""
        from .schedule import Schedule, counts_of

        return Schedule(self.plan, counts_of(self.plan))

    def __repr__(self) -> str:
        return f"<Program{repr(self.plan).removeprefix('<Plan')}"

    def listing(self) -> str:
        """The steps, and the place of each value in memory."""
        return str(self.plan)

    def __call__(self, arrays: Sequence[Any], starts: Starts | None = None) -> list[Any]:
        """The outputs for these inputs, None for outputs that are stored in an input.

        `starts` has the key and the first block of each generator of random numbers.
        """
        try:
            given = list(arrays)
            if self.constants:
                given += [node.array() for node in self.constants]
            hunter = current_mode().interpreter
            if hunter is not None and hunter.runs_programs:
                from ..nodes.interpret import hunted

                return hunted(self.graph, given, starts or {}, hunter, lambda: self(arrays, starts))
            for source in self.stored_in.values():
                if not given[source].flags.c_contiguous:
                    return self._run_on_copy(source, given, starts)
            return self._run(given, starts or {})
        except MemoryError as error:
            raise self._without_memory(error) from None

    def _without_memory(self, error: MemoryError) -> Exception:
        """The error of a run without enough memory: how much it needs, and its largest value."""
        plan = self.plan
        made = [buffer for buffer in plan.buffers if buffer.kind == RESULT]
        kept = [buffer for buffer in plan.buffers if buffer.kind == SLOT]
        constants = plan.inputs[len(plan.inputs) - len(self.constants) :]
        largest = max((*kept, *made, *constants), key=lambda buffer: buffer.nbytes, default=None)
        fault = None if largest is None else largest.device.fault(error)
        if largest is None or fault is None:
            return error
        where = f", made at {show(largest.where)}" if largest.where else ""
        results = bytes_text(sum(buffer.nbytes for buffer in made))
        return DeviceError(
            f"{fault[0]} of a program: {error}",
            actual=f"an arena of {bytes_text(sum(plan.slots))} and results of {results}; "
            f"the largest value is {largest.name} {largest.shape} of {largest.dtype}{where}",
            hint=fault[1],
        )

    def _run_on_copy(self, source: int, given: list[Any], starts: Starts | None) -> list[Any]:
        """Run on a contiguous copy of an input that a result overwrites, and write the copy back."""
        array, device = given[source], self.graph.inputs[source].device
        given[source] = device.contiguous(array)
        results = self(given[: len(given) - len(self.constants)], starts)
        device.kernels["put"](array, given[source], chain=(), out=array)
        return results

    def _run(self, given: list[Any], starts: Starts) -> list[Any]:
        idle = self._idle
        try:
            frame = idle.pop()  # there are as many frames as runs at the same time
        except IndexError:
            with self._lock:
                frame = self.target.frame(self.layout, self.functions)
        try:
            results = frame.run(given, starts)
            if is_profiled():
                RUNNING.get().ended(self, results)
            return results
        finally:
            if self.keeps_frames:
                idle.append(frame)
            else:
                vars(frame).clear()  # else its memory would wait for the collector: functions in it refer to it


def _forget_those(registration: Registration) -> None:
    """Compile the programs again that a user's kernel concerns, as soon as they are used."""
    from ..nodes.registered import has_registered

    with PROGRAMS_LOCK:
        programs = list(PROGRAMS)
    for program in programs:
        if has_registered(program.graph.nodes, [registration]):
            program.forget()


CHANGES.append(_forget_those)


def program_for(graph: Graph, donate: Mapping[int, int] | None = None, **settings: Any) -> Program | PlainProgram:
    """A program for the device of the graph; one that runs node by node if there are several, or compiling fails."""
    target, settings = target_of((*graph.inputs, *graph.nodes)), {**settings, "donate": donate or {}}
    if target is HOST:
        return Program(graph, **settings)
    if target is not None:
        try:
            return Program(graph, **settings, target=target).ready()
        except CompileError as error:
            warnings.warn(f"the graph runs node by node, which is slower: {error}", BackendWarning, stacklevel=2)
    from .plain import PlainProgram

    return PlainProgram(graph)
