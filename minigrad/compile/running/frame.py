"""Running a partition: memory that is there already, addresses that are written once, and a list of steps.

A `Frame` is what one run at a time needs.  Its steps know where everything lies but for what changes from call to
call: the arrays that come in, the results, and what a library makes anew.  These are *bound*: their addresses are
written into the tables of the kernels that use them.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, c_char
from functools import cached_property, partial
from operator import is_
from typing import Any

import numpy as np

from ...core.emit import EAGER
from ...core.errors import IndexingError
from ...core.node import Node
from ...core.primitive import P
from ...devices.threads import THREADS, in_blocks
from ..fusion.compute import Library
from ..fusion.group import Group, Partition
from ..lowering.lower import Argument, Lowered
from ..nodes.graph import Check
from ..nodes.interpret import Starts, failed, located, started
from ..nodes.view import View, whole
from .executors import WORTH_SHARING, Call, Run, as_steps, as_timed_steps, in_turn, is_profiled
from .memory import Plan, aligned, plan
from .order import step_names, uses, work_of

PIECES = 2  # of the work for each thread, so that one that is busy elsewhere delays little
STEP = 16  # elements: pieces begin where vectors do
POOLED = 1 << 16  # bytes from which results come from memory that is used again

Table = Any  # of addresses


class Layout:
    """Where each value of a partition lies: in an input, in a result, in the arena, or with a library."""

    def __init__(self, partition: Partition, lowered: dict[Group, Lowered], turns: list[list[Group]]) -> None:
        self.partition, self.lowered, self.turns = partition, lowered, turns
        graph = partition.graph
        self.inputs = {node: i for i, node in enumerate(graph.inputs)}
        self.donated = {out: source for g in partition.groups for out, source in g.inplace.items()}
        self.direct: dict[Node, int] = {}  # values that are computed right where a result is wanted
        for number, view in enumerate(partition.outputs):
            if view.base not in self.inputs and view.in_order and view.base not in self.direct:
                self.direct[view.base] = number
        libraries = [g.library for g in partition.groups if g.library is not None]
        self.from_libraries = {compute.node for compute in libraries if not _is_product(compute.node)}
        self.finishing = [(i, v) for i, v in enumerate(partition.outputs) if self._is_finished_later(i, v)]
        asked = {base for compute in libraries for base in (compute.node, *compute.bases)}
        asked |= {view.base for _, view in self.finishing}
        asked |= {view.base for checks in partition.checked.values() for _, view in checks}
        fresh = [(n, k) for n, k in self.direct.items() if n not in self.from_libraries and n not in self.donated]
        self.results = [(n, k, memory_for(n), n in asked) for n, k in fresh]
        given = [*self.inputs.items(), *[(out, self.inputs[source]) for out, source in self.donated.items()]]
        self.arriving: list[list[Node]] = [[] for _ in graph.inputs]  # what each input is the memory of
        for node, i in given:
            self.arriving[i].append(node)
        self.looked_at = [(node, i) for node, i in given if node in asked]
        self.passing = asked & {*self.inputs, *self.from_libraries, *self.direct, *self.donated}
        self._partials = {
            argument: parameter.size * parameter.dtype.itemsize
            for each in lowered.values()
            for argument, parameter in zip(each.arguments, each.kernel.parameters)
            if argument.kind == "partial"
        }
        steps = [self._uses(turn) for turn in turns]
        self.plan: Plan = plan([*steps, ([view.base for view in partition.outputs], [])], self.bytes_of)

    def _is_finished_later(self, number: int, view: View) -> bool:
        """Whether a result is not what was computed, but a copy or another shape of it."""
        if self.direct.get(view.base) != number or view.base in self.from_libraries:
            return True
        return view.shape != view.base.shape and view.base not in self.donated

    @cached_property
    def names(self) -> dict[Group | None, str]:
        """What the steps are called."""
        return step_names(self.partition) | {None: "check"}

    def _uses(self, turn: list[Group]) -> tuple[list[Any], list[Any]]:
        """What runs at the same time reads and writes: nothing of that may lie in the same place."""
        reads: list[Any] = []
        writes: list[Any] = []
        for group in turn:
            for total, part in zip((reads, writes), uses(group, self.lowered)):
                total += part
        return reads, writes

    def bytes_of(self, value: Any) -> int | None:
        """What a value takes of the arena; None if it is elsewhere."""
        if isinstance(value, Argument):
            return self._partials[value]
        if value in self.inputs or value in self.direct or value in self.donated or value in self.from_libraries:
            return None
        return value.nbytes  # type: ignore[no-any-return]


def address(array: Any) -> int:
    """Where the memory of an array begins."""
    if array.flags.writeable and array.size:
        return addressof(c_char.from_buffer(array))  # in half the time
    return int(array.__array_interface__["data"][0])


def strided(flat: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array in memory that is there, so many bytes from where that begins."""
    return np.ndarray(shape, flat.dtype, flat, offset, strides)


class Frame:
    """All that a single run at a time needs.

    What stands first is what a frame for another device has in another way.
    """

    library: Any = np  # the array library
    new_memory = staticmethod(aligned)
    address = staticmethod(address)
    strided = staticmethod(strided)
    compute = staticmethod(EAGER.compute)

    def __init__(self, layout: Layout, functions: Mapping[Group, Any]) -> None:
        self.layout = layout
        self.memory = [self.new_memory(size) for size in layout.plan.slots]
        self.keep: list[Any] = []  # what only addresses refer to
        self.arrays: dict[Node, Any] = {}  # the values in order, as arrays of one dimension
        # Where the addresses of what is bound are written: in which table, at which index, so many bytes further on.
        self.slots: dict[Node, list[tuple[Table, int, int]]] = {}
        self.last: list[Callable[[], Any]] = [_nothing] * len(layout.arriving)  # weak references to what came in last
        for value, slot in layout.plan.place.items():
            if isinstance(value, Node):
                self.arrays[value] = self._in_arena(slot, value.size, value.dtype)
        calls = [[self._call(group, functions) for group in turn] for turn in layout.turns]
        self.calls = [*[[Call(None, check)] for check in self._checks(None)], *calls]
        self.steps = as_steps(self.calls)

    def _in_arena(self, slot: int, size: int, dtype: Any) -> Any:
        return self.memory[slot][: size * dtype.itemsize].view(dtype)

    def _call(self, group: Group, functions: Mapping[Group, Any]) -> Call:
        """The step of a group, and behind it what has to be checked of its results."""
        run, checks = self._run_of(group, functions), self._checks(group)
        return Call(group, partial(in_turn, [run, *checks]) if checks else run)

    def _run_of(self, group: Group, functions: Mapping[Group, Any]) -> Run:
        if group.library is not None:
            return self._product(group.library) if _is_product(group.library.node) else self._library(group.library)
        return self._launch(self.layout.lowered[group], functions[group])

    def _checks(self, group: Group | None) -> list[Callable[[Starts], object]]:
        """What has to be looked at once this group has run (None: before all of them)."""
        checks = self.layout.partition.checked.get(group, ())
        return [self._check(check, self._reader(view, view.shape)) for check, view in checks]

    def _check(self, check: Check, read: Callable[[], Any]) -> Run:
        """Positions that are none: an array library would say so, where a kernel compares and finds nothing."""
        node, size = check

        def look(starts: Starts) -> None:
            positions = read()
            if positions.size and (positions.min() < -size or positions.max() >= size):
                wrong = positions[(positions < -size) | (positions >= size)].flat[0]
                error = IndexingError(
                    f"index {wrong} is out of bounds in a dimension of {size}",
                    expect=f"integers from {-size} to {size - 1}",
                )
                raise located(error, node)

        return look

    # kernels --------------------------------------------------------------------------------------------------------

    def _launch(self, lowered: Lowered, function: Any) -> Run:
        tables, run = self._tables(lowered, function)
        for table in tables:
            for i, (argument, parameter) in enumerate(zip(lowered.arguments, lowered.kernel.parameters)):
                if parameter.role != "scratch":
                    table[i] = self._address(argument, table, i)
            self.keep.append(table)
        return run

    def _tables(self, lowered: Lowered, function: Any) -> tuple[list[Table], Run]:
        """What a kernel is called with, once for each piece of its work, and the step that runs it on them.

        The addresses in the tables are still missing, but for those of scratch memory.
        """
        kernel = lowered.kernel
        tables = []
        for low, high in pieces_of(lowered):
            table = (ctypes.c_void_p * (len(kernel.parameters) + 2))()
            for i, parameter in enumerate(kernel.parameters):
                if parameter.role == "scratch":
                    table[i] = self._kept(parameter.size * parameter.dtype.itemsize)
            table[len(kernel.parameters)], table[len(kernel.parameters) + 1] = low, high
            tables.append(table)
        addresses = [ctypes.addressof(table) for table in tables]
        if len(addresses) == 1:
            only = addresses[0]
            return tables, lambda starts: function(only)
        return tables, lambda starts: in_blocks(lambda first, _: function(addresses[first]), len(addresses), 1)

    def _kept(self, size: int) -> int:
        """The address of so many bytes that are the frame's own."""
        self.keep.append(self.new_memory(size))
        return self.address(self.keep[-1])

    def _address(self, argument: Argument, table: Table, index: int) -> int | None:
        """Where an argument lies; None if that is written into the table when it is bound."""
        node = argument.node
        assert node is not None
        if argument.kind == "partial":
            return self.address(self.memory[self.layout.plan.place[argument]])
        further = argument.offset * node.dtype.itemsize
        if node in self.layout.plan.place:
            return self.address(self.arrays[node]) + further
        self.slots.setdefault(node, []).append((table, index, further))
        return None

    # libraries ------------------------------------------------------------------------------------------------------

    def _product(self, compute: Library) -> Callable[[Starts], object]:
        node, xp = compute.node, self.library
        left, right = [self._reader(r, i.shape) for r, i in zip(compute.reads, node.inputs)]
        out = self._reader(whole(node), node.shape)
        x, y = node.inputs
        if y.ndim == 2 and x.ndim == 2:
            return lambda starts: xp.dot(left(), right(), out())
        if y.ndim == 2:
            rows = node.size // node.shape[-1] if node.shape[-1] else 0
            width, columns = x.shape[-1], node.shape[-1]

            def tall(starts: Starts) -> object:
                return xp.dot(left().reshape(rows, width), right(), out().reshape(rows, columns))

            return tall
        return lambda starts: xp.matmul(left(), right(), out=out())

    def _reader(self, view: View, shape: tuple[int, ...]) -> Callable[[], Any]:
        """A function that gives an operand of a library as an array; made once where its memory stays the same."""
        base = view.base

        def read() -> Any:
            return self.seen(self.arrays[base], view, shape)

        if base not in self.layout.plan.place:
            in_order = not isinstance(base.dtype, tuple) and view.in_order
            return (lambda: self.arrays[base].reshape(shape)) if in_order else read
        fixed = read()
        return lambda: fixed

    def _library(self, compute: Library) -> Callable[[Starts], object]:
        node = compute.node
        readers = [self._reader(r, r.shape) if isinstance(r, View) else partial(_number, r) for r in compute.reads]
        op = node.op
        assert op is not None

        def call(starts: Starts) -> None:
            attrs = started(node.attrs, starts)
            values = [read() for read in readers]
            try:
                if op.kind == "own":
                    result = attrs["kernel"].run(node, values)
                else:
                    result = self.compute(op, values, attrs, node.device)
            except Exception as error:
                raise failed(error, node, values) from None
            self.bind(node, result if isinstance(result, tuple) else self.library.ascontiguousarray(result))

        return call

    def seen(self, flat: Any, view: View, shape: tuple[int, ...]) -> Any:
        """The elements that a view reads, of memory in order."""
        if flat.__class__ is tuple:
            return flat
        if view.in_order:
            return flat.reshape(shape)
        if not view.size:
            return self.library.empty(shape, flat.dtype)
        size = flat.itemsize
        return self.strided(flat, view.offset * size, shape, tuple([s * size for s in view.strides]))

    # a run ----------------------------------------------------------------------------------------------------------

    def bind(self, node: Node, array: Any) -> None:
        """Let `array`, whose elements lie in order, be the value of a node."""
        if array.__class__ is tuple:
            self.arrays[node] = array
            return
        self.arrays[node] = array.reshape(-1)
        self._write_address(node, self.address(array))

    def _write_address(self, node: Node, where: int) -> None:
        for table, index, further in self.slots.get(node, ()):
            table[index] = where + further

    def run(self, arrays: Sequence[Any], starts: Starts) -> list[Any]:
        """The results for these inputs, None for those that are stored in an input."""
        layout = self.layout
        try:
            arrays = self._bind_inputs(arrays)
            results = self._bind_results()
            self._run_steps(arrays, results, starts)
            for number, view in layout.finishing:
                if layout.direct.get(view.base) != number:
                    results[number] = self.seen(self.arrays[view.base], view, view.shape).copy()
                else:
                    results[number] = self.arrays[view.base].reshape(view.shape)
            return results
        finally:
            for node in layout.passing:  # the caller's, not ours
                self.arrays.pop(node, None)

    def _run_steps(self, arrays: Sequence[Any], results: list[Any], starts: Starts) -> None:
        for step in as_timed_steps(self.calls, self.layout.names) if is_profiled() else self.steps:
            step(starts)

    def _bind_results(self) -> list[Any]:
        """Memory for the results, but for those that are stored in an input or that a library makes."""
        results: list[Any] = [None] * len(self.layout.partition.outputs)
        for node, number, take, is_asked in self.layout.results:
            result = results[number] = take(node.shape, node.dtype)
            if is_asked:
                self.arrays[node] = result.reshape(-1)
            self._write_address(node, addressof(c_char.from_buffer(result)))
        return results

    def _bind_inputs(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Bind what has come in, where it is not what came in the last time; the answer has to be kept alive."""
        if not all(map(is_, arrays, [last() for last in self.last])):
            arrays = [self._bind_input(number, array) for number, array in enumerate(arrays)]
        for node, number in self.layout.looked_at:
            self.arrays[node] = arrays[number].reshape(-1)
        return arrays

    def _bind_input(self, number: int, array: Any) -> Any:
        if self.last[number]() is array:
            return array
        self.last[number] = _nothing  # until all addresses are written: an interrupt may come at any time
        given = array
        if not array.flags.c_contiguous:
            array = self.library.ascontiguousarray(array)
        where = self.address(array)
        for node in self.layout.arriving[number]:
            self._write_address(node, where)
        if array is given:
            self.last[number] = weakref.ref(array)
        return array


def _is_product(node: Node) -> bool:
    """Whether NumPy can put the result where we want it: no library multiplies halves, or integers, in place."""
    return node.op is P.matmul and node.dtype.name in ("float32", "float64") and node.size > 0


def _number(value: Any) -> Any:
    """An operand that is no tensor."""
    return value


def pieces_of(lowered: Lowered) -> list[tuple[int, int]]:
    """The ranges of a kernel's units that threads share; a single one where sharing takes longer than working."""
    kernel = lowered.kernel
    shared = work_of(lowered) >= WORTH_SHARING and THREADS.count > 1
    return _pieces(kernel.units, PIECES * THREADS.count if shared else 1, STEP if kernel.parallel == "elements" else 1)


def _pieces(units: int, count: int, step: int) -> list[tuple[int, int]]:
    """`units` in about `count` ranges that begin at multiples of `step`."""
    length = -(-units // (count * step)) * step if units else 1
    return [(low, min(low + length, units)) for low in range(0, units, length)]


def memory_for(node: Node) -> Callable[[tuple[int, ...], Any], Any]:
    """What finds memory for a result of this size."""
    if node.nbytes >= POOLED:
        return node.device.pool.take  # type: ignore[no-any-return]
    return np.empty


def _nothing() -> None:
    """What a reference to an array that is gone gives."""
