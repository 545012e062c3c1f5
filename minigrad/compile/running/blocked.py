"""Runs a kernel in blocks of rows, together with the matrix products around it.

Threads share the matrices of the stack and, if no products of blocks add up, also the blocks of a matrix.  This
division depends on the shape only, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from ctypes import addressof
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...devices.threads import THREADS, in_blocks
from .plan import Blocked, Read
from .steps import aligned, can_share_products, on_one_thread

Unit = tuple[tuple[int, ...], int, int, int]  # a matrix by its index in the stack and its number, and a range of rows


class BlockedRun:
    """The step of a frame that runs a kernel in blocks.  The frame makes the readers, and a table to copy."""

    def __init__(self, step: Blocked, function: Callable[[int], object], reader: Any, table: Any) -> None:
        self.step, self.function, self.table, self.units = step, function, table, units_of(step)
        factors = (*step.into, *step.out)
        self.factors = [[reader(part) if isinstance(part, Read) else part for part in factor] for factor in factors]
        self.rows = [(i, p) for i, p in enumerate(step.launch.kernel.parameters) if p.role == "scratch"]
        self.idle: list[list[Any]] = []  # memory for a unit; there are as many as units at the same time
        shared = len(self.units) > 1 and can_share_products()  # else the threads of BLAS share the products
        self.alone = [on_one_thread()] if shared else []

    def run(self, starts: Any) -> None:
        """Run all units, by all threads."""
        factors = [[part() if callable(part) else part for part in factor] for factor in self.factors]
        with ExitStack() as stack:
            for before, after in self.alone:  # several threads of ours call OpenBLAS at the same time
                before.function(before.table)
                stack.callback(after.function, after.table)
            in_blocks(lambda first, _: self._unit(self.units[first], factors), len(self.units), 1)

    def _unit(self, unit: Unit, factors: list[list[Any]]) -> None:
        """One unit, block by block: the last block first, because it has all columns."""
        step, (at, matrix, low, high) = self.step, unit
        height, width = step.shape[-2:]
        own = [[part[at] if isinstance(part, np.ndarray) else part for part in factor] for factor in factors]
        into, out = own[: len(step.into)], own[len(step.into) :]
        try:
            memory = self.idle.pop()
        except IndexError:
            memory = [_memory((step.rows, width), dtype) for dtype in step.scratch]
            memory += [_memory((p.size,), p.dtype) for _, p in self.rows]
        table, count = type(self.table).from_buffer_copy(self.table), len(step.launch.kernel.parameters)
        for (parameter, _), row in zip(self.rows, memory[len(step.scratch) :]):
            table[parameter] = row.ctypes.data
        for start in range(low, high, step.rows)[::-1]:
            stop = min(start + step.rows, high)
            end = min(width, stop) if step.triangular else width
            held = [each[: stop - start, :end] for each in memory[: len(step.scratch)]]
            for left, right, number, _ in into:
                np.matmul(left[start:stop], right[:, :end], out=held[number])
            first = matrix * height + start  # row of all matrices: there, its values in scratch memory begin
            for parameter, number in step.given:
                table[parameter] = memory[number].ctypes.data - first * memory[number].strides[0]
            table[count], table[count + 1] = first, first + stop - start
            self.function(addressof(table))
            for left, right, result, turned in out:
                rows = held[left] if left.__class__ is int else left[start:stop, :end]
                if not turned:
                    np.matmul(rows, right[:end], out=result[start:stop])
                elif stop == high:
                    np.matmul(rows.T, right[start:stop], out=result)
                else:
                    result[:end] += np.matmul(rows.T, right[start:stop])
        self.idle.append(memory)


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
    """The bytes of the blocks of all threads, and of the products that they add."""
    added = [prod(factor.out.shape[-2:]) for factor in step.out if factor.turned and step.rows < step.shape[-2]]  # type: ignore[union-attr]
    block = sum([step.rows * step.shape[-1] * dtype.itemsize for dtype in step.scratch])
    return (block + sum(added) * step.scratch[0].itemsize) * min(THREADS.count, len(units_of(step)))


def _memory(shape: tuple[int, ...], dtype: Any) -> Any:
    return aligned(prod(shape) * dtype.itemsize).view(dtype).reshape(shape)
