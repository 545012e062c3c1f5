"""Pictures: the time of layouts and SVG as graphs grow, of recording steps, and from click to picture in a browser.

    python3 course bench seeing

The last needs a browser (Debian's chromium) and the package playwright.  Without them, that table is missing.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from _harness import Options, facts, options, text_of

import minigrad as mg
from minigrad.core.node import topological_order
from minigrad.viz.scene import Scene, scene_of
from minigrad.viz.svg import draw

SIZES = (14, 100, 1_000, 5_000)
DRAWING = {1_000: 0.1, 5_000: 1.0}  # nodes -> the goal in seconds for layout and SVG
CLICKING = {100: 0.050, 500: 0.150}  # nodes -> the goal in seconds
CLICKS = """async (count) => {
    const next = [...document.querySelectorAll("button")].find((button) => button.textContent.startsWith("next"));
    const times = [];
    for (let i = 0; i < count; i += 1) {
        const start = performance.now();
        next.click();
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));  // it has been drawn
        times.push(performance.now() - start);
    }
    return times;
}"""


def chain(nodes: int) -> Any:
    """A deep graph with a shortcut around every third operation."""
    x = mg.ones(2, requires_grad=True)
    for _ in range(nodes // 3):
        x = mg.tanh(x * 0.5) + x
    return x.sum()


def tangle(nodes: int) -> Any:
    """A graph whose operations take random earlier results."""
    chance = random.Random(0)
    made = [mg.ones(2, requires_grad=True) for _ in range(8)]
    while len(made) < nodes - 9:
        a, b = chance.choice(made[-8:]), chance.choice(made[-12:])
        made.append(a + b if chance.random() < 0.5 else a - b)
    total = made[-8]
    for each in made[-7:]:
        total = total + each
    return total.sum()


def best(work: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """The median and the minimum of several times."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times)


def verdict(taken: float, goal: float | None) -> str:
    return "| |" if goal is None else f"≤ {text_of(goal)} | {'ok' if taken <= goal else '**over**'} |"


def drawing(opts: Options) -> list[str]:
    """The time for a picture of all boxes, in Python."""
    lines = ["| graph | nodes | scene | layout and SVG | best | goal for the best | |", "|---" * 7 + "|"]
    for make in (chain, tangle):
        for size in SIZES[:1] if opts.smoke else SIZES:
            nodes = topological_order([make(size).node])
            scene: Scene = scene_of(nodes)
            of_scene, _ = best(lambda nodes=nodes: scene_of(nodes), opts.rounds)  # type: ignore[misc]
            median, least = best(lambda scene=scene: draw(scene), opts.rounds)  # type: ignore[misc]
            times = " | ".join(map(text_of, (of_scene, median, least)))
            lines.append(f"| {make.__name__} | {len(nodes):,} | {times} | {verdict(least, DRAWING.get(size))}")
    return lines


def folding(opts: Options) -> list[str]:
    """The time of `mg.viz.graph` and `mg.viz.step` as a whole, with scopes and loops closed."""
    lines = ["| what is shown | nodes | time | as a page |", "|---" * 4 + "|"]
    sizes = (14,) if opts.smoke else (14, 100, 1_000, 100_000)
    for size in sizes:
        loss = chain(size)
        count = len(topological_order([loss.node]))
        picture = mg.viz.graph(loss)
        median, _ = best(lambda loss=loss: mg.viz.graph(loss).to_html(), 1 if size > 1_000 else opts.rounds)  # type: ignore[misc]
        lines.append(f"| graph | {count:,} | {text_of(median)} | {len(picture.to_html()) / 1e3:,.0f} KB |")
    for size in sizes[:3]:
        loss = chain(size)
        page = mg.viz.step(loss).to_html()
        count = len(topological_order([loss.node]))
        median, _ = best(lambda loss=loss: mg.viz.step(loss).to_html(), opts.rounds)  # type: ignore[misc]
        lines.append(f"| stepper | {count:,} | {text_of(median)} | {len(page) / 1e3:,.0f} KB |")
    return lines


def clicking(opts: Options) -> list[str]:
    """The time from a click on `next` to the visible frame, in a picture with every node and its gradient."""
    try:
        from tests.viz.browser import missing, opened
    except ImportError as error:
        return [f"Click to picture was not measured: {error}."]
    if missing() is not None:
        return [f"Click to picture was not measured: {missing()}."]
    lines = ["| nodes, each with its gradient | click to picture | longest of 20 | goal | |", "|---" * 5 + "|"]
    for size, goal in CLICKING.items():
        nodes = 14 if opts.smoke else size
        html = mg.viz.step(chain(nodes - 3), budget=1_000).to_html()
        with opened(html, size=(1400, 900), timeout=30_000) as page:
            page.wait_for_selector(".mg-view button")  # the data are unpacked first
            times = [t / 1e3 for t in page.evaluate(CLICKS, 2 if opts.smoke else 20)]
        median = statistics.median(times)
        lines.append(f"| {nodes} | {text_of(median)} | {text_of(max(times))} | {verdict(median, goal)}")
        if opts.smoke:
            break
    return lines


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=7)
    parts = [f"## Seeing\n\n{facts(opts)}", *["\n".join(part(opts)) + "\n" for part in (drawing, folding, clicking)]]
    text = "\n".join(parts)
    print(text)
    return text


if __name__ == "__main__":
    main()
