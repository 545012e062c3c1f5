"""What every test and every docstring's example may take for granted: `mg`."""

import pytest

import minigrad

# Stubs fail, as they should, and sources are run as the notebooks that are made of them.
collect_ignore_glob = ["notebooks/exercises/*", "notebooks/masters/*", "notebooks/sources/*", "my-course/*"]


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace):
    doctest_namespace["mg"] = minigrad
