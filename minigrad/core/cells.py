"""Cells of a notebook: one that ends in an error leaves the modes as it found them."""

from __future__ import annotations

from typing import Any

from ..support.source import notebook_shell
from .mode import SWITCHED


class Cells:
    """Notes the modes when a cell begins, and sets them back when it ends in an error.

    A `with` block does so itself, unless Ctrl-C stops it before the first line of its `__exit__`: then the cells after
    it would run without gradients, say.
    """

    def __init__(self) -> None:
        self.begun: list[list[Any]] = []  # a cell may run another one

    def begin(self, info: Any = None) -> None:
        """A cell begins."""
        self.begun.append([variable.get() for variable in SWITCHED])

    def end(self, result: Any) -> None:
        """A cell has ended."""
        if self.begun:  # else it began before minigrad was imported
            for variable, before in zip(SWITCHED, self.begun.pop()):
                if not result.success and variable.get() is not before:
                    variable.set(before)


def watch_cells() -> None:
    """Have the shell of a notebook call `Cells`, if there is one."""
    shell = notebook_shell()
    if shell is not None:
        cells = Cells()
        shell.events.register("pre_run_cell", cells.begin)
        shell.events.register("post_run_cell", cells.end)
