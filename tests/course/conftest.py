"""The site, which is built once; what a notebook registers disappears after the test: devices, kernels, primitives."""

import pytest

from lectures.site import build_site
from minigrad.core.primitive import P
from minigrad.devices import registry
from minigrad_course.results import Progress
from minigrad_course.session import SESSION

collect_ignore = ["stranger"]  # a unit that a test loads


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site; tests only read it."""
    folder = tmp_path_factory.mktemp("site")
    build_site.build(folder)
    return folder


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """A record of progress of its own for each test."""
    monkeypatch.setattr(SESSION, "progress", Progress())


@pytest.fixture(autouse=True)
def devices(monkeypatch):
    monkeypatch.setattr(registry, "MAKERS", dict(registry.MAKERS))
    before, primitives = dict(registry.DEVICES), list(P)
    yield
    for op in [op for op in P if op not in primitives]:
        P.forget(op)
    for name in set(registry.DEVICES) - set(before):
        del registry.DEVICES[name]
    for registration in list(registry.REGISTRATIONS):
        registration.undo()
