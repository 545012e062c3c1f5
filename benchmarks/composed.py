"""Composed operations in eager mode, on 256 floats and on 160,000, with and without gradients, against PyTorch.

PyTorch has kernels for each, forward and backward; minigrad compiles programs from the operations they consist of.

    python3 course bench composed
    python3 course bench composed --only '*softmax*' --rounds 31
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _harness import Case, Options, Work, measure, options, report, with_gradients

import minigrad as mg


class Given:
    """The tensors that the operations take: rows of features, queries, and two small pictures."""

    def __init__(self, lib: Any, size: int, tracked: bool) -> None:
        self.lib, self.make = lib, mg.asarray if lib is mg else lib.tensor
        self.functions = mg if lib is mg else lib.nn.functional
        self.leaves: list[Any] = []
        rng = np.random.default_rng(0)

        def new(*shape: int) -> Any:
            self.leaves.append(self.make(rng.standard_normal(shape).astype(np.float32), requires_grad=tracked))
            return self.leaves[-1]

        self.x, self.weight, self.bias, self.scale = new(size, size), new(size, size), new(size), new(size)
        self.q, self.k, self.v = new(1, 2, size, 8), new(1, 2, size, 8), new(1, 2, size, 8)
        self.pictures, self.kernel = new(2, 2, size, size), new(4, 2, 3, 3)
        self.targets = self.make(rng.standard_normal((size, size)).astype(np.float32))
        self.shares = self.make(rng.random((size, size), np.float32))
        self.classes = self.make(np.arange(size) % size)

    def layer_norm(self) -> Any:
        shape = () if self.lib is mg else ((len(self.scale),),)
        return self.functions.layer_norm(self.x, *shape, self.scale, self.bias)


OPERATIONS: dict[str, Callable[[Given], Any]] = {
    "relu": lambda t: t.functions.relu(t.x),
    "gelu": lambda t: t.functions.gelu(t.x),
    "softplus": lambda t: t.functions.softplus(t.x),
    "softmax": lambda t: t.functions.softmax(t.x, -1),
    "layer_norm": Given.layer_norm,
    "std over rows": lambda t: (mg.std if t.lib is mg else partial(t.lib.std, correction=0))(t.x, -1),
    "linear": lambda t: t.functions.linear(t.x, t.weight, t.bias),
    "attention, 2 heads of 8": lambda t: t.functions.scaled_dot_product_attention(t.q, t.k, t.v),
    "conv2d of 2 pictures": lambda t: t.functions.conv2d(t.pictures, t.kernel, padding=1),
    "max_pool2d of 2 pictures": lambda t: t.functions.max_pool2d(t.pictures, 2),
    "cross_entropy": lambda t: t.functions.cross_entropy(t.x, t.classes),
    "mse_loss": lambda t: t.functions.mse_loss(t.x, t.targets),
    "smooth_l1_loss": lambda t: t.functions.smooth_l1_loss(t.x, t.targets),
    "binary_cross_entropy_with_logits": lambda t: t.functions.binary_cross_entropy_with_logits(t.x, t.shares),
}


def operation(contender: str, name: str, size: int, tracked: bool, opts: Options) -> Work:
    """One operation, or the operation with its gradients."""
    given = Given(opts.library(contender), size, tracked)
    work = partial(OPERATIONS[name], given)
    return with_gradients(work, given.leaves, given.make) if tracked else work


def cases(opts: Options, size: int) -> list[Case]:
    found = []
    for tracked in (False, True):
        for name in OPERATIONS:
            work = partial(operation, name=name, size=4 if opts.smoke else size, tracked=tracked, opts=opts)
            label = f"{name}, forward + backward" if tracked else name
            found.append(Case(label, ("minigrad", "torch"), work, 1.5, minima=True))
    return found


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    text = report("Composed operations on 16 × 16 floats", measure(partial(cases, size=16), opts), opts)
    return text + report("Composed operations on 400 × 400 floats", measure(partial(cases, size=400), opts), opts)


if __name__ == "__main__":
    main()
