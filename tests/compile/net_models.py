"""The training steps of the net, and its functions that are not jitted as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minigrad as mg
from minigrad import nn
from minigrad.examples.names_gpt import GPT
from tests.compile.net_functions import Differentiated, function, normal, whole
from tests.training import training_step

# Training -------------------------------------------------------------------------------------------------------------


def mlp(optimizer: Callable[[Any], Any]) -> Any:
    """A small version of `examples.digits_mlp`."""
    layers = [nn.Flatten(), nn.Linear(64, 24), nn.GELU(), nn.Dropout(0.3), nn.Linear(24, 24), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(24, 10))
    step = training_step(lambda x, y: mg.cross_entropy(model(x), y), optimizer(model.parameters()))
    return step, (normal(12, 8, 8), whole(12, below=10))


def cnn(optimizer: Callable[[Any], Any]) -> Any:
    """A small version of `examples.digits_cnn`."""
    convolutions = [nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()]
    rest = [nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.4), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10)]
    model = nn.Sequential(*convolutions, *rest)
    step = training_step(lambda x, y: mg.cross_entropy(model(x), y), optimizer(model.parameters()))
    return step, (normal(6, 1, 8, 8), whole(6, below=10))


@function
def mlp_sgd() -> Any:
    return mlp(lambda parameters: mg.optim.SGD(parameters, lr=0.1))


@function
def mlp_adam() -> Any:
    return mlp(lambda parameters: mg.optim.Adam(parameters, lr=1e-3))


@function
def cnn_momentum() -> Any:
    return cnn(lambda parameters: mg.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3))


@function
def cnn_adam() -> Any:
    return cnn(lambda parameters: mg.optim.Adam(parameters, lr=1e-3))


@function
def gpt_adamw() -> Any:
    model = GPT(11, 16, heads=2, layers=1, dropout=0.1)
    optimizer = mg.optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=100)
    losses = mg.train.Mean()

    @mg.jit
    def step(rows):
        optimizer.zero_grad()
        loss = model.loss(rows)
        loss.backward()
        mg.optim.clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.add(loss)

    return step, (whole(4, 13, below=11),)


@function
def donated_sgd() -> Any:
    @mg.jit
    def step(w, x, y):
        w -= 0.1 * mg.grad(lambda w: ((mg.tanh(x @ w) - y) ** 2).mean())(w)

    return step, (normal(9, 4), normal(20, 9), normal(20, 4))


@function
def gradient_from_outside() -> Any:
    f = mg.jit(lambda x, w, b: mg.softmax(mg.tanh(x @ w + b), axis=-1))
    given = normal(6, 5), normal(5, 5), normal(5)
    for tensor in given[1:]:
        tensor.requires_grad = True
    (f(*given) ** 2).sum().backward()
    return Differentiated((f, *given))


# Graph mode -----------------------------------------------------------------------------------------------------------


@function
def graph_mode() -> Any:
    x, w = normal(6, 5), normal(5, 5)
    with mg.graph() as g:
        h = mg.tanh(x @ w) + 1
        h.sum().item()
        y = mg.softmax(h * 2, axis=-1)
        y[0] = 0
        y.max().item()
    return g.programs


@function
def graph_mode_training() -> Any:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
    x, y = normal(5, 6), whole(5, below=3)
    with mg.graph() as g:
        for _ in range(2):
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            loss.item()
    return g.programs
