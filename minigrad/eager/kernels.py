"""The functions of the compiler that devices call in eager mode: see `devices.compiled`.

Elementwise operations that NumPy computes number by number are compiled here.  `stack_loops` combines rows at
positions, and computes with stacks of matrices; `reduction_loops` reduces, and `row_loops` computes on rows
that are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from functools import cache
from typing import Any

import numpy as np

from ..compile.codegen.native import compile_kernels
from ..compile.codegen.native import is_available as is_available
from ..compile.codegen.workers import WORKERS
from ..compile.fusion.fuse import fuse
from ..compile.loops.ir import BOOL, Kernel
from ..compile.lowering.lower import lower
from ..compile.nodes.graph import Graph, Source, node_like
from ..compile.nodes.thresholds import SHORT_ROW
from ..compile.running.targets import is_native
from ..core.mode import Mode
from ..core.primitive import P, Primitive
from ..devices import CPU
from ..devices.compiled import Compiled
from ..support.errors import CompileError
from .reduction_loops import reduce_middle as reduce_middle
from .row_loops import in_rows
from .stack_loops import combine_rows as combine_rows
from .stack_loops import on_stacks as on_stacks
from .stack_loops import run_on

SIZE = 1 << 16  # in the graph of the kernel, which computes any number of elements


@cache
def machine_code(op: Primitive, kinds: tuple[Any, ...], dtype: Any) -> Compiled | None:
    """A function that computes an elementwise operation on arrays of these dtypes; a dtype is None for a number.

    None if there is no machine code.
    """
    kernel = kernel_of(op, kinds, dtype)
    function = None if kernel is None else _compiled(kernel)
    if function is None:
        return None
    given = next(kind for kind in kinds if kind is not None and kind.kind == "f")

    def compute(values: Sequence[Any], out: Any) -> None:
        arrays = [np.asarray(v, given) if kind is None else v for v, kind in zip(values, kinds)]
        addresses = [array.ctypes.data for array in (*arrays, out)]
        run_on(function, addresses, out.size)

    return compute


def function_of_rows(
    op: Primitive, kinds: tuple[Any, ...], dtype: Any, sizes: Sequence[int], steps: Sequence[tuple[int, ...]]
) -> Callable[[Sequence[int]], object] | None:
    """A function that takes the addresses of arrays and computes an elementwise operation on matrices of rows.

    `sizes`: the number of matrices, rows and columns.  `steps`: for each array, and the result, the elements between
    neighbours along these axes; along the last one, one or none.
    """
    outer, rows, columns = sizes
    short = columns if columns <= SHORT_ROW else 0
    function = _in_rows(op, kinds, dtype, tuple([step[2] > 0 for step in steps]), short)
    if function is None:
        return None
    fixed = len(kinds) + 4
    last = 0, outer, rows, columns, *[size for step in steps for size in step[:2]]
    kind = c_int64 * (fixed - 2 + len(last))

    def run(addresses: Sequence[int]) -> None:
        table = kind(0, *addresses, *last)
        table[0] = (address := addressof(table)) + 8 * fixed
        WORKERS.call(function, address)

    return run


@cache
def _in_rows(op: Primitive, kinds: tuple[Any, ...], dtype: Any, flat: tuple[bool, ...], columns: int) -> Any:
    kernel = kernel_of(op, kinds, dtype)
    return None if kernel is None else _compiled(in_rows(kernel, flat, columns))


def _compiled(kernel: Kernel) -> Any:
    """The function of a kernel; None if there is no machine code for it."""
    if not is_native(kernel):
        return None
    try:
        return compile_kernels([kernel])[0]
    except (CompileError, RuntimeError):  # without LLVM, or an error of llvmlite
        return None


def kernel_of(op: Primitive, kinds: tuple[Any, ...], dtype: Any) -> Kernel | None:
    """The loop of an operation on floats; None if an operand has a different dtype than its operation."""
    floats = {kind for kind in kinds if kind is not None and kind.kind == "f"}
    if op.expr is None or len(floats) != 1:
        return None
    (given,) = floats
    conditions = [op.promotes is not None and op.name_of(i) not in op.promotes for i in range(len(kinds))]
    if not all(kind in (None, given) or (other and kind == BOOL) for kind, other in zip(kinds, conditions)):
        return None
    shapes = [(SIZE,) if kind is not None else () for kind in kinds]
    inputs = [Source("tensor", None, shape, kind or given, CPU, Mode()) for shape, kind in zip(shapes, kinds)]
    node = node_like(op, tuple(inputs), {"dtype": dtype} if op is P.astype else {}, like=inputs[0])
    partition = fuse(Graph(inputs, [node]))
    return lower(partition, partition.groups[0]).kernel if node.dtype == dtype and partition.kernels else None
