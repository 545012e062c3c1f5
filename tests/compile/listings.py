"""Prints all listings of some programs, for `test_determinism.py`; the argument is the amount of work before that."""

import random
import sys

import numpy as np

import minigrad as mg
from minigrad import nn


def live(count):
    """Earlier work: compiled functions and holes in memory, so that addresses and serial numbers differ."""
    rng, kept = random.Random(count), []
    for i in range(count):
        kept.append(mg.jit(lambda x, i=i: (x * i + 1).sum())(mg.ones(3 + i)))
        kept += [mg.ones(1) for _ in range(rng.randrange(300))]
        rng.shuffle(kept)
        del kept[::2]
    return kept


def training_step():
    convolutions = [nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 3), nn.ReLU()]
    model = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(16, 5))
    optimizer = mg.optim.Adam(model.parameters())

    @mg.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = mg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return {"loss": loss, "norm": sum((p.grad * p.grad).sum() for p in model.parameters())}

    return step, (mg.ones((2, 1, 8, 8)), mg.asarray([1, 2]))


def gradient_of_a_batch():
    def model(x, w):
        h = mg.tanh((w * x).sum(axis=1))
        h[0] = 2.0 * h[1]
        return mg.sort(h)[..., ::2].sum() + mg.concat([h, h]).max()

    w = mg.asarray(np.arange(12.0).reshape(4, 3))
    return mg.jit(mg.vmap(mg.grad(model), in_axes=(0, None))), (mg.ones((5, 3), dtype=mg.float64), w)


def script():
    @mg.jit
    @mg.script
    def collatz(n, most):
        steps, highest, odd, even = n * 0, n, n * 0, n * 0
        while n != 1 and steps < most:
            if n % 2 == 0:
                n, even = n // 2, even + 1
            else:
                n, odd = 3 * n + 1, odd + 1
            steps, highest = steps + 1, mg.maximum(n, highest)
        return steps, highest, odd, even

    return collatz, (mg.asarray(7), mg.asarray(100))


if __name__ == "__main__":
    past = live(int(sys.argv[1]))
    for make in (training_step, gradient_of_a_batch, script):
        function, arguments = make()
        function(*arguments)
        for listing in ("graph", "passes", "kernels", "program", "cost"):
            print(f"== {make.__name__}: {listing}")
            print(getattr(function, listing)(*arguments))
