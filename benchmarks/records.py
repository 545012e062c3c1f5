"""What views state about time: the record of a call beside the clock around such calls, for ten programs.

    python3 course bench records
    python3 course bench records --only GPT

Each ratio is what a view states divided by the clock: the least of many calls, timed in turns with the views.  The goal
is 0.95 to 1.1.  All views read one record, so a column for each shows only how much two measurements differ.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable
from typing import Any

from _harness import Options, facts, options
from views import PROGRAMS

import minigrad as mg
from minigrad.compile.look.record import eager_record, in_turns

UNITS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}
ROUNDS, SECONDS = 5, 0.3  # of each round, the clock runs so long
HEAD = ["program", "clock, jitted", "record", "timeline", "clock, eager", "record", "timeline"]


def clock(call: Callable[[], Any]) -> float:
    """The least seconds of some calls."""
    times, end = [], time.perf_counter() + SECONDS
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def stated(text: str, after: str) -> float:
    """The seconds that stand after some words in what a view says."""
    number, unit = re.search(rf"{after}\D*?([\d.,e+]+) (µs|ms|s)\b", text).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) * UNITS[unit]


def measured(make: Callable[[], Any]) -> list[list[float]]:
    """The least seconds of the jitted and of the eager function: by the clock, and as the views state them."""
    program = make()
    jitted, eager = mg.jit(program.f), program.f
    jitted(*program.args)
    found: list[list[float]] = []
    for _ in range(ROUNDS):
        eagerly, jitting = [band.says for band in mg.viz.timeline(jitted, *program.args).bands if not band.model]
        found.append([
            clock(lambda: jitted(*program.args)), jitted.record(*program.args).seconds,
            stated(jitting, ""), clock(lambda: eager(*program.args)),
            in_turns([eager_record(lambda: eager(*program.args))])[0].seconds, stated(eagerly, ""),
        ])
    return [min(column) for column in zip(*found)]  # type: ignore[misc]


def table(opts: Options) -> list[str]:
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for name, make in list(PROGRAMS.items())[: 1 if opts.smoke else None]:
        if fnmatch.fnmatch(name, opts.only):
            by_clock, *jitted, eager, alone, together = measured(make)
            ratios = [[f"{each / whole:.2f}" for each in some] for whole, some in
                      ((by_clock, jitted), (eager, [alone, together]))]
            cells = [name, microseconds(by_clock), *ratios[0], microseconds(eager), *ratios[1]]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=5)
    text = f"## Records\n\n{facts(opts)}\n\n" + "\n".join(table(opts)) + "\n"
    print(text)
    return text


if __name__ == "__main__":
    main()
