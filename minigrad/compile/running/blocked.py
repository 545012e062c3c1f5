"""Runs a kernel in blocks of rows, together with the matrix products around it.

Threads share the matrices of the stack and, if no products of blocks add up, also the blocks of a matrix.  This
division depends on the shape only, so results do not depend on the number of threads.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...devices.threads import THREADS, in_blocks
from .memory import aligned
from .native_steps import can_share_products, on_one_thread
from .plan import Blocked, Launch, Read

Reader = Callable[[Read], Callable[[], Any]]  # makes a function that returns an operand as an array
Tables = Callable[[Launch], Any]  # makes a table of a kernel for a range that changes
Unit = tuple[tuple[int, ...], int, int, int]  # a matrix by its index in the stack and its number, and a range of rows


class BlockedRun:
    """The step of a frame that runs a kernel in blocks; the frame makes its readers and tables."""

    def __init__(self, step: Blocked, function: Callable[[int], object], reader: Reader, tables: Tables) -> None:
        self.step, self.function, self.units = step, function, units_of(step)
        self.height, self.width = step.shape[-2:]
        self.read = [[_part(part, reader) for part in (f.left, f.right, f.out)] for f in (*step.into, *step.out)]
        in_machine_code = hasattr(function, "engine")
        self.alone = [on_one_thread()] if in_machine_code and can_share_products() else []
        self.lanes = [_Lane(step, tables(step.launch)) for _ in range(min(THREADS.count, len(self.units)))]

    def run(self, starts: Any) -> None:
        """Run all units, by all threads."""
        arrays = [[read() for read in readers] for readers in self.read]
        if self.function is self.step.launch.by_nodes:
            self._whole(arrays)
            return
        waiting = deque(self.units)

        def work(lane: int, _: int) -> None:
            while True:
                try:
                    unit = waiting.popleft()
                except IndexError:
                    return
                self._unit(self.lanes[lane], unit, arrays)

        if len(self.units) == 1:  # the threads of BLAS share its products
            work(0, 1)
            return
        with ExitStack() as stack:
            for before, after in self.alone:  # several threads of ours call OpenBLAS at the same time
                before.function(before.table)
                stack.callback(after.function, after.table)
            in_blocks(work, len(self.lanes), 1)

    def _whole(self, arrays: list[list[Any]]) -> None:
        """One block of all rows, because NumPy runs the kernel."""
        step, lane = self.step, _Lane(self.step, self.lanes[0].table, self.step.shape)
        into, out = arrays[: len(step.into)], arrays[len(step.into) :]
        for left, right, number in into:
            np.matmul(left, right, out=lane.scratch[number])
        self._kernel(lane, 0, prod(step.shape[:-1]))
        for factor, (left, right, result) in zip(step.out, out):
            matrix = lane.scratch[left] if left.__class__ is int else left
            np.matmul(np.swapaxes(matrix, -1, -2) if factor.turned else matrix, right, out=result)

    def _unit(self, lane: _Lane, unit: Unit, arrays: list[list[Any]]) -> None:
        """One unit, block by block: the last block first, because it has all columns."""
        step, (at, matrix, low, high) = self.step, unit
        factors: Any = [[each if each.__class__ is int else each[at] for each in parts] for parts in arrays]
        into, out = factors[: len(step.into)], factors[len(step.into) :]
        for start in range(low, high, step.rows)[::-1]:
            stop = min(start + step.rows, high)
            end = min(self.width, stop) if step.triangular else self.width
            held = [each[: stop - start, :end] for each in lane.scratch]
            for left, right, number in into:
                np.matmul(left[start:stop], right[:, :end], out=held[number])
            self._kernel(lane, matrix * self.height + start, matrix * self.height + stop)
            for factor, total, (left, right, result) in zip(step.out, lane.totals, out):
                rows = held[left] if left.__class__ is int else left[start:stop, :end]
                if not factor.turned:
                    np.matmul(rows, right[:end], out=result[start:stop])
                elif stop == high:
                    np.matmul(rows.T, right[start:stop], out=result)
                else:
                    result[:end] += np.matmul(rows.T, right[start:stop], out=total[:end])

    def _kernel(self, lane: _Lane, low: int, high: int) -> None:
        """Run the kernel on rows of all matrices, where its values in scratch memory begin at row `low`."""
        table, count = lane.table, len(self.step.launch.kernel.parameters)
        for parameter, number in self.step.given:
            table[parameter] = lane.addresses[number] - low * lane.scratch[number].strides[0]
        table[count], table[count + 1] = low, high
        self.function(ctypes.addressof(table))


class _Lane:
    """What one thread needs: the arguments of the kernel, and memory for a block and for products that are added."""

    def __init__(self, step: Blocked, table: Any, shape: Sequence[int] = ()) -> None:
        self.table = table
        self.scratch = [_memory(shape or (step.rows, step.shape[-1]), dtype) for dtype in step.scratch]
        self.addresses = [each.ctypes.data for each in self.scratch]
        self.totals = [_total_memory(step, factor) for factor in step.out]


def units_of(step: Blocked) -> list[Unit]:
    """The work that threads share."""
    *stack, height, _ = step.shape
    length = height if any(factor.turned for factor in step.out) else step.rows
    rows = [(low, min(low + length, height)) for low in range(0, height, length)]
    matrices = enumerate(product(*map(range, stack)))
    return [(at, number, low, high) for number, at in matrices for low, high in rows]


def calls_of(step: Blocked) -> int:
    """How many times a run calls the kernel, and the library for products and for the sums of products."""
    blocks = [len(range(low, high, step.rows)) for _, _, low, high in units_of(step)]
    sums = sum([factor.turned for factor in step.out])
    return sum([each * (1 + len(step.into) + len(step.out)) + (each - 1) * sums for each in blocks])


def scratch_bytes(step: Blocked) -> int:
    """The bytes of scratch memory of all threads."""
    totals = sum([prod(_total(step, factor)) * step.scratch[0].itemsize for factor in step.out])
    block = sum([step.rows * step.shape[-1] * dtype.itemsize for dtype in step.scratch])
    return (block + totals) * min(THREADS.count, len(units_of(step)))


def _total(step: Blocked, factor: Any) -> Sequence[int]:
    """The shape of a product that is added to the products of other blocks."""
    several = factor.turned and step.rows < step.shape[-2]
    return factor.out.shape[-2:] if several else (0, 0)  # type: ignore[no-any-return]


def _total_memory(step: Blocked, factor: Any) -> Any:
    """Memory for a product that is added, in the same order as the sum."""
    shape = _total(step, factor)
    if factor.out.strides[-1] == 1:
        return _memory(shape, step.scratch[0])
    return _memory(shape[::-1], step.scratch[0]).T


def _part(part: Read | int, reader: Reader) -> Callable[[], Any]:
    return reader(part) if isinstance(part, Read) else lambda: part


def _memory(shape: Sequence[int], dtype: Any) -> Any:
    return aligned(prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
