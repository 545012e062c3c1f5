"""Grading a folder: good, empty, broken and endless submissions, each with the points that it deserves."""

import csv
import json

import nbformat
import numpy as np
import pytest

import minigrad as mg
from minigrad_course import grading
from minigrad_course.authoring import build
from minigrad_course.unit import units
from tests.course.running import ROOT, stored

UNIT = units()["00_start"]
MASTER = build.source_of("00_start", build.EXERCISE)
STUB = ROOT / "notebooks" / "exercises" / "00_start_exercise.ipynb"


def without_checks(notebook):
    notebook.cells = [cell for cell in notebook.cells if not cell.metadata.get("nbgrader", {}).get("grade")]
    return notebook


def with_cell(source):
    """The right answers, after a cell of the student's own."""
    notebook = build.read(MASTER)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(source, id="own"))
    return notebook


def swallowing(notebook):
    """The last answer never ends, and catches every exception."""
    task = [name for name, task in UNIT.tasks.items() if task.points][-1]
    cell = next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == task)
    cell.source = f"import time\n{task} = None\nwhile True:\n    try:\n        time.sleep(1)\n" \
                  "    except BaseException:\n        pass"
    return notebook


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The table of a folder with all kinds of submissions, by student, and the output."""
    folder = tmp_path_factory.mktemp("submitted")
    submitted = {
        "good": build.read(MASTER), "stub": stored(STUB), "bare": without_checks(with_cell("this is not Python")),
        "leaves": with_cell("import os\nos._exit(1)"),
        "endless": with_cell("import time\nwhile True:\n    time.sleep(1)"),
        "cheats": with_cell("import minigrad_course as course\ncourse.check = lambda *args, **more: print('right')"),
    }
    for student, notebook in submitted.items():
        (folder / student / "unit 0").mkdir(parents=True)
        nbformat.write(notebook, folder / student / "unit 0" / "00_start_exercise.ipynb")
    (folder / "unreadable").mkdir()
    (folder / "unreadable" / "00_start_exercise.ipynb").write_text("{")
    (folder / "unreadable" / "notes.ipynb").write_text(json.dumps({"cells": []}))
    announced = []
    grades = grading.grade(folder, cell_seconds=5.0, announce=announced.append)
    assert announced == [path for _, path in grading.submissions(folder)]
    apart = tmp_path_factory.mktemp("swallows")
    nbformat.write(swallowing(build.read(MASTER)), apart / "swallows.ipynb")
    rows = grading.table(grades + grading.grade(apart, seconds=12.0, cell_seconds=1.0))
    return {row[0]: dict(zip(rows[0], row)) for row in rows[1:]}


@pytest.mark.slow
def test_right_answers_get_all_points_with_and_without_check_cells(graded):
    for student in ("good", "bare", "cheats"):
        assert graded[student]["sum"] == graded[student]["of"] == str(UNIT.points), graded[student]
        assert graded[student]["notes"] == ""


def test_a_stub_gets_no_points_and_says_why(graded):
    assert graded["stub"]["sum"] == "0"
    assert graded["stub"]["notes"].count("yet") == len([task for task in UNIT.tasks.values() if task.points])


def test_an_endless_cell_is_stopped_and_the_others_count(graded):
    assert graded["endless"]["sum"] == str(UNIT.points)


def test_a_notebook_that_cannot_be_stopped_is_ended_and_keeps_the_points_before(graded):
    assert "not done after 12 seconds" in graded["swallows"]["notes"]
    assert int(graded["swallows"]["sum"]) < UNIT.points


def test_a_process_that_ends_and_a_file_that_is_not_a_notebook_are_named(graded):
    assert graded["leaves"]["sum"] == "0" and "its process ended early" in graded["leaves"]["notes"]
    assert graded["unreadable"]["sum"] == "0" and "cannot be read" in graded["unreadable"]["notes"]


@pytest.mark.slow
def test_the_command_writes_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(grading, "grade", lambda folder, announce, sandbox: announce(folder / "ada.ipynb") or [
        grading.Grade("ada", "Ada", "00_start", "gradient_of_a", 1, ""),
        grading.Grade("bob", "", "00_start", "gradient_of_a", 0, "not answered yet")])
    assert grading.main([str(tmp_path)]) == 0
    with (tmp_path / "grades.csv").open(encoding="utf-8", newline="") as file:
        assert [row["gradient_of_a"] for row in csv.DictReader(file)] == ["1", "0"]
    said = capsys.readouterr().out
    assert f"{tmp_path / 'ada.ipynb'} ...\n" in said
    assert "ada: 1 of 1\n" in said and "bob: 0 of 1 (no name in the notebook)" in said


@pytest.mark.slow
def test_a_folder_without_exercises_and_no_folder_are_reported(tmp_path, capsys):
    assert grading.main([str(tmp_path)]) == 1 and "There is no exercise" in capsys.readouterr().err
    assert grading.main(["nowhere"]) == 2 and "usage: python3 course grade" in capsys.readouterr().err


def test_the_command_says_what_a_submission_can_do_and_writes_names_harmlessly(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(grading, "sandbox_for", lambda folder: "")
    monkeypatch.setattr(grading, "grade", lambda folder, announce, sandbox: announce(folder / "a\x1b\udcff") or [
        grading.Grade("=1\n\udcff", "-2", "00_start", "gradient_of_a", 0, "\x1b[31m")])
    assert grading.main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("There is no sandbox here: a submission can") and "\x1b" not in said
    assert f"{tmp_path}/a\\x1b\\udcff ...\n" in said
    with (tmp_path / "grades.csv").open(encoding="utf-8", newline="") as file:
        row = list(csv.reader(file))[1]
    assert row[:2] == [r"'=1\n\udcff", "'-2"] and row[-1] == r"gradient_of_a: \x1b[31m"


def test_submissions_are_found_in_folders_but_not_in_hidden_or_very_deep_ones(tmp_path):
    deep = tmp_path.joinpath(*["d"] * (grading.DEEPEST + 1))
    for place in (tmp_path, tmp_path / "ada" / "unit 0", tmp_path / ".hidden", deep):
        place.mkdir(parents=True, exist_ok=True)
        for name in ("a.ipynb", ".b.ipynb", "c.txt"):
            (place / name).touch()
    assert [student for student, _ in grading.submissions(tmp_path)] == ["a", "ada"]


def test_values_of_a_process_that_ended_early_are_checked_with_the_name_of_the_notebook(tmp_path, monkeypatch):
    orders = []

    def run(module, order, **limits):
        orders.append(order)
        if "values" in order:
            return [{"task": task, "said": ""} for task in order["values"]], "its process ended early"
        said = [{"task": "mixed_grad", "said": "", "name": "Ada"}, {"task": [1], "said": {}}, {"task": "gradient_of_a"}]
        return [*said, {"task": "gradient_of_a", "value": "1", "name": "Ada", "said": ""}], "not done after 1 seconds"

    monkeypatch.setattr(grading, "run_apart", run)
    nbformat.write(build.read(MASTER), tmp_path / "00_start_exercise.ipynb")
    grades = grading.grade(tmp_path, sandbox="")
    assert [(grade.name, grade.points) for grade in grades] == [("Ada", 1), ("Ada", 2)]
    assert orders[1] == {"unit": "00_start", "student": "Ada", "values": {"gradient_of_a": "1"}}


def test_that_a_value_is_right_counts_only_from_the_second_process(tmp_path, monkeypatch):
    forged = [{"task": task, "said": "", "name": ""} for task in ("gradient_of_a", "mixed_grad")]
    monkeypatch.setattr(grading, "run_apart", lambda module, order, **limits: (forged, "its process ended early"))
    nbformat.write(build.read(MASTER), tmp_path / "00_start_exercise.ipynb")
    assert [grade.points for grade in grading.grade(tmp_path, sandbox="")] == [0, 2]


@pytest.mark.parametrize("value", [
    1, -0.0, float("inf"), "a", None, True, [], (1, [2.0, ("b",)]), {"a": (1, 2), 3: {4}}, {"tuple": [1]}])
def test_values_are_handed_over_with_their_kinds(value):
    assert repr(grading.unpacked(grading.packed(value))) == repr(value)


@pytest.mark.parametrize(("value", "plain"), [
    (..., None), ((1, ...), (1, None)), (range(3), [0, 1, 2]), (np.float32(0.5), 0.5), (mg.asarray([[1.0]]), [[1.0]]),
    ({"a": np.arange(2)}, {"a": [0, 1]})])
def test_arrays_and_dots_are_handed_over_as_plain_values(value, plain):
    assert repr(grading.unpacked(grading.packed(value))) == repr(plain)


def test_other_values_are_not_handed_over():
    for value in (object(), print, 1j, b"a", "a" * grading.LONGEST_VALUE, 10**5000):
        with pytest.raises((TypeError, ValueError)):
            grading.packed(value)


@pytest.mark.slow
def test_every_right_value_of_the_course_can_be_handed_over():
    for unit in units().values():
        for task in unit.tasks.values():
            if task.points and task.kind == "value":
                given = task("Ada").solution()
                assert task("Ada").check(grading.unpacked(grading.packed(given))) == task("Ada").check(given)
