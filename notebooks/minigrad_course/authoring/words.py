"""All words of the course as text, to compare before and after a change: `python -m minigrad_course.authoring.words`.

For each task: its text, what a right answer gets, and what each known mistake gets, for two students.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import Any

from ..feedback import Feedback
from ..results import Progress
from ..session import SESSION, check
from ..tasks import Task
from ..unit import Unit, parts

STUDENTS = ("", "Ada")
FIELDS = ("points", "minutes", "outcome", "seconds", "strict", "otherwise", "example", "tolerance", "options")


def of_unit(unit: Unit) -> Iterator[str]:
    """The words of a unit, and then those of its tasks.

    >>> next(of_unit(parts()["00_start"]))
    '# 00 · Start: one number, one picture'
    """
    yield f"# {unit.heading}"
    yield f"{unit.question} ({unit.minutes} minutes, after {', '.join(unit.prerequisites) or 'nothing'})"
    yield from [f"{key}: {words}" for key, words in unit.outcomes.items()]
    yield from [" | ".join(each) for each in (*unit.misconceptions, *unit.seeds)]
    for task in unit.tasks.values():
        yield from _of_task(task)


def _of_task(task: type[Task]) -> Iterator[str]:
    """The words of a task.  Known mistakes are sorted: their order and their names are not seen by students."""
    yield f"\n## {task.name} ({', '.join(base.__name__ for base in task.__mro__[1:-1] if _is_kind(base))})"
    yield from [f"{name} = {getattr(task, name)!r}" for name in FIELDS if getattr(task, name, None) is not None]
    yield from [f"advice: {part} -> {hint}" for part, hint in task.advice.items()]
    for student in STUDENTS:
        variant = task(student)
        yield f"\n[{student or 'no name'}] {variant.text()}"
        yield f"given: {sorted(variant.given())}"
        yield f"right: {feedback_on(variant, variant.solution())}"
        yield from sorted([f"{variant.words(known)} <- {_of_mistake(variant, known)}" for known in task.mistakes])


def _is_kind(base: type) -> bool:
    return not base.__module__.startswith("minigrad_course.units.")


def _of_mistake(variant: Task, known: Any) -> str:
    try:
        return feedback_on(variant, variant.wrong(known))
    except Exception as error:  # a common mistake that this right answer cannot have
        return f"{type(error).__name__}: {error}"


def feedback_on(variant: Task, answer: Any) -> str:
    """The printed words on an answer of a student without progress, or those of the refusal."""
    SESSION.progress = Progress()
    SESSION.progress.student = variant.student
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            check(variant.name, answer)
        said = printed.getvalue()
    except Feedback as refused:
        said = str(refused)
    return re.sub(r"line \d+|0x[0-9a-f]+", "...", said).strip()


if __name__ == "__main__":
    for key in sys.argv[1:] or parts():
        print(*of_unit(parts()[key]), sep="\n", end="\n\n")
