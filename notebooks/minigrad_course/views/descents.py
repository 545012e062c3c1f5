"""A function from the graph to kernels, to loops and to machine code, as pictures to page through."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from minigrad.compile.codegen.native import llvm_text, llvmlite, processor
from minigrad.compile.jitted import trace
from minigrad.compile.loops.ir import For, Kernel, Statement, statements
from minigrad.compile.running.program import Program
from minigrad.support.errors import CompileError
from minigrad.support.table import counted
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page
from minigrad.viz.listings import source_of

HIGH, SIZE, WIDE = 17.0, 13.0, 820.0
SHOWN, BEFORE = 34, 4  # lines of machine code, and how many of them are before the first subtraction


def descent(function: Callable[..., Any], *args: Any, of: str = "exp") -> Flipbook:
    """The graph, the kernels, the loops and the machine code of a function; lines of the operation `of` are marked.

    >>> descent(mg.softmax, mg.ones((64, 32)))
    <from graph to machine code: 6 operations, 1 kernel, 3 loops over a row>
    """
    program = Program(trace(function, *args), backend="numpy")
    names = program.optimised.names()
    operations = sum(node.op is not None and node.op.kind != "view" for node in program.optimised.nodes)
    lowered = list(program.lowered.values())
    listed = [(line, f"{of}_1" in line) for line in str(program.optimised).splitlines()]
    kernels = [(line, f"{of}_1" in line) for line in program.partition.listing().splitlines()]
    source = [(text, any(n.name == of for n in nodes)) for each in lowered for text, nodes in source_of(each, names)]
    code = [(line, False) for line in machine_code([each.kernel for each in lowered])]
    stages = {
        "graph": (listed, "the graph: one line for each operation"),
        "kernels": (kernels, "the kernels: which operations run together, and how often"),
        "loops": (source, "the loops, printed as C: each pass over a row is a loop"),
        "machine code": (code, f"machine code of this processor: {len(code)} lines of it"),
    }
    loops = sum(len(inner_loops(each.kernel)) for each in lowered)
    about = [counted(operations, "operation"), counted(len(lowered), "kernel"), counted(loops, "loop") + " over a row"]
    pages = [Page(_drawn(lines), says, (), name) for name, (lines, says) in stages.items()]
    words = "\n\n".join("\n".join(line for line, _ in lines) for lines in (listed, kernels, source))
    title = "from graph to machine code: " + ", ".join(about)
    return Flipbook(title, [pages], cover=2, unit="picture", words=words)


def inner_loops(kernel: Kernel) -> list[Statement]:
    """The innermost loops of a kernel."""
    loops = [each for each in statements(kernel.body) if isinstance(each, For)]
    return [each for each in loops if not any(isinstance(inner, For) for inner in each.body)]


def machine_code(kernels: Sequence[Kernel]) -> list[str]:
    """The longest stretch of instructions of the first kernel, around its first subtraction; or why there is none."""
    try:
        binding, here = llvmlite(), processor()
        text = llvm_text(kernels[0])
    except (CompileError, RuntimeError) as error:
        return str(error).splitlines()
    target = binding.Target.from_triple(here.triple)
    machine = target.create_target_machine(cpu=here.name, features=here.features, opt=3)
    module = binding.parse_assembly(text)
    blocks: list[list[str]] = [[]]
    for line in machine.emit_assembly(module).splitlines():
        if line.endswith(":"):
            blocks.append([])
        elif re.match(r"\s+[a-z]", line):
            blocks[-1].append(line.strip().expandtabs(12))
    longest = max(blocks, key=len)
    first = next((i for i, line in enumerate(longest) if re.match(r"v?f?sub", line)), 0)
    return longest[max(0, first - BEFORE) :][:SHOWN]


def _drawn(lines: Sequence[tuple[str, bool]]) -> Drawing:
    """Lines of code; some are marked."""
    drawing = Drawing(WIDE, HIGH * len(lines) + 16)
    for i, (text, lit) in enumerate(lines):
        y = 8 + HIGH * i
        if lit:
            drawing.rect(0, y, WIDE, HIGH, "back-fill", "back-fill", round=2)
        drawing.text(8, y + 13, text.replace(" ", "\u00a0"), size=SIZE, code=True, bold=lit)
    return drawing
