"""The work that `browser_kernels` times in Pyodide, which runs this text after a line that sets ROUNDS and SMOKE."""

import json
import os
import time

import numpy as np

import minigrad as mg
from minigrad import nn

LARGE, ROWS, SIZE, BATCH = (100, 8, 16, 4) if SMOKE else (1_000_000, 1000, 512, 64)  # noqa: F821
rng = np.random.default_rng(0)


def numbers(*shape):
    return mg.asarray(rng.standard_normal(shape).astype(np.float32))


def gelu(x):
    return 0.5 * x * (1 + mg.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def layer_norm(x):
    d = x - x.mean(-1, keepdims=True)
    return d / mg.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)


def on(function, *shapes):
    """The work of a function, for each contender: a new jitted function, or the function itself."""
    inputs = [numbers(*shape) for shape in shapes]

    def build(jit):
        call = mg.jit(lambda *given: function(*given)) if jit else function
        return lambda: call(*inputs)

    return build


def training(model_of):
    x, labels = numbers(BATCH, 1, 8, 8), mg.asarray(rng.integers(0, 10, BATCH))

    def build(jit):
        mg.random.seed(0)
        model = model_of()
        optimizer = mg.optim.AdamW(model.parameters(), lr=1e-3)

        @mg.jit(disable=not jit)
        def step():
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            return loss

        return step

    return build


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10),
    )


CASES = {
    "x * 2 + 1, 1M": on(lambda x: x * 2 + 1, (LARGE,)),
    "sum(tanh(x * x) + x), 1M": on(lambda x: (mg.tanh(x * x) + x).sum(), (LARGE,)),
    "gelu, 100k": on(gelu, (LARGE // 10,)),
    "softmax of rows, 1000 × 64": on(lambda x: mg.softmax(x, -1), (ROWS, 64)),
    "layer norm, 1000 × 64": on(layer_norm, (ROWS, 64)),
    "exp(-x) * x + 1, 64 numbers": on(lambda x: mg.exp(-x) * x + 1, (64,)),
    "product 512 × 512": on(lambda x, y: x @ y, (SIZE, SIZE), (SIZE, SIZE)),
    "step of an MLP, batch 64": training(mlp),
    "step of a CNN, batch 64": training(cnn),
}
WAYS = {"minigrad": ("wasm", True), "NumPy kernels": ("numpy", True), "eager": ("numpy", False)}
LEAST = 0.0 if SMOKE else 5e-3  # noqa: F821  (seconds of one timing)
TOO_LONG = 5.0  # seconds of a first call: a work that takes longer is not timed


def measure(name):
    """Print the seconds of the first calls, and those of each round, in which all take turns."""
    works, first, rounds = {}, {}, []
    for way, (backend, jit) in WAYS.items():
        os.environ["MINIGRAD_BACKEND"] = backend
        works[way] = CASES[name](jit)
        first[way] = timed(works[way], 1)
        if first[way] > TOO_LONG:
            del works[way]
    counts = {way: max(1, int(LEAST / timed(work, 1))) for way, work in works.items()}
    for _ in range(ROUNDS):  # noqa: F821
        rounds.append({way: timed(work, counts[way]) for way, work in works.items()})
    print(json.dumps([first, rounds]))


def timed(work, count):
    start = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - start) / count
