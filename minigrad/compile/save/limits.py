"""The limits of programs from untrusted files: memory, work, and the time of loops.

A small file can name an array of 10¹² elements or a loop without an end.  The memory and the work of a graph without
loops are known before it runs, and such a program is refused when it is loaded.  How often a loop runs may depend on
values, so loops read the clock in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from ...core.dtypes import float32, float64
from ...core.node import Node
from ...core.primitive import P
from ...support.table import bytes_text
from ..functions.function import Function
from ..fusion.count import flops_of
from ..nodes.graph import Graph
from ..running.plain import PlainProgram
from ..running.plan import LIBRARY, RESULT
from ..running.program import Program
from ..running.steps import copies_of
from .codec import ProgramError

MEMORY = 1 << 28  # bytes that each program may need; larger arguments and arrays in the file allow more
TIMES = 16  # times the bytes of these
WORK = 4e9  # about as many nanoseconds without loops
SECONDS = 4.0  # of loops
NODES = 3000  # compiling takes up to some milliseconds each
TRUST = "mg.load_program(path, trusted=True), if you know who wrote the file"


def check_size(graphs: Iterable[Graph]) -> None:
    """Refuse graphs, of a program and of its loops, with large values or much work, before they are compiled."""
    graphs = list(graphs)
    nodes = [node for graph in graphs for node in graph.nodes]
    if len(nodes) > NODES:
        raise too_much(f"it has {len(nodes)} operations", f"at most {NODES}")
    held = _bytes([*graphs[0].inputs, *[node for node in nodes if node.op is None]])
    most = max(MEMORY, TIMES * held)
    largest = max(nodes, key=lambda node: node.nbytes, default=None)
    if largest is not None and largest.nbytes > most:
        raise too_much(f"a value of {largest.name} takes {bytes_text(largest.nbytes)}", f"at most {bytes_text(most)}")
    work = sum(map(_work, nodes))
    if work > WORK:
        raise too_much(f"it would compute for about {work / 1e9:.0f} s", f"at most {WORK / 1e9:.0f} s")


def check_memory(program: Program, functions: Iterable[Function]) -> None:
    """Refuse a program that needs much memory, for itself and for the functions of its branches and loops."""
    most = max(MEMORY, TIMES * _bytes(program.graph.inputs))
    need = sum(map(_memory, [program, *[function.program for function in functions]]))
    if need > most:
        raise too_much(f"it needs {bytes_text(need)} of memory", f"at most {bytes_text(most)}")


def too_much(what: str, expect: str) -> ProgramError:
    """The error for a program beyond a limit."""
    return ProgramError(f"load: this program is beyond the limits for files: {what}", expect=expect, hint=TRUST)


def clock() -> Callable[[], None]:
    """A function for loops to call in each round: an error when their time is over."""
    end = perf_counter() + SECONDS

    def look() -> None:
        if perf_counter() > end:
            raise too_much("a loop did not end", f"within {SECONDS:.0f} s")

    return look


def _bytes(nodes: Iterable[Node]) -> int:
    return sum(node.nbytes for node in nodes)


def _work(node: Node) -> float:
    """About how many nanoseconds a node takes on one core; of a loop, the rest of its work is that of its body."""
    op: Any = node.op
    if op is None or op.kind == "view" or op is P.project:
        return 0.0
    sizes = [i.size for i in node.inputs if isinstance(i, Node) and not isinstance(i.dtype, tuple)]
    if op.kind == "structural":
        return float(max([node.nbytes, *sizes]))
    flops = flops_of(node)
    if op is P.matmul:
        return flops / 32 if node.dtype in (float32, float64) else float(flops)
    each = op.cost if op.kind == "elementwise" else 1.0
    return max([node.size, *sizes]) * each + (0.0 if op.kind == "elementwise" else 4.0 * flops)


def _memory(program: Program | PlainProgram) -> int:
    """The bytes that a run allocates."""
    if isinstance(program, PlainProgram):
        return _bytes(program.graph.nodes)
    plan = program.plan
    made = [buffer.nbytes for buffer in plan.buffers if buffer.kind in (RESULT, LIBRARY)]
    return sum(plan.slots) + sum(made) + copies_of(plan).bytes_written
