"""Expressions in the texts of a unit: what is in braces in a text, and what a student computes by mistake.

Their names are the attributes of the task, and the names of its module; `mg`, `np` and `math` are known too.
"""

from __future__ import annotations

import ast
import builtins
import math
import re
import sys
from collections.abc import Mapping
from functools import cache
from types import CodeType
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.support.source import parsed

from .compare import plain

KNOWN = {"mg": mg, "np": np, "math": math, "plain": plain}


def value(text: str, of: Any, arguments: Mapping[str, Any] = {}) -> Any:
    """The value of an expression of a task, and of arguments.

    >>> value("real + k", 3 + 4j, {"k": 1})
    4.0
    """
    code, names = _compiled(text)
    found = {name: getattr(of, name) for name in names if hasattr(of, name)}
    return eval(code, {**around(of), **found, **arguments, "self": of})


def around(of: Any) -> dict[str, Any]:
    """The names that are known without the task's own: those of its module."""
    return {**KNOWN, **vars(sys.modules[type(of).__module__])}


@cache
def _compiled(text: str) -> tuple[CodeType, frozenset[str]]:
    """An expression, and the names that it reads."""
    tree = parsed(text.strip(), "eval")
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return compile(tree, "<expression>", "eval"), frozenset({node.id for node in names} - own)


def filled(template: str, of: Any) -> str:
    """A text in which the value of an expression stands in the place of its braces; other braces stay.

    A method without parameters is called: `{right}`.

    >>> filled("{real + 1:g} + {imag}j, {or} more, {1, 2}", 3 + 4j)
    '4 + 4.0j, {or} more, {1, 2}'
    """
    def shown(found: re.Match[str]) -> str:
        for text, form in ((found[1], ""), found[1].rpartition(":")[::2]):
            if _is_known(text, of):
                found_value = value(text, of)
                return format(found_value() if callable(found_value) else found_value, form)
        return found[0]

    return re.sub(r"\{([^{}\n]+)\}", shown, template)


def _is_known(text: str, of: Any) -> bool:
    """Whether a text is an expression of names that are known, one of them at least."""
    try:
        _, names = _compiled(text)
    except SyntaxError:
        return False
    own = {name for name in names if hasattr(of, name) or name in around(of)}
    return bool(own) and all(hasattr(builtins, name) for name in names - own)
