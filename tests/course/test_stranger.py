"""A unit as CONTRIBUTING describes it, written from that text alone: `stranger/u15_rounding`."""

import importlib
import sys
from pathlib import Path

import pytest

from minigrad_course import units as package
from minigrad_course.authoring import build, template
from minigrad_course.feedback import Wrong
from minigrad_course.tasks import Prediction, Question

FOLDER = Path(__file__).with_name("stranger")
NAME = f"{package.__name__}.u15_rounding"
LINES = 150  # of Python and data, without empty lines and jupytext's header


@pytest.fixture
def unit(monkeypatch):
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(FOLDER)])
    yield importlib.import_module(NAME).UNIT
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        del sys.modules[name]


def test_a_unit_of_four_tasks_and_a_picture_takes_150_lines():
    files = [path for path in (FOLDER / "u15_rounding").iterdir() if path.suffix in (".py", ".toml")]
    header = len(template.HEADER.partition("\n\n")[0].splitlines())
    lines = sum(bool(line.strip()) for path in files for line in path.read_text(encoding="utf-8").splitlines())
    assert len(files) == 7 and lines - 2 * header <= LINES


def test_its_questions_are_data_and_its_task_knows_four_mistakes(unit):
    assert [task.__name__ for task in unit.tasks.values()] == ["ExactSum", "Halves", "GridNumbers", "ToSteps"]
    assert issubclass(unit.tasks["exact_sum"], Prediction) and issubclass(unit.tasks["halves"], Question)
    task = unit.tasks["to_steps"]("Ada")
    assert task.check(task.solution()) is None and f"**{task.step}**" in task.text()
    assert len(task.written_mistakes) == 4
    for known in task.mistakes:
        with pytest.raises(Wrong) as refused:
            task.check(task.wrong(known))
        assert refused.value.hint == known.hint


def test_its_picture_is_drawn_by_rows(unit):
    picture = importlib.import_module(f"{NAME}.pictures").cover().to_svg("2.5 between 2 and 3")
    assert all(f">{text}<" in picture for text in ("2", "3", "2.5", "?"))


def test_its_notebooks_have_its_tasks(unit):
    demo, exercise = (build.read(FOLDER / "u15_rounding" / name) for name in (build.DEMO, build.EXERCISE))
    assert template._questions(unit, [dict(cell) for cell in demo.cells]) == []
    assert [cell.metadata["nbgrader"]["grade_id"] for cell in exercise.cells if "nbgrader" in cell.metadata] == [
        "to_steps", "check-to-steps"]
