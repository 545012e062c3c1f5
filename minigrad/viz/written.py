"""As written → fused: the operations of a program and the kernels that compute them, on one screen.

Columns are phases, rows are modules.  Each kernel is one bar: pale what its operations take as written, one by one, and
over it what the kernel takes, on one scale.  A row begins with its sums.  Python computes every number and its text;
the page only opens rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
TOP, LINE, GAP = 56.0, 18.0, 12.0  # above the rows, the height of a line, and between columns
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

    `reads` are the numbers of the bands whose values it reads, with the reasons why they are not one kernel with this
    one.  Of several equal steps, the sizes are sums.
    """

    step: str
    title: str
    row: str
    phase: str
    kind: str  # kernel, library, copies, or removed
    size: Count
    operations: Sequence[Operation] = ()
    reads: Mapping[int, list[str]] = {}

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
            "After the passes there are more launches: a pass replaced operations by several simpler ones, which fuse.":
                cost.after_passes.launches > cost.eager.launches,
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
        reads: list[dict[int, list[str]]] = [{} for _ in rows]
        for maker, step, _, _, why in self.boundaries:
            if maker in numbers and step in numbers:
                whys = reads[numbers[step]].setdefault(numbers[maker], [])
                whys += [why] if why not in whys else []
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

    def lines(self, row: str, phase: str) -> list[Band]:
        """The bands of a cell."""
        return [band for band in self.bands if (band.row, band.phase) == (row, phase)]

    @cached_property
    def opened(self) -> list[str]:
        """The rows that are open at first: all, if they fit on a screen."""
        lines = sum([1 + max([len(self.lines(row, phase)) for phase in self.phases]) for row in self.rows])
        return self.rows if lines <= LINES or len(self.rows) == 1 else []

    # the picture and the page -----------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The bytes, in a picture of its own."""
        label = 16.0 + max([text_width(row, SIZE, True) for row in self.rows])
        wide = (WIDE - label) / len(self.phases)
        tall = [1 + (row in self.opened) * max([len(self.lines(row, phase)) for phase in self.phases])
                for row in self.rows]
        drawing, y = Drawing(WIDE, TOP + LINE * sum(tall) + GAP * len(tall)), TOP
        drawing.text(label, 47.0, "pale: as written, one by one; full: fused", size=SIZE, fill="quiet")
        columns = {phase: _Column(drawing, label + i * wide, wide - GAP, KINDS[phase or "kernel"][0])
                   for i, phase in enumerate(self.phases)}
        for phase, column in columns.items():
            whole = _both([band for band in self.bands if band.phase == phase])
            drawing.text(column.x, 14.0, phase, size=15.0, fill=column.hue, bold=True)
            drawing.text(column.x, 32.0, change(*whole), size=SIZE, bold=True)
        cells = [self.lines(row, phase) for row in self.rows if row for phase in self.phases]
        parts = cells or [[band] for band in self.bands]  # one scale: that of the sums, if they are drawn
        most = max([each.bytes for bands in parts for each in _both(bands)]) or 1
        for row, lines in zip(self.rows, tall):
            drawing.path([(0.0, y), (WIDE, y)], "line", thick=0.6)
            drawing.text(0.0, y + LINE, row, size=SIZE, bold=True)
            for phase, column in columns.items():
                bands = self.lines(row, phase)
                if bands and row:
                    column.bar(y, *_both(bands), most, "", 1.0)
                for number, band in enumerate(bands[: lines - 1], 1):
                    column.bar(y + number * LINE, band.written, band.size, most, band.title, 0.6)
            y += lines * LINE + GAP
        return drawing.to_svg(self.said())

    def data(self) -> dict[str, Any]:
        """All that the page shows, as plain data."""
        return {
            "phases": self.phases, "opened": self.opened, "notes": self.notes(),
            "rows": [[row, [_amounts(self.lines(row, phase)) for phase in self.phases]] for row in self.rows],
            "totals": [_amounts([band for band in self.bands if band.phase == phase]) for phase in self.phases],
            "bands": [self._described(band) for band in self.bands],
            "titles": {step: self.titles.of(step) for step, kernel in self.kernels.items() if kernel.program.launches},
        }

    def _described(self, band: Band) -> dict[str, Any]:
        """What the page says of a band."""
        sizes = ("one by one", band.written), ("fused", band.size)
        rows = [[name, f"{_launches(size)}, {bytes_text(size.bytes)}"] for name, size in sizes]
        if band.step:
            rows += [
                ["reads", bytes_text(band.size.bytes_read)], ["writes", bytes_text(band.size.bytes_written)],
                ["operations", f"{band.size.flops:,}"], ["for each byte", f"{band.size.intensity:.2f} operations"],
            ]
        names = Counter([each.name.rpartition("_")[0] for each in band.operations])
        return {
            "title": band.title, "step": band.step,
            "where": " · ".join(filter(None, (band.phase, band.row, band.step))),
            "cell": [self.rows.index(band.row), self.phases.index(band.phase)], "kind": band.kind,
            "sizes": _amounts([band]), "rows": rows, "reads": [*band.reads.items()],
            "operations": ", ".join([f"{name} ×{n}" if n > 1 else name for name, n in names.items()]),
        }


class _Column(NamedTuple):
    """A phase in the static picture: where it begins, how wide it is, and its colour."""

    drawing: Drawing
    x: float
    wide: float
    hue: str

    def bar(self, y: float, was: Count, now: Count, most: int, title: str, opacity: float) -> None:
        """A size as written, and over it the size fused, with a title or with the sizes in words."""
        room = 0.34 * self.wide
        for size, look in ((was, 0.3), (now, opacity)):
            if size.bytes:
                wide = max(room * size.bytes / most, 1.5)
                self.drawing.rect(self.x, y + 4.0, wide, LINE - 6.0, self.hue, "none", round=1.5, opacity=look)
        at, words = self.x + room + 8.0, change(was, now)
        self.drawing.text(at, y + LINE - 4.0, title or words, size=SIZE, bold=not title, room=self.x + self.wide - at)
        at += text_width(title, SIZE) + 8.0
        if title and at + text_width(words, SIZE) < self.x + self.wide:
            self.drawing.text(at, y + LINE - 4.0, words, size=SIZE, fill="quiet")


def change(was: Count, now: Count) -> str:
    """The bytes as written and fused: `16 kB → 8 kB`, or one of them where both are the same."""
    return _arrow(bytes_text(was.bytes), bytes_text(now.bytes))


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _amounts(bands: Sequence[Band]) -> list[list[Any]]:
    """Bytes and launches of some bands as written and fused, each with its words; nothing without bands."""
    was, now = _both(bands)
    launches = _arrow(_launches(was), _launches(now))
    return [[was.bytes, now.bytes, change(was, now)], [was.launches, now.launches, launches]] if bands else []


def _launches(count: Count) -> str:
    return counted(count.launches, "launch", "launches")


def _both(bands: Sequence[Band]) -> tuple[Count, Count]:
    """What some bands take as written, and fused."""
    return sum([band.written for band in bands], Count()), sum([band.size for band in bands], Count())


def _below(node: Node, computed: Mapping[Node, str]) -> Node:
    """The node that a step computes, below views."""
    while node not in computed and node.is_view:
        node = node.inputs[0]
    return node
