"""Inference: the time of a model for one batch, jitted, saved as a program, and exported for onnxruntime.

All contenders have the same weights, and take and return arrays on the CPU.  Their results are compared before the
first timing.  onnxruntime runs the file that `mg.io.export_onnx` writes, with all its optimisations.

    python3 course bench inference
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _harness import Case, Options, Work, measure, options, report

import minigrad as mg

nn = mg.nn
BATCHES = (1, 64)


class GPT(nn.Module):
    """Takes characters and returns the logits of the next ones."""

    def __init__(self, layers: int, width: int, heads: int, length: int, vocabulary: int) -> None:
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.LearnedPositions(length, width)
        block = nn.TransformerEncoderLayer(
            width, heads, 4 * width, batch_first=True, norm_first=True, activation=nn.GELU("tanh")
        )
        self.blocks = nn.TransformerEncoder(block, layers, norm=nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.blocks(self.places(self.tokens(tokens)), causal=True))


def mlp(smoke: bool) -> tuple[str, Any, Callable[[int], Any]]:
    sizes = (8, 6, 5, 3) if smoke else (784, 256, 128, 10)
    first, second, third, last = sizes
    model = nn.Sequential(
        nn.Linear(first, second), nn.ReLU(), nn.Linear(second, third), nn.ReLU(), nn.Linear(third, last)
    )
    return f"MLP {'-'.join(map(str, sizes))}", model, lambda n: normal(n, first)


def cnn(smoke: bool) -> tuple[str, Any, Callable[[int], Any]]:
    side, one, two = (8, 2, 3) if smoke else (28, 16, 32)
    model = nn.Sequential(
        nn.Conv2d(1, one, 3, padding=1), nn.BatchNorm2d(one), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(one, two, 3, padding=1), nn.BatchNorm2d(two), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(two * (side // 4) ** 2, 10),
    )
    return f"CNN, {one} and {two} channels, {side} × {side}", model, lambda n: normal(n, 1, side, side)


def gpt(smoke: bool) -> tuple[str, Any, Callable[[int], Any]]:
    layers, width, length, vocabulary = (1, 8, 4, 5) if smoke else (4, 128, 64, 65)
    model = GPT(layers, width, 2 if smoke else 4, length, vocabulary)
    rng = np.random.default_rng(0)
    label = f"GPT, {layers} layers of {width}, {length} characters"
    return label, model, lambda n: rng.integers(0, vocabulary, (n, length))


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def run(contender: str, build: Callable[..., Any], count: int, opts: Options) -> Work:
    """Run a model on a batch, without gradients."""
    mg.random.seed(0)
    _, model, batch = build(opts.smoke)
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.eval()
    x = batch(count)
    given = mg.asarray(x)
    if contender == "onnxruntime":
        return _onnx(model, x, given, opts)
    function = model if contender == "eager" else mg.jit(model)
    if contender == "program in a file":
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            function.save(Path(folder) / "model.program", given)
            function = mg.load_program(Path(folder) / "model.program")

    def work() -> Any:
        with mg.no_grad():
            return function(given).numpy()

    return work


def _onnx(model: Any, x: Any, given: Any, opts: Options) -> Work:
    runtime = opts.library("onnxruntime")
    chosen = runtime.SessionOptions()
    chosen.intra_op_num_threads = opts.threads
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        mg.io.export_onnx(model, Path(folder) / "model.onnx", given)
        session = runtime.InferenceSession(Path(folder) / "model.onnx", chosen, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})[0]


def cases(opts: Options) -> list[Case]:
    four = ("minigrad", "program in a file", "eager", "onnxruntime")
    return [
        Case(f"{build(opts.smoke)[0]}, batch {count}", four, partial(run, build=build, count=count, opts=opts), 1.0,
             "onnxruntime", least=0.02, pause=0.05)
        for build in (mlp, cnn, gpt) for count in ((2, 3) if opts.smoke else BATCHES)
    ]


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    return report("Inference", measure(cases, opts), opts)


if __name__ == "__main__":
    main()
