"""The site, which is built once; what a notebook registers disappears after the test: devices, kernels, primitives."""

import os

import pytest

from lectures.site import build_site
from minigrad.core.primitive import P
from minigrad.devices import registry
from minigrad.support.files import locked
from minigrad_course.orders import WalkTask
from minigrad_course.results import Progress
from minigrad_course.session import SESSION
from minigrad_course.tasks import Task

collect_ignore = ["stranger"]  # a unit that a test loads


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, which one of the processes of a run makes; tests only read it."""
    place = tmp_path_factory.getbasetemp()
    folder = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "site"
    with locked(folder.with_name("site.html"), seconds=600):  # beside the folder: a lock is for a file
        if not folder.exists():
            made = tmp_path_factory.mktemp("site")
            build_site.build(made)
            made.rename(folder)
    return folder


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """A record of progress of its own for each test, and time for right answers on a busy machine."""
    monkeypatch.setattr(SESSION, "progress", Progress())
    for kind in (Task, WalkTask):
        monkeypatch.setattr(kind, "seconds", 120.0)


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
