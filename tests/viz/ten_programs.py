"""Ten programs, small ones of many kinds, for which every view is looked at: a function and its arguments."""

from itertools import pairwise

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.examples.names_gpt import GPT
from tests.training import training_step

TEN = {}


def program(make):
    TEN[make.__name__] = make
    return make


def numbers(*shape):
    return mg.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32), requires_grad=True)


@program
def three_lines():
    def f(x):
        a = 2 * x
        return a * a + a

    return f, mg.asarray(3.0, requires_grad=True)


@program
def mlp():
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    step = training_step(lambda x, y: mg.cross_entropy(net(x), y), mg.optim.Adam(net.parameters(), lr=0.1))
    return step, mg.ones((4, 6)), mg.asarray([0, 1, 2, 0])


@program
def cnn():
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4))
    step = training_step(lambda x, y: mg.cross_entropy(net(x), y), mg.optim.SGD(net.parameters(), lr=0.1))
    return step, mg.ones((2, 1, 8, 8)), mg.asarray([0, 1])


@program
def gpt():
    model = GPT(5, width=8, heads=2, layers=2, dropout=0.0)
    return training_step(model.loss, mg.optim.AdamW(model.parameters())), mg.asarray(np.arange(26).reshape(2, 13) % 5)


class Residual(nn.Module):
    """The block of a ResNet."""

    def __init__(self, inputs, outputs):
        self.one, self.two = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.down = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        return mg.relu(self.norm2(self.two(mg.relu(self.norm1(self.one(x))))) + self.down(x))


@program
def resnet():
    widths = [2, 2, 2, 3, 3, 4, 4, 5, 5]
    blocks = [Residual(*pair) for pair in pairwise(widths)]
    net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), *blocks, nn.Flatten(), nn.Linear(5 * 16, 3))
    step = training_step(lambda x, y: mg.cross_entropy(net(x), y), mg.optim.SGD(net.parameters(), lr=0.1))
    return step, mg.ones((2, 1, 4, 4)), mg.asarray([0, 1])


@program
def lstm():
    layer, head = nn.LSTM(5, 4, batch_first=True), nn.Linear(4, 2)
    return lambda x: (head(layer(x)[0])[:, -1] ** 2).mean(), numbers(3, 6, 5)


@program
def gcn():
    edges, weight = mg.asarray([[0, 1, 2, 3, 1], [1, 2, 3, 0, 3]]), numbers(3, 2)

    def f(x):
        messages = (x @ weight)[edges[0]]
        return (mg.relu(mg.segment_sum(messages, edges[1], 4)) ** 2).sum()

    return f, numbers(4, 3)


@program
def physics():
    def f(x, v, k):
        for _ in range(12):
            v = v - 0.1 * k * x
            x = x + 0.1 * v
        return (x * x).sum()

    return f, numbers(2), mg.zeros(2), mg.asarray(2.0, requires_grad=True)


@program
def branches_and_loops():
    def f(x):
        y = mg.cond(x.sum() > 0, lambda x: x * x, lambda x: -mg.exp(x), x)
        z = mg.while_loop(lambda c: c.sum() < 50, lambda c: c * c + 1, y, max_steps=9)
        last, each = mg.scan(lambda c, v: (mg.tanh(c + v), c * 2), z.sum(), z)
        return last + each.sum()

    return f, numbers(3)


@program
def hvp():
    def f(x, v):
        gradient = mg.grad(lambda x: (mg.tanh(x) ** 3).sum())
        return mg.grad(lambda x: (gradient(x) * v).sum())(x)

    return f, numbers(4), mg.ones(4)
