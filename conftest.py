"""Settings of all tests: the name `mg` in docstring examples, and the quick run."""

import gc
import os
import sys
from collections import Counter

import pytest

# Test processes share the cores, and arrays of tests are small: more threads would only wait.
if "PYTEST_XDIST_WORKER" in os.environ or "--quick" in sys.argv:
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")  # before the import of NumPy, which reads it only once

import minigrad
from minigrad.core.programs import PROGRAMS

# Whichever test comes first makes them: the site, a folder of graded exercises, Python in a browser.
SLOW_FIXTURES = {"site", "graded", "pyodide_folder"}
SLOW_WEIGHT = 20  # about how many other tests take as long as a slow one

# Stubs fail on purpose, and sources run as the notebooks that are made from them.
collect_ignore_glob = ["notebooks/exercises/*", "notebooks/minigrad_course/*_notebook.py", "my-course/*"]
# Programs that import torch are run by tests/compat, and minigrad.compat changes tensors when it is imported.
collect_ignore_glob += ["tests/compat/programs/*", "minigrad/compat/*"]
collect_ignore = ["tests/typed_script.py"]  # for type checkers, which refuse some of its lines


def pytest_collectstart(collector):
    """nbval compares the words and the picture of a view, and neither the script that shows it nor its style."""
    if hasattr(collector, "sanitize_patterns"):
        from minigrad.viz.exhibit import LOADER

        collector.sanitize_patterns[LOADER] = ""
        collector.sanitize_patterns["(?s)<style>.*?</style>"] = ""


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="the tests with the marker `long` too, which CI does not run")
    parser.addoption("--quick", action="store_true", help="one case of each test that is neither slow nor a notebook")


def pytest_collection_modifyitems(config, items):
    chosen = selected(items, config.getoption("--quick"), config.getoption("--long"))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
    if hasattr(config, "workerinput"):  # this is one of several processes
        items[:] = longest_first(items)


def pytest_collection_finish():
    set_aside()


@pytest.hookimpl(trylast=True)  # after the fixtures of the file have ended
def pytest_runtest_teardown(item, nextitem):
    if nextitem is None or nextitem.path != item.path:
        set_aside()


def set_aside():
    """Exempt all objects from garbage collection: collected tests, and what earlier files have left in caches.

    A test that collects garbage, and a view that looks for living models, do not search hundreds of thousands of them.
    """
    gc.collect()
    gc.freeze()


def selected(items, quick_run, long_run):
    """The tests of a run: only a run with `--long` has the tests with the marker `long`."""
    usual = [item for item in items if long_run or not item.get_closest_marker("long")]
    return quick(usual) if quick_run else set(usual)


def quick(items):
    """Selects the tests of a quick run: the middle case of each test function.

    Slow tests, notebooks, and tests that need another program or a certain system (`skipif`) are left out.
    """
    cases = {}
    for item in items:
        if not is_slow(item):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {each[len(each) // 2] for each in cases.values()}


def is_slow(item):
    """Whether a quick run leaves out a test: by its marker, as a notebook, or as the reader of what takes seconds."""
    if any(map(item.get_closest_marker, ("slow", "skipif"))) or item.path.suffix == ".ipynb":
        return True
    return not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def longest_first(items):
    """The tests with the files of slow ones first, because each process takes the next file.

    Where a long file is the last one, the other processes wait for its end.
    """
    weights = Counter()
    for item in items:
        weights[item.path] += SLOW_WEIGHT if is_slow(item) else 1
    return sorted(items, key=lambda item: -weights[item.path])


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace, request, monkeypatch):
    """The name `mg`; eager programs, but in the course; views as on a quiet machine, whichever tests ran before."""
    doctest_namespace["mg"] = minigrad
    in_course = not {"course", "minigrad_course"}.isdisjoint(request.node.path.parts)  # where `begin` turns them off
    monkeypatch.setattr(PROGRAMS, "on", not in_course)
    if not {"viz", "look"}.isdisjoint(request.node.path.parts):
        request.getfixturevalue("many_kinds")
    if "viz" in request.node.path.parts:
        from minigrad.compile.look import roofline

        monkeypatch.setattr(roofline, "machine", lambda: roofline.Machine(1e12, 1e14, 1e-6))


@pytest.fixture
def many_kinds(monkeypatch):
    """Room for more kinds of calls: other tests may have used up the usual number."""
    from minigrad.eager import calls

    monkeypatch.setattr(calls, "MOST", 1000)


@pytest.fixture
def numpy_kernels(monkeypatch):
    """NumPy runs the programs: for tests of many programs, whose kernels would take minutes to compile."""
    monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
