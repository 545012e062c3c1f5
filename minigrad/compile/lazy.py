"""Graph mode: operations only note what is to be computed, and reading a value computes it.

    with mg.graph() as g:
        y = model(x)          # nothing has been computed
        print(y.sum().item()) # now it is: everything that somebody still holds, in one program

At the end of the block whatever is still wanted is computed, what was written is written back, and the tensors are
tensors like any other, with their histories.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from ..core.clock import mark_written, written_since
from ..core.emit import Results
from ..core.errors import IndexingError, MinigradError
from ..core.interrupts import all_or_none
from ..core.mode import current_mode, switch
from ..core.node import Node, topological_order
from ..core.primitive import Primitive
from ..core.tensor import Tensor, wrap
from ..core.write import adopt
from .graph import Graph
from .node_by_node import explained
from .program import PlainProgram, Program, program_for
from .trace import Pending, Source, Tracer


class Lazy(Tracer):
    """Records, and computes what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[weakref.ref[Tensor]] = []  # the tensors that have been made, while somebody holds them
        self.programs: list[Program | PlainProgram] = []  # what has been run
        self.known: dict[Node, Any] = {}  # the values that have been computed
        self.begun = 0  # how many effects have been had, or have failed

    def manifest_values(
        self, op: Primitive, inputs: Sequence[Any], values: list[Any], mask: int, attrs: dict[str, Any], device: Any
    ) -> Any:
        out = super().manifest_values(op, inputs, values, mask, attrs, device)
        self.held += [weakref.ref(result) for result in (out if out.__class__ is tuple else (out,))]
        return out

    def history_of(self, tensor: Tensor, stand_in: Tensor) -> Node:
        return tensor.node  # the history goes on from where it is

    def set_gradient(self, tensor: Tensor, gradient: Tensor | None) -> None:
        entry = self.outside(tensor)
        if entry is not None:
            entry.gradient_known, tensor = True, entry.stand_in
        tensor._grad = gradient if gradient is None else self.lift(gradient)

    def admitted(self, tensor: Tensor, source: Any) -> Tensor:
        constant = super().admitted(tensor, None)
        self.held.append(weakref.ref(constant))
        return constant

    def take_blocks(self, generator: Any, count: int) -> None:
        return None  # drawn now: a program runs once

    def seeded(self, generator: Any, key: int, block: int) -> bool:
        return False

    @property
    def seals_generators(self) -> bool:
        return False

    @contextmanager
    def hunting(self, hunter: Any) -> Iterator[None]:
        before, self.hunter = self.hunter, hunter
        try:
            yield
            self.evaluate([])
        finally:
            self.hunter = before

    def _alive(self) -> list[Tensor]:
        """All tensors of the trace that somebody holds, and all that look at their memory."""
        found = {id(t): t for reference in self.held if (t := reference()) is not None}
        self.held = [weakref.ref(t) for t in found.values()]
        for tensor in [*found.values(), *[e.stand_in for e in self.captured.values()]]:
            views = [] if tensor.alias is None else tensor.alias.views
            found |= {id(t): t for reference in views if (t := reference()) is not None}
        bases = [t.alias.base for t in found.values() if t.alias is not None and t.alias.base is not None]
        found |= {id(base): base for base in bases}  # of which there may be no more than the memory
        return [t for t in found.values() if id(t) not in self.standing]

    # computing ------------------------------------------------------------------------------------------------------

    def evaluated(self, pending: Pending) -> Any:
        if pending.value is None and not self.ended:
            self.evaluate([pending])
        if pending.value is None:
            pending.value = self.known.get(pending.node)
        return pending if pending.value is None else pending.value

    def evaluate(self, asked: list[Pending]) -> None:
        """Compute what is asked for, and all that somebody still holds, in one program."""
        alive = self._alive()
        wanted = {p.node: p for p in (*asked, *[t.data for t in alive], *self._changed()) if p.__class__ is Pending}
        outputs = [node for node in wanted if node not in self.known]
        self.known |= dict(zip(outputs, self._run(outputs)))
        for pending in (*asked, *[t.data for t in alive if t.data.__class__ is Pending], *self._changed()):
            pending.value = self.known[pending.node]

    def _run(self, outputs: list[Node]) -> list[Any]:
        """The values of nodes that are not known yet; the effects that are due are had on the way."""
        sources = [s for s in self.sources if s.kind == "tensor" and s not in self.known]
        recorded = Graph([*sources, *self.known], outputs, self.effects[self.begun :])
        program = program_for(recorded)
        self.begun = len(self.effects)
        arrays = [*[s.held.data for s in sources], *self.known.values()]
        try:
            with switch(interpreter=self.hunter):
                results = program(arrays, {})
        except IndexingError as error:
            raise explained(error, self.expected, recorded, arrays, {}) from None
        self.programs.append(program)
        return results

    def have_effects(self) -> None:
        """Print what was to be printed before an error, which it may explain; another error would hide that one."""
        if self.begun < len(self.effects):
            with suppress(MinigradError):
                self._run([])

    def _changed(self) -> list[Pending]:
        return [e.stand_in.data for e in self.captured.values() if e.written]

    # the end --------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Compute what is still wanted, give tensors their arrays, and change outside what was changed inside."""
        alive = self._alive()
        kept = [*alive, *[e.stand_in for e in self.captured.values() if e.written]]
        nodes = [n for n in topological_order([t.node for t in kept if t.tracked]) if n.saved.__class__ is tuple]
        saved = {v: node for node in nodes for v in _each(node.saved) if v.__class__ is Pending and v.trace is self}
        # What was overwritten since stays pending: its gradient is the error that it would be without graph mode.
        self.evaluate([v for v, node in saved.items() if written_since(v, node.serial) is None])
        for node in nodes:
            node.saved = tuple([_computed(v) for v in node.saved])
        all_or_none(partial(self._hand_over, sorted(alive, key=_chain_length)))

    def _hand_over(self, alive: list[Tensor]) -> None:
        """Write outside what was written inside, and give the tensors their arrays; bases come before their views."""
        self._write_back()
        for tensor in alive:
            self._settle(tensor)
        for entry in self.captured.values():
            if entry.gradient_known:
                gradient = entry.stand_in._grad
                standing = None if gradient is None else self.standing.get(id(gradient))
                entry.tensor._grad = gradient if standing is None else standing.tensor
        self.ended = True

    def _write_back(self) -> None:
        for entry in self.captured.values():
            if not entry.written:
                continue
            tensor, stand_in = entry.tensor, entry.stand_in
            array = stand_in.data.value
            if stand_in.tracked and stand_in.node.op is not None and stand_in.node is not tensor.node:
                new = wrap(array, tensor.device)
                new.node, new.tracked = stand_in.node, stand_in.tracked
                adopt(tensor, new)
            else:
                tensor.device.kernels["put"](tensor.data, array, chain=(), out=tensor.data)
                mark_written(tensor.data)

    def _settle(self, tensor: Tensor) -> None:
        """Give a tensor its array: its own, or, if it is a view, the part of the memory that it looks at."""
        alias = tensor.alias
        if tensor.data.__class__ is not Pending:
            return
        if alias is None or alias.base is None:
            tensor.data = tensor.data.value
            return
        standing = self.standing.get(id(alias.base))
        if standing is not None:
            outside = standing.tensor
            alias.base = outside
            if outside.alias is not None:
                alias.views = outside.alias.views
                alias.views.append(weakref.ref(tensor))
        array = alias.base.data
        for op, attrs in alias.chain:
            array = tensor.device.kernels[op.name](array, **attrs)
        tensor.data = array


def _each(saved: tuple[Any, ...]) -> list[Any]:
    """What was saved, one by one: of an operation with several results all of them."""
    return [part for v in saved for part in (v if isinstance(v, tuple) else (v,))]


def _computed(saved: Any) -> Any:
    if isinstance(saved, tuple):
        return Results([_computed(v) for v in saved])
    return saved if getattr(saved, "value", None) is None else saved.value


def _chain_length(tensor: Tensor) -> int:
    """How far a view is from its base; less than any for a base."""
    return -1 if tensor.alias is None or tensor.alias.base is None else len(tensor.alias.chain)


def _is_traced() -> bool:
    """Whether a trace, which computes nothing, is going on."""
    interpreter = current_mode().interpreter
    return interpreter is not None and interpreter.seals_generators


class graph:
    """Graph mode for a block: operations are only recorded, and computed when a value is read, or at the end.

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
        self._lazy = Lazy()
        self._switch = switch(interpreter=self._lazy)

    def __enter__(self) -> graph:
        outer = current_mode().interpreter
        self._lazy.hunter = outer if outer is not None and outer.runs_programs else None
        if _is_traced():
            self._switch = switch()  # all is recorded as it is
        self._switch.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            if kind is None and not _is_traced():
                self._lazy.finish()
            elif kind is not None:
                self._lazy.have_effects()
        finally:
            self._lazy.ended = True
            self._switch.__exit__(kind, error, traceback)

    @property
    def programs(self) -> list[Program | PlainProgram]:
        """What has been run so far."""
        return self._lazy.programs

    def recorded(self, *outputs: Tensor) -> Graph:
        """What was recorded, from the tensors that came in to these results."""
        nodes = [self._lazy.values[o.node] if o.node in self._lazy.values else o.data.node for o in outputs]
        return Graph([s for s in self._lazy.sources if isinstance(s, Source)], nodes)
