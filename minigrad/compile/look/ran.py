"""What ran: the program of a call and the programs of its gradients, with all stages of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...core.node import Node
from ...core.tensor import Tensor
from ...support.errors import CompileError
from ..functions.function import TracedFunction
from ..functions.recording import Recording
from ..fusion.group import Partition
from ..nodes.graph import Graph
from ..rewriting.passes import Log
from ..running.plain import PlainProgram
from ..running.program import Program
from .code import Code
from .cost import Cost
from .record import Making, Record, record_of_call, record_of_program
from .values import Values, starts_of

FORWARD = "forward pass, keeps values for the gradient"
# As if the user's code made the call: a node searches for the user's line, and each frame of the library takes time.
CALLED = eval("lambda function, args, kwargs: lambda: function(*args, **kwargs)")


class RanProgram(NamedTuple):
    """One of the programs that ran: its title, and the traced function that it computes."""

    title: str
    function: TracedFunction
    keeps: bool  # whether it keeps the values that its gradient reads

    @property
    def runs(self) -> TracedFunction:
        """The function with all results of the program."""
        return self.function.keeping if self.keeps else self.function

    @property
    def graph(self) -> Graph:
        """The graph that the program computes."""
        return self.runs.graph

    @property
    def program(self) -> Program | PlainProgram:
        """The program that ran last, or that would run."""
        return self.function.ran or self.runs.program


class Ran:
    """The programs of a call with these arguments: of the function, and of its gradients that were computed.

    `again` says whether a call with these arguments runs the same programs; one whose arguments require other gradients
    does not.
    """

    def __init__(self, recording: Recording, tensors: list[Tensor], again: bool = True) -> None:
        self.recording, self.tensors, self.again = recording, tensors, again

    @cached_property
    def parts(self) -> list[RanProgram]:
        """The programs in the order in which they ran."""
        function, kept = self.recording.traced, self.recording.differentiable
        found = [RanProgram(", ".join(filter(None, (FORWARD * kept, self.outdated))), function, kept)]
        title = "gradient"
        while kept and (ran := function.gradient_that_ran) is not None:
            found.append(RanProgram(title, ran, False))
            function, title = ran, f"gradient of the {title}"
        return found

    def with_gradient(self) -> Ran:
        """These programs; and if the first one keeps values, that of the gradient of all inputs, even if none ran."""
        first, *later = self.parts
        if first.keeps:
            self.parts = [first, *later] if later else [first, RanProgram("gradient", first.function.gradient, False)]
        return self

    @cached_property
    def outdated(self) -> str:
        """Why the next call would be traced again; empty if it would not."""
        reason = self.recording.mismatch(self.tensors)
        return f"as of the last call; the next one is traced again: {reason}" if reason else ""

    @property
    def graph(self) -> Graph:
        """Everything that was computed, as one graph, with the nodes of the gradient last."""
        functions = [part.function for part in self.parts]
        if len(functions) == 1:
            return functions[0].graph.titled(self.outdated) if self.outdated else functions[0].graph
        inputs = (*functions[-1].own, *functions[-1].others)
        outputs = [output._data.node for function in functions for output in function.outputs]
        effects = [effect for function in functions for effect in function.effects]
        titles = ["forward pass", *[part.title for part in self.parts[1:]]]
        return Graph(inputs, outputs, effects).titled(", then ".join(titles))

    @property
    def program(self) -> Program | PlainProgram:
        """The program, with the program of its gradient."""
        return self._stage(lambda program: program, [part.program for part in self.parts])

    @property
    def passes(self) -> Log:
        """The log, with the log of its gradient."""
        return self._stage(attrgetter("log"), self.programs)

    @property
    def kernels(self) -> Partition:
        """The partition, with the partition of its gradient."""
        return self._stage(attrgetter("partition"), self.programs)

    @property
    def code(self) -> Code:
        """The text of the kernels, with that of the gradient's."""
        return self._stage(Code, self.programs)

    @property
    def cost(self) -> Cost:
        """The cost, with the cost of its gradient."""
        return self._stage(Cost, self.programs)

    def record(self, runs: int, first: Record | None = None) -> Making:
        """The record of each program, run alone; `first` is that of the call, if it was called."""
        records = [first] * (first is not None)
        for each in self.parts[len(records) :]:
            records.append((yield from record_of_program(each.program, self.arrays(each), runs)))
        return self._stage(lambda record: record, records)  # type: ignore[no-any-return]

    @property
    def programs(self) -> list[Program]:
        """The programs; an error if they have no kernels."""
        programs = [part.program for part in self.parts if isinstance(part.program, Program)]
        if len(programs) < len(self.parts):
            raise CompileError("this runs on a device without kernels", hint="f.graph(...) shows the traced graph")
        return programs

    @property
    def values(self) -> Values:
        """The values of all nodes of the graph."""
        graph = self.graph
        return Values(graph, [self.inputs[node] for node in graph.inputs], starts_of(graph))

    @property
    def tensors_of_inputs(self) -> dict[Node, Tensor]:
        """The tensors whose values are the inputs of the graph."""
        places = (*self.recording.inputs, *self.recording.others)
        found = zip(self.recording.traced.sources, [place.find(self.tensors) for place in places])
        return {node: tensor for node, tensor in found if tensor is not None}

    @cached_property
    def inputs(self) -> dict[Node, Any]:
        """The array of each input now; the gradients of results are ones."""
        found = dict(zip(self.recording.traced.sources, self.recording.arrays(self.tensors)))
        for node in (node for part in self.parts[1:] for node in part.function.own if node not in found):
            found[node] = node.device.from_numpy(np.ones(node.shape, node.dtype))
        return found

    def arrays(self, part: RanProgram) -> list[Any]:
        """The inputs of a program; for a gradient, with the values that the programs before it kept."""
        values = self.values
        return [values.array(node) for node in part.function.sources]

    def _stage(self, of: Callable[[Any], Any], programs: list[Any]) -> Any:
        found = None
        for (title, _, _), program in reversed([*zip(self.parts, programs)]):
            stage = of(program)
            found = stage.titled(title, found) if title else stage
        return found


def recorded(function: Any, args: Any, kwargs: Any, runs: int) -> Making:
    """The record of a call of a function with stages, for `in_turns`."""
    def ran() -> Ran:
        return function.ran(*args, **kwargs)  # type: ignore[no-any-return]

    if not ran().again:
        return (yield from ran().record(runs))
    call = CALLED(function, args, kwargs)
    first = yield from record_of_call(call, lambda: ran().parts[0].program, runs)
    return (yield from ran().record(runs, first))
