"""The project: its form, a starter and examples that have what the rubric asks for, and its row in the grades."""

import re

import nbformat
import pytest

import minigrad_course as course
from minigrad_course import grading
from minigrad_course.authoring import build
from minigrad_course.feedback import Misused, Wrong
from minigrad_course.project import PARTS, PROJECT
from tests.course.running import ROOT, Notebook, stored

PAGE = (ROOT / "lectures" / "project.md").read_text(encoding="utf-8")
EXAMPLES = sorted((ROOT / "notebooks").glob("project_*.ipynb"))
RIGHT = PROJECT.tasks["project"]("").solution()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"help": ""}, "nothing stands under help"),
        ({"measured": "...", "failed": " "}, "nothing stands under measured, failed"),
        ({"question": "About optimizers."}, "does not end with a question mark"),
        ({"prediction": "faster"}, "there is no number under prediction"),
        ({"question": "Is it faster?"}, "can be answered by yes or no"),
        ({"measured": "much faster"}, "there is no number under measured"),
        ({"failed": "It was slow."}, "fewer than 12 words on what failed"),
    ],
)
def test_the_form_names_what_is_missing(change, says):
    course.begin("project", student="Ada")
    with pytest.raises(Wrong, match=says):
        course.check("project", RIGHT | change)


@pytest.mark.parametrize("answer", ["a project", {"question": 3}, ["..."]])
def test_the_form_is_five_texts(answer):
    with pytest.raises((Wrong, Misused)):
        course.check("project", answer)


def test_a_complete_form_leaves_the_judgement_to_a_person(capsys):
    course.check("project", RIGHT)
    assert "Only a person can judge" in capsys.readouterr().out


@pytest.mark.parametrize("number", ["twice as fast", "ten times as fast", "half of the bytes", "3 MB"])
def test_a_number_may_be_a_word(number, capsys):
    course.check("project", RIGHT | {"prediction": number})
    assert "Only a person can judge" in capsys.readouterr().out


def test_the_rubric_has_five_levels_for_each_criterion_and_adds_up():
    rubric = PAGE.partition("## Rubric")[2].partition("### The examples, graded")[0]
    rows = [line.strip("|").split("|") for line in rubric.splitlines() if line.startswith("| **")]
    assert len(rows) == 6 and all(len(row) == 6 and all(cell.strip() for cell in row) for row in rows)
    best = 4 * len(rows)
    assert f"{best} points" in rubric and f"–{best} | very good" in rubric
    graded = PAGE.partition("### The examples, graded")[2].partition("## For teachers")[0]
    given = [[int(found) for found in re.findall(r"\| (\d)(?=[: |])", line + "|")] for line in graded.splitlines()]
    together = [int(found) for found in re.findall(r"\d+", graded.partition("| together")[2])]
    assert [sum(each) for each in zip(*[row for row in given if len(row) == 3])] == together


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_what_the_rubric_asks_for(path):
    notebook = stored(path)
    text = "\n".join(cell.source for cell in notebook.cells)
    said = str([cell.outputs for cell in notebook.cells if cell.cell_type == "code"])
    for part in ("Question and prediction", "Prediction:", "ests", "measure", "picture", "hat failed", "**Answer**"):
        assert part in text, part
    assert "all tests passed" in said and "the form is complete" in said
    assert re.search(r"Flipbook\(|figure\(", text) and f"`{path.name}`" in PAGE
    assert all(f'"{part}": ' in text for part in PARTS)


def test_there_are_three_examples_and_the_starter_names_them():
    starter = "\n".join(cell.source for cell in stored(ROOT / "notebooks" / "project.ipynb").cells)
    assert len(EXAMPLES) == 3 and all(f"`{path.name}`" in starter for path in EXAMPLES)
    assert "course.my_pieces()" in starter and "course.my_framework()" in starter


def test_the_starter_finds_the_pieces_of_a_student(monkeypatch):
    """A student who has passed a check gets the function back, and the framework is trained with it."""
    notebook = Notebook()
    cells = build.read(build.source_of("project")).cells
    begin, pieces = [cell.source for cell in cells if cell.cell_type == "code"][:2]
    notebook.run(begin)
    notebook.run("def mul_grad(g, out, a, b):\n    return g * b, g * a")
    notebook.run('course.check("mul_grad")')
    notebook.run(pieces)
    assert notebook.names["mine"]["mul_grad"](2, 12, 3, 4) == (8, 6) and "mul_grad" in notebook.said[-1]


@pytest.mark.slow
def test_the_grader_says_whether_the_form_is_complete(tmp_path):
    good = nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_code_cell('import minigrad_course as course\ncourse.begin("project", student="Ada")'),
        nbformat.v4.new_code_cell(f"project = {RIGHT!r}"),
    ])
    empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
    for student, notebook in (("ada", good), ("max", empty)):
        (tmp_path / student).mkdir()
        nbformat.write(notebook, tmp_path / student / "project.ipynb")
    rows = grading.table(grading.grade(tmp_path))
    assert [(row[0], row[-1]) for row in rows[1:]] == [
        ("ada", "project: complete"), ("max", "project: not written yet"),
    ]
