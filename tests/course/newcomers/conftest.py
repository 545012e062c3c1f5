"""A record of progress of its own for each test."""

import pytest

from minigrad.course.results import Progress
from minigrad.course.session import SESSION


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(SESSION, "progress", Progress())
