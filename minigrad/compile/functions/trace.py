"""`Trace`: one trace of a function, with what it reads, returns, writes and registers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...autodiff.reverse import HOOKS
from ...core.mode import current_mode, switch
from ...core.node import FREED, Node, spent_node, topological_order
from ...core.tensor import Tensor, wrap
from ...core.tree import flatten, is_container, leaves
from ...core.view import Step
from ...support.errors import TraceError
from ..nodes.source import Source
from ..tracing.guards import Guard, changed
from ..tracing.origin import is_ours
from ..tracing.reachable import guards_of
from ..tracing.signature import changed_container, is_part, kinds_of_tensors, objects, replaced
from ..tracing.tracer import Captured, Pending, Tracer
from ..tracing.unseen import watched
from .function import TracedFunction
from .tensor_guards import ApartGuard, GradientsGuard, HooksGuard, Location, TensorGuard, ViewsGuard, sharing_of


class Result(NamedTuple):
    """A tensor that the function returns: a view, by `chain`, of output `number` or of the tensor at `place`.

    A result that is not `linked` was detached: it has no history.  One that stands for an `array` is returned as one.
    """

    number: int
    place: Location | None
    chain: tuple[Step, ...]
    linked: bool = True
    array: bool = False


class Trace:
    """One trace of a function, for one kind of arguments."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Tensor],
        executor: str | None = None,
    ) -> None:
        self.executor = executor
        self.objects = objects((args, kwargs))  # kept alive, so that their ids stay theirs
        self.exactly: list[Any] | None = None  # the kinds of the arguments, if it matters of what tensor one is a part
        self.guards: list[Guard]
        parts = [t for t, kind in zip(arguments, kinds_of_tensors(arguments)) if is_part(kind[-1])]
        result = self._trace(function, args, kwargs, arguments, parts)
        if any(map(self._needs_base, parts)):
            self.exactly = kinds_of_tensors(arguments, exactly=True)
            result = self._trace(function, args, kwargs, arguments)
        tracer, mode = self.tracer, current_mode()
        returned, self.rebuild = flatten(result, (np.ndarray,))
        _refuse_hidden(result, tracer)
        self._places(arguments)
        self.outputs: list[Tensor] = []
        self.numbers: dict[int, int] = {}  # id of a tensor -> its number among the outputs
        self.returned: list[Tensor] = []  # kept alive, so that their ids stay theirs
        self.results = [self._as_returned(t) for t in returned]
        self._note_writes()
        self._note_gradients()
        self.guards = [*self._guards_on_tensors(arguments), *self.guards]
        differentiable = mode.grad and any(o.tracked for o in self.outputs)
        self.traced = self._traced(differentiable)
        self.differentiable = differentiable
        if not (differentiable or self.changes):
            for node, place in zip(self.traced.others, self.others):
                if isinstance(node, Source):
                    node.lasting = place.kind == "tensor"

    def _trace(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Tensor],
        parts: Sequence[Tensor] = (),
    ) -> Any:
        """Trace the function, which sees no more than the `parts` of some tensors; returns its result."""
        self.tracer = tracer = Tracer()
        tracer.name = getattr(function, "__name__", None) or type(function).__name__
        tracer.parts = [id(part) for part in parts]
        self.guards = guards = guards_of(function, *self.objects)
        stand_ins, own = [tracer.stand_in(t) for t in arguments], set(map(id, leaves((args, kwargs))))
        tracer.arrays = {id(s): s for t, s in zip(arguments, stand_ins) if id(t) not in own}
        given, inside = [replaced((args, kwargs), iter(stand_ins)) for _ in range(2)]
        seen = watched(tracer, guards.codes, guards.suspect)
        try:
            with switch(interpreter=tracer), seen as unknown:
                result = function(*inside[0], **inside[1])
        finally:
            tracer.ended = True
            self.hooks = _hooks_seen(tracer)
        if tracer.missed is not None:
            raise tracer.missed  # the function caught it: the rest of the trace cannot be trusted
        side_effect = changed(guards) or changed(guards.own) or changed_container(given, inside)
        if side_effect is not None:
            raise TraceError(
                f"jit: the function changes something that is not a tensor: {side_effect}",
                expect="a trace runs the Python code once; the program does not run it",
                hint="change a tensor in place, return the new value, or make the change outside",
            )
        hooks = [h for hooks in self.hooks for h in hooks if not is_ours(getattr(h, "func", h).__module__)]
        if unknown or guards.later or hooks:
            self.guards = guards_of(function, *self.objects, *hooks, more=unknown.items())
        return result

    def _needs_base(self, part: Tensor) -> bool:
        """Whether the function writes to a part of a tensor, or also uses the tensor itself."""
        entry, base = self.tracer.captured[id(part)], part.alias.base  # type: ignore[union-attr]
        return entry.stand_in._data is not entry.first or id(base) in self.tracer.captured

    def _places(self, arguments: list[Tensor]) -> None:
        """Find out where a call finds each captured tensor."""
        self.known: dict[int, Location] = {}
        for i, tensor in enumerate(arguments):
            if tensor.alias is not None and tensor.alias.base is not None:
                self.known.setdefault(id(tensor.alias.base), Location("base", i))
        for i, tensor in reversed(list(enumerate(arguments))):
            self.known[id(tensor)] = Location("argument", i)
        for entry in list(self.tracer.captured.values()):
            gradient = entry.tensor._grad
            if entry.had_gradient and gradient is not None:
                self.known.setdefault(id(gradient), Location("gradient", self._place(entry.tensor)))
        self.fixed = [e.tensor for e in self.tracer.captured.values() if self._place(e.tensor).kind == "tensor"]

    def _place(self, tensor: Tensor) -> Location:
        return self.known.setdefault(id(tensor), Location("tensor", tensor))

    def _guards_on_tensors(self, arguments: list[Tensor]) -> list[Guard]:
        """Guards on the states of tensors that the trace depends on."""
        found: list[Guard] = [TensorGuard(tensor) for tensor in self.fixed]
        if self.exactly is not None:
            found.insert(0, ViewsGuard("", None, {"": self.exactly}))
        if self.fixed and arguments:
            found.insert(0, ApartGuard("", {id(tensor) for tensor in self.fixed}, {"": True}))
        if self.looked:
            gradients = [place.find(arguments)._grad if there else None for place, there in self.looked]
            sharing = sharing_of(gradients, (*arguments, *self.fixed))
            places, there = zip(*self.looked)
            found.append(GradientsGuard(list(places), self.fixed, there, sharing))
        hooked = [self._place(e.tensor) for e in self.tracer.captured.values() if e.leaf is not None]
        if hooked:
            found.append(HooksGuard("", hooked, dict(enumerate(self.hooks))))
        return [*found, *self.tracer.looked_into]

    def _as_returned(self, tensor: Any) -> Any:
        found = self._result(tensor)
        return found._replace(array=True) if id(tensor) in self.tracer.arrays else found

    def _result(self, tensor: Any) -> Any:
        if isinstance(tensor, np.ndarray):
            return tensor
        known = self.tracer.standing.get(id(tensor))
        if known is not None:
            return Result(-1, self._place(known.tensor), ())
        if tensor._data.__class__ is not Pending:
            return Result(-1, self._place(tensor), ())
        if tensor._data.trace is not self.tracer:
            raise TraceError("jit: the function returns a tensor of another trace, which has ended")
        alias = tensor.alias
        if alias is not None and alias.base is not None and (alias.linked or not tensor.tracked):
            base = self.tracer.standing.get(id(alias.base))
            if base is not None:
                return Result(-1, self._place(base.tensor), alias.chain, alias.linked)
            return Result(self._output(alias.base), None, alias.chain, alias.linked)
        return Result(self._output(tensor), None, ())

    def _output(self, tensor: Tensor) -> int:
        """The number of a tensor among the outputs of the program."""
        number = self.numbers.get(id(tensor))
        if number is None:
            number = self.numbers[id(tensor)] = len(self.outputs)
            self.outputs.append(_without_spent_history(tensor))
            self.returned.append(tensor)
        return number

    def _note_writes(self) -> None:
        """Note which tensors from outside are written, and with which outputs."""
        self.writes: list[tuple[Location, int]] = []
        self.adoptions: list[tuple[Location, int]] = []
        self.spent: dict[int, Node] = {}  # the nodes of adopted values whose history backward() has freed
        for entry in self.tracer.captured.values():
            if not entry.written:
                continue
            stand_in = entry.stand_in
            gains_history = stand_in.tracked and stand_in.node.op is not None
            value = stand_in if gains_history else wrap(stand_in._data, stand_in.device)
            noted = self.adoptions if gains_history else self.writes
            number = self._output(value)
            noted.append((self._place(entry.tensor), number))
            if gains_history and not self.outputs[number].tracked:
                self.spent[number] = spent_node(value.node)

    def _note_gradients(self) -> None:
        """Note which `.grad`s are replaced, and by what: an output, an existing tensor, or None."""
        self.gradients: list[tuple[Location, int | Location | None]] = []
        self.looked: list[tuple[Location, bool]] = []
        for entry in list(self.tracer.captured.values()):
            if not entry.gradient_known:
                continue
            place, now = self._place(entry.tensor), entry.stand_in._grad
            if entry.had_gradient is not None:
                self.looked.append((place, entry.had_gradient))
            standing = None if now is None else self.tracer.standing.get(id(now))
            if standing is not None and standing.tensor is entry.tensor._grad:
                continue  # it stays
            if standing is not None:
                self.gradients.append((place, self._place(standing.tensor)))
            else:
                self.gradients.append((place, None if now is None else self._output(now)))

    @cached_property
    def changes(self) -> bool:
        """Whether a run does more than compute results."""
        return bool(self.writes or self.adoptions or self.gradients or self.tracer.restarted)

    def _traced(self, differentiable: bool) -> TracedFunction:
        """The function from its inputs to its outputs.  Inputs that gradients flow to come first."""
        tracked = [e for e in self.tracer.captured.values() if differentiable and e.leaf is not None]
        others = [e for e in self.tracer.captured.values() if e not in tracked and isinstance(e.first.node, Source)]
        self.inputs = [self._place(e.tensor) for e in tracked]
        self.others = [self._place(e.tensor) for e in others]
        numbers = {id(place): i for i, place in enumerate((*self.inputs, *self.others))}
        donate = {number: numbers[id(place)] for place, number in self.writes if id(place) in numbers}
        traced = TracedFunction(
            self.tracer, [_as_captured(e) for e in tracked], self.outputs, self.tracer.effects,
            [e.first.node for e in others],
        )
        traced.donate, traced.executor = {} if differentiable else donate, self.executor
        traced.any_layout = not self.writes  # state is read in each call, which would copy it into row-major order
        return traced


def _as_captured(entry: Captured) -> Tensor:
    """The stand-in in its first state."""
    tensor = wrap(entry.first, entry.tensor.device)
    tensor.node, tensor.tracked = entry.leaf, True
    return tensor


def _without_spent_history(tensor: Tensor) -> Tensor:
    """The tensor; without its history if a backward pass has freed that."""
    if not tensor.tracked or not any(node.saved is FREED for node in topological_order([tensor.node])):
        return tensor
    return wrap(tensor._data, tensor.device)


def _hooks_seen(tracer: Tracer) -> list[list[Any]]:
    """Take the hooks of the captured tensors out of the trace, which has run them; refuse new ones."""
    found = []
    for entry in tracer.captured.values():
        if entry.leaf is not None:
            inside, outside = HOOKS.pop(entry.leaf, []), HOOKS.get(entry.tensor.node, [])
            if inside != outside:
                raise TraceError(
                    f"jit: a hook is registered on a tensor from outside, of shape {entry.tensor.shape}, or removed",
                    expect="a hook stays on its tensor, and each call would add one",
                    hint="register it outside, or on a tensor that is made inside",
                )
            found.append(list(outside))
    return found


def _refuse_hidden(result: Any, tracer: Tracer, inside: str = "", depth: int = 0) -> None:
    """Refuse results that hold tensors in objects that jit does not look into."""
    if isinstance(result, Tensor):
        if inside and result._data.__class__ is Pending and result._data.trace is tracer:
            raise TraceError(
                f"jit: the function returns a {inside} that holds tensors, and jit does not look into it",
                expect="tensors, numbers, and tuples, lists, dicts and modules of them",
                hint="return the tensors, and build the object outside",
            )
    elif isinstance(result, (list, tuple, dict)):
        for part in result.values() if isinstance(result, dict) else result:
            _refuse_hidden(part, tracer, inside, depth)
    elif isinstance(result, (set, frozenset, deque)):
        for part in result:
            _refuse_hidden(part, tracer, type(result).__name__, depth)
    elif depth < 3 and hasattr(result, "__dict__") and not isinstance(result, (type, ModuleType, FunctionType)):
        name = inside or ("" if is_container(result) else type(result).__name__)
        for part in vars(result).values():
            _refuse_hidden(part, tracer, name, depth + 1)
