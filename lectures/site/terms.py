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


@cache
def pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for words, longer ones first: in the singular or plural, at the beginning of a sentence too.

    >>> pattern(("kernel", "kernel table")).findall("Kernels, a kernel table, kernel-like")
    ['Kernel', 'kernel table']
    """
    first = [f"[{form[0].upper()}{form[0]}]" if form[0].islower() else re.escape(form[0]) for form in forms]
    longest = sorted(zip(forms, first), key=lambda pair: len(pair[0]), reverse=True)
    words = "|".join(start + re.escape(form[1:]) for form, start in longest)
    return re.compile(rf"(?<![\w-])({words})(?:e?s)?(?![\w-])")


def with_terms(body: str, words: Mapping[str, str] | None = None) -> str:
    """The HTML of a page, with a link to the glossary at the first use of each word.

    >>> with_terms("<p>A kernel. Two kernels.</p>", {"kernel": "A function."})
    '<p>A <a class="term" href="glossary.html#kernel" title="A function.">kernel</a>. Two kernels.</p>'
    """
    known = meanings() if words is None else words
    forms = {form: word for word in known for form in spellings(word) if word not in COMMON}
    pieces, silent, used = re.split(r"(<[^>]*>)", body), list[str](), set[str]()

    def link(found: re.Match[str]) -> str:
        word = forms.get(found[1]) or forms[found[1][0].lower() + found[1][1:]]
        if word in used:
            return found[0]
        used.add(word)
        title = escape(unescape(known[word]), quote=True)
        return f'<a class="term" href="glossary.html#{slug(word)}" title="{title}">{found[0]}</a>'

    for i, piece in enumerate(pieces):
        if i % 2:
            _entered(piece, silent)
        elif not silent and piece.strip():
            pieces[i] = pattern(tuple(forms)).sub(link, piece)
    return "".join(pieces)


def _entered(tag: str, silent: list[str]) -> None:
    """Note where a part begins or ends in which no word is linked."""
    name = re.sub(r"\W.*", "", tag.lstrip("</"), flags=re.S)
    if tag.startswith("</"):
        if silent and silent[-1] == name:
            silent.pop()
    elif name in SILENT and not tag.endswith("/>"):
        silent.append(name)

