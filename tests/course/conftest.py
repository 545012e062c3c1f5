"""Devices and kernels that a notebook registers disappear after the test."""

import pytest

from minigrad.devices import registry


@pytest.fixture(autouse=True)
def devices(monkeypatch):
    monkeypatch.setattr(registry, "MAKERS", dict(registry.MAKERS))
    before = dict(registry.DEVICES)
    yield
    for name in set(registry.DEVICES) - set(before):
        del registry.DEVICES[name]
    for registration in list(registry.REGISTRATIONS):
        registration.undo()
