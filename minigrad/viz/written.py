"""As written → fused: the operations of a program and the kernels that compute them, on one screen.

Columns are phases, rows are modules.  In each cell, the operations as written stand at the left, and the kernels that
compute them at the right, on one scale for the whole picture: the width is bytes, launches, or time.  Everything is
laid out here, for the static picture too; the page only opens rows, and moves operations into their kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import log2
from typing import Any, NamedTuple

from ..compile.fusion.count import Count
from ..compile.look.record import Record
from ..core.node import Node
from ..support.table import bytes_text, counted, escape, time_text
from .charts import KINDS
from .colours import themed
from .compiled import Shown, sources_of
from .drawing import Drawing, cleaned
from .naming import layer_name, operation_name
from .phases import PHASES, UPDATE, Path, readers_of
from .svg import number, text_width
from .titles import SEVERAL, Titles

GAP, TOP, SIZE = 12.0, 62.0, 11.5  # between columns, above the rows, and of the text
WIDE, NAMES = 990.0, 110.0  # of all columns together, and of the room for the name of a kernel
SHUT = 24.0  # the height of a closed row
TALL = 640.0  # the height of a window, up to which rows are opened at first, those with most traffic first
LOW, HIGH = 16.0, 56.0  # the least and the largest distance of lines
REST = "outside modules"
NOISE = 0.005  # of the time of a call: less is taken for nothing
HIDDEN = ' display="none"'
UNFINISHED = "a reduction across rows is complete only when the kernel has gone through all of them"
BYTES, LAUNCHES, TIME = "bytes", "launches", "time"

Cell = tuple[str, str]  # a row and a phase
Sizes = Mapping[str, float]  # bytes, launches and seconds


class Operation(NamedTuple):
    """An operation as written: its name, its bytes, launches and seconds when it runs alone, and what it is called."""

    name: str
    size: Sizes
    written: str


class Band(NamedTuple):
    """A step of the program, or the operations that the passes removed: what it computes, and the operations in it.

    `reads` are the numbers of the bands whose values it reads, with the reasons why they are not one kernel with this
    one; `others` are the rows that have a part in it.
    """

    step: str
    title: str
    row: str
    phase: str
    kind: str  # kernel, library, copies, outside (of kernels), or removed
    size: Sizes
    operations: Sequence[Operation] = ()
    reads: Mapping[int, list[str]] = {}
    others: Sequence[str] = ()

    @property
    def written(self) -> Sizes:
        """The size of its operations, one by one."""
        return _sum([each.size for each in self.operations])


class Boundary(NamedTuple):
    """A value that a step reads from memory: the step that made it, its reader, and why they are not one kernel."""

    maker: str
    step: str
    source: Node
    reader: Node
    why: str


def _sizes(cost: Count, seconds: float) -> Sizes:
    return {BYTES: cost.bytes, LAUNCHES: cost.launches, TIME: seconds}


def _sum(sizes: Sequence[Sizes]) -> Sizes:
    return {unit: sum([size[unit] for size in sizes]) for unit in (BYTES, LAUNCHES, TIME)}


def _words(size: Sizes, unit: str) -> str:
    """An amount in words."""
    amount = size[unit]
    if unit == TIME:
        return time_text(amount)
    return bytes_text(int(amount)) if unit == BYTES else counted(int(amount), "launch", "launches")


class Written:
    """A program as written and as fused: the picture `svg`, and `data` for the page.

    With the record of a call, and that of the traced graph node by node, `alone`, the picture has times too: of each
    kernel in that call, and of each operation alone.  `eager` is the record of an eager call.
    """

    def __init__(
        self, shown: Shown, record: Record | None = None, alone: Record | None = None, eager: Record | None = None
    ) -> None:
        self.shown, self.record, self.alone, self.eager = shown, record, alone, eager
        self.titles = Titles(shown)
        self.cost = self.titles.cost
        self.kernels = {kernel.name: kernel for kernel in self.cost.kernels}
        self.bands = self._bands()
        self.phases = [phase for phase in ("", *PHASES) if any(band.phase == phase for band in self.bands)]
        self.rows = self._rows()
        self.units = [BYTES, LAUNCHES, *([TIME] if record and alone else [])]

    def said(self) -> str:
        """The launches and bytes before and after fusion."""
        before, now = self.cost.eager, self.cost.program
        rounds = any("round" in kernel.rounds for kernel in self.kernels.values())
        return (
            f"fusion: {counted(now.launches, 'launch', 'launches')} instead of {before.launches:,} one by one, "
            f"{bytes_text(now.bytes)} read and written instead of {bytes_text(before.bytes)}"
            f"{', in all rounds of its loops' * rounds}"
        )

    def measured(self) -> str:
        """The times of a call, as measured; empty if nothing ran."""
        if self.record is None or self.alone is None:
            return ""
        eager = "" if self.eager is None else f"; eagerly {time_text(self.eager.seconds)}"
        outside = sum([band.size[TIME] for band in self.bands if band.kind == "outside"])
        rest = time_text(outside) if outside > NOISE * self.record.seconds else "nothing that can be measured"
        return (
            f"Measured: one by one{' (each loop as one)' * self._loops} {time_text(self.alone.seconds)}{eager}; "
            f"as a program {time_text(self.record.seconds)}, with {rest} {self._between}."
        )

    @cached_property
    def _loops(self) -> bool:
        return any(kernel.rounds for kernel in self.kernels.values())

    @property
    def _between(self) -> str:
        return "outside kernels and loops" if self._loops else "outside kernels"

    # what is shown ----------------------------------------------------------------------------------------------------

    def _bands(self) -> list[Band]:
        """The steps in the order of a run, with the operations as written that each computes."""
        titles, kernels = self.titles, self.kernels
        operations, removed = self._operations()
        steps = [step for step, kernel in kernels.items() if step in operations or kernel.program.launches]
        numbers = {step: i for i, step in enumerate(steps)}
        reads: dict[str, dict[int, list[str]]] = {step: {} for step in steps}
        for maker, step, _, _, why in self.boundaries:
            if maker in numbers and step in numbers:
                whys = reads[step].setdefault(numbers[maker], [])
                whys += [why] if why not in whys else []
        taken = _taken(self.record)
        found = []
        for step in steps:
            kernel, place = kernels[step], titles.section(step)
            found.append(Band(
                step, titles.of(step), *self._cell(*place), kernel.kind,
                _sizes(kernel.program, taken.get(step, 0.0)),
                operations.get(step, ()), reads[step], self._others(step, *place),
            ))
        if self.record is not None:
            inside = _sum([band.size for band in found])[TIME]
            outside = _sizes(Count(), max(0.0, self.record.seconds - inside))
            found.append(Band("", f"{self._between}: not in the sum", *self._cell(), "outside", outside))
        for cell, gone in removed.items():
            title = f"removed: {counted(len(gone), 'operation')}"
            found.append(Band("", title, *cell, "removed", _sizes(Count(), 0.0), gone))
        return found

    def _operations(self) -> tuple[dict[str, list[Operation]], dict[Cell, list[Operation]]]:
        """The operations as written: by the step that computes them, or by the cell where the passes removed them."""
        computed_by, alone = self._computed_by(), _taken(self.alone)
        kept: dict[str, list[Operation]] = {}
        removed: dict[Cell, list[Operation]] = {}
        for each in self.cost.nodes:
            called = self.titles.written.get(each.node) or operation_name(each.node)
            operation = Operation(each.name, _sizes(each.eager, alone.get(each.name, 0.0)), called)
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
        replaced: dict[Node, str] = {node: step for node, step in found.items() if node.is_view}
        for node in reversed(graph.nodes):
            after = readers.get(node, ())
            if node not in became and len(after) == 1 and after[0] in replaced:
                replaced[node] = replaced[after[0]]
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

    def _others(self, step: str, phase: str, path: Path) -> list[str]:
        """The other rows that have a part in a step of the forward or backward pass."""
        titles = self.titles
        places = [titles.places[node] for node in titles.computed.get(step, ()) if titles.home[node] == step]
        inner = [other for when, other in places if when == phase != UPDATE and len(other) > 1 and other != path]
        return [*dict.fromkeys(map(self._row, inner))]

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

    # the picture ------------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The bytes, in a picture of its own."""
        return Picture(self, BYTES).svg()

    def data(self) -> dict[str, Any]:
        """All that the page shows, as plain data."""
        pictures = [Picture(self, unit) for unit in self.units]
        first = pictures[0]
        return {
            "measured": self.measured(), "phases": self.phases, "rows": self.rows,
            "pictures": [[unit, themed(each.svg())] for unit, each in zip(self.units, pictures)],
            "label": first.label, "column": first.column, "top": TOP, "size": SIZE,
            "bands": [self._described(band) for band in self.bands],
        }

    def _described(self, band: Band) -> dict[str, Any]:
        """What the page says of a band."""
        sizes = ("one by one", band.written), ("fused", band.size)
        rows = [[name, ", ".join([_words(size, unit) for unit in self.units[::-1]])] for name, size in sizes]
        if band.step in self.kernels:
            taken = self.kernels[band.step].program
            rows += [
                ["reads", bytes_text(taken.bytes_read)], ["writes", bytes_text(taken.bytes_written)],
                ["operations", f"{taken.flops:,}"], ["for each byte", f"{taken.intensity:.2f} operations"],
            ]
        names = Counter([each.name.rpartition("_")[0] for each in band.operations])
        row = ", and a part of ".join(filter(None, (band.row, ", ".join(band.others))))
        return {
            "title": band.title, "step": band.step, "where": " · ".join(filter(None, (band.phase, row, band.step))),
            "rows": rows, "reads": [*band.reads.items()],
            "operations": ", ".join([f"{name} ×{n}" if n > 1 else name for name, n in names.items()]),
        }


class Picture:
    """The picture of a program in one unit; closed rows have all that they show when they are opened.

    In a closed row, the sums of a cell are drawn as one band: all of these on a scale of their own.
    """

    def __init__(self, written: Written, unit: str) -> None:
        self.written, self.unit = written, unit
        self.bands, rows, phases = written.bands, written.rows, written.phases
        longest_name = max([text_width(row, SIZE, True) for row in rows], default=0.0)
        self.label = 26.0 + min(110.0, longest_name) if longest_name else 8.0
        self.column = (WIDE + 120.0 - self.label) / max(len(phases), 1)
        self.left = 0.4 * (self.column - 2 * GAP)  # the width of the operations as written
        right = self.column - 2 * GAP - self.left - max(NAMES, 0.3 * self.column)
        self.lines = {row: [self._lines(row, phase) for phase in phases] for row in rows}
        self.sums = {row: [self._sum(row, lines) for lines in self.lines[row]] for row in rows}
        self.scale, self.small = [
            min(self.left / max([1e-30, *[band.written[unit] for band in bands]]),
                right / max([1e-30, *[band.size[unit] for band in bands]]))
            for bands in (self.bands, [band for own in self.sums.values() for band in own])
        ]
        self.tall = {row: max(map(len, lines)) for row, lines in self.lines.items()}
        room = (TALL - TOP - 12.0 * len(rows)) / max(1, sum(self.tall.values()))
        self.pitch = min(HIGH, max(LOW, room))
        self.opened = self._opened()

    def _lines(self, row: str, phase: str) -> list[int]:
        """The numbers of the bands of a cell, and of those of other rows that compute a part of it."""
        seen = [i for i, band in enumerate(self.bands) if band.kind != "outside" or self.unit == TIME]
        here = [i for i in seen if self.bands[i].phase == phase]
        own = [i for i in here if self.bands[i].row == row]
        return own + [i for i in here if row in self.bands[i].others]

    def _sum(self, row: str, lines: Sequence[int]) -> Band:
        """All bands of a cell as one."""
        own = [self.bands[i] for i in lines if self.bands[i].row == row]
        was, now = _sum([band.written for band in own]), _sum([band.size for band in own])
        title = f"{_words(was, self.unit).partition(' launch')[0]} → {_words(now, self.unit)}" if own else ""
        phase, kind = own[0].phase if own else "", "kernel" if now[self.unit] else "removed"
        return Band("", title, row, phase, kind, now, [Operation("", was, "")])

    def heights(self, lines: int) -> tuple[float, float]:
        """The height of a row with so many lines, open and closed."""
        return max(lines, 1) * self.pitch + 12.0, SHUT

    def _opened(self) -> set[str]:
        """The rows that are open at first: those with most traffic, while the picture stays low enough."""
        heights = {row: self.heights(lines) for row, lines in self.tall.items()}
        seen, opened = TOP + sum([low for _, low in heights.values()]), set()
        traffic = {row: sum([band.size[BYTES] for band in self.bands if band.row == row]) for row in heights}
        for row in sorted(heights, key=lambda row: -int(log2(1 + traffic[row]))):
            high, low = heights[row]
            if seen + high - low <= TALL or len(heights) == 1:
                opened.add(row)
                seen += high - low
        return opened

    def svg(self) -> str:
        """The picture as an SVG element."""
        height = TOP + sum([self._high(row) for row in self.lines])
        drawing = Drawing(self.label + self.column * len(self.written.phases), height)
        for i, phase in enumerate(self.written.phases):
            self._head(drawing, i, phase)
        y = TOP
        for row in self.lines:
            self._row(drawing, row, y)
            y += self._high(row)
        return drawing.to_svg(self.written.said())

    def _high(self, row: str) -> float:
        return self.heights(self.tall[row])[row not in self.opened]

    def _head(self, drawing: Drawing, i: int, phase: str) -> None:
        """The title of a column, and its sums."""
        x = self.label + i * self.column
        own = [band for band in self.bands if band.phase == phase and band.kind != "outside"]
        columns = ("as written", x, [b.written for b in own]), ("fused", x + self.left + GAP, [b.size for b in own])
        with drawing.piece(f'class="mgw-phase" data-phase="{i}"'):
            drawing.text(x, 14.0, phase, size=15.0, fill=KINDS[phase or "kernel"][0], bold=True)
            for title, at, sizes in columns:
                drawing.text(at, 33.0, title, size=SIZE, bold=True)
                drawing.text(at, 47.0, _words(_sum(sizes), self.unit), size=SIZE, fill="quiet")
            drawing.path([(x, 54.0), (x + self.column - GAP, 54.0)], "line", thick=1.0)

    def _row(self, drawing: Drawing, row: str, y: float) -> None:
        """A row, open or closed."""
        is_open, name = row in self.opened, escape(cleaned(row))
        heights = " ".join([",".join(map(number, self.heights(len(lines)))) for lines in self.lines[row]])
        shut = "" if is_open else " mgw-shut"
        place = f'data-high="{heights}" transform="translate(0 {number(y)})"'
        with drawing.piece(f'class="mgw-row{shut}" data-row="{name}" {place}'):
            drawing.path([(0.0, 0.0), (drawing.width, 0.0)], "line", thick=0.6)
            if self.label > 8.0:
                button = f'tabindex="0" role="button" aria-expanded="{str(is_open).lower()}" aria-label="{name}"'
                with drawing.piece(f'class="mgw-rowname" {button}'):
                    sign = "⊟" if is_open else "⊞"
                    drawing.text(0.0, 15.0, f"{sign} {row}", size=SIZE, bold=True, room=self.label - 8.0)
            for i in range(len(self.lines[row])):
                with drawing.piece(f'class="mgw-phase" data-phase="{i}"'):
                    self._cell(drawing, i, row, is_open)

    def _cell(self, drawing: Drawing, i: int, row: str, is_open: bool) -> None:
        """The bands of a row in a phase, and their sums, which stand in their place while the row is closed."""
        x, whole = self.label + i * self.column, self.sums[row][i]
        with drawing.piece('class="mgw-lines"' + HIDDEN * (not is_open)):
            for n, k in enumerate(self.lines[row][i]):
                y = 6.0 + n * self.pitch
                if self.bands[k].row == row:
                    self._band(drawing, self.bands[k], f'data-k="{k}"', x, y, self.pitch, self.scale)
                    continue
                with drawing.piece(f'data-k="{k}"'):
                    text = f"a part is in {self.bands[k].row}"
                    drawing.text(x + self.left + GAP, y + 0.7 * self.pitch, text, size=SIZE, fill="quiet")
        with drawing.piece('class="mgw-sum"' + HIDDEN * is_open):
            if whole.title:
                self._band(drawing, whole, "", x, 5.0, SHUT - 6.0, self.small)

    def _band(
        self, drawing: Drawing, band: Band, key: str, x: float, y: float, pitch: float, scale: float
    ) -> None:
        """The operations of a kernel as written, side by side, and the kernel."""
        tall, right = pitch - 4.0, x + self.left + GAP
        removed, hue = band.kind == "removed", KINDS[band.phase or "kernel"][0]
        wide = max(band.size[self.unit] * scale, 1.0)
        places = " ".join(map(number, (x, right, wide)))
        with drawing.piece(f'class="mgw-band mgw-{band.kind}" {key} data-x="{places}"'):
            drawing.rect(x - 4.0, y - 2.0, self.column - GAP + 6.0, pitch, "now", "none", opacity=0.0)
            outline = self._outline(band, x, y + tall / 2, scale)
            if outline:
                with drawing.piece('class="mgw-was" opacity="0.45"'):
                    drawing.shape(outline, stroke="quiet" if removed else hue, thick=tall)
            if not removed:
                solid = 1.0 if band.kind == "library" else 0.6
                drawing.rect(right, y, wide, tall, hue, "none", round=1.5, opacity=solid)
            with drawing.piece('class="mgw-name"'):
                at = right + (0.0 if removed else wide + 5.0)
                fill, room = "ink" if band.kind in ("kernel", "library") else "quiet", x + self.column - GAP - at
                drawing.text(at, y + tall / 2 + 4.0, band.title, size=SIZE, fill=fill, room=room)
            with drawing.piece():
                for each in band.operations:
                    part = each.size[self.unit] * scale
                    if each.written and part > text_width(each.written, SIZE) + 8.0:
                        drawing.text(x + part / 2, y + tall / 2 + 4.0, each.written, size=SIZE, anchor="middle")
                    x += part

    def _outline(self, band: Band, x: float, y: float, scale: float) -> str:
        """The operations as pieces of one line, in SVG's words; those that are too thin leave their place free."""
        pieces, free = [], 0.0
        for each in band.operations:
            wide = each.size[self.unit] * scale
            if wide < 0.4:
                free += wide
                continue
            pieces.append((f"m{free:.1f} 0" if free >= 0.1 else "") + f"h{max(wide - 0.6, 0.3):.1f}m.6 0")
            free = 0.0
        return f"M{number(x)} {number(y)}{''.join(pieces)}" if pieces else ""


def _below(node: Node, computed: Mapping[Node, str]) -> Node:
    """The node that a step computes, below views."""
    while node not in computed and node.is_view:
        node = node.inputs[0]
    return node


def _taken(record: Record | None) -> dict[str, float]:
    """The seconds of each event of a record."""
    return {event.name: event.end - event.begin for event in record.events} if record is not None else {}
