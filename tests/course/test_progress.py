"""What newcomers see of the checker and of their progress."""

import pytest

import minigrad_course as course
from minigrad_course.feedback import Feedback
from minigrad_course.session import SESSION
from tests.course.running import said_to


def test_feedback_shows_nothing_of_the_checker():
    """Feedback never contains names or lines of the checker."""
    with pytest.raises(Feedback) as refused:
        course.check("walk_back", lambda result, gradients, passes_back: 1 / 0)
    assert "minigrad/" not in str(refused.value) and "minigrad_course/" not in str(refused.value)
    assert "walk_tasks" not in str(refused.value)


def test_the_first_answer_that_is_reported_is_the_first(tmp_path):
    SESSION.progress.path = tmp_path / "course-progress.json"
    said_to("weighted = [1, 1, 1]", "weighted")
    said_to("weighted = [-1, -2, 0]", "weighted")
    assert SESSION.progress.tasks["weighted"]["first"] == "[1, 1, 1]"


def test_progress_counts_answers_from_before_begin(tmp_path, monkeypatch):
    (tmp_path / "course-progress.json").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SESSION, "unit", None)  # which another test may have begun
    said_to("numbers = [1, 3, 5]", "numbers")
    assert "✓ numbers" in str(course.progress()) and "0 of 0" not in str(course.progress())
