"""Eager operations: the cost of one on 16 floats, with and without gradients, and on 10 million; reductions.

    python3 course bench eager
    python3 course bench eager --only '*softmax*' --rounds 31
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _harness import BEST, Case, Options, Work, measure, options, report, with_gradients

import minigrad as mg

SMALL = np.linspace(-2.0, 2.0, 16, dtype=np.float32)


class Small:
    """Operations on 16 floats, written once for both libraries, which differ in only a few names."""

    def __init__(self, lib: Any, tracked: bool) -> None:
        self.lib = lib
        self.make = make = mg.asarray if lib is mg else lib.tensor

        def new(array: Any) -> Any:
            return make(array, requires_grad=tracked)

        self.x, self.y = new(SMALL.reshape(4, 4)), new(SMALL.reshape(4, 4)[::-1].copy())
        self.w, self.b = new(np.ones(4, np.float32)), new(np.zeros(4, np.float32))
        self.leaves = [self.x, self.y, self.w, self.b]
        self.target, self.value = make(SMALL.reshape(4, 4)), make(np.ones((2, 4), np.float32))
        self.mask = make(SMALL.reshape(4, 4) > 0)

    def chain(self) -> Any:
        h = self.x
        for _ in range(10):
            h = self.lib.tanh(h * self.y + self.x)
        return h

    def scalar(self) -> Any:
        return self.x * 1.5

    def broadcast(self) -> Any:
        return self.x + self.b

    def slice(self) -> Any:
        return self.x[1:3]

    def read(self) -> Any:
        return self.x[2]

    def reshape(self) -> Any:
        return self.x.reshape(2, 8)

    def transpose(self) -> Any:
        return self.x.T

    def sum(self) -> Any:
        return self.x.sum()

    def mean(self) -> Any:
        return self.x.mean(axis=0)

    def max(self) -> Any:
        return self.x.max()

    def matmul(self) -> Any:
        return self.x @ self.y

    def where(self) -> Any:
        return self.lib.where(self.mask, self.x, self.y)

    def exp(self) -> Any:
        return self.lib.exp(self.x)

    def compare(self) -> Any:
        return self.x < self.y

    def softmax(self) -> Any:
        return self.lib.softmax(self.x, -1)

    def layer_norm(self) -> Any:
        if self.lib is mg:
            return mg.layer_norm(self.x, self.w, self.b)
        return self.lib.nn.functional.layer_norm(self.x, (4,), self.w, self.b)

    # In place: untracked on one tensor repeatedly; tracked on a new result, because leaves refuse in-place changes.

    def add_in_place(self) -> Any:
        h = self.target if not self.x.requires_grad else self.x * 1.0
        h += self.y
        return h

    def assign(self) -> Any:
        h = self.target if not self.x.requires_grad else self.x * 1.0
        h[1:3] = self.value
        return h


KINDS = {
    "chain": ("10 × mul, add, tanh (per op)", 30),
    "scalar": ("x * 1.5", 1),
    "broadcast": ("(4, 4) + (4,)", 1),
    "exp": ("exp", 1),
    "compare": ("x < y", 1),
    "where": ("where", 1),
    "sum": ("sum", 1),
    "mean": ("mean over an axis", 1),
    "max": ("max", 1),
    "matmul": ("(4, 4) @ (4, 4)", 1),
    "slice": ("x[1:3]", 1),
    "read": ("x[2]", 1),
    "reshape": ("reshape", 1),
    "transpose": ("x.T", 1),
    "add_in_place": ("x += y", 1),
    "assign": ("x[1:3] = v", 1),
    "softmax": ("softmax", 1),
    "layer_norm": ("layer_norm", 1),
}
NO_GRADIENT = {"compare"}
GOALS = {"chain": 0.8, "softmax": None, "layer_norm": None}  # the others: 1; two are composed of 6 and 11


def small(contender: str, kind: str, tracked: bool, opts: Options) -> Work:
    """One operation on 16 floats, or the operation with its gradients."""
    made = Small(opts.library(contender), tracked)
    operation: Work = getattr(made, kind)
    return with_gradients(operation, made.leaves, made.make) if tracked else operation


def small_cases(opts: Options) -> list[Case]:
    found = []
    for tracked in (False, True):
        for kind, (name, per) in KINDS.items():
            if not (tracked and kind in NO_GRADIENT):
                label = f"{name}, forward + backward" if tracked else name
                work = partial(small, kind=kind, tracked=tracked, opts=opts)
                found.append(Case(label, ("minigrad", "torch"), work, GOALS.get(kind, 1.0), per=per, minima=True))
    return found


def large(contender: str, name: str, size: int, opts: Options) -> Work:
    """One expression on many floats."""
    x, y = (np.linspace(end, -end, size, dtype=np.float32) for end in (-2, 2))
    function, lib = EXPRESSIONS[name], opts.library(contender)
    if lib is not np:
        make = mg.asarray if lib is mg else lib.tensor
        x, y = make(x), make(y)
    return lambda: function(lib, x, y)


EXPRESSIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x + y": lambda lib, x, y: x + y,
    "x * 1.5": lambda lib, x, y: x * 1.5,
    "exp(x)": lambda lib, x, y: lib.exp(x),
    "tanh(x)": lambda lib, x, y: lib.tanh(x),
    "where(x < y, x, y)": lambda lib, x, y: lib.where(x < y, x, y),
    "tanh(x * y + x)": lambda lib, x, y: lib.tanh(x * y + x),
}


def large_cases(opts: Options) -> list[Case]:
    size = 1000 if opts.smoke else 10_000_000
    three = ("minigrad", "numpy", "torch")
    return [
        Case(f"{name}, 10M floats", three, partial(large, name=name, size=size, opts=opts), 1.0, "numpy", pause=0.02)
        for name in EXPRESSIONS
    ]


REDUCED = [
    ((4096, 1024), -1), ((1_000_000, 4), -1), ((100_000, 16), -1), ((4096, 1024), 0), ((1_000_000, 4), 0),
    ((512, 512, 16), 1), ((32, 64, 28, 28), (0, 2, 3)), ((10_000_000,), 0),
]


def reduction(contender: str, name: str, shape: tuple[int, ...], axis: Any, jit: bool, opts: Options) -> Work:
    """A sum or the largest elements over some axes, in eager mode; or jitted, where the library is minigrad."""
    lib = opts.library(contender)
    x = np.random.default_rng(0).random([min(size, 10) for size in shape] if opts.smoke else shape, np.float32)
    if lib is np:
        return lambda: getattr(x, name)(axis=axis)
    given = mg.asarray(x) if lib is mg else lib.tensor(x)
    if lib is not mg:
        return partial(getattr(given, "amax" if name == "max" else name), axis)
    function = partial(getattr(mg, name), axis=axis)
    return partial(mg.jit(function) if jit else function, given)


def reduction_cases(opts: Options) -> list[Case]:
    three = ("minigrad", "numpy", "torch")
    return [
        Case(f"{name} of {shape} over {axis}{', jitted' * jit}", three,
             partial(reduction, name=name, shape=shape, axis=axis, jit=jit, opts=opts), 1.2, BEST, minima=True,
             least=0.02, pause=0.05)
        for jit in (False, True) for name in ("sum", "max") for shape, axis in REDUCED
    ]


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    text = report("Eager operations on 16 floats", measure(small_cases, opts), opts)
    text += report("Eager operations on 10 million floats", measure(large_cases, opts), opts)
    return text + report("Reductions of many floats", measure(reduction_cases, opts), opts)


if __name__ == "__main__":
    main()
