"""Each test has a record of progress of its own, and time on a busy machine; the lines of tests are a user's."""

import pytest

from minigrad.support.source import LIBRARY
from minigrad_course.orders import WalkTask
from minigrad_course.results import Progress
from minigrad_course.session import SESSION
from minigrad_course.tasks import Task


@pytest.fixture(autouse=True)
def alone(monkeypatch, request):
    monkeypatch.setattr(SESSION, "progress", Progress())
    for kind in (Task, WalkTask):
        monkeypatch.setattr(kind, "seconds", 120.0)
    if request.path.name.startswith("test_"):
        monkeypatch.setitem(LIBRARY, str(request.path), False)
