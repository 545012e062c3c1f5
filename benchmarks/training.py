"""Whole training steps in eager mode: forward, backward and the update, against PyTorch's eager mode.

The models are written once, with names that exist in both libraries.

    python3 course bench training
    python3 course bench training --device cuda
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from _harness import Case, Options, measure, options, report

import minigrad as mg


def library(torch: Any = None) -> Any:
    """A library, with the names used below."""
    if torch is None:
        return mg, mg.nn, mg.optim, mg.asarray, mg.cross_entropy, mg.permute_dims, mg.scaled_dot_product_attention
    f = torch.nn.functional
    return torch, torch.nn, torch.optim, torch.tensor, f.cross_entropy, torch.permute, f.scaled_dot_product_attention


def mlp(torch: Any, make_optimizer: str, batch: int, sizes: tuple[int, ...]) -> Callable[[], Any]:
    """A training step of a multilayer perceptron."""
    _, nn, optim, asarray, cross_entropy, _, _ = library(torch)
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = getattr(optim, make_optimizer)(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    x = asarray(rng.normal(size=(batch, sizes[0])).astype(np.float32))
    y = asarray(rng.integers(0, sizes[-1], batch))

    return _classifying(model, optimizer, cross_entropy, x, y)


def cnn(torch: Any, make_optimizer: str, batch: int, side: int, channels: tuple[int, int]) -> Callable[[], Any]:
    """A training step of two convolutions with pooling and a linear layer, on grey pictures."""
    _, nn, optim, asarray, cross_entropy, _, _ = library(torch)
    first, second = channels
    model = nn.Sequential(
        nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(second * (side // 4) ** 2, 10),
    )
    optimizer = getattr(optim, make_optimizer)(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    x = asarray(rng.normal(size=(batch, 1, side, side)).astype(np.float32))
    y = asarray(rng.integers(0, 10, batch))
    if torch is not None:  # it is faster with channels last
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    return _classifying(model, optimizer, cross_entropy, x, y)


def _classifying(model: Any, optimizer: Any, cross_entropy: Any, x: Any, y: Any) -> Callable[[], Any]:
    """A training step of a classifier."""

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def gpt(torch: Any, layers: int, width: int, heads: int, batch: int, length: int, vocabulary: int) -> Callable[[], Any]:
    """A training step of a small transformer that predicts the next character, with Adam."""
    _, nn, optim, asarray, cross_entropy, permute, attention = library(torch)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            parts = self.into(self.norm(x)).reshape(b, t, 3, heads, width // heads)
            q, k, v = (permute(parts[:, :, i], (0, 2, 1, 3)) for i in range(3))
            if torch is None:
                seen = attention(q, k, v, causal=True)
            else:
                seen = attention(q, k, v, is_causal=True)
            return x + self.out(permute(seen, (0, 2, 1, 3)).reshape(b, t, width))

    class Feed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width),
                nn.GELU(approximate="tanh"), nn.Linear(4 * width, width),
            )

        def forward(self, x: Any) -> Any:
            return x + self.net(x)

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[block() for _ in range(layers) for block in (Attention, Feed)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(positions))))

    rng = np.random.default_rng(0)
    positions = asarray(np.arange(length))
    tokens = rng.integers(0, vocabulary, (batch, length + 1))
    x, y = asarray(tokens[:, :-1].copy()), asarray(tokens[:, 1:].reshape(-1).copy())
    model = GPT()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x).reshape(batch * length, vocabulary), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def cases(opts: Options) -> list[Case]:
    sizes, batch = ((8, 6, 3), 4) if opts.smoke else ((784, 256, 128, 10), 64)
    small = {"layers": 1, "width": 8, "heads": 2, "batch": 2, "length": 4, "vocabulary": 5}
    tiny = {"layers": 4, "width": 128, "heads": 4, "batch": 16, "length": 64, "vocabulary": 65}
    shape = "-".join(map(str, sizes))
    works = {
        f"MLP {shape}, batch {batch}, {name}": _both(opts, lambda t, n=name, b=batch: mlp(t, n, b, sizes))
        for name in ("SGD", "Adam")
    }
    batch, side, channels = (2, 8, (2, 3)) if opts.smoke else (64, 28, (16, 32))
    label = f"CNN, {channels[0]} and {channels[1]} channels, {side} × {side}, batch {batch}, SGD"
    works[label] = _both(opts, lambda t: cnn(t, "SGD", batch, side, channels))
    size = small if opts.smoke else tiny
    label = f"GPT, {size['layers']} layers of {size['width']}, batch {size['batch']} × {size['length']}, Adam"
    works[label] = _both(opts, lambda t: gpt(t, **size))
    return [Case(name, work, 1.0, least=0.1, pause=0.15) for name, work in works.items()]


def _both(opts: Options, build: Callable[[Any], Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    work = {"minigrad": build(None)}
    return work if opts.torch is None else work | {"torch": build(opts.torch)}


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    if opts.torch is not None:
        opts.torch.manual_seed(0)
    mg.random.seed(0)
    with mg.device(opts.device):
        made = cases(opts)
        for case in made:
            for name, step in case.work.items():
                loss = step().item()
                assert math.isfinite(loss), f"{name}: the loss of {case.name} is {loss}"
        return report("Eager training steps", measure(made, opts), opts)


if __name__ == "__main__":
    main()
