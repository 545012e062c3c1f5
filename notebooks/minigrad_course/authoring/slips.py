"""Slips that have no hint yet: `python -m minigrad_course.authoring.slips [UNIT ...]` makes and lists them.

A slip is one change of a right program: another operator, a part that is left out, two parts exchanged, a number
that is one larger.  A student may make it.  It is listed where its results are wrong and no known mistake explains
them.  The author chooses from the list: not every slip needs a hint.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from ..feedback import Feedback, Wrong
from ..limits import TimeIsUp, at_most
from ..mistakes import slipped
from ..tasks import Task
from ..unit import parts

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}
SECONDS = 10.0  # for one slip: some of them never end


def slips_of(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a program that a slip changes, and what stands in their places.  Each part is there once.

    >>> list(slips_of("def f(a, b):\\n    return a / 2 - b\\n"))[:3]
    [('a / 2 - b', 'a / 2 + b'), ('a / 2 - b', 'a / 2'), ('a / 2 - b', 'b')]
    """
    for node in ast.walk(ast.parse(text)):
        part = ast.get_source_segment(text, node)
        if part is None or text.count(part) != 1 or not isinstance(node, ast.expr):
            continue
        for changed in _changed(node):
            yield part, ast.unparse(changed)


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    """The slips in one place of a program."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OTHER:
            yield ast.BinOp(left, OTHER[type(op)](), right)  # type: ignore[arg-type]
            yield from (left, right)
        case ast.UnaryOp(_, operand):
            yield operand
        case ast.Compare(left, [op], rest) if type(op) in OTHER:
            yield ast.Compare(left, [OTHER[type(op)]()], rest)  # type: ignore[list-item]
        case ast.Constant(int() as number) if not isinstance(number, bool):
            yield ast.Constant(number + 1)
        case ast.Tuple([_, _, *_]) if isinstance(node.ctx, ast.Load):
            yield ast.Tuple(node.elts[::-1], node.ctx)
        case ast.Call(_, [first, second]):
            turned = copy.copy(node)
            turned.args = [second, first]
            yield turned


def without_hint(task: type[Task]) -> list[str]:
    """The slips in the right program of a task that no known mistake explains, in words."""
    try:
        text = dedent(inspect.getsource(getattr(task, task.slips_of)))
    except (AttributeError, OSError, TypeError):
        return []
    found = []
    for right, slip in slips_of(text):
        if is_unexplained(task, right, slip):
            found.append(f"{right} → {slip}")
    return found


def is_unexplained(task: type[Task], right: str, slip: str) -> bool:
    """Whether the results of a slip are wrong, and get no hint but that for any other mistake."""
    variant: Any = task()
    try:
        program = slipped(task, (right, slip))
        known = task.mistakes[0]._replace(program=program) if task.mistakes else None
        if known is None:
            return False
        at_most(SECONDS)(variant.check)(variant.wrong(known))
    except Wrong as refused:
        return refused.hint in (None, variant.otherwise)
    except (Feedback, Exception, TimeIsUp):  # it stops with an error of its own, which a student sees
        return False
    return False


if __name__ == "__main__":
    for key in sys.argv[1:] or parts():
        for each in parts()[key].tasks.values():
            for line in without_hint(each):
                print(f"{key} {each.name}: {line}")
