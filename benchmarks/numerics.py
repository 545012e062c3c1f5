"""Errors of float32: sums, means, variances and norms by size and axis, and functions, beside NumPy and PyTorch.

    python3 course bench numerics
    python3 course bench numerics --only 'var*'
    python3 course bench numerics --device cuda  # minigrad and PyTorch on the GPU

Errors are the largest ones, against float64, in units in the last place.  Those of sums and means are relative to what
is added up, all others to the result.  `eager` is minigrad without jit.  Nothing is timed.
"""

from __future__ import annotations

import fnmatch
import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _harness import Options, graphics_processor, options, processor

import minigrad as mg

EPS = float(np.finfo(np.float32).eps)
MEANS = (0.0, 1.0, 1e4)
SHAPES = {  # name: shape and reduced axis
    "4M": ((4_000_000,), None), "65,536": ((65_536,), None), "rows of 1M": ((4, 1_000_000), -1),
    "rows of 64": ((16_384, 64), -1), "columns of 65,536": ((65_536, 16), 0), "columns of 1M": ((1_000_000, 4), 0),
    "middle of 16 × 10,000 × 4": ((16, 10_000, 4), 1),
}
Function = Callable[..., Any]  # of the library's module, an array and an axis


def norm(m: Any, x: Any, axis: Any) -> Any:
    """The root of the sum of squares."""
    return (m.sum(x * x, axis=axis)) ** 0.5


def logsumexp(m: Any, x: Any, axis: Any) -> Any:
    """log Σ exp x, by the library's function where it has one."""
    if m is np:
        top = x.max(axis=axis, keepdims=True)
        return np.log(np.exp(x - top).sum(axis=axis)) + (top.reshape(-1)[0] if axis is None else top.squeeze(axis))
    flat, place = (x.reshape(-1), -1) if axis is None else (x, axis)
    return m.logsumexp(flat, place)


def variance(m: Any, x: Any, axis: Any) -> Any:
    """The mean of the squares of the deviations."""
    return m.var(x, axis=axis, **({} if m in (mg, np) else {"correction": 0}))


def standard(m: Any, x: Any, axis: Any) -> Any:
    """The root of the variance."""
    return variance(m, x, axis) ** 0.5


REDUCTIONS: dict[str, Function] = {
    "sum": lambda m, x, axis: m.sum(x, axis=axis), "mean": lambda m, x, axis: m.mean(x, axis=axis), "var": variance,
    "std": standard, "norm": norm, "logsumexp": logsumexp,
}
FUNCTIONS = ("exp", "expm1", "log", "log1p", "tanh", "sin", "cos", "erf", "sqrt")
RANGES = {"exp": (-80, 80), "expm1": (-5, 80), "log": (1e-6, 1e6), "log1p": (-0.99, 1e3), "sqrt": (0, 1e6)}


def errors_of_reductions(name: str, opts: Options) -> Iterator[list[str]]:
    """A line for each shape and mean."""
    torch = opts.library("torch")
    for where, (shape, axis) in SHAPES.items():
        shape = tuple([min(size, 50) for size in shape]) if opts.smoke else shape
        for mean in MEANS:
            x = (np.random.default_rng(0).uniform(-0.5, 0.5, shape) + mean).astype(np.float32)
            function, exact = REDUCTIONS[name], x.astype(np.float64)
            true = function(np, exact, axis)
            scale = function(np, np.abs(exact), axis) if name in ("sum", "mean") else np.abs(true)
            given = mg.asarray(x)
            found = {
                "minigrad": mg.jit(lambda x, f=function, axis=axis: f(mg, x, axis))(given).numpy_copy(),
                "eager": function(mg, given, axis).numpy_copy(), "numpy": function(np, x, axis),
            }
            if torch:
                every = tuple(range(len(shape))) if axis is None else axis
                found["torch"] = function(torch, torch.tensor(x), every if name != "logsumexp" else axis).cpu().numpy()
            cells = [f"{np.max(np.abs(value - true) / scale) / EPS:.3g}" for value in found.values()]
            yield [f"{name} of {where}, mean {mean:g}", *cells]


def errors_of_functions(opts: Options) -> Iterator[list[str]]:
    """A line for each function of one number."""
    torch = opts.library("torch")
    for name in FUNCTIONS:
        x = np.random.default_rng(0).uniform(*RANGES.get(name, (-10, 10)), 100 if opts.smoke else 200_000)
        x = x.astype(np.float32)
        true = getattr(mg, name)(mg.asarray(x.astype(np.float64))).numpy_copy()
        found = {"minigrad": mg.jit(getattr(mg, name))(mg.asarray(x)).numpy_copy(),
                 "eager": getattr(mg, name)(mg.asarray(x)).numpy_copy()}
        found["numpy"] = getattr(np, name)(x) if hasattr(np, name) else None
        if torch:
            found["torch"] = getattr(torch, name)(torch.tensor(x)).cpu().numpy()
        step = np.spacing(np.abs(true).astype(np.float32)).astype(np.float64)
        cells = ["–" if value is None else f"{np.max(np.abs(value - true) / step):.2f}" for value in found.values()]
        yield [name, *cells]


def main(arguments: list[str] | None = None) -> str:
    """Print and return the tables."""
    opts = options(__doc__ or "", arguments)
    names = ["minigrad", "eager", "numpy", *opts.present(["torch"])]
    with mg.device(opts.device):
        lines = [line for name in REDUCTIONS for line in errors_of_reductions(name, opts)]
        functions = [*errors_of_functions(opts)]
    versions = ", ".join([f"{each} {importlib.metadata.version(each)}" for each in names[2:]])
    note = "smoke run: the figures mean nothing" if opts.smoke else "nothing is timed"
    where = processor() if opts.device == "cpu" else graphics_processor()
    parts = [f"## Errors of float32\n\n{where}; {versions}; {note}.\n"]
    for title, rows in (("reductions", lines), ("functions", functions)):
        chosen = [row for row in rows if fnmatch.fnmatch(row[0], opts.only)]
        head = [f"| {title} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        parts.append("\n".join([*head, *[f"| {' | '.join(row)} |" for row in chosen]]) + "\n")
    text = "\n".join(parts)
    print(text)
    return text


if __name__ == "__main__":
    main()
