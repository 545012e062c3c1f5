"""The museum: pictures that are broken at first, repaired by the library's own result, with hints on the way."""

import ast
import re

import pytest

from minigrad_course.museum import MUSEUM
from minigrad_course.museum.broken_picture import BrokenCode
from minigrad_course.unit import units
from tests.course.running import ROOT, said_to, stored
from tests.course.test_units import lines_of_code

PICTURES = list(MUSEUM.tasks.values())
FORMS = r"https://(github\.com/[\w.-]+/[\w.-]+/(issues|pull)/[0-9]+|stackoverflow\.com/questions/[0-9]+(/[\w-]+)?)"


def cell_of(name):
    """The cell of the notebook where a picture is repaired."""
    notebook = stored(ROOT / "notebooks" / "museum.ipynb")
    return next(cell for cell in notebook.cells if f'course.check("{name}")' in cell.source)


def test_there_are_fifteen_pictures_each_from_its_own_thread():
    assert len(PICTURES) == 15
    threads = [each.thread for each in PICTURES]
    assert all(re.fullmatch(FORMS, thread.address) for thread in threads)
    assert len({thread.address for thread in threads}) == len({thread.title for thread in threads}) == 15
    assert all(len(thread.title.split()) <= 12 for thread in threads), "a short title, no sentence of others"


@pytest.mark.parametrize("task", PICTURES, ids=lambda task: task.name)
def test_a_picture_is_broken_and_its_repair_is_drawn_differently(task):
    picture = task()
    broken, right = picture.broken_drawing(), picture.true_drawing()
    assert not picture.is_right(picture.shown(picture.broken_answer()))
    assert broken.pieces != right.pieces
    assert all(drawing.width <= 640 and drawing.height <= 310 for drawing in (broken, right))


@pytest.mark.parametrize("task", PICTURES, ids=lambda task: task.name)
def test_the_notebook_begins_with_the_broken_picture(task):
    cell = cell_of(task.name)
    notebook = said_to(cell.source.rpartition("\n")[0], task.name)
    assert notebook.startswith(f"○ {task.name}: the picture is still the broken one")
    assert task.clue in notebook
    shown = [output.data for output in cell.outputs if "image/svg+xml" in output.get("data", {})]
    assert len(shown) == 1 and "not right yet" in shown[0]["image/svg+xml"]


@pytest.mark.parametrize("task", PICTURES, ids=lambda task: task.name)
def test_a_view_of_an_answer_says_whether_it_is_right(task):
    picture = task()
    assert "not right yet" in repr(picture.illustration(picture.broken_answer()))
    assert "as minigrad computes it" in repr(picture.illustration(picture.solution()))
    assert picture.illustration(...) is None


@pytest.mark.parametrize("task", PICTURES, ids=lambda task: task.name)
def test_a_picture_names_units_and_says_itself_in_words(task):
    assert task.taught_in and all(re.fullmatch(r"[01][0-9]_[a-z_]+", key) for key in task.taught_in)
    existing = [key for key in task.taught_in if key in units()]
    assert all(f"{key}.ipynb" in task().explained() for key in existing)
    assert len(task.said.split()) > 6 and task().text().count("```") == 2


def test_a_units_notebook_that_does_not_exist_is_not_named(monkeypatch):
    task = PICTURES[0]
    monkeypatch.setattr(task, "taught_in", ("98_nowhere",))
    assert task().explained() == task.why


@pytest.mark.parametrize("task", [task for task in PICTURES if issubclass(task, BrokenCode)], ids=lambda t: t.name)
def test_a_program_that_raises_is_reported_and_not_drawn(task):
    def stops(*args):
        raise ValueError("stop here")

    assert task().illustration(stops) is None
    assert "stop here" in said_to(f"def {task.name}(*args):\n    raise ValueError('stop here')", task.name)


def without_texts(source):
    """A module without the attributes of its classes that are literals: texts, addresses, wrong answers with hints."""
    lines = source.splitlines()
    for each in [node for tree in ast.parse(source).body if isinstance(tree, ast.ClassDef) for node in tree.body]:
        value = getattr(each, "value", None)
        text = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "Thread"
        if isinstance(each, ast.Assign | ast.AnnAssign) and (text or _is_literal(value)):
            lines[each.lineno - 1 : each.end_lineno] = [""] * (each.end_lineno - each.lineno + 1)
    return "\n".join(lines) + "\n"


def _is_literal(value):
    try:
        return value is not None and ast.literal_eval(value) is not ...
    except ValueError:
        return False


def test_the_museum_is_small(tmp_path):
    """At most 700 lines of Python, as a unit, without texts and hints."""
    count = 0
    for path in (ROOT / "minigrad" / "course" / "museum").glob("*.py"):
        (tmp_path / path.name).write_text(without_texts(path.read_text(encoding="utf-8")), encoding="utf-8")
        count += lines_of_code(tmp_path / path.name)
    assert count <= 700
