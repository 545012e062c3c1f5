"""Settings of all tests: the name `mg` in docstring examples, and the quick run."""

import os

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # test processes share the cores: more threads would only wait
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")  # before the import of NumPy, which reads it only once

import minigrad
from minigrad.core.programs import PROGRAMS

# Stubs fail on purpose, and sources run as the notebooks that are made from them.
collect_ignore_glob = ["notebooks/exercises/*", "notebooks/masters/*", "notebooks/sources/*", "my-course/*"]
collect_ignore = ["tests/typed_script.py"]  # for type checkers, which refuse some of its lines


def pytest_collectstart(collector):
    """nbval compares the words and the picture of a view, and not the script that shows it."""
    if hasattr(collector, "sanitize_patterns"):
        from minigrad.viz.page import LOADER

        collector.sanitize_patterns[LOADER] = ""


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="one case of each test that is neither slow nor a notebook")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--quick"):
        chosen = quick(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def quick(items):
    """Selects the tests of a quick run: the middle case of each test function.

    Slow tests, notebooks, and tests that need another program or a certain system (`skipif`) are left out.
    """
    cases = {}
    for item in items:
        left_out = any(map(item.get_closest_marker, ("slow", "skipif"))) or item.path.suffix == ".ipynb"
        if not left_out:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {each[len(each) // 2] for each in cases.values()}


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace, request, monkeypatch):
    doctest_namespace["mg"] = minigrad
    in_course = "course" in request.node.path.parts[:-1]  # whose import turns programs off, in the whole process
    monkeypatch.setattr(PROGRAMS, "on", not in_course)
