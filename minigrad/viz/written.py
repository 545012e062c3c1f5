"""As written → fused: the operations of a program and the kernels that compute them, on one screen.

Columns are phases, rows are modules.  Each kernel is one bar with its name on it: pale what its operations take as
written, one by one, and a line below it what the kernel takes, on one scale.  A row begins with its sums.  Python
computes every number and its text; the page only opens rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ..compile.fusion.by_hand import UNFINISHED
from ..compile.fusion.count import Count
from ..compile.look.cost import NodeCost
from ..core.node import Node
from ..core.primitive import P
from ..support.table import bytes_text, counted
from .compiled import Shown, sources_of
from .drawing import KINDS, Drawing
from .listings import Listing
from .naming import layer_name
from .notation import unnumbered
from .phases import Path, Section, readers_of
from .scene import copies
from .svg import text_width
from .titles import SEVERAL, Titles

WIDE, SIZE = 1110.0, 11.5  # of all columns together, and of the text
TOP, LINE, GAP = 56.0, 20.0, 12.0  # above the rows, the height of a bar with its space, and between columns
LINES = 16  # of bars on a screen, above the code
REST = "outside modules"
BY_HAND = "they were moved apart by hand"
OWN = "Each result and each kept value has memory of its own."


class Band(NamedTuple):
    """What one bar shows: a step of the program, operations that the passes removed, or the sum of a cell.

    `reads` are the numbers of the bands whose values it reads, each with a reason why it is not one kernel with this
    one.  Of several equal steps, the sizes are sums.  `why` is said of what was removed.  What kernels of other cells
    compute is a line of its own, which leads `into` these kernels: it counts there.
    """

    step: str
    title: str
    cell: Section
    kind: str  # kernel, library, loop (or branch), copies, removed, elsewhere or sum
    size: Count
    operations: Sequence[NodeCost] = ()
    reads: Mapping[int, str] = {}
    into: Sequence[int] = ()
    why: str = ""

    @property
    def written(self) -> Count:
        """The size of its operations, one by one."""
        return sum([each.eager for each in self.operations if not self.into], Count())

    @property
    def change(self) -> str:
        """The bytes as written and fused: `16 kB → 8 kB`, or one of them where both are the same."""
        sizes = [] if self.into else [bytes_text(self.written.bytes), bytes_text(self.size.bytes)]
        return " → ".join(dict.fromkeys(sizes))


class Boundary(NamedTuple):
    """A value that a step reads from memory: the step that made it, its reader, and why they are not one kernel."""

    maker: str
    step: str
    source: Node
    reader: Node
    why: str


class Written:
    """A program as written and as fused: the picture `svg`, and `data` for the page."""

    def __init__(self, shown: Shown) -> None:
        self.shown, self.titles, self.listing = shown, Titles(shown), Listing(shown.program, shown.names)
        self.cost = self.titles.cost
        self.phases = self.titles.phases
        self.kernels = {kernel.name: kernel for kernel in self.cost.kernels}
        self.bands = self._bands()
        self.rows = self._rows()
        self.lines = [*self.bands]  # and the sums
        self.cells = {row: [self._cell_lines(row, phase) for phase in self.phases] for row in self.rows}

    # what is shown ----------------------------------------------------------------------------------------------------

    def _bands(self) -> list[Band]:
        """The steps in the order of a run, with the operations as written that each computes.

        In a loop of Python each round has steps of its own, which differ only by the numbers in their titles: they are
        one band.
        """
        titles, kernels, operations = self.titles, self.kernels, self._operations()
        alike: dict[Any, list[str]] = {}
        for step, kernel in kernels.items():
            if step in operations or kernel.program.launches:
                phase, path = titles.section(step)
                same = self._cell(phase, path), unnumbered(titles.of(step)), kernel.program
                alike.setdefault(same, []).append(step)
        numbers = {step: i for i, steps in enumerate(alike.values()) for step in steps}
        reads: list[dict[int, str]] = [{} for _ in alike]
        for maker, step, _, _, why in self.boundaries:
            if maker in numbers and step in numbers:
                reads[numbers[step]].setdefault(numbers[maker], why)
        found = []
        for ((cell, title, size), steps), read in zip(alike.items(), reads):
            first, times = kernels[steps[0]], len(steps)
            own = [each for step in steps for each in operations.pop(step, ())]
            found.append(Band(
                first.name, f"{title} (×{times})" if times > 1 else titles.of(first.name), cell,
                "loop" if first.rounds else first.kind, size * times, own, read,
                why=first.rounds or OWN * (first.kind == "copies"),
            ))
        found += self._elsewhere(found)
        for (cell, by), gone in operations.items():
            found.append(Band(
                "", f"removed by {by}: {counted(len(gone), 'operation')}", cell, "removed", Count(), gone,
                why=" ".join(dict.fromkeys([self.listing.ended(each.node)[1] for each in gone])),
            ))
        return found

    def _elsewhere(self, bands: Sequence[Band]) -> list[Band]:
        """A line for each cell with operations that kernels of other cells compute."""
        moved: dict[Section, list[tuple[int, NodeCost]]] = {}
        for k, band in enumerate(bands):
            for each in band.operations:
                if self._cell_of(each) != band.cell:
                    moved.setdefault(self._cell_of(each), []).append((k, each))
        found = []
        for cell, parts in moved.items():
            into = [*dict(parts)]
            (where, *more) = dict.fromkeys([bands[k].cell.title for k in into])
            place = f"{len(more) + 1} other cells" if more else where
            title = f"{counted(len(parts), 'operation')} in {place}"
            found.append(Band(
                bands[into[0]].step, title, cell, "elsewhere", Count(), [each for _, each in parts], into=into
            ))
        return found

    def _operations(self) -> dict[Any, list[NodeCost]]:
        """The operations as written: by the step that computes them, or by their cell and what removed them."""
        computed_by, found = self._computed_by(), dict[Any, list[NodeCost]]()
        for each in self.cost.nodes:
            if each.eager.launches:
                step: Any = computed_by.get(each.node)
                step = step or (self._cell_of(each), self.listing.ended(each.node)[0])
                found.setdefault(step, []).append(each)
        return found

    def _cell_of(self, operation: NodeCost) -> Section:
        """The cell of an operation as written."""
        return self._cell(*self.titles.places.get(operation.node, ()))

    def _computed_by(self) -> dict[Node, str]:
        """The step that computes what each traced node became.

        Of nodes that became one, it computes the first, if possible one of its kind.  Operations that only lead to a
        view belong to the step that computes this view in one go.
        """
        graph, home, views = self.shown.program.graph, self.titles.home, self.shown.program.partition.views
        became = {
            old: new if copies(old) else views[new].base  # if its copy is not made, who reads it may make one
            for old, new in self.shown.program.final.became(graph).items()
        }
        became = {old: new for old, new in became.items() if new in home}
        readers = readers_of(graph.nodes)
        found = {old: home[new] for new, old in sources_of(became).items()}
        replaced = {node: home[new] for node, new in became.items() if node.is_view}
        for node in reversed(graph.nodes):
            after = {replaced.get(reader, "") for reader in readers.get(node, ())}
            if node not in became and len(after) == 1 and after != {""}:
                (replaced[node],) = after
        return replaced | found

    @cached_property
    def boundaries(self) -> list[Boundary]:
        """All values that steps read from each other."""
        partition, home, found = self.shown.program.partition, self.titles.home, list[Boundary]()
        for step, nodes in self.titles.computed.items():
            for reader in nodes:
                combines = reader in self.titles.finished.get(step, ())  # it reads its own parts
                for source in [reader] if combines else partition.computes[reader].bases:
                    if source in home and (combines or source not in nodes) and reader.op is not P.project:
                        again = f"{reader.name} is computed by each reader, not stored"
                        why = partition.reasons.get((source, reader)) or (
                            UNFINISHED if source in partition.chunks_of else BY_HAND if home[reader] == step else again)
                        call = source.inputs[0] if source.op is P.project else source  # a result belongs to its call
                        found.append(Boundary(home[call], step, source, reader, why))
        return found

    def _cell(self, phase: str = "", path: Path = ()) -> Section:
        """The phase and the row of a place; what belongs to no module needs none where nothing does."""
        rows = self.titles.rows
        return Section(phase or self.titles.first, rows.get(path) or layer_name(path) or REST * bool(rows))

    def _rows(self) -> list[str]:
        """The rows in the order in which the code runs them; what belongs to none or several comes last."""
        rows = dict.fromkeys([*self.titles.rows.values(), self._cell().layer, layer_name(SEVERAL)])
        used = {band.cell.layer for band in self.bands}
        return [row for row in rows if row in used]

    def _cell_lines(self, row: str, phase: str) -> list[int]:
        """The numbers of the lines of a cell; where several take something, that of their sum is the first."""
        own = [k for k, band in enumerate(self.bands) if band.cell == (phase, row)]
        if row and sum(not self.bands[k].into for k in own) > 1:
            self.lines.append(self._sum(phase, row))
            own.insert(0, len(self.lines) - 1)
        return own

    def _sum(self, phase: str, row: str | None = None) -> Band:
        """What a phase takes, in a row or in all."""
        parts = [band for band in self.bands if band.cell == (phase, row or band.cell.layer) and not band.into]
        operations = [each for band in parts for each in band.operations]
        whole = Band("", "", Section(phase, row or ""), "sum", sum([band.size for band in parts], Count()), operations)
        launches = f"{whole.written.launches:,} → {whole.size.launches:,}"
        return whole._replace(title=f"{whole.change}, {launches}{' launches' * (row is None)}")  # said once, at the top

    @cached_property
    def most(self) -> int:
        """The bytes of the longest bar."""
        return max([1, *[max(line.written.bytes, line.size.bytes) for line in self.lines]])

    @cached_property
    def opened(self) -> list[str]:
        """The rows that are open at first: all, if they fit on a screen."""
        lines = sum([max(map(len, cells)) for cells in self.cells.values()])
        return self.rows if lines <= LINES or len(self.rows) == 1 else []

    # the picture and the page -----------------------------------------------------------------------------------------

    def svg(self, said: str) -> str:
        """The picture alone, and what is read aloud of it."""
        label = 16.0 + max([text_width(row, SIZE, True) for row in self.rows])
        wide = (WIDE - label) / len(self.phases)
        shown = [(row, [lines if row in self.opened else lines[:1] for lines in cells])
                 for row, cells in self.cells.items()]
        drawing, y = Drawing(WIDE, TOP + sum([LINE * max(map(len, cells)) + GAP for _, cells in shown])), TOP
        drawing.text(label, 47.0, "pale: as written, one by one; the line below: fused", size=SIZE, fill="quiet")
        columns = [(label + i * wide, KINDS[phase or "kernel"][0]) for i, phase in enumerate(self.phases)]
        for (x, hue), phase in zip(columns, self.phases):
            drawing.text(x, 14.0, phase, size=15.0, fill=hue, bold=True)
            drawing.text(x, 32.0, self._sum(phase).title, size=SIZE, bold=True)
        for row, cells in shown:
            drawing.path([(0.0, y), (WIDE, y)], "line", thick=0.6)
            drawing.text(0.0, y + 15.0, row, size=SIZE, bold=True)
            for (x, hue), lines in zip(columns, cells):
                for number, k in enumerate(lines):
                    self._bar(drawing, x, y + 5.0 + number * LINE, wide - GAP, hue, self.lines[k])
            y += LINE * max(map(len, cells)) + GAP
        return drawing.to_svg(said)

    def _bar(self, drawing: Drawing, x: float, y: float, wide: float, hue: str, line: Band) -> None:
        """A bar with its words on it: pale as written, and a line below it as fused."""
        for size, tall, opacity in ((line.written, LINE - 4.0, 0.25), (line.size, 4.0, 1.0)):
            long = wide * size.bytes / self.most
            drawing.rect(x, y + LINE - 4.0 - tall, long, tall, hue, "none", round=1.0, opacity=opacity)
        is_sum = line.kind == "sum"
        words = line.title if is_sum else f"{line.title}\u2003{line.change}"
        drawing.text(x + 4.0, y + 10.0, words, size=SIZE, bold=is_sum, room=wide)

    def data(self) -> dict[str, Any]:
        """All that the page shows, as plain data."""
        return {
            "phases": self.phases, "totals": [self._sum(phase).title for phase in self.phases],
            "opened": self.opened, "rows": [*self.cells.items()],
            "bands": [self._described(line) for line in self.lines],
        }

    def _described(self, line: Band) -> dict[str, Any]:
        """What the page says of a line."""
        fused = line.size
        rows = [
            ["one by one", taken(line.written)], ["fused", taken(fused)],
            ["reads", bytes_text(fused.bytes_read)], ["writes", bytes_text(fused.bytes_written)], ["why", line.why],
        ]
        names = Counter([each.name.rpartition("_")[0] for each in line.operations])
        return {
            "title": line.title, "change": line.change, "step": line.step, "kind": line.kind,
            "sizes": [-(-1000 * size.bytes // self.most) for size in (line.written, fused)],  # rounded up
            "rows": [row for row in rows if row[1] and not line.into], "into": line.into,
            "reads": [*line.reads.items()],
            "operations": ", ".join([f"{name} ×{n}" if n > 1 else name for name, n in names.items()]),
        }


def taken(count: Count) -> str:
    """The launches and the bytes: `3 launches, 12 kB`."""
    return f"{counted(count.launches, 'launch', 'launches')}, {bytes_text(count.bytes)}"
