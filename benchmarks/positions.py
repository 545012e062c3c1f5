"""Reads and sums at positions, a step of a graph network, and stacks of small matrices, against other libraries.

`eager` is minigrad without jit, and numpy computes where it has the operation.

    python3 course bench positions
    python3 course bench positions --only '*gradient*'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from _harness import BEST, Case, Options, Work, measure, options, report

import minigrad as mg

CONTENDERS = ("minigrad", "eager", "numpy", "torch", "jax.jit")
Function = Callable[..., Any]


class Task(NamedTuple):
    """The same function in each library, on the same arrays.  `both` adds the gradient by the first array."""

    ours: Function
    numpy: Function | None
    torch: Function
    jax: Function
    arrays: Callable[[Any], list[Any]]  # from a generator of random numbers
    both: bool = False


def work(contender: str, task: Task, opts: Options) -> Work:
    """A task in one library."""
    arrays = task.arrays(np.random.default_rng(0))
    if contender == "numpy":
        assert task.numpy is not None
        return partial(task.numpy, *arrays)
    if contender == "torch":
        return _in_torch(opts.library("torch"), task, arrays)
    if contender == "jax.jit":
        jax = opts.library("jax")
        function = jax.jit(jax.value_and_grad(task.jax) if task.both else task.jax)
        given = [jax.numpy.asarray(array) for array in arrays]
        return lambda: jax.block_until_ready(function(*given))
    ours = mg.value_and_grad(task.ours) if task.both else task.ours
    return partial(mg.jit(ours) if contender == "minigrad" else ours, *map(mg.asarray, arrays))


def _in_torch(torch: Any, task: Task, arrays: list[Any]) -> Work:
    given = [torch.tensor(array) for array in arrays]
    if not task.both:
        return partial(task.torch, *given)
    given[0].requires_grad_()

    def step() -> Any:
        loss = task.torch(*given)
        return loss, *torch.autograd.grad(loss, given[0])

    return step


# Positions ------------------------------------------------------------------------------------------------------------


def rows(count: int, width: int, positions: int) -> Callable[[Any], list[Any]]:
    """A table, positions in it, and a row for each position."""

    def arrays(rng: Any) -> list[Any]:
        table, values = (rng.standard_normal((n, width), dtype=np.float32) for n in (count, positions))
        return [table, rng.integers(0, count, positions), values]

    return arrays


def added(table: Any, at: Any, values: Any) -> Any:
    """NumPy's sum at positions."""
    out = table.copy()
    np.add.at(out, at, values)
    return out


def position_tasks(sizes: tuple[int, int, int]) -> dict[str, Task]:
    arrays = rows(*sizes)
    return {
        "gather": Task(lambda x, i, v: x[i], lambda x, i, v: x.take(i, 0), lambda x, i, v: x.index_select(0, i),
                       lambda x, i, v: x[i], arrays),
        "chain after a gather": Task(*[lambda x, i, v: (x[i] * 2 + v).sum(1)] * 4, arrays),
        "scatter_add": Task(mg.scatter_add, added, lambda x, i, v: x.index_add(0, i, v),
                            lambda x, i, v: x.at[i].add(v), arrays),
        "gradient of an embedding": Task(
            lambda x, i, v: (mg.embedding(x, i) * v).sum(), None, lambda x, i, v: (x.index_select(0, i) * v).sum(),
            lambda x, i, v: (x[i] * v).sum(), arrays, both=True,
        ),
    }


def segment_max_task(segments: int, count: int, width: int, both: bool) -> Task:
    """The largest of each segment of rows, column by column, and the gradient of the sum of these."""
    shape = segments, width

    def arrays(rng: Any) -> list[Any]:
        of_row = rng.permutation(np.arange(count) % segments)  # each segment has rows
        return [rng.standard_normal((count, width), dtype=np.float32), of_row]

    def in_numpy(x: Any, i: Any) -> Any:
        out = np.full(shape, -np.inf, np.float32)
        np.maximum.at(out, i, x)
        return out

    def in_torch(x: Any, i: Any) -> Any:
        return x.new_full(shape, -np.inf).index_reduce(0, i, x, "amax")

    def in_jax(x: Any, i: Any) -> Any:
        return import_module("jax").ops.segment_max(x, i, segments)

    def ours(x: Any, i: Any) -> Any:
        return mg.segment_max(x, i, segments)

    if not both:
        return Task(ours, in_numpy, in_torch, in_jax, arrays)
    total = [lambda x, i, f=f: f(x, i).sum() for f in (ours, in_torch, in_jax)]
    return Task(total[0], None, *total[1:], arrays, both=True)


def graph_network(nodes: int, edges: int, width: int) -> Task:
    """Two rounds of messages along the edges of a graph, and the gradient by the features."""

    def ours(x: Any, starts: Any, ends: Any, weights: Any) -> Any:
        for _ in range(2):
            x = mg.relu(mg.segment_sum(x[starts] * weights, ends, nodes))
        return x.sum()

    def in_torch(x: Any, starts: Any, ends: Any, weights: Any) -> Any:
        for _ in range(2):
            x = (x * 0).index_add(0, ends, x.index_select(0, starts) * weights).relu()
        return x.sum()

    def in_jax(x: Any, starts: Any, ends: Any, weights: Any) -> Any:
        for _ in range(2):
            x = (x * 0).at[ends].add(x[starts] * weights).clip(0)
        return x.sum()

    def arrays(rng: Any) -> list[Any]:
        x, weights = (rng.random(shape, dtype=np.float32) for shape in ((nodes, width), (edges, 1)))
        return [x, *rng.integers(0, nodes, (2, edges)), weights]

    return Task(ours, None, in_torch, in_jax, arrays, both=True)


# Small matrices -------------------------------------------------------------------------------------------------------


def stack(count: int, n: int, columns: int) -> Callable[[Any], list[Any]]:
    """Matrices that have an inverse, and right sides."""

    def arrays(rng: Any) -> list[Any]:
        x, y = (rng.standard_normal((count, n, size), dtype=np.float32) for size in (n, columns))
        return [x + n * np.eye(n, dtype=np.float32), y]

    return arrays


def matrix_tasks(count: int) -> dict[str, Task]:
    def product(x: Any, y: Any) -> Any:
        return x @ y

    found = {}
    for n, columns in ((2, 2), (4, 4), (8, 8), (4, 1), (8, 1)):
        found[f"{count} products {n} × {n} × {columns}"] = Task(*[product] * 4, stack(count, n, columns))
    for n in (2, 3, 4, 8):
        for name in ("solve", "det"):
            functions = [partial(of_linalg, library, name) for library in ("minigrad", "numpy", "torch", "jax.numpy")]
            found[f"{count} × {name} {n} × {n}"] = Task(*functions, stack(count, n, 1))
    return found


def of_linalg(library: str, name: str, x: Any, y: Any) -> Any:
    """A function of a library's module for linear algebra."""
    function = getattr(import_module(library).linalg, name)
    return function(x, y) if name == "solve" else function(x)


def cases(opts: Options) -> list[Case]:
    sizes = [(9, 4, 20)] if opts.smoke else [(10_000, 64, 50_000), (27, 64, 16_384), (1_000_000, 1, 1_000_000)]
    tasks = {}
    for size in sizes:
        label = f"{size[2]:,} of {size[0]:,} × {size[1]}"
        tasks |= {f"{name}, {label}": task for name, task in position_tasks(size).items()}
    for nodes, edges, width in [(9, 20, 4)] if opts.smoke else [(2708, 10_556, 16), (10_000, 100_000, 64)]:
        for both, ending in ((False, ""), (True, ", forward + backward")):
            label = f"segment_max of {edges:,} × {width} in {nodes:,}{ending}"
            tasks[label] = segment_max_task(nodes, edges, width, both)
        tasks[f"messages along {edges:,} edges, gradient"] = graph_network(nodes, edges, width)
    tasks |= matrix_tasks(10 if opts.smoke else 4096)
    return [
        Case(name, [c for c in CONTENDERS if c != "numpy" or task.numpy], partial(work, task=task, opts=opts),
             1.5 if name[0].isdigit() else 1.2, BEST, least=0.02, pause=0.02)
        for name, task in tasks.items()
    ]


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    return report("Positions and small matrices", measure(cases, opts), opts)


if __name__ == "__main__":
    main()
