"""What each pass of the compiler saves: launches, bytes and the peak of memory, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from minigrad.compile.fusion.count import Count
from minigrad.compile.look.cost import Cost, eager_peak, node_costs
from minigrad.compile.look.stage import graph_stages
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.rewriting.passes import PASSES, Log
from minigrad.core.override import override_of
from minigrad.support.table import as_table, bytes_text
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Page

WIDTH, LEFT, RIGHT, BAR = 660.0, 130.0, 70.0, 20.0
LOOKS = {"yours": ("back", "back-fill"), "fused": ("good", "leaf-fill")}  # border and colour
MEASURES = ("launches", "bytes moved", "peak of memory")


class Stage(NamedTuple):
    """What a program takes after a pass: launches, bytes of traffic, and the most bytes in use."""

    name: str
    launches: int
    bytes: int
    peak: int


def stages_of(log: Log, cost: Cost) -> list[Stage]:
    """A program as recorded, after each pass that changed it, and fused; a pass that is replaced is "yours".

    >>> f = mg.jit(lambda x: mg.tanh(x * 1.0) + 2)
    >>> for stage in stages_of(f.passes(mg.ones(10)), f.cost(mg.ones(10))):
    ...     print(*stage)
    as traced 3 240 80
    simplify 2 160 80
    fused 1 80 40
    """
    yours = {each.name for each in PASSES if override_of(each.function)}
    found = [_of_graph(f"{each.name}, yours" if each.name in yours else each.name, each.object)
             for each in graph_stages(log)]
    program = cost.program
    return [*found, Stage("fused", program.launches, program.bytes, cost.memory.total)]


def _of_graph(name: str, graph: Graph) -> Stage:
    count = sum([each.eager for each in node_costs(graph)], Count())
    return Stage(name, count.launches, count.bytes, eager_peak(graph))


def saved(stages: Sequence[Stage]) -> str:
    """The launches and the bytes at first and at last, in words."""
    first, last = stages[0], stages[-1]
    return f"{first.launches} → {last.launches} launches, {bytes_text(first.bytes)} → {bytes_text(last.bytes)}"


def table_of(stages: Sequence[Stage]) -> str:
    """The stages as a table."""
    rows = [(name, str(launches), bytes_text(moved), bytes_text(peak)) for name, launches, moved, peak in stages]
    return as_table(("", *MEASURES), rows, left=1)


def page_of(stages: Sequence[Stage], says: str) -> Page:
    """A page of a flipbook: three groups of bars, to scale."""
    drawing = Drawing(WIDTH, 3 * (26 + BAR * len(stages) + 16))
    y = 0.0
    for number, measure in enumerate(MEASURES):
        drawing.heading(0, y + 14, measure)
        y += 26
        values = [(stage.launches, stage.bytes, stage.peak)[number] for stage in stages]
        most = max(values) or 1
        for stage, value in zip(stages, values):
            own = stage.name.endswith("yours")
            wide = (WIDTH - LEFT - RIGHT) * value / most
            border, fill = LOOKS.get("yours" if own else stage.name, ("there", "there-fill"))
            drawing.text(LEFT - 10, y + 13, stage.name, anchor="end", bold=own)
            drawing.rect(LEFT, y + 2, max(wide, 1.0), BAR - 5, fill, border, round=2)
            drawing.text(LEFT + wide + 8, y + 13, f"{value:,}" if not number else bytes_text(value), bold=own)
            y += BAR
        y += 16
    return Page(drawing, says, (), "what it takes")
