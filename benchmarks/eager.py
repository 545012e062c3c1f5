"""Eager operations: the cost of one on 16 floats, with and without gradients, and on 10 million.

    python3 course bench eager
    python3 course bench eager --only '*softmax*' --rounds 31
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _harness import Case, Options, measure, options, report

import minigrad as mg

SMALL = np.linspace(-2.0, 2.0, 16, dtype=np.float32)


class Small:
    """Operations on 16 floats, written once for both libraries, which differ in only a few names."""

    def __init__(self, lib: Any, tracked: bool) -> None:
        self.lib = lib
        make = mg.asarray if lib is mg else lib.tensor

        def new(array: Any) -> Any:
            return make(array, requires_grad=tracked)

        self.x, self.y = new(SMALL.reshape(4, 4)), new(SMALL.reshape(4, 4)[::-1].copy())
        self.w, self.b = new(np.ones(4, np.float32)), new(np.zeros(4, np.float32))
        self.leaves = [self.x, self.y, self.w, self.b]
        self.target, self.value = make(SMALL.reshape(4, 4)), make(np.ones((2, 4), np.float32))
        self.mask = make(SMALL.reshape(4, 4) > 0)
        self.ones: dict[Any, Any] = {}

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

    def backward(self, name: str) -> Any:
        """One of the operations above, with its gradients."""
        for leaf in self.leaves:
            leaf.grad = None
        out = getattr(self, name)()
        ones = self.ones.get(name)
        if ones is None:
            ones = self.ones[name] = self.lib.ones_like(out.detach())
        out.backward(ones)


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


def small_cases(opts: Options) -> list[Case]:
    cases = []
    for tracked in (False, True):
        ours = Small(mg, tracked)
        theirs = None if opts.torch is None else Small(opts.torch, tracked)
        for kind, (name, per) in KINDS.items():
            if tracked and kind in NO_GRADIENT:
                continue
            work = {"minigrad": _call(ours, kind, tracked)}
            if theirs is not None:
                work["torch"] = _call(theirs, kind, tracked)
            label = f"{name}, forward + backward" if tracked else name
            cases.append(Case(label, work, GOALS.get(kind, 1.0), per=per))
    return cases


def _call(small: Small, kind: str, tracked: bool) -> Any:
    return (lambda: small.backward(kind)) if tracked else getattr(small, kind)


def large_cases(opts: Options) -> list[Case]:
    size = 1000 if opts.smoke else 10_000_000
    a, b = np.linspace(-2, 2, size, dtype=np.float32), np.linspace(2, -2, size, dtype=np.float32)
    x, y = mg.asarray(a), mg.asarray(b)
    libs: dict[str, Any] = {"minigrad": (mg, x, y), "numpy": (np, a, b)}
    if opts.torch is not None:
        libs["torch"] = opts.torch, opts.torch.tensor(a), opts.torch.tensor(b)
    expressions = {
        "x + y": lambda lib, x, y: x + y,
        "x * 1.5": lambda lib, x, y: x * 1.5,
        "exp(x)": lambda lib, x, y: lib.exp(x),
        "tanh(x)": lambda lib, x, y: lib.tanh(x),
        "where(x < y, x, y)": lambda lib, x, y: lib.where(x < y, x, y),
        "tanh(x * y + x)": lambda lib, x, y: lib.tanh(x * y + x),
    }
    return [
        Case(f"{name}, 10M floats", {n: (lambda f=f, args=args: f(*args)) for n, args in libs.items()}, 1.0, "numpy")
        for name, f in expressions.items()
    ]


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    text = report("Eager operations on 16 floats", measure(small_cases(opts), opts), opts)
    return text + report("Eager operations on 10 million floats", measure(large_cases(opts), opts), opts)


if __name__ == "__main__":
    main()
