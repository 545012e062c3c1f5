"""The exam questions as Moodle XML: `python3 course python -m lectures.site.moodle exam.xml`.

Moodle, and other platforms that read its format, import the file into their bank of questions: a category for each
unit.  Each question is an essay, and its answer, with the code that computes it, is shown to graders alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as xml

from .frames import LECTURES
from .markup import Lecture, parser


class Question(NamedTuple):
    """A question of the exam, in Markdown."""

    unit: str
    number: int
    text: str
    answer: str


def questions() -> list[Question]:
    """All questions with their answers, in order."""
    answers = {(unit, number): text for unit, number, text in _numbered("exam_answers.md")}
    asked = _numbered("exam.md")
    return [Question(unit, number, text, answers[unit, number]) for unit, number, text in asked]


def _numbered(name: str) -> Iterable[tuple[str, int, str]]:
    """The numbered texts below each heading of a file, with the heading."""
    _, *parts = re.split("^## (.*)$", (LECTURES / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for unit, text in zip(parts[::2], parts[1::2], strict=True):
        for number, each in enumerate(re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:], 1):
            yield unit, number, each.strip()


def quiz(asked: Iterable[Question]) -> str:
    """The questions as Moodle XML.

    >>> print(quiz([Question("00 · Start", 1, "Is `a < b`?", "Yes.")]).count("&lt;code&gt;a &amp;lt; b&lt;/code&gt;"))
    1
    """
    root, unit = xml.Element("quiz"), ""
    for each in asked:
        if each.unit != unit:
            unit = each.unit
            _text(xml.SubElement(root, "question", type="category"), "category", f"$course$/minigrad/{unit}")
        question = xml.SubElement(root, "question", type="essay")
        _text(question, "name", f"{unit.partition(' ')[0]}.{each.number}")
        _text(question, "questiontext", _html(each.text), format="html")
        _text(question, "graderinfo", _html(each.answer), format="html")
        xml.SubElement(question, "defaultgrade").text = "1"
        xml.SubElement(question, "responseformat").text = "editor"
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _text(parent: xml.Element, name: str, text: str, **attributes: str) -> None:
    xml.SubElement(xml.SubElement(parent, name, attributes), "text").text = text


def _html(text: str) -> str:
    return str(parser(Lecture("exam", "")).render(text))


def main(arguments: list[str]) -> None:
    """Write the file."""
    if len(arguments) != 1:
        sys.exit("usage: python3 course python -m lectures.site.moodle exam.xml")
    found = questions()
    Path(arguments[0]).write_text(quiz(found), encoding="utf-8")
    print(f"{len(found)} questions in {arguments[0]}: in Moodle, Question bank → Import → Moodle XML format")


if __name__ == "__main__":
    main(sys.argv[1:])
