"""Recordings: traces of functions, which calls use instead of the functions.

A recording checks that its trace fits a call, finds the program's inputs, and writes its outputs where they belong.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from ...core.clock import mark_written
from ...core.emit import emit
from ...core.mode import current_mode, switch
from ...core.tensor import Tensor, wrap
from ...core.view import detach
from ...ops.write import adopt, read_only
from ...support.errors import Gone, IndexingError, MinigradError
from ...support.interrupts import all_or_none
from ...support.source import caller
from ..nodes.interpret import Starts, eager_index_error
from ..nodes.source import Source
from ..tracing.check import Check, CheckWriter, NoShortForm
from ..tracing.guards import changed
from .function import Application
from .tensor_guards import Location, found_at
from .trace import Result, Trace


class Recording(Trace):
    """A trace that calls use instead of the function."""

    called = 0  # when it was used last
    check: Check | None = None  # quickly says that it fits a call; None if there is no quick way

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
        written = found_at([place for place, _ in self.writes], arguments) if self.writes else []
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
                application = Application(self.traced, others, starts)
                results = list(application.applied(inputs))
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
        return not more and all(r.__class__ is Result and r[1:] == (None, (), True, False) for r in self.results)

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
        number, place, chain, linked, array = result
        tensor = results[number] if place is None else place.find(arguments)
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
