"""The how-to pages: a file each in `lectures/howto`, and the page that lists them."""

from __future__ import annotations

import re
from functools import cache

from .frames import LECTURES

FIRST = "howto"  # the page that lists the others, and the beginning of their names


@cache
def howtos() -> dict[str, str]:
    """The Markdown of each how-to page, by the name of the page."""
    paths = sorted((LECTURES / FIRST).glob("*.md"))
    return {f"{FIRST}_{path.stem}": path.read_text(encoding="utf-8") for path in paths}


def list_of_howtos() -> str:
    """The Markdown of the page that lists them: `{{freeze clip}}` in it stands for links to these two."""

    def links(found: re.Match[str]) -> str:
        names = [f"{FIRST}_{name}" for name in found[1].split()]
        return "\n".join(f"- [{title(howtos()[name])}]({name}.html)" for name in names)

    text = (LECTURES / f"{FIRST}.md").read_text(encoding="utf-8")
    return re.sub(r"{{(.*?)}}", links, text)


def title(text: str) -> str:
    """The first line of a page, without its mark.

    >>> title("# Clip gradients\\n\\nBetween ...")
    'Clip gradients'
    """
    return text.partition("\n")[0].removeprefix("# ")
