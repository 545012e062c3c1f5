"""Words of the glossary: where a page uses one for the first time, it becomes a link, with the meaning in its title."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape, unescape

from .frames import LECTURES
from .markup import slug

# Words that mostly mean what they mean outside the course: a link at each first use would mislead.
COMMON = frozenset((
    "carry", "leaf", "level", "parameter", "pass", "return", "trace", "version", "view", "window", "work",
))
SILENT = frozenset((
    "a", "code", "figure", "h1", "h2", "h3", "h4", "math", "nav", "pre", "script", "style", "summary", "svg",
))


@cache
def meanings() -> dict[str, str]:
    """The words of the glossary with their meanings.

    >>> meanings()["kernel table"]
    'For each operation and each device, the kernel that computes it.'
    """
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", (LECTURES / "glossary.md").read_text(encoding="utf-8"), re.M)
    return {word: meaning.replace("`", "") for word, meaning in rows[1:]}


def spellings(word: str) -> list[str]:
    """The forms in which a text may have a word: `map, reduce` are two words.

    >>> spellings("operation, operator")
    ['operation', 'operator']
    """
    return word.split(", ")


def pattern(word: str) -> str:
    """A pattern for a word, in the singular or plural, at the beginning of a sentence too."""
    first = f"[{word[0].upper()}{word[0]}]" if word[0].islower() else re.escape(word[0])
    return rf"(?<![\w-]){first}{re.escape(word[1:])}(?:e?s)?(?![\w-])"


def with_terms(body: str, words: Mapping[str, str] | None = None) -> str:
    """The HTML of a page, with a link to the glossary at the first use of each word.

    >>> with_terms("<p>A kernel. Two kernels.</p>", {"kernel": "A function."})
    '<p>A <a class="term" href="glossary.html#kernel" title="A function.">kernel</a>. Two kernels.</p>'
    """
    known = meanings() if words is None else words
    left = {form: word for word in known for form in spellings(word) if word not in COMMON}
    pieces, silent = re.split(r"(<[^>]*>)", body), list[str]()
    for i, piece in enumerate(pieces):
        if i % 2:
            _entered(piece, silent)
        elif not silent and piece.strip():
            pieces[i] = _linked(piece, left, known)
    return "".join(pieces)


def _entered(tag: str, silent: list[str]) -> None:
    """Note where a part begins or ends in which no word is linked."""
    name = re.sub(r"\W.*", "", tag.lstrip("</"), flags=re.S)
    if tag.startswith("</"):
        if silent and silent[-1] == name:
            silent.pop()
    elif name in SILENT and not tag.endswith("/>"):
        silent.append(name)


def _linked(text: str, left: dict[str, str], known: Mapping[str, str]) -> str:
    forms = sorted(left, key=len, reverse=True)

    def link(found: re.Match[str]) -> str:
        word = left[next(each for each in forms if re.fullmatch(pattern(each), found[0]))]
        if word in used:
            return found[0]
        used.add(word)
        title = escape(unescape(known[word]), quote=True)
        return f'<a class="term" href="glossary.html#{slug(word)}" title="{title}">{found[0]}</a>'

    used: set[str] = set()
    new = re.sub("|".join(map(pattern, forms)), link, text) if forms else text
    for form in [form for form, word in left.items() if word in used]:
        del left[form]
    return new
