"""`mg.viz.compare`: the same function eagerly, as a graph and fused, with one slider.

Launches, bytes and times are those of runs on this machine, so only the picture contains them, not the text that a
notebook compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...compile.jitted import Jitted, JittedMethod, jit
from ...compile.look.cost import Cost
from ...compile.look.values import starts_of
from ...compile.running.profiler import profile
from ...compile.running.program import PlainProgram
from ...support.errors import MinigradError
from ...support.table import bytes_text, counted
from ..charts import KINDS
from ..compiled import Shown, programs_of
from ..drawing import Drawing, time_text
from ..exhibit import check_function
from ..flipbook import Flipbook, Knob, Page
from .costs import passes
from .timelines import _not_jitted
from .watching import seconds_of

WIDTH, ROW, BLOCK, LEFT, RIGHT = 900.0, 30.0, 22.0, 76.0, 96.0
WAYS = ("eager", "graph", "fused")
SAYS = (
    "Eager: each operation runs when Python reaches it, and writes its result to memory.",
    "Graph: the recorded operations run one by one, without your Python code between them.",
    "Fused: the compiler joins operations into kernels, so most values never reach memory.",
)
MEASURES = ("launches", "bytes", "time")


class Way(NamedTuple):
    """How a function ran: for each launch its name and the bytes that it reads and writes, and the time in seconds."""

    launches: list[tuple[str, int]]
    seconds: float

    @property
    def bytes(self) -> int:
        """The memory traffic of all launches."""
        return sum(size for _, size in self.launches)


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
    jitted = function if isinstance(function, (Jitted, JittedMethod)) else jit(function)
    shown = programs_of(jitted, args, kwargs, "compare", runs=True)
    plain = _not_jitted(jitted)
    calls: list[Callable[[], object]] = [
        lambda: plain(*args, **kwargs), _node_by_node(shown), lambda: [each.run() for each in shown],
    ]
    launches = [*[[(each.name, each.bytes) for each in passes(call)] for call in calls[:2]], _kernels(shown)]
    times = [seconds_of(call) for _ in range(runs) for call in calls]  # in turns, because the machine may be busy
    return compare_of([Way(each, min(times[i::3])) for i, each in enumerate(launches)])


def compare_of(ways: Sequence[Way]) -> Flipbook:
    """The comparison of three measured ways.

    >>> compare_of([Way([("add", 12), ("add", 12)], 2e-6), Way([("add", 12)], 1e-6), Way([("kernel_0", 8)], 1e-6)])
    <eager, graph and fused: 2, 1 and 1 launches>
    """
    counts = [len(way.launches) for way in ways]
    title = f"eager, graph and fused: {counts[0]:,}, {counts[1]:,} and {counts[2]:,} launches"
    pages = [[Page(_drawn(ways, i), _said(ways, i), (("", _table(ways, i)),))] for i in range(3)]
    words = "\n".join(f"{name}: {counted(count, 'launch', 'launches')}" for name, count in zip(WAYS, counts))
    return Flipbook(title, pages, (Knob("way", WAYS, 0),), words=words)


def _node_by_node(shown: Sequence[Shown]) -> Callable[[], object]:
    """A call that runs the recorded operations one by one, on copies of the inputs, which the graph may overwrite."""
    programs = [PlainProgram(each.program.graph) for each in shown]
    given = [[*each.arrays(), *[node.array() for node in each.program.constants]] for each in shown]
    starts = [starts_of(program.graph) for program in programs]

    def call() -> None:
        for program, arrays, start in zip(programs, given, starts):
            program([array.copy() if hasattr(array, "copy") else array for array in arrays], start)

    return call


def _kernels(shown: Sequence[Shown]) -> list[tuple[str, int]]:
    """The steps that the compiled programs run, each with its memory traffic."""
    launches: list[tuple[str, int]] = []
    for each in shown:
        sizes = {kernel.name: kernel.program.bytes for kernel in Cost(each.program).kernels}
        with profile() as run:
            each.run()
        launches += [(event.name, sizes.get(event.name, 0)) for event in run.events]
    return launches


def _said(ways: Sequence[Way], which: int) -> str:
    way, first = ways[which], ways[0]
    taken = f"{bytes_text(way.bytes)}, {time_text(way.seconds)}"
    text = f"{SAYS[which]} {counted(len(way.launches), 'launch', 'launches')}, {taken}"
    if not which or not way.seconds or not way.bytes or not way.launches:
        return text + "."
    fewer, less = len(first.launches) / len(way.launches), first.bytes / way.bytes
    return f"{text}: {fewer:.3g} times fewer launches and {less:.3g} times less traffic than eager."


def _table(ways: Sequence[Way], which: int) -> tuple[str, Any]:
    rows = [[n, f"{len(w.launches):,}", bytes_text(w.bytes), time_text(w.seconds)] for n, w in zip(WAYS, ways)]
    return ("table", {"head": ["", *MEASURES], "rows": rows, "here": which})


def _drawn(ways: Sequence[Way], which: int) -> Drawing:
    """Each launch as a block as wide as its bytes, and below three groups of bars that compare the ways."""
    across = WIDTH - LEFT - RIGHT
    drawing = Drawing(WIDTH, 78.0 + 3 * (3 * BLOCK + ROW + 8))
    way, most = ways[which], max(max(each.bytes for each in ways), 1)
    drawing.heading(0, 12, f"{WAYS[which]}: each block is a launch, as wide as the bytes that it reads and writes")
    x, scale = 0.0, WIDTH / most
    for name, size in way.launches:
        colour = "other" if which < 2 else "kernel" if name.startswith("kernel_") else "library"
        about = f"{name}: {bytes_text(size)}"
        stroke, fill = KINDS[colour]
        drawing.rect(x, 22, max(size * scale, 0.5), 30, fill, stroke, thick=0.7, round=1, about=about)
        x += size * scale
    figures: list[list[tuple[float, str]]] = [
        [(len(each.launches), f"{len(each.launches):,}") for each in ways],
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
