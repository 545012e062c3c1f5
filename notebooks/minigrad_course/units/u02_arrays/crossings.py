"""What the library is for, measured: a product in four ways, small and large arrays, calls over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from minigrad.compile.look.record import seconds_of
from minigrad.compile.look.watching import Call, watching
from minigrad.core.tensor import Tensor
from minigrad.ops.contract import matmul
from minigrad.ops.creation import asarray
from minigrad.support.errors import MinigradError
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

SIDE = 64  # of the matrices that are multiplied
LENGTHS = (1, 10, 100, 1_000, 10_000, 100_000)
WIDTH, LEFT, LANE = 640.0, 160.0, 44.0
PATIENCE, ROUNDS = 0.15, 20  # seconds and calls of a measurement, at most


def rounds() -> Iterator[int]:
    """Some rounds of a measurement: at least two, and no more when it takes long."""
    begin = perf_counter()
    for number in range(ROUNDS):
        if number < 2 or perf_counter() - begin < PATIENCE:
            yield number


def quickest(function: Callable[[], Any]) -> float:
    """The least time of some calls, in seconds."""
    return min(seconds_of(function) for _ in rounds())


# ---- a product in four ways ------------------------------------------------------------------------------------------


def by_loops(a: Any, b: Any) -> Any:
    """The product of two matrices, as lists, number by number."""
    columns = list(zip(*b))
    return [[sum([x * y for x, y in zip(row, column)]) for column in columns] for row in a]


def by_numbers(a: Tensor, b: Tensor) -> Any:
    """One call for each number of the result."""
    rows, columns = list(a), list(b.T)
    return [[row @ column for column in columns] for row in rows]


def by_rows(a: Tensor, b: Tensor) -> Any:
    """One call for each row of the result."""
    return [row @ b for row in a]


def ladder(side: int = SIDE) -> Flipbook:
    """The same product in four ways: how often Python calls the library, and how long it takes on this machine.

    >>> print(ladder(2).text())
    Python loops: 0 calls
    number by number: 4 calls
    row by row: 2 calls
    one product: 1 call
    """
    draw = np.random.default_rng(0)
    lists = [draw.random((side, side)).tolist() for _ in range(2)]
    a, b = (asarray(each) for each in lists)
    ways: tuple[tuple[str, str, int, Callable[[], Any]], ...] = (
        ("Python loops", "sum of x * y", 0, lambda: by_loops(*lists)),
        ("number by number", "row @ column", side * side, lambda: by_numbers(a, b)),
        ("row by row", "row @ b", side, lambda: by_rows(a, b)),
        ("one product", "a @ b", 1, lambda: matmul(a, b)),
    )
    times = [quickest(way[3]) for way in ways]
    counts = [_calls(calls) for _, _, calls, _ in ways]
    rows = [(name, code) for name, code, _, _ in ways]
    title = f"two matrices of {side} × {side}"
    factors = [f"{time / times[-1]:,.0f} times as long" for time in times[:-1]]
    pages = [
        Page(_bars(f"{title}: calls into the library", rows, [calls for _, _, calls, _ in ways], counts),
             "The arithmetic is the same in all four ways.", name="calls"),
        Page(_bars(f"{title}: time on this machine", rows, times, [*factors, "1"]),
             "Measured. The scale is logarithmic: the same step to the right is the same factor.", name="time"),
    ]
    words = "\n".join(f"{name}: {count}" for (name, _), count in zip(rows, counts))
    return Flipbook("one matrix product in four ways", [pages], cover=0, words=words)


def _bars(title: str, rows: Sequence[tuple[str, str]], values: Sequence[float], texts: Sequence[str]) -> Drawing:
    """A bar for each row, on a logarithmic scale; 0 has none."""
    drawing = Drawing(WIDTH, 26 + (LANE + 12) * len(rows))
    drawing.heading(0, 12, title)
    least = min(value for value in values if value)
    decades = np.log10(max(values) / least) + 0.3
    for i, ((name, code), value, text) in enumerate(zip(rows, values, texts)):
        y = 26 + (LANE + 12) * i
        drawing.text(0, y + 19, name, bold=True, size=13)
        drawing.text(0, y + 36, code, fill="quiet", code=True)
        wide = (np.log10(value / least) + 0.3) / decades * (WIDTH - LEFT - 180) if value else 0.0
        if value:
            drawing.rect(LEFT, y + 4, wide, LANE - 8, "there-fill" if i else "back-fill", "there" if i else "back",
                         thick=1.6)
        drawing.text(LEFT + wide + 8, y + 28, text, bold=True, size=14)
    return drawing


def _calls(count: int) -> str:
    return f"{count:,} call{'s' * (count != 1)}"


# ---- small and large arrays ------------------------------------------------------------------------------------------


def race(lengths: tuple[int, ...] = LENGTHS) -> Flipbook:
    """Adding two lists in Python against adding two arrays in the library, for several lengths.

    >>> race((1, 10))
    <adding 1 to 10 numbers, in Python and in the library>
    """
    ratios = []
    for length in lengths:
        x, y = [1.5] * length, [2.5] * length
        a, b = asarray(x), asarray(y)
        often = max(1, 2_000 // length)
        ratios.append(_per(lambda: [p + q for p, q in zip(x, y)], often)  # noqa: B023
                      / _per(lambda: a + b, often))  # noqa: B023
    rows = [(f"{length:,} number{'s' * (length != 1)}", "") for length in lengths]
    texts = [f"{length:,}, or 1 call" for length in lengths]
    steps = _bars("steps of the interpreter, with a loop and with a call", rows, lengths, texts)
    pages = [Page(steps, "Python adds number by number. The library adds all of them in one call.", name="steps"),
             Page(_race(lengths, ratios), "A call costs the same for one number and for a hundred. Measured on this "
                  "machine; the scale is logarithmic.", name="time")]
    words = f"counted and measured for {', '.join(f'{length:,}' for length in lengths)} numbers"
    return Flipbook(f"adding {lengths[0]:,} to {lengths[-1]:,} numbers, in Python and in the library", [pages], cover=0,
                    words=words)


def _race(lengths: Sequence[int], ratios: Sequence[float]) -> Drawing:
    """A bar to the left where Python is quicker, and to the right where the library is."""
    drawing = Drawing(WIDTH, 40 + 40.0 * len(lengths))
    middle, half = WIDTH / 2 + 30, WIDTH / 2 - 110
    most = max(abs(np.log10(ratios)).max(), 1.0)
    drawing.text(middle - 12, 12, "Python is quicker", anchor="end", fill="back", bold=True)
    drawing.text(middle + 12, 12, "the library is quicker", fill="there", bold=True)
    for i, (length, ratio) in enumerate(zip(lengths, ratios)):
        y, wide = 26 + 40.0 * i, abs(np.log10(ratio)) / most * half
        python = ratio < 1
        drawing.text(0, y + 20, f"{length:,} number{'s' * (length != 1)}", bold=True, size=14)
        drawing.rect(middle - wide if python else middle, y, wide, 30, "back-fill" if python else "there-fill",
                     "back" if python else "there", thick=1.6)
        factor = 1 / ratio if python else ratio
        text, room = f"{factor:,.0f} times" if factor >= 9.5 else f"{factor:.1f} times", wide + 8
        drawing.text(middle - room if python else middle + room, y + 20, text, anchor="end" if python else "start",
                     bold=True)
    drawing.path([(middle, 22), (middle, 40 + 40.0 * len(lengths))], "ink", thick=1.4)
    return drawing


def _per(function: Callable[[], Any], often: int) -> float:
    def repeated() -> None:
        for _ in range(often):
            function()

    return quickest(repeated) / often


# ---- the interpreter and the library over time -----------------------------------------------------------------------


def there_and_back(function: Callable[[], Any]) -> Flipbook:
    """When Python runs and when the library runs, as a function is called: one page for each call into the library.

    >>> there_and_back(lambda: (mg.ones((4, 4)) @ mg.ones((4, 4))).sum())
    <4 calls: full, full, matmul, sum>
    """
    if not callable(function):
        raise MinigradError("there_and_back needs a function", hint="there_and_back(lambda: a @ b)")
    best: tuple[float, list[tuple[str, float, float]]] = (float("inf"), [])
    for _ in rounds():
        with watching(frames=False, keep=False) as calls:
            begin = perf_counter()
            function()
            total = perf_counter() - begin
        if total < best[0]:
            best = total, [_span(call, begin) for call in calls]
    total, spans = best
    equal = [(name, 2 * i + 1.0, 2 * i + 2.0) for i, (name, _, _) in enumerate(spans)]
    order = _lanes(2.0 * len(spans) + 1, equal, -1, "in order, not to scale")
    pages = [Page(order, "Above, the interpreter runs Python; below, the library computes. At no time do both run.")]
    for here, (name, _, _) in enumerate(spans):
        said = f"{name} runs in the library. The interpreter waits until it returns."
        pages.append(Page(_lanes(total, spans, here, f"{total * 1e6:,.0f} µs, measured on this machine"), said))
    title = f"{_calls(len(spans))}: {', '.join(name for name, _, _ in spans)}"
    return Flipbook(title, [pages], cover=0, unit="call", words=title)


def _span(call: Call, begin: float) -> tuple[str, float, float]:
    return call.op.name, call.begin - begin, call.end - begin


def _lanes(total: float, spans: list[tuple[str, float, float]], here: int, scaled: str) -> Drawing:
    drawing = Drawing(WIDTH, 190)
    left, scale = 100.0, (WIDTH - 104.0) / total
    for y, name in ((26.0, "interpreter"), (116.0, "library")):
        drawing.text(0, y + 27, name, bold=True, size=14)
        drawing.rect(left, y, total * scale, LANE, "paper", "line", dashes="4 4")
    ends = [0.0, *[end for _, _, end in spans]]
    starts = [*[begin for _, begin, _ in spans], total]
    for begin, end in zip(ends, starts):
        drawing.rect(left + begin * scale, 26, (end - begin) * scale, LANE, "tint", "quiet", round=1, about="Python")
    for i, (name, begin, end) in enumerate(spans):
        x, wide = left + begin * scale, max((end - begin) * scale, 1.0)
        now = i == here
        drawing.rect(x, 116, wide, LANE, "there-fill", "now" if now else "there", thick=3 if now else 1.4, round=1,
                     about=name)
        if wide > 9.0 * len(name):
            drawing.text(x + wide / 2, 143, name, anchor="middle", bold=True)
        elif now:
            drawing.text(x + wide / 2, 178, name, anchor="middle", bold=True)
        if now or len(spans) < 12:
            for place, (top, bottom) in ((x, (70, 116)), (x + wide, (116, 70))):
                drawing.path([(place, top), (place, bottom)], "now" if now else "quiet", thick=1.6, arrow=now)
    drawing.text(left + total * scale, 14, scaled, anchor="end", fill="quiet")
    return drawing
