"""Every idea of the documents that the course is made from leads to a cell in which a student does something."""

import pytest

from lectures.site.cells import _without_marks, met, sections_of
from lectures.site.ideas import DOCUMENTS, IDEAS, ideas
from lectures.site.overview import coverage, idea_anchor
from minigrad_course.unit import units

SEEDS = [(unit, seed) for unit in units().values() for seed in unit.seeds]


def test_ideas_are_listed_once():
    listed = list(ideas())
    assert len(set(map(idea_anchor, listed))) == len(listed) and IDEAS.keys() == DOCUMENTS.keys()


def test_units_name_ideas_that_are_listed():
    listed = set(ideas())
    assert [(unit.key, seed.idea) for unit, seed in SEEDS if seed.idea not in listed] == []


def test_every_idea_is_taught_in_a_unit():
    taught = {seed.idea for _, seed in SEEDS}
    assert [idea for idea in ideas() if idea not in taught] == []


@pytest.mark.parametrize("key", units())
def test_an_idea_leads_to_a_cell_in_which_a_student_does_something(key):
    unit = units()[key]
    nowhere = [seed for seed in unit.seeds if met(unit, seed.met_in) is None]
    wanted = "a task, a view, a cell with the tag `change`, or a cell of the exercise that uses a task's function"
    assert not nowhere, f"Expected: {wanted}. Got: {nowhere}"


def test_what_a_student_does_is_known_from_the_task_or_the_cell():
    found = {place.does for unit, seed in SEEDS if (place := met(unit, seed.met_in))}
    assert found == {"predicts", "computes", "writes", "changes", "runs own code"}
    unit = units()["06_reverse_mode"]
    assert met(unit, "walk_back").does == "writes"
    assert met(unit, "walks").address.startswith("06_reverse_mode.demo.html#reverse_mode-")
    assert met(unit, "reverse_mode-act-it-out").does == "changes"


def test_a_cell_that_only_shows_something_is_not_enough():
    assert met(units()["10_graph_mode"], "graph_mode-manifest") is None  # it prints
    assert met(units()["05_gradient_functions"], "gradient_functions-s02") is None  # a text
    assert met(units()["05_gradient_functions"], "nowhere") is None


def test_texts_for_the_search_have_no_marks_and_no_addresses():
    line = "**Read** [this](https://a.org/b), `x` and <https://c.org/d>."
    assert _without_marks(line) == "Read this, x and ."
    sections = sections_of("06_reverse_mode", "demo")
    assert sections[0][0].level == 1 and all(section.anchor.startswith("reverse_mode-") for section, _ in sections)


def test_the_page_lists_every_idea_with_its_places():
    body, sections = coverage(units())
    assert all(f'id="{idea_anchor(idea)}"' in body for idea in ideas())
    assert [section.text for section in sections] == list(DOCUMENTS.values())
    assert body.count("<li>") == sum(seed.idea in set(ideas()) for _, seed in SEEDS)
