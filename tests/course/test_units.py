"""Every unit has its form; every task takes right answers, refuses known mistakes with a hint, and knows a stub."""

import dataclasses
import re

import pytest

from minigrad import course
from minigrad.course.feedback import Feedback, NotWritten, Wrong
from minigrad.course.results import Progress
from minigrad.course.session import SESSION
from minigrad.course.unit import units
from tests.course.running import ROOT, module, run_notebook, stored

template = module("template", ROOT / "notebooks" / "template.py")
build = module("build", ROOT / "notebooks" / "build.py")
UNITS = list(units().values())
TASKS = [task for unit in UNITS for task in unit.tasks.values()]
STUDENTS = ["", "Ada", "Grace Hopper", "李"]


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Nobody's progress but the test's."""
    monkeypatch.setattr(SESSION, "progress", Progress())


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_a_unit_has_its_form(unit):
    assert template.problems(unit) == []


def test_no_two_tasks_have_one_name():
    names = [task.name for task in TASKS]
    assert len(names) == len(set(names)) and len({unit.number for unit in UNITS}) == len(UNITS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"question": "Guess."}, "question mark"),
        ({"outcomes": {"meaning": "..."}}, "too little"),
        ({"outcomes": {"meaning": "say what a gradient is"}}, "is not an outcome of the unit"),
        ({"minutes": 3}, "the unit only 3"),
        ({"misconceptions": ()}, "no misconception"),
        ({"prerequisites": ("07_forward",)}, "is not an earlier unit"),
        ({"name": "nowhere"}, "lecture is missing: 00_nowhere.md"),
        ({"title": "Finish"}, "does not begin with"),
    ],
)
def test_what_is_wrong_with_a_unit_is_said(change, says):
    unit = dataclasses.replace(units()["00_start"], **change)
    assert any(says in problem for problem in template.problems(unit))


def test_a_reference_to_nowhere_is_said():
    unit = units()["00_start"]
    moved = [each._replace(met_in="nowhere") for each in unit.seeds[:1]]
    changed = dataclasses.replace(unit, seeds=tuple(moved))
    assert any("'nowhere', which is neither" in problem for problem in template.problems(changed))


# ---- tasks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("student", STUDENTS)
def test_the_solution_is_right_for_everybody(task, student, capsys):
    SESSION.progress.student = student
    course.check(task.name, task(student).solution(), hidden=True)
    assert f"✓ {task.name}: right" in capsys.readouterr().out
    assert SESSION.progress.passed(task.name)


@pytest.mark.parametrize("student", ["", "Ada"])
@pytest.mark.parametrize(
    ("task", "known"), [(task, known) for task in TASKS for known in task.mistakes], ids=lambda x: getattr(x, "name", x)
)
def test_each_known_mistake_gets_its_own_hint(task, known, student, capsys):
    SESSION.progress.student = student
    answer = task(student).wrong(known)
    if not task.strict:
        course.check(task.name, answer)
        assert known.hint in capsys.readouterr().out
        return
    with pytest.raises(Wrong) as refused:
        course.check(task.name, answer)
    assert refused.value.hint == known.hint
    assert not SESSION.progress.passed(task.name)


# ---- notebooks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_the_student_copy_is_the_one_that_the_master_makes(unit):
    there = template.files(unit.key)
    made = build.exercise(there["master"])
    assert there["exercise"].read_bytes() == made.encode(), "run: python -m notebooks.build"
    for mark in ("### BEGIN", "### END", "HIDDEN"):
        assert mark not in made


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_the_master_passes_its_own_checks(unit):
    errors, here = run_notebook(build.read(template.files(unit.key)["master"]))
    assert errors == {}
    assert all(SESSION.progress.passed(name) for name, task in unit.tasks.items() if task.strict), here.said


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.key)
def test_the_student_copy_fails_kindly(unit):
    errors, _ = run_notebook(stored(template.files(unit.key)["exercise"]))
    name = unit.key.partition("_")[2]
    for task in [name for name, task in unit.tasks.items() if task.strict]:
        error = errors.pop(f"{name}-check-{task.replace('_', '-')}")
        assert isinstance(error, NotWritten) and re.search(rf"○ {task}: not (written|answered) yet", str(error))
    for error in errors.values():  # the stubs of values, and cells that use what is not written
        assert isinstance(error, Feedback | NotImplementedError)


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("[sm]*/[0-9]*.py")), ids=lambda p: p.parent.name)
def test_sources_are_as_jupytext_writes_them(path):
    """So that a change made in JupyterLab shows as a change of these lines, and of no other."""
    text = path.read_text(encoding="utf-8")
    again = build.jupytext.writes(build.jupytext.reads(text, "py:percent"), "py:percent")
    cells = again[again.index("# %%") :]
    assert text.endswith(cells)
