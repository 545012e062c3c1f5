"""Reading values in graph mode: the cost of a read in a loop, after the program is compiled, against eager mode.

    python3 course bench reads
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from _harness import Case, Options, measure, options, report

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


def reading(step: Round, x: Any, w: Any, mode: Callable[[], Any]) -> None:
    """A loop that takes a step and reads a number, in one graph block."""
    with mode():
        for _ in range(READS):
            x, _ = step(x, w)


def training(size: int, mode: Callable[[], Any]) -> None:
    """Train an MLP and read the loss in each step."""
    model = mg.nn.Sequential(mg.nn.Linear(size, size), mg.nn.Tanh(), mg.nn.Linear(size, 10))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.01)
    x, y = mg.ones((32, size)), mg.asarray(np.arange(32) % 10)
    with mode():
        for _ in range(READS):
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            loss.item()


def cases(opts: Options) -> list[Case]:
    sizes = (4,) if opts.smoke else (16, 64, 256)
    found = []
    for size in sizes:
        x = mg.asarray(np.random.default_rng(0).standard_normal((size, size), "f4") / size)
        works: dict[str, Callable[[Callable[[], Any]], None]] = {
            f"3 operations on {size} × {size}": lambda mode, x=x: reading(scaled, x, x, mode),
            f"a layer of {size} × {size}": lambda mode, x=x: reading(layer, x, x, mode),
            f"a training step of an MLP, {size} wide": lambda mode, size=size: training(size, mode),
        }
        for name, run in works.items():
            work = {"minigrad": lambda run=run: run(mg.graph), "eager": lambda run=run: run(nullcontext)}
            found.append(Case(f"read after {name}", work, goal=GOAL, peer="eager", per=READS))
    return found


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=7)
    return report("Reads in graph mode (`minigrad`), beside eager mode", measure(cases(opts), opts), opts)


if __name__ == "__main__":
    main()
