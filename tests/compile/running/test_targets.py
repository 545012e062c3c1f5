"""Targets: how a program gets one, and a toy target that counts its kernels."""

from collections import Counter

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile import Target, register_target
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.running import targets
from minigrad.compile.running.frame import Frame
from minigrad.compile.running.plain import PlainProgram
from minigrad.compile.running.program import Program
from minigrad.compile.running.targets import compiled
from minigrad.devices import Device, Kernels, register_device, registry


class Doubled(Kernels):
    """Kernels whose sums are twice as large, so that a test can see which device computed them."""

    def sum(self, x, **attrs):
        return 2 * super().sum(x, **attrs)


class ToyDevice(Device):
    kind, kernel_class = "toy", Doubled


@pytest.fixture
def toy(monkeypatch):
    """A device with its own kernels."""
    monkeypatch.setattr(registry, "DEVICES", dict(registry.DEVICES))
    monkeypatch.setattr(registry, "MAKERS", dict(registry.MAKERS))
    monkeypatch.setattr(targets, "_MAKERS", dict(targets._MAKERS))
    register_device("toy", ToyDevice)
    return "toy"


def step(x):
    return mg.tanh(x * 2).sum()


def test_a_device_with_its_own_kernels_runs_them_until_it_has_a_target(toy):
    x = mg.asarray([0.5, 1.0], device=toy)
    f = mg.jit(step)
    assert f(x).item() == step(x).item() == pytest.approx(2 * np.tanh([1.0, 2.0]).sum())
    assert isinstance(f.program(x), PlainProgram)


def test_numpy_leaves_products_to_the_library(monkeypatch):
    host = targets.HOST
    assert host.on_backend("llvm") is host and host.on_backend(None).chunking.lanes
    monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    plain = host.on_backend(None)
    assert plain.chunking.lanes == 0 and set(targets.LOOPS) <= set(plain.without)
    x, w = mg.ones((1, 8, 6, 9)), mg.ones((8, 8, 3, 3))
    f = mg.jit(lambda x, w: mg.relu(mg.conv2d(x, w)))
    assert "by loops" not in f.program(x, w).partition.listing() and f(x, w)[0, 0, 0, 0].item() == 72


def test_a_toy_target_compiles_the_programs_of_its_device(toy):
    calls = Counter()

    def counted(launches, backend):
        def counting(number, function):
            def run(table):
                calls[launches[number].name] += 1
                return function(table)

            return run

        return {number: counting(number, function) for number, function in compiled(launches, "numpy").items()}

    register_target(toy, lambda device: Target(Chunking(), counted, Frame, threads=False))
    x = mg.asarray([0.5, 1.0], device=toy, requires_grad=True)
    f = mg.jit(step)
    for _ in range(3):
        loss = f(x)
        loss.backward()
    assert loss.item() == pytest.approx(np.tanh([1.0, 2.0]).sum()), "by loops of the compiler"
    np.testing.assert_allclose(x.grad.numpy(), 3 * 2 * (1 - np.tanh([1.0, 2.0]) ** 2), rtol=1e-5)
    assert isinstance(f.program(x), Program) and calls["kernel_0"] == 6  # one of the function and one of its gradient


def test_devices_of_numpy_have_the_target_of_the_cpu():
    graph = mg.trace(step, mg.ones(2, device="cpu:1"))
    assert targets.target_of(graph.nodes) is targets.HOST
