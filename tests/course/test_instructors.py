"""The instructor's kit: plans from the units' declarations, questions with answers apart, commands that exist."""

import dataclasses
import doctest
import re

import pytest

import minigrad as mg
from lectures.site import build_site, instructors
from lectures.site.markup import Lecture, as_page, as_slides
from minigrad_course.museum import MUSEUM
from minigrad_course.unit import parts, units
from tests.course.running import ROOT

LECTURES = ROOT / "lectures"
PAGE = instructors.instructors()
HEADING = r"^## (\d\d) · "


def numbered(name):
    """The texts below each unit's heading, by the unit's number, split at `1. `, `2. ` ..."""
    _, *pairs = re.split(HEADING, (LECTURES / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {int(number): re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]
            for number, text in zip(pairs[::2], pairs[1::2])}


PLANS = [
    instructors.FOURTEEN_WEEKS, instructors.TWELVE_WEEKS, instructors.SIX_WEEKS, instructors.WEEKEND,
    instructors.ONE_DAY,
]


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_has_the_minutes_and_points_of_its_units(plan):
    table = instructors.plan("week", plan)
    planned = [parts()[key] for keys in plan for key in keys if key in parts()]
    sums = [sum(each) for each in zip(*[(unit.minutes, unit.further, unit.points) for unit in planned])]
    assert table.endswith("| | together | {} | {} | {} |".format(*sums))
    assert all(f"[{unit.heading}]({unit.key}.html)" in table for unit in planned)


def test_the_long_plan_has_every_unit_once():
    planned = [key for keys in instructors.FOURTEEN_WEEKS for key in keys]
    assert set(parts()) <= set(planned) and len(planned) == len(set(planned))
    assert len(instructors.FOURTEEN_WEEKS) == 14 and len(instructors.SIX_WEEKS) == 6


def test_the_syllabus_has_each_unit_in_twelve_weeks_and_five_in_a_weekend():
    assert [key for keys in instructors.TWELVE_WEEKS for key in keys] == list(units())
    assert [key[:2] for keys in instructors.WEEKEND for key in keys] == ["00", "04", "06", "10", "11"]
    text = instructors.syllabus()
    assert "{{" not in text and instructors.plan("week", instructors.TWELVE_WEEKS) in text
    read_before = set(re.findall(r"\((\w+)\.html\)", instructors.without(instructors.WEEKEND)))
    planned = {key for keys in instructors.WEEKEND for key in keys}
    assert read_before == {needed for key in planned for needed in units()[key].prerequisites} - planned


def test_a_plan_follows_a_change_of_a_unit_and_leaves_out_missing_units():
    longer = dataclasses.replace(units()["00_start"], minutes=1000)
    table = instructors.plan("part", (("00_start", "98_nowhere"), ("97_nothing",)), {"00_start": longer})
    assert "| 1000 |" in table and "nowhere" not in table and "| 2 |" not in table


def test_every_belief_is_listed_with_its_source():
    for unit in units().values():
        for each in unit.misconceptions:
            assert each.belief.replace("|", "\\|") in PAGE and f"`{each.met_in}`" in PAGE
            assert all(address in PAGE for address in re.findall(r"https://[^\s,;)]+[^\s,;:).]", each.source))
    assert all(task.thread.address in PAGE for task in MUSEUM.tasks.values())


def test_no_gap_of_the_page_is_left():
    assert "{{" not in PAGE and "<table>" in as_page(Lecture("instructors", PAGE))


def test_each_unit_has_three_questions_and_each_question_an_answer():
    questions, answers = numbered("exam.md"), numbered("exam_answers.md")
    assert {unit.number for unit in units().values()} <= questions.keys()
    assert all(len(asked) >= 3 for asked in questions.values())
    assert {number: len(asked) for number, asked in questions.items()} == {
        number: len(given) for number, given in answers.items()}


@pytest.mark.slow
def test_the_answers_that_are_code_are_right():
    text = (LECTURES / "exam_answers.md").read_text(encoding="utf-8")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
        runner.run(parser.get_doctest(code, {"mg": mg}, f"answer {number}", None, 0))
    assert runner.tries > 60 and runner.failures == 0


def test_no_answer_is_on_the_site():
    pages = build_site.reference()
    assert "exam_answers" not in pages and "exam" in pages
    answers = [given.splitlines()[0] for each in numbered("exam_answers.md").values() for given in each]
    for text in pages.values():
        assert not [line for line in answers if len(line) > 30 and line in text]


def test_commands_of_the_page_exist():
    recipe = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = PAGE[PAGE.index("## Add a unit") : PAGE.index("## Tag a term")]
    for line in re.findall(r"^python3 course .*$", section, re.MULTILINE):
        assert line.split("    #")[0] in recipe
    launcher = (ROOT / "course").read_text(encoding="utf-8")
    for command in set(re.findall(r"python3 course (\w+)", PAGE)):
        assert f'"{command}": ' in launcher
    for path in re.findall(r"notebooks/minigrad_course/[\w/]+\.py", PAGE):
        assert (ROOT / path).exists()


@pytest.mark.slow
def test_the_dry_run_names_the_chapters_and_slides_of_its_deck():
    lecture = Lecture("04_graphs", (LECTURES / "04_graphs.md").read_text(encoding="utf-8"), prose=True)
    slides = as_slides(lecture).count("<section")
    ends = [first for _, first in lecture.chapters[1:]] + [slides]
    expected = [(name, first + 1, end) for (name, first), end in zip(lecture.chapters, ends)]
    rows = re.findall(r"^ *\| (?:opening, )?([\w ]+) \| (\d+)(?:–(\d+))? \| \d+ \| \d+ \|$", PAGE, re.MULTILINE)
    found = [(name, int(first), int(last or first)) for name, first, last in rows]
    assert found == [(expected[0][0], 1, expected[0][2]), *expected[1:]]
    assert f"has {slides} slides" in PAGE and f"| {slides} pages, one for each slide" in PAGE


def test_the_dry_run_names_tasks_without_points():
    # The table of grades would leave them out, so an instructor would have to read which ones they are.
    tasks = units()["04_graphs"].tasks
    section = PAGE[PAGE.index("## A dry run") : PAGE.index("## Slides and pages")]
    without = [name for name, task in tasks.items() if task.strict and not task.points]
    assert all(f"`{name}`" in section for name in without), without
    assert f"{units()['04_graphs'].minutes} minutes: unit 04 takes a student as long" in section
