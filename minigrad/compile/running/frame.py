"""Frames: the memory, the tables of addresses and the list of steps that one run of a plan needs.

A frame is used again by later runs.  Only some arrays change between calls: the inputs, the results, and the arrays
that libraries allocate.  Each run *binds* these: it writes their addresses into the tables of the kernels.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, c_char
from functools import partial
from math import prod
from operator import is_
from typing import Any

import numpy as np

from ...core.emit import EAGER
from ...devices.threads import THREADS, in_blocks
from ...support.errors import IndexingError, MinigradError
from ..loops.ir import Kernel
from ..nodes.interpret import Starts, failed, located, started
from ..nodes.view import row_major
from .blocked import BlockedRun
from .executors import WORTH_SHARING, Named, Run, as_steps, as_timed_steps, is_profiled
from .memory import aligned
from .order import work_of
from .plan import IN_PLACE, INPUT, LIBRARY, RESULT, SLOT, Blocked, Buffer, Call, Check, Launch, Plan, Read, Step

PIECES = 2  # of the work for each thread, so that a busy thread causes little delay
STEP = 16  # elements: pieces begin where vectors do
POOLED = 1 << 16  # bytes: larger results come from a pool

Table = Any  # of addresses


class Layout:
    """What all frames of a plan bind before the steps, and return after them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        outputs = [each for each in enumerate(plan.outputs) if self._is_finished_later(*each)]
        self.finishing = [(number, read, plan.is_copied(number)) for number, read in outputs]
        arrays = {read.buffer for _, read, _ in self.finishing}  # the buffers that are used as arrays
        for step in plan.steps:
            if not isinstance(step, Launch):
                arrays.update([number for numbers in plan.uses(step) for number in numbers])
        numbered = [*enumerate(plan.buffers)]
        self.results = [
            (i, b.number, memory_for(b), b.shape, b.dtype, i in arrays) for i, b in numbered if b.kind == RESULT
        ]
        self.arriving: list[list[int]] = [[] for _ in plan.inputs]  # the buffers that lie in each input
        for i, buffer in numbered:
            if buffer.kind in (INPUT, IN_PLACE):
                self.arriving[buffer.number].append(i)
        self.looked_at = [(i, number) for number, there in enumerate(self.arriving) for i in there if i in arrays]
        self.passing = [i for i, buffer in numbered if i in arrays and buffer.kind != SLOT]

    def _is_finished_later(self, number: int, read: Read) -> bool:
        """Whether a result is a copy, a library's array, or a view of another shape."""
        buffer = self.plan.buffers[read.buffer]
        other = buffer.kind == LIBRARY or (buffer.kind == RESULT and read.shape != buffer.shape)
        return other or self.plan.is_copied(number)


def address(array: Any) -> int:
    """Where the memory of an array begins."""
    if array.flags.writeable and array.size:
        return addressof(c_char.from_buffer(array))  # twice as fast
    return int(array.__array_interface__["data"][0])


def strided(flat: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of an array, from an offset in bytes."""
    return np.ndarray(shape, flat.dtype, flat, offset, strides)


class Frame:
    """Everything that one run at a time needs.  Frames of other devices override the first attributes."""

    library: Any = np  # the array library
    new_memory = staticmethod(aligned)
    address = staticmethod(address)
    strided = staticmethod(strided)
    compute = staticmethod(EAGER.compute)

    def __init__(self, layout: Layout, functions: Mapping[int, Any]) -> None:
        self.layout, self.plan, self.buffers = layout, layout.plan, layout.plan.buffers
        self.memory = [self.new_memory(size) for size in self.plan.slots]
        self.keep: list[Any] = []  # memory that only addresses refer to
        self.arrays: list[Any] = [None] * len(self.buffers)  # the values as arrays of one dimension
        # Where the address of each buffer is written: a table, an index, and an offset in bytes to add.
        self.slots: list[list[tuple[Table, int, int]]] = [[] for _ in self.buffers]
        self.forget_inputs()
        for number, buffer in enumerate(self.buffers):
            if buffer.kind == SLOT:
                self.arrays[number] = self.memory[buffer.number][: buffer.nbytes].view(buffer.dtype)
        self.finishing = [(number, self._reader(read), copied) for number, read, copied in layout.finishing]
        runs = [self._run_of(step, functions.get(number)) for number, step in enumerate(self.plan.steps)]
        self.calls = [[Named(self.plan.steps[i].name, runs[i]) for i in turn] for turn in self.plan.turns]
        self.steps = as_steps(self.calls)

    def _run_of(self, step: Step, function: Any) -> Run:
        if isinstance(step, Launch):
            return self._launch(step, function)
        if isinstance(step, Check):
            return self._check(step)
        if isinstance(step, Blocked):
            return BlockedRun(self, step, function).run
        return self._product(step) if step.fills else self._library(step)

    def _check(self, check: Check) -> Run:
        """Refuse positions out of bounds, as array libraries do."""
        size, read = check.size, self._reader(check.read)

        def look(starts: Starts) -> None:
            positions = read()
            if positions.size and (positions.min() < -size or positions.max() >= size):
                raise out_of_bounds(positions[(positions < -size) | (positions >= size)].flat[0], check)

        return look

    # kernels --------------------------------------------------------------------------------------------------------

    def _launch(self, launch: Launch, function: Any) -> Run:
        tables, run = self._tables(launch, function)
        for table in tables:
            self._fill(table, launch)
        return run

    def _fill(self, table: Table, launch: Launch) -> None:
        """Write the addresses of a kernel's buffers into a table."""
        for i, (number, offset) in enumerate(zip(launch.buffers, launch.offsets)):
            if number is not None:
                table[i] = self._address(number, offset, table, i)
        self.keep.append(table)

    def _tables(self, launch: Launch, function: Any) -> tuple[list[Table], Run]:
        """The arguments of a kernel, one table for each piece of its work, and the step that runs it on them.

        The tables have only the addresses of scratch memory so far.
        """
        kernel = launch.kernel
        tables = []
        for low, high in pieces_of(launch):
            table = self._table(kernel)
            table[len(kernel.parameters)], table[len(kernel.parameters) + 1] = low, high
            tables.append(table)
        addresses = [ctypes.addressof(table) for table in tables]
        if len(addresses) == 1:
            only = addresses[0]
            return tables, lambda starts: function(only)
        return tables, lambda starts: in_blocks(lambda first, _: function(addresses[first]), len(addresses), 1)

    def _table(self, kernel: Kernel) -> Table:
        """A table with the addresses of a kernel's scratch memory."""
        table = (ctypes.c_void_p * (len(kernel.parameters) + 2))()
        for i, parameter in enumerate(kernel.parameters):
            if parameter.role == "scratch":
                table[i] = self._kept(parameter.size * parameter.dtype.itemsize)
        return table

    def table_for(self, launch: Launch) -> Table:
        """A table of a kernel for a range that changes."""
        table = self._table(launch.kernel)
        self._fill(table, launch)
        return table

    def _kept(self, size: int) -> int:
        """The address of new memory that the frame keeps."""
        self.keep.append(self.new_memory(size))
        return self.address(self.keep[-1])

    def _address(self, number: int, offset: int, table: Table, index: int) -> int | None:
        """The address of an element of a buffer; None if a run binds it."""
        buffer = self.buffers[number]
        further = offset * buffer.dtype.itemsize
        if buffer.kind == SLOT:
            return self.address(self.arrays[number]) + further
        self.slots[number].append((table, index, further))
        return None

    # libraries ------------------------------------------------------------------------------------------------------

    def _product(self, call: Call) -> Callable[[Starts], object]:
        xp, shape = self.library, self.buffers[call.out].shape
        left, right, out = self._operands(call)
        x, y = [read.shape for read in call.reads]
        if len(y) == 2 and len(x) == 2:
            return lambda starts: xp.dot(left(), right(), out())
        if len(y) == 2:
            rows = prod(shape[:-1])

            def tall(starts: Starts) -> object:
                return xp.dot(left().reshape(rows, x[-1]), right(), out().reshape(rows, shape[-1]))

            return tall
        return lambda starts: xp.matmul(left(), right(), out=out())

    def _operands(self, call: Call) -> list[Callable[[], Any]]:
        """Functions that return the factors of a product, and the memory for it."""
        shape = self.buffers[call.out].shape
        return [self._reader(read) for read in (*call.reads, Read(call.out, 0, shape, row_major(shape)))]

    def _reader(self, read: Read) -> Callable[[], Any]:
        """A function that returns an operand of a library as an array, which is made once if its memory is fixed."""
        number, shape, arrays, buffer = read.buffer, read.shape, self.arrays, self.buffers[read.buffer]
        if isinstance(buffer.dtype, tuple):
            return lambda: arrays[number]
        if self.plan.is_whole(read):

            def seen() -> Any:
                return arrays[number].reshape(shape)

        elif not read.size:
            empty = self.library.empty(shape, buffer.dtype)
            return lambda: empty
        else:
            size = buffer.dtype.itemsize
            offset, strides = read.offset * size, tuple([stride * size for stride in read.strides])

            def seen() -> Any:
                return self.strided(arrays[number], offset, shape, strides)

        if buffer.kind != SLOT:
            return seen
        fixed = seen()
        return lambda: fixed

    def _library(self, call: Call) -> Callable[[Starts], object]:
        readers = [self._reader(r) if isinstance(r, Read) else partial(_number, r) for r in call.reads]
        op, attrs, out, number = call.op, call.attrs, self.buffers[call.out], call.out

        def run(starts: Starts) -> None:
            given = started(attrs, starts)
            values = [read() for read in readers]
            try:
                if op.kind == "own":
                    result = given["kernel"].run(out, values)
                else:
                    result = self.compute(op, values, given, out.device)
            except Exception as error:
                raise failed(error, op, attrs, out.device, call.where, values) from None
            self.bind(number, result if isinstance(result, tuple) else self.library.ascontiguousarray(result))

        return run

    # a run ----------------------------------------------------------------------------------------------------------

    def bind(self, number: int, array: Any) -> None:
        """Make `array`, which is contiguous, the value of a buffer."""
        if array.__class__ is tuple:
            self.arrays[number] = array
            return
        self.arrays[number] = array.reshape(-1)
        self._write_address(number, self.address(array))

    def _write_address(self, number: int, where: int) -> None:
        for table, index, further in self.slots[number]:
            table[index] = where + further

    def run(self, arrays: Sequence[Any], starts: Starts) -> list[Any]:
        """The results for these inputs, None for results that are stored in an input."""
        try:
            arrays = self._bind_inputs(arrays)
            results = self._bind_results()
            self._run_steps(arrays, results, starts)
            for number, read, copied in self.finishing:
                results[number] = read().copy() if copied else read()
            return results
        finally:
            for number in self.layout.passing:  # they belong to the caller
                self.arrays[number] = None

    def _run_steps(self, arrays: Sequence[Any], results: list[Any], starts: Starts) -> None:
        for step in as_timed_steps(self.calls) if is_profiled() else self.steps:
            step(starts)

    def _bind_results(self) -> list[Any]:
        """Allocate and bind the results, except those that are stored in an input or that a library allocates."""
        results: list[Any] = [None] * len(self.plan.outputs)
        for buffer, number, take, shape, dtype, as_array in self.layout.results:
            result = results[number] = take(shape, dtype)
            if as_array:
                self.arrays[buffer] = result.reshape(-1)
            self._write_address(buffer, addressof(c_char.from_buffer(result)))
        return results

    def _bind_inputs(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Bind the inputs that differ from those of the last run.  The caller keeps the returned arrays alive."""
        if not all(map(is_, arrays, [last() for last in self.last])):
            arrays = [self._bind_input(number, array) for number, array in enumerate(arrays)]
        for buffer, number in self.layout.looked_at:
            self.arrays[buffer] = arrays[number].reshape(-1)
        return arrays

    def forget_inputs(self) -> None:
        """Bind all inputs in the next run."""
        self.last: list[Callable[[], Any]] = [_nothing] * len(self.layout.arriving)  # weak references to the last ones

    def _bind_input(self, number: int, array: Any) -> Any:
        if self.last[number]() is array:
            return array
        self.last[number] = _nothing  # until all addresses are written, because an interrupt may come at any time
        given = array
        if not array.flags.c_contiguous:
            array = self.library.ascontiguousarray(array)
        where = self.address(array)
        for buffer in self.layout.arriving[number]:
            self._write_address(buffer, where)
        if array is given:
            self.last[number] = weakref.ref(array)
        return array


def out_of_bounds(index: Any, check: Check, hint: str | None = None) -> MinigradError:
    """The error for an index that is not a position, with the line that uses it."""
    size = check.size
    expect = f"integers from {-size} to {size - 1}"
    error = IndexingError(f"index {index} is out of bounds in a dimension of {size}", expect=expect, hint=hint)
    return located(error, check.op, check.where)


def _number(value: Any) -> Any:
    """An operand that is a number."""
    return value


def pieces_of(launch: Launch) -> list[tuple[int, int]]:
    """The ranges of a kernel's units for threads to share; a single range if the work is too small."""
    kernel = launch.kernel
    shared = work_of(launch) >= WORTH_SHARING and THREADS.count > 1
    return _pieces(kernel.units, PIECES * THREADS.count if shared else 1, STEP if kernel.parallel == "elements" else 1)


def _pieces(units: int, count: int, step: int) -> list[tuple[int, int]]:
    """`units` in about `count` ranges that begin at multiples of `step`."""
    length = -(-units // (count * step)) * step if units else 1
    return [(low, min(low + length, units)) for low in range(0, units, length)]


def memory_for(buffer: Buffer) -> Callable[[tuple[int, ...], Any], Any]:
    """The function that allocates memory for a result of this size."""
    if buffer.nbytes >= POOLED:
        return buffer.device.pool.take  # type: ignore[no-any-return]
    return np.empty


def _nothing() -> None:
    """A weak reference to nothing."""
