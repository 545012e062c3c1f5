"""The stages of the compiler on a page, in a real browser."""

from itertools import pairwise

import pytest

import minigrad as mg
from tests.viz.browser import needs_browser, opened, settled

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]

STAGES = ["eager mode", "as traced", "simplify", "fused", "loops", "run", "called again"]


def view():
    def program(x, w):
        h = mg.tanh(x @ w)
        y = h * 1.0
        return (y * y).sum()

    return mg.viz.fusion(program, mg.asarray([[0.5, -1.0]]), mg.asarray([[0.1, 0.2], [0.3, -0.4]]))


@pytest.fixture(scope="module")
def page():
    with opened(view().to_html()) as page:
        page.click("[data-tab=stages]")
        yield page


@pytest.fixture(autouse=True)
def begin(page):
    page.focus(".mg-view")
    page.keyboard.press("Escape")
    page.keyboard.press("Home")


def to(page, stage):
    page.locator("input[type=range]").fill(str(STAGES.index(stage)))
    assert page.inner_text(".mg-count").endswith(stage)
    page.focus(".mg-view")


def row(page, name):
    return page.locator(".mg-op:not(.mg-absent)").filter(has_text=f"{name} =")


def test_a_value_for_each_line_then_none_then_kernels(page):
    assert row(page, "sum_1").locator(".mg-value").inner_text() == "0.274"
    assert page.inner_text(".mg-say").startswith("eager mode: Eager mode computes each operation as soon as Python")
    page.click("text=next ›")
    assert page.inner_text(".mg-say").startswith("as traced: Graph mode only records")
    assert [value for value in page.locator(".mg-value").all_inner_texts() if value] == []
    to(page, "fused")
    assert row(page, "tanh_1").locator(".mg-value").inner_text() == "kernel_1 · not stored"
    assert row(page, "sum_1").locator(".mg-value").inner_text() == "kernel_1 · stored, 4 B"
    assert "All else stays in a register or a temporary row: 2 of 4 values." in page.inner_text(".mg-say")
    to(page, "run")
    written = [value for value in page.locator(".mg-value").all_inner_texts() if value]
    assert written == ["matmul_1 writes [−0.25, 0.5]", "kernel_1 writes 0.274"], "the same values as eager mode"


def test_kernels_that_make_a_value_together_are_named_and_a_second_call_has_no_values():
    """A sum is complete where its parts are combined; and the values of a training step differ from call to call."""
    f = mg.jit(lambda x: (x * mg.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, x)).sum())
    with opened(mg.viz.fusion(f, mg.asarray([1.0, 2.0])).to_html()) as page:
        page.click("[data-tab=stages]")
        page.focus(".mg-view")
        page.keyboard.press("End")
        assert row(page, "sum_1").locator(".mg-value").inner_text() == "kernel_0 and kernel_1 make it"
        page.keyboard.press("ArrowLeft")
        assert row(page, "sum_1").locator(".mg-value").inner_text() == "kernel_0 and kernel_1 make 3"
        result = page.locator(".mg-op").filter(has_text="cond_1[0]").first
        assert result.locator(".mg-value").inner_text() == "cond_1 writes [2, 4]"
        row(page, "sum_1").click()
        page.wait_for_selector("text=sum_1, scalar")
        facts = page.locator(".mg-side tr").all_inner_texts()
        assert "run\tkernel_0 and kernel_1 make it" in facts


def test_a_listing_that_begins_with_your_line_has_its_words():
    """No input is above the line of a constant, and then nothing was said of a stage, nor of what is left again."""
    with opened(mg.viz.fusion(lambda x: (mg.ones(3) * 2 + 1, x * 2), mg.ones(3)).to_html()) as page:
        page.click("[data-tab=stages]")
        page.wait_for_function("document.querySelector('.mg-say').textContent.startsWith('eager mode: ')", timeout=5000)


def test_what_changed_is_marked_by_signs_and_leaves(page):
    to(page, "simplify")
    assert row(page, "multiply_2").locator(".mg-sign").inner_text() == "−"
    reads = row(page, "multiply_1")
    assert reads.locator(".mg-sign").inner_text() == "±"
    assert reads.locator("del").all_inner_texts() == ["multiply_2"] * 2
    assert reads.locator("ins").all_inner_texts() == ["tanh_1"] * 2
    assert "x * 1 -> x: multiply_2 → tanh_1, line" in page.inner_text(".mg-side .mg-links")
    to(page, "fused")
    assert row(page, "multiply_2").count() == 0 and page.locator(".mg-op.mg-absent").count() == 1


def test_what_stays_keeps_its_order_without_empty_lines(page):
    """Stages reserved an empty line for each operation that ended before or began later."""
    for stage in STAGES[:4]:
        to(page, stage)
        boxes = [box for each in page.locator(".mg-listing").first.locator("> div").all()
                 if (box := each.bounding_box())]
        gaps = [next["y"] - box["y"] - box["height"] for box, next in pairwise(boxes)]
        assert all(0 <= gap < 12 for gap in gaps), stage
        places = [row(page, name).bounding_box()["y"] for name in ("matmul_1", "tanh_1", "multiply_1", "sum_1")]
        assert places == sorted(places)


def test_the_line_at_the_top_stays_there_when_lines_above_it_leave():
    def f(x):
        y = x
        for _ in range(60):
            y = mg.tanh(y * 1) + 0
        return y

    with opened(mg.viz.fusion(f, mg.ones(3)).to_html(), size=(1200, 700)) as page:
        page.click("[data-tab=stages]")
        to(page, "simplify")
        page.evaluate("document.querySelector('.mg-listing').scrollTop = 1400")
        settled(page)
        first = """() => {
            const list = document.querySelector('.mg-listing'), at = list.getBoundingClientRect().top;
            const ops = [...list.querySelectorAll('.mg-op:not(.mg-absent)')];
            const tanh = ops.filter((e) => /tanh[(]/.test(e.textContent));
            return tanh.map((e) => [e.textContent, e.getBoundingClientRect().top - at]).find(([, top]) => top > 30);
        }"""
        name, top = page.evaluate(first)
        page.keyboard.press("ArrowRight")
        settled(page)
        again, now = page.evaluate(first)
        assert again.split(" ")[0].lstrip("±") == name.split(" ")[0].lstrip("±") and abs(now - top) < 60


def test_a_chosen_operation_is_marked_in_every_stage(page):
    row(page, "tanh_1").click()
    assert page.locator(".mg-line mark").inner_text() == "mg.tanh(x @ w)"
    story = page.inner_text(".mg-side")
    assert "tanh_1 = tanh(matmul_1)" in story and "kernel_1 · not stored" in story
    to(page, "fused")
    assert row(page, "tanh_1").evaluate("e => e.classList.contains('mg-here')")
    assert page.locator(".mg-with").count() == 2, "the others of its kernel"
    to(page, "loops")
    assert any("tanh" in text for text in page.locator(".mg-loops .mg-here").all_inner_texts())
    assert "matmul_1, by a library" in page.inner_text(".mg-loops >> nth=0")
    page.keyboard.press("Escape")
    assert page.locator(".mg-here").count() == 0


def test_without_a_choice_no_line_is_marked(page):
    page.mouse.move(5, 5)
    settled(page)
    for stage in STAGES:
        to(page, stage)
        assert page.locator(".mg-with, .mg-here").count() == 0, stage


def test_pointing_marks_an_operation_and_what_replaced_it(page):
    to(page, "simplify")
    row(page, "multiply_2").hover()
    settled(page)
    assert page.locator(".mg-op.mg-with .mg-call").all_inner_texts() == ["tanh_1 = tanh(matmul_1)"]
    page.mouse.move(5, 5)
    settled(page)
    assert page.locator(".mg-op.mg-with").count() == 0


def test_keys_lead_from_line_to_line_and_from_change_to_change(page):
    page.focus(".mg-listing")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert page.inner_text(".mg-say") == "matmul_1, 1 × 2"
    page.keyboard.press("ArrowUp")
    assert page.inner_text(".mg-say") == "w, 2 × 2"
    to(page, "simplify")
    page.keyboard.press("n")
    assert page.inner_text(".mg-say").startswith("multiply_2") and "ended" in page.inner_text(".mg-side")
    assert page.locator("[aria-live]").last.text_content().startswith("multiply_2")


def test_a_second_call_runs_no_line_of_python(page):
    page.keyboard.press("End")
    said = page.inner_text(".mg-say")
    assert "Eager mode runs every line again. " in said and "Graph mode runs no line of your Python" in said
    lines = page.locator(".mg-line.mg-ends")
    assert lines.count() == 3
    assert lines.first.evaluate("e => getComputedStyle(e.lastChild).textDecorationLine") == "line-through"


@pytest.mark.parametrize("width", [390, 900])
@pytest.mark.parametrize("dark", [False, True])
def test_all_is_legible_and_within_its_frame(width, dark):
    with opened(view().to_html(), size=(width, 800), dark=dark) as page:
        page.click("[data-tab=stages]")
        for _ in STAGES:
            size = "all => Math.min(...all.map(each => parseFloat(getComputedStyle(each).fontSize)))"
            assert page.eval_on_selector_all(".mg-listing span", size) >= 9
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            page.keyboard.press("ArrowRight")


def test_hostile_names_are_text():
    name = "</script><img src=x onerror=alert(1)>"

    class Net(mg.nn.Module):
        def __init__(self):
            setattr(self, name, mg.nn.Linear(2, 2))

        def forward(self, x):
            return getattr(self, name)(x) * 2

    with opened(mg.viz.fusion(Net(), mg.ones((2, 2))).to_html()) as page:
        page.click("[data-tab=stages]")
        for _ in STAGES:
            assert page.locator("img").count() == 0
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Home")
        assert name in page.inner_text(".mg-listing")


def test_long_types_have_room():
    net = mg.nn.Sequential(mg.nn.Conv2d(1, 8, 3, padding=1), mg.nn.ReLU())
    with opened(mg.viz.fusion(net, mg.ones((16, 1, 8, 8))).to_html(), size=(1280, 800)) as page:
        page.click("[data-tab=stages]")
        assert page.locator(".mg-type >> text=16 × 8 × 8 × 8").count()
        cut = "[...document.querySelectorAll('.mg-type')].filter((e) => e.scrollWidth > e.clientWidth)"
        assert page.evaluate(f"{cut}.every((e) => e.textContent.length > 20)")
        assert page.evaluate(f"{cut}.every((e) => getComputedStyle(e).textOverflow === 'ellipsis')")
