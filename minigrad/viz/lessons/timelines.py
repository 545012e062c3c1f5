"""`mg.viz.timeline`: how a function spends its time, eagerly and as a program: in Python and in kernels.

Times differ from run to run, so only the picture and the tables contain them, not the text that a notebook compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from types import MethodType
from typing import Any, NamedTuple

from ...compile.jitted import Jitted, JittedMethod, jit
from ...compile.running.profiler import profile
from ...compile.save.read import LoadedProgram
from ...core.tensor import Tensor
from ...core.tree import leaves
from ...support.errors import MinigradError
from ..compiled import programs_of
from ..drawing import Axes, Drawing, counted, time_text
from ..exhibit import check_function
from ..flipbook import Block, Flipbook, Page
from .watching import watching

MOST = 400  # kernels of one run in the drawing
WIDTH, LANE, LEFT = 640.0, 54.0, 104.0
SHORT = 6.0  # the width that a letter needs in a block


class Span(NamedTuple):
    """A kernel or a library call: its begin and end, in microseconds since the run began."""

    name: str
    begin: float
    end: float


class Run(NamedTuple):
    """The quickest of some runs: the way of running, the total time, and the kernels."""

    way: str
    total: float
    spans: list[Span]

    @property
    def kernels(self) -> float:
        """The time in kernels and library calls, in microseconds."""
        return sum(span.end - span.begin for span in self.spans)


def timeline(function: Callable[..., Any], *args: Any, runs: int = 7, **kwargs: Any) -> Flipbook:
    """Time a function, eagerly and as a program of `mg.jit`, and show the time in Python and in kernels.

    If the last call of a jitted function kept values for its gradient, that program and the gradient's are timed.  The
    quickest of `runs` is shown.  The measurement itself takes about a third of a microsecond for each kernel.

    >>> x = mg.ones((8, 8))
    >>> mg.viz.timeline(lambda x: mg.tanh(x @ x).sum(), x)
    <timeline: 3 kernels eagerly, 2 as a program>
    """
    check_function("timeline", function, "mg.viz.timeline(lambda: x @ w)")
    if runs < 1:
        raise MinigradError(f"timeline: {runs} runs show nothing", expect="runs=1 or more")
    ways = [] if isinstance(function, LoadedProgram) else [_eager(_not_jitted(function), args, kwargs, runs)]
    try:
        return timeline_of([*ways, *_programs(function, args, kwargs, runs)])
    except MinigradError as error:
        if not ways:
            raise
        return timeline_of(ways, f"It does not run as a program: {str(error).splitlines()[0]}")


def timeline_of(ways: Sequence[Run], why: str = "") -> Flipbook:
    """The timeline of measured runs; `why` is the reason why one run is missing.

    >>> timeline_of([Run("eagerly", 10.0, [Span("add", 1.0, 4.0)])])
    <timeline: 1 kernel eagerly>
    """
    counts = [f"{_many(ways[0])} {ways[0].way}", *[f"{len(run.spans)} {run.way}" for run in ways[1:]]]
    pages = [Page(_drawn(ways, None), _summed(ways, why), _blocks(ways, why))]
    for w, run in enumerate(ways):
        pages += [_page(ways, w, i) for i in range(min(len(run.spans), MOST))]
    words = "\n".join(f"{run.way}: {', '.join(span.name for span in run.spans) or 'no kernel'}" for run in ways)
    return Flipbook("timeline: " + ", ".join(counts), [pages], cover=0, unit="call", words=words)


def _eager(function: Callable[..., Any], args: Any, kwargs: Any, runs: int) -> Run:
    """The quickest run, kernel by kernel."""
    best: Run | None = None
    for _ in range(runs):
        with watching(frames=False, keep=False) as calls:
            begin = perf_counter()
            function(*args, **kwargs)
            end = perf_counter()
        spans = [Span(c.op.name, (c.begin - begin) * 1e6, (c.end - begin) * 1e6) for c in calls]
        run = Run("eagerly", (end - begin) * 1e6, spans)
        best = run if best is None or run.total < best.total else best
    assert best is not None
    return best


def _not_jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside a jitted function."""
    if isinstance(function, JittedMethod):
        return MethodType(function.jitted.function, function.__self__)
    return function.function if isinstance(function, Jitted) else function


def _programs(function: Callable[..., Any], args: Any, kwargs: Any, runs: int) -> list[Run]:
    """The runs as a program, and of the gradient's program if the last call kept values for it."""
    if isinstance(function, LoadedProgram):
        return [_quickest("as a program", lambda: function(*args, **kwargs), runs)]
    jitted = function if isinstance(function, (Jitted, JittedMethod)) else jit(function)
    shown = programs_of(jitted, args, kwargs, "timeline", runs=True) if jitted.recordings else []
    if not shown or not shown[0].keeps:
        return [_quickest("as a program", lambda: jitted(*args, **kwargs), runs)]
    ways = ["as a program that keeps values", *[f"in its {each.title}" for each in shown[1:]]]
    return [_quickest(way, each.run, runs) for way, each in zip(ways, shown)]


def _quickest(way: str, call: Callable[[], object], runs: int) -> Run:
    """The quickest run of a call of programs, step by step."""
    best: Run | None = None
    _settled(call())
    for _ in range(runs):
        with profile() as noted:
            begin = perf_counter()
            _settled(call())
            end = perf_counter()
        start = begin - noted.start
        spans = [Span(e.name, (e.begin - start) * 1e6, (e.end - start) * 1e6) for e in noted.events]
        run = Run(way, (end - begin) * 1e6, sorted(spans, key=lambda span: span.begin))
        best = run if best is None or run.total < best.total else best
    assert best is not None
    return best


def _settled(result: Any) -> None:
    for tensor in leaves(result):
        if isinstance(tensor, Tensor):
            tensor.device.synchronize()


def _many(run: Run) -> str:
    return counted(len(run.spans), "kernel")


def _share(run: Run) -> str:
    return f"{100 * (1 - run.kernels / run.total):.0f} %" if run.total else "–"


def _summed(ways: Sequence[Run], why: str) -> str:
    said = [f"{run.way} {_time(run.total)}, of which {_time(run.kernels)} in {_many(run)}" for run in ways]
    text = "; ".join(said)
    if len(ways) > 1 and ways[1].total:
        text += f": {ways[0].total / ways[1].total:.2g} times as long eagerly"
    return f"{text[0].upper()}{text[1:]}.{' ' + why if why else ''}"


def _blocks(ways: Sequence[Run], why: str) -> tuple[tuple[str, Block], ...]:
    rows = [[run.way, _time(run.total), _time(run.kernels), _share(run)] for run in ways]
    found: list[tuple[str, Block]] = [("", ("table", {"head": ["", "in all", "kernels", "Python"], "rows": rows}))]
    for run in ways:
        taken: dict[str, list[float]] = {}
        for span in run.spans:
            taken.setdefault(span.name, []).append(span.end - span.begin)
        listed = sorted(taken.items(), key=lambda item: -sum(item[1]))[:8]
        rows = [[name, str(len(times)), _time(sum(times))] for name, times in listed]
        found.append((run.way, ("table", {"head": ["what", "calls", "time"], "rows": rows})))
    return tuple(found)


def _page(ways: Sequence[Run], which: int, at: int) -> Page:
    run = ways[which]
    span = run.spans[at]
    before = run.spans[at - 1].end if at else 0.0
    gap = max(0.0, span.begin - before)
    took = _time(span.end - span.begin)
    says = f"{run.way}, call {at + 1}: {span.name} ran for {took}, after {_time(gap)} of Python."
    rows = [["Python before it", _time(gap)], ["the kernel", took],
            ["done after", _time(span.end)], ["in all", _time(run.total)]]
    return Page(_drawn(ways, (which, at)), says, (("times", ("table", {"head": None, "rows": rows})),))


def _time(microseconds: float) -> str:
    return time_text(microseconds / 1e6)


def _drawn(ways: Sequence[Run], here: tuple[int, int] | None) -> Drawing:
    """A lane for each run on one scale: Python grey, the kernels in colour."""
    drawing = Drawing(WIDTH + LEFT, 60 + len(ways) * (LANE + 34))
    longest = max([run.total for run in ways], default=1.0) or 1.0
    scale = WIDTH / longest
    begin = len(drawing.pieces)
    for w, run in enumerate(ways):
        y = 22 + w * (LANE + 34)
        drawing.heading(0, y + 12, run.way)
        drawing.text(0, y + 30, _time(run.total), fill="quiet")
        drawing.text(0, y + 45, f"{_share(run)} Python", fill="quiet")
        drawing.rect(LEFT, y, run.total * scale, LANE, "tint", "quiet", round=2, about="Python")
    drawing.merge(begin)
    first = 1
    for w, run in enumerate(ways):
        y = 22 + w * (LANE + 34)
        for i, span in enumerate(run.spans[:MOST]):
            lit = here == (w, i)
            width = max((span.end - span.begin) * scale, 0.8)
            x, about = LEFT + span.begin * scale, f"{span.name}: {_time(span.end - span.begin)}"
            stroke, thick = ("now", 3.0) if lit else ("paper", 0.4)
            drawing.rect(x, y, width, LANE, "good" if w else "there", stroke, thick=thick, round=1, about=about,
                         go=f"page:{first + i}")
            if width > SHORT * len(span.name) + 6:
                drawing.text(x + width / 2, y + LANE / 2 + 4, span.name, anchor="middle", fill="paper")
        first += min(len(run.spans), MOST)
    _axis(drawing, longest, 22 + len(ways) * (LANE + 34) - 20)
    return drawing


def _axis(drawing: Drawing, longest: float, y: float) -> None:
    begin = len(drawing.pieces)
    place = LEFT - Axes.LEFT, y, WIDTH + Axes.LEFT, 1 + Axes.BELOW
    Axes(drawing, place, (0.0, longest), (0.0, 1.0), ticks="across")
    drawing.text(LEFT + WIDTH, y + 32, "microseconds", fill="quiet", anchor="end")
    drawing.merge(begin)
