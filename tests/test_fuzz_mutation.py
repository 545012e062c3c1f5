"""Random programs of views, assignments and in-place arithmetic, compared with NumPy's views and central differences.

Case 56 of the semantics.  MINIGRAD_FUZZ=20000 runs more programs than the default.
"""

import os
import random
from functools import cache

import numpy as np
import pytest

import minigrad as mg
from minigrad.support.errors import MutationError

pytestmark = pytest.mark.usefixtures("numpy_kernels")  # thousands of programs, each with its own kernels
PROGRAMS = int(os.environ.get("MINIGRAD_FUZZ", "1500"))
CHUNKS = 10
SHAPE = (3, 4)
SLICES = (slice(None), slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2), slice(0, 1))
STEPS = (
    "view", "view", "row", "transpose", "reshape", "product", "sum", "times", "plus", "minus", "assign", "assign",
    "number", "rows", "mask", "zeros", "detach", "forget",
)


def random_program(seed, length=14):
    """Steps that do not look at values: (kind, operands), operands being numbers of earlier results.

    A program refers only to shapes, so the same program runs on NumPy arrays and on tensors.
    """
    draw = random.Random(seed)
    shapes, steps = [SHAPE], []

    def like(shape):
        return draw.choice([i for i, s in enumerate(shapes) if s == shape])

    def add(step, shape=None):
        steps.append(step)
        if shape is not None:
            shapes.append(shape)

    for _ in range(length):
        kind, target = draw.choice(STEPS), draw.randrange(len(shapes))
        shape = shapes[target]
        if kind == "view" and shape:
            index = tuple(draw.choice(SLICES) for _ in shape)
            add((kind, target, index), np.empty(shape)[index].shape)
        elif kind == "row" and shape and shape[0]:
            add(("view", target, (draw.randrange(-shape[0], shape[0]), ...)), shape[1:])
        elif kind == "transpose" and len(shape) == 2:
            add((kind, target), shape[::-1])
        elif kind == "reshape" and len(shape) == 2:
            add((kind, target, (shape[0], 1, shape[1])), (shape[0], 1, shape[1]))
        elif kind in ("product", "sum"):
            add((kind, target, like(shape)), shape)
        elif kind in ("times", "plus", "minus"):
            add((kind, target, draw.choice([like(shape), 0.5])))
        elif kind == "assign" and shape:
            index = tuple(draw.choice(SLICES) for _ in shape)
            part = np.empty(shape)[index].shape
            if part in shapes:
                add(("assign", target, index, like(part)))
        elif kind == "number" and shape and min(shape):
            add(("assign", target, tuple(draw.randrange(s) for s in shape), draw.choice([2.0, -0.5])))
        elif kind == "rows" and len(shape) == 2 and shape[0] > 1 and (2, shape[1]) in shapes:
            add(("assign", target, draw.choice([[0, 1], [1, 1], [-1, 0]]), like((2, shape[1]))))
        elif kind == "mask" and shape:
            mask = (np.arange(np.prod(shape)) % 3 == 0).reshape(shape)
            add(("assign", target, mask, draw.choice([1.5, -1.0])))
        elif kind == "zeros":
            add((kind, shape), shape)
        elif kind == "detach" and draw.random() < 0.3:
            add((kind, target), shape)
        elif kind == "forget" and target:
            add((kind, target))
    return steps


class OnArrays:
    """The steps of a program for NumPy arrays, where they differ from those for tensors."""

    def zeros(self, shape):
        return np.zeros(shape)

    def detach(self, x):
        return x

    def made(self, result):
        return np.asarray(result)  # without dimensions it would be a number, which cannot be written to

    def factors(self, *values):
        """`values` are about to be multiplied."""

    def writing(self, target, value):
        """`value` is about to be written into `target`."""


def owner(array):
    return array if array.base is None else owner(array.base)


@cache
def notes_of(side):
    """The constants saved for a gradient, and for each write whether it overwrote one of them."""
    return [], []  # in a cache of Python, which the guards of a trace do not check


class OnTensors(OnArrays):
    """The same for tensors; `stale` says whether a saved factor without a history was overwritten.

    It takes notes while it is traced, which jit would refuse if it found them.
    """

    @property
    def stale(self):
        return any(notes_of(self)[1])

    def zeros(self, shape):
        return mg.zeros(shape, dtype="float64")

    def detach(self, x):
        return x.detach()

    def made(self, result):
        return result

    def factors(self, *values):
        if any(x.requires_grad for x in values):
            notes_of(self)[0].extend([owner(x._data) for x in values if not x.requires_grad])

    def writing(self, target, value):
        if not target.requires_grad and not getattr(value, "requires_grad", False):
            saved, overwritten = notes_of(self)
            overwritten.append(any(owner(target._data) is array for array in saved))


def run(side, x, steps):
    """Run a program.  Returns a number computed from all remaining values, and these values."""
    held = [x * 1.0]
    for kind, *operands in steps:
        if kind == "zeros":
            held.append(side.zeros(operands[0]))
            continue
        target, *rest = operands
        value = held[target]
        other = held[rest[-1]] if rest and type(rest[-1]) is int else rest[-1] if rest else None
        if kind in ("product", "times") and not isinstance(other, float):
            side.factors(value, other)
        if kind in ("times", "plus", "minus", "assign"):
            side.writing(value, other)
        if kind == "view":
            held.append(value[rest[0]])
        elif kind == "transpose":
            held.append(value.T)
        elif kind == "reshape":
            held.append(value[:, None])
        elif kind == "product":
            held.append(side.made(value * other))
        elif kind == "sum":
            held.append(side.made(value + other))
        elif kind == "times":
            value *= other
        elif kind == "plus":
            value += other
        elif kind == "minus":
            value -= other
        elif kind == "assign":
            value[rest[0]] = other
        elif kind == "detach":
            held.append(side.detach(value))
        elif kind == "forget":
            held[target] = side.made(value * 1.0)  # the view itself is gone, its memory lives on
    total = 0.0
    for number, value in enumerate(held):
        total = total + (value * (1.0 + 0.1 * number)).sum()
    return total, held


def has_detach(steps):
    return any(step[0] == "detach" for step in steps)


def eagerly(side, leaf, steps):
    total, values = run(side, leaf, steps)
    total.backward()
    return values


def in_graph_mode(side, leaf, steps):
    with mg.graph():
        total, values = run(side, leaf, steps)
    total.backward()
    return values


def wholly_in_graph_mode(side, leaf, steps):
    with mg.graph():
        return eagerly(side, leaf, steps)


def jitted(side, leaf, steps):
    total, values = mg.jit(lambda x: run(side, x, steps))(leaf)
    total.backward()
    return values


def jitted_with_its_gradient(side, leaf, steps):
    return mg.jit(lambda x: eagerly(side, x, steps))(leaf)


MODES = (eagerly, in_graph_mode, wholly_in_graph_mode, jitted, jitted_with_its_gradient)


def check(seed, mode):
    """Compare one program.  Returns whether it was refused, or too extreme to compare."""
    steps = random_program(seed)
    x = np.random.default_rng(seed).uniform(0.5, 1.2, SHAPE)
    with np.errstate(all="ignore"):
        expected, expected_values = run(OnArrays(), x, steps)
    if not np.isfinite(expected) or abs(expected) > 1e5:
        return "wild"
    leaf = mg.asarray(x, requires_grad=True)
    side = OnTensors()
    try:
        values = mode(side, leaf, steps)
    except MutationError as error:
        assert has_detach(steps) or side.stale, f"program {seed} was refused for no reason: {error}\n{steps}"
        return "refused"
    for number, (ours, theirs) in enumerate(zip(values, expected_values)):
        np.testing.assert_allclose(
            ours.numpy_copy(), theirs, rtol=1e-9, err_msg=f"program {seed}, value {number}: {steps}"
        )
    if not has_detach(steps):  # behind a detach, NumPy's differences are not the gradient
        check_gradient(seed, steps, x, leaf.grad.numpy_copy())
    return "compared"


def check_gradient(seed, steps, x, gradient):
    direction = np.random.default_rng(seed + 1).standard_normal(SHAPE)
    step = 1e-6
    ends = [run(OnArrays(), x + sign * step * direction, steps)[0] for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    tolerance = 1e-4 * max(1.0, abs(slope), np.abs(gradient).max())
    assert abs((gradient * direction).sum() - slope) <= tolerance, f"program {seed}: {steps}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs_agree_with_numpy(chunk, mode):
    programs = PROGRAMS if mode is eagerly else PROGRAMS // 3
    outcomes = [check(seed, mode) for seed in range(chunk, programs, CHUNKS)]
    share = {what: outcomes.count(what) / len(outcomes) for what in set(outcomes)}
    assert share.get("compared", 0) > 0.75, f"too few programs were compared to mean anything: {share}"


@pytest.mark.slow
def test_random_programs_have_correct_second_derivatives():
    """The derivative of the gradient along a direction, against differences of the gradient."""
    for seed in range(PROGRAMS // 10):
        steps = random_program(seed, length=8)
        if has_detach(steps):
            continue
        rng = np.random.default_rng(seed)
        x, direction = rng.uniform(0.5, 1.2, SHAPE), rng.standard_normal(SHAPE)

        def slope(at, steps=steps, direction=direction):
            leaf, side = mg.asarray(at, requires_grad=True), OnTensors()
            total, _ = run(side, leaf, steps)
            if side.stale:
                return leaf, mg.asarray(np.inf)
            g = mg.gradients(total, leaf, create_graph=True)
            return leaf, (g * mg.asarray(direction)).sum()

        leaf, along = slope(x)
        if abs(along.item()) > 1e4:
            continue
        if along.requires_grad:
            second = mg.gradients(along, leaf, allow_unused=True)
            second = np.zeros(SHAPE) if second is None else second.numpy_copy()
        else:
            second = np.zeros(SHAPE)
        other = rng.standard_normal(SHAPE)
        step = 1e-6
        difference = (slope(x + step * other)[1].item() - slope(x - step * other)[1].item()) / (2 * step)
        tolerance = 1e-4 * max(1.0, abs(difference), np.abs(second).max())
        assert abs((second * other).sum() - difference) <= tolerance, f"program {seed}: {steps}"
