"""The functions of the compiler that devices call in eager mode: see `devices.compiled`.

Elementwise operations that NumPy computes number by number are compiled here.  `codegen.for_eager` adds rows, and
computes with stacks of matrices, `codegen.for_eager_reductions` reduces.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..core.primitive import Primitive
from ..devices.compiled import Compiled
from ..support.errors import CompileError
from .codegen.for_eager import add_rows as add_rows
from .codegen.for_eager import on_stacks as on_stacks
from .codegen.for_eager import run_on
from .codegen.for_eager_reductions import reduce_middle as reduce_middle
from .codegen.native import compile_kernels
from .codegen.native import is_available as is_available
from .loops.ir import BOOL, For, Kernel, Let, Parameter, Store
from .loops.operations import OPERATIONS
from .loops.scalar import Done, Given, steps_of, typed
from .running.backends import is_native

SIZE = 1 << 16  # in the declaration of the kernel; it computes any number of elements


@cache
def machine_code(op: Primitive, kinds: tuple[Any, ...], dtype: Any) -> Compiled | None:
    """A function that computes an elementwise operation on arrays of these dtypes; a dtype is None for a number.

    None if there is no machine code.
    """
    kernel = kernel_of(op, kinds, dtype)
    if kernel is None or not is_native(kernel):
        return None
    try:
        function = compile_kernels([kernel])[0].function
    except (CompileError, RuntimeError):  # without LLVM, or an error of llvmlite
        return None
    given = next(kind for kind in kinds if kind is not None and kind.kind == "f")

    def compute(values: Sequence[Any], out: Any) -> None:
        arrays = [np.asarray(v, given) if kind is None else v for v, kind in zip(values, kinds)]
        addresses = [array.ctypes.data for array in (*arrays, out)]
        run_on(function, addresses, 0, out.size)

    return compute


def kernel_of(op: Primitive, kinds: tuple[Any, ...], dtype: Any) -> Kernel | None:
    """The loop of an operation on floats; None if an operand has another dtype than its operation."""
    floats = [kind for kind in kinds if kind is not None and kind.kind == "f"]
    if op.expr is None or len(set(floats)) != 1:
        return None
    given = floats[0]
    names, types = [f"x{i}" for i in range(len(kinds))], [kind or given for kind in kinds]
    body = [
        Let(name, "load", (f"of_{name}", "i" if kind is not None else 0), each)
        for name, kind, each in zip(names, kinds, types)
    ]
    done: list[tuple[str, Any]] = []
    for number, (operation, operands) in enumerate(steps_of(op)):
        args: list[Any] = []
        for place, operand in enumerate(operands):
            known = (names[operand.input], types[operand.input]) if isinstance(operand, Given) else None
            known = done[operand.step] if isinstance(operand, Done) else known
            if known is not None and known[1] != (BOOL if operation == "select" and place == 0 else given):
                return None
            args.append(typed(operand, given) if known is None else known[0])
        gives = {"bool": BOOL}.get(OPERATIONS[operation].gives, dtype if operation == "cast" else given)
        done.append((f"v{number}", gives))
        body.append(Let(f"v{number}", operation, tuple(args), gives))
    if done[-1][1] != dtype:
        return None
    parameters = [Parameter(f"of_{name}", each, SIZE, "in") for name, each in zip(names, types)]
    loop = For("i", "lo", "hi", [*body, Store("out", "i", done[-1][0])])
    return Kernel(op.name, [*parameters, Parameter("out", dtype, SIZE, "out")], [loop], SIZE, "elements")
