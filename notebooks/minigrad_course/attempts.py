"""Which cells made a student's answers, and which cells stopped before they made one.

After each cell, the names that its code assigns are compared with the line where it stopped.  If the newest cell of an
answer stopped too early, the value in the notebook is older than the student believes.
"""

from __future__ import annotations

import ast
import re
import traceback
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from minigrad.support.source import notebook_shell, parsed

from .unit import names_in_use

TIMED = re.compile(r"^\s*%%(?:time|prun)\b.*\n|^[ \t]*%(?:time|prun)\s+", re.MULTILINE)  # magics that run code in place
ASSIGNED = re.compile(  # in code that Python cannot read
    r"^\s*(?:async\s+)?(?:def|class)\s+(?P<made>\w+)|^(?P<many>[\w\s,*()\[\]]+?)\s*(?::[^=\n]*)?[-+*/%&|^@]*=(?!=)"
    r"|\b(?:as|import|for)\s+(?P<named>\w+)",
    re.MULTILINE,
)
NEAR = 0.8  # how similar two names are if one of them may be a slip


class Stop(NamedTuple):
    """What stopped a cell: the class of the error, its message, and the code of the cell."""

    kind: type[BaseException]
    words: str
    source: str


class Attempts:
    """The names that the cells of one notebook made, and the cells that stopped before."""

    def __init__(self) -> None:
        self.begin({})

    def begin(self, namespace: Mapping[str, Any]) -> None:
        """Begin with a notebook in which no cell has run yet."""
        self.namespace = namespace
        self.cells = 0
        self.made: dict[str, int] = {}  # name -> the number of the newest cell that made it
        self.stops: dict[str, Stop] = {}  # name -> what stopped the newest cell that assigns it
        self._remember(namespace)

    def _remember(self, namespace: Mapping[str, Any]) -> None:
        # No other value is kept alive.
        known = names_in_use()
        self.values = {name: value for name, value in namespace.items() if name in known}

    def after(self, source: str, error: BaseException | None, namespace: Mapping[str, Any]) -> None:
        """Record a cell that has run to its end or to an error."""
        if namespace is not self.namespace:
            self.begin(namespace)
        line = _line_of(error, namespace) if error is not None else None
        missed = self._record(source, line, namespace, ended=error is None)
        if error is not None:
            self.stops |= dict.fromkeys(missed, Stop(type(error), str(error), source))
        self._remember(namespace)

    def at(self, line: int | None, namespace: Mapping[str, Any]) -> Attempts:
        """The state at a line of the cell that is running; None: the check was not called by a cell itself."""
        now = Attempts()
        now.begin(namespace)
        if namespace is self.namespace:
            now.cells, now.made, now.stops, now.values = self.cells, dict(self.made), dict(self.stops), self.values
        sources = namespace.get("In") or [""]
        now._record(sources[-1] if line is not None else "", line, namespace, ended=False)
        return now

    def _record(self, source: str, line: int | None, namespace: Mapping[str, Any], ended: bool) -> set[str]:
        """Note the names that a cell has made when it is at a line; the names that it has not made yet."""
        self.cells += 1
        before, there, later = _assigned(source, line, ended)
        answers = namespace.keys() & names_in_use()
        changed = {name for name in answers if self.values.get(name, self) is not namespace[name]}
        for name in before | changed:
            self.made[name] = self.cells
            self.stops.pop(name, None)
        return (there | later) - changed

    def newer(self, name: str, others: Iterable[str]) -> str | None:
        """The name among `others` that looks like this one and was made after it."""
        newer = [other for other in others if self.made.get(other, 0) > self.made.get(name, 0)]
        return next(iter(get_close_matches(name, newer, 1, NEAR)), None)


ATTEMPTS = Attempts()


def watch_cells() -> None:
    """Record each cell of the notebook that runs."""
    shell = notebook_shell()
    if shell is not None:
        shell.events.register("post_run_cell", _report)


def _report(result: Any) -> None:
    error = result.error_before_exec or result.error_in_exec
    ATTEMPTS.after(result.info.raw_cell, error if isinstance(error, BaseException) else None, notebook_shell().user_ns)


def missed(source: str, error: BaseException, namespace: Mapping[str, Any]) -> set[str]:
    """The names that the statement assigns in which a cell stopped."""
    return _assigned(source, _line_of(error, namespace), ended=False)[1]


def _line_of(error: BaseException, namespace: Mapping[str, Any]) -> int | None:
    """The last line of the notebook's own code that an error came through."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [line for f, line in frames if f.f_code.co_name == "<module>" and f.f_globals is namespace]
    return own[-1] if own else None


def _assigned(source: str, line: int | None, ended: bool) -> tuple[set[str], set[str], set[str]]:
    """The names that a cell assigns in statements before a line, in the statements at the line, and in later ones."""
    found: tuple[set[str], set[str], set[str]] = set(), set(), set()
    statements = _statements(source)
    if statements is None:
        return set(), set(), _named_in(source)
    for each in statements:
        first, last = each.lineno, each.end_lineno or each.lineno
        first = min([first, *[d.lineno for d in getattr(each, "decorator_list", [])]])
        when = 0 if ended or (line is not None and last < line) else 1 if line is not None and first <= line else 2
        found[when].update(_names(each))
    return found


def _names(node: ast.AST) -> set[str]:
    """The names that a statement assigns, outside of the functions and classes that it defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    own = {getattr(node, "id", None)} if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) else set()
    if isinstance(node, ast.alias):
        own = {(node.asname or node.name).partition(".")[0]}
    if isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler):
        own = {node.name}
    inside = [] if isinstance(node, ast.Lambda) else ast.iter_child_nodes(node)
    if isinstance(node, ast.comprehension):  # its variable is its own
        inside = [node.iter, *node.ifs]
    return {name for name in own.union(*map(_names, inside)) if name is not None}


def _statements(source: str) -> list[ast.stmt] | None:
    """The statements of a cell, None where Python cannot read it."""
    shell = notebook_shell()
    source = TIMED.sub(lambda magic: "\n" if "%%" in magic.group() else "", source)
    try:
        return parsed(shell.transform_cell(source) if shell is not None else source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _named_in(source: str) -> set[str]:
    """The names that a cell seems to assign if Python cannot read it.

    >>> sorted(_named_in("rise = = 0.1\\nearly, late = 2 10\\ndef mul_grad(g, out, a, b)\\n    return 1"))
    ['early', 'late', 'mul_grad', 'rise']
    """
    groups = [group for match in ASSIGNED.finditer(source) for group in match.groups()]
    return {name for group in groups for name in re.findall(r"[^\W\d]\w*", group or "")}
