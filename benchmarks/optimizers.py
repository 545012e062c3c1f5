"""One update of all parameters of an MLP by each optimizer, eager and as one program, against PyTorch.

PyTorch chooses its implementation by default ("foreach" for most); `fused` is its single kernel, if there is one.

    python3 course bench optimizers
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from _contender import package
from _harness import BEST, Case, Options, Work, measure, options, report

import minigrad as mg

RATE = 1e-9  # in thousands of updates by the same gradients, no number becomes denormal
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {}, "SGD with momentum": {"momentum": 0.9}, "Adam": {}, "AdamW": {}, "RMSprop": {}, "Adagrad": {},
    "Lion": {}, "Muon": {},
}
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")  # in PyTorch
MISSING = ("Lion",)


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


def update(contender: str, name: str, sizes: tuple[int, ...], opts: Options) -> Work:
    """One update by an optimizer."""
    library, kind = opts.library(package(contender)), name.split()[0]
    more = OPTIMIZERS[name] | ({"fused": True} if contender == "torch fused" else {})
    updated = parameters(library, sizes, kind == "Muon")
    step: Work = getattr(library.optim, kind)(updated, lr=RATE, **more).step
    if contender == "minigrad":
        step = mg.jit(step)

    def work() -> Any:
        step()
        return updated

    return work


def cases(opts: Options) -> list[Case]:
    sizes = (8, 6, 3) if opts.smoke else (784, 256, 128, 10)
    found = []
    for name in OPTIMIZERS:
        kind = name.split()[0]
        contenders = ["minigrad", "eager", *["torch"] * (kind not in MISSING), *["torch fused"] * (kind in FUSED)]
        work = partial(update, name=name, sizes=sizes, opts=opts)
        found.append(Case(name, contenders, work, 1.0 if len(contenders) > 2 else None, BEST, least=0.02, pause=0.02,
                          calls=3))
    return found


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    return report("Updates of an MLP 784-256-128-10", measure(cases, opts), opts)


if __name__ == "__main__":
    main()
