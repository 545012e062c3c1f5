"""Reading values in graph mode: the cost of a read in a loop, after the program is compiled, against eager mode.

    python3 course bench reads
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from _harness import Case, Options, Work, measure, options, report

import minigrad as mg

GOAL = 3.0  # × eager
READS = 100
Round = Callable[[Any, Any], tuple[Any, float]]


def scaled(x: Any, w: Any) -> tuple[Any, float]:
    """Three operations."""
    x = x * 1.01 - 0.01 * w
    return x, x.sum().item()


def layer(x: Any, w: Any) -> tuple[Any, float]:
    """A matrix product and five operations that can be one kernel."""
    x = mg.tanh(x @ w + 0.1)
    return x, (x * x).mean().item()


def reading(step: Round, x: Any, w: Any, mode: Callable[[], Any]) -> float:
    """A loop that takes a step and reads a number, in one graph block."""
    with mode():
        for _ in range(READS):
            x, value = step(x, w)
    return value


def training(size: int, mode: Callable[[], Any]) -> float:
    """Train an MLP and read the loss in each step."""
    mg.random.seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(size, size), mg.nn.Tanh(), mg.nn.Linear(size, 10))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)
    x, y = mg.ones((32, size)), mg.asarray(np.arange(32) % 10)
    with mode():
        for _ in range(READS):
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            value = loss.item()
    return value


def loop(contender: str, step: Round | None, size: int) -> Work:
    """A loop of reads in graph mode or in eager mode; without a step it trains."""
    mode = mg.graph if contender == "minigrad" else nullcontext
    if step is None:
        return lambda: training(size, mode)
    x = mg.asarray(np.random.default_rng(0).standard_normal((size, size), "f4") / size)
    return lambda: reading(step, x, x, mode)


def cases(opts: Options) -> list[Case]:
    sizes = (4,) if opts.smoke else (16, 64, 256)
    found = []
    for size in sizes:
        works: dict[str, Round | None] = {
            f"3 operations on {size} × {size}": scaled, f"a layer of {size} × {size}": layer,
            f"a training step of an MLP, {size} wide": None,
        }
        for name, step in works.items():
            work = partial(loop, step=step, size=size)
            found.append(Case(f"read after {name}", ("minigrad", "eager"), work, GOAL, peer="eager", per=READS))
    return found


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=7)
    return report("Reads in graph mode (`minigrad`), beside eager mode", measure(cases, opts), opts)


if __name__ == "__main__":
    main()
