"""What the search on every page looks through: a script, for a page opened from the disk may read nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from minigrad.core.primitive import P
from minigrad.course.unit import Unit

from .api import entries
from .frames import Section
from .markup import slug

Line = tuple[str, str, str, str]  # what it is called, of which kind it is, its address, what is said of it


def search_index(known: dict[str, Unit], sections: dict[str, list[Section]], glossary: str) -> str:
    """The script that holds a line for each thing that can be found."""
    lines = [*_lectures(known, sections), *_reference(sections), *_words(glossary)]
    rows = ",\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    return f"const INDEX = [\n{rows}\n];\n".replace("</", "<\\/")


def _lectures(known: dict[str, Unit], sections: dict[str, list[Section]]) -> Iterable[Line]:
    for key, unit in known.items():
        yield unit.title, f"lecture {unit.number:02}", f"{key}.html", unit.question
        for section in sections.get(key, ()):
            if section.level > 1:
                yield section.text, f"lecture {unit.number:02}", f"{key}.html#{section.anchor}", unit.title


def _reference(sections: dict[str, list[Section]]) -> Iterable[Line]:
    for listed in entries().values():
        for entry in listed:
            yield entry.name, "API", f"api.html#{entry.name}", entry.summary
    for op in P:
        yield op.name, "primitive", f"primitives.html#{op.name}", ""
    for section in sections["errors"]:
        if section.level > 1:
            yield section.text, "error", f"errors.html#{section.anchor}", ""


def _words(glossary: str) -> Iterable[Line]:
    for word, meaning in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", glossary, re.MULTILINE):
        if word != "word":
            yield word, "glossary", f"glossary.html#{slug(word)}", meaning.replace("`", "")
