"""The student's copies of notebooks: an update adds new files and never overwrites work."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from minigrad_course import workspace
from minigrad_course.results import FILE
from tests.course.running import ROOT


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


def test_first_update_copies_all_notebooks(course, mine):
    assert workspace.update(course, mine) == ["new: 00_start.ipynb", "new: exercises/00_start.ipynb"]
    assert content(mine / "exercises" / "00_start.ipynb") == "def f(): ..."
    assert (mine / FILE).exists() and not (mine / "build.py").exists()
    assert workspace.update(course, mine) == []


def test_copies_have_no_outputs(course, mine):
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


def test_update_replaces_a_notebook_that_was_only_run(course, mine):
    workspace.update(course, mine)
    write(mine / "00_start.ipynb", "x = 1", outputs=[1])
    write(course / "00_start.ipynb", "x = 10")
    assert workspace.update(course, mine) == ["updated: 00_start.ipynb"]
    assert content(mine / "00_start.ipynb") == "x = 10"


def test_update_puts_the_new_version_beside_changed_work(course, mine):
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


def test_update_without_its_record_overwrites_nothing(course, mine):
    workspace.update(course, mine)
    (mine / workspace.RECORD).write_text("{ torn")
    write(mine / "00_start.ipynb", "x = 5")
    workspace.update(course, mine)
    assert content(mine / "00_start.ipynb") == "x = 5"


def test_update_keeps_a_file_that_is_not_a_notebook_any_more(course, mine):
    workspace.update(course, mine)
    (mine / "00_start.ipynb").write_text("oops")
    write(course / "00_start.ipynb", "x = 10")
    workspace.update(course, mine)
    assert (mine / "00_start.ipynb").read_text() == "oops"


def test_update_prints_a_line_for_each_notebook(course, mine, capsys):
    assert workspace.main([str(course), str(mine)]) == 0
    assert "Your notebooks are in my-course/:\n  new: 00_start.ipynb" in capsys.readouterr().out
    workspace.main([str(course), str(mine)])
    assert "nothing has changed" in capsys.readouterr().out


# ---- obstacles -------------------------------------------------------------------------------------------------------

BOTH = {"00_start.ipynb", "exercises/00_start.ipynb"}


def brought(mine):
    return {name for name in BOTH if (mine / name).is_file()}


@pytest.mark.parametrize(
    ("in_the_way", "make", "words"),
    [
        ("00_start.ipynb", "folder", "left alone: 00_start.ipynb: this is a folder; give the folder another name"),
        ("00_start.ipynb", "link", "left alone: 00_start.ipynb: this is a link to .*gone/00, which does not exist"),
        ("exercises", "file", "left alone: exercises/00_start.ipynb: exercises is not a folder; give it another name"),
        ("exercises", "link", "left alone: exercises/00_start.ipynb: exercises is not a folder; give it another name"),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_update_leaves_what_is_in_the_way_and_names_it(course, mine, tmp_path, in_the_way, make, words, before):
    if before:
        workspace.update(course, mine)
        (mine / in_the_way).rename(tmp_path / "away")
    mine.mkdir(exist_ok=True)
    place(mine / in_the_way, make, tmp_path)
    said = "\n".join(workspace.update(course, mine))
    assert re.search(words, said)
    assert len(brought(mine)) == 1 and not (tmp_path / "gone").exists()
    assert (mine / in_the_way).is_symlink() == (make == "link")


def place(path, kind, tmp_path):
    """Put an obstacle in the place of a file or a folder of the workspace."""
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.touch()
    else:
        path.symlink_to(tmp_path / "gone" / "00")


@pytest.mark.parametrize("make", ["folder", "link"])
def test_progress_that_cannot_be_kept_is_reported_and_notebooks_are_copied(course, mine, tmp_path, make):
    mine.mkdir()
    place(mine / FILE, make, tmp_path)
    said = workspace.update(course, mine)
    assert "progress cannot be kept: this is a " in said[0] and brought(mine) == BOTH


@pytest.mark.parametrize("make", ["file", "link"])
def test_workspace_that_cannot_be_made_is_an_error(course, mine, tmp_path, capsys, make):
    place(mine, make, tmp_path)
    assert workspace.main([str(course), str(mine)]) == 1
    assert "Your notebooks cannot be in " in capsys.readouterr().err


def test_a_link_to_a_notebook_elsewhere_stays_one(course, mine, tmp_path):
    workspace.update(course, mine)
    (mine / "00_start.ipynb").rename(tmp_path / "elsewhere.ipynb")
    (mine / "00_start.ipynb").symlink_to(tmp_path / "elsewhere.ipynb")
    write(course / "00_start.ipynb", "x = 10")
    assert workspace.update(course, mine) == ["updated: 00_start.ipynb"]
    assert (mine / "00_start.ipynb").is_symlink() and content(tmp_path / "elsewhere.ipynb") == "x = 10"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_update_that_is_killed_damages_nothing(course, mine):
    workspace.update(course, mine)
    write(course / "00_start.ipynb", "x = 10")
    before = (mine / "00_start.ipynb").read_bytes()
    code = """
import os, sys
from minigrad.support import files
from minigrad_course import workspace
files.os.fsync = lambda _: os.kill(os.getpid(), 9)
workspace.main(sys.argv[1:])
"""
    command = [sys.executable, "-c", code, str(course), str(mine)]
    assert subprocess.run(command, cwd=ROOT).returncode == -signal.SIGKILL
    assert (mine / "00_start.ipynb").read_bytes() == before
    assert workspace.update(course, mine) == ["updated: 00_start.ipynb"]
    assert not list(mine.glob(".*.part"))


# ---- the content of notebooks ----------------------------------------------------------------------------------------


def change(path, **fields):
    """Change fields of the first cell, or of the notebook if cells do not have these fields."""
    notebook = json.loads(path.read_text())
    of_notebook = {key: value for key, value in fields.items() if key in ("metadata", "nbformat_minor")}
    notebook |= of_notebook
    notebook["cells"][0] |= {key: value for key, value in fields.items() if key not in of_notebook}
    path.write_text(json.dumps(notebook))


@pytest.mark.parametrize(
    "fields",
    [
        {"attachments": {"drawing.png": {"image/png": "aGVsbG8="}}},
        {"cell_type": "raw"},
        {"source": ["x = 1", "\n", "# mine"]},
    ],
)
def test_update_overwrites_no_kind_of_work(course, mine, fields):
    workspace.update(course, mine)
    change(mine / "00_start.ipynb", **fields)
    mine_before = (mine / "00_start.ipynb").read_bytes()
    write(course / "00_start.ipynb", "x = 10")
    (said,) = workspace.update(course, mine)
    assert "changed by you and by the course" in said
    assert (mine / "00_start.ipynb").read_bytes() == mine_before


def test_changed_attachment_of_the_same_name_counts_as_work(course, mine):
    change(course / "00_start.ipynb", attachments={"a.png": {"image/png": "b25l"}})
    workspace.update(course, mine)
    assert json.loads((mine / "00_start.ipynb").read_text())["cells"][0]["attachments"]["a.png"]
    change(mine / "00_start.ipynb", attachments={"a.png": {"image/png": "dHdv"}})
    change(course / "00_start.ipynb", source="x = 10")
    (said,) = workspace.update(course, mine)
    assert "changed by you" in said


@pytest.mark.parametrize(
    "fields",
    [
        {"source": ["x = 1\r\n"]},
        {"id": "another", "metadata": {"language_info": {"version": "9"}}, "nbformat_minor": 5},
        {"attachments": {}},
    ],
)
def test_update_ignores_changes_by_editors(course, mine, fields):
    workspace.update(course, mine)
    change(mine / "00_start.ipynb", **fields)
    write(course / "00_start.ipynb", "x = 10")
    assert workspace.update(course, mine) == ["updated: 00_start.ipynb"]


def test_an_update_keeps_the_kernel_that_was_chosen_and_no_state_of_widgets(course, mine):
    change(course / "00_start.ipynb", metadata={"kernelspec": {"name": "python3"}, "new": 1})
    workspace.update(course, mine)
    change(mine / "00_start.ipynb", metadata={"kernelspec": {"name": "mine"}, "widgets": {"state": {}}})
    change(course / "00_start.ipynb", source="x = 10")
    workspace.update(course, mine)
    settings = json.loads((mine / "00_start.ipynb").read_text())["metadata"]
    assert settings == {"kernelspec": {"name": "mine"}, "new": 1}
