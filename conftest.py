"""What every test and every docstring's example may take for granted: `mg`."""

import os

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # they share the cores: threads of small matrix products would only wait
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(_name, "1")  # before NumPy is imported, which reads it once

import minigrad

# Stubs fail, as they should, and sources are run as the notebooks that are made of them.
collect_ignore_glob = ["notebooks/exercises/*", "notebooks/masters/*", "notebooks/sources/*", "my-course/*"]


def pytest_collectstart(collector):
    """nbval compares what a view says and its picture, and not the script that shows it."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("application/javascript",)


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace):
    doctest_namespace["mg"] = minigrad
