"""The page of the museum: `museum.md`, and below it a section for each picture, from the package of the museum."""

from __future__ import annotations

from minigrad_course.museum import MUSEUM
from minigrad_course.museum.broken_picture import BrokenPicture
from minigrad_course.unit import Unit, units

from .frames import LECTURES


def museum() -> str:
    """The Markdown of the page."""
    sections = [_section(number, task()) for number, task in enumerate(MUSEUM.tasks.values(), 1)]
    return "\n\n".join([(LECTURES / "museum.md").read_text(encoding="utf-8").rstrip(), *sections]) + "\n"


def _section(number: int, task: BrokenPicture) -> str:
    """One picture: the question, the broken picture, what contradicts itself in it, and the right picture."""
    known = units()
    links = [_link(known[key]) for key in task.taught_in if key in known]
    taught = f"\n\nMore in {', '.join(links)}." if links else ""
    return f"""## {number} · {task.heading}

{task.text()}

![Drawn from the belief: {task.in_words()}]({task.name})

::: reveal What cannot be so?
{_sentence(task.clue)}
:::

::: reveal The right picture
![{task.said}]({task.name}_repaired)

{_sentence(task.why)}{taught}
:::"""


def _link(unit: Unit) -> str:
    return f"[{unit.heading}]({unit.key}.html)"


def _sentence(words: str | None) -> str:
    """A hint as a sentence: with a capital, unless it begins with a name of the program, and with a full stop."""
    text = str(words)
    first = text.split()[0]
    begin = text[:1].upper() + text[1:] if first.isalpha() and len(first) > 1 else text
    return begin + ("" if text[-1] in ".?)" else ".")
