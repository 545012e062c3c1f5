"""One line followed through all stages, and the graphs of several programs with what they share."""

import pytest

import minigrad as mg
from minigrad_course.units.u14_applications.constellations import constellations, shared, uses
from minigrad_course.units.u14_applications.journeys import journey, stages


def line(x, w):
    return mg.tanh(x @ w) * 2


@pytest.fixture(scope="module")
def found():
    return {each.name: each for each in stages(line, (mg.ones((4, 3)), mg.ones((3, 8))), "tanh")}


def test_a_line_goes_through_all_rooms(found):
    assert list(found) == ["your line", "calls", "primitive", "nodes", "gradient", "graph", "passes", "kernels", "C",
                           "LLVM", "CUDA", "machine code", "plan", "result"]
    assert all(each.lines for each in found.values())


@pytest.mark.parametrize(("stage", "text"), [
    ("your line", "return mg.tanh(x @ w) * 2"), ("primitive", "x=lambda g, out:"), ("nodes", "n3 = tanh(n2)"),
    ("graph", "tanh_1: float32 (4, 8) = tanh(matmul_1)"), ("kernels", "for each element: tanh_1, multiply_1"),
    ("C", "own_tanh"), ("LLVM", "define void @kernel"), ("CUDA", "tanhf"), ("plan", "kernel_1"),
    ("result", "(4, 8) float32"),
])
def test_a_stage_shows_what_there_is(found, stage, text):
    assert any(text in each for each in found[stage].lines)


def test_four_rules_run_for_the_line(found):
    assert sum("→ input" in each for each in found["gradient"].lines) == 4


def test_the_text_of_a_journey_is_the_same_on_every_machine():
    book = journey(line, mg.ones((4, 3)), mg.ones((3, 8)), of="tanh")
    (machine,) = [each for each in book.text().splitlines() if "machine code" in each]
    assert "line" not in machine and book.pages[0][book.cover].say.startswith("C, ")


def test_arguments_keep_their_state():
    x = mg.ones(3)
    journey(lambda x: mg.tanh(x), x, of="tanh")
    assert not x.requires_grad and x.grad is None


def test_shared_primitives_are_in_all_graphs():
    graphs = {"a": mg.trace(lambda x: mg.tanh(x) + 1, mg.ones(2)), "b": mg.trace(lambda x: x + mg.exp(x), mg.ones(2))}
    assert shared(uses(graphs)) == ["add"]
    book = constellations(graphs)
    assert "a 1 of 2, b 1 of 2" in book.pages[0][0].say
    assert len(book.pages) == 4 and "exp" in book.knobs[0].settings
