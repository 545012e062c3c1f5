"""As written → fused: the operations of a program and the kernels that compute them, on one screen.

Columns are phases, rows are modules.  Each kernel is one bar with its name on it: pale what its operations take as
written, one by one, and a line below it what the kernel takes, on one scale.  A row begins with its sums.  Python
computes every number and its text; the page only opens rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ..compile.fusion.count import Count
from ..core.node import Node
from ..support.table import bytes_text, counted
from .charts import KINDS
from .compiled import Shown, sources_of
from .drawing import Drawing
from .naming import layer_name, unnumbered
from .phases import PHASES, Path, readers_of
from .svg import text_width
from .titles import SEVERAL, Titles, listed

WIDE, SIZE = 1110.0, 11.5  # of all columns together, and of the text
TOP, LINE, GAP = 56.0, 20.0, 12.0  # above the rows, the height of a bar with its space, and between columns
LINES = 34  # on a screen
REST = "outside modules"
UNFINISHED = "a reduction across rows is complete only when the kernel has gone through all of them"

Cell = tuple[str, str]  # a row and a phase


class Operation(NamedTuple):
    """An operation as written: its name, and what it takes when it runs alone."""

    name: str
    size: Count


class Band(NamedTuple):
    """A step of the program, or the operations that the passes removed: what it computes, and the operations in it.

    `reads` are the numbers of the bands whose values it reads, each with a reason why it is not one kernel with this
    one.  Of several equal steps, the sizes are sums.
    """

    step: str
    title: str
    row: str
    phase: str
    kind: str  # kernel, library, copies, or removed
    size: Count
    operations: Sequence[Operation] = ()
    reads: Mapping[int, str] = {}

    @property
    def written(self) -> Count:
        """The size of its operations, one by one."""
        return sum([each.size for each in self.operations], Count())


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
        self.shown, self.titles = shown, Titles(shown)
        self.cost = self.titles.cost
        self.kernels = {kernel.name: kernel for kernel in self.cost.kernels}
        self.bands = self._bands()
        self.phases = [phase for phase in ("", *PHASES) if any(band.phase == phase for band in self.bands)]
        self.rows = self._rows()

    def said(self) -> str:
        """The launches and bytes before and after fusion."""
        before, now = self.cost.eager, self.cost.program
        return (
            f"fusion: {counted(now.launches, 'launch', 'launches')} instead of {before.launches:,} one by one, "
            f"{bytes_text(now.bytes)} read and written instead of {bytes_text(before.bytes)}"
        )

    def notes(self) -> list[str]:
        """What the numbers need in words."""
        cost, ran = self.cost, [f"{self.titles.of(name)} is {kernel.rounds}"
                                for name, kernel in self.kernels.items() if kernel.rounds]
        said = {
            f"{listed(ran)}.": bool(ran),
            "The update joins parameters of equal size in one kernel: those of several modules have a row of their own.":
                layer_name(SEVERAL) in self.rows,
            "A kernel may take more than its operations: it combines partial sums, or a pass added a copy.":
                any(band.kind == "kernel" and band.size.bytes > band.written.bytes for band in self.bands),
            "Copies of results: a result in the memory of another value is copied to memory of its own.":
                any(kernel.kind == "copies" for kernel in self.kernels.values()),
        }
        return [text for text, holds in said.items() if holds]

    # what is shown ----------------------------------------------------------------------------------------------------

    def _bands(self) -> list[Band]:
        """The steps in the order of a run, with the operations as written that each computes."""
        titles, kernels = self.titles, self.kernels
        operations, removed = self._operations()
        named = {step: titles.of(step) for step in kernels if step in operations or kernels[step].program.launches}
        rows = self._alike(named, operations)
        numbers = {step: i for i, steps in enumerate(rows) for step in steps}
        reads: list[dict[int, str]] = [{} for _ in rows]
        for maker, step, _, _, why in self.boundaries:
            if maker in numbers and step in numbers:
                reads[numbers[step]].setdefault(numbers[maker], why)
        found = []
        for (step, *others), read in zip(rows, reads):
            kernel, place, times = kernels[step], titles.section(step), 1 + len(others)
            title = unnumbered(named[step]) if others else named[step]
            often = kernel.program.launches if kernel.kind == "copies" else times
            found.append(Band(
                step, f"{title} (×{often})" if often > 1 else title, *self._cell(*place),
                "kernel" if kernel.rounds else kernel.kind, kernel.program * times,
                operations.get(step, []) * times, read,
            ))
        for cell, gone in removed.items():
            title = f"removed: {counted(len(gone), 'operation')}"
            found.append(Band("", title, *cell, "removed", Count(), gone))
        return found

    def _alike(self, named: Mapping[str, str], operations: Mapping[str, Sequence[Operation]]) -> list[list[str]]:
        """The steps of each row, in the order of a run.

        In a loop of Python each round has steps of its own, which differ only by the numbers in their titles: they are
        one row.
        """
        alike: dict[Any, list[str]] = {}
        for step, title in named.items():
            own = [(each.name.rpartition("_")[0], each.size) for each in operations.get(step, ())]
            same = self.titles.section(step), unnumbered(title), self.kernels[step].program, *own
            alike.setdefault(same, []).append(step)
        return [*alike.values()]

    def _operations(self) -> tuple[dict[str, list[Operation]], dict[Cell, list[Operation]]]:
        """The operations as written: by the step that computes them, or by the cell where the passes removed them."""
        computed_by = self._computed_by()
        kept: dict[str, list[Operation]] = {}
        removed: dict[Cell, list[Operation]] = {}
        for each in self.cost.nodes:
            operation = Operation(each.name, each.eager)
            if each.node in computed_by and each.eager.launches:
                kept.setdefault(computed_by[each.node], []).append(operation)
            elif each.eager.launches:
                removed.setdefault(self._cell(*self.titles.places.get(each.node, ())), []).append(operation)
        return kept, removed

    def _computed_by(self) -> dict[Node, str]:
        """The step that computes what each traced node became.

        Of nodes that became one, it computes the first, if possible one of its kind.  Operations that only lead to a
        view belong to the step that computes this view in one go.
        """
        graph, home = self.shown.program.graph, self.titles.home
        became = {old: _below(new, home) for old, new in self.shown.program.final.became(graph).items()}
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
        parted = {node for group in partition.groups for node in group.partials}
        for step, nodes in self.titles.computed.items():
            for reader in nodes:
                for source in partition.computes[reader].bases:
                    if source in home and source not in nodes:
                        again = f"{reader.name} is computed again by each reader, which takes less time than storing it"
                        why = partition.reasons.get((source, reader), UNFINISHED if source in parted else again)
                        found.append(Boundary(home[source], step, source, reader, why))
        return found

    def _cell(self, phase: str = "", path: Path = ()) -> Cell:
        """The row and the phase of a place; what has no phase belongs to the first one."""
        return self._row(path), phase or self._first

    @cached_property
    def _first(self) -> str:
        used = {phase for phase, _ in self.titles.places.values()}
        return next((phase for phase in PHASES if phase in used), "")

    @cached_property
    def _rest(self) -> str:
        """The row of what belongs to no module; it needs no name where nothing does."""
        return REST if self.titles.rows else ""

    def _row(self, path: Path) -> str:
        return self.titles.row(path) or self._rest

    def _rows(self) -> list[str]:
        """The rows in the order in which the code runs them; what belongs to none or several comes last."""
        nodes = sorted(self.titles.places, key=lambda node: node.serial)
        order = dict.fromkeys([self._row(self.titles.places[node][1]) for node in nodes])
        used = {band.row for band in self.bands}
        last = [self._rest, layer_name(SEVERAL)]
        return [row for row in order if row in used and row not in last] + [row for row in last if row in used]

    @cached_property
    def cells(self) -> dict[str, list[list[Line]]]:
        """The lines of each row, by phase: the sums of a cell, and its bands; a single band is the sum."""
        return {row: [self._lines(row, phase) for phase in self.phases] for row in self.rows}

    def _lines(self, row: str, phase: str) -> list[Line]:
        bands = {k: band for k, band in enumerate(self.bands) if (band.row, band.phase) == (row, phase)}
        was, now = _both(bands.values())
        sums = [Line("", _sums(was, now), was.bytes, now.bytes)] if row and len(bands) > 1 else []
        return sums + [
            Line(band.title, change(band.written, band.size), band.written.bytes, band.size.bytes, k)
            for k, band in bands.items()
        ]

    @cached_property
    def most(self) -> list[int]:
        """The bytes of the longest bar of each phase."""
        columns = zip(*self.cells.values())
        return [max([1, *[max(line.was, line.now) for lines in cells for line in lines]]) for cells in columns]

    @cached_property
    def totals(self) -> list[str]:
        """What each phase takes, in words."""
        return [_sums(*_both([band for band in self.bands if band.phase == phase])) for phase in self.phases]

    @cached_property
    def opened(self) -> list[str]:
        """The rows that are open at first: all, if they fit on a screen."""
        lines = sum([max(map(len, cells)) for cells in self.cells.values()])
        return self.rows if lines <= LINES or len(self.rows) == 1 else []

    # the picture and the page -----------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture alone."""
        label = 16.0 + max([text_width(row, SIZE, True) for row in self.rows])
        wide = (WIDE - label) / len(self.phases)
        shown = [(row, [lines if row in self.opened else lines[:1] for lines in cells])
                 for row, cells in self.cells.items()]
        drawing, y = Drawing(WIDE, TOP + sum([LINE * max(map(len, cells)) + GAP for _, cells in shown])), TOP
        drawing.text(label, 47.0, "pale: as written, one by one; the line below: fused", size=SIZE, fill="quiet")
        columns = [(label + i * wide, KINDS[phase or "kernel"][0]) for i, phase in enumerate(self.phases)]
        for (x, hue), phase, words in zip(columns, self.phases, self.totals):
            drawing.text(x, 14.0, phase, size=15.0, fill=hue, bold=True)
            drawing.text(x, 32.0, words, size=SIZE, bold=True)
        for row, cells in shown:
            drawing.path([(0.0, y), (WIDE, y)], "line", thick=0.6)
            drawing.text(0.0, y + LINE, row, size=SIZE, bold=True)
            for (x, hue), lines in zip(columns, cells):
                for number, line in enumerate(lines):
                    _bar(drawing, (x, y + 5.0 + number * LINE), (wide - GAP) / max(self.most), hue, line)
            y += LINE * max(map(len, cells)) + GAP
        return drawing.to_svg(self.said())

    def data(self) -> dict[str, Any]:
        """All that the page shows, as plain data."""
        return {
            "phases": self.phases, "opened": self.opened, "notes": self.notes(), "totals": self.totals,
            "rows": [*self.cells.items()], "most": self.most, "bands": [self._described(band) for band in self.bands],
            "first": max(self.bands, key=self._telling).step,
        }

    def _telling(self, band: Band) -> tuple[bool, bool, int]:
        """How much the code of a kernel shows: the one of the first phase that saves most comes first."""
        return band.step > "", band.phase == self.phases[0], band.written.bytes - band.size.bytes

    def _described(self, band: Band) -> dict[str, Any]:
        """What the page says of a band."""
        rows = [["one by one", taken(band.written)], ["fused", taken(band.size)]]
        if band.step:
            rows += [["reads", bytes_text(band.size.bytes_read)], ["writes", bytes_text(band.size.bytes_written)]]
        names = Counter([each.name.rpartition("_")[0] for each in band.operations])
        return {
            "title": band.title, "step": band.step, "kind": band.kind,
            "where": " · ".join(filter(None, (band.phase, band.row, band.step))),
            "cell": [self.rows.index(band.row), self.phases.index(band.phase)],
            "rows": rows, "reads": [*band.reads.items()],
            "operations": ", ".join([f"{name} ×{n}" if n > 1 else name for name, n in names.items()]),
        }


class Line(NamedTuple):
    """A bar and its words, and its bytes as written and fused: of band `k`, or the sums of a cell."""

    title: str
    words: str
    was: int
    now: int
    k: int = -1


def _bar(drawing: Drawing, place: tuple[float, float], scale: float, hue: str, line: Line) -> None:
    """A bar with its words on it: pale as written, and a line below it as fused."""
    x, y = place
    for size, tall, opacity in ((line.was, LINE - 4.0, 0.25), (line.now, 4.0, 1.0)):
        wide = max(scale * size, 1.5 * bool(size))
        drawing.rect(x, y + LINE - 4.0 - tall, wide, tall, hue, "none", round=1.0, opacity=opacity)
    drawing.text(x + 4.0, y + 10.0, line.title or line.words, size=SIZE, bold=not line.title)
    if line.title:
        drawing.text(x + 12.0 + text_width(line.title, SIZE), y + 10.0, line.words, size=SIZE, fill="quiet")


def change(was: Count, now: Count) -> str:
    """The bytes as written and fused: `16 kB → 8 kB`, or one of them where both are the same."""
    return " → ".join(dict.fromkeys([bytes_text(was.bytes), bytes_text(now.bytes)]))


def taken(count: Count) -> str:
    """The launches and the bytes: `3 launches, 12 kB`."""
    return f"{counted(count.launches, 'launch', 'launches')}, {bytes_text(count.bytes)}"


def _sums(was: Count, now: Count) -> str:
    return f"{change(was, now)}, {was.launches:,} → {counted(now.launches, 'launch', 'launches')}"


def _both(bands: Iterable[Band]) -> tuple[Count, Count]:
    """What some bands take as written, and fused."""
    sizes = [(band.written, band.size) for band in bands]
    return sum([was for was, _ in sizes], Count()), sum([now for _, now in sizes], Count())


def _below(node: Node, computed: Mapping[Node, str]) -> Node:
    """The node that a step computes, below views."""
    while node not in computed and node.is_view:
        node = node.inputs[0]
    return node
