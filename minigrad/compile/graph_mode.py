"""Graph mode: operations are only recorded, and reading a value computes it.

    with mg.graph() as g:
        y = model(x)          # nothing is computed
        print(y.sum().item()) # now all tensors in use are computed, in one program

At the end of the block, tensors in use are computed and writes reach the tensors outside.  From then on the tensors
are like any others, with their histories.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from ..core.clock import mark_written, written_since
from ..core.emit import Results
from ..core.mode import CURRENT, Mode, current_mode, switch
from ..core.node import Node, topological_order
from ..core.primitive import Attrs, Primitive
from ..core.programs import Closed
from ..core.state import State
from ..core.tensor import Tensor, wrap
from ..ops.write import adopt
from ..support.errors import IndexingError, MinigradError, TraceError
from ..support.interrupts import all_or_none
from ..support.source import caller
from .functions.latest import KEPT
from .functions.recording import Recording
from .functions.structure import PROGRAMS, Structure, copied, environment
from .functions.trace import found_at
from .nodes.graph import Graph
from .nodes.interpret import eager_index_error
from .running.plain import PlainProgram
from .running.program import Program
from .tracing.tracer import Pending, Tracer

new_node = Node.__new__
SHOWN = 1000  # nodes: how far back the recipes of computed values are kept


def alive(references: Iterable[weakref.ref[Any]]) -> list[Any]:
    """Those of these objects that still exist."""
    return [each for reference in references if (each := reference()) is not None]


def in_use(tensors: list[Tensor]) -> list[Tensor]:
    """Tensors, and all that share memory with them."""
    found = dict(zip(map(id, tensors), tensors))
    for tensor in tensors:
        alias = tensor.alias
        if alias is not None and (alias.views or alias.base is not None):
            found |= {id(t): t for t in (*alive(alias.views), alias.base) if t is not None}
    return list(found.values())


class GraphMode(Tracer):
    """Records operations.  A read computes the value, together with all other values that are not computed yet.

    A recorded value keeps its operands until it is computed, and its array from then on.  The recipes of the last
    operations are kept, without values, to be shown.
    """

    node_of = None  # type: ignore[assignment]  # composed functions leave no marks: no kept program would have them
    closes_calls = True  # a large call of a composed function is one node

    def __init__(self) -> None:
        super().__init__()
        self.sources: Any = deque(maxlen=0)  # a read finds them
        self.ends: Any = weakref.WeakKeyDictionary()  # at the end: the node of a history -> the node of its value
        self.made: list[weakref.ref[Tensor]] = []  # the tensors that get their arrays at the end
        self.most = 64  # of these references: beyond that, dead ones are removed
        self.due: list[Pending] = []  # the results of effects that have not happened yet
        self.programs: deque[Program | PlainProgram] = deque(maxlen=KEPT)  # that have run
        self.recipes: deque[tuple[int, list[weakref.ref[Node]]]] = deque()  # of each program: its size and outputs
        self.shown = 0  # the nodes of these programs
        self.environment = environment()
        self._begin(Structure())
        self.around = Mode()  # the mode in which programs run

    def _begin(self, structure: Structure) -> None:
        """Record what follows in this structure."""
        self.structure, self.began = structure, structure.began
        self.place_of, self.foreseen = structure.place_of, structure.known  # type: ignore[method-assign, assignment]
        self.appended = structure.follow  # type: ignore[method-assign, assignment]

    def recorded(self, op: Primitive, values: list[Any], attrs: Attrs, device: Any) -> Any:
        structure = self.structure
        made, nodes = structure.next(op, values, attrs)
        node = self.noted(op, nodes, attrs, device, made.result)
        out = self.pending(node, values)
        parts = out if out.__class__ is tuple else ()
        whole = Pending(self, node) if parts else out
        structure.add(made, whole, values)
        for part in parts:
            part.waits_for, part.place = (whole,), structure.count
            structure.count += 1
        if node in self.effects[-1:]:
            self.due.append(whole)
        return out

    def holds(self, tensor: Tensor) -> None:
        self.structure.waiting.append(weakref.ref(tensor))

    def closed(self, op: Primitive, values: Sequence[Any], device: Any) -> list[Tensor]:
        """The results of an operation that stands for others, on values of tensors."""
        given = [v if v.__class__ is Pending and v.trace is self else self.lift(wrap(v, device))._data for v in values]
        data = self.recorded(op, given, {}, device)
        out = [wrap(each, device) for each in (data if data.__class__ is tuple else (data,))]
        self.structure.waiting += map(weakref.ref, out)
        return out

    def run_closed(self, recording: Recording, arguments: list[Tensor]) -> None:
        """Record a run as one operation, of a function that does nothing but write to its arguments."""
        given = [tensor._data for tensor in found_at(recording.others, arguments)]
        results, where = self.closed(recording.traced.closed, given, arguments[0].device), caller()
        written = found_at([place for place, _ in recording.writes], arguments)
        for tensor, (_, number) in zip(written, recording.writes):
            self.before_write(tensor)
            adopt(tensor, results[number], where)

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int, attrs: Attrs, device: Any
    ) -> Any:
        out = super().manifest_values(op, inputs, values, mask, attrs, device)
        self.structure.waiting += map(weakref.ref, out if out.__class__ is tuple else (out,))
        return out

    def _mode(self) -> Mode:
        mode = current_mode()
        if mode.origin is not None:
            return super()._mode()
        self.seen = self.last_mode = mode  # its nodes live no longer than those of the histories, which keep it too
        return mode

    def before_write(self, tensor: Tensor) -> None:
        base = tensor if tensor.alias is None or tensor.alias.base is None else tensor.alias.base
        self.structure.waiting.append(weakref.ref(base))  # the base and its views will have other values

    def history_of(self, tensor: Tensor, stand_in: Tensor) -> Node:
        return tensor.node  # the history continues

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        constant = super().admitted(tensor, None)
        constant._data.value = tensor._data
        self.made.append(weakref.ref(constant))
        return constant

    take_blocks, seeded = State.take_blocks, State.seeded  # drawn now, because a node is computed once
    seals_generators = False

    @contextmanager
    def hunting(self, hunter: Any) -> Iterator[None]:
        before, self.around = self.around, self.around.but(interpreter=hunter)
        try:
            yield
            self.evaluate([])
        finally:
            self.around = before

    # computing ------------------------------------------------------------------------------------------------------

    def evaluated(self, pending: Pending) -> Any:
        if pending.value is None and not self.ended:
            self.evaluate([pending])
        return pending if pending.value is None else pending.value

    def evaluate(self, asked: list[Pending]) -> None:
        """Compute the values `asked`, and all values in use, in one program."""
        waiting = alive(self.structure.waiting)
        self.made += map(weakref.ref, waiting)
        if len(self.made) > self.most:
            self.made = [each for each in self.made if each() is not None]
            self.most = 2 * len(self.made) + 64
        wanted = {}
        for each in (*asked, *[tensor._data for tensor in in_use(waiting)]):
            if each.__class__ is Pending and each.trace is self and each.value is None:
                node: Any = each.node
                if node.op is None:  # the tensor outside is written at the end
                    each.value = node.held._data.copy()
                else:
                    wanted[id(each)] = each
        self._run([*wanted.values()])

    def _run(self, wanted: list[Pending]) -> None:
        """Compute values.  Effects that are due happen too."""
        effects, due, expected = self.effects, self.due, self.expected
        self.effects, self.due, self.expected = [], [], []
        if not wanted and not effects:
            return
        structure = self.structure
        places = len(wanted), *[structure.place_of(each) for each in (*wanted, *due)]
        self._begin(Structure(structure.count))
        sources = structure.given

        def graph() -> Graph:
            return Graph([s.node for s in sources], [p.node for p in wanted], effects)

        if self.around.interpreter is not None:
            structure.is_shared = False  # a search for nans names the lines of this round
        kept = PROGRAMS.of(structure, places, graph, self.environment)
        program, numbers, starts = kept
        pairs: Any = [(source.node, source.value) for source in sources]
        given = [node.held._data if value is None else value for node, value in pairs]
        before = CURRENT.set(self.around)
        try:
            arrays = program([*given, *numbers], starts)
        except IndexingError as error:
            opened = copied(graph(), expected=expected)
            raise eager_index_error(error, expected, opened, given, {}) from None
        finally:
            CURRENT.reset(before)
        for pending, array in zip(wanted, arrays):
            pending.value, pending.waits_for = array, ()
        if program not in self.programs:
            self.programs.append(program)
        self._keep_recipes(len(program.graph), wanted)

    def _keep_recipes(self, count: int, computed: Sequence[Pending]) -> None:
        """Keep the recipes of the last operations only, so that memory does not grow in a loop."""
        self.recipes.append((count, [weakref.ref(pending.node) for pending in computed]))
        self.shown += count
        while self.shown > SHOWN and len(self.recipes) > 1:
            count, nodes = self.recipes.popleft()
            self.shown -= count
            for node in alive(nodes):
                node.inputs = ()

    def have_effects(self) -> None:
        """Run the effects that came before an error: what they print may explain it."""
        with suppress(MinigradError):
            self._run([])

    # the end --------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Compute the values in use, give tensors their arrays, and write to the tensors outside."""
        made = alive([*self.made, *self.structure.waiting])
        inside = [t for t in in_use(made) if id(t) not in self.standing]
        pairs = [(t.node, t._data.node) for t in inside if t.node is not None and t._data.__class__ is Pending]
        self.ends.update(pairs)
        kept = [*inside, *[entry.stand_in for entry in self.captured.values() if entry.written]]
        nodes = [n for n in topological_order([t.node for t in kept if t.tracked]) if n.saved.__class__ is tuple]
        saved = {v: node for node in nodes for v in _each(node.saved) if v.__class__ is Pending and v.trace is self}
        # Overwritten values stay pending: a gradient that reads them is an error, as in eager mode.
        unchanged = [v for v, node in saved.items() if written_since(v, node.serial) is None]
        self.evaluate([*[t._data for t in kept], *unchanged])
        for node in nodes:
            node.saved = tuple([_computed(v) for v in node.saved])
        all_or_none(partial(self._hand_over, sorted(inside, key=_chain_length)))

    def _hand_over(self, inside: list[Tensor]) -> None:
        """Write to the tensors outside, and give tensors their arrays, bases before their views."""
        self._write_back()
        for tensor in inside:
            self._settle(tensor)
        for entry in self.captured.values():
            if entry.gradient_known:
                gradient = entry.stand_in._grad
                standing = self.standing.get(id(gradient))
                entry.tensor._grad = gradient if standing is None else standing.tensor
        self.ended = True

    def _write_back(self) -> None:
        for entry in self.captured.values():
            if not entry.written:
                continue
            tensor, stand_in = entry.tensor, entry.stand_in
            array = stand_in._data.value
            if stand_in.tracked and stand_in.node.op is not None and stand_in.node is not tensor.node:
                new = wrap(array, tensor.device)
                new.node, new.tracked = stand_in.node, stand_in.tracked
                with switch(interpreter=None, grad=True):  # the views of the tensor are not recorded
                    adopt(tensor, new)
            else:
                tensor.device.kernels["put"](tensor._data, array, chain=(), out=tensor._data)
                mark_written(tensor._data)

    def _settle(self, tensor: Tensor) -> None:
        """Give a tensor its array; a view, its part of the array of the base."""
        alias = tensor.alias
        if tensor._data.__class__ is not Pending:
            return
        if alias is None or alias.base is None:
            tensor._data = tensor._data.value
            return
        standing = self.standing.get(id(alias.base))
        if standing is not None:
            outside = standing.tensor
            alias.base = outside
            if outside.alias is not None:
                alias.views = outside.alias.views
                alias.views.append(weakref.ref(tensor))
        array = alias.base._data
        for op, attrs in alias.chain:
            array = tensor.device.kernels[op.name](array, **attrs)
        tensor._data = array


def _each(saved: tuple[Any, ...]) -> list[Any]:
    """The saved values one by one, several results taken apart."""
    return [part for v in saved for part in (v if isinstance(v, tuple) else (v,))]


def _computed(saved: Any) -> Any:
    if isinstance(saved, tuple):
        return Results([_computed(v) for v in saved])
    return saved if getattr(saved, "value", None) is None else saved.value


def _chain_length(tensor: Tensor) -> int:
    """The number of steps from its base to a view; -1 for a base."""
    return -1 if tensor.alias is None or tensor.alias.base is None else len(tensor.alias.chain)


class graph:
    """Graph mode for a block: operations are recorded, and run when a value is read, or at the end.

    Inside a trace, another graph, `vmap`, `jvp`, `offload` and `autocast` the block changes nothing.

    >>> x = mg.ones(3, requires_grad=True)
    >>> with mg.graph() as g:
    ...     y = (x * 2).sum()
    ...     y
    Tensor(<that is not computed yet>, shape=(), dtype=float32, device=cpu, made_by=sum)
    >>> y.item()
    6.0
    >>> print(g.recorded(y))
    tensor_1: float32 (3,)
    multiply_1: float32 (3,) = multiply(tensor_1, 2)
    sum_1: float32 () = sum(multiply_1, axis=(0,), keepdims=False, dtype=None)
    return sum_1
    """

    def __init__(self) -> None:
        self._recorder = GraphMode()

    def __enter__(self) -> graph:
        mode = self._recorder.around = current_mode()
        self._records = mode.interpreter is None or mode.interpreter.runs_programs
        self._switch = switch(interpreter=self._recorder) if self._records else switch()
        self._switch.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            if kind is None and self._records:
                self._recorder.finish()
            elif kind is not None:
                self._recorder.have_effects()
        finally:
            self._recorder.ended = True
            self._switch.__exit__(kind, error, traceback)

    @property
    def programs(self) -> list[Program | PlainProgram]:
        """The programs that have run."""
        return list(self._recorder.programs)

    def recorded(self, *outputs: Tensor) -> Graph:
        """The graph from the tensors that came in to these results.

        A value that was computed more than 1,000 operations ago is an input here.
        """
        recorder = self._recorder
        for output in outputs:
            if output.node not in recorder.ends and output._data.__class__ is not Pending:
                raise TraceError(
                    f"recorded: the operations of a value of shape {output.shape} are not kept any more",
                    expect="a value that is not computed yet, or that has a gradient",
                    hint="call it inside the block, before the value is read; or give an input requires_grad=True",
                )
        nodes = [recorder.ends[o.node] if o.node in recorder.ends else o._data.node for o in outputs]
        # Without inputs are the values from outside, and those computed so long ago that their recipes are dropped.
        found = Graph([n for n in topological_order(nodes) if not n.inputs and (n.op is None or n.op.inputs)], nodes)
        return copied(found) if any(node.op.__class__ is Closed for node in found.nodes) else found
