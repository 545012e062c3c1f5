"""Pages of whole programs stay small: what `benchmarks/views.py` times is weighed here."""

import sys

import pytest

from tests.project.test_benchmarks import FOLDER

MOST = 500_000  # characters of a page
LARGE = ("GPT", "ResNet-18")
MOST_OF = {"ResNet-18": 700_000}  # 20 convolutions with their blocks, each a picture of its own
NAMES = ("three lines", "MLP", "CNN", "LSTM", "GCN", "spring", "cond", "hvp", *LARGE)
MEASURED = {"timeline"}  # their pages hold times


@pytest.fixture
def views(monkeypatch):
    """The benchmark that has the programs and the views."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    import views

    yield views
    for name in {"views", "seeing", "training", "_harness", "_contender"} - before:
        sys.modules.pop(name, None)


def test_every_program_is_weighed(views):
    assert set(views.PROGRAMS) == set(NAMES) and set(views.VIEWS) > MEASURED


@pytest.mark.parametrize("name", [*NAMES[:-2], *[pytest.param(name, marks=pytest.mark.slow) for name in LARGE]])
def test_a_page_is_small(views, name):
    program = views.PROGRAMS[name]()
    sizes = {view: len(views.VIEWS[view](program).to_html()) for view in views.VIEWS if view not in MEASURED}
    assert max(sizes.values()) < MOST_OF.get(name, MOST), sizes
