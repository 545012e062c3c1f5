"""The student's copies: an update brings what is new and never overwrites work."""

import json

import pytest

from minigrad.course import workspace
from minigrad.course.progress import FILE


def write(path, *sources, outputs=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    ran = {"execution_count": 1, "outputs": list(outputs), "metadata": {"jupyter": {"outputs_hidden": True}}}
    cells = [{"cell_type": "code", "source": source, **ran} for source in sources]
    path.write_text(json.dumps({"cells": cells}))


@pytest.fixture
def course(tmp_path):
    write(tmp_path / "course" / "00_start.ipynb", "x = 1")
    write(tmp_path / "course" / "exercises" / "00_start.ipynb", "def f(): ...")
    (tmp_path / "course" / "build.py").touch()
    return tmp_path / "course"


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "my-course"


def content(path):
    return json.loads(path.read_text())["cells"][0]["source"]


def test_the_first_time_everything_is_copied(course, mine):
    assert workspace.update(course, mine) == ["new: 00_start.ipynb", "new: exercises/00_start.ipynb"]
    assert content(mine / "exercises" / "00_start.ipynb") == "def f(): ..."
    assert (mine / FILE).exists() and not (mine / "build.py").exists()
    assert workspace.update(course, mine) == []


def test_what_cells_show_comes_when_they_are_run(course, mine):
    write(course / "00_start.ipynb", "x = 1", outputs=[1])
    workspace.update(course, mine)
    (cell,) = json.loads((mine / "00_start.ipynb").read_text())["cells"]
    assert cell["outputs"] == [] and cell["execution_count"] is None and cell["metadata"] == {}
    assert content(mine / "00_start.ipynb") == "x = 1"


def test_a_new_unit_comes_and_what_was_written_stays(course, mine):
    workspace.update(course, mine)
    write(mine / "exercises" / "00_start.ipynb", "def f(): return 1")
    write(course / "06_reverse.ipynb", "y = 2")
    assert workspace.update(course, mine) == ["new: 06_reverse.ipynb"]
    assert content(mine / "exercises" / "00_start.ipynb") == "def f(): return 1"


def test_what_was_only_run_is_updated(course, mine):
    workspace.update(course, mine)
    write(mine / "00_start.ipynb", "x = 1", outputs=[1])
    write(course / "00_start.ipynb", "x = 10")
    assert workspace.update(course, mine) == ["updated: 00_start.ipynb"]
    assert content(mine / "00_start.ipynb") == "x = 10"


def test_what_both_changed_is_kept_and_the_new_one_lies_beside_it(course, mine):
    workspace.update(course, mine)
    write(mine / "00_start.ipynb", "x = 5")
    for version in ("x = 10", "x = 11"):
        write(course / "00_start.ipynb", version)
        (said,) = workspace.update(course, mine)
        assert "changed by you and by the course" in said
        assert workspace.update(course, mine) == []
    assert content(mine / "00_start.ipynb") == "x = 5"
    assert content(mine / "00_start (new 2).ipynb") == "x = 10"
    assert content(mine / "00_start (new 3).ipynb") == "x = 11"


def test_a_copy_that_was_deleted_comes_again(course, mine):
    workspace.update(course, mine)
    (mine / "00_start.ipynb").unlink()
    assert workspace.update(course, mine) == ["copied again: 00_start.ipynb"]


def test_without_its_record_nothing_is_overwritten(course, mine):
    workspace.update(course, mine)
    (mine / workspace.RECORD).write_text("{ torn")
    write(mine / "00_start.ipynb", "x = 5")
    workspace.update(course, mine)
    assert content(mine / "00_start.ipynb") == "x = 5"


def test_a_file_that_is_no_notebook_any_more_is_somebodys(course, mine):
    workspace.update(course, mine)
    (mine / "00_start.ipynb").write_text("oops")
    write(course / "00_start.ipynb", "x = 10")
    workspace.update(course, mine)
    assert (mine / "00_start.ipynb").read_text() == "oops"


def test_what_was_done_is_printed(course, mine, capsys):
    assert workspace.main([str(course), str(mine)]) == 0
    assert "Your notebooks are in my-course/:\n  new: 00_start.ipynb" in capsys.readouterr().out
    workspace.main([str(course), str(mine)])
    assert "nothing has changed" in capsys.readouterr().out
