"""Notebooks run cell by cell in this process: much quicker than a kernel, and with the history that a kernel keeps."""

import contextlib
import io
import linecache
import sys
import types
from pathlib import Path

import nbformat

from minigrad.course.attempts import ATTEMPTS
from minigrad.course.feedback import Feedback

ROOT = Path(__file__).resolve().parents[2]


class Notebook:
    """A namespace in which cells are run, as a kernel has one."""

    def __init__(self):
        self.names = {"__name__": "notebook", "In": [""]}
        self.said = []  # by each cell: what it printed, or the error's words

    def run(self, source):
        """Run a cell; a `Feedback` or an error of a stub is what it says, anything else goes through."""
        number = len(self.names["In"])
        self.names["In"].append(source)
        name = f"/tmp/ipykernel_1/{number}.py"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(source, name, "exec"), self.names)
        except (Feedback, NotImplementedError, SyntaxError) as error:
            self.said.append(str(error) or type(error).__name__)
            ATTEMPTS.after(source, error, self.names)  # as a notebook does
            return error
        self.said.append(printed.getvalue())
        ATTEMPTS.after(source, None, self.names)
        return None


def run_notebook(notebook):
    """Run every code cell; the errors by the id of the cell, and the namespace."""
    here = Notebook()
    errors = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            error = here.run(cell.source)
            if error is not None:
                errors[cell.id] = error
    return errors, here


def stored(path):
    return nbformat.read(path, as_version=4)


def module(name, path):
    """A script of the repository as a module."""
    spec = types.ModuleType(name)
    spec.__file__ = str(path)
    sys.modules[name] = spec
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), spec.__dict__)
    return spec
