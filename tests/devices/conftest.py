"""Fixtures: `cuda` on a stand-in for CuPy."""

import sys

import pytest

from minigrad.devices import registry
from tests.devices import standin


@pytest.fixture
def devices(monkeypatch):
    """A separate table of devices for each test: devices and kernels of a test disappear after it."""
    monkeypatch.setattr(registry, "MAKERS", dict(registry.MAKERS))
    for name in [n for n in registry.DEVICES if n.startswith("cuda")]:
        monkeypatch.delitem(registry.DEVICES, name)
    before = dict(registry.DEVICES)
    yield registry
    for name in set(registry.DEVICES) - set(before):
        del registry.DEVICES[name]
    for registration in list(registry.REGISTRATIONS):
        registration.undo()


@pytest.fixture
def no_cupy(devices, monkeypatch):
    """CuPy is not installed."""
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.fixture
def machine(devices, monkeypatch):
    """`machine(count=2)` or `machine(failure="...")` replaces CuPy by the stand-in, on a machine like this."""

    def set_up(**how):
        for name, module in standin.modules(**how).items():
            monkeypatch.setitem(sys.modules, name, module)

    return set_up


@pytest.fixture
def cuda(machine):
    """The devices `cuda` and `cuda:1`, on the stand-in."""
    machine(count=2)
    assert standin.CURRENT == [0]
    yield registry.as_device("cuda")
    assert standin.CURRENT == [0]
