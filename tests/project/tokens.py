"""How large code is, in tokens: joining lines saves nothing, and explanations are free.

A token is what `tokenize` yields without comments, docstrings, newlines and indents.  A string of more than 60
characters that is not a docstring counts each of its words, because code in templates is code.  JavaScript and CSS are
counted by words: what lies between spaces, without comments.
"""

from __future__ import annotations

import ast
import re
import statistics
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path

LONG = 60  # characters of a string whose words count
FREE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    tokenize.ENCODING,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def tokens_of(text: str) -> int:
    """The tokens of a Python file.

    >>> tokens_of('x = 1  # one\\n'), tokens_of('def f():\\n    "It says so."\\n    return 1\\n')
    (3, 7)
    >>> tokens_of(f'x = "{"word " * 15}end"')
    18
    """
    lines = {node.lineno for node in docstrings_of(text)}
    count = 0
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type in FREE or (token.type == tokenize.STRING and token.start[0] in lines and _begins(token)):
            continue
        is_long = token.type == tokenize.STRING and len(token.string) > LONG
        count += len(token.string.split()) if is_long else 1
    return count


def docstrings_of(text: str) -> list[ast.Constant]:
    """The docstrings of a Python file, and the texts below attributes, which are docstrings too."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.append(value)
    return found


def _begins(token: tokenize.TokenInfo) -> bool:
    """Whether a token is the first one in its line."""
    return not token.line[: token.start[1]].strip() or token.line.lstrip().startswith(("def ", "class "))


def words_of(text: str) -> int:
    """The words of JavaScript or CSS, without comments.

    >>> words_of("let x = 1;  // one"), words_of("a { color: red }  /* why */")
    (4, 5)
    """
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return len(re.sub(r"(?m)(^|\s)//.*$", "", text).split())


@cache
def size_of_file(path: Path) -> int:
    """The tokens of a file."""
    text = path.read_text(encoding="utf-8")
    return tokens_of(text) if path.suffix == ".py" else words_of(text)


def size_of_files(paths: Iterable[Path]) -> int:
    """The tokens of some files."""
    return sum(map(size_of_file, paths))


def lengths_of_functions(paths: Iterable[Path]) -> Iterator[int]:
    """The length of each function of Python files, in lines with code, without its docstring."""
    for path in paths:
        if path.suffix != ".py":
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
                yield body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def median_length(paths: Iterable[Path]) -> float:
    """The median length of the functions of some files."""
    return statistics.median(lengths_of_functions(paths))


def share_of_explanations(paths: Iterable[Path]) -> float:
    """The share of lines of Python that are empty, comments, or parts of docstrings."""
    free = whole = 0
    for path in paths:
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            inside = {n for node in docstrings_of(text) for n in range(node.lineno, (node.end_lineno or 0) + 1)}
            free += sum(
                n in inside or not line.strip() or line.lstrip().startswith("#") for n, line in enumerate(lines, 1)
            )
            whole += len(lines)
    return free / whole
