"""What each call of a jitted function takes: a bar for each call, and the calls that traced anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from minigrad.compile.jitted import jit
from minigrad.core.programs import eager_programs
from minigrad.support.table import time_text
from minigrad.viz.drawing import Axes, Drawing
from minigrad.viz.flipbook import Flipbook, Page

WIDE, HIGH, LEFT, RUNS = 760.0, 250.0, 70.0, 5


def ten_calls(function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> Flipbook:
    """Call a jitted function with each of some arguments in turn: the time of each call, beside that of eager mode.

    >>> book = ten_calls(lambda x: mg.tanh(x) * 2, [[mg.ones(3)], [mg.ones(3)], [mg.ones(4)]])
    >>> print(book.text())
    calls 1, 3 traced the function anew
    """
    jitted, times, new = jit(function), list[float](), list[int]()
    for number, args in enumerate(calls, 1):
        begin = perf_counter()
        jitted(*args)
        times.append(perf_counter() - begin)
        if len(jitted.traces) > len(new):
            new.append(number)
    eager = min(_seconds(eager_programs(False)(function), calls[0]) for _ in range(RUNS))
    said = f"calls {', '.join(map(str, new))} traced the function anew"
    drawing = _drawn(times, new, eager)
    again = [seconds for number, seconds in enumerate(times, 1) if number not in new]
    title = f"a call that traces takes {time_text(max(times))}"
    if again:
        title += f", a call that does not {time_text(min(again))}, eager mode {time_text(eager)}"
    return Flipbook(title, [[Page(drawing, f"{title}; {said}.")]], words=said)


def _seconds(function: Callable[..., Any], args: Sequence[Any]) -> float:
    begin = perf_counter()
    function(*args)
    return perf_counter() - begin


def _drawn(times: Sequence[float], new: Sequence[int], eager: float) -> Drawing:
    drawing = Drawing(WIDE, HIGH + 44)
    drawing.heading(0, 8, "seconds of each call; every line is ten times the one below")
    drawing.text(WIDE, 8, f"- - -  eager mode, {time_text(eager)}", anchor="end", fill="there")
    low = min(*times, eager) / 2
    axes = Axes(drawing, (LEFT, 22, WIDE - LEFT, HIGH), (0.5, len(times) + 0.5), (low, 2 * max(times)),
                log=True, named=False)
    wide = 0.6 * (WIDE - LEFT) / len(times)
    for number, seconds in enumerate(times, 1):
        (x, y), (_, bottom) = axes.at(number, seconds), axes.at(number, low)
        fill, edge = ("back-fill", "back") if number in new else ("leaf-fill", "good")
        drawing.rect(x - wide / 2, y, wide, bottom - y, fill, edge, about=f"call {number}: {time_text(seconds)}")
        drawing.text(x, y - 6, time_text(seconds), anchor="middle", size=11)
        drawing.text(x, bottom + 18, f"{number}{', traced' if number in new else ''}", anchor="middle", size=12,
                     bold=number in new)
    axes.curve([(0.5, eager), (len(times) + 0.5, eager)], "there", dashes="6 3")
    return drawing
