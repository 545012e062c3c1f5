"""Every idea of the documents that the course is made from leads to a cell in which a student does something."""

import pytest

from lectures.cells import _without_marks, met, sections_of
from lectures.ideas import DOCUMENTS, IDEAS, ideas
from lectures.overview import coverage, idea_anchor
from minigrad.course.unit import units

SEEDS = [(unit, seed) for unit in units().values() for seed in unit.seeds]

# Units that are being written, and the ideas that wait for them.  Delete both when the units are there.
UNITS_UNDER_WAY = {
    "01_why_frameworks", "02_arrays", "08_training", "12_parallelism", "13_distributed", "14_applications",
}
IDEAS_UNDER_WAY = {
    "000: PyTorch: flexibility and usability",
    "001: DNNs: deep neural networks",
    "001: DRL: deep reinforcement learning",
    "001: GNNs: graph neural networks",
    "001: ML frameworks (PyTorch, TensorFlow): all six columns of the table",
    "001: ML frameworks are a new category of system software",
    "001: PB-scale data",
    "001: TPUs",
    "001: algorithms, hardware and data: the three factors of the boom",
    "001: back-end execution: parallelism, offloading",
    "001: data centres with 100,000s of machines",
    "001: data-parallel systems (Spark, Giraph) and what they lack",
    "001: distributed execution",
    "001: execution engine: parallel computation",
    "001: heterogeneous processors: CPUs, GPUs and TPUs",
    "001: management of unstructured and semi-structured data",
    "001: many applications of machine learning appear",
    "001: neural-network libraries (Theano, Caffe) and what they lack",
    "001: one unified programming abstraction for different applications",
    "001: parallelism is discovered in the graph",
    "001: programming abstraction: machine learning in different applications",
    "001: reading: Deep learning with PyTorch in 60 minutes",
    "001: reading: the PyTorch paper",
    "001: reading: the TensorFlow paper",
    "001: sub-graphs are offloaded to heterogeneous processors",
    "001: support for neural networks",
    "001: support for the full life-cycle of a model",
    "001: training and inference",
    "002: NumPy is a numerical linear algebra library",
    "002: all arithmetic on arrays goes through the library",
    "002: all components are embedded in a high-level language, usually Python",
    "002: an array can have several references",
    "002: arrays are mutable",
    "002: arrays are objects that the library owns",
    "002: control returns to Python when the function is finished",
    "002: core component: a library for neural networks",
    "002: the function runs outside of the Python interpreter",
}


def test_ideas_are_listed_once():
    listed = list(ideas())
    assert len(set(map(idea_anchor, listed))) == len(listed) and IDEAS.keys() == DOCUMENTS.keys()
    assert set(listed) >= IDEAS_UNDER_WAY


def test_units_name_ideas_that_are_listed():
    listed = set(ideas())
    strange = [(unit.key, seed.idea) for unit, seed in SEEDS if seed.idea not in listed]
    assert [(key, idea) for key, idea in strange if key not in UNITS_UNDER_WAY] == []


def test_every_idea_is_taught_in_a_unit():
    taught = {seed.idea for _, seed in SEEDS}
    assert [idea for idea in ideas() if idea not in taught | IDEAS_UNDER_WAY] == []


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
