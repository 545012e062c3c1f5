"""What every test and every docstring's example may take for granted: `mg`."""

import pytest

import minigrad


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace):
    doctest_namespace["mg"] = minigrad

