"""`mg.viz.fusion`: how the compiler transforms a function, stage by stage, into kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..compile.fusion.by_hand import divided
from ..compile.fusion.group import Group
from ..compile.running.program import Program
from ..compile.running.steps import COPIES, copies_of
from ..core.node import Node
from ..core.primitive import P
from ..support.errors import MinigradError
from ..support.table import bytes_text, counted
from .compiled import Shown, check_computes, jitted_once, programs_of
from .exhibit import Exhibit
from .listings import Line, source_of, values_of
from .moving import Tables
from .titles import listed
from .written import Written, taken


def fusion(what: Any, *args: Any, **kwargs: Any) -> Fusion:
    """Show how the compiler transforms a function for these arguments.

    The first page shows the operations as you wrote them, and the kernels that compute them: what each reads and
    writes, and why it is not one kernel with others.  Another page steps through the stages of the compiler: your lines
    as eager mode runs them, the recorded graph, each pass, the kernels, their loops, and a second call.  Operations can
    be moved between kernels, on the page or with `.move(...)`.  The times of a call are in `mg.viz.timeline`.

    >>> mg.viz.fusion(lambda x, w: mg.softmax(mg.tanh(x @ w) * 2), mg.ones((64, 32)), mg.ones((32, 32)))
    <fusion: 2 launches instead of 9 one by one, 36.9 kB read and written instead of 120 kB>
    """
    first, *others = programs_of(jitted_once("fusion", what, args, kwargs), "fusion")
    found: Any = None
    for each in (*[later for later in others if later.program.plan.steps][::-1], first):
        found = Fusion(each).titled(each.title, found, each.program.graph.nodes)
    return found


class Fusion(Exhibit):
    """A program as written and as fused, the stages of the compiler, and a board to move operations on."""

    script = "fusion"

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.program, self.partition = shown.program, shown.program.partition
        check_computes(shown)
        self.written = Written(shown)
        self.cost = self.written.cost
        self.made = self.program.final.names()
        self.names = {**self.made, **shown.names}
        before, now = self.cost.eager, self.cost.program
        self.title = (
            f"fusion: {counted(now.launches, 'launch', 'launches')} instead of {before.launches:,} one by one, "
            f"{bytes_text(now.bytes)} read and written instead of {bytes_text(before.bytes)}"
        )

    # moving ---------------------------------------------------------------------------------------------------------

    def move(self, what: str, to: str = "") -> Fusion:
        """Move an operation, or a whole kernel, to another kernel (`to=""`: to a new kernel), and show the result.

        A move that is not possible raises an error with the reason.

        >>> view = mg.viz.fusion(lambda x: mg.tanh(x) * 2, mg.ones(1000))
        >>> view.move("multiply_1")
        <fusion: 2 launches instead of 2 one by one, 16 kB read and written instead of 16 kB>
        """
        board = self.board
        kernels = {group.name: kernel for group, kernel in zip(self.partition.groups, board.kernels)}
        movable = {board.name_of(member): [member] for member in board.number if member not in board.inputs} | kernels
        for name, known in ((to, {"": (), **kernels}), (what, movable)):
            if name not in known:
                expect = f"one of {', '.join(filter(None, known))}"
                raise MinigradError(f"no kernel is or computes anything named {name!r}", expect=expect)
        moving = movable[what]
        kernels = {name: [m for m in kernel if m not in moving] for name, kernel in kernels.items()}
        kernels[to] = [*kernels.get(to, ()), *moving]
        divisions = divided(self.partition, [*kernels.values()])
        moved = self.shown._replace(program=self.program.divided(divisions))
        return Fusion(moved).titled(self.heading, self.gradient)

    @cached_property
    def board(self) -> Tables:
        """What moves between kernels, by its name and its costs."""
        return Tables(self.partition, self.names, {k.name: k.program for k in self.cost.kernels})

    # data for the page -----------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """Everything that the page shows, as plain data."""
        copied, total, titles = copies_of(self.program.plan), self.cost.program, self.written.titles
        listing = self.written.listing
        constants = self.program.constants
        values, unknown = values_of(
            self.program.graph, lambda: [*self.shown.arrays(), *[node.array() for node in constants]])
        return {
            "about": self.said(), "taken": [taken(self.cost.eager), taken(total)],
            "written": self.written.data(),
            "rows": listing.rows(value=values, kernels=self._made(), stored=self._stored()), "unknown": unknown,
            "steps": listing.steps(),
            "kernels": [{
                "name": name, "says": _kind(self.program, group, self.names), "title": titles.of(name),
                "lines": [[text, [self.names[node] for node in nodes if node in self.names]]
                          for text, nodes in _source(self.program, group, self.names)],
            } for name, group in _steps_of(self.program).items()],
            "board": self.board.plain() | {
                "copied": [copied.launches, copied.bytes, titles.copies],
                "launches": total.launches, "bytes": total.bytes,
            },
        }

    def _made(self) -> dict[Node, list[str]]:
        """The steps that compute each value, and those that combine its parts."""
        found: dict[Node, list[str]] = {}
        titles = self.written.titles
        for step, nodes in titles.computed.items():
            for node in dict.fromkeys([*nodes, *titles.finished.get(step, ())]):  # a call makes all its results
                found[node] = found[node.inputs[0]] if node.op is P.project else [*found.get(node, ()), step]
        return found

    def _stored(self) -> dict[Node, str]:
        """The bytes of each value that is in memory, whole or only in parts."""
        sizes = {name.removeprefix("partial "): bytes_text(each.nbytes) + " of parts" * name.startswith("partial ")
                 for each in self.program.plan.buffers for name in [each.name]}  # parts come before what they make
        return {node: sizes[name] for node, name in self.made.items() if name in sizes}

    # other forms ----------------------------------------------------------------------------------------------------

    def to_svg(self) -> str:
        """As written → fused."""
        return self.written.svg(self.said())

    def in_words(self) -> str:
        """The work of each kernel, and the reasons why kernels were not fused."""
        reasons = dict.fromkeys([
            f"  {self.names[each.source]} → {self.names[each.reader]}: {each.why}" for each in self.written.boundaries
        ])
        return "\n".join([str(self.cost), *(["", "why not in one kernel?", *reasons] if reasons else [])])


def _steps_of(program: Program) -> dict[str, Group]:
    """The groups that take launches of their own, by the names of their steps."""
    names = program.final.names()
    own = {step.name for step in program.plan.steps if step.count.launches}
    named = {group.name if group in program.lowered else names[group.library.node]: group  # type: ignore[union-attr]
             for group in program.partition.groups}
    return {name: group for name, group in named.items() if name in own}


def _source(program: Program, group: Group, names: Mapping[Node, str]) -> list[Line]:
    """The loops of a kernel; of a branch or a loop, those of the functions that ran."""
    if group in program.lowered:
        return source_of(program.lowered[group], names)
    found: list[Line] = []
    for key, function in group.library.node.attrs.items() if group.library else ():
        body = getattr(function, "program", None)
        if isinstance(body, Program) and function.tally.last != 0:
            inner = body.final.names()
            for name, each in _steps_of(body).items():
                about = f"// {key}: {name}, {_kind(body, each, inner)}"
                found += [(about, ()), *_source(body, each, inner), ("", ())]
            if (copied := copies_of(body.plan)).launches:
                found.append((f"// {key}: {COPIES}, {taken(copied)}", ()))
    return found


def _kind(program: Program, group: Group, names: Mapping[Node, str]) -> str:
    if group.library is None:
        block = program.partition.blocks.get(group)
        loops = f"a generated kernel: {group.loops}".removesuffix(" in 1 chunks")
        products = listed([names[each.node] for each in block.products]) if block else ""
        return f"{loops}, in blocks of {block.rows} rows with {products}" if block else loops
    return "a generated kernel: a product" if group.library.launched else f"by {group.library.by}"
