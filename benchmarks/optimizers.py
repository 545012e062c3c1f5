"""One update of all parameters of an MLP by each optimizer, eager and as one program, against PyTorch.

PyTorch chooses its implementation by default ("foreach" for most); `fused` is its single kernel, if there is one.

    python3 course bench optimizers
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from _harness import BEST, Case, Options, measure, options, report

import minigrad as mg

RATE = 1e-9  # in thousands of updates by the same gradients, no number becomes denormal
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {}, "SGD with momentum": {"momentum": 0.9}, "Adam": {}, "AdamW": {}, "RMSprop": {}, "Adagrad": {},
    "Lion": {}, "Muon": {},
}
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")  # in PyTorch


def parameters(library: Any, sizes: tuple[int, ...], matrices: bool) -> list[Any]:
    """The parameters of linear layers, with gradients."""
    make = mg.asarray if library is mg else library.tensor
    rng = np.random.default_rng(0)
    shapes = [shape for i, o in pairwise(sizes) for shape in ((o, i), (o,))[: 1 if matrices else 2]]
    found = []
    for shape in shapes:
        found.append(make(rng.standard_normal(shape).astype(np.float32), requires_grad=True))
        found[-1].grad = make(rng.standard_normal(shape).astype(np.float32))
    return found


def case(name: str, sizes: tuple[int, ...], opts: Options) -> Case:
    """The update of one optimizer, as a case."""
    kind, given = name.split()[0], OPTIMIZERS[name]

    def update(library: Any, **more: Any) -> Callable[[], Any]:
        return getattr(library.optim, kind)(parameters(library, sizes, kind == "Muon"), lr=RATE, **given, **more).step

    work: dict[str, Callable[[], Any]] = {"minigrad": mg.jit(update(mg)), "eager": update(mg)}
    if opts.torch is not None and hasattr(opts.torch.optim, kind):
        work["torch"] = update(opts.torch)
        if kind in FUSED:
            work["torch fused"] = update(opts.torch, fused=True)
    return Case(name, work, 1.0 if len(work) > 2 else None, BEST, least=0.02, pause=0.02)


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    sizes = (8, 6, 3) if opts.smoke else (784, 256, 128, 10)
    made = [case(name, sizes, opts) for name in OPTIMIZERS]
    return report(f"Updates of an MLP {'-'.join(map(str, sizes))}", measure(made, opts), opts)


if __name__ == "__main__":
    main()
