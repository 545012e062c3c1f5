"""The backprop debugger in a real browser: buttons, keys, clicks, what is seen when."""

import pytest

import minigrad as mg
from tests.viz.browser import needs_browser, opened

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]


def page_of_steps():
    x = mg.asarray([[0.5, -1.0, 2.0]])
    w = mg.asarray([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]], requires_grad=True)
    h = mg.tanh(x @ w)
    y = h * h + h
    return mg.viz.step(y.sum(), names={"w": w}).to_html()


@pytest.fixture(scope="module")
def page():
    with opened(page_of_steps()) as page:
        yield page


@pytest.fixture(autouse=True)
def begin(page):
    page.focus(".mg-view")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    while step(page) < 5:
        page.keyboard.press("ArrowRight")


def step(page):
    return int(page.get_attribute(".mg-view", "data-step"))


def said(page):
    return page.inner_text(".mg-say")


def gradient(page, name):
    return page.locator(".mg-gradient", has_text=f"∂ {name}").first


def test_a_newcomer_sees_two_buttons(page):
    visible = [b.inner_text() for b in page.locator(".mg-view button").all() if b.is_visible()]
    assert visible == ["‹ back", "next ›", "more ▾"]


def test_next_and_back(page):
    page.click("text=next ›")
    assert step(page) == 6 and said(page).startswith("We start at")
    page.click("text=next ›")
    assert "passes back to y" in said(page)
    page.click("text=‹ back")
    assert step(page) == 6


def test_keys(page):
    page.keyboard.press("End")
    assert page.inner_text(".mg-count").startswith("10 / 10") and page.is_disabled("text=next ›")
    page.keyboard.press("Home")
    assert step(page) == 0 and said(page) == "Nothing has been computed yet."
    page.keyboard.press("ArrowRight")
    assert page.get_attribute(".mg-view", "data-kind") == "make"


def test_no_gradient_yet_does_not_look_like_zero(page):
    assert "mg-none" in gradient(page, "h").get_attribute("class")
    assert gradient(page, "h").locator("text").nth(2).text_content() == ""


def test_a_gradient_is_complete_when_all_of_it_has_come(page):
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert "mg-part" in gradient(page, "h").get_attribute("class")
    gradient(page, "h").click()  # until here
    classes = gradient(page, "h").get_attribute("class")
    assert "mg-part" not in classes and "mg-none" not in classes
    assert "used more than once" in said(page)


def test_rules_numbers_checks_and_code(page):
    gradient(page, "w").click()
    side = page.inner_text(".mg-side")
    assert "checked by finite differences" in side and "✓" in side and "h = mg.tanh(x @ w)" in side
    assert page.locator(".mg-rule math").count() == 1 or page.locator(".mg-rule code").count() == 1
    assert page.locator(".mg-edge.mg-lit").count() == 1


def test_play_by_the_space_key(page):
    page.focus(".mg-view")
    page.keyboard.press(" ")
    page.wait_for_function("document.querySelector('.mg-view').dataset.step > 5", timeout=5000)
    page.keyboard.press(" ")
    now = step(page)
    page.wait_for_timeout(1200)
    assert step(page) == now


def test_predicting(page):
    page.click("text=more ▾")
    page.click("text=predict")
    page.click("text=next ›")
    page.click("text=next ›")
    assert said(page) == "What comes to y?" and "[1, 1]" not in page.inner_text(".mg-side")
    page.fill("input[placeholder^=shape]", "1x2")
    page.click("text=check >> nth=0")
    assert "✓ right" in page.inner_text("[role=status]")
    page.fill("[aria-label='its numbers']", "1, 0.5")
    page.press("[aria-label='its numbers']", "Enter")
    assert "✗ it is [1, 1]" in page.inner_text("[role=status]")
    page.click("text=negative")
    assert "✗ it is positive" in page.inner_text("[role=status]")
    page.click("text=reveal")
    assert "passes back to y" in said(page)
    page.click("text=predict")
    page.click("text=more ▾")


def test_acting_it_out(page):
    page.click("text=more ▾")
    page.click("text=act it out")
    gradient(page, "sum").click()
    gradient(page, "y").click()
    gradient(page, "h").click()  # too early: the product has not sent its parts
    assert "before all of it had come" in said(page)
    assert "mg-wrong" in gradient(page, "matmul").get_attribute("class")
    page.click("text=rewind one")
    gradient(page, "multiply").click()
    gradient(page, "h").click()
    gradient(page, "matmul").click()
    assert "in a right order" in said(page)
    page.click("text=act it out")
    page.click("text=more ▾")


def test_every_box_can_be_reached_and_read_aloud(page):
    labels = [box.get_attribute("aria-label") for box in page.locator(".mg-box").all()]
    assert all(labels) and all(box.get_attribute("tabindex") == "0" for box in page.locator(".mg-box").all())
    gradient(page, "y").focus()
    page.keyboard.press("Enter")
    assert page.inner_text("[aria-live]") == said(page)


def test_jupyter_is_kept_from_acting_on_the_keys(page):
    assert page.get_attribute(".mg-view", "data-lm-suppress-shortcuts") == "true"


def test_the_slider(page):
    page.locator("input[type=range]").fill("7")
    assert step(page) == 7


def test_dark():
    with opened(page_of_steps(), dark=True) as page:
        colour = page.evaluate("getComputedStyle(document.querySelector('.mg-view')).backgroundColor")
        assert colour == "rgb(20, 24, 29)"


def test_a_step_is_quick():
    """Not how long it takes: how much is touched.  A step sets classes, and never draws the picture again."""
    with opened(page_of_steps()) as page:
        page.evaluate(
            "window.drawn = 0; new MutationObserver((list) => { window.drawn += list.filter("
            "(m) => [...m.addedNodes].some((n) => n.tagName === 'svg')).length; })"
            ".observe(document.querySelector('.mg-stage'), {childList: true, subtree: true})"
        )
        page.focus(".mg-view")
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(50)
        assert page.evaluate("window.drawn") == 0
