"""One line of code, from the source through graph, gradient, fusion and loops to its result."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Sequence
from textwrap import dedent
from typing import Any, NamedTuple

from minigrad.autodiff import reverse
from minigrad.compile.codegen.cuda import cuda_source
from minigrad.compile.codegen.llvm import llvm_source
from minigrad.compile.jitted import trace
from minigrad.compile.look.watching import watching
from minigrad.compile.rewriting.passes import optimise
from minigrad.compile.running.program import Program
from minigrad.core.mode import switch
from minigrad.core.node import topological_order
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import ones_like
from minigrad.support.table import counted
from minigrad.viz.callpaths import levels_of
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page
from minigrad.viz.listings import source_of

from ...views.descents import machine_code

LEFT, WIDE, HIGH, LINE, MOST = 134.0, 690.0, 27.0, 16.0, 30


class Stage(NamedTuple):
    """A stage of the line: its name, the room of the library, what happens, and what there is to read."""

    name: str
    room: str
    says: str
    lines: Sequence[str]
    same: bool = True  # on every machine


def journey(function: Callable[..., Any], *args: Tensor, of: str) -> Flipbook:
    """Follow the line of a function, and the operation `of` in it, from the source to the result.

    >>> book = journey(lambda x: mg.tanh(x) * 2, mg.ones(8), of="tanh")
    >>> book
    <one line in 14 stages>
    >>> print(book.text().splitlines()[3])
    nodes          core                   3 lines
    """
    found = stages(function, args, of)
    pages = [Page(_drawn(found, at, of), f"{each.name}, {each.room}: {each.says}", (), "")
             for at, each in enumerate(found)]
    words = "\n".join(f"{each.name:14} {each.room:22} {counted(len(each.lines), 'line') if each.same else ''}".rstrip()
                      for each in found)
    cover = next(i for i, each in enumerate(found) if each.name == "C")
    return Flipbook(f"one line in {len(found)} stages", [pages], cover=cover, unit="stage", words=words)


def stages(function: Callable[..., Any], args: Sequence[Tensor], of: str) -> list[Stage]:
    """All stages of a line."""
    return [*_eager(function, args, of), *_compiled(function, args)]


def _eager(function: Callable[..., Any], args: Sequence[Tensor], of: str) -> list[Stage]:
    leaves = [each.detach() for each in args]
    for each in leaves:
        each.requires_grad = True
    with watching() as calls:
        function(*[each.detach() for each in args])
    call = next(each for each in calls if each.op.name == of)
    layers = levels_of(call)
    result = function(*leaves)
    order = topological_order([result.node])
    names = {node: f"n{i}" for i, node in enumerate(order)}
    recorded = [f"{names[n]} = {n.name}({', '.join(names.get(x, str(x)) for x in n.inputs)})"
                f"{'':2}# {n.shape}{'' if n.op else ', a leaf'}" for n in order]
    walked = []
    with switch(grad=False):
        for step in reverse.walk([result.node], [ones_like(result)]):
            walked += [f"{names[step.node]} {step.node.name} → input {step.index}, ∂ of shape {step.value.shape}",
                       f"    {_rule(step)}"]
    steps = [f"{each.part}: {each.name}" + (f"   {each.code['file']}" if each.code else "") for each in layers]
    return [
        Stage("your line", "your notebook", "text, with names and signs.", _lines(function)),
        Stage("calls", "ops, core, devices", f"what runs for `{of}`: functions, down to a kernel of NumPy.", steps),
        Stage("primitive", "ops", "the declaration: a formula and a gradient rule. No device is named.",
              _declared(layers, "the primitive")),
        Stage("nodes", "core", "the record of what ran: the operation and its inputs.", recorded),
        Stage("gradient", "autodiff", "the nodes in reverse; each rule passes gradients to the inputs.", walked),
    ]


def _compiled(function: Callable[..., Any], args: Sequence[Tensor]) -> list[Stage]:
    graph = trace(function, *args)
    optimised, _ = optimise(graph)
    program = Program(graph, backend="numpy")
    names = program.optimised.names()
    lowered = list(program.lowered.values())
    kernels = [each.kernel for each in lowered]
    last = "\n\n"
    c = [text for each in lowered for text, _ in source_of(each, names)]
    llvm = [line for each in kernels for line in llvm_source(each).strip().splitlines()]
    cuda = [line for each in kernels for line in cuda_source(each).text.strip().rpartition(last)[2].splitlines()]
    result = function(*args)
    values = [f"{result.shape} {result.dtype}", *str(result).splitlines()]
    return [
        Stage("graph", "compile/tracing", "Python ran once, with placeholders. This is left.", str(graph).splitlines()),
        Stage("passes", "compile/rewriting", "the graph after all rewriting passes.", str(optimised).splitlines()),
        Stage("kernels", "compile/fusion", "what runs together: a library call, and one loop for the rest.",
              program.partition.listing().splitlines()),
        Stage("C", "compile/lowering", "the fused loop, printed as C: one read, one write.", c),
        Stage("LLVM", "compile/codegen", "the same loop for LLVM, which runs here.", llvm),
        Stage("CUDA", "compile/codegen", "the same loop for a GPU: each number has its own thread.", cuda),
        Stage("machine code", "compile/codegen", "what your processor runs.", machine_code(kernels), False),
        Stage("plan", "compile/running", "steps, memory, and what waits for what.", str(program).splitlines()),
        Stage("result", "your notebook", "numbers again.", values),
    ]


def _lines(function: Callable[..., Any]) -> list[str]:
    try:
        return dedent(inspect.getsource(function)).rstrip().splitlines()
    except (OSError, TypeError):
        return ["the source is not known"]


def _rule(step: Any) -> str:
    """The source of a gradient rule, in one line."""
    op = step.node.op
    rule = op.rules.get(op.name_of(step.index))
    code = getattr(rule, "__code__", None)
    return linecache.getline(code.co_filename, code.co_firstlineno).strip() if code else "a rule of its own"


def _declared(layers: Sequence[Any], part: str) -> list[str]:
    code = next(each.code for each in layers if each.part == part)
    return list(code["text"]) if code else ["the source is not known"]


def _drawn(found: Sequence[Stage], at: int, of: str) -> Drawing:
    lines = [line.expandtabs(4) for line in found[at].lines]
    shown = lines if len(lines) <= MOST else [*lines[: MOST - 1], f"... {len(lines) - MOST + 1} more lines"]
    drawing = Drawing(WIDE, max(HIGH * len(found), 44 + LINE * len(shown)))
    for i, each in enumerate(found):
        y, here = HIGH * i, i == at
        drawing.rect(0, y, LEFT - 18, HIGH - 6, "there-fill" if here else "paper", "now" if here else "line",
                     thick=2.6 if here else 1.0, round=5, go=f"page:{i}", about=f"{each.name}: {each.room}")
        drawing.text(8, y + 14.5, each.name, size=12, bold=here)
    drawing.heading(LEFT, 14, f"{found[at].name} · {found[at].room}")
    drawing.rect(LEFT - 6, 26, WIDE - LEFT + 6, LINE * len(shown) + 14, "tint", "line", round=4)
    for i, line in enumerate(shown):
        y = 34 + LINE * i
        if of in line:
            drawing.rect(LEFT - 4, y - 1, WIDE - LEFT + 2, LINE, "back-fill", "back-fill", round=2)
        drawing.text(LEFT + 2, y + 11, line.replace(" ", "\u00a0"), size=10.5, code=True, bold=of in line,
                     room=WIDE - LEFT - 8)
    return drawing
