"""`mg.viz.compare`: the same function eagerly, as a graph and fused, with one slider.

Launches and bytes are those that `f.cost` counts.  Times are those of runs on this machine, so only the picture
contains them, not the text that a notebook compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...compile.fusion.count import Count
from ...compile.look.record import record_node_by_node
from ...support.errors import MinigradError
from ...support.table import bytes_text, counted, time_text
from ..charts import KINDS
from ..compiled import eager_record_of, jitted_once, programs_of, records_of
from ..drawing import Drawing
from ..exhibit import check_function
from ..flipbook import Flipbook, Knob, Page

WIDTH, ROW, BLOCK, LEFT, RIGHT = 900.0, 30.0, 22.0, 76.0, 96.0
WAYS = ("eager", "graph", "fused")
SAYS = (
    "Eager: each line runs when Python reaches it, as it does for you: composed functions are programs.",
    "Graph: the recorded operations run one by one, without your Python code between them.",
    "Fused: the compiler joins operations into kernels, so most values never reach memory.",
)
MEASURES = ("launches", "bytes", "time")


class Way(NamedTuple):
    """How a function ran: the name and the cost of each of its parts, and the time in seconds."""

    parts: list[tuple[str, Count]]
    seconds: float

    @property
    def launches(self) -> int:
        """How many kernels and library calls ran."""
        return sum(count.launches for _, count in self.parts)

    @property
    def bytes(self) -> int:
        """The memory traffic of all parts."""
        return sum(count.bytes for _, count in self.parts)


def compare(function: Callable[..., Any], *args: Any, runs: int = 7, **kwargs: Any) -> Flipbook:
    """Run a function eagerly, as a graph and fused, and compare launches, bytes and times.

    A slider leads from one way to the next.  The quickest of `runs` is shown; side effects of the function happen in
    every run.

    >>> mg.viz.compare(lambda x: mg.tanh(x * 2) + x, mg.ones(1000))
    <eager, graph and fused: 3, 3 and 1 launches>
    """
    check_function("compare", function, "mg.viz.compare(lambda x: mg.tanh(x) * 2, x)")
    if runs < 1:
        raise MinigradError(f"compare: {runs} runs show nothing", expect="runs=1 or more")
    jitted = jitted_once(function)
    shown = programs_of(jitted, args, kwargs, "compare")
    eager = eager_record_of(jitted, args, kwargs, len(shown) > 1, runs)
    given = [[*each.arrays(), *[node.array() for node in each.program.constants]] for each in shown]
    alone = [record_node_by_node(each.program.graph, arrays, runs) for each, arrays in zip(shown, given)]
    records = records_of(jitted, args, kwargs, runs)  # last: loops count the rounds of their last run
    costs = [record.cost for record in records if record.cost is not None]
    written = [(node.name, node.eager) for cost in costs for node in cost.nodes if node.eager.launches]
    fused = [(kernel.name, kernel.program) for cost in costs for kernel in cost.kernels if kernel.program.launches]
    kernels = [(event.name, event.cost) for event in eager.launched]
    times = [sum([record.seconds for record in some]) for some in ([eager], alone, records)]
    return compare_of([Way(parts, seconds) for parts, seconds in zip([kernels, written, fused], times)])


def compare_of(ways: Sequence[Way]) -> Flipbook:
    """The comparison of three measured ways.

    >>> add = "add", Count(bytes_read=8, bytes_written=4, launches=1)
    >>> compare_of([Way([add, add], 2e-6), Way([add, add], 1e-6), Way([add], 1e-6)])
    <eager, graph and fused: 2, 2 and 1 launches>
    """
    counts = [way.launches for way in ways]
    title = f"eager, graph and fused: {counts[0]:,}, {counts[1]:,} and {counts[2]:,} launches"
    pages = [[Page(_drawn(ways, i), _said(ways, i), (("", _table(ways, i)),))] for i in range(3)]
    words = "\n".join(f"{name}: {counted(count, 'launch', 'launches')}" for name, count in zip(WAYS, counts))
    return Flipbook(title, pages, (Knob("way", WAYS, 0),), words=words)


def _said(ways: Sequence[Way], which: int) -> str:
    way, first = ways[which], ways[0]
    taken = f"{bytes_text(way.bytes)}, {time_text(way.seconds)}"
    text = f"{SAYS[which]} {counted(way.launches, 'launch', 'launches')}, {taken}"
    if not which or not way.seconds or not way.bytes or not way.launches:
        return text + "."
    fewer = _ratio(first.launches, way.launches, "fewer launches", "more launches", "as many launches as")
    less = _ratio(first.bytes, way.bytes, "less traffic", "more traffic", "as much traffic as")
    faster = _ratio(first.seconds, way.seconds, "faster", "slower", "as fast as")
    return f"{text}. Beside eager: {fewer}, {less}, {faster}."


def _ratio(first: float, now: float, less: str, more: str, same: str) -> str:
    """A number beside the first one, in words.

    >>> _ratio(6, 2, "fewer", "more", "as many as"), _ratio(6, 6, "fewer", "more", "as many as")
    ('3 times fewer', 'as many as eager')
    """
    ratio = max(first, now) / min(first, now)
    if f"{ratio:.3g}" == "1":
        return f"{same} eager"
    return f"{ratio:.3g} times {less if now < first else more}"


def _table(ways: Sequence[Way], which: int) -> tuple[str, Any]:
    rows = [[n, f"{w.launches:,}", bytes_text(w.bytes), time_text(w.seconds)] for n, w in zip(WAYS, ways)]
    return ("table", {"head": ["", *MEASURES], "rows": rows, "here": which})


def _drawn(ways: Sequence[Way], which: int) -> Drawing:
    """Each part as a block as wide as its bytes, and below three groups of bars that compare the ways."""
    across = WIDTH - LEFT - RIGHT
    drawing = Drawing(WIDTH, 78.0 + 3 * (3 * BLOCK + ROW + 8))
    way, most = ways[which], max(max(each.bytes for each in ways), 1)
    drawing.heading(0, 12, f"{WAYS[which]}: each block is a launch or a loop, as wide as the bytes that it moves")
    x, scale = 0.0, WIDTH / most
    for name, count in way.parts:
        size = count.bytes
        colour = "other" if which < 2 else "kernel" if name.startswith("kernel_") else "library"
        about = f"{name}: {bytes_text(size)}"
        stroke, fill = KINDS[colour]
        drawing.rect(x, 22, max(size * scale, 0.5), 30, fill, stroke, thick=0.7, round=1, about=about)
        x += size * scale
    figures: list[list[tuple[float, str]]] = [
        [(each.launches, f"{each.launches:,}") for each in ways],
        [(each.bytes, bytes_text(each.bytes)) for each in ways],
        [(each.seconds, time_text(each.seconds)) for each in ways],
    ]
    y = 78.0
    for measure, values in zip(MEASURES, figures):
        drawing.heading(0, y + 12, measure)
        y += ROW - 8
        longest = max([value for value, _ in values], default=0) or 1
        for i, (value, text) in enumerate(values):
            here = i == which
            drawing.text(LEFT - 10, y + 14, WAYS[i], anchor="end", bold=here, fill="ink" if here else "quiet")
            wide = across * value / longest
            fill, about = "now" if here else "tint", f"{WAYS[i]}: {text}"
            drawing.rect(LEFT, y + 2, max(wide, 1.0), BLOCK - 5, fill, "line", round=2, go=f"0:{i}", about=about)
            drawing.text(LEFT + wide + 8, y + 14, text, bold=here, fill="ink" if here else "quiet")
            y += BLOCK
        y += 16
    return drawing
