"""Frames: the memory, the tables of addresses and the list of steps that one run of a plan needs.

A frame is used again by later runs.  Only some arrays change between calls: the inputs, the results, and the arrays
that libraries allocate.  Each run *binds* these: it writes their addresses into the tables of the kernels.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from ctypes import addressof, c_char
from functools import cache, cached_property, partial
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from ...core.clock import SHARED, LastWrite, buffer_of, written_since
from ...core.emit import EAGER
from ...core.primitive import P
from ...devices.stacks import multiplies, product
from ...devices.threads import THREADS, in_blocks
from ...support.errors import CompileError
from ..fusion.count import Count
from ..loops.ir import Kernel
from ..nodes.graph import Starts
from ..nodes.thresholds import PIECE_ELEMENTS, PIECES, POOLED_BYTES, UNINTERRUPTED_BYTES, WORTH_SHARING_BYTES
from ..nodes.view import row_major
from .plan import IN_PLACE, INPUT, LIBRARY, RESULT, SLOT, Blocked, Buffer, Call, Check, Launch, Plan, Read, Step
from .steps import (
    COPIES,
    JOINED,
    RUNNING,
    Matrix,
    Named,
    NativeStep,
    Product,
    Run,
    address,
    aligned,
    as_steps,
    can_share_products,
    copies_of,
    divided,
    in_one_call,
    is_profiled,
    multiplied,
    own_count,
    ranges,
    work_of,
)

Table = Any  # of addresses
Calls = Sequence[Sequence[Named]]  # those of a level run at the same time


class Layout:
    """What all frames of a plan bind before the steps, and return after them.

    Like kernels, the steps in `products` only need the addresses of their operands, and no arrays.
    """

    def __init__(self, plan: Plan, products: Collection[int] = ()) -> None:
        self.plan = plan
        outputs = [each for each in enumerate(plan.outputs) if self._is_finished_later(*each)]
        self.finishing = [(number, read, number in plan.copied) for number, read in outputs]
        arrays = {read.buffer for _, read, _ in self.finishing}  # the buffers that are used as arrays
        for number, step in enumerate(plan.steps):
            if not isinstance(step, Launch) and number not in products:
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
        read = {i for turn in plan.turns[: plan.early] for i in plan.uses(plan.steps[turn[0]])[0]}
        self.lasting = frozenset([plan.buffers[i].number for i in read if plan.buffers[i].lasting])
        self.passing = [i for i, buffer in numbered if i in arrays and buffer.kind != SLOT]

    @cached_property
    def copies(self) -> Count:
        """The cost of the copies of results at the end of a run."""
        return copies_of(self.plan)

    def _is_finished_later(self, number: int, read: Read) -> bool:
        """Whether a result is a copy, a library's array, or a view of a different shape or order."""
        buffer = self.plan.buffers[read.buffer]
        viewed = read.shape != buffer.shape or not self.plan.is_whole(read)
        other = buffer.kind == LIBRARY or (buffer.kind == RESULT and viewed)
        return other or number in self.plan.copied


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
        self.workers: Any = None  # those that share some of its kernels
        self.arrays: list[Any] = [None] * len(self.buffers)  # the values as arrays of one dimension
        # Where the address of each buffer is written: a table, an index, and an offset in bytes to add.
        self.slots: list[list[tuple[Table, int, int]]] = [[] for _ in self.buffers]
        self.kept_at = -1  # the time when what is kept between runs was computed; -1: never
        self.forget_inputs()
        for number, buffer in enumerate(self.buffers):
            if buffer.kind == SLOT:
                self.arrays[number] = self.memory[buffer.number][: buffer.nbytes].view(buffer.dtype)
        self.finishing = [(number, self._reader(read), copied) for number, read, copied in layout.finishing]
        made = [self._made(step, functions.get(number)) for number, step in enumerate(self.plan.steps)]
        self.native = {number: step for number, step in enumerate(made) if isinstance(step, NativeStep)}
        runs = [self._as_run(step) if isinstance(step, NativeStep) else step for step in made]
        named = [Named(step.name, run, partial(own_count, step)) for step, run in zip(self.plan.steps, runs)]
        calls = [[named[i] for i in turn] for turn in self.plan.turns]
        early = self.plan.early
        self.early_calls = calls[:early], self._joined(self.plan.turns[:early], calls[:early])
        self.calls = calls[early:], self._joined(self.plan.turns[early:], calls[early:])
        self.early, self.steps = as_steps(self.early_calls[1]), as_steps(self.calls[1])

    def _made(self, step: Step, made: Any) -> Run | NativeStep:
        """A step, from its function or its product."""
        if isinstance(step, Launch):
            return self._launch(step, made)
        if isinstance(step, Check):
            return self._check(step)
        if isinstance(step, Blocked):
            table = (ctypes.c_void_p * (len(step.launch.kernel.parameters) + 2))()
            self._fill(table, step.launch)
            return step.prepared(made, self._reader, table).run
        if made is not None:
            return self._multiplied(step, made)
        return self._product(step) if step.fills else self._library(step)

    def _joined(self, turns: Sequence[Sequence[int]], calls: Sequence[Sequence[Named]]) -> Calls:
        """The calls of some turns.  Neighbours in machine code are one call.  The work of a call is limited, so
        that Python can raise an interrupt between calls.
        """
        found: list[Sequence[Named] | tuple[int, ...]] = []
        work = 0.0
        for turn, named in zip(turns, calls):
            if len(turn) > 1 or turn[0] not in self.native:
                found.append(named)
                continue
            last = found[-1] if found else None
            if isinstance(last, tuple) and work < UNINTERRUPTED_BYTES:
                found[-1] = *last, turn[0]
            else:
                found.append((turn[0],))
                work = 0.0
            work += work_of(self.plan.steps[turn[0]])
        return [[self._in_one_call(each)] if isinstance(each, tuple) else each for each in found]

    def _in_one_call(self, numbers: Sequence[int]) -> Named:
        """Some steps in machine code as one."""
        steps = [self.plan.steps[number] for number in numbers]
        run = self._as_run(in_one_call([self.native[number] for number in numbers]))
        name = JOINED.join([step.name for step in steps])
        return Named(name, run, cache(lambda: sum(map(own_count, steps), Count())))

    def _as_run(self, step: NativeStep) -> Run:
        function, table = step.function, step.table
        self.keep.append(step)
        return lambda starts: function(table)

    def _check(self, check: Check) -> Run:
        """Refuse positions out of bounds, as array libraries do."""
        size, read = check.size, self._reader(check.read)

        unsigned = f"u{self.buffers[check.read.buffer].dtype.itemsize}"  # negative positions are large there

        def look(starts: Starts) -> None:
            positions = read()
            if not positions.size or positions.view(unsigned).max() < size:
                return
            outside = positions[(positions < -size) | (positions >= size)]
            if outside.size:
                from ..nodes.interpret import out_of_bounds

                raise out_of_bounds(outside[0], check)

        return look

    # kernels --------------------------------------------------------------------------------------------------------

    def _launch(self, launch: Launch, function: Any) -> Run | NativeStep:
        tables, made = self._tables(launch, function)
        for table in tables:
            self._fill(table, launch)
        return made

    def _fill(self, table: Table, launch: Launch) -> None:
        """Write the addresses of a kernel's buffers into a table."""
        for i, (number, offset) in enumerate(zip(launch.buffers, launch.offsets)):
            if number is not None:
                table[i] = self._address(number, offset, table, i)
        self.keep.append(table)

    def _tables(self, launch: Launch, function: Any) -> tuple[list[Table], Run | NativeStep]:
        """The arguments of a kernel, one table for each piece of its work, and the step that runs it on them.

        The tables have only the addresses of scratch memory so far.
        """
        kernel = launch.kernel
        tables = []
        for low, high in pieces_of(launch):
            table = self._table(kernel)
            table[len(kernel.parameters)], table[len(kernel.parameters) + 1] = low, high
            tables.append(table)
        return tables, self._entry(function, [ctypes.addressof(table) for table in tables])

    def _entry(self, function: Any, addresses: list[int]) -> Run | NativeStep:
        """The step that runs a function on the tables at these addresses, which threads share if there are several."""
        if not hasattr(function, "engine"):  # not compiled by LLVM
            if len(addresses) == 1:
                return lambda starts: function(addresses[0])
            return lambda starts: in_blocks(lambda first, _: function(addresses[first]), len(addresses), 1)
        if len(addresses) == 1:
            return NativeStep(function, addresses[0])
        from ..codegen.workers import WORKERS, share_function

        job, self.workers = WORKERS.job(function, addresses), WORKERS
        return NativeStep(share_function(), ctypes.addressof(job), job)

    def _table(self, kernel: Kernel) -> Table:
        """A table with the addresses of a kernel's scratch memory."""
        table = (ctypes.c_void_p * (len(kernel.parameters) + 2))()
        for i, parameter in enumerate(kernel.parameters):
            if parameter.role == "scratch":
                table[i] = self._kept(parameter.size * parameter.dtype.itemsize)
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

    def _multiplied(self, call: Call, product: Product) -> Run | NativeStep:
        """A product in machine code, in pieces if threads share it.

        Blocks and stacks give the same bits for any number of threads; the rounding in a single matrix may differ, as
        it does when BLAS divides the matrix itself.  Each thread gets one piece, because BLAS copies both factors of
        a piece (`benchmarks/compiled.py`: the MLP with a batch of 512).
        """
        blocks = divided(product)
        if not (is_shared(call) and can_share_products()):
            return multiplied(blocks, self._write_operand)
        pieces = [piece for block in blocks for piece in block.pieces(THREADS.count, PIECE_ELEMENTS)]
        steps = [multiplied([piece], self._write_operand) for piece in pieces]
        self.keep += steps
        return self._entry(steps[0].function, [step.table for step in steps])

    def _write_operand(self, matrix: Matrix, table: Table, index: int) -> None:
        table[index] = self._address(matrix.buffer, matrix.offset, table, index)

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
        if xp is np and multiplies(x, y, self.buffers[call.out].dtype):
            return lambda starts: product(left(), right(), out())
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
        readers: list[Any] = [self._reader(r) if isinstance(r, Read) else lambda number=r: number for r in call.reads]
        from ..fusion.tally import tallied
        from ..nodes.interpret import failed, started

        op, attrs, out, number = call.op, call.attrs, self.buffers[call.out], call.out
        fixed: Any = self.arrays[number].reshape(out.shape) if out.kind == SLOT else None
        put = op is P.put and out.kind in (SLOT, IN_PLACE)

        def run(starts: Starts) -> None:
            given = started(attrs, starts)
            values = [read() for read in readers]
            place = self.arrays[number].reshape(out.shape) if out.kind == IN_PLACE else fixed
            try:
                if put:
                    if not call.in_place:
                        place[...] = values[0]
                    values[0], given = place, {**given, "out": place}
                if op.kind == "own":
                    result = given["kernel"].run(out, values, given)
                else:
                    result = self.compute(op, values, given, out.device)
            except Exception as error:
                raise failed(error, op, attrs, out.device, call.where, values) from None
            _check_result(out, result)
            if place is None:
                self.bind(number, result if isinstance(result, tuple) else self.library.ascontiguousarray(result))
            elif result is not place:
                place[...] = result.reshape(out.shape)  # its own memory is free for the next call

        return tallied(attrs, run)

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

    def run(self, arrays: list[Any], starts: Starts) -> list[Any]:
        """The results for these inputs, None for results that are stored in an input."""
        if self.workers is not None:
            self.workers.ready()
        try:
            self._bind_inputs(arrays)
            if self.early and self.kept_at != LastWrite.time:
                self._run_early([arrays[number] for number in self.layout.lasting], starts)
            results = self._bind_results()
            self._run_steps(arrays, results, starts)
            if self.finishing:
                self._finish(results)
            return results
        finally:
            for number in self.layout.passing:  # they belong to the caller
                self.arrays[number] = None

    def _run_steps(self, arrays: Sequence[Any], results: list[Any], starts: Starts) -> None:
        for step in self._timed(*self.calls) if is_profiled() else self.steps:
            step(starts)

    def _timed(self, apart: Calls, joined: Calls) -> Iterable[Run]:
        """The steps, each of which is noted in the active profile."""
        from .profiler import as_timed_steps

        return as_timed_steps(apart if RUNNING.get().apart else joined)

    def _finish(self, results: list[Any]) -> None:
        """Copy or view what the results share with other memory."""
        begin = perf_counter()
        for number, read, copied in self.finishing:
            results[number] = read().copy() if copied else read()
        if is_profiled():
            from .profiler import note

            end = perf_counter()
            if self.plan.copied:
                note(COPIES, begin, self.layout.copies, end)

    def _run_early(self, read: Sequence[Any], starts: Starts) -> None:
        """Compute what is kept between runs, if one of the arrays that it is computed from may have changed."""
        now = LastWrite.time
        shared = any(id(buffer_of(array)) in SHARED for array in read)
        if shared or self.kept_at < 0 or any(written_since(array, self.kept_at) for array in read):
            for step in self._timed(*self.early_calls) if is_profiled() else self.early:
                step(starts)
        self.kept_at = -1 if shared else now

    def _bind_results(self) -> list[Any]:
        """Allocate and bind the results, except those that are stored in an input or that a library allocates."""
        results: list[Any] = [None] * len(self.plan.outputs)
        for buffer, number, take, shape, dtype, as_array in self.layout.results:
            result = results[number] = take(shape, dtype)
            if as_array:
                self.arrays[buffer] = result.reshape(-1)
            where = addressof(c_char.from_buffer(result))
            for table, index, further in self.slots[buffer]:
                table[index] = where + further
        return results

    def _bind_inputs(self, arrays: list[Any]) -> None:
        """Bind the inputs that differ from those of the last run.  A copy that is read in place of one replaces it."""
        for number, last in enumerate(self.last):
            if last() is not arrays[number]:
                arrays[number] = self._bind_input(number, arrays[number])
        for buffer, number in self.layout.looked_at:
            self.arrays[buffer] = arrays[number].reshape(-1)

    def forget_inputs(self) -> None:
        """Bind all inputs in the next run."""
        self.last: list[Callable[[], Any]] = [_nothing] * len(self.layout.arriving)  # weak references to the last ones
        self.kept_at = -1

    def _bind_input(self, number: int, array: Any) -> Any:
        if number in self.layout.lasting:
            self.kept_at = -1
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


def _check_result(buffer: Buffer, result: Any) -> None:
    """Refuse a result of a library that has a different size or dtype: kernels read as much memory as the plan says."""
    if result.__class__ is tuple:
        fits = [(part.shape, part.dtype) for part in result] == list(zip(buffer.shape, buffer.dtype))
    else:
        fits = result.size == buffer.size and result.dtype == buffer.dtype
    if not fits:
        raise CompileError(f"the kernel of {buffer.name} returned another shape or dtype than that of its node")


def pieces_of(launch: Launch) -> list[tuple[int, int]]:
    """The ranges of a kernel's units for threads to share; a single range if the work is too small."""
    kernel, count = launch.kernel, PIECES * THREADS.count if is_shared(launch) else 1
    return ranges(kernel.units, count, PIECE_ELEMENTS if kernel.parallel == "elements" else 1)


def is_shared(step: Step) -> bool:
    """Whether threads share the work of a step."""
    return work_of(step) >= WORTH_SHARING_BYTES and THREADS.count > 1


def memory_for(buffer: Buffer) -> Callable[[tuple[int, ...], Any], Any]:
    """The function that allocates memory for a result of this size."""
    if buffer.nbytes >= POOLED_BYTES:
        return buffer.device.pool.take  # type: ignore[no-any-return]
    return np.empty


def _nothing() -> None:
    """A weak reference to nothing."""
