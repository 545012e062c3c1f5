"""The user's code that a view is about, for the pages that are passed on."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from types import CodeType

from ..core.node import Leaf, Node
from ..support.source import line_of, span_of

LONGEST = 60  # lines: of a longer function, only those are quoted that made something

def quoted(nodes: Iterable[Node]) -> str:
    """The functions that made some nodes; of code outside functions, the lines from the first to the last that did.

    Files are named without their folders, and the cells of a notebook not at all.

    >>> quoted([])
    ''
    """
    made: dict[CodeType, set[int]] = {}
    for node in nodes:
        if node.where is not None and (node.op is not None or isinstance(node, Leaf)):  # not where a graph's inputs are
            made.setdefault(node.where[0], set()).update((span_of(node.where) or line_of(node.where)[1:])[:2])
    files: dict[str, set[int]] = {}
    for code, lines in made.items():
        last = max([line for *_, line in code.co_lines() if line])
        if code.co_name != "<module>" and last - code.co_firstlineno < LONGEST:
            lines |= {code.co_firstlineno, last}
        files.setdefault(code.co_filename, set()).update(range(min(lines), max(lines) + 1))
    texts = []
    for file, lines in files.items():  # `…` where lines between them are left out
        runs = groupby(enumerate(sorted(lines)), lambda each: each[1] - each[0])
        parts = [dedent("".join([linecache.getline(file, number) for _, number in run])).rstrip() for _, run in runs]
        text = "\n…\n".join(filter(None, parts))
        texts.append(f"# {Path(file).name}\n{text}" if text and Path(file).exists() else text)
    return "\n\n".join(filter(None, texts))
