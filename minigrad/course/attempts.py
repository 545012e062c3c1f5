"""Which cells made a student's answers: cells that stopped before they made one, and names that are newer than one.

After each cell, the names that its code assigns are compared with the place where it stopped.  An answer whose newest
cell stopped too early is older than the student believes.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from ..support.source import notebook_shell
from .unit import units

STORES = {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL"}
TIMED_CELL = re.compile(r"\s*%%(time|prun)\b.*\n")  # magics that run the rest of the cell as if they were not there
TIMED_LINE = re.compile(r"^(\s*)%(time|prun)\s+", re.MULTILINE)
ASSIGNED = re.compile(  # in code that Python cannot read
    r"^\s*(?:async\s+)?(?:def|class)\s+(?P<made>\w+)|^(?P<many>[\w\s,*()\[\]]+?)\s*(?::[^=\n]*)?[-+*/%&|^@]*=(?!=)"
    r"|\b(?:as|import|for)\s+(?P<named>\w+)",
    re.MULTILINE,
)
NEAR = 0.8  # how alike two names are of which one may be a slip

Place = tuple[CodeType, int]  # the code of a module and the offset of an instruction in it


class Stop(NamedTuple):
    """What stopped a cell: the class of the error, its words, and the cell."""

    kind: type[BaseException]
    words: str
    source: str


class Attempts:
    """The cells that ran in one notebook, as far as they made names."""

    def __init__(self) -> None:
        self.begin({})

    def begin(self, namespace: Mapping[str, Any]) -> None:
        """Begin with a notebook in which no cell is known yet."""
        self.namespace = namespace
        self.cells = 0
        self.made: dict[str, int] = {}  # name -> the number of the cell that made it last
        self.stops: dict[str, Stop] = {}  # name -> what stopped the newest cell that was to make it
        self._remember(namespace)

    def _remember(self, namespace: Mapping[str, Any]) -> None:
        names = namespace.keys() & _tasks()  # and no other values: a notebook may be done with them
        self.values = {name: namespace[name] for name in names}

    def after(self, source: str, error: BaseException | None, namespace: Mapping[str, Any]) -> None:
        """Take in a cell that has run to its end or to an error."""
        if namespace is not self.namespace:
            self.begin(namespace)
        self.cells += 1
        made, missed = _assigned(source, _places(error, namespace), stopped=error is not None)
        for name in made | self._changed(namespace) - missed:
            self.made[name] = self.cells
            self.stops.pop(name, None)
        if error is not None:
            self.stops |= dict.fromkeys(missed, Stop(type(error), str(error), source))
        self._remember(namespace)

    def _changed(self, namespace: Mapping[str, Any]) -> set[str]:
        """Answers that are other objects than after the last cell, by a `global` statement for example."""
        names = namespace.keys() & _tasks()
        return {name for name in names if self.values.get(name, self) is not namespace[name]}

    def at(self, place: Place, namespace: Mapping[str, Any]) -> Attempts:
        """How things are at a place in the cell that runs now."""
        now = Attempts()
        now.begin(namespace)
        if namespace is self.namespace:
            now.cells, now.made, now.stops, now.values = self.cells, dict(self.made), dict(self.stops), self.values
        sources = namespace.get("In") or [""]
        made, _ = _assigned(sources[-1], [place] if place[0].co_name == "<module>" else [], stopped=False)
        for name in made | now._changed(namespace):
            now.made[name] = now.cells + 1
            now.stops.pop(name, None)
        return now

    def newer(self, name: str, others: Iterable[str]) -> str | None:
        """Which of some names looks like this one, and was made after it."""
        newer = [other for other in others if self.made.get(other, 0) > self.made.get(name, 0)]
        return next(iter(get_close_matches(name, newer, 1, NEAR)), None)


@cache
def _tasks() -> frozenset[str]:
    return frozenset(name for unit in units().values() for name in unit.tasks)


ATTEMPTS = Attempts()


def watch_cells() -> None:
    """Let the notebook that runs report each of its cells."""
    shell = notebook_shell()
    if shell is not None:
        shell.events.register("post_run_cell", _report)


def _report(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    ATTEMPTS.after(result.info.raw_cell, error if isinstance(error, BaseException) else None, notebook_shell().user_ns)


def _places(error: BaseException | None, namespace: Mapping[str, Any]) -> list[Place]:
    """Where an error came through the notebook's own code, from the outside inwards."""
    found = []
    trace = error.__traceback__ if error is not None else None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name == "<module>" and trace.tb_frame.f_globals is namespace:
            found.append((code, trace.tb_lasti))
        trace = trace.tb_next
    return found


def _assigned(source: str, places: list[Place], stopped: bool) -> tuple[set[str], set[str]]:
    """The names that a cell has made when it is at a place, and those that it has not made yet.

    A notebook compiles each statement by itself: what stands in later lines has not been made.
    """
    if TIMED_CELL.match(source):
        source, places = TIMED_CELL.sub("", source, count=1), places[1:]
    statements = _compiled(source)
    if statements is None:
        return set(), _named_in(source)
    lines = [(name, line) for code in statements for name, _, line in _stores(code)]
    names = {name for name, _ in lines}
    if not places:
        return (set(), names) if stopped else (names, set())
    last = max((line for _, _, line in places[0][0].co_lines() if line is not None), default=0)
    code, offset = places[-1]
    missed = {name for name, at, _ in _stores(code) if at >= offset}
    missed |= {name for name, line in lines if line > last}
    return names - missed, missed


def _stores(code: CodeType) -> list[tuple[str, int, int]]:
    """The names that a module's code assigns or deletes: name, offset of the instruction, line."""
    found = []
    for each in dis.get_instructions(code):
        if each.opname in STORES:
            line = each.positions.lineno if each.positions is not None else None
            found.append((each.argval, each.offset, line or 0))
    return found


def _compiled(source: str) -> list[CodeType] | None:
    """The code of each statement of a cell, None where Python cannot read it."""
    shell = notebook_shell()
    source = TIMED_LINE.sub(r"\1", source)
    try:
        tree = ast.parse(shell.transform_cell(source) if shell is not None else source)
        return [
            compile(ast.Module([each], []), "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            for each in tree.body
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _named_in(source: str) -> set[str]:
    """The names that a cell seems to assign which Python cannot read.

    >>> sorted(_named_in("rise = = 0.1\\nearly, late = 2 10\\ndef mul_grad(g, out, a, b)\\n    return 1"))
    ['early', 'late', 'mul_grad', 'rise']
    """
    return {name for match in ASSIGNED.finditer(source) for group in match.groups() for name in _words(group)}


def _words(text: str | None) -> list[str]:
    return re.findall(r"[^\W\d]\w*", text or "")
