"""Fixtures of tests that run Python as a browser does."""

import pytest

from tests.browser.running import Python, found, node


@pytest.fixture(scope="session")
def pyodide_folder():
    """The folder of Pyodide's files; without it, a test is skipped and says why."""
    folder = found()
    if isinstance(folder, str):
        pytest.skip(folder)
    return folder


@pytest.fixture(scope="session")
def in_node(pyodide_folder):
    """Python in Pyodide in Node.js, one process for all tests: `in_node.run(code)` returns what the code prints."""
    if node() is None:
        pytest.skip("there is no Node.js on this machine")
    python = Python(pyodide_folder)
    yield python
    python.close()
