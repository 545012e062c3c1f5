"""Views of whole programs: the seconds until a view is drawn, the size of its page, and the time of a click.

    python3 course bench views
    python3 course bench views --only 'fusion*'
    python3 course bench views --only '*ResNet-18*'

The programs are those that readers bring: a few lines, training steps, recurrent layers, graph networks, loops,
branches, second derivatives.  Clicks need a browser (Debian's chromium) and the package playwright.
"""

from __future__ import annotations

import fnmatch
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _harness import Options, facts, options, text_of
from seeing import CLICKS
from training import MODELS, Task, examples

import minigrad as mg
from minigrad import nn
from minigrad.support.errors import MinigradError

SECONDS, BYTES, CLICK = 2.0, 500_000, 0.050  # the goals
TASKS = {
    "MLP": Task("MLP", "mlp", (64, 32, 10), "Adam", 32),
    "CNN": Task("CNN", "cnn", (8, 8, 16), "Adam", 16),
    "GPT": Task("GPT", "gpt", (2, 32, 4, 16, 27), "Adam", 8),
    "ResNet-18": Task("ResNet-18", "resnet", (32, 16), "SGD", 8),
}


class Program(NamedTuple):
    """A program: `loss` returns its recorded result, and `f(*args)` is the function that is jitted."""

    loss: Callable[[], Any]
    f: Callable[..., Any]
    args: tuple[Any, ...]


def of_loss(f: Callable[..., Any], *args: Any) -> Program:
    """A program without an update: the function of its loss."""
    return Program(lambda: f(*args), f, args)


def trained(task: Task) -> Program:
    """A training step: loss, backward and update."""
    mg.random.seed(0)
    model = MODELS[task.model](None, *task.sizes)
    optimizer = mg.optim.Adam(model.parameters(), lr=1e-3) if task.optimizer == "Adam" else mg.optim.SGD(
        model.parameters(), lr=0.1
    )

    def loss(x: Any, y: Any) -> Any:
        logits = model(x)
        return mg.cross_entropy(logits.reshape(-1, logits.shape[-1]), y)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = loss(x, y)
        value.backward()
        optimizer.step()
        return value

    x, y = map(mg.asarray, examples(task))
    return Program(lambda: loss(x, y), step, (x, y))


def three_lines() -> Program:
    def f(x: Any) -> Any:
        a = 2 * x
        return a * a + a

    return of_loss(f, mg.asarray(1.0, requires_grad=True))


def lstm() -> Program:
    layer, head = nn.LSTM(5, 8, batch_first=True), nn.Linear(8, 1)
    return of_loss(lambda x: (head(layer(x)[0])[:, -1] ** 2).mean(), numbers(3, 7, 5))


def gcn() -> Program:
    weight, nodes = numbers(8, 4), numbers(34, 8)
    start, end = (mg.asarray(np.random.default_rng(seed).integers(0, 34, 78)) for seed in (1, 2))

    def f(nodes: Any) -> Any:
        return (mg.segment_sum(mg.tanh(nodes @ weight)[start], end, 34) ** 2).mean()

    return of_loss(f, nodes)


def spring() -> Program:
    """A mass on a spring, for twelve rounds of time."""

    def f(place: Any, stiffness: Any) -> Any:
        speed = mg.zeros(2)
        for _ in range(12):
            force = -stiffness * place - 0.1 * speed
            speed = speed + 0.05 * force
            place = place + 0.05 * speed
            length = mg.sqrt((place * place).sum() + 1e-3)
            place = place * (1 + 0.01 * (1 - length))
        return (place * place).sum() + (speed * speed).sum()

    return of_loss(f, numbers(2), numbers(2))


def branch() -> Program:
    return of_loss(lambda x: mg.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: mg.exp(x).sum(), x), numbers(4))


def hvp() -> Program:
    direction = mg.ones(6)

    def f(x: Any) -> Any:
        slope = mg.grad(lambda x: (mg.tanh(x) * x * x).sum())
        return (mg.jvp(slope, (x,), (direction,))[1] ** 2).sum()

    return of_loss(f, numbers(6))


def numbers(*shape: int) -> Any:
    return mg.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32), requires_grad=True)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "three lines": three_lines, **{name: lambda task=task: trained(task) for name, task in TASKS.items()},  # type: ignore[misc]
    "LSTM": lstm, "GCN": gcn, "spring": spring, "cond": branch, "hvp": hvp,
}
VIEWS: dict[str, Callable[[Program], Any]] = {
    "graph": lambda p: mg.viz.graph(p.loss()),
    "graph, backward": lambda p: mg.viz.graph(p.loss(), backward=True, values=True),
    "graph(f)": lambda p: mg.viz.graph(p.f, *p.args),
    "step": lambda p: mg.viz.step(p.loss()),
    **{name: lambda p, name=name: getattr(mg.viz, name)(p.f, *p.args)  # type: ignore[misc]
       for name in ("fusion", "memory", "timeline")},
}


def measured(name: str, program: Program) -> list[str]:
    """The cells of one line: seconds to draw, size of the page, a click, and what is above its goal."""
    start = time.perf_counter()
    try:
        html = VIEWS[name](program).to_html()
    except MinigradError as error:
        return ["refused", str(error).splitlines()[0], "", ""]
    seconds = time.perf_counter() - start
    click = clicked(html)
    over = [what for what, is_over in (
        ("time", seconds > SECONDS), ("size", len(html) > BYTES), ("click", click is not None and click > CLICK),
    ) if is_over]
    return [text_of(seconds), f"{len(html) / 1e3:,.0f} kB", "" if click is None else text_of(click),
            f"**over**: {', '.join(over)}" if over else "ok"]


def clicked(html: str) -> float | None:
    """The median seconds from a click on `next` to the visible frame; None without a browser or such a button."""
    try:
        from tests.viz.browser import missing, opened
    except ImportError:
        return None
    if missing() is not None:
        return None
    with opened(html, size=(1400, 900), timeout=60_000) as page:
        page.wait_for_selector(".mg-view button", state="attached")  # the data are unpacked first
        if not page.get_by_text("next ›").count():
            return None
        page.keyboard.press("Tab")
        page.keyboard.press("Home")
        return statistics.median(page.evaluate(CLICKS, 10)) / 1e3


def table(opts: Options) -> list[str]:
    lines = ["| view: program | seconds to draw | page | a click | |", "|---" * 5 + "|"]
    programs = {name: make() for name, make in list(PROGRAMS.items())[: 1 if opts.smoke else None]}
    for view in list(VIEWS)[: 4 if opts.smoke else None]:
        for name, program in programs.items():
            if fnmatch.fnmatch(f"{view}: {name}", opts.only):
                lines.append(f"| {view}: {name} | {' | '.join(measured(view, program))} |")
    return lines


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=1)
    goals = f"The goals: {SECONDS:g} s, {BYTES // 1000} kB, {CLICK * 1e3:.0f} ms a click."
    text = f"## Views\n\n{facts(opts)}\n\n{goals}\n\n" + "\n".join(table(opts)) + "\n"
    print(text)
    return text


if __name__ == "__main__":
    main()
