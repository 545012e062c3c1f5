"""The form of a unit: `python -m minigrad_course.authoring.template NN name` begins one; `problems` checks each.

A unit is a folder, `units/uNN_name/`, with all its sources but the lecture: its texts (`texts.en.toml`), the tasks that
compute something, its two notebooks as Python files, and answers of newcomers.  The lecture is `lectures/NN_name.md`
with the pictures in `lectures/pictures/uNN_name.py`.  `minigrad_course.authoring.build` makes the notebooks.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from ..tasks import FunctionTask, Task
from ..texts import texts_in
from ..unit import Unit, units
from .build import COURSE, DEMO, EXERCISE, NOTEBOOKS

ROOT = NOTEBOOKS.parent

LEAST_MISTAKES = 2  # that a function's checks know by name
SHORTEST = 15  # characters of a sentence that says something


def files(key: str) -> dict[str, Path]:
    """The files of a unit by what they are."""
    folder = COURSE / "units" / f"u{key}"
    return {
        "lecture": ROOT / "lectures" / f"{key}.md",
        "demo source": folder / DEMO,
        "exercise source": folder / EXERCISE,
        "demo": NOTEBOOKS / f"{key}.ipynb",
        "exercise": NOTEBOOKS / "exercises" / f"{key}_exercise.ipynb",
    }


def problems(unit: Unit) -> list[str]:
    """What keeps a unit from being one, in words; nothing where it is as it should be."""
    missing = [f"{what} is missing: {path.name}" for what, path in files(unit.key).items() if not path.exists()]
    if missing:
        return missing
    there = files(unit.key)
    demo, exercise = (json.loads(there[each].read_text(encoding="utf-8"))["cells"] for each in ("demo", "exercise"))
    said = (
        _about(unit), _references(unit, demo + exercise), _questions(unit, demo), _tasks(unit, exercise),
        _lecture(unit, there["lecture"]),
    )
    return [problem for part in said for problem in part]


def _about(unit: Unit) -> list[str]:
    """What the unit says of itself."""
    found = []
    if not re.search(r"\?$", unit.question.strip()):
        found.append("its question does not end in a question mark")
    for key, outcome in unit.outcomes.items():
        if len(outcome) < SHORTEST:
            found.append(f"outcome {key!r} says too little")
        if not any(task.outcome == key for task in unit.tasks.values()):
            found.append(f"no task shows outcome {key!r}")
    taken = sum(task.minutes for task in unit.tasks.values())
    if taken > unit.minutes:
        found.append(f"its tasks take {taken} minutes, and the unit only {unit.minutes}")
    written = unit.texts.tasks if unit.texts is not None else {}
    found += [f"task {name} of the texts has neither a kind nor a class" for name in written if name not in unit.tasks]
    if not unit.misconceptions:
        found.append("it starts from no misconception")
    earlier = [key for key, other in units().items() if other.number < unit.number]
    # A unit that does not exist yet cannot be a prerequisite: the unit itself says what it needs.
    found += [f"prerequisite {key} is not an earlier unit" for key in unit.prerequisites if key not in earlier]
    return found


def _references(unit: Unit, cells: list[Any]) -> list[str]:
    """Whether the tasks and cells that it points to are there, and are something to do."""
    code = {cell["id"] for cell in cells if cell["cell_type"] == "code"}
    found = []
    for what, met_in in (
        *[(f"misconception {each.belief[:30]!r}", each.met_in) for each in unit.misconceptions],
        *[(f"seed {each.idea[:30]!r}", each.met_in) for each in unit.seeds],
    ):
        if met_in not in unit.tasks and met_in not in code:
            found.append(f"{what} is met in {met_in!r}, which is neither a task nor a code cell")
    for each in unit.misconceptions:
        if len(each.source) < SHORTEST:
            found.append(f"misconception {each.belief[:30]!r} has no source")
    ids = [cell["id"] for cell in cells]
    found += [f"two cells are called {one!r}" for one in sorted({one for one in ids if ids.count(one) > 1})]
    return found


def _questions(unit: Unit, demo: list[Any]) -> list[str]:
    """Whether each question, which has no points, is in the demo: an answer to fill in, and its check below."""
    found = []
    sources = ["".join(cell["source"]) for cell in demo if cell["cell_type"] == "code"]
    for name, task in unit.tasks.items():
        if not task.strict:
            asked = re.compile(rf'{name} = [^=]*\.\.\.[^=]*\n\ncourse\.check\("{name}"\)')
            if not any(map(asked.fullmatch, sources)):
                found.append(f"{name}: the demo has no cell that asks it")
            found += [f"{name}: {words}" for words in _task(task, unit)]
    return found


def _tasks(unit: Unit, exercise: list[Any]) -> list[str]:
    """Whether each other task is in the exercise, with its points, and is worth the name."""
    grading = {}
    for cell in exercise:
        about = cell["metadata"].get("nbgrader", {})
        if about:
            grading[about["grade_id"]] = (about, "".join(cell["source"]))
    found = []
    for name, task in unit.tasks.items():
        if not task.strict:
            continue
        solution, (check, source) = grading.get(name), grading.get(f"check-{name.replace('_', '-')}", ({}, ""))
        if solution is None or not solution[0].get("solution"):
            found.append(f"{name}: the exercise has no solution cell with that grade_id")
        if not check.get("grade") or f'course.check("{name}")' not in source:
            found.append(f"{name}: the exercise has no cell that checks it")
        elif check.get("points") != task.points:
            found.append(f"{name}: {task.points} points, and {check.get('points')} in the exercise")
        found += [f"{name}: {words}" for words in _task(task, unit)]
    return found


def _task(task: type[Task], unit: Unit) -> list[str]:
    found = []
    if len(task().text()) < SHORTEST:
        found.append("says too little of what to do")
    if task.outcome not in unit.outcomes:
        found.append(f"shows {task.outcome!r}, which is not an outcome of the unit")
    if issubclass(task, FunctionTask) and len(task.mistakes) < LEAST_MISTAKES:
        found.append(f"knows fewer than {LEAST_MISTAKES} mistakes")
    texts = {task(student).text() for student in ("", "Ada", "Grace", "Edsger", "Barbara", "Alan")}
    if task.points and len(texts) == 1 and not issubclass(task, FunctionTask):  # each writes a program of one's own
        found.append("gives points and is the same for everybody")
    return found


def _lecture(unit: Unit, path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    found = []
    if not text.startswith(f"# {unit.number:02} · {unit.title}\n"):
        found.append(f"the lecture does not begin with '# {unit.number:02} · {unit.title}'")
    if "::: notes" not in text:
        found.append("the lecture has no speaker notes")
    if "```try\n" not in text:
        found.append("the lecture has no cell that a reader can change and run")
    return found


def untranslated(unit: Unit) -> list[str]:
    """What the translations of a unit's texts lack, a line for each."""
    folder = files(unit.key)["demo source"].parent
    languages = [path.name.split(".")[1] for path in sorted(folder.glob("texts.*.toml"))]
    found = [texts_in(folder, language) for language in languages]
    return [f"{texts.path.name} lacks {key}" for texts in found if texts is not None for key in texts.missing]


# ---- a new one -----------------------------------------------------------------------------------------------------

PACKAGE = '''"""Unit {number:02}: ..."""

from . import exercise  # which adds its tasks to the unit
from .about import UNIT
'''
ABOUT = '''"""Unit {number:02}: its question, outcomes, misconceptions and seeds are in `texts.en.toml`."""

from __future__ import annotations

from ...unit import unit

UNIT = unit(__file__, __name__)
'''
TEXTS = '''# What unit {number:02} says: see "Add a unit" in CONTRIBUTING.md.
# A translation is a copy, such as texts.de.toml.
title = "{title}"
question = "...?"
minutes = 60
prerequisites = ["00_start"]

# What a student can do afterwards; tasks name the keys.
[outcomes]
first = "..."

[[misconceptions]]
belief = "..."
source = "https://..."
met_in = "first_guess"

[[seeds]]
idea = "002: ..."
met_in = "first_guess"

[tasks.first_guess]
kind = "Prediction"
outcome = "first"
text = "How many ...?"
example = "10"
right = 3
wrong = [
    [2, "..."],
    [4, "..."],
]
why = "..."
otherwise = "..."
'''
TASKS = '''"""Unit {number:02}: what the student writes."""

from __future__ import annotations

from .about import UNIT
'''
HEADER = """# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # {number:02} · {title}{what}
"""
SETUP = """
# %% name="setup"
import minigrad as mg
import minigrad_course as course

course.begin("{key}")
"""
BEGIN = """
# %% name="name"
student = ""

# %% name="begin"
import minigrad as mg
import minigrad_course as course

course.begin("{key}", student)
"""
LECTURE = """# {number:02} · {title}

![...](cover)

::: notes
...
:::

## The question

![...](cover)

::: reveal ...?
...

```try
x = mg.arange(3)
print(x + x)
```
:::

## Recap

![...](cover)
![...](cover)
![...](cover)
"""
NEWCOMERS = '''"""Answers of real newcomers to unit {number:02}: each gets a hint that fits."""

import pytest

from tests.course.running import said_to

ANSWERS = {{  # where it comes from -> the task, the answer, words of the hint
}}


@pytest.mark.parametrize("who", ANSWERS)
def test_hints(who):
    task, answer, words = ANSWERS[who]
    assert words in said_to(answer, task)
'''
PICTURES = '''"""The pictures of unit {number:02}."""

from __future__ import annotations

from lectures.site.drawn import Sketch


def cover() -> Sketch:
    """..."""
    sketch = Sketch(800, 250)
    x, y = sketch.row(125, ["x", "y"])
    sketch.arrow(x, y, "?")
    return sketch
'''


def begin(number: int, name: str) -> None:
    """Write the files that a unit begins with, where there are none."""
    key, title = f"{number:02}_{name}", name.replace("_", " ").capitalize()
    there = files(key)
    folder = there["demo source"].parent
    folder.mkdir(exist_ok=True)
    texts = {
        folder / "__init__.py": PACKAGE,
        folder / "about.py": ABOUT,
        folder / "texts.en.toml": TEXTS,
        folder / "exercise.py": TASKS,
        folder / "test_newcomers.py": NEWCOMERS,
        there["lecture"]: LECTURE,
        there["lecture"].parent / "pictures" / f"u{key}.py": PICTURES,
        there["demo source"]: HEADER.replace("{what}", "") + SETUP,
        there["exercise source"]: HEADER.replace("{what}", ": your turn") + BEGIN,
    }
    for path, text in texts.items():
        if path.exists():
            print(f"{path.relative_to(ROOT)} is there already")
        else:
            path.write_text(text.format(number=number, name=name, title=title, key=key), encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        begin(int(sys.argv[1]), sys.argv[2])
    else:
        for known in units().values():
            said = [*(problems(known) or ["is as it should be"]), *untranslated(known)]
            print(known.key, *said, sep="\n    ")
