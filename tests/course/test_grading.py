"""Grading a folder: good, empty, broken and endless submissions, each with the points that it deserves."""

import csv
import json
import subprocess
import sys

import nbformat
import pytest

from minigrad.course import grading
from minigrad.course.unit import units
from tests.course.running import ROOT, module, stored

build = module("build", ROOT / "notebooks" / "build.py")
UNIT = units()["00_start"]
MASTER = ROOT / "notebooks" / "masters" / "00_start.py"
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
        "endless": with_cell("while True:\n    pass"), "swallows": swallowing(build.read(MASTER)),
        "cheats": with_cell("from minigrad import course\ncourse.check = lambda *args, **more: print('right')"),
    }
    for student, notebook in submitted.items():
        (folder / student / "unit 0").mkdir(parents=True)
        nbformat.write(notebook, folder / student / "unit 0" / "00_start_exercise.ipynb")
    (folder / "unreadable").mkdir()
    (folder / "unreadable" / "00_start_exercise.ipynb").write_text("{")
    (folder / "unreadable" / "notes.ipynb").write_text(json.dumps({"cells": []}))
    announced = []
    rows = grading.table(grading.grade(folder, seconds=12.0, cell_seconds=1.0, announce=announced.append))
    assert announced == [path for _, path in grading.submissions(folder)]
    return {row[0]: dict(zip(rows[0], row)) for row in rows[1:]}


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


def test_the_command_writes_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(grading, "grade", lambda folder, announce: announce(folder / "ada.ipynb") or [
        grading.Grade("ada", "Ada", "00_start", "gradient_of_a", 1, ""),
        grading.Grade("bob", "", "00_start", "gradient_of_a", 0, "not answered yet")])
    assert grading.main([str(tmp_path)]) == 0
    with (tmp_path / "grades.csv").open(encoding="utf-8", newline="") as file:
        assert [row["gradient_of_a"] for row in csv.DictReader(file)] == ["1", "0"]
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path / 'ada.ipynb'} ...\n")
    assert "ada: 1 of 1\n" in said and "bob: 0 of 1 (no name in the notebook)" in said


def test_a_folder_without_exercises_and_no_folder_are_reported(tmp_path, capsys):
    assert grading.main([str(tmp_path)]) == 1 and "There is no exercise" in capsys.readouterr().err
    assert grading.main(["nowhere"]) == 2 and "usage: python3 course grade" in capsys.readouterr().err


def test_a_process_is_ended_where_the_system_has_no_groups(monkeypatch):
    monkeypatch.delattr(grading.os, "killpg", raising=False)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    grading._end(process)
    assert process.returncode not in (0, None)


def test_memory_has_no_limit_where_the_system_has_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    assert grading._limit_memory() is None
