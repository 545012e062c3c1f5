"""How long each unit takes, by one rule: `python -m minigrad_course.authoring.minutes` lists it.

`minigrad_course.authoring.build` writes the sum into the unit's texts, from where pages, notebooks and plans have it.

The rule was fitted to what two readers took for five units (02, 08, 10, 11 and 13, each with its page, demo and
exercise) in the role of third-year students: 710 minutes, and by the rule 719.  Single parts differ by up to a third.

| part | minutes |
|---|---|
| page | a minute for 180 words, 1/4 for each picture, 1/8 for each line of code that is in sight |
| demo | a minute for 180 words, 1/2 for each code cell, 2 for each question |
| exercise | a minute for 180 words, 1/2 for each code cell that belongs to no task, and the minutes of each task |

What a task takes, its text and the wrong tries included, is declared with the task, because it cannot be counted.
What stands below "Further" in a notebook is counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lectures.site.frames import LECTURES
from lectures.site.markup import Lecture, parsed, parser, quoted, words

from ..unit import Unit, units
from .build import DEMO, EXERCISE, FOLDERS, checked, is_further, read

SPEED = 180  # words in a minute, for readers whose second language is English
PICTURE, LINE, CELL, QUESTION = 1 / 4, 1 / 8, 1 / 2, 2
LONGEST = 120  # minutes of a unit, with its exercise
STEP = 5  # minutes are said in steps
TEXTS, TRUE = "texts.en.toml", "further = true\n"


class Minutes(NamedTuple):
    """The minutes of a unit's parts."""

    page: float
    demo: float
    exercise: float
    further: float

    @property
    def unit(self) -> int:
        """The minutes of the unit, as they are said."""
        return said(self.page + self.demo + self.exercise)


def said(minutes: float) -> int:
    """Minutes as they are said, in steps of five.

    >>> said(117.4), said(117.6)
    (115, 120)
    """
    return STEP * round(minutes / STEP)


def minutes_of(unit: Unit) -> Minutes:
    """The minutes of a unit by the rule.

    >>> minutes_of(units()["00_start"]).unit <= LONGEST
    True
    """
    demo, exercise = (read(FOLDERS[unit.key] / name).cells for name in (DEMO, EXERCISE))
    inside, after = zip(*(_divided(cells) for cells in (demo, exercise)))
    (shown, written), more = ((_demo(unit, both[0]), _exercise(unit, both[1])) for both in (inside, after))
    return Minutes(_page(unit.key), shown, written, sum(more))


def _page(key: str) -> float:
    lecture = Lecture(key, (LECTURES / f"{key}.md").read_text(encoding="utf-8"), prose=True)
    tokens = parsed(parser(lecture), lecture, "page")
    quoted(lecture, tokens)
    read_out = [words(each) for each in tokens if each.type == "inline"]
    read_out += [each.info for each in tokens if each.type == "container_reveal_open"]
    pictures = sum(len(each.children or ()) for each in tokens if each.type == "drawn")
    code = "\n".join(_in_sight(tokens))
    return _reading(" ".join(read_out)) + PICTURE * pictures + LINE * len(re.findall(r"^.*\S", code, re.M))


def _in_sight(tokens: Sequence[Any]) -> Iterator[str]:
    """The code that stands open on a page: listings behind a click are read by few."""
    depth = 0
    for token in tokens:
        depth += token.nesting if token.type.startswith("container_reveal") else 0
        if token.type == "fence" and not depth:
            yield token.content


def _demo(unit: Unit, cells: list[Any]) -> float:
    code = [cell for cell in cells if cell.cell_type == "code"]
    asked = [cell for cell in code if (name := checked(cell.source)) and not _strict(unit, name)]
    return _text(cells) + CELL * len(code) + QUESTION * len(asked)


def _exercise(unit: Unit, cells: list[Any]) -> float:
    code = [cell for cell in cells if cell.cell_type == "code"]
    tasks = {name for cell in code if (name := checked(cell.source))}
    shown = re.compile(r'course\.task\("\w+"\)')
    own = [cell for cell in code if cell.metadata.get("nbgrader") or shown.fullmatch(cell.source)]
    return _text(cells) + CELL * (len(code) - len(own)) + sum(unit.tasks[name].minutes for name in tasks)


def _strict(unit: Unit, name: str) -> bool:
    return name not in unit.tasks or unit.tasks[name].strict


def _text(cells: list[Any]) -> float:
    return _reading(" ".join(cell.source for cell in cells if cell.cell_type == "markdown"))


def _reading(text: str) -> float:
    return len(re.findall(r"[^\W\d_][\w'’-]*", text)) / SPEED


def _divided(cells: list[Any]) -> tuple[list[Any], list[Any]]:
    """The cells of the unit, and those that stand below "Further"."""
    at = next((i for i, cell in enumerate(cells) if is_further(cell)), len(cells))
    return cells[:at], cells[at:]


def further_tasks(cells: list[Any]) -> set[str]:
    """The tasks of an exercise that stand below "Further"."""
    return {name for cell in _divided(cells)[1] if (name := checked(cell.source))}


def write(unit: Unit) -> None:
    """Write minutes, and which tasks are further ones, into the texts of a unit, and minutes into the unit."""
    found = minutes_of(unit)
    unit.minutes, unit.further = found.unit, said(found.further)
    path = FOLDERS[unit.key] / TEXTS
    text = path.read_text(encoding="utf-8")
    line = f"minutes = {unit.minutes}\n" + (f"further = {unit.further}\n" if unit.further else "")
    new = re.sub(r"^minutes = \d+\n(further = \d+\n)?", line, text, count=1, flags=re.M)
    below = further_tasks(read(FOLDERS[unit.key] / EXERCISE).cells)
    for name in unit.tasks:
        table = f"[tasks.{name}]\n"
        new = new.replace(f"{table}{TRUE}", table).replace(table, table + TRUE * (name in below))
    if new != text:
        path.write_text(new, encoding="utf-8")


def table() -> str:
    """The minutes of all units.

    >>> print(table())
    | unit | page | demo | exercise | together | further |
    ...
    """
    rows = ["| unit | page | demo | exercise | together | further |", "|---|---|---|---|---|---|"]
    for key, unit in units().items():
        found = minutes_of(unit)
        rows.append(f"| {key} | {found.page:.0f} | {found.demo:.0f} | {found.exercise:.0f} | {found.unit} | "
                    f"{said(found.further) or ''} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
