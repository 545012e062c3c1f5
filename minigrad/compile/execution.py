"""Running a partition: memory that is there already, addresses that are written once, and a list of steps.

A `Frame` is what one run at a time needs.  Its steps know where everything lies but for what changes from call to
call: the arrays that come in, the results, and what a library makes anew.  These are *bound*: their addresses are
written into the tables of the kernels that use them.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.emit import EAGER
from ..core.errors import IndexingError, MinigradError
from ..core.node import Node
from ..core.primitive import P
from ..core.source import show
from ..devices.threads import THREADS, in_blocks
from .executors import WORTH_SHARING, Call, Run, as_steps, as_timed_steps, in_turn, is_profiled, stages
from .groups import Group, Partition
from .lowering import Argument, Lowered
from .memory import Plan, aligned, plan
from .picking import Check
from .recipes import Recipe
from .schedule import Schedule, Step, uses, work_of
from .views import View, views_of, whole

PIECES = 2  # of the work for each thread, so that one that is busy elsewhere delays little
STEP = 16  # elements: pieces begin where vectors do
POOLED = 1 << 16  # bytes from which results come from memory that is used again

Starts = dict[Any, tuple[Any, int]]
Table = Any  # of addresses


class Layout:
    """Where each value of a partition lies: in an input, in a result, in the arena, or with a library."""

    def __init__(
        self, partition: Partition, lowered: dict[Group, Lowered], schedule: Schedule, executor: str = "serial"
    ) -> None:
        self.partition, self.lowered = partition, lowered
        self.stages = stages(schedule, executor)
        graph = partition.graph
        self.inputs = {node: i for i, node in enumerate(graph.inputs)}
        self.donated = {out: source for g in partition.groups for out, source in g.inplace.items()}
        self.direct: dict[Node, int] = {}  # values that are computed right where a result is wanted
        for number, view in enumerate(partition.outputs):
            if view.base not in self.inputs and view.in_order and view.base not in self.direct:
                self.direct[view.base] = number
        libraries = [g.opaque for g in partition.groups if g.opaque is not None]
        self.opaque = {recipe.node for recipe in libraries if not _is_product(recipe.node)}
        self.results = [(n, k) for n, k in self.direct.items() if n not in self.opaque and n not in self.donated]
        wanted = {v.base for v in partition.outputs} - self.donated.keys()
        asked = {base for recipe in libraries for base in recipe.bases} | wanted
        if partition.checks:
            views = views_of(partition.graph)
            asked |= {views[check.node].base for check in partition.checks}
        given = [*self.inputs.items(), *[(out, self.inputs[source]) for out, source in self.donated.items()]]
        self.arriving = [(node, i, node in asked) for node, i in given]
        self.passing = {*self.inputs, *self.opaque, *self.direct, *self.donated}
        self._partials = {
            argument: parameter.size * parameter.dtype.itemsize
            for each in lowered.values()
            for argument, parameter in zip(each.arguments, each.kernel.parameters)
            if argument.kind == "partial"
        }
        steps = [self._uses([partition.groups[step.number] for step in stage]) for stage in self.stages]
        self.plan: Plan = plan([*steps, ([view.base for view in partition.outputs], [])], self._size)

    def _uses(self, stage: list[Group]) -> tuple[list[Any], list[Any]]:
        """What runs at the same time reads and writes: nothing of that may lie in the same place."""
        reads: list[Any] = []
        writes: list[Any] = []
        for group in stage:
            for total, part in zip((reads, writes), uses(group, self.lowered)):
                total += part
        return reads, writes

    def _size(self, value: Any) -> int | None:
        if isinstance(value, Argument):
            return self._partials[value]
        if value in self.inputs or value in self.direct or value in self.donated or value in self.opaque:
            return None
        return int(value.size * value.dtype.itemsize)


class Frame:
    """All that a single run at a time needs."""

    def __init__(self, layout: Layout, functions: dict[Group, Callable[[int], object]]) -> None:
        self.layout = layout
        self.memory = layout.plan.arena()
        self.keep: list[Any] = []  # what only addresses refer to
        self.arrays: dict[Node, Any] = {}  # the values in order, as arrays of one dimension
        self.slots: dict[Node, list[tuple[Table, int]]] = {}  # where the addresses of what is bound are written
        self.last: dict[Node, weakref.ref[Any]] = {}  # the arrays that came in last
        for value, slot in layout.plan.place.items():
            if isinstance(value, Node):
                self.arrays[value] = self._in_arena(slot, value.size, value.dtype)
        calls = [[self._call(step, functions) for step in stage] for stage in layout.stages]
        self.calls = [*[[Call("check", check)] for check in self._checks(None)], *calls]
        self.steps = as_steps(self.calls)

    def _in_arena(self, slot: int, size: int, dtype: Any) -> Any:
        return self.memory[slot][: size * dtype.itemsize].view(dtype)

    def _call(self, step: Step, functions: dict[Group, Callable[[int], object]]) -> Call:
        """A step, and behind it what has to be checked of its results."""
        group = self.layout.partition.groups[step.number]
        run, checks = self._run_of(group, functions), self._checks(group)
        return Call(step.name, partial(in_turn, [run, *checks]) if checks else run, step.cost)

    def _run_of(self, group: Group, functions: dict[Group, Callable[[int], object]]) -> Run:
        if group.opaque is not None:
            return self._product(group.opaque) if _is_product(group.opaque.node) else self._library(group.opaque)
        return self._launch(self.layout.lowered[group], functions[group])

    def _checks(self, group: Group | None) -> list[Callable[[Starts], object]]:
        """What has to be looked at once this group has run (None: before all of them)."""
        partition = self.layout.partition
        if not partition.checks:
            return []
        views, home = views_of(partition.graph), partition.home()
        found = [check for check in partition.checks if home.get(views[check.node].base) is group]
        return [self._check(check, self._reader(views[check.node], check.node.shape)) for check in found]

    def _check(self, check: Check, read: Callable[[], Any]) -> Callable[[Starts], None]:
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

    def _launch(self, lowered: Lowered, function: Callable[[int], object]) -> Callable[[Starts], object]:
        kernel = lowered.kernel
        shared = work_of(lowered) >= WORTH_SHARING and THREADS.count > 1
        pieces = PIECES * THREADS.count if shared else 1
        addresses = []
        for low, high in _pieces(kernel.units, pieces, STEP if kernel.parallel == "elements" else 1):
            table = (ctypes.c_void_p * (len(kernel.parameters) + 2))()
            for i, (argument, parameter) in enumerate(zip(lowered.arguments, kernel.parameters)):
                table[i] = self._address(argument, parameter, table, i)
            table[len(kernel.parameters)], table[len(kernel.parameters) + 1] = low, high
            self.keep.append(table)
            addresses.append(ctypes.addressof(table))
        if len(addresses) == 1:
            only = addresses[0]
            return lambda starts: function(only)
        return lambda starts: in_blocks(lambda first, _: function(addresses[first]), len(addresses), 1)

    def _address(self, argument: Argument, parameter: Any, table: Table, index: int) -> int | None:
        node = argument.node
        if argument.kind == "scratch" or node is None:
            memory = aligned(parameter.size * parameter.dtype.itemsize)
            self.keep.append(memory)
            return address(memory)
        if argument.kind == "partial":
            return address(self.memory[self.layout.plan.place[argument]])
        if node in self.layout.plan.place:
            return address(self.arrays[node])
        self.slots.setdefault(node, []).append((table, index))
        return None

    # libraries ------------------------------------------------------------------------------------------------------

    def _product(self, recipe: Recipe) -> Callable[[Starts], object]:
        node = recipe.node
        left, right = [self._reader(r, i.shape) for r, i in zip(recipe.reads, node.inputs)]
        out = self._reader(whole(node), node.shape)
        x, y = node.inputs
        if y.ndim == 2 and x.ndim == 2:
            return lambda starts: np.dot(left(), right(), out())
        if y.ndim == 2:
            rows = node.size // node.shape[-1] if node.shape[-1] else 0
            width, columns = x.shape[-1], node.shape[-1]

            def tall(starts: Starts) -> object:
                return np.dot(left().reshape(rows, width), right(), out().reshape(rows, columns))

            return tall
        return lambda starts: np.matmul(left(), right(), out())

    def _reader(self, view: View, shape: tuple[int, ...]) -> Callable[[], Any]:
        """A function that gives an operand of a library as an array; made once where its memory stays the same."""
        base = view.base

        def read() -> Any:
            return seen(self.arrays[base], view, shape)

        if base not in self.layout.plan.place:
            return read
        fixed = read()
        return lambda: fixed

    def _library(self, recipe: Recipe) -> Callable[[Starts], object]:
        node = recipe.node
        readers = [self._reader(r, r.shape) if isinstance(r, View) else partial(_number, r) for r in recipe.reads]
        op = node.op
        assert op is not None

        def call(starts: Starts) -> None:
            attrs = node.attrs
            if op is P.random and attrs["key"] in starts:
                key, first = starts[attrs["key"]]
                attrs = attrs | {"key": key, "block": first + attrs["block"]}
            try:
                values = [read() for read in readers]
                if op.kind == "own":
                    result = attrs["kernel"].run(node, values)
                else:
                    result = EAGER.compute(op, values, attrs, node.device)
            except MinigradError as error:
                raise located(error, node) from None
            self.bind(node, result if isinstance(result, tuple) else np.ascontiguousarray(result))

        return call

    # a run ----------------------------------------------------------------------------------------------------------

    def bind(self, node: Node, array: Any) -> None:
        """Let `array`, whose elements lie in order, be the value of a node."""
        if array.__class__ is tuple:
            self.arrays[node] = array
            return
        self.arrays[node] = array.reshape(-1)
        places = self.slots.get(node)
        if places:
            where = address(array)
            for table, index in places:
                table[index] = where

    def run(self, arrays: Sequence[Any], starts: Starts) -> list[Any]:
        """The results for these inputs, None for those that are stored in an input."""
        layout = self.layout
        copies = self._bind_inputs(arrays)
        results: list[Any] = [None] * len(layout.partition.outputs)
        for node, number in layout.results:
            result = results[number] = fresh(node)
            self.bind(node, result)
        for step in as_timed_steps(self.calls) if is_profiled() else self.steps:
            step(starts)
        for number, view in enumerate(layout.partition.outputs):
            result = results[number]
            if layout.direct.get(view.base) != number:
                results[number] = seen(self.arrays[view.base], view, view.shape).copy()
            elif view.base in layout.opaque:
                results[number] = self.arrays[view.base].reshape(view.shape)
            elif result is not None and result.shape != view.shape:
                results[number] = result.reshape(view.shape)
        for node in layout.passing:  # the caller's, not ours
            self.arrays.pop(node, None)
        del copies
        return results

    def _bind_inputs(self, arrays: Sequence[Any]) -> list[Any]:
        """Bind what has come in, where it is not what came in the last time; the answer are copies to keep alive."""
        copies = []
        for node, number, by_library in self.layout.arriving:
            array = arrays[number]
            last = self.last.get(node)
            known = last is not None and last() is array
            if known:
                if by_library:
                    self.arrays[node] = array.reshape(-1)
                continue
            self.last[node] = weakref.ref(array)
            if not array.flags.c_contiguous:
                self.last.pop(node)
                array = np.ascontiguousarray(array)
                copies.append(array)
            self.bind(node, array)
        return copies


def _is_product(node: Node) -> bool:
    """Whether NumPy can put the result where we want it: no library multiplies halves, or integers, in place."""
    return node.op is P.matmul and node.dtype.name in ("float32", "float64") and node.size > 0


def _number(value: Any) -> Any:
    """An operand that is no tensor."""
    return value


def _pieces(units: int, count: int, step: int) -> list[tuple[int, int]]:
    """`units` in about `count` ranges that begin at multiples of `step`."""
    length = -(-units // (count * step)) * step if units else 1
    return [(low, min(low + length, units)) for low in range(0, units, length)]


def address(array: Any) -> int:
    """Where the memory of an array begins."""
    return int(array.__array_interface__["data"][0])


def seen(flat: Any, view: View, shape: tuple[int, ...]) -> Any:
    """The elements that a view reads, of memory in order."""
    if flat.__class__ is tuple:
        return flat
    if view.in_order:
        return flat.reshape(shape)
    if not view.size:
        return np.empty(shape, flat.dtype)
    size = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, view.offset * size, [s * size for s in view.strides])


def fresh(node: Node) -> Any:
    """Memory for a result."""
    if node.size * node.dtype.itemsize >= POOLED:
        return node.device.pool.take(node.shape, node.dtype)
    return np.empty(node.shape, node.dtype)


def located(error: MinigradError, node: Node) -> MinigradError:
    """An error of a running program, with the line that made the node: the line that called it is known already."""
    if node.where is not None:
        error.add_note(f"while computing {node.name}, made at {show(node.where)}")
    return error
