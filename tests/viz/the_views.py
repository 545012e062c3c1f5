"""The views, in one place: of a program of `ten_programs.py`, and those that need none; and what they refuse."""

from functools import cache

import numpy as np

import minigrad as mg
from tests.viz.ten_programs import TEN

STEPS = ("mlp", "cnn", "gpt", "resnet")  # jitted training steps
NO_GRADIENT = "no gradient flows through"


def once(view):
    """A view that measures, with a single run."""
    return lambda f, *args: view(f, *args, runs=1)


def differentiable(result):
    if result is None or not result.tracked:
        raise mg.MinigradError(NO_GRADIENT)
    return result.sum()


VIEWS = {
    "graph": mg.viz.graph, "backward": lambda f, *args: mg.viz.graph(f, *args, backward=True),
    "fusion": mg.viz.fusion,
    "timeline": once(mg.viz.timeline), "models": lambda f, *args: mg.viz.timeline(f, *args, runs=0),
    "devices": lambda f, *args: mg.viz.timeline(f, *args, runs=0, devices="cuda"),
    "memory": mg.viz.memory, "bench": mg.viz.bench, "step": lambda f, *args: mg.viz.step(differentiable(f(*args))),
}
REFUSED = {(name, view): NO_GRADIENT for name in STEPS for view in ("backward", "step")}
SLOW = {("gpt", "devices"), ("resnet", "devices"), ("resnet", "fusion")}  # 9, 22 and 6 seconds


def board():
    """A dashboard of a run with two curves and heat maps."""
    found, net = mg.viz.Dashboard(show="nothing"), mg.nn.Linear(4, 3)
    for step in range(1, 301):
        found.log(step, loss=1 / step, accuracy=1 - 1 / step, model=net)
    return found


def trained():
    """A training, step by step."""
    net = mg.nn.Sequential(mg.nn.Linear(1, 3), mg.nn.Tanh(), mg.nn.Linear(3, 1))
    x = mg.linspace(-1, 1, 5).reshape((5, 1))
    return mg.viz.training(net, mg.optim.SGD(net.parameters(), lr=0.1), mg.nn.MSELoss(), [(x, x * x)] * 2)


def scaled():
    """A model of a step on many workers."""
    step = mg.distributed.Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
    return mg.viz.cluster(step, mg.distributed.Machine(20e-6, 10e9), {"large buckets": {"bucket": 500e6}})


ALONE = {  # views of no program
    "bench tanh": lambda: mg.viz.bench(mg.tanh), "bench multiply": lambda: mg.viz.bench(mg.multiply),
    "Dashboard": board, "training": trained, "ring": lambda: mg.viz.cluster(4), "scaling": scaled,
}


@cache
def programs(name):
    """A function and its arguments, after a first call: a jitted step has its programs."""
    function, *args = TEN[name]()
    function(*args)
    return function, *args


def made(name, view):
    """A view of a program, or a view of none."""
    if view in ALONE:
        return ALONE[view]()
    with np.errstate(all="ignore"):
        return VIEWS[view](*programs(name))


def every_case():
    """(program, view) of all pages: those that are not refused, and those of no program."""
    shown = [(name, view) for name in TEN for view in VIEWS if (name, view) not in REFUSED]
    return [*shown, *[("", view) for view in ALONE]]


