"""Views of unit 07: seams to cut, a picture and its tangent, a training step within a budget."""

import re

import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.core.node import topological_order
from minigrad.viz.colours import LIGHT
from minigrad.viz.flipbook import settings_of
from minigrad.viz.kept import peak, play, read_tape
from minigrad_course.units.u07_forward_and_memory.budgets import Steps, within_budget
from minigrad_course.units.u07_forward_and_memory.seams import Row, plan_of, seams
from minigrad_course.units.u07_forward_and_memory.tangents import moving
from tests.viz.browser import needs_browser, opened


@pytest.fixture(scope="module")
def row():
    h = mg.ones(1000, requires_grad=True)
    with mg.record():
        for _ in range(5):
            h = mg.tanh(h)
    return Row(read_tape(topological_order([h.node])), 5)


def test_a_row_plays_plans(row):
    assert row.peak(()) == 20000 and row.peak([5]) == 20000
    assert row.peak([2, 2]) == peak(play(row.tape, [range(2), range(2, 4)])) < 20000
    first, *_, last = row.history([1] * 4)
    assert first.bytes == 0 and last.bytes == 4000, "the backward pass through the first layer reads its result"


def test_every_setting_of_the_seams_is_a_plan_with_its_bytes(row):
    book = seams(row, 12000, "five layers", "layer")
    for cuts, (page,) in zip(settings_of(book.knobs), book.pages):
        plan = plan_of(cuts)
        fits = row.peak(plan) <= 12000
        assert f"plan = {plan}" in page.say and ("within the budget" in page.say) == fits
        assert page.drawing.to_svg("").count('data-go="') == 4  # a button for each seam
    assert all(knob.drawn for knob in book.knobs)
    assert book.text() == "five layers: 20 kB without checkpoints, and the budget is 12 kB"


@needs_browser
@pytest.mark.xdist_group("browser")
def test_a_click_or_enter_cuts_a_seam_and_a_second_one_joins_it(row):
    with opened(seams(row, 12000, "five layers").to_html(), size=(960, 560)) as page:
        assert page.locator("input[type=range]:visible").count() == 0  # the drawing is the only control
        page.locator('[data-go="1:1"]').click(force=True)
        assert "plan = [2]" in page.inner_text(".mg-say")
        page.locator('[data-go="3:1"]').focus()
        page.keyboard.press("Enter")
        assert "plan = [2, 2]" in page.inner_text(".mg-say")
        page.focus(".mg-view")
        page.keyboard.press("ArrowUp")  # turns no seam
        assert "plan = [2, 2]" in page.inner_text(".mg-say")
        page.locator('[data-go="1:0"]').click(force=True)
        assert "plan = [4]" in page.inner_text(".mg-say")
        page.click("text=more")
        page.click("text=?")
        assert "change “" not in page.inner_text(".mg-view")


def ramp(angle):
    return mg.linspace(0.0, 1.0, 576).reshape(24, 24) * mg.sin(angle)


@pytest.mark.slow
def test_a_tangent_agrees_with_finite_differences_and_a_wrong_one_does_not():
    assert all("Finite differences agree" in page.say for (page,) in moving(ramp).pages)
    with course.forward_rule("multiply", lambda a, b, da, db: da * b - a * db):
        said = [page.say for (page,) in moving(ramp).pages]
    assert sum("do not agree" in each for each in said) > 12


@pytest.mark.parametrize(("most", "colour"), [(3000, "good"), (5000, "bad")])
def test_a_step_over_the_budget_is_red(most, colour):
    before, after = Steps("before", [0, 9000, 0], [2.0, 1.0]), Steps("after", [0, most, 0], [2.0, 1.0])
    svg = within_budget("a step", before, after, 4000, "gradients differ", colour == "bad").to_svg()
    shade = "good-text" if colour == "good" else "bad"
    for words in ("budget: 4 kB", "gradients differ"):
        assert re.search(f'fill="{LIGHT[shade]}"[^>]*>{words}', svg)
    assert f"after: {most // 1000} kB" in svg
