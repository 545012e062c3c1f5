"""Dtypes other than float32, angles and powers, integer products and sorting, against NumPy, PyTorch and jax.jit.

`eager` is minigrad without jit.  jax computes with 64 bits here.

    python3 course bench dtypes
    python3 course bench dtypes --only 'sort*'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _harness import BEST, Case, Options, Work, measure, options, report

import minigrad as mg

CONTENDERS = ("minigrad", "eager", "numpy", "torch", "jax.jit")
FUNCTIONS = ("exp", "expm1", "log", "log1p", "tanh", "sin", "cos")  # names that all libraries share
SORTED = ("float32", "float64", "int64")

Function = Callable[..., Any]  # of the library's module and its arrays


class Row(NamedTuple):
    """A function, and the dtypes of its arguments; `shape` is for arrays of n numbers."""

    name: str
    function: Function
    dtypes: tuple[str, ...]
    shape: Callable[[int], tuple[int, ...]] = lambda n: (n,)
    goal: float = 2.0
    without: tuple[str, ...] = ()  # contenders that lack the function


def angle(m: Any, x: Any, y: Any) -> Any:
    """The angle of a point."""
    return (m.atan2 if hasattr(m, "atan2") else m.arctan2)(x, y)


def ordered(m: Any, x: Any) -> Any:
    """Sorted values."""
    found = m.sort(x)
    return found[0] if isinstance(found, tuple) else found


def largest(m: Any, x: Any) -> Any:
    """The ten largest values, in order."""
    if m is np:
        return np.sort(np.partition(x, -10)[..., -10:])[..., ::-1]
    if not hasattr(m, "topk"):
        import jax

        return jax.lax.top_k(x, 10)[0]
    return m.topk(x, 10)[0]


def sort_gradient(m: Any, x: Any) -> Any:
    """The gradient of a sum over sorted values."""
    def total(x: Any) -> Any:
        return (ordered(m, x) ** 3).sum()

    if hasattr(m, "autograd"):
        x = x.detach().requires_grad_()
        return m.autograd.grad(total(x), x)[0]
    if m is mg:
        return mg.grad(total)(x)
    import jax

    return jax.grad(total)(x)


def in_rows(n: int) -> tuple[int, int]:
    """The shape of n numbers in rows of 1000."""
    return max(n // 1000, 1), 1000


def square(n: int) -> tuple[int, int]:
    """The shape of a square matrix whose product takes 16 n multiplications."""
    side = round((16 * n) ** (1 / 3))
    return side, side


def rows() -> list[Row]:
    """All lines of the table."""
    table = [
        Row("float16: x * y + x", lambda m, x, y: x * y + x, ("float16", "float16")),
        Row("float16: sums of rows", lambda m, x: m.sum(x.reshape((-1, 100)), axis=1), ("float16",)),
        Row("float16: x < y", lambda m, x, y: x < y, ("float16", "float16")),
        Row("float16: x @ y", lambda m, x, y: x @ y, ("float16", "float16"), square, without=("numpy",)),
        *[Row(f"{kind}: x @ y", lambda m, x, y: x @ y, (kind, kind), square) for kind in ("int8", "int32", "int64")],
        Row("float32 and float64: exp(-x * y)", lambda m, x, y: m.exp(-x * y), ("float32", "float64")),
        *[Row(f"float64: {name}", lambda m, x, n=name: getattr(m, n)(x), ("float64",)) for name in FUNCTIONS],
    ]
    for kind in ("float64", "float32"):
        pair = (kind, kind)
        table += [Row(f"{kind}: x ** y", lambda m, x, y: x**y, pair), Row(f"{kind}: atan2", angle, pair)]
    table += [Row("float32: sin(x) * cos(x) + atan2(x, y)", lambda m, x, y: m.sin(x) * m.cos(x) + angle(m, x, y),
                  ("float32", "float32"))]
    for kind in SORTED:
        table += [Row(f"sort {kind}", ordered, (kind,), goal=1.5),
                  Row(f"argsort {kind}", lambda m, x: m.argsort(x), (kind,), goal=1.5),
                  Row(f"topk {kind}", largest, (kind,), goal=1.5),
                  Row(f"sort of rows {kind}", ordered, (kind,), in_rows, goal=1.5),
                  Row(f"topk of rows {kind}", largest, (kind,), in_rows, goal=1.5)]
        if kind != "int64":
            table += [Row(f"sort and gradient {kind}", sort_gradient, (kind,), goal=1.5, without=("numpy",)),
                      Row(f"median {kind}", lambda m, x: m.median(x), (kind,), goal=1.5),
                      Row(f"quantile {kind}", lambda m, x: m.quantile(x, 0.3), (kind,), goal=1.5)]
    return table


def work(row: Row, size: int, opts: Options, contender: str) -> Work:
    """The function on arrays of the contender's library."""
    rng = np.random.default_rng(0)
    shape = row.shape(size)
    # Different numbers, so that every way to sort gives the same positions; positive, for logarithms.
    floats = [0.1 + rng.permutation(np.prod(shape)).reshape(shape) * (6 / np.prod(shape)) for _ in row.dtypes]
    given = [(x * 1e6 if "int64" in kind else x * 20 if "int" in kind else x).astype(kind)
             for x, kind in zip(floats, row.dtypes)]
    if contender == "numpy":
        return lambda: row.function(np, *given)
    library = opts.library(contender.partition(".")[0]) if contender not in ("minigrad", "eager") else mg
    if contender == "torch":
        tensors = [library.from_numpy(x) for x in given]
        return lambda: row.function(library, *tensors)
    if contender == "jax.jit":
        library.config.update("jax_enable_x64", True)
        numpy = library.numpy
        jitted = library.jit(lambda *xs: row.function(numpy, *xs))
        arrays = [numpy.asarray(x) for x in given]
        return lambda: jitted(*arrays)
    ours = [mg.asarray(x) for x in given]
    function = mg.jit(lambda *xs: row.function(mg, *xs)) if contender == "minigrad" else None
    return lambda: function(*ours) if function else row.function(mg, *ours)


def cases(opts: Options) -> list[Case]:
    """The lines of the table."""
    size = 100 if opts.smoke else 1_000_000

    def case(row: Row) -> Case:
        contenders = [name for name in CONTENDERS if name not in row.without]
        tolerance = 2e-2 if "float16" in row.dtypes else 1e-3
        return Case(row.name, contenders, lambda name: work(row, size, opts, name), row.goal, BEST, tolerance=tolerance)

    return [case(row) for row in rows()]


def main(arguments: list[str] | None = None) -> str:
    """Measure, and print the table."""
    opts = options(__doc__ or "", arguments)
    return report("Dtypes and sorting", measure(cases, opts), opts)


if __name__ == "__main__":
    main()
