"""Recordings: traces of functions, which calls use instead of the functions.

A recording checks that its trace fits a call, finds the program's inputs, and writes its outputs where they belong.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from ...core.alias import detach, history_from
from ...core.clock import mark_written
from ...core.emit import emit
from ...core.mode import current_mode, switch
from ...core.node import Node, spent_node
from ...core.tensor import Tensor, wrap
from ...core.tree import flatten, leaves
from ...ops.write import adopt, read_only
from ...support.errors import Gone, IndexingError, MinigradError, TraceError
from ...support.interrupts import all_or_none
from ...support.origin import is_ours
from ...support.source import caller
from ..nodes.graph import Source, Starts
from ..tracing.guards import Guard, changed, undo
from ..tracing.reachable import guards_of
from ..tracing.signature import (
    Check,
    CheckWriter,
    NoShortForm,
    changed_container,
    is_part,
    kinds_of_tensors,
    objects,
    replaced,
)
from ..tracing.tracer import Pending, Tracer
from .function import TracedFunction
from .trace import (
    ApartGuard,
    GradientsGuard,
    HooksGuard,
    Location,
    Result,
    TensorGuard,
    ViewsGuard,
    as_captured,
    found_at,
    hooks_seen,
    refuse_hidden,
    sharing_of,
    without_spent_history,
)


class Recording:
    """A trace of a function, for one kind of arguments, that calls use instead of the function."""

    called = 0  # when it was used last
    check: Check | None = None  # a quick test of whether it fits a call; None if there is none

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
        tracer = self.tracer
        returned, self.rebuild = flatten(result, (np.ndarray,))
        refuse_hidden(result, tracer)
        self._places(arguments)
        self.outputs: list[Tensor] = []
        self.numbers: dict[int, int] = {}  # id of a tensor -> its number among the outputs
        self.returned: list[Tensor] = []  # kept alive, so that their ids stay theirs
        self.results = [self._as_returned(t) for t in returned]
        self._note_writes()
        self._note_gradients()
        self.guards = [*self._guards_on_tensors(arguments), *self.guards]
        self.differentiable = any(o.tracked for o in self.outputs)
        self.traced = self._traced()
        if not (self.differentiable or self.changes):
            for node, place in zip(self.traced.others, self.others):
                if isinstance(node, Source):
                    node.lasting = place.kind == "tensor"

    def _trace(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], arguments: list[Tensor],
        parts: Sequence[Tensor] = (),
    ) -> Any:
        """Trace the function, which gets only the `parts` of some tensors; returns its result."""
        self.tracer = tracer = Tracer()
        tracer.name = getattr(function, "__name__", None) or type(function).__name__
        tracer.parts = [id(part) for part in parts]
        self.guards = guards = guards_of(function, *self.objects)
        stand_ins, own = [tracer.stand_in(t) for t in arguments], set(map(id, leaves((args, kwargs))))
        tracer.arrays = {id(s): s for t, s in zip(arguments, stand_ins) if id(t) not in own}
        given, inside = [replaced((args, kwargs), iter(stand_ins)) for _ in range(2)]
        seen = tracer.unseen.watched(tracer, guards.codes) if guards.suspect else nullcontext({})
        try:
            with switch(interpreter=tracer), seen as unknown:
                result = function(*inside[0], **inside[1])
            if tracer.missed is not None:
                raise tracer.missed  # the function caught it: the rest of the trace may be wrong
            side_effect = changed(guards) or changed(guards.own) or changed_container(given, inside)
            if side_effect is not None:
                raise TraceError(
                    f"jit: the function changes something that is not a tensor: {side_effect}",
                    expect="a trace runs the Python code once; the program does not run it",
                    hint="change a tensor in place, or return the new value; if only the first call changes it, "
                    "make that call without jit",
                )
        except BaseException:
            undo(guards)
            raise
        finally:
            tracer.ended = True
            self.hooks = hooks_seen(tracer)
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
        if tensor._data.__class__ is not Pending and tensor.shape is not None:  # an error for `x[mask]`
            return Result(-1, self._place(tensor), ())
        if tensor._data.trace is not self.tracer:
            raise TraceError("jit: the function returns a tensor of another trace, which has ended")
        alias = tensor.alias
        if alias is not None and alias.base is not None and (alias.linked or not tensor.tracked):
            base = self.tracer.standing.get(id(alias.base))
            if base is None:
                return Result(self._output(alias.base), None, alias.chain, alias.linked, tensor.tracked)
            inputs = {e.stand_in.node: e for e in self.tracer.captured.values() if e.stand_in.tracked}
            node, chain = history_from(tensor, inputs)  # through which the gradient of the view goes
            return Result(-1, self._place(inputs.get(node, base).tensor), chain, alias.linked, tensor.tracked)
        return Result(self._output(tensor), None, ())

    def _output(self, tensor: Tensor) -> int:
        """The number of a tensor among the outputs of the program."""
        number = self.numbers.get(id(tensor))
        if number is None:
            number = self.numbers[id(tensor)] = len(self.outputs)
            self.outputs.append(without_spent_history(tensor))
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

    def _traced(self) -> TracedFunction:
        """The function from its inputs to its outputs.  Inputs that gradients flow to come first."""
        tracked = [e for e in self.tracer.captured.values() if self.differentiable and e.leaf is not None]
        others = [e for e in self.tracer.captured.values() if e not in tracked and isinstance(e.first.node, Source)]
        self.inputs = [self._place(e.tensor) for e in tracked]
        self.others = [self._place(e.tensor) for e in others]
        numbers = {id(place): i for i, place in enumerate((*self.inputs, *self.others))}
        donate = {number: numbers[id(place)] for place, number in self.writes if id(place) in numbers}
        traced = TracedFunction(
            self.tracer, [as_captured(e) for e in tracked], self.outputs, self.tracer.effects,
            [e.first.node for e in others],
        )
        traced.donate, traced.executor = {} if self.differentiable else donate, self.executor
        traced.any_layout = not self.writes  # state is read in each call, which would copy it into row-major order
        return traced

    # the life of a recording ----------------------------------------------------------------------------------------

    def watch(self, gone: Callable[[Any], None]) -> None:
        """Hold the objects among the arguments weakly, and call `gone` when one of them is deleted.

        Otherwise a trace would keep its objects alive for as long as the function.
        """
        for number, value in enumerate(self.objects):
            try:
                self.objects[number] = weakref.ref(value, gone)
            except TypeError:
                pass  # no weak reference to it is possible: it stays alive

    def release_arguments(self) -> None:
        """Drop the tensors that each call brings: a function with many shapes would keep one of each."""
        for key, entry in list(self.tracer.captured.items()):
            if self._place(entry.tensor).kind != "tensor":
                del self.tracer.captured[key]
                entry.tensor = entry.stand_in
                if isinstance(entry.first.node, Source):
                    entry.first.node.held = None
        places = list(self.known.items())
        self.known.clear()  # the ids of deleted tensors are used again
        self.known.update((id(place) if place.kind != "tensor" else key, place) for key, place in places)

    def mismatch(self, arguments: list[Tensor]) -> str | None:
        """Why this recording cannot be used for these arguments; None if it can."""
        return changed(self.guards, arguments)

    def make_check(self, key: Any) -> None:
        """Write the quick check for calls of this kind."""
        try:
            writer = CheckWriter(key)
            for guard in self.guards:
                writer.tests += guard.quick(writer)
            self.check = writer.function()
        except NoShortForm:
            self.check = None

    def run(self, arguments: list[Tensor]) -> Any:
        """Do what the function does for these arguments, and return its result."""
        if self.is_pure:
            return self._run_pure(arguments)
        if self.tracer.hunter is not None and current_mode().interpreter is None:
            with switch(interpreter=self.tracer.hunter):
                return self.run(arguments)
        if self.differentiable and not current_mode().grad:
            # The function switches gradients on.
            with switch(grad=True):
                return self.run(arguments)
        written = found_at([place for place, _ in self.writes], arguments)
        for tensor in written:
            if not tensor.device.is_writable(tensor._data):
                raise read_only()
        starts: Starts = {}
        for generator, count in self.tracer.drawn.items():
            starts[generator] = generator.take_blocks(count)
        others = self._others(arguments)
        inputs = found_at(self.inputs, arguments)
        results: list[Any]
        try:
            if self.differentiable:
                results = list(self.traced.application(others, starts).applied(inputs))
            else:
                results = self._run_program(others, starts, written, arguments)
        except IndexingError as error:
            arrays = [*[tensor._data for tensor in inputs], *others]
            raise self._index_error(error, arrays, starts) from None
        if self.changes and self.differentiable:
            all_or_none(self._change(written, results, arguments))
        return self.rebuild([self._returned(r, results, arguments) for r in self.results])

    @cached_property
    def is_pure(self) -> bool:
        """Whether a run only computes its results, and these are the outputs."""
        more = self.changes or self.differentiable or self.tracer.drawn or self.tracer.hunter is not None
        return not more and all(r.__class__ is Result and r[1:] == (None, (), True, True, False) for r in self.results)

    def _run_pure(self, arguments: list[Tensor]) -> Any:
        others = self._others(arguments)
        try:
            arrays = self.traced.program(others, {})
        except IndexingError as error:
            raise self._index_error(error, others, {}) from None
        return self.rebuild([wrap(arrays[i], self.outputs[i].device) for i, *_ in self.results])

    def _others(self, arguments: list[Tensor]) -> list[Any]:
        """The arrays of the inputs that no gradient flows to."""
        return [tensor._data for tensor in found_at(self.others, arguments)]

    def _index_error(self, error: IndexingError, arrays: list[Any], starts: Starts) -> Exception:
        from ..nodes.interpret import eager_index_error

        return eager_index_error(error, self.tracer.expected, self.traced.graph, arrays, starts)

    def _run_program(
        self, others: list[Any], starts: Starts, written: list[Tensor], arguments: list[Tensor]
    ) -> list[Any]:
        """Compute the outputs.  Tensors outside change only once the program has ended."""
        arrays = change = None
        try:
            arrays = self.traced.program(others, starts)
            results = self._wrapped(arrays)
            if self.changes:
                change = self._change(written, results, arguments)
                change()
            return results
        except MinigradError:
            self._mark(written)
            raise
        except BaseException as error:
            if arrays is not None:  # the program has ended: outputs stored in place of inputs are complete
                (change or self._change(written, self._wrapped(arrays), arguments))()
            elif written:
                self._mark(written)
                error.add_note(_half_done(written))
            raise

    def _wrapped(self, arrays: list[Any]) -> list[Any]:
        return [None if a is None else wrap(a, o.device) for a, o in zip(arrays, self.outputs)]

    def _mark(self, written: list[Tensor]) -> None:
        """Mark tensors that the program may have overwritten."""
        for tensor in written:
            mark_written(tensor._data)

    def _change(self, written: list[Tensor], results: list[Any], arguments: list[Tensor]) -> Callable[[], None]:
        """A function that makes the changes outside.  After an interrupt it can be called again."""
        gradients = [(p.find(arguments), self._gradient(what, results, arguments)) for p, what in self.gradients]
        adoptions = [(p.find(arguments), self._with_history(results[n], n)) for p, n in self.adoptions]
        line = caller() if written else None

        def writes() -> None:
            for tensor, (_, number) in zip(written, self.writes):
                new = results[number]
                if new is not None:  # None: the program has stored it in place
                    tensor.device.kernels["put"](tensor._data, new._data, chain=(), out=tensor._data)
                mark_written(tensor._data, where=line)
            for tensor, value in adoptions:
                adopt(tensor, value)
            for tensor, gradient in gradients:
                tensor._grad = gradient
            for generator, (key, block) in self.tracer.restarted.items():
                generator.set_state({"key": key, "block": block})

        return writes

    def used(self, arguments: list[Tensor]) -> list[Tensor]:
        """The tensors that the trace used, as a call would find them now."""
        places = [self._place(entry.tensor) for entry in self.tracer.captured.values()]
        return [t for t in [place.find(arguments) for place in (*places, *self.known.values())] if t is not None]

    def arrays(self, arguments: list[Tensor]) -> list[Any]:
        """The arrays of the graph's inputs, as they are now."""
        found = found_at((*self.inputs, *self.others), arguments)
        if any(t is None or t.shape != node.shape for t, node in zip(found, self.traced.sources)):
            raise Gone("the program of the last call reads a .grad that is None now, or the base of an argument")
        return [tensor._data for tensor in found]

    def _gradient(self, what: Any, results: list[Tensor], arguments: list[Tensor]) -> Tensor | None:
        return what.find(arguments) if isinstance(what, Location) else None if what is None else results[what]

    def _with_history(self, value: Tensor, number: int) -> Tensor:
        """A value for a tensor from outside; a gradient through a freed history is an error, as in eager mode."""
        node = self.spent.get(number)
        if node is not None:
            value = wrap(value._data, value.device)
            value.node, value.tracked = node, True
        return value

    def _returned(self, result: Any, results: list[Tensor], arguments: list[Tensor]) -> Any:
        if result.__class__ is not Result:
            return result.copy()  # a NumPy array: each call returns a new one
        number, place, chain, linked, tracked, array = result
        tensor = results[number] if place is None else place.find(arguments)
        if chain:
            with switch(grad=tracked):
                for op, attrs in chain:
                    tensor = emit(op, tensor, **attrs)
        if array:
            return tensor.numpy_copy()[()]
        return tensor if linked else detach(tensor)


def _half_done(written: Sequence[Tensor]) -> str:
    shapes = ", ".join([str(tensor.shape) for tensor in written[:5]] + ["..."] * (len(written) > 5))
    return (
        f"the program was stopped while it wrote tensors of shapes {shapes} in place: each may have its old value or "
        "its new one"
    )
