"""Whole training steps in eager mode: forward, backward and the update, against PyTorch's eager mode.

The models are written once, with names that exist in both libraries.  PyTorch uses its fused optimizers.  jax compiles
the same step (`_jax_models.py`).  All contenders start from the same weights, and their first losses are compared.

    python3 course bench training
    python3 course bench training --device cuda
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from _harness import Case, Options, Work, measure, options, report

import minigrad as mg

RATES = {"SGD": 0.05, "Adam": 1e-3}


@dataclass(frozen=True)
class Task:
    """A model, its sizes, an optimizer and a batch."""

    name: str
    model: str
    sizes: tuple[int, ...]
    optimizer: str
    batch: int
    goal: float = 1.0  # for the compiled step, × the best


def tasks(smoke: bool) -> list[Task]:
    """The steps that `training`, `compiled` and `first_calls` measure."""
    small, large = ((4, 6, 3), (8, 6, 3)) if smoke else ((8, 32, 32, 4), (784, 256, 128, 10))
    few, many, most = (3, 4, 5) if smoke else (32, 64, 512)
    found = [
        Task(f"MLP {'-'.join(map(str, sizes))}, batch {batch}, {optimizer}", "mlp", sizes, optimizer, batch, goal)
        for sizes, batch, goal in ((small, few, 1.0), (large, many, 0.8), (large, most, 0.95))
        for optimizer in ("SGD", "Adam")
    ]
    batch, side, *channels = (2, 8, 2, 3) if smoke else (64, 28, 16, 32)
    layers, width, heads, length, letters, rows = (1, 8, 2, 4, 5, 2) if smoke else (4, 128, 4, 64, 65, 16)
    for optimizer in ("SGD", "Adam"):
        name = f"CNN, {channels[0]} and {channels[1]} channels, {side} × {side}, batch {batch}, {optimizer}"
        found.append(Task(name, "cnn", (side, *channels), optimizer, batch))
    for optimizer in ("SGD", "Adam"):
        name = f"GPT, {layers} layers of {width}, batch {rows} × {length}, {optimizer}"
        found.append(Task(name, "gpt", (layers, width, heads, length, letters), optimizer, rows, 0.9))
    return found


def larger() -> list[Task]:
    """Steps with many kernels, of which `first_calls` measures the first one."""
    return [
        Task("GPT, 12 layers of 128, batch 8 × 64, Adam", "gpt", (12, 128, 4, 64, 65), "Adam", 8),
        Task("ResNet-18 of width 16, 32 × 32, batch 8, SGD", "resnet", (32, 16), "SGD", 8),
    ]


# The models ---------------------------------------------------------------------------------------------------------


def mlp(torch: Any, *sizes: int) -> Any:
    """A multilayer perceptron."""
    nn = (torch or mg).nn
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def cnn(torch: Any, side: int, first: int, second: int) -> Any:
    """Two convolutions with pooling and a linear layer, for grey pictures."""
    nn = (torch or mg).nn
    return nn.Sequential(
        nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(second * (side // 4) ** 2, 10),
    )


def gpt(torch: Any, layers: int, width: int, heads: int, length: int, vocabulary: int) -> Any:
    """A small transformer that predicts the next character.  It returns a row of logits for each character."""
    nn = (torch or mg).nn
    positions = (torch.arange if torch else mg.arange)(length)

    def attention(q: Any, k: Any, v: Any) -> Any:
        if torch:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mg.scaled_dot_product_attention(q, k, v, causal=True)

    permute = torch.permute if torch else mg.permute_dims

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            parts = self.into(self.norm(x)).reshape(b, t, 3, heads, width // heads)
            q, k, v = (permute(parts[:, :, i], (0, 2, 1, 3)) for i in range(3))
            return x + self.out(permute(attention(q, k, v), (0, 2, 1, 3)).reshape(b, t, width))

    class Feed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.into, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.gelu = nn.GELU(approximate="tanh")

        def forward(self, x: Any) -> Any:
            return x + self.out(self.gelu(self.into(self.norm(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[block() for _ in range(layers) for block in (Attention, Feed)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            x = self.blocks(self.tokens(tokens) + self.places(positions))
            return self.head(self.norm(x)).reshape(-1, vocabulary)

    return GPT()


def resnet(torch: Any, side: int, width: int) -> Any:
    """ResNet-18 for small colour pictures: eight blocks with a shortcut around two convolutions."""
    nn = (torch or mg).nn

    def normal(channels: int, inputs: int, step: int = 1, kernel: int = 3) -> list[Any]:
        """A convolution without a bias, and a normalization."""
        window = nn.Conv2d(inputs, channels, kernel, stride=step, padding=kernel // 2, bias=False)
        return [window, nn.BatchNorm2d(channels)]

    class Block(nn.Module):
        def __init__(self, inputs: int, channels: int, step: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(*normal(channels, inputs, step), nn.ReLU(), *normal(channels, channels))
            changes = inputs != channels or step > 1
            self.short = nn.Sequential(*(normal(channels, inputs, step, 1) if changes else []))
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.inner(x) + self.short(x))

    layers = [*normal(width, 3), nn.ReLU()]
    channels = width
    for stage in range(4):
        for step in (1 if stage == 0 else 2, 1):
            layers.append(Block(channels, width << stage, step))
            channels = width << stage
    return nn.Sequential(*layers, nn.AvgPool2d(side // 8), nn.Flatten(), nn.Linear(channels, 10))


MODELS: dict[str, Callable[..., Any]] = {"mlp": mlp, "cnn": cnn, "gpt": gpt, "resnet": resnet}


def examples(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """The inputs and the labels of a batch, at random."""
    rng = np.random.default_rng(0)
    if task.model == "gpt":
        *_, length, vocabulary = task.sizes
        tokens = rng.integers(0, vocabulary, (task.batch, length + 1))
        return tokens[:, :-1].copy(), tokens[:, 1:].reshape(-1).copy()
    colours = 3 if task.model == "resnet" else 1
    shape, classes = (task.sizes[:1], task.sizes[-1]) if task.model == "mlp" else ((colours, *task.sizes[:1] * 2), 10)
    return rng.normal(size=(task.batch, *shape)).astype(np.float32), rng.integers(0, classes, task.batch)


def weights(task: Task) -> dict[str, np.ndarray]:
    """The weights that all contenders start with, by name."""
    with mg.device("cpu"):
        mg.random.seed(0)
        return {name: value.numpy_copy() for name, value in MODELS[task.model](None, *task.sizes).state_dict().items()}


# The steps ----------------------------------------------------------------------------------------------------------


def step(contender: str, task: Task, opts: Options) -> Work:
    """The training step of a contender: "minigrad" is jitted, "eager" is not."""
    if contender == "jax.jit":
        import _jax_models

        return _jax_models.step(opts.library("jax"), task, weights(task), *examples(task), RATES[task.optimizer])
    if contender.startswith("torch"):
        return _torch_step(contender, task, opts)
    model = MODELS[task.model](None, *task.sizes)
    model.load_state_dict({name: mg.asarray(value) for name, value in weights(task).items()})
    optimizer = (mg.optim.Adam if task.optimizer == "Adam" else mg.optim.SGD)(
        model.parameters(), lr=RATES[task.optimizer]
    )
    x, y = map(mg.asarray, examples(task))
    work = _step(lambda: mg.cross_entropy(model(x), y), optimizer)
    return mg.jit(work) if contender == "minigrad" else work


def _torch_step(contender: str, task: Task, opts: Options) -> Work:
    torch = opts.library("torch")
    model = MODELS[task.model](torch, *task.sizes)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights(task).items()})
    x, y = map(torch.tensor, examples(task))
    if task.model == "cnn":  # it is faster with channels last
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = (torch.optim.Adam if task.optimizer == "Adam" else torch.optim.SGD)(
        model.parameters(), lr=RATES[task.optimizer], fused=True
    )

    def loss() -> Any:
        return torch.nn.functional.cross_entropy(model(x), y)

    return _step(torch.compile(loss, mode=opts.compile) if contender == "torch.compile" else loss, optimizer)


def _step(loss_of: Callable[[], Any], optimizer: Any) -> Work:
    """Forward, backward and update, in either library."""

    def work() -> Any:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss

    return work


def cases(opts: Options) -> list[Case]:
    return [
        Case(task.name, ("minigrad", "torch", "jax.jit"), partial(_eager, task=task, opts=opts), 1.0, least=0.1,
             pause=0.15, calls=3)
        for task in tasks(opts.smoke)
    ]


def _eager(contender: str, task: Task, opts: Options) -> Work:
    return step("eager" if contender == "minigrad" else contender, task, opts)


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments)
    return report("Eager training steps (`minigrad` is eager)", measure(cases, opts), opts)


if __name__ == "__main__":
    main()
