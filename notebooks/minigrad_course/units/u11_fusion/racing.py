"""The race: a function node by node and as one program.  Blocks of memory travel at the same speed in both lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minigrad.compile.fusion.count import Count
from minigrad.compile.jitted import jit
from minigrad.compile.look.cost import Cost
from minigrad.core.programs import eager_programs
from minigrad.core.tensor import Tensor
from minigrad.support.table import bytes_text, time_text
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

from ...counting import fastest

WIDE, LANE, BLOCK, STAGES, RUNS = 760.0, 96.0, 34.0, 24, 15
MEMORY, REGISTERS = 40.0, 700.0  # where the two ends of a lane are


class Trip(NamedTuple):
    """What one operation or kernel reads from memory and writes to it."""

    name: str
    read: int
    written: int

    @property
    def bytes(self) -> int:
        return self.read + self.written


class Lane(NamedTuple):
    """A way to run the function: its trips, one after the other, and its fastest run on this machine."""

    name: str
    trips: list[Trip]
    seconds: float

    @property
    def bytes(self) -> int:
        return sum(trip.bytes for trip in self.trips)


def race(function: Callable[..., Any], *args: Tensor) -> Flipbook:
    """Run a function node by node and as one program: what each moves, and how long it takes on this machine.

    >>> book = race(lambda x: mg.tanh(x) * 2 + 1, mg.ones(1000))
    >>> print(book.text().rpartition(";")[0])
    node by node 3 trips, 24 kB; one program 1 trip, 8 kB
    """
    lanes = _lanes(function, args)
    longest = max(lane.bytes for lane in lanes)
    pages = [Page(_drawn(lanes, longest * i // STAGES), _says(lanes, longest * i // STAGES)) for i in range(STAGES + 1)]
    moved = "; ".join(f"{lane.name} {_count(lane)}, {bytes_text(lane.bytes)}" for lane in lanes)
    return Flipbook(_title(lanes), [pages], cover=STAGES, words=f"{moved}; {_title(lanes)}")


def _count(lane: Lane) -> str:
    return f"{len(lane.trips)} trip{'s' * (len(lane.trips) > 1)}"


def _title(lanes: Sequence[Lane]) -> str:
    slow, fast = lanes
    return (f"{time_text(slow.seconds)} node by node, {time_text(fast.seconds)} as one program: "
            f"{slow.seconds / fast.seconds:.1f} times as fast, with {slow.bytes / fast.bytes:.1f} times less traffic")


def _lanes(function: Callable[..., Any], args: Sequence[Tensor]) -> list[Lane]:
    jitted = jit(function)
    cost: Cost = jitted.cost(*args)
    plain = eager_programs(False)(function)
    times = fastest([lambda: plain(*args), lambda: jitted(*args)], RUNS)
    nodes = [_trip(each.name, each.eager) for each in cost.nodes if each.eager.bytes]
    kernels = [_trip(each.name, each.program) for each in cost.kernels]
    return [Lane("node by node", nodes, times[0]), Lane("one program", kernels, times[1])]


def _trip(name: str, count: Count) -> Trip:
    return Trip(name, count.bytes_read, count.bytes_written)


def _says(lanes: Sequence[Lane], moved: int) -> str:
    said = [f"{lane.name}: {bytes_text(min(moved, lane.bytes))} of {bytes_text(lane.bytes)} moved" for lane in lanes]
    done = [lane.name for lane in lanes if moved >= lane.bytes]
    words = f"{'; '.join(said)}."
    return f"{words} {_title(lanes)}." if len(done) == len(lanes) else f"{words} {done[0]} is done." if done else words


def _drawn(lanes: Sequence[Lane], moved: int) -> Drawing:
    """Both lanes at the moment when so many bytes have travelled; below them the times that were measured."""
    drawing = Drawing(WIDE, 2 * LANE + 90)
    for i, lane in enumerate(lanes):
        _lane(drawing, lane, i * LANE, moved)
    y, longest = 2 * LANE + 14, max(lane.seconds for lane in lanes)
    drawing.heading(0, y, "measured on this machine, the fastest of some runs")
    for i, lane in enumerate(lanes):
        top = y + 10 + 26 * i
        drawing.text(0, top + 14, lane.name)
        drawing.rect(110, top, 520 * lane.seconds / longest, 18, "back-fill" if i == 0 else "leaf-fill",
                     "back" if i == 0 else "good")
        drawing.text(118 + 520 * lane.seconds / longest, top + 14, time_text(lane.seconds), bold=True)
    return drawing


def _lane(drawing: Drawing, lane: Lane, top: float, moved: int) -> None:
    """Memory at the left, registers at the right, and the block that is on its way now."""
    done = moved >= lane.bytes
    drawing.heading(0, top + 14, lane.name)
    drawing.text(WIDE, top + 14, f"{bytes_text(min(moved, lane.bytes))} of {bytes_text(lane.bytes)}"
                 + (", done" if done else ""), anchor="end", bold=done, fill="good-text" if done else "ink")
    drawing.path([(MEMORY + 60, top + 52), (REGISTERS - 80, top + 52)], "line", thick=2.0, dashes="4 4")
    for x, name in ((0.0, "memory"), (REGISTERS - 80, "registers")):
        drawing.rect(x, top + 28, 100 if name == "memory" else WIDE - REGISTERS + 80, 48, "tint", "line", round=5)
        drawing.text(x + 10, top + 56, name, size=12)
    if done:
        return
    trip, inside = _at(lane, moved)
    reading = inside < trip.read
    share = inside / trip.read if reading else 1 - (inside - trip.read) / max(trip.written, 1)
    x = MEMORY + 66 + share * (REGISTERS - 86 - BLOCK - MEMORY - 66)
    drawing.rect(x, top + 35, BLOCK, BLOCK, "there-fill" if reading else "back-fill", "there" if reading else "back",
                 thick=2.0, about=f"{trip.name} {'reads' if reading else 'writes'}")
    words = f"{trip.name} {'reads →' if reading else '← writes'}"
    drawing.text(x + BLOCK / 2, top + 88, words, anchor="middle", size=12)


def _at(lane: Lane, moved: int) -> tuple[Trip, int]:
    """The trip that is under way, and how many of its bytes have moved."""
    for trip in lane.trips:
        if moved < trip.bytes:
            return trip, moved
        moved -= trip.bytes
    return lane.trips[-1], lane.trips[-1].bytes
