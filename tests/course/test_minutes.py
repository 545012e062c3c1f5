"""The minutes of a unit are those of the rule, no unit is too long, and what is left to "Further" is not lost."""

import dataclasses
import json
import re

import nbformat
import pytest

from minigrad_course.authoring import build, minutes
from minigrad_course.authoring.template import files
from minigrad_course.unit import units
from tests.course.running import ROOT

DRIFT = 5  # minutes that the texts of a unit may differ before the notebooks are built again


def cells(*texts):
    """Cells with code for texts that begin with `>`, and otherwise cells of text."""
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    made = [code(each[1:]) if each[:1] == ">" else text(each) for each in texts]
    for number, cell in enumerate(made):
        cell.id = f"c{number}"
    return made


@pytest.fixture(scope="module")
def counted():
    return {key: minutes.minutes_of(unit) for key, unit in units().items()}


def test_units_say_the_minutes_of_the_rule(counted):
    stale = {key: (units()[key].minutes, each.unit) for key, each in counted.items()
             if abs(units()[key].minutes - each.unit) > DRIFT or abs(units()[key].further - each.further) > 2 * DRIFT}
    assert not stale, "run `python -m minigrad_course.authoring.build`"


def test_no_unit_is_longer_than_two_hours(counted):
    long = {key: each for key, each in counted.items() if each.unit > minutes.LONGEST}
    assert not long, "let a section of the exercise end its heading with {further}, or move a part to a further page"
    assert all(unit.minutes <= minutes.LONGEST for unit in units().values())


def test_the_rule_fits_what_readers_measured():
    """The numbers are those of the units as the readers had them: page (words, pictures, lines in sight), and so on."""
    read = {  # (words, pictures, lines), (words, cells, questions), (words, other cells, minutes of tasks), measured
        "02": ((1063, 33, 35), (964, 21, 10), (538, 1, 68), 135),
        "08": ((822, 30, 98), (758, 24, 11), (599, 3, 99), 170),
        "10": ((1419, 25, 115), (1128, 28, 8), (421, 5, 61), 110),
        "11": ((1549, 27, 242), (857, 22, 9), (679, 4, 79), 150),
        "13": ((1026, 29, 4), (882, 20, 10), (489, 4, 74), 145),
    }
    counted = {
        key: sum(words for words, *_ in (page, demo, exercise)) / minutes.SPEED + page[1] * minutes.PICTURE
        + page[2] * minutes.LINE + (demo[1] + exercise[1]) * minutes.CELL + demo[2] * minutes.QUESTION + exercise[2]
        for key, (page, demo, exercise, _) in read.items()}
    assert abs(sum(counted.values()) / sum(each[-1] for each in read.values()) - 1) < 0.05
    assert all(abs(counted[key] / each[-1] - 1) < 0.2 for key, each in read.items())


def test_more_words_cells_and_tasks_take_longer(counted):
    unit = units()["06_reverse_mode"]
    text = "a word " * 90
    assert minutes._text(cells(text)) == 1
    assert minutes._demo(unit, cells(text, ">x = 1")) == 1.5
    assert minutes._demo(unit, cells('>paths = ...\n\ncourse.check("paths")')) == 2.5
    asked = cells('>course.task("clipped_walk")', '>course.check("clipped_walk")', ">x")
    asked[1].metadata["nbgrader"] = {"grade": True}
    assert minutes._exercise(unit, asked) == unit.tasks["clipped_walk"].minutes + 0.5


def test_minutes_are_written_into_the_texts(tmp_path, monkeypatch):
    unit = dataclasses.replace(units()["00_start"])
    (tmp_path / minutes.TEXTS).write_text(
        'title = "T"\nminutes = 3\nfurther = 4\n'
        "[tasks.gradient_of_a]\nfurther = true\n[tasks.mul_grad]\nminutes = 7\n")
    (tmp_path / build.EXERCISE).write_text(
        '# %%\ncourse.check("gradient_of_a")\n\n'
        '# %% [markdown]\n# ## 1 · A {further}\n\n# %%\ncourse.check("mul_grad")\n')
    folder = build.FOLDERS[unit.key]
    found = minutes.Minutes(10, 20, 12, 13)
    monkeypatch.setattr(minutes, "minutes_of", lambda unit: found)
    monkeypatch.setitem(minutes.FOLDERS, unit.key, tmp_path)
    minutes.write(unit)
    written = (tmp_path / minutes.TEXTS).read_text()
    assert folder != tmp_path and written == (
        'title = "T"\nminutes = 40\nfurther = 15\n'
        "[tasks.gradient_of_a]\n[tasks.mul_grad]\nfurther = true\nminutes = 7\n")
    assert unit.takes == "40 minutes (and 15 for more)"


def test_further_sections_come_last_and_sections_are_counted_again():
    made = build._further_last(cells(
        "# T", "## 1 · A", ">a", "After it.\n\n## 2 · B {further}", ">b", "Of B.\n\n## 3 · C", ">c", "## End", ">d",
    ), "t-further")
    assert [cell.source for cell in made] == [
        "# T", "## 1 · A", "a", "After it.", "## 2 · C", "c", "## End", "d", build.BEYOND, "## 3 · B", "b", "Of B.",
    ]
    assert len({cell.id for cell in made}) == len(made) and made[8].id == "t-further"


def test_without_further_sections_nothing_moves():
    made = build._further_last(cells("# T", "Text.\n\n## 1 · A", ">a"), "t-further")
    assert [cell.source for cell in made] == ["# T", "Text.\n\n## 1 · A", "a"]


@pytest.mark.parametrize("unit", units().values(), ids=lambda unit: unit.key)
def test_no_task_is_lost_and_the_core_shows_most_outcomes(unit):
    stored = json.loads(files(unit.key)["exercise"].read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in stored]
    at = sources.index(build.BEYOND) if build.BEYOND in sources else len(sources)
    core, every = ({name for each in part if (name := build.checked(each))} for part in (sources[:at], sources))
    strict = {name for name, task in unit.tasks.items() if task.strict}
    assert strict == every & strict
    below = {name for name, task in unit.tasks.items() if task.further}
    assert below == strict - core, "a task has `further = true` in the texts if it stands below Further"
    asked = core | {name for name, task in unit.tasks.items() if not task.strict}
    shown = {unit.tasks[name].outcome for name in asked if name in unit.tasks}
    assert shown == set(unit.outcomes), "an outcome is met only below Further"
    assert bool(unit.further) == (at < len(sources))


def test_further_pages_are_linked_from_a_unit():
    lectures = {path: path.read_text(encoding="utf-8") for path in (ROOT / "lectures").glob("[0-9]*.md")}
    for path in (ROOT / "lectures").glob("further_*.md"):
        linked = [each.stem for each, text in lectures.items() if f"({path.stem}.html#" in text]
        back = re.findall(r"\((\d\d_\w+)\.html\)", path.read_text(encoding="utf-8"))
        assert linked and set(back) == set(linked)
